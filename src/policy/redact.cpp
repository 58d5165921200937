// Recurses as deep as the reader allows.
#include "policy/redact.hpp"
#include <glove/wire/json_writer.hpp>
#include <re2/re2.h>
#include <set>

namespace glove::policy {

namespace {

using wire::json::value;

[[nodiscard]] auto clean(std::span<const pattern> patterns, std::string& text) -> bool {
    bool changed = false;
    for (const auto& each : patterns)
        changed |= re2::RE2::GlobalReplace(&text, *each, std::string{redacted}) > 0;
    return changed;
}

[[nodiscard]] auto clean(std::span<const pattern> patterns, value& of) -> bool;

[[nodiscard]] auto clean_members(std::span<const pattern> patterns, value& of) -> bool {
    auto members = *of.as_object();
    std::set<std::string> taken;
    for (const auto& each : members) taken.insert(each.name);
    std::size_t further = 1;
    bool changed = false;
    for (auto& [name, data] : members) {
        changed |= clean(patterns, data);
        auto cleaned = name;
        if (!clean(patterns, cleaned)) continue;
        changed = true;
        // Two names that were different stay different.
        name = cleaned;
        while (!taken.insert(name).second) name = cleaned + " " + std::to_string(++further);
    }
    if (changed) of = value{std::move(members)};
    return changed;
}

auto clean(std::span<const pattern> patterns, value& of) -> bool {
    if (const auto* const text = of.as_string()) {
        auto copy = *text;
        if (!clean(patterns, copy)) return false;
        of = value{std::move(copy)};
        return true;
    }
    if (const auto* const items = of.as_array()) {
        auto copy = *items;
        bool changed = false;
        for (auto& item : copy) changed |= clean(patterns, item);
        if (changed) of = value{std::move(copy)};
        return changed;
    }
    return of.as_object() != nullptr && clean_members(patterns, of);
}

} // namespace

auto redact(std::span<const pattern> patterns, std::string& json_text) -> bool {
    if (patterns.empty()) return false;
    const auto size = json_text.size();
    auto tree = wire::json::read(json_text, {.bytes = size,
                                             .depth = wire::json::max_depth,
                                             .members = size,
                                             .elements = size,
                                             .values = size,
                                             .string_bytes = size,
                                             .number_bytes = size,
                                             .form = wire::json::numbers::any});
    if (!tree) {
        json_text = R"({"content":[{"type":"text","text":"[redacted]"}],"isError":true})";
        return true;
    }
    if (!clean(patterns, *tree)) return false;
    json_text = wire::json::to_text(*tree);
    return true;
}

} // namespace glove::policy
