// A queue of keys that is a beginning of those wanted; what cannot be one leaves it at the front.
#include "cli/control_process/detach_key.hpp"
#include <algorithm>
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <optional>

namespace glove::cli {

namespace {

constexpr std::size_t most_keys = 8;
constexpr char escape = '\x1b';

// With ctrl held down: letters, and @ [ \ ] ^ _.
[[nodiscard]] auto control_of(char c) -> std::optional<char> {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c < '@' || c > '_') return std::nullopt;
    return static_cast<char>(c & 0x1f);
}

[[nodiscard]] auto key_named(std::string_view text) -> std::optional<char> {
    for (const std::string_view prefix : {"ctrl-", "^"})
        if (text.size() == prefix.size() + 1 && text.starts_with(prefix))
            return control_of(text.back());
    if (text.size() == 1 && text[0] > ' ' && text[0] < '\x7f') return text[0];
    return std::nullopt;
}

// "ESC [ CODE ; MODIFIERS u" of a key with ctrl and nothing else but locks; how long it is.
struct told_key {
    std::size_t size;
    char key;
};
[[nodiscard]] auto told_as_number(std::string_view typed) -> std::optional<told_key> {
    constexpr std::uint64_t control = 4, locks = 64 | 128, highest = 0x7f;
    if (!typed.starts_with("\x1b[")) return std::nullopt;
    const auto end = typed.substr(0, 16).find('u');
    if (end == typed.npos) return std::nullopt;
    const auto inside = typed.substr(2, end - 2);
    const auto cut = inside.find(';');
    if (cut == inside.npos) return std::nullopt;
    auto modifiers_text = inside.substr(cut + 1);
    if (modifiers_text.ends_with(":1")) modifiers_text.remove_suffix(2); // pressed
    const auto code = parse_decimal(inside.substr(0, cut), highest);
    const auto modifiers = parse_decimal(modifiers_text, 256);
    if (!code || !modifiers || *modifiers == 0 || ((*modifiers - 1) & ~locks) != control)
        return std::nullopt;
    const auto key = control_of(static_cast<char>(*code));
    if (!key) return std::nullopt;
    return told_key{end + 1, *key};
}

} // namespace

auto detach_key::named(std::string_view text) -> result<detach_key> {
    detach_key out;
    if (text == "none") return out;
    for (auto rest = text;;) {
        const auto cut = std::min(rest.find(','), rest.size());
        const auto key = key_named(rest.substr(0, cut));
        if (!key || out.keys_.size() == most_keys)
            return fail(errc::invalid_input, "usage",
                        "--detach-key " + printable(text) + ": not one to 8 keys",
                        "ctrl-], or ctrl-p,ctrl-q, or none");
        out.keys_ += *key;
        if (cut == rest.size()) return out;
        rest.remove_prefix(cut + 1);
    }
}

auto detach_key::next_token(std::string_view& typed) -> token {
    const auto told = typed.front() == escape ? told_as_number(typed) : std::nullopt;
    const auto size = told ? told->size : 1;
    token out{std::string{typed.substr(0, size)}, told ? told->key : typed.front()};
    typed.remove_prefix(size);
    return out;
}

auto detach_key::may_become() const -> bool {
    return held_.size() <= keys_.size() &&
           std::ranges::equal(held_, keys_.substr(0, held_.size()), {}, &token::key);
}

auto detach_key::take(std::string_view typed) -> taken {
    taken out;
    while (!typed.empty()) {
        held_.push_back(next_token(typed));
        for (; !may_become(); held_.pop_front()) out.passed += held_.front().text;
        if (keys_.empty() || held_.size() < keys_.size()) continue;
        held_.clear();
        out.complete = true;
        return out;
    }
    return out;
}

} // namespace glove::cli
