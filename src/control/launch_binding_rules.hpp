// What a launch binding must obey before a digest is taken of it.
#pragma once
#include <glove/control/launch_binding.hpp>

namespace glove::control {

[[nodiscard]] auto check(const launch_binding& of) -> result<>;

} // namespace glove::control
