// Sockets that are made in pairs, and what goes over them.
#pragma once
#include <array>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <string_view>
#include <sys/types.h>

namespace glove::sys {

// The two ends of a channel of whole messages, closed on exec. `step` is for the error.
[[nodiscard]] auto message_channel(step_name step) -> result<std::array<unique_fd, 2>>;

// Sends a message, and with it a descriptor when there is one, without waiting; what `sendmsg`
// returns, and errno.
[[nodiscard]] auto send_message(fd_ref channel, std::string_view bytes, const unique_fd& passed)
    -> ssize_t;

} // namespace glove::sys
