// Layout only. Columns but the last are of fixed width, so that rows can be printed as they come.
#include <algorithm>
#include <array>
#include <cstdio>
#include <glove/audit/names.hpp>
#include <glove/audit/table.hpp>
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>

namespace glove::audit {

namespace {

constexpr std::size_t time_width = 20, action_width = 12, state_width = 18, duration_width = 8,
                      bytes_width = 13;
constexpr std::size_t fixed_width =
    time_width + action_width + state_width + duration_width + bytes_width + 5 * 2;
constexpr std::size_t least_width = 8; // of the last column, however narrow the terminal is

using text_detail::is_in;
using text_detail::range;
using text_detail::take;
constexpr range marks[] = {{0x300, 0x36f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}};
constexpr range wide[] = {{0x1100, 0x115f},   {0x2e80, 0xa4cf},  {0xac00, 0xd7a3},
                          {0xf900, 0xfaff},   {0xfe30, 0xfe6f},  {0xff00, 0xff60},
                          {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};

[[nodiscard]] auto columns_of(char32_t code) -> std::size_t {
    return is_in(marks, code) ? 0 : is_in(wide, code) ? 2 : 1;
}

[[nodiscard]] auto columns_of(std::string_view text) -> std::size_t {
    std::size_t out = 0;
    while (!text.empty()) out += columns_of(take(text).code);
    return out;
}

[[nodiscard]] auto padded(std::string text, std::size_t width) -> std::string {
    const auto columns = columns_of(text);
    return text.append(width > columns ? width - columns : 0, ' ');
}

[[nodiscard]] auto colour_of(const row& of) -> std::string_view {
    if (of.state == row_state::open) return "\033[36m";
    if (of.state == row_state::lost) return "\033[33m";
    if (of.status != status::ok) return "\033[31m";
    return of.detail.empty() ? "\033[32m" : "\033[33m";
}

[[nodiscard]] auto bytes_of(const row& of) -> std::string {
    if (!of.sent && !of.received) return "-";
    return bytes_text(of.sent.value_or(0)) + "/" + bytes_text(of.received.value_or(0));
}

template<class... Numbers> [[nodiscard]] auto written(const char* format, Numbers... numbers)
    -> std::string {
    std::array<char, 64> out{};
    const int size = std::snprintf(out.data(), out.size(), format, numbers...);
    return {out.data(), static_cast<std::size_t>(std::max(size, 0))};
}

} // namespace

auto safe_text(std::string_view text) -> std::string { return printable(text); }

auto fitted(std::string_view text, std::size_t columns) -> std::string {
    constexpr std::string_view cut = "...";
    if (columns_of(text) <= columns) return std::string{text};
    if (columns < cut.size()) return std::string(columns, '.');
    std::string out;
    auto left = columns - cut.size();
    while (!text.empty()) {
        const auto next = take(text);
        const auto needed = columns_of(next.code);
        if (needed > left) break;
        left -= needed;
        out += next.bytes;
    }
    return out += cut;
}

auto duration_text(std::int64_t ns) -> std::string {
    const auto seconds = static_cast<double>(ns) / 1e9;
    if (ns < 0) return "?";
    if (ns < 999'950'000) return written("%.1fms", seconds * 1e3);
    if (ns < 59'950'000'000) return written("%.1fs", seconds);
    const auto whole = static_cast<long long>(ns / 1'000'000'000);
    if (whole < 3600) return written("%lldm%02llds", whole / 60, whole % 60);
    if (whole < 100 * 3600) return written("%lldh%02lldm", whole / 3600, whole / 60 % 60);
    return written("%lldd%02lldh", whole / 86'400, whole / 3600 % 24);
}

auto bytes_text(std::uint64_t bytes) -> std::string {
    if (bytes < 1024) return std::to_string(bytes);
    auto value = static_cast<double>(bytes);
    constexpr std::string_view units = "KMGTPE";
    std::size_t unit = 0;
    for (value /= 1024; value >= 1023.5 && unit + 1 < units.size(); ++unit) value /= 1024;
    return written(value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

auto table_head(const table_style& style) -> std::string {
    auto out = padded("TIME", time_width) + "  " + padded("ACTION", action_width) + "  " +
               padded("STATUS", state_width) + "  " + padded("DURATION", duration_width) + "  " +
               padded("SENT/RECEIVED", bytes_width) + "  WHAT";
    if (style.width > 0) out = fitted(out, style.width);
    return (style.colours ? "\033[1m" + out + "\033[0m" : out) + "\n";
}

auto table_line(const row& of, const table_style& style) -> std::string {
    auto state = std::string{state_word(of)};
    if (!of.detail.empty()) state += ", " + of.detail;
    const auto lead = padded(utc_text(of.began_ns), time_width) + "  " +
                      padded(std::string{to_string(of.action)}, action_width) + "  ";
    const auto mark = padded(fitted(safe_text(state), state_width), state_width);
    const auto duration = of.duration_ns ? duration_text(*of.duration_ns) : std::string{"-"};
    const auto rest = "  " + padded(fitted(duration, duration_width), duration_width) + "  " +
                      padded(bytes_of(of), bytes_width) + "  ";
    auto what = safe_text(of.what);
    auto error = of.error.empty() ? std::string{} : "    " + safe_text(of.error);
    if (style.width > 0) {
        what = fitted(what, std::max(style.width, fixed_width + least_width) - fixed_width);
        error = fitted(error, style.width);
        // Too narrow for the columns: rather cut than broken.
        if (style.width < fixed_width + least_width) {
            auto line = fitted(lead + mark + rest + what, style.width) + "\n";
            return error.empty() ? line : line + error + "\n";
        }
    }
    auto line = lead;
    line += style.colours ? std::string{colour_of(of)} + mark + "\033[0m" : mark;
    line += rest + what;
    while (line.ends_with(' ')) line.pop_back();
    line += "\n";
    return error.empty() ? line : line + error + "\n";
}

} // namespace glove::audit
