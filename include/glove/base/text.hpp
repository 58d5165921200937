// Text that comes from outside, made fit for a terminal: whatever it holds, it draws nothing but
// itself. No control character (C0, DEL, C1), no change of direction, nothing without width, no
// byte that is no character reaches the screen as it is.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace glove {

namespace detail {
// As it is, or as \xNN: control bytes, and those from `limit` on.
inline void put_printable(std::string& out, char c, unsigned limit) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f && byte < limit) {
        out += c;
        return;
    }
    out += "\\x";
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
}
} // namespace detail

namespace text_detail {

struct range {
    char32_t first, last;
};
// They draw nothing, or elsewhere.
inline constexpr range unseen[] = {
    {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x200b, 0x200f}, {0x2028, 0x202e},
    {0x2060, 0x206f}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

template<std::size_t N> [[nodiscard]] constexpr auto is_in(const range (&ranges)[N], char32_t c)
    -> bool {
    return std::ranges::any_of(ranges, [&](const range& r) { return c >= r.first && c <= r.last; });
}

struct character {
    char32_t code;
    std::string_view bytes;
};
// The next one. A byte that begins none stands for itself, as a control character.
[[nodiscard]] inline auto take(std::string_view& text) -> character {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t size = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
    char32_t code = size < 2 ? first : first & (0x7fU >> size);
    bool whole = size > 0 && text.size() >= size;
    for (std::size_t i = 1; whole && i < size; ++i) {
        const auto next = static_cast<unsigned char>(text[i]);
        whole = (next & 0xc0U) == 0x80;
        code = code << 6U | (next & 0x3fU);
    }
    const character out{whole ? code : char32_t{0x80}, text.substr(0, whole ? size : 1)};
    text.remove_prefix(out.bytes.size());
    return out;
}

inline void put_hex(std::string& out, char32_t number, std::size_t least) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string reversed;
    for (; number != 0 || reversed.size() < least; number >>= 4U) reversed += digits[number & 15U];
    out.append(reversed.rbegin(), reversed.rend());
}

inline void put_json(std::string& out, char32_t unit) {
    out += "\\u";
    put_hex(out, unit, 4);
}

} // namespace text_detail

// Control bytes become \xNN and characters that are not seen \u{N}, so that a file's name or a
// server's words cannot draw on the operator's screen or forge a line.
[[nodiscard]] inline auto printable(std::string_view text) -> std::string {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto next = text_detail::take(text);
        const bool is_unseen =
            next.code < 0x20 || text_detail::is_in(text_detail::unseen, next.code);
        if (!is_unseen) {
            out += next.bytes;
        } else if (next.bytes.size() == 1) {
            detail::put_printable(out, next.bytes.front(), 0);
        } else {
            out += "\\u{";
            text_detail::put_hex(out, next.code, 1);
            out += '}';
        }
    }
    return out;
}

// JSON for a terminal: the same characters of its strings as \uNNNN, so that it stays what it was.
// Nothing but a string of JSON can hold them.
[[nodiscard]] inline auto printable_json(std::string_view text) -> std::string {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto next = text_detail::take(text);
        if (!text_detail::is_in(text_detail::unseen, next.code)) {
            out += next.bytes;
        } else if (next.code < 0x10000) {
            text_detail::put_json(out, next.code);
        } else {
            const char32_t rest = next.code - 0x10000;
            text_detail::put_json(out, 0xd800 + (rest >> 10U));
            text_detail::put_json(out, 0xdc00 + (rest & 0x3ffU));
        }
    }
    return out;
}

// Text in quotes for a message, in ASCII whatever it holds, and cut where it gets long.
[[nodiscard]] inline auto in_quotes(std::string_view text) -> std::string {
    constexpr std::size_t longest = 256;
    std::string out{"'"};
    for (const char c : text.substr(0, longest)) detail::put_printable(out, c, 0x7f);
    return out += text.size() > longest ? "...'" : "'";
}

} // namespace glove
