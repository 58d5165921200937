// By code point; whatever is not in the table of what cannot be seen stands as it was.
#include "kernel/visible_text.hpp"
#include <algorithm>
#include <glove/wire/utf8.hpp>
#include <set>

namespace glove::kernel {

namespace {

struct range {
    char32_t first, last;
};
// Line feed (0x0a) and tab (0x09) stay.
constexpr range unseen[] = {
    {0x00, 0x08},     {0x0b, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},      {0x34f, 0x34f},
    {0x61c, 0x61c},   {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},  {0x200b, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},  {0xfeff, 0xfeff},
    {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

[[nodiscard]] auto is_unseen(char32_t code) -> bool {
    return std::ranges::any_of(unseen,
                               [&](const range& r) { return code >= r.first && code <= r.last; });
}

[[nodiscard]] auto code_of(std::string_view bytes) -> char32_t {
    const auto first = static_cast<unsigned char>(bytes.front());
    if (bytes.size() == 1) return first;
    char32_t code = first & (0x7fU >> bytes.size());
    for (const char c : bytes.substr(1))
        code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
    return code;
}

// How long the order to a terminal is that `text` begins with, behind its escape character.
[[nodiscard]] auto order_size(std::string_view text) -> std::size_t {
    if (text.empty()) return 0;
    if (text.front() == '[') {
        const auto end = std::ranges::find_if(
            text.substr(1), [](char c) { return static_cast<unsigned char>(c) >= 0x40; });
        return std::min(text.size(), static_cast<std::size_t>(end - text.begin()) + 1);
    }
    if (text.front() == ']' || text.front() == 'P' || text.front() == 'X' || text.front() == '^' ||
        text.front() == '_') {
        // A text up to BEL or to another escape character, which is looked at by itself; without
        // an end nothing but the introduction is dropped, so that no text vanishes.
        const auto end = text.find_first_of("\a\x1b");
        return end == text.npos ? 1 : end;
    }
    return static_cast<unsigned char>(text.front()) < 0x80 && text.front() >= 0x20 ? 1 : 0;
}

} // namespace

auto visible_text(std::string_view text) -> std::string {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto step = wire::next_utf8(text);
        const auto bytes = text.substr(0, step.size);
        text.remove_prefix(step.size);
        if (bytes == "\x1b") text.remove_prefix(order_size(text));
        else if (step.well_formed && !is_unseen(code_of(bytes))) out += bytes;
    }
    return out;
}

auto visible_tree(const wire::json::value& tree) -> wire::json::value {
    if (const auto* text = tree.as_string()) return visible_text(*text);
    if (const auto* items = tree.as_array()) {
        wire::json::array out;
        out.reserve(items->size());
        for (const auto& item : *items) out.push_back(visible_tree(item));
        return out;
    }
    if (const auto* members = tree.as_object()) {
        wire::json::object out;
        out.reserve(members->size()); // `taken` looks into it
        std::set<std::string_view> taken;
        for (const auto& [name, data] : *members) {
            auto seen = visible_text(name);
            // Two names may have become one, and the second one would win or lose by chance.
            if (taken.contains(seen)) continue;
            out.push_back({std::move(seen), visible_tree(data)});
            taken.insert(out.back().name);
        }
        return out;
    }
    return tree;
}

auto has_wide_object(const wire::json::value& tree, std::size_t most) -> bool {
    const auto is_wide = [&](const wire::json::value& each) { return has_wide_object(each, most); };
    if (const auto* items = tree.as_array()) return std::ranges::any_of(*items, is_wide);
    const auto* members = tree.as_object();
    return members != nullptr &&
           (members->size() > most ||
            std::ranges::any_of(*members, is_wide, &wire::json::member::data));
}

} // namespace glove::kernel
