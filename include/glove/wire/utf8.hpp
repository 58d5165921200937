// Well-formed UTF-8, judged byte by byte: no over-long forms, no surrogates, nothing above
// U+10FFFF.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace glove::wire {

// What stands at the start of a text: `size` bytes that form one character, or, when not
// `well_formed`, the longest start of one. One replacement character stands for those bytes.
struct utf8_step {
    std::size_t size = 0;
    bool well_formed = false;
};

[[nodiscard]] constexpr auto next_utf8(std::string_view text) noexcept -> utf8_step {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (text.empty()) return {};
    const unsigned first = byte(0);
    if (first < 0x80) return {1, true};
    if (first < 0xc2 || first > 0xf4) return {1, false};
    const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    // Only the second byte has a narrower range; it excludes over-long forms and surrogates.
    unsigned low = 0x80;
    unsigned high = 0xbf;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
    for (std::size_t i = 1; i < size; ++i) {
        if (i == text.size() || byte(i) < low || byte(i) > high) return {i, false};
        low = 0x80;
        high = 0xbf;
    }
    return {size, true};
}

[[nodiscard]] constexpr auto is_utf8(std::string_view text) noexcept -> bool {
    while (!text.empty()) {
        if !consteval { // most of all text is ASCII
            std::uint64_t eight = 0;
            for (; text.size() >= sizeof eight; text.remove_prefix(sizeof eight)) {
                std::memcpy(&eight, text.data(), sizeof eight);
                if ((eight & 0x8080808080808080ULL) != 0) break;
            }
            if (text.empty()) return true;
        }
        const auto step = next_utf8(text);
        if (!step.well_formed) return false;
        text.remove_prefix(step.size);
    }
    return true;
}

} // namespace glove::wire
