// What an upstream and the variables of its environment may be called.
#pragma once
#include <string_view>

namespace glove::mcp {

// What is wrong with the name of an upstream, as the end of a sentence; empty when it is one.
[[nodiscard]] auto name_complaint(std::string_view name) noexcept -> std::string_view;
// Letters, digits and '_', not a digit first.
[[nodiscard]] auto is_variable_name(std::string_view name) noexcept -> bool;

} // namespace glove::mcp
