// Sockets that are made in pairs, and what goes over them.
#pragma once
#include <array>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <span>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace glove::sys {

// The two ends of a channel of whole messages, closed on exec. `step` is for the error.
[[nodiscard]] auto message_channel(step_name step) -> result<std::array<unique_fd, 2>>;

// Sends a message, and with it a descriptor when there is one, without waiting; what `sendmsg`
// returns, and errno.
[[nodiscard]] auto send_message(fd_ref channel, std::string_view bytes, const unique_fd& passed)
    -> ssize_t;

// The same with some descriptors, at most `most_passed`.
inline constexpr std::size_t most_passed = 64;
[[nodiscard]] auto send_descriptors(fd_ref channel, std::string_view bytes,
                                    std::span<const int> passed) -> ssize_t;

struct received_message {
    std::size_t size = 0; // 0: the other end is closed
    std::vector<unique_fd> descriptors;
};
// Waits for the next message. One that is longer than `room`, or brings more descriptors than
// `most_passed` or than this process can have, is an error. `step` is for the error.
[[nodiscard]] auto receive_message(fd_ref channel, std::span<char> room, step_name step)
    -> result<received_message>;

} // namespace glove::sys
