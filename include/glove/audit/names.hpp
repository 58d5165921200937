// The words for actions and statuses, the same when written and when read.
#pragma once
#include <array>
#include <glove/base/audit.hpp>
#include <string_view>

namespace glove::audit {

inline constexpr auto action_names = std::to_array<std::string_view>(
    {"list_tools", "call_tool", "initialize", "agent_launch", "agent_exit", "egress", "ssh_sign"});
inline constexpr auto status_names = std::to_array<std::string_view>(
    {"pending", "ok", "tool_not_found", "invalid_arguments", "execution_error", "transport_error"});
static_assert(action_names.size() == static_cast<std::size_t>(action::ssh_sign) + 1);
static_assert(status_names.size() == static_cast<std::size_t>(status::transport_error) + 1);

[[nodiscard]] constexpr auto to_string(action which) noexcept -> std::string_view {
    return action_names[static_cast<std::size_t>(which)];
}
[[nodiscard]] constexpr auto to_string(status which) noexcept -> std::string_view {
    return status_names[static_cast<std::size_t>(which)];
}

} // namespace glove::audit
