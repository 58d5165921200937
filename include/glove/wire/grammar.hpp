// The alphabets of identifiers, digests, labels and paths on the wire and in operator files.
//
// A grammar judges the form of a text and a rule adds the bounds of its length, so an empty text
// conforms to most grammars. None but `utf8` lets a NUL through: it would cut a path or an argument
// short in the kernel.
#pragma once
#include <algorithm>
#include <cstdint>
#include <glove/base/ascii.hpp>
#include <glove/wire/utf8.hpp>
#include <string_view>

namespace glove::wire {

enum class grammar : std::uint8_t {
    ident,        // A-Z a-z 0-9 - _ : .
    cli_ident,    // ident without ':', and '-' or '.' is not first
    alias,        // ident without ':'
    svc_alias,    // A-Z a-z 0-9 - _ . but neither "." nor ".."
    svc_runtime,  // first a-z, then a-z 0-9 -
    skill_key,    // A-Z a-z 0-9 - _
    metric,       // first a-z, then a-z 0-9 _ - .
    hex64,        // 64 of 0-9 a-f
    sha256_hex64, // "sha256:" and hex64
    label,        // no control character, no '/', no '\'
    token,        // no control character
    printable,    // ' ' to '~'
    path,         // absolute, in lexical normal form, not "/"
    no_nul,       // UTF-8 without NUL
    utf8,         // any text
};

[[nodiscard]] constexpr auto to_string(grammar of) noexcept -> std::string_view {
    switch (of) {
    case grammar::ident: return "ident";
    case grammar::cli_ident: return "cli_ident";
    case grammar::alias: return "alias";
    case grammar::svc_alias: return "svc_alias";
    case grammar::svc_runtime: return "svc_runtime";
    case grammar::skill_key: return "skill_key";
    case grammar::metric: return "metric";
    case grammar::hex64: return "hex64";
    case grammar::sha256_hex64: return "sha256_hex64";
    case grammar::label: return "label";
    case grammar::token: return "token";
    case grammar::printable: return "printable";
    case grammar::path: return "path";
    case grammar::no_nul: return "no_nul";
    case grammar::utf8: return "utf8";
    }
    return "utf8";
}

namespace detail {

constexpr auto is_word(char c) noexcept -> bool {
    return is_lower(c) || is_digit(c) || is_upper(c) || c == '-' || c == '_';
}
constexpr auto is_control(char c) noexcept -> bool {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}
constexpr auto is_hex64(std::string_view text) noexcept -> bool {
    if (text.size() != 64) return false;
    unsigned others = 0; // no branch for each: nearly all of them are right
    for (std::size_t i = 0; i < 64; ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        const bool digit = static_cast<unsigned char>(c - '0') < 10;
        const bool letter = static_cast<unsigned char>(c - 'a') < 6;
        others |= static_cast<unsigned>(!(digit | letter));
    }
    return others == 0;
}
// Each component is one or more bytes and neither "." nor "..".
constexpr auto is_path(std::string_view text) noexcept -> bool {
    if (text.empty()) return false;
    while (!text.empty()) {
        if (text.front() != '/') return false;
        text.remove_prefix(1);
        const auto part = text.substr(0, std::min(text.find('/'), text.size()));
        if (part.empty() || part == "." || part == ".." || part.find('\0') != part.npos)
            return false;
        text.remove_prefix(part.size());
    }
    return true;
}

} // namespace detail

[[nodiscard]] constexpr auto conforms(grammar of, std::string_view text) noexcept -> bool {
    using namespace detail;
    const auto every = [&](auto legal) { return std::all_of(text.begin(), text.end(), legal); };
    const auto first = [&](auto legal) { return text.empty() || legal(text.front()); };
    const auto no_control = [&] {
        return is_utf8(text) && std::none_of(text.begin(), text.end(), is_control);
    };
    const auto alias = [](char c) { return is_word(c) || c == '.'; };
    switch (of) {
    case grammar::ident: return every([&](char c) { return alias(c) || c == ':'; });
    case grammar::alias: return every(alias);
    case grammar::cli_ident:
        return every(alias) && first([](char c) { return c != '-' && c != '.'; });
    case grammar::svc_alias: return every(alias) && text != "." && text != "..";
    case grammar::svc_runtime:
        return first(is_lower) &&
               every([](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
    case grammar::skill_key: return every(is_word);
    case grammar::metric:
        return first(is_lower) && every([](char c) {
                   return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
               });
    case grammar::hex64: return is_hex64(text);
    case grammar::sha256_hex64: return text.starts_with("sha256:") && is_hex64(text.substr(7));
    case grammar::label: return no_control() && text.find_first_of("/\\") == text.npos;
    case grammar::token: return no_control();
    case grammar::printable: return every([](char c) { return c >= ' ' && c <= '~'; });
    case grammar::path: return is_utf8(text) && is_path(text);
    case grammar::no_nul: return is_utf8(text) && text.find('\0') == text.npos;
    case grammar::utf8: return is_utf8(text);
    }
    return false;
}

} // namespace glove::wire
