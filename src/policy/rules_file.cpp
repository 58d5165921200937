// The one place of this component that knows the TOML library. One row for each key of each table.
#include "policy/rules_file.hpp"
#include <algorithm>
#include <cmath>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>
#include <glove/base/toml_guard.hpp>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace glove::policy {

namespace {

constexpr std::size_t most_tools = 4096;
constexpr std::size_t most_arguments = 256; // of one tool
constexpr std::size_t most_items = 1024;    // of one array
constexpr std::uint64_t most_calls = 1'000'000'000;
constexpr std::uint64_t most_per_minute = 60'000;
constexpr std::size_t longest_shown = 256;

[[nodiscard]] auto shown(std::string_view text) -> std::string {
    return printable(text.substr(0, longest_shown));
}

// Where something stands: the file, the line, the table and the key.
class spot {
public:
    spot(const file_context& in, std::string title) : in_{in}, title_{std::move(title)} {}
    [[nodiscard]] auto at(const toml::node& node) const -> origin {
        return {"policy.file", in_.name + ":" + std::to_string(node.source().begin.line) +
                                   (title_.empty() ? "" : ": " + title_)};
    }
    [[nodiscard]] auto key(std::string_view name) const -> spot {
        return {in_, title_ + (title_.empty() ? "" : " ") + shown(name)};
    }
    [[nodiscard]] auto context() const -> const file_context& { return in_; }

private:
    const file_context& in_;
    std::string title_;
};

// How a key of a table is read into `T`.
template<class T> struct key_row {
    std::string_view key;
    auto (*read)(const toml::node& node, const spot& here, T& into) -> result<>;
};

template<class T> [[nodiscard]] auto read_table(const toml::table& table, const spot& here,
                                                std::span<const key_row<T>> rows, T& into)
    -> result<> {
    for (const auto& [key, node] : table) {
        const auto row = std::ranges::find(rows, key.str(), &key_row<T>::key);
        if (row == rows.end()) {
            std::string known;
            for (const auto& each : rows) known.append(known.empty() ? "" : ", ").append(each.key);
            return here.key(key.str()).at(node).refuse("there is no such key",
                                                       "the keys here are " + known);
        }
        GLOVE_CHECK(row->read(node, here.key(key.str()), into));
    }
    return {};
}

[[nodiscard]] auto table_of(const toml::node& node, const spot& here)
    -> result<const toml::table*> {
    if (const auto* const table = node.as_table()) return table;
    return here.at(node).refuse("is not a table", {});
}

[[nodiscard]] auto truth_of(const toml::node& node, const spot& here) -> result<bool> {
    if (const auto* const truth = node.as_boolean()) return truth->get();
    return here.at(node).refuse("is not true or false", {});
}

[[nodiscard]] auto text_of(const toml::node& node, const spot& here) -> result<std::string> {
    const auto* const text = node.as_string();
    if (text == nullptr) return here.at(node).refuse("is not a string", {});
    return text->get();
}

[[nodiscard]] auto array_of(const toml::node& node, const spot& here)
    -> result<const toml::array*> {
    const auto* const items = node.as_array();
    if (items == nullptr) return here.at(node).refuse("is not an array", "write it in [ ]");
    if (items->empty()) return here.at(node).refuse("is an empty array", "leave the key out");
    if (items->size() > most_items)
        return here.at(node).refuse("holds more than " + std::to_string(most_items) + " items", {});
    return items;
}

template<class Read>
[[nodiscard]] auto each_text(const toml::node& node, const spot& here, Read read) -> result<> {
    GLOVE_TRY(const auto* const items, array_of(node, here));
    for (const auto& item : *items) {
        GLOVE_TRY(const auto text, text_of(item, here));
        GLOVE_CHECK(read(text, here.at(item)));
    }
    return {};
}

[[nodiscard]] auto texts_of(const toml::node& node, const spot& here)
    -> result<std::vector<std::string>> {
    std::vector<std::string> out;
    GLOVE_CHECK(each_text(node, here, [&](const std::string& text, const origin&) -> result<> {
        out.push_back(text);
        return {};
    }));
    return out;
}

[[nodiscard]] auto count_of(const toml::node& node, const spot& here, std::uint64_t most)
    -> result<std::uint64_t> {
    const auto* const number = node.as_integer();
    if (number == nullptr || number->get() < 1 || std::cmp_greater(number->get(), most))
        return here.at(node).refuse("is not an integer from 1 to " + std::to_string(most), {});
    return static_cast<std::uint64_t>(number->get());
}

[[nodiscard]] auto pointer_of(const std::string& text, const origin& from) -> result<pointer> {
    if (auto out = parse_pointer(text)) return *std::move(out);
    return from.refuse(in_quotes(text) + " is not a place in the arguments",
                       "write a JSON Pointer such as /path, /files/* or /edits/*/path, of at most "
                       "16 parts");
}

[[nodiscard]] auto pattern_of(const std::string& text, const origin& from) -> result<pattern> {
    std::string why;
    if (auto out = compile(text, why)) return out;
    return from.refuse("the regular expression " + in_quotes(text) +
                           " cannot be used: " + printable(why),
                       "write it in the syntax of RE2");
}

[[nodiscard]] auto place_of(const std::string& text, const spot& here, const origin& from)
    -> result<root_ptr> {
    GLOVE_TRY(const auto path, written_path(text, here.context().directory, from));
    if (!path)
        return from.refuse(in_quotes(text) + " is not a path", "begin it by /, ~/, ./ or ../");
    return here.context().places.pin(*path, from);
}

// One [[tool."up.tool".argument]].

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

// One [tool."up.tool"].

using tool_key = key_row<tool_table>;

[[nodiscard]] auto read_arguments(const toml::node& node, const spot& here, tool_table& into)
    -> result<> {
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

[[nodiscard]] auto pointers_of(const toml::node& node, const spot& here, std::vector<pointer>& into)
    -> result<> {
    return each_text(node, here, [&](const std::string& text, const origin& from) -> result<> {
        GLOVE_TRY(auto one, pointer_of(text, from));
        into.push_back(std::move(one));
        return {};
    });
}

[[nodiscard]] auto read_redact(const toml::node& node, const spot& here, tool_table& into)
    -> result<> {
    return each_text(node, here, [&](const std::string& text, const origin& from) -> result<> {
        GLOVE_TRY(auto one, pattern_of(text, from));
        if (re2::RE2::PartialMatch("", *one))
            return from.refuse("the regular expression " + in_quotes(text) +
                                   " also matches an empty text",
                               "let it match at least one character");
        into.redact.push_back(std::move(one));
        return {};
    });
}

[[nodiscard]] auto read_timeout(const toml::node& node, const spot& here, tool_table& into)
    -> result<> {
    GLOVE_TRY(const auto text, text_of(node, here));
    const auto time = parse_duration(text);
    if (!time.complaint.empty())
        return here.at(node).refuse(in_quotes(text) + " " + std::string{time.complaint}, {});
    into.limits.timeout = std::chrono::milliseconds{time.ms};
    return {};
}

[[nodiscard]] auto read_result_bytes(const toml::node& node, const spot& here, tool_table& into)
    -> result<> {
    std::optional<std::uint64_t> bytes;
    if (const auto* const text = node.as_string()) bytes = parse_size(text->get());
    else if (const auto* const number = node.as_integer(); number != nullptr && number->get() > 0)
        bytes = static_cast<std::uint64_t>(number->get());
    if (!bytes || *bytes == 0)
        return here.at(node).refuse("is not a size such as \"64K\" or \"1M\"", {});
    into.limits.result_bytes = bytes;
    return {};
}

constexpr tool_key tool_keys[] = {
    {"allow",
     [](const toml::node& node, const spot& here, tool_table& into) -> result<> {
         GLOVE_TRY(into.allow, truth_of(node, here));
         return {};
     }},
    {"additional",
     [](const toml::node& node, const spot& here, tool_table& into) -> result<> {
         GLOVE_TRY(into.additional, truth_of(node, here));
         return {};
     }},
    {"timeout", read_timeout},
    {"result_bytes", read_result_bytes},
    {"calls",
     [](const toml::node& node, const spot& here, tool_table& into) -> result<> {
         GLOVE_TRY(into.limits.calls, count_of(node, here, most_calls));
         return {};
     }},
    {"per_minute",
     [](const toml::node& node, const spot& here, tool_table& into) -> result<> {
         GLOVE_TRY(into.limits.per_minute, count_of(node, here, most_per_minute));
         return {};
     }},
    {"redact", read_redact},
    {"required",
     [](const toml::node& node, const spot& here, tool_table& into) -> result<> {
         return pointers_of(node, here, into.required);
     }},
    {"forbidden",
     [](const toml::node& node, const spot& here, tool_table& into) -> result<> {
         return pointers_of(node, here, into.forbidden);
     }},
    {"argument", read_arguments},
};

// The tables of the file.

using file_key = key_row<rules_file>;

[[nodiscard]] auto read_tools(const toml::node& node, const spot& here, rules_file& into)
    -> result<> {
    GLOVE_TRY(const auto* const tables, table_of(node, here));
    if (tables->size() > most_tools)
        return here.at(node).refuse("there are more than " + std::to_string(most_tools), {});
    const auto& in = here.context();
    for (const auto& [name, each] : *tables) {
        const spot there{in, "[tool.\"" + shown(name.str()) + "\"]"};
        const auto* const table = each.as_table();
        // [tool.fs.read] is read by TOML as the table "read" of the table "fs".
        if (table == nullptr || name.str().find('.') == std::string_view::npos)
            return there.at(each).refuse("is not the table of a tool",
                                         "write the name in quotes: [tool.\"UPSTREAM.TOOL\"]");
        tool_table one;
        GLOVE_TRY(one.tool, parse_pattern(name.str(), in.upstreams, there.at(each)));
        one.where = there.at(each).where;
        GLOVE_CHECK(read_table<tool_table>(*table, there, tool_keys, one));
        into.tools.push_back(std::move(one));
    }
    return {};
}

// `read` takes the node of each upstream.
template<class Read>
[[nodiscard]] auto each_upstream(const toml::node& node, const spot& here, Read read) -> result<> {
    GLOVE_TRY(const auto* const tables, table_of(node, here));
    for (const auto& [name, each] : *tables) {
        const auto there = here.key(name.str());
        GLOVE_CHECK(check_upstream(name.str(), here.context().upstreams, there.at(each)));
        GLOVE_CHECK(read(std::string{name.str()}, each, there));
    }
    return {};
}

// The path of a file URI: what a URI does not take as it is becomes %XX.
[[nodiscard]] auto uri_of(const std::string& path) -> std::string {
    constexpr std::string_view plain = "/-._~!$&'()*+,;=:@";
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out = "file://";
    for (const char c : path) {
        if (is_lower(c) || is_upper(c) || is_digit(c) || plain.find(c) != std::string_view::npos) {
            out += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        ((out += '%') += digits[byte >> 4U]) += digits[byte & 15U];
    }
    return out;
}

[[nodiscard]] auto read_roots(const toml::node& node, const spot& here, rules_file& into)
    -> result<> {
    return each_upstream(
        node, here,
        [&](const std::string& upstream, const toml::node& value, const spot& there) -> result<> {
            return each_text(
                value, there, [&](const std::string& text, const origin& from) -> result<> {
                    GLOVE_TRY(const auto place, place_of(text, there, from));
                    if (!place->is_directory())
                        return from.refuse(in_quotes(text) + " is not a directory", {});
                    const auto& path = place->canonical();
                    into.roots[upstream].push_back(
                        {uri_of(path), path == "/" ? path : path.substr(path.rfind('/') + 1)});
                    return {};
                });
        });
}

using allow_list = std::optional<std::vector<std::string>>;
constexpr key_row<allow_list> allow_keys[] = {
    {"allow",
     [](const toml::node& node, const spot& here, allow_list& into) -> result<> {
         // Here nothing is a choice: the upstream's are all refused.
         if (const auto* const items = node.as_array(); items != nullptr && items->empty()) {
             into.emplace();
             return {};
         }
         GLOVE_TRY(into, texts_of(node, here));
         return {};
     }},
};

[[nodiscard]] auto read_allowed(const toml::node& node, const spot& here)
    -> result<std::vector<std::string>> {
    GLOVE_TRY(const auto* const table, table_of(node, here));
    allow_list out;
    GLOVE_CHECK(read_table<allow_list>(*table, here, allow_keys, out));
    if (!out) return here.at(node).refuse("says nothing", "add allow = [...]");
    return *std::move(out);
}

[[nodiscard]] auto read_resources(const toml::node& node, const spot& here, rules_file& into)
    -> result<> {
    return each_upstream(
        node, here,
        [&](const std::string& upstream, const toml::node& value, const spot& there) -> result<> {
            GLOVE_TRY(const auto allowed, read_allowed(value, there));
            auto& prefixes = into.resources[upstream];
            for (const auto& text : allowed) {
                constexpr std::string_view file = "file://";
                const auto from = there.at(value);
                if (text.find(':') == std::string::npos || text.find(':') == 0)
                    return from.refuse(in_quotes(text) + " is not the beginning of a URI",
                                       "write it with its scheme, as in \"file:///srv/data\"");
                uri_prefix one{text, nullptr};
                if (text.starts_with(file)) {
                    GLOVE_TRY(one.below, place_of(text.substr(file.size()), there, from));
                }
                prefixes.push_back(std::move(one));
            }
            return {};
        });
}

[[nodiscard]] auto read_prompts(const toml::node& node, const spot& here, rules_file& into)
    -> result<> {
    return each_upstream(
        node, here,
        [&](const std::string& upstream, const toml::node& value, const spot& there) -> result<> {
            GLOVE_TRY(into.prompts[upstream], read_allowed(value, there));
            return {};
        });
}

constexpr file_key file_keys[] = {
    {"tool", read_tools},
    {"roots", read_roots},
    {"resources", read_resources},
    {"prompts", read_prompts},
};

[[nodiscard]] auto fault_of(const sys::file_facts& facts) -> const char* {
    if (facts.identity.type != S_IFREG) return "is not a regular file";
    if (facts.owner != ::geteuid()) return "belongs to another user";
    if ((facts.permissions & 077U) != 0) return "can be read or written by others";
    // By another name, a run could have been given it to write.
    if (facts.links != 1) return "has more than one name (hard links)";
    return nullptr;
}

} // namespace

auto parse_rules(std::string_view text, const file_context& in) -> result<rules_file> {
    const auto at_line = [&](std::size_t line) {
        return origin{"policy.file", in.name + ":" + std::to_string(line)};
    };
    if (text.size() > largest_policy)
        return fail(errc::limit_exceeded, "policy.file", in.name + " is larger than 1 MiB",
                    "make it smaller");
    if (const auto line = line_of_many_dots(text); line != 0)
        return at_line(line).refuse("more than " + std::to_string(most_toml_dots) +
                                        " dots in one line",
                                    "write it in several lines");
    const auto parsed = toml::parse(text);
    if (!parsed)
        return at_line(parsed.error().source().begin.line)
            .refuse(printable(parsed.error().description()),
                    "write it as TOML; a key may be given once");
    rules_file out;
    GLOVE_CHECK(read_table<rules_file>(parsed.table(), {in, {}}, file_keys, out));
    return out;
}

auto read_rules(const std::string& path) -> result<std::string> {
    const sys::unique_fd file{
        ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    if (!file && errno == ELOOP)
        return fail(errc::not_permitted, "policy.file", path + " is a link",
                    "name the file itself");
    if (!file) return fail_os("policy.file", errno, path);
    GLOVE_TRY(const auto facts, sys::inspect(file));
    if (const auto* const fault = fault_of(facts))
        return fail(errc::not_permitted, "policy.file", path + " " + fault,
                    "use a file of your own, with one name: chmod 600 " + path);
    auto text = sys::read_all(file, largest_policy);
    if (!text && text.error().code == errc::limit_exceeded)
        return fail(errc::limit_exceeded, "policy.file", path + " is larger than 1 MiB",
                    "make it smaller");
    if (!text) return fail_os("policy.file", text.error().os, path);
    return text;
}

} // namespace glove::policy
