// What must be looked at before a text is given to the TOML library, which calls itself for each
// part of a dotted key, and one more time to take it apart.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>

namespace glove {

inline constexpr std::ptrdiff_t most_toml_dots = 1024; // in a line

// The first line with more dots than that; 0 when there is none. Whatever the dots are for, quotes
// included: who reads less than the library could be deceived.
[[nodiscard]] constexpr auto line_of_many_dots(std::string_view text) noexcept -> std::size_t {
    for (std::size_t line = 1; !text.empty(); ++line) {
        const auto one = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(one.size() + 1, text.size()));
        if (std::count(one.begin(), one.end(), '.') > most_toml_dots) return line;
    }
    return 0;
}

} // namespace glove
