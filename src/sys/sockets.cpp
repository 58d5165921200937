#include <glove/sys/sockets.hpp>
#include <sys/socket.h>

namespace glove::sys {

auto message_channel(step_name step) -> result<std::array<unique_fd, 2>> {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return fail_os(step);
    return std::array{unique_fd{ends[0]}, unique_fd{ends[1]}};
}

} // namespace glove::sys
