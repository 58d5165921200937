// The grammar of JSON numbers, and which of them are 64-bit integers. The text is never converted.
#pragma once
#include <cstddef>
#include <glove/base/ascii.hpp>
#include <string_view>

namespace glove::wire::json {

struct number_text {
    std::size_t size = 0;      // bytes of the number that `text` begins with; 0: it is none
    bool is_integer = false;   // of 64 bits; "-0" is none
    bool exponent_fits = true; // else readers overflow
};

namespace detail {

[[nodiscard]] inline auto digits_at(std::string_view text, std::size_t at) noexcept
    -> std::string_view {
    auto end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    return text.substr(at, end - at);
}

[[nodiscard]] inline auto fits_64_bits(std::string_view digits, bool negative) noexcept -> bool {
    constexpr std::string_view most = "18446744073709551615", least = "9223372036854775808";
    const auto bound = negative ? least : most;
    if (digits == "0") return !negative;
    return digits.size() < bound.size() || (digits.size() == bound.size() && digits <= bound);
}

[[nodiscard]] inline auto exponent_fits(std::string_view digits) noexcept -> bool {
    constexpr std::size_t longest = 9;
    while (digits.size() > longest && digits.front() == '0') digits.remove_prefix(1);
    return digits.size() <= longest;
}

} // namespace detail

[[nodiscard]] inline auto scan_number(std::string_view text) noexcept -> number_text {
    const auto has = [&](std::size_t at, char c) { return at < text.size() && text[at] == c; };
    const bool negative = has(0, '-');
    std::size_t at = negative ? 1 : 0;
    auto whole = detail::digits_at(text, at);
    if (whole.starts_with('0')) whole = whole.substr(0, 1);
    if (whole.empty()) return {};
    at += whole.size();
    number_text out;
    out.is_integer = true;
    if (has(at, '.')) {
        const auto part = detail::digits_at(text, at + 1);
        if (part.empty()) return {};
        at += 1 + part.size();
        out.is_integer = false;
    }
    if (has(at, 'e') || has(at, 'E')) {
        ++at;
        if (has(at, '+') || has(at, '-')) ++at;
        const auto part = detail::digits_at(text, at);
        if (part.empty()) return {};
        at += part.size();
        out.is_integer = false;
        out.exponent_fits = detail::exponent_fits(part);
    }
    out.size = at;
    out.is_integer = out.is_integer && detail::fits_64_bits(whole, negative);
    return out;
}

} // namespace glove::wire::json
