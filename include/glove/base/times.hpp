// Moments and lengths of time as people write them: RFC 3339, an age such as 10m, a limit such as
// 90s. Moments are nanoseconds since 1970.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <glove/base/numbers.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove {

namespace detail {

// Exactly `count` digits off the front; -1 when they are not there.
[[nodiscard]] constexpr auto take_fixed(std::string_view& text, std::size_t count) noexcept -> int {
    if (text.size() < count) return -1;
    int out = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (!is_digit(text[i])) return -1;
        out = out * 10 + (text[i] - '0');
    }
    text.remove_prefix(count);
    return out;
}
[[nodiscard]] constexpr auto take_mark(std::string_view& text, char mark) noexcept -> bool {
    if (text.empty() || text.front() != mark) return false;
    text.remove_prefix(1);
    return true;
}

inline constexpr std::int64_t second_ns = 1'000'000'000;

} // namespace detail

// 2026-01-31T23:59:59Z, 2026-01-31T23:59:59.5+02:00; years 1970 to 2261. No leap seconds.
[[nodiscard]] constexpr auto parse_rfc3339(std::string_view text) noexcept
    -> std::optional<std::int64_t> {
    using namespace std::chrono;
    const int y = detail::take_fixed(text, 4);
    if (!detail::take_mark(text, '-')) return std::nullopt;
    const int m = detail::take_fixed(text, 2);
    if (!detail::take_mark(text, '-')) return std::nullopt;
    const int d = detail::take_fixed(text, 2);
    if (!detail::take_mark(text, 'T') && !detail::take_mark(text, 't') &&
        !detail::take_mark(text, ' '))
        return std::nullopt;
    const int hour = detail::take_fixed(text, 2);
    if (!detail::take_mark(text, ':')) return std::nullopt;
    const int minute = detail::take_fixed(text, 2);
    if (!detail::take_mark(text, ':')) return std::nullopt;
    const int second = detail::take_fixed(text, 2);
    if (y < 1970 || y > 2261 || m < 1 || d < 1 || hour < 0 || hour > 23 || minute < 0 ||
        minute > 59 || second < 0 || second > 59)
        return std::nullopt;
    const year_month_day date{year{y}, month{static_cast<unsigned>(m)},
                              day{static_cast<unsigned>(d)}};
    if (!date.ok()) return std::nullopt;
    std::int64_t fraction = 0;
    if (detail::take_mark(text, '.')) {
        if (text.empty() || !is_digit(text.front())) return std::nullopt;
        for (auto unit = detail::second_ns / 10; !text.empty() && is_digit(text.front());
             unit /= 10, text.remove_prefix(1))
            fraction += unit * (text.front() - '0'); // digits beyond the ninth count nothing
    }
    std::int64_t offset = 0;
    if (!detail::take_mark(text, 'Z') && !detail::take_mark(text, 'z')) {
        const bool behind = detail::take_mark(text, '-');
        if (!behind && !detail::take_mark(text, '+')) return std::nullopt;
        const int hours = detail::take_fixed(text, 2);
        if (!detail::take_mark(text, ':')) return std::nullopt;
        const int minutes = detail::take_fixed(text, 2);
        if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
        offset = (hours * 60 + minutes) * 60 * (behind ? -1 : 1);
    }
    if (!text.empty()) return std::nullopt;
    const auto days = sys_days{date}.time_since_epoch().count();
    const auto seconds = std::int64_t{days} * 86'400 + hour * 3600 + minute * 60 + second - offset;
    return seconds * detail::second_ns + fraction;
}

// 90s, 10m, 2h, 1d: how long that is, in nanoseconds. At most 100 years.
[[nodiscard]] constexpr auto parse_age(std::string_view text) noexcept
    -> std::optional<std::int64_t> {
    const auto number = detail::take_digits(text);
    if (!number || text.size() != 1) return std::nullopt;
    const std::uint64_t unit = text == "s"   ? 1
                               : text == "m" ? 60
                               : text == "h" ? 3600
                               : text == "d" ? 86'400
                                             : 0;
    constexpr std::uint64_t most = 100ULL * 366 * 86'400;
    if (unit == 0 || *number > most / unit) return std::nullopt;
    return static_cast<std::int64_t>(*number * unit) * detail::second_ns;
}

// How long something may take: 90 and 90s, 500ms, 10m, 2h. At most 100 years, which a 64-bit count
// of nanoseconds holds with room for the clock it is added to.
struct duration_reading {
    std::uint64_t ms = 0;
    std::string_view complaint = {}; // empty when it was understood; goes after the value
};
[[nodiscard]] constexpr auto parse_duration(std::string_view text) noexcept -> duration_reading {
    constexpr std::string_view not_a_time = "is not a time such as 90s, 10m or 2h";
    constexpr std::uint64_t most = 100ULL * 366 * 24 * 3'600'000;
    const auto whole = text.size();
    const auto number = detail::take_digits(text);
    if (!number || whole - text.size() > 9) return {.complaint = not_a_time};
    const std::uint64_t unit = text == "ms"                  ? 1
                               : text.empty() || text == "s" ? 1000
                               : text == "m"                 ? 60'000
                               : text == "h"                 ? 3'600'000
                                                             : 0;
    if (unit == 0) return {.complaint = not_a_time};
    if (*number > most / unit) return {.complaint = "is more than 100 years"};
    if (*number == 0) return {.complaint = "is no time at all"};
    return {.ms = *number * unit};
}

// 2026-01-31T23:59:59Z, which `parse_rfc3339` reads; without what is less than a second.
[[nodiscard]] inline auto utc_text(std::int64_t ns) -> std::string {
    using namespace std::chrono;
    const auto whole = floor<seconds>(nanoseconds{ns});
    const auto days = floor<std::chrono::days>(whole);
    const year_month_day date{sys_days{days}};
    const hh_mm_ss time{whole - days};
    char out[40];
    const int size = std::snprintf(
        out, sizeof out, "%04d-%02u-%02uT%02d:%02d:%02dZ", int{date.year()}, unsigned{date.month()},
        unsigned{date.day()}, static_cast<int>(time.hours().count()),
        static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
    return {out, static_cast<std::size_t>(size)};
}

} // namespace glove
