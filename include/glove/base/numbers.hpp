// Numbers as people write them. Nothing is guessed at: no signs, no spaces, no other radix.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <glove/base/ascii.hpp>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace glove {

namespace detail {

inline constexpr std::string_view size_units = "bkmgtpe"; // each 1024 times the one before

// Takes the digits off the front of `text`; nothing when there are none, or too many.
[[nodiscard]] constexpr auto take_digits(std::string_view& text) noexcept
    -> std::optional<std::uint64_t> {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    if (text.empty() || !is_digit(text.front())) return std::nullopt;
    std::uint64_t out = 0;
    for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
        const auto digit = static_cast<std::uint64_t>(text.front() - '0');
        if (out > (most - digit) / 10) return std::nullopt;
        out = out * 10 + digit;
    }
    return out;
}

} // namespace detail

// Digits without leading zeros, at most `most`: one text for each number.
[[nodiscard]] constexpr auto parse_decimal(std::string_view text, std::uint64_t most) noexcept
    -> std::optional<std::uint64_t> {
    if (text.size() > 1 && text.front() == '0') return std::nullopt;
    const auto out = detail::take_digits(text);
    return text.empty() && out && *out <= most ? out : std::nullopt;
}

// Plain numbers are bytes; K, KB and KiB and so on up to E are powers of 1024, in either case.
[[nodiscard]] constexpr auto parse_size(std::string_view text) noexcept
    -> std::optional<std::uint64_t> {
    const auto number = detail::take_digits(text);
    if (!number) return std::nullopt;
    if (text.empty()) return number;
    const auto power = detail::size_units.find(to_lower(text.front()));
    if (power == std::string_view::npos) return std::nullopt;
    text.remove_prefix(1);
    if (power > 0 && !text.empty()) {
        if (to_lower(text.front()) == 'i' && text.size() == 2) text.remove_prefix(1);
        if (text.size() == 1 && to_lower(text.front()) == 'b') text.remove_prefix(1);
    }
    const auto shift = 10 * power;
    if (!text.empty() || (*number << shift) >> shift != *number) return std::nullopt;
    return *number << shift;
}

// "2", "0.5", "1.25" in hundredths: digits, with a point and one or two more if need be.
[[nodiscard]] constexpr auto parse_hundredths(std::string_view text, std::uint64_t most) noexcept
    -> std::optional<std::uint64_t> {
    const auto point = std::min(text.find('.'), text.size());
    const auto whole = parse_decimal(text.substr(0, point), most / 100);
    if (!whole) return std::nullopt;
    std::uint64_t out = *whole * 100;
    if (point < text.size()) {
        const auto part = text.substr(point + 1);
        if (part.empty() || part.size() > 2) return std::nullopt;
        std::uint64_t unit = 10;
        for (const char c : part) {
            if (!is_digit(c)) return std::nullopt;
            out += unit * static_cast<std::uint64_t>(c - '0');
            unit = 1;
        }
    }
    return out <= most ? std::optional{out} : std::nullopt;
}

// The shortest text that `parse_size` reads as this number: 65536 is "64K".
[[nodiscard]] inline auto size_text(std::uint64_t bytes) -> std::string {
    std::size_t power = 0;
    for (; bytes != 0 && bytes % 1024 == 0; bytes /= 1024) ++power;
    auto out = std::to_string(bytes);
    if (power > 0) out += static_cast<char>(detail::size_units[power] - 'a' + 'A');
    return out;
}

} // namespace glove
