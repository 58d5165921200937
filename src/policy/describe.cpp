// For the operator's eyes: paths and patterns as they were written.
#include "policy/engine_rules.hpp"
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <re2/re2.h>

namespace glove::policy {

namespace {

void describe_limits(const tool_limits& limits, const std::string& name,
                     std::vector<std::string>& out) {
    if (limits.timeout)
        out.push_back(name + ": ends after " + std::to_string(limits.timeout->count()) + " ms");
    if (limits.result_bytes)
        out.push_back(name + ": a result has at most " + size_text(*limits.result_bytes) +
                      " bytes");
    if (limits.calls)
        out.push_back(name + ": at most " + std::to_string(*limits.calls) + " calls in a run");
    if (limits.per_minute)
        out.push_back(name + ": at most " + std::to_string(*limits.per_minute) + " calls a minute");
}

} // namespace

auto describe_tool(const tool_pattern& tool, const tool_statement& what)
    -> std::vector<std::string> {
    std::vector<std::string> out;
    const auto name = printable(tool.text());
    for (const auto& rule : what.arguments)
        for (const auto& each : rule.matchers)
            out.push_back(name + ": " + printable(to_string(rule.at)) + " " + each->describe() +
                          (rule.optional ? ", if it is there" : ""));
    for (const auto& at : what.required)
        out.push_back(name + ": " + printable(to_string(at)) + " must be there");
    for (const auto& at : what.forbidden)
        out.push_back(name + ": " + printable(to_string(at)) + " must not be there");
    if (what.additional)
        out.push_back(name + (*what.additional ? ": other arguments are passed on"
                                               : ": other arguments are refused"));
    describe_limits(what.limits, name, out);
    for (const auto& each : what.redact)
        out.push_back(name + ": results lose what matches " +
                      in_quotes(std::string{each->pattern()}));
    return out;
}

} // namespace glove::policy
