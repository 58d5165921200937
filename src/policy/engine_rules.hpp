// The rules of a run as they are asked: everything by the name of the upstream.
#pragma once
#include "policy/rules_file.hpp"
#include <map>
#include <set>

namespace glove::policy {

struct tool_rules {
    argument_rules arguments;
    tool_limits limits;
    std::vector<pattern> redact;
};

struct upstream_rules {
    bool allow_all = false, deny_all = false;
    std::set<std::string, std::less<>> allow, deny;
    std::map<std::string, tool_rules, std::less<>> exact; // with what holds for every tool
    tool_rules every;
    std::vector<root> roots;
    std::optional<std::vector<uri_prefix>> resources; // empty: all
    std::optional<std::vector<std::string>> prompts;  // the same
    std::set<std::string, std::less<>> named;
    std::vector<std::string> lines; // of `describe`

    [[nodiscard]] auto of(std::string_view tool) const -> const tool_rules& {
        const auto found = exact.find(tool);
        return found == exact.end() ? every : found->second;
    }
};

struct engine_rules {
    std::map<std::string, upstream_rules, std::less<>> upstreams;

    [[nodiscard]] auto find(std::string_view upstream) const -> const upstream_rules* {
        const auto found = upstreams.find(upstream);
        return found == upstreams.end() ? nullptr : &found->second;
    }
};

// What is said of one tool, or of every tool of an upstream, wherever it is said.
struct tool_statement {
    std::vector<argument_rule> arguments;
    std::vector<pointer> required, forbidden;
    std::optional<bool> additional;
    tool_limits limits;
    std::vector<pattern> redact;
    std::string where; // the last place
    void append(const tool_statement& more);
};
// A line each.
[[nodiscard]] auto describe_tool(const tool_pattern& tool, const tool_statement& what)
    -> std::vector<std::string>;

} // namespace glove::policy
