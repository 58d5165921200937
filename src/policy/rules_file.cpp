// The tables of the file, and the file itself: one row for each key of each table.
#include "policy/rules_file.hpp"
#include "policy/toml_reading.hpp"
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/base/times.hpp>
#include <glove/base/toml_guard.hpp>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::policy {

namespace {

constexpr std::size_t most_tools = 4096;
constexpr std::uint64_t most_calls = 1'000'000'000;
constexpr std::uint64_t most_per_minute = 60'000;
// One [tool."up.tool"].

using tool_key = key_row<tool_table>;

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
    if (const auto line = line_of_stray_byte(text); line != 0)
        return at_line(line).refuse("a character beyond ASCII outside of quotes",
                                    "put it in \" or ', not in \"\"\"");
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
