// Recurses as deep as the reader allows.
#include "policy/redact.hpp"
#include <glove/wire/json_writer.hpp>
#include <re2/re2.h>
#include <set>

namespace glove::policy {

namespace {

using wire::json::value;

class cleaner {
public:
    cleaner(std::span<const pattern> patterns, std::size_t most_growth)
        : patterns_{patterns}, left_{most_growth} {}

    // Each says whether something was changed. After one that `is_over`, nothing more is done.
    [[nodiscard]] auto clean(value& of) -> bool {
        if (is_over_) return false;
        if (const auto* const text = of.as_string()) {
            auto copy = *text;
            if (!clean(copy)) return false;
            of = value{std::move(copy)};
            return true;
        }
        if (const auto* const items = of.as_array()) {
            auto copy = *items;
            bool changed = false;
            for (auto& item : copy) changed |= clean(item);
            if (changed) of = value{std::move(copy)};
            return changed;
        }
        return of.as_object() != nullptr && clean_members(of);
    }
    [[nodiscard]] auto is_over() const noexcept -> bool { return is_over_; }

private:
    [[nodiscard]] auto clean(std::string& text) -> bool {
        bool changed = false;
        for (const auto& each : patterns_) {
            auto without = text;
            const auto found = re2::RE2::GlobalReplace(&without, *each, "");
            if (found <= 0) continue;
            const auto size = without.size() + static_cast<std::size_t>(found) * redacted.size();
            const auto growth = size > text.size() ? size - text.size() : 0;
            if (growth > left_) {
                is_over_ = true;
                return changed;
            }
            left_ -= growth;
            changed |= re2::RE2::GlobalReplace(&text, *each, std::string{redacted}) > 0;
        }
        return changed;
    }

    [[nodiscard]] auto clean_members(value& of) -> bool {
        auto members = *of.as_object();
        std::set<std::string> taken;
        for (const auto& each : members) taken.insert(each.name);
        std::size_t further = 1;
        bool changed = false;
        for (auto& [name, data] : members) {
            changed |= clean(data);
            auto cleaned = name;
            if (is_over_ || !clean(cleaned)) continue;
            changed = true;
            // Two names that were different stay different.
            name = cleaned;
            while (!taken.insert(name).second) name = cleaned + " " + std::to_string(++further);
        }
        if (changed) of = value{std::move(members)};
        return changed;
    }

    std::span<const pattern> patterns_;
    std::size_t left_;
    bool is_over_ = false;
};

} // namespace

auto redact(std::span<const pattern> patterns, std::string& json_text, std::size_t most_growth)
    -> bool {
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
    cleaner over{patterns, most_growth};
    const bool changed = over.clean(*tree);
    if (over.is_over()) json_text.clear();
    else if (changed) json_text = wire::json::to_text(*tree);
    return changed || over.is_over();
}

} // namespace glove::policy
