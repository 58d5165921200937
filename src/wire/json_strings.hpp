// The bytes of string literals: where plain runs end, whether the rest is well-formed, and what
// escapes stand for. Never reads past `end`; allocates nothing.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <glove/base/ascii.hpp>
#include <glove/wire/utf8.hpp>
#include <string_view>

namespace glove::wire::json::strings {

namespace detail {

inline constexpr std::uint64_t ones = 0x0101010101010101ULL;
inline constexpr std::uint64_t highs = 0x8080808080808080ULL;

[[nodiscard]] inline auto load(const char* at) noexcept -> std::uint64_t {
    std::uint64_t out = 0;
    std::memcpy(&out, at, sizeof out);
    return out;
}

// Fewer than eight bytes; the rest are spaces, which are plain.
[[nodiscard]] inline auto load_some(const char* at, std::size_t size) noexcept -> std::uint64_t {
    auto out = ones * ' ';
    if (size >= 4) {
        std::uint32_t low = 0, high = 0; // they overlap
        std::memcpy(&low, at, sizeof low);
        std::memcpy(&high, at + size - sizeof high, sizeof high);
        const auto text = low | std::uint64_t{high} << 8 * (size - sizeof high);
        return text | (out & ~std::uint64_t{0} << 8 * size);
    }
    for (std::size_t i = size; i-- > 0;) out = out << 8U | static_cast<unsigned char>(at[i]);
    return out;
}

// The high bit of each byte that ends a plain run is set, and of none before the first such byte:
// a borrow only runs towards later bytes.
[[nodiscard]] inline auto special(std::uint64_t word) noexcept -> std::uint64_t {
    const auto quote = word ^ (ones * '"');
    const auto backslash = word ^ (ones * '\\');
    return ((quote - ones) | (backslash - ones) | (word - ones * 0x20) | word) & highs;
}

// Sixteen bytes; each compiler has an instruction for each of these operations.
using bytes = signed char __attribute__((vector_size(16)));

[[nodiscard]] inline auto special_bytes(const char* at) noexcept -> bytes {
    bytes part{};
    std::memcpy(&part, at, sizeof part);
    // As signed ones, control characters and what is beyond ASCII are all below the space.
    return (part < ' ') | (part == '"') | (part == '\\');
}

// Whether none of 64 bytes is special.
[[nodiscard]] inline auto is_plain_block(const char* at) noexcept -> bool {
    const auto found = special_bytes(at) | special_bytes(at + 16) | special_bytes(at + 32) |
                       special_bytes(at + 48);
    const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(found);
    return (halves[0] | halves[1]) == 0;
}

} // namespace detail

[[nodiscard]] inline auto is_plain(char c) noexcept -> bool {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}
[[nodiscard]] inline auto is_ascii(char c) noexcept -> bool {
    return static_cast<unsigned char>(c) < 0x80;
}

// The first byte that is a quote, a backslash, a control character or not ASCII.
[[nodiscard]] inline auto plain_end(const char* at, const char* end) noexcept -> const char* {
    using namespace detail;
    static_assert(std::endian::native == std::endian::little);
    const auto first = [](std::uint64_t found) {
        return static_cast<unsigned>(std::countr_zero(found)) >> 3U;
    };
    // Most runs are short; the long ones are few, and many bytes.
    for (int i = 0; i < 2 && end - at >= 8; ++i, at += 8)
        if (const auto found = special(load(at)); found != 0) return at + first(found);
    // It may lie outside of every cache, and CPUs look ahead no further than a page.
    constexpr int ahead = 2048;
    for (; end - at >= 64 && is_plain_block(at); at += 64) __builtin_prefetch(at + ahead);
    for (; end - at >= 8; at += 8)
        if (const auto found = special(load(at)); found != 0) return at + first(found);
    const auto left = static_cast<std::size_t>(end - at);
    const auto found = special(load_some(at, left));
    return found == 0 ? end : at + first(found);
}

// Eight of them: what indents is a long run, or none.
[[nodiscard]] inline auto begins_with_spaces(const char* at, const char* end) noexcept -> bool {
    return end - at >= 8 && detail::load(at) == detail::ones * ' ';
}

// The end of the well-formed characters beyond ASCII that stand at `at`. What stands there is
// malformed when it is beyond ASCII, too. `separators` is set when U+2028 or U+2029 is one of them.
[[nodiscard]] inline auto beyond_ascii_end(const char* at, const char* end,
                                           bool& separators) noexcept -> const char* {
    const auto byte = [&](int i) -> unsigned { return static_cast<unsigned char>(at[i]); };
    while (at != end && byte(0) >= 0x80) {
        // The ranges with a narrower second byte, and the last bytes, are left to `next_utf8`.
        if (end - at >= 4) {
            const auto lead = byte(0);
            std::uint32_t word = 0;
            std::memcpy(&word, at, sizeof word);
            const auto follows = word & 0xc0c0c000U;
            if (lead >= 0xe1 && lead < 0xf0 && lead != 0xed && (follows & 0xffff00U) == 0x808000U) {
                separators = separators || (word & 0xfeffffU) == 0xa880e2U;
                at += 3;
                continue;
            }
            if (lead >= 0xc2 && lead < 0xe0 && (follows & 0xff00U) == 0x8000U) {
                at += 2;
                continue;
            }
            if (lead == 0xf0 && byte(1) >= 0x90 && follows == 0x80808000U) {
                at += 4;
                continue;
            }
        }
        const auto left = static_cast<std::size_t>(end - at);
        const auto step = next_utf8({at, left < 4 ? left : 4});
        if (!step.well_formed) break;
        separators = separators || (step.size == 3 && byte(0) == 0xe2 && byte(1) == 0x80 &&
                                    (byte(2) & 0xfeU) == 0xa8);
        at += step.size;
    }
    return at;
}

namespace detail {
inline constexpr auto hex_digits = [] {
    std::array<signed char, 256> out{};
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<signed char>(hex_value(static_cast<char>(i)));
    return out;
}();
// By the letter after a backslash; NUL for those that mean nothing.
inline constexpr auto meant_by = [] {
    constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    std::array<char, 256> out{};
    for (std::size_t i = 0; i < letters.size(); ++i)
        out[static_cast<unsigned char>(letters[i])] = meant[i];
    return out;
}();
} // namespace detail

// Four hexadecimal digits; negative when they are not.
[[nodiscard]] inline auto hex4(const char* at) noexcept -> int {
    const auto digit = [&](int i) -> int {
        return detail::hex_digits[static_cast<unsigned char>(at[i])];
    };
    return digit(0) * 4096 | digit(1) * 256 | digit(2) * 16 | digit(3);
}

// What a backslash begins.
struct escape {
    unsigned literal = 0; // bytes of it; 0: it is none
    char32_t code = 0;

    [[nodiscard]] constexpr auto bytes() const noexcept -> unsigned {
        return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    }
};

[[nodiscard]] inline auto read_escape(const char* at, const char* end) noexcept -> escape {
    if (end - at < 2) return {};
    if (at[1] != 'u') {
        const auto meant = detail::meant_by[static_cast<unsigned char>(at[1])];
        return {meant == '\0' ? 0U : 2U, static_cast<unsigned char>(meant)};
    }
    if (end - at < 6) return {};
    const int first = hex4(at + 2);
    if (first < 0 || (first >= 0xdc00 && first <= 0xdfff)) return {};
    if (first < 0xd800 || first > 0xdfff) return {6, static_cast<char32_t>(first)};
    if (end - at < 12 || at[6] != '\\' || at[7] != 'u') return {};
    const int second = hex4(at + 8);
    if (second < 0xdc00 || second > 0xdfff) return {};
    return {12, 0x10000U + (static_cast<char32_t>(first - 0xd800) << 10U) +
                    static_cast<char32_t>(second - 0xdc00)};
}

namespace detail {
[[nodiscard]] inline auto put_utf8(char* out, const escape& what) noexcept -> char* {
    const auto c = what.code;
    const auto put = [&](char32_t bits) { *out++ = static_cast<char>(bits); };
    switch (what.bytes()) {
    case 1: put(c); break;
    case 2: put(0xc0U | c >> 6U), put(0x80U | (c & 0x3fU)); break;
    case 3: put(0xe0U | c >> 12U), put(0x80U | (c >> 6U & 0x3fU)), put(0x80U | (c & 0x3fU)); break;
    default:
        put(0xf0U | c >> 18U), put(0x80U | (c >> 12U & 0x3fU));
        put(0x80U | (c >> 6U & 0x3fU)), put(0x80U | (c & 0x3fU));
    }
    return out;
}
} // namespace detail

// A literal without its quotes, decoded to `out`, which has as many bytes as the literal. Returns
// where the text ends; it ends early where the literal is not well-formed.
[[nodiscard]] inline auto decode(std::string_view literal, char* out) noexcept -> char* {
    const char* at = literal.data();
    const char* const end = at + literal.size();
    while (at != end) {
        const auto* found =
            static_cast<const char*>(std::memchr(at, '\\', static_cast<std::size_t>(end - at)));
        const auto run = static_cast<std::size_t>((found == nullptr ? end : found) - at);
        std::memcpy(out, at, run);
        out += run;
        if (found == nullptr) break;
        const auto made = read_escape(found, end);
        if (made.literal == 0) break;
        at = found + made.literal;
        out = detail::put_utf8(out, made);
    }
    return out;
}

// What `unescape` met besides the text.
struct escapes {
    bool nul = false;
    bool unusual = false; // one that the writer does not write
};

namespace detail {
// `at` is at the backslash of one that is well-formed.
[[nodiscard]] inline auto is_unusual(const char* at, const escape& what) noexcept -> bool {
    if (what.literal == 2) return at[1] == '/';
    constexpr std::string_view have_letters = "\b\f\n\r\t";
    if (what.literal != 6 || what.code >= 0x20) return true;
    return have_letters.find(static_cast<char>(what.code)) != have_letters.npos ||
           (at[5] >= 'A' && at[5] <= 'F');
}
} // namespace detail

inline constexpr std::size_t unescape_room = 8;

// Decodes what stands between `at` and the quote that ends the literal, strictly; `out` has room
// for as many bytes as are left and `unescape_room` more. Leaves `at` at the quote and `out` behind
// the text. False: no quote ends it, or it is malformed.
[[nodiscard]] inline auto unescape(const char*& at, const char* end, char*& out,
                                   escapes& found) noexcept -> bool {
    using namespace detail;
    for (;;) {
        // Runs between escapes are short: eight bytes are copied, and what of them is plain counts.
        while (end - at >= 8) {
            const auto word = load(at);
            std::memcpy(out, &word, sizeof word);
            const auto stops = special(word);
            const auto plain =
                stops == 0 ? 8U : static_cast<unsigned>(std::countr_zero(stops)) >> 3U;
            at += plain;
            out += plain;
            if (stops != 0) break;
        }
        while (at != end && is_plain(*at)) *out++ = *at++;
        if (at == end) return false;
        if (*at == '"') return true;
        if (*at == '\\') {
            const auto made = read_escape(at, end);
            if (made.literal == 0) return false;
            found.nul = found.nul || made.code == 0;
            found.unusual = found.unusual || is_unusual(at, made);
            out = put_utf8(out, made);
            at += made.literal;
            continue;
        }
        bool separators = false; // stay as they are
        const auto* const stop = beyond_ascii_end(at, end, separators);
        if (stop == at) return false; // malformed, or a control character
        std::memcpy(out, at, static_cast<std::size_t>(stop - at));
        out += stop - at;
        at = stop;
    }
}

} // namespace glove::wire::json::strings
