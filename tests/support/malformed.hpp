// Every way of breaking one JSON object and every bound of it, made from its field table, inside of
// the whole text that the product reads.
//
// Guarantees: a row that is added to a table is tried without anybody writing a case for it.
#pragma once
#include <algorithm>
#include <functional>
#include <glove/wire/fields.hpp>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace glove::test {

using wire::json::kind;
using wire::json::value;

// "path_grants/0": members by name and elements by number; empty for the root.
inline auto edited(const value& in, std::string_view path,
                   const std::function<void(wire::json::object&)>& change) -> value {
    if (path.empty()) {
        auto members = *in.as_object();
        change(members);
        return members;
    }
    const auto name = path.substr(0, path.find('/'));
    const auto rest = path.substr(std::min(name.size() + 1, path.size()));
    if (in.as_array() != nullptr) {
        auto elements = *in.as_array();
        auto& chosen = elements.at(std::stoul(std::string{name}));
        chosen = edited(chosen, rest, change);
        return elements;
    }
    auto members = *in.as_object();
    for (auto& m : members)
        if (m.name == name) m.data = edited(m.data, rest, change);
    return members;
}

inline auto with_member(const value& in, std::string_view path, std::string_view name,
                        const value& data) -> value {
    return edited(in, path, [&](auto& members) {
        std::erase_if(members, [&](const auto& m) { return m.name == name; });
        members.push_back({std::string{name}, data});
    });
}

inline auto place_text(std::string_view path) -> std::string {
    std::string out{"$"};
    while (!path.empty()) {
        const auto name = path.substr(0, path.find('/'));
        path = path.substr(std::min(name.size() + 1, path.size()));
        if (name.find_first_not_of("0123456789") == name.npos)
            out.append("[").append(name).append("]");
        else out.append(".").append(name);
    }
    return out;
}

struct attempt {
    std::string what; // for the message of a failed expectation
    std::string text;
    std::string step; // empty: no complaint about the form
};

namespace detail {

inline auto some_value_of(kind type) -> value {
    switch (type) {
    case kind::boolean: return true;
    case kind::integer: return 7;
    case kind::string: return "text";
    case kind::array: return wire::json::array{};
    case kind::object: return wire::json::object{};
    default: return {};
    }
}

inline void break_string(const wire::shape& form, auto add) {
    if (form.grammar == "choice") return add("another word", value{"none-of-them"}, "wire.choice");
    const auto min = static_cast<std::size_t>(form.min);
    add("one byte too long", std::string(form.max + 1, 'a'), "wire.length");
    if (min > 0) add("one byte too short", std::string(min - 1, 'a'), "wire.length");
    const std::size_t least = form.grammar == "hex64" ? 64 : form.grammar == "path" ? 2 : 1;
    add("another alphabet", std::string(std::max(min, least), '\0'), "wire.grammar");
    if (form.grammar == "hex64") {
        add("capitals", std::string(64, 'A'), "wire.grammar");
        add("a digest", std::string(64, '0'), "");
    } else if (form.grammar == "path") {
        add("dots", "/a/../b", "wire.grammar");
        add("the longest", "/" + std::string(form.max - 1, 'a'), "");
    } else if (form.grammar != "sha256_hex64") {
        add("the longest", std::string(form.max, 'a'), "");
        add("the shortest", std::string(min, 'a'), "");
    }
}

inline void break_integer(const wire::shape& form, auto add) {
    add("the largest", form.max, "");
    add("the smallest", form.min, "");
    add("one too small", form.min - 1, "wire.range");
    if (form.max < UINT64_MAX) add("one too large", form.max + 1, "wire.range");
    else add("one too large", *wire::json::make_number("18446744073709551616"), "json.number");
    add("a fraction", *wire::json::make_number("1.5"), "json.number");
    add("an exponent", *wire::json::make_number("1e3"), "json.number");
}

inline void break_array(const wire::shape& form, const value& good, auto add) {
    const auto& elements = *good.as_array();
    if (form.min > 0)
        add("too few elements",
            wire::json::array(elements.begin(), elements.begin() + (form.min - 1)), "wire.length");
    if (elements.empty()) return;
    add("one element too many", wire::json::array(form.max + 1, elements.front()), "wire.length");
    add("as many elements as may be", wire::json::array(form.max, elements.front()), "");
}

} // namespace detail

// `whole` is a good text's tree; `path` leads to the object that `rows` describes.
template<class T, std::size_t N>
auto ways_of_breaking(const wire::fields<T, N>& rows, const value& whole, std::string_view path)
    -> std::vector<attempt> {
    std::vector<attempt> out;
    const auto put = [&](std::string what, const value& tree, std::string step) {
        out.push_back({std::move(what), wire::json::to_text(tree), std::move(step)});
    };
    put("unknown", with_member(whole, path, "not-known", 1), "wire.unknown");
    for (const auto& row : rows) {
        const auto at = place_text(path) + "." + std::string{row.name};
        value good;
        (void)edited(whole, path, [&](auto& members) {
            for (const auto& m : members)
                if (m.name == row.name) good = m.data;
        });
        const auto add = [&](std::string_view what, const value& data, std::string step) {
            put(at + ": " + std::string{what}, with_member(whole, path, row.name, data),
                std::move(step));
        };
        put(at + ": missing",
            edited(whole, path,
                   [&](auto& members) {
                       std::erase_if(members, [&](const auto& m) { return m.name == row.name; });
                   }),
            row.presence == wire::need::required ? "wire.missing" : "");
        if (good.is_null()) {
            ADD_FAILURE() << at << " is not in the good object";
            continue;
        }
        put(at + ": twice",
            edited(whole, path,
                   [&](auto& members) { members.push_back({std::string{row.name}, good}); }),
            "json.repeated");
        for (const auto type :
             {kind::null, kind::boolean, kind::integer, kind::string, kind::array, kind::object})
            if (type != row.form.type &&
                (type != kind::null || row.presence == wire::need::required))
                add(to_string(type), detail::some_value_of(type), "wire.type");
        if (row.form.type == kind::string) detail::break_string(row.form, add);
        if (row.form.type == kind::integer) detail::break_integer(row.form, add);
        if (row.form.type == kind::array) detail::break_array(row.form, good, add);
    }
    return out;
}

// Tries them all but those whose name begins with `but`; `judge` gives the error, or none, of
// reading a text.
template<class T, std::size_t N, class Judge>
void expect_each_to_be_refused(const wire::fields<T, N>& rows, const value& whole,
                               std::string_view path, Judge judge, std::string_view but = {}) {
    for (const auto& way : ways_of_breaking(rows, whole, path)) {
        if (!but.empty() && way.what.starts_with(but)) continue;
        const auto problem = judge(way.text);
        const std::string step{problem ? problem->step : ""};
        if (way.step.empty()) {
            EXPECT_FALSE(step.starts_with("wire.") || step.starts_with("json."))
                << way.what << ": " << step << " " << problem->detail;
            continue;
        }
        EXPECT_EQ(step, way.step) << way.what;
        if (problem && step.starts_with("wire.") && way.what != "unknown") {
            EXPECT_TRUE(problem->detail.find(way.what.substr(0, way.what.find(": "))) !=
                        std::string::npos)
                << way.what << ": " << problem->detail;
        }
    }
}

} // namespace glove::test
