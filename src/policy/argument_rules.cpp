// Recurses as deep as the rules do, which is bounded.
#include "policy/argument_rules.hpp"
#include <glove/base/ascii.hpp>
#include <set>

namespace glove::policy {

namespace {

constexpr std::size_t most_parts = 16;
constexpr std::size_t longest_pointer = 1024;

[[nodiscard]] auto escaped(std::string_view part) -> std::string {
    std::string out;
    for (const char c : part) {
        if (c == '~') out += "~0";
        else if (c == '/') out += "~1";
        else out += c;
    }
    return out;
}

[[nodiscard]] auto unescaped(std::string_view part) -> std::optional<std::string> {
    std::string out;
    for (std::size_t i = 0; i < part.size(); ++i) {
        if (part[i] != '~') {
            out += part[i];
            continue;
        }
        if (++i == part.size() || (part[i] != '0' && part[i] != '1')) return std::nullopt;
        out += part[i] == '0' ? '~' : '/';
    }
    return out;
}

// As servers read names that do not tell upper case from lower case, Unicode's two letters that
// have an ASCII one in lower case among them.
[[nodiscard]] auto folded(std::string_view name) -> std::string {
    constexpr std::string_view long_s = "\u017f";
    constexpr std::string_view kelvin = "\u212a";
    std::string out;
    while (!name.empty()) {
        const bool is_s = name.starts_with(long_s);
        const bool is_k = name.starts_with(kelvin);
        out += is_s ? 's' : is_k ? 'k' : to_lower(name.front());
        name.remove_prefix(is_s ? long_s.size() : is_k ? kelvin.size() : 1);
    }
    return out;
}

} // namespace

auto parse_pointer(std::string_view text) -> std::optional<pointer> {
    if (!text.starts_with('/') || text.size() > longest_pointer) return std::nullopt;
    pointer out;
    while (!text.empty()) {
        text.remove_prefix(1);
        const auto part = text.substr(0, text.find('/'));
        auto name = unescaped(part);
        if (!name || out.size() == most_parts) return std::nullopt;
        out.push_back(*std::move(name));
        text.remove_prefix(part.size());
    }
    if (out.front() == "*") return std::nullopt; // the arguments are an object
    return out;
}

auto to_string(const pointer& at) -> std::string {
    std::string out;
    for (const auto& part : at) (out += '/') += escaped(part);
    return out;
}

// A chain on the stack, which becomes text only when something is wrong.
struct argument_rules::place {
    const place* parent = nullptr;
    std::string_view name;
    std::optional<std::size_t> index;

    [[nodiscard]] auto text() const -> std::string {
        if (parent == nullptr) return {};
        return parent->text() + "/" +
               (index ? std::to_string(*index) : escaped(wire::json::readable_name(name)));
    }
    [[nodiscard]] auto tell(std::string_view what) const -> std::string {
        const auto subject = parent == nullptr ? "arguments " : "argument " + text() + " ";
        return subject + std::string{what};
    }
};

auto argument_rules::reach(const pointer& at, bool needed) -> node& {
    any_rule_ = true;
    auto* here = &top_;
    for (const auto& part : at) {
        if (part == "*") {
            if (!here->items) here->items = std::make_unique<node>();
            here = here->items.get();
        } else here = &here->members[part];
        here->needed |= needed;
    }
    return *here;
}

void argument_rules::add(const argument_rule& rule) {
    auto& to = reach(rule.at, !rule.optional);
    to.matchers.insert(to.matchers.end(), rule.matchers.begin(), rule.matchers.end());
    to.open |= rule.any;
    closed_ = true;
}

void argument_rules::require(const pointer& at) { reach(at, true).open = true; }

void argument_rules::forbid(const pointer& at) { reach(at, false).forbidden = true; }

auto argument_rules::contradiction() const -> std::optional<std::string> {
    return contradiction_in(top_, {});
}

auto argument_rules::contradiction_in(const node& rules, const pointer& at)
    -> std::optional<std::string> {
    if (rules.items && !rules.members.empty())
        return "rules speak of " + to_string(at) + " as an array and as an object";
    if (rules.forbidden && rules.needed)
        return to_string(at) + " is forbidden, and another rule wants it to be there";
    const auto below = [&](const std::string& name, const node& next) {
        auto longer = at;
        longer.push_back(name);
        return contradiction_in(next, longer);
    };
    for (const auto& [name, next] : rules.members)
        if (auto found = below(name, next)) return found;
    return rules.items ? below("*", *rules.items) : std::nullopt;
}

auto argument_rules::complaint(const wire::json::value& arguments) const -> std::string {
    if (empty()) return {};
    return check(top_, arguments, {});
}

auto argument_rules::check(const node& rules, const wire::json::value& of, const place& at) const
    -> std::string {
    if (rules.forbidden) return at.tell("is not permitted");
    for (const auto& each : rules.matchers)
        if (const auto wrong = each->complaint(of); !wrong.empty()) return at.tell(wrong);
    if (!rules.members.empty()) return check_members(rules, of, at);
    if (rules.items) return check_items(rules, of, at);
    const auto* const items = of.as_array();
    const bool holds_more = of.as_object() != nullptr || (items != nullptr && !items->empty());
    return holds_more && is_closed() && !rules.open
               ? at.tell("holds values that the rules of this tool do not speak of")
               : std::string{};
}

auto argument_rules::check_members(const node& rules, const wire::json::value& of,
                                   const place& at) const -> std::string {
    const auto* const members = of.as_object();
    if (members == nullptr) return at.tell("is not an object");
    for (const auto& [name, next] : rules.members) {
        const place there{&at, name, {}};
        const auto* const found = of.find(name);
        if (found == nullptr) {
            if (next.needed) return there.tell("is missing");
            continue;
        }
        if (auto wrong = check(next, *found, there); !wrong.empty()) return wrong;
    }
    std::set<std::string> ruled;
    for (const auto& [name, next] : rules.members) ruled.insert(folded(name));
    const std::string* unknown = nullptr; // the first by name, whatever the order in the message
    for (const auto& each : *members)
        if (!rules.members.contains(each.name) &&
            (is_closed() || ruled.contains(folded(each.name))) &&
            (unknown == nullptr || each.name < *unknown))
            unknown = &each.name;
    if (unknown == nullptr) return {};
    return place{&at, *unknown, {}}.tell(is_closed()
                                             ? "is not one that the rules of this tool speak of"
                                             : "is written differently where rules speak of it");
}

auto argument_rules::check_items(const node& rules, const wire::json::value& of,
                                 const place& at) const -> std::string {
    const auto* const items = of.as_array();
    if (items == nullptr) return at.tell("is not an array");
    for (std::size_t i = 0; i < items->size(); ++i)
        if (auto wrong = check(*rules.items, (*items)[i], {&at, {}, i}); !wrong.empty())
            return wrong;
    return {};
}

} // namespace glove::policy
