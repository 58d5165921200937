// Variables of an environment: their names, and those that no operator sets for a session.
#pragma once
#include <algorithm>
#include <array>
#include <glove/base/ascii.hpp>
#include <string_view>

namespace glove::supervisor {

// Set for every session, so that an entry of the operator would be lost or, worse, win.
inline constexpr std::array<std::string_view, 12> own_variables{
    "HOME", "TMPDIR", "GLOVE_SANDBOXED", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
    "home", "tmpdir", "glove_sandboxed", "http_proxy", "https_proxy", "all_proxy"};
inline constexpr std::string_view service_variables = "GLOVE_LOCAL_SERVICE_";

[[nodiscard]] constexpr auto is_own_variable(std::string_view name) noexcept -> bool {
    return std::find(own_variables.begin(), own_variables.end(), name) != own_variables.end() ||
           name.starts_with(service_variables);
}
[[nodiscard]] constexpr auto is_variable_name(std::string_view name) noexcept -> bool {
    const auto letter = [](char c) { return is_lower(c) || is_upper(c) || c == '_'; };
    return !name.empty() && letter(name.front()) &&
           std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || is_digit(c); });
}
// Of NAME=VALUE; all of it when it is none.
[[nodiscard]] constexpr auto variable_name(std::string_view entry) noexcept -> std::string_view {
    return entry.substr(0, entry.find('='));
}

} // namespace glove::supervisor
