// The two ways from a text to a value by a field table, compared: what is taken from the text, and
// what is decoded from a tree of it.
#pragma once
#include <glove/wire/fields.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove::test {

[[nodiscard]] inline auto same(const error& a, const error& b) -> bool {
    return a.code == b.code && a.step == b.step && a.os == b.os && a.detail == b.detail &&
           a.remedy == b.remedy;
}

// What the two ways disagree in; empty when they do not.
template<class T, std::size_t N>
[[nodiscard]] auto disagreement(std::string_view text, const wire::fields<T, N>& rows,
                                const wire::json::limits& bounds = {}) -> std::string {
    const auto from_tree = [&]() -> result<T> {
        GLOVE_TRY(const auto tree, wire::json::read(text, bounds));
        return wire::decode(tree, rows);
    }();
    const auto taken = wire::take_text(text, rows, bounds);
    const auto decoded = wire::decode_text(text, rows, bounds);
    const auto compared = wire::decode_and_compare(text, rows, bounds);
    if (!from_tree) {
        if (taken) return "it was taken: " + from_tree.error().detail;
        if (decoded || !same(decoded.error(), from_tree.error())) return "another error";
        if (compared || !same(compared.error(), from_tree.error())) return "another error of both";
        return {};
    }
    if (!decoded || *decoded != *from_tree) return "it is decoded otherwise";
    const auto encoded = wire::encode(*from_tree, rows);
    if (!encoded) return "it is not encoded: " + encoded.error().detail;
    if (!compared || compared->data != *from_tree) return "it is compared otherwise";
    if (compared->is_as_encoded != (*encoded == text)) return "it is compared wrongly";
    if (taken && taken->data != *from_tree) return "it is taken otherwise";
    if (taken && taken->is_as_encoded != (*encoded == text)) return "its form is taken wrongly";
    if (!taken && *encoded == text) return "it is not taken, and in the form that is written";
    return {};
}

// The text with one byte changed, left out or put in, all over it: at every `stride`th place, with
// another byte each time.
template<class Check> void damaged(std::string_view text, std::size_t stride, Check check) {
    constexpr std::string_view bytes{"\"\\{}[],: 0-9eu\0\x1f\x80\xc3/z\n", 22};
    std::size_t which = 0;
    for (std::size_t at = 0; at < text.size(); at += stride, ++which) {
        const char c = bytes[which % bytes.size()];
        std::string other{text};
        switch (which / bytes.size() % 4) {
        case 0: other[at] = c; break;
        case 1: other.insert(at, 1, c); break;
        case 2: other.erase(at, 1); break;
        default: other.resize(at); break;
        }
        check(other);
    }
}

} // namespace glove::test
