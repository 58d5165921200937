// The rules for arguments, as they stand in the file: one row for each key.
#include "policy/toml_reading.hpp"
#include <cmath>

namespace glove::policy {

namespace {

constexpr std::size_t most_arguments = 256; // of one tool

struct argument_table {
    std::optional<pointer> at;
    std::vector<root_ptr> path_under;
    std::vector<std::string> url_host, schemes;
    std::optional<bool> relative;
    host_list hosts;
    argument_rule rule;
};

using argument_key = key_row<argument_table>;

// A value of JSON that TOML can write: no arrays, tables or times.
[[nodiscard]] auto scalar_of(const toml::node& node, const spot& here)
    -> result<wire::json::value> {
    if (const auto* const text = node.as_string()) return wire::json::value{text->get()};
    if (const auto* const number = node.as_integer()) return wire::json::value{number->get()};
    if (const auto* const truth = node.as_boolean()) return wire::json::value{truth->get()};
    return here.at(node).refuse("is not a string, an integer, or true or false",
                                "other numbers can be bounded with range");
}

[[nodiscard]] auto read_values(const toml::node& node, const spot& here, argument_table& into)
    -> result<> {
    GLOVE_TRY(const auto* const items, array_of(node, here));
    std::vector<wire::json::value> values;
    for (const auto& item : *items) {
        GLOVE_TRY(auto value, scalar_of(item, here));
        values.push_back(std::move(value));
    }
    into.rule.matchers.push_back(one_of(std::move(values)));
    return {};
}

[[nodiscard]] auto bound_of(const toml::node& node) -> std::optional<long double> {
    if (const auto* const number = node.as_integer()) return number->get();
    const auto* const real = node.as_floating_point();
    if (real == nullptr || !std::isfinite(real->get())) return std::nullopt;
    return real->get();
}

[[nodiscard]] auto read_range(const toml::node& node, const spot& here, argument_table& into)
    -> result<> {
    const auto* const pair = node.as_array();
    const auto least = pair != nullptr && pair->size() == 2 ? bound_of((*pair)[0]) : std::nullopt;
    const auto most = least ? bound_of((*pair)[1]) : std::nullopt;
    if (!most || *least > *most)
        return here.at(node).refuse("is not [LEAST, MOST] with two numbers", {});
    into.rule.matchers.push_back(in_range({*least, *most}));
    return {};
}

[[nodiscard]] auto read_length(const toml::node& node, const spot& here, argument_table& into)
    -> result<> {
    const auto* const pair = node.as_array();
    const auto* const least =
        pair != nullptr && pair->size() == 2 ? (*pair)[0].as_integer() : nullptr;
    const auto* const most = least != nullptr ? (*pair)[1].as_integer() : nullptr;
    if (most == nullptr || least->get() < 0 || least->get() > most->get())
        return here.at(node).refuse("is not [LEAST, MOST] with two integers", {});
    into.rule.matchers.push_back(of_length(
        {static_cast<std::uint64_t>(least->get()), static_cast<std::uint64_t>(most->get())}));
    return {};
}

[[nodiscard]] auto read_hosts(const toml::node& node, const spot& here, argument_table& into)
    -> result<> {
    return each_text(node, here, [&](const std::string& text, const origin& from) -> result<> {
        if (const auto wrong = into.hosts.add(text); !wrong.empty())
            return from.refuse(in_quotes(text) + " " + std::string{wrong}, {});
        into.url_host.push_back(text);
        return {};
    });
}

[[nodiscard]] auto read_schemes(const toml::node& node, const spot& here, argument_table& into)
    -> result<> {
    return each_text(node, here, [&](const std::string& text, const origin& from) -> result<> {
        const auto url = parse_url(text + "://a.example");
        if (!url || url->scheme != text)
            return from.refuse(in_quotes(text) + " is not a scheme such as https", {});
        into.schemes.push_back(text);
        return {};
    });
}

// A key that is there only to be true.
[[nodiscard]] auto read_true(const toml::node& node, const spot& here) -> result<> {
    GLOVE_TRY(const auto truth, truth_of(node, here));
    if (truth) return {};
    return here.at(node).refuse("is false, which says nothing", "leave the key out");
}

constexpr argument_key argument_keys[] = {
    {"at",
     [](const toml::node& node, const spot& here, argument_table& into) -> result<> {
         GLOVE_TRY(const auto text, text_of(node, here));
         GLOVE_TRY(into.at, pointer_of(text, here.at(node)));
         return {};
     }},
    {"path_under",
     [](const toml::node& node, const spot& here, argument_table& into) -> result<> {
         return each_text(node, here, [&](const std::string& text, const origin& from) -> result<> {
             GLOVE_TRY(auto root, place_of(text, here, from));
             into.path_under.push_back(std::move(root));
             return {};
         });
     }},
    {"relative",
     [](const toml::node& node, const spot& here, argument_table& into) -> result<> {
         GLOVE_TRY(into.relative, truth_of(node, here));
         return {};
     }},
    {"equals",
     [](const toml::node& node, const spot& here, argument_table& into) -> result<> {
         GLOVE_TRY(auto value, scalar_of(node, here));
         std::vector<wire::json::value> values;
         values.push_back(std::move(value));
         into.rule.matchers.push_back(one_of(std::move(values)));
         return {};
     }},
    {"in", read_values},
    {"match",
     [](const toml::node& node, const spot& here, argument_table& into) -> result<> {
         GLOVE_TRY(const auto text, text_of(node, here));
         GLOVE_TRY(auto whole, pattern_of(text, here.at(node)));
         into.rule.matchers.push_back(matches(std::move(whole)));
         return {};
     }},
    {"range", read_range},
    {"length", read_length},
    {"url_host", read_hosts},
    {"schemes", read_schemes},
    {"not_leading_dash",
     [](const toml::node& node, const spot& here, argument_table& into) -> result<> {
         GLOVE_CHECK(read_true(node, here));
         into.rule.matchers.push_back(no_leading_dash());
         return {};
     }},
    {"any",
     [](const toml::node& node, const spot& here, argument_table& into) -> result<> {
         GLOVE_CHECK(read_true(node, here));
         into.rule.matchers.push_back(any_value());
         into.rule.any = true;
         return {};
     }},
    {"optional",
     [](const toml::node& node, const spot& here, argument_table& into) -> result<> {
         GLOVE_TRY(into.rule.optional, truth_of(node, here));
         return {};
     }},
};

[[nodiscard]] auto finish_argument(argument_table&& table, const origin& from)
    -> result<argument_rule> {
    if (!table.at) return from.refuse("says nothing about where it applies", "add at = \"/NAME\"");
    if (table.relative && table.path_under.size() != 1)
        return from.refuse("relative needs path_under with exactly one directory",
                           "a relative path begins at that directory");
    if (!table.schemes.empty() && table.url_host.empty())
        return from.refuse("schemes needs url_host", "add the hosts that are permitted");
    auto& matchers = table.rule.matchers;
    if (!table.path_under.empty())
        matchers.push_back(below_path(std::move(table.path_under), table.relative.value_or(false)
                                                                       ? relative::below_the_root
                                                                       : relative::refused));
    if (table.schemes.empty()) table.schemes = {"http", "https"};
    if (!table.url_host.empty())
        matchers.push_back(
            url_of(std::move(table.hosts), std::move(table.schemes), std::move(table.url_host)));
    if (matchers.empty())
        return from.refuse("says nothing about the value",
                           "add path_under, equals, in, match, range, length, url_host, "
                           "not_leading_dash, or any = true");
    table.rule.at = *std::move(table.at);
    return std::move(table.rule);
}

} // namespace

auto read_arguments(const toml::node& node, const spot& here, tool_table& into) -> result<> {
    const auto* const tables = node.as_array();
    if (tables == nullptr || tables->empty() || !tables->is_homogeneous<toml::table>())
        return here.at(node).refuse("is not a list of tables",
                                    "begin each by [[tool.\"UPSTREAM.TOOL\".argument]]");
    if (tables->size() > most_arguments)
        return here.at(node).refuse("there are more than " + std::to_string(most_arguments), {});
    for (const auto& each : *tables) {
        argument_table table;
        GLOVE_CHECK(read_table<argument_table>(*each.as_table(), here, argument_keys, table));
        GLOVE_TRY(auto rule, finish_argument(std::move(table), here.at(each)));
        into.arguments.push_back(std::move(rule));
    }
    return {};
}

} // namespace glove::policy
