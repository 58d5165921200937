// The letters and digits of ASCII, whatever the locale says.
#pragma once

namespace glove {

[[nodiscard]] constexpr auto is_lower(char c) noexcept -> bool { return c >= 'a' && c <= 'z'; }
[[nodiscard]] constexpr auto is_upper(char c) noexcept -> bool { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr auto is_digit(char c) noexcept -> bool { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr auto to_lower(char c) noexcept -> char {
    return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
// The value of a hexadecimal digit, -1 for anything else.
[[nodiscard]] constexpr auto hex_value(char c) noexcept -> int {
    if (is_digit(c)) return c - '0';
    const char low = to_lower(c);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

} // namespace glove
