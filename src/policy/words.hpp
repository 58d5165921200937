// The words of --allow, --deny and --allow-arg, and the names of the tables of a policy file.
#pragma once
#include <glove/base/error.hpp>
#include <span>
#include <string>
#include <string_view>

namespace glove::policy {

// Where a rule is written, and how its mistakes are told.
struct origin {
    step_name step;    // "policy.rule", "policy.file"
    std::string where; // "--allow 'fs.x'", "FILE:3: [tool."fs.x"]"
    [[nodiscard]] auto refuse(std::string_view what, std::string mend) const
        -> std::unexpected<error>;
};

// "up.tool" or "up.*"; `tool` is empty for the latter.
struct tool_pattern {
    std::string upstream, tool;
    [[nodiscard]] auto text() const -> std::string;
    auto operator==(const tool_pattern&) const -> bool = default;
    auto operator<=>(const tool_pattern&) const = default;
};
[[nodiscard]] auto parse_pattern(std::string_view text, std::span<const std::string> upstreams,
                                 const origin& from) -> result<tool_pattern>;
[[nodiscard]] auto check_upstream(std::string_view name, std::span<const std::string> upstreams,
                                  const origin& from) -> result<>;

// "up.tool:field=prefix".
struct argument_word {
    tool_pattern tool;
    std::string field, prefix;
};
[[nodiscard]] auto parse_argument_word(std::string_view text,
                                       std::span<const std::string> upstreams, const origin& from)
    -> result<argument_word>;

} // namespace glove::policy
