// What glove-control does for the service itself.
#pragma once
#include "cli/verbs.hpp"

namespace glove::cli {

// `glove-control enter-subgroup -- COMMAND`: goes into the subgroup and becomes the command.
[[nodiscard]] auto enter_subgroup_and_become(const invocation& call) -> int;

} // namespace glove::cli
