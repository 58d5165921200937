// Text that comes from outside, made fit for a terminal.
#pragma once
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

// Control bytes become \xNN, so that a file's name cannot draw on the operator's screen or forge a
// line.
[[nodiscard]] inline auto printable(std::string_view text) -> std::string {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) detail::put_printable(out, c, 0x100);
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
