// What a host name is made of: the one judge for rules, proxies, the name service and URLs.
//
// No allocation, so that the name service can ask between clone and exec.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <glove/base/ascii.hpp>
#include <string_view>

namespace glove {

enum class name_flaw : std::uint8_t {
    none,
    empty,
    too_long,
    beyond_ascii,
    character,  // other than a letter, a digit, '-', '_' or '.'
    label_size, // not 1 to 63
    dash,       // at the start or end of a label
    number,     // the last label is one: old resolvers take such a text for an IPv4 address
};

inline constexpr std::size_t longest_label = 63;
inline constexpr std::size_t longest_host_name = 253; // RFC 1035, without the root's dot

[[nodiscard]] constexpr auto is_name_character(char c) noexcept -> bool {
    return is_lower(c) || is_upper(c) || is_digit(c) || c == '-' || c == '_';
}

[[nodiscard]] constexpr auto is_number_label(std::string_view label) noexcept -> bool {
    if (std::all_of(label.begin(), label.end(), is_digit)) return true;
    return label.size() >= 2 && label[0] == '0' && to_lower(label[1]) == 'x' &&
           std::all_of(label.begin() + 2, label.end(), [](char c) { return hex_value(c) >= 0; });
}

// Whether `name` has more labels in front of `domain`; both in lower case.
[[nodiscard]] constexpr auto is_below(std::string_view name, std::string_view domain) noexcept
    -> bool {
    return name.size() > domain.size() && name.ends_with(domain) &&
           name[name.size() - domain.size() - 1] == '.';
}

// `name` without the root's dot, in either case.
[[nodiscard]] constexpr auto flaw_of(std::string_view name) noexcept -> name_flaw {
    if (name.empty()) return name_flaw::empty;
    for (const char c : name) {
        if (static_cast<unsigned char>(c) >= 0x80) return name_flaw::beyond_ascii;
        if (!is_name_character(c) && c != '.') return name_flaw::character;
    }
    if (name.size() > longest_host_name) return name_flaw::too_long;
    for (;;) {
        const auto dot = name.find('.');
        const auto label = name.substr(0, dot);
        if (label.empty() || label.size() > longest_label) return name_flaw::label_size;
        if (label.front() == '-' || label.back() == '-') return name_flaw::dash;
        if (dot == std::string_view::npos)
            return is_number_label(label) ? name_flaw::number : name_flaw::none;
        name.remove_prefix(dot + 1);
    }
}

} // namespace glove
