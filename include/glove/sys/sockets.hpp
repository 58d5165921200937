// Sockets that are made in pairs.
#pragma once
#include <array>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>

namespace glove::sys {

// The two ends of a channel of whole messages, closed on exec. `step` is for the error.
[[nodiscard]] auto message_channel(step_name step) -> result<std::array<unique_fd, 2>>;

} // namespace glove::sys
