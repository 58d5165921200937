#include <cstring>
#include <glove/sys/sockets.hpp>
#include <sys/socket.h>

namespace glove::sys {

auto message_channel(step_name step) -> result<std::array<unique_fd, 2>> {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return fail_os(step);
    return std::array{unique_fd{ends[0]}, unique_fd{ends[1]}};
}

auto send_message(fd_ref channel, std::string_view bytes, const unique_fd& passed) -> ssize_t {
    ::iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(::cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    ::msghdr whole{};
    whole.msg_iov = &part;
    whole.msg_iovlen = 1;
    if (passed) {
        whole.msg_control = space;
        whole.msg_controllen = sizeof space;
        auto* const header = CMSG_FIRSTHDR(&whole);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        const int number = passed.get();
        std::memcpy(CMSG_DATA(header), &number, sizeof number);
    }
    return ::sendmsg(channel.get(), &whole, MSG_DONTWAIT | MSG_NOSIGNAL);
}

} // namespace glove::sys
