// What the members for other backends must obey, whether or not this build has them.
#pragma once
#include <glove/control/service_config.hpp>

namespace glove::control {

[[nodiscard]] auto check_apple(const apple_container_config& what) -> result<>;
[[nodiscard]] auto check_remote(const remote_backend_config& what) -> result<>;

} // namespace glove::control
