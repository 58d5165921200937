// What must be looked at before a text is given to the TOML library. It calls itself for each part
// of a dotted key, and one more time to take it apart; and where white space may stand, releases of
// it have no defined answer for some characters beyond ASCII, which TOML takes in quotes and
// comments only.
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

namespace detail {

// What stands at the front: a comment, a string with its quotes, or one other byte.
[[nodiscard]] constexpr auto toml_piece(std::string_view text) noexcept -> std::string_view {
    const char first = text.front();
    if (first == '#') return text.substr(0, text.find('\n'));
    if (first != '"' && first != '\'') return text.substr(0, 1);
    const bool lines = text.size() >= 3 && text[1] == first && text[2] == first;
    const std::size_t quotes = lines ? 3 : 1;
    for (auto at = quotes; at < text.size(); ++at) {
        if (text[at] == '\\' && first == '"') {
            ++at;
            continue;
        }
        if (!lines && text[at] == '\n') return text.substr(0, at);
        const auto end = text.substr(at, quotes);
        if (end.size() == quotes &&
            std::count(end.begin(), end.end(), first) == static_cast<std::ptrdiff_t>(quotes)) {
            at += quotes;
            // Up to two quotes may stand before the last three.
            for (int more = 0; lines && more < 2 && at < text.size() && text[at] == first; ++more)
                ++at;
            return text.substr(0, at);
        }
    }
    return text;
}

} // namespace detail

// The first line with a byte beyond ASCII where TOML takes none, or in a """ string, in which white
// space may stand after a backslash; 0 when there is none.
[[nodiscard]] constexpr auto line_of_stray_byte(std::string_view text) noexcept -> std::size_t {
    std::size_t line = 1;
    while (!text.empty()) {
        const auto piece = detail::toml_piece(text);
        const bool quoted = piece.front() == '#' || piece.front() == '\'' ||
                            (piece.front() == '"' && !piece.starts_with("\"\"\""));
        for (const char c : piece) {
            if (static_cast<unsigned char>(c) >= 0x80 && !quoted) return line;
            if (c == '\n') ++line;
        }
        text.remove_prefix(piece.size());
    }
    return 0;
}

} // namespace glove
