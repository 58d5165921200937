// Text that comes from outside, made fit for a terminal.
#pragma once
#include <string>
#include <string_view>

namespace glove {

// Control bytes become \xNN, so that a file's name cannot draw on the operator's screen or forge a
// line.
[[nodiscard]] inline auto printable(std::string_view text) -> std::string {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte != 0x7f) {
            out += c;
            continue;
        }
        out += "\\x";
        out += digits[byte >> 4U];
        out += digits[byte & 15U];
    }
    return out;
}

} // namespace glove
