// What is not understood is refused by name, with what would be right.
#include "policy/words.hpp"
#include <algorithm>
#include <glove/base/text.hpp>
#include <glove/wire/grammar.hpp>

namespace glove::policy {

namespace {

constexpr std::size_t longest_tool = 256;

[[nodiscard]] auto list_of(std::span<const std::string> names) -> std::string {
    if (names.empty()) return "there is no upstream at all: give one with --upstream NAME=COMMAND";
    std::string out = names.size() == 1 ? "the upstream is " : "the upstreams are ";
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0) out += ", ";
        out += printable(names[i]);
    }
    return out;
}

} // namespace

auto origin::refuse(std::string_view what, std::string mend) const -> std::unexpected<error> {
    return std::unexpected(error{errc::invalid_input, step.text, 0,
                                 where + ": " + std::string{what}, std::move(mend)});
}

auto tool_pattern::text() const -> std::string {
    return upstream + "." + (tool.empty() ? "*" : tool);
}

auto check_upstream(std::string_view name, std::span<const std::string> upstreams,
                    const origin& from) -> result<> {
    if (std::ranges::find(upstreams, name) != upstreams.end()) return {};
    return from.refuse("there is no upstream " + in_quotes(name), list_of(upstreams));
}

auto parse_pattern(std::string_view text, std::span<const std::string> upstreams,
                   const origin& from) -> result<tool_pattern> {
    constexpr std::string_view form =
        "write UPSTREAM.TOOL, or UPSTREAM.* for all of its tools, as in fs.read_text_file";
    const auto dot = text.find('.');
    if (dot == std::string_view::npos)
        return from.refuse(in_quotes(text) + " has no dot between an upstream and a tool",
                           std::string{form});
    const auto upstream = text.substr(0, dot);
    const auto tool = text.substr(dot + 1);
    if (upstream.empty())
        return from.refuse(in_quotes(text) + " names no upstream", std::string{form});
    if (tool.empty()) return from.refuse(in_quotes(text) + " names no tool", std::string{form});
    GLOVE_CHECK(check_upstream(upstream, upstreams, from));
    if (tool == "*") return tool_pattern{std::string{upstream}, {}};
    if (tool.find('*') != std::string_view::npos)
        return from.refuse(in_quotes(text) + " has a '*' that does not stand for a whole name",
                           "name each tool, or all of the upstream's with " + printable(upstream) +
                               ".*");
    if (tool.size() > longest_tool || !wire::conforms(wire::grammar::token, tool) ||
        tool.front() == ' ' || tool.back() == ' ')
        return from.refuse(in_quotes(text) + " holds no name that a tool can have",
                           std::string{form});
    return tool_pattern{std::string{upstream}, std::string{tool}};
}

auto parse_argument_word(std::string_view text, std::span<const std::string> upstreams,
                         const origin& from) -> result<argument_word> {
    constexpr std::string_view form =
        "write UPSTREAM.TOOL:FIELD=PREFIX, as in fs.read_text_file:path=/srv/data";
    const auto colon = text.find(':');
    const auto equal = colon == std::string_view::npos ? colon : text.find('=', colon + 1);
    if (equal == std::string_view::npos)
        return from.refuse("is not TOOL:FIELD=PREFIX", std::string{form});
    const auto field = text.substr(colon + 1, equal - colon - 1);
    const auto prefix = text.substr(equal + 1);
    if (field.empty()) return from.refuse("names no field", std::string{form});
    if (prefix.empty())
        return from.refuse("has an empty prefix, with which every text begins",
                           std::string{form} + "; to allow any value, use a policy file with "
                                               "any = true");
    if (!wire::is_utf8(text)) return from.refuse("is not UTF-8", std::string{form});
    GLOVE_TRY(auto tool, parse_pattern(text.substr(0, colon), upstreams, from));
    return argument_word{std::move(tool), std::string{field}, std::string{prefix}};
}

} // namespace glove::policy
