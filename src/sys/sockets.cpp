// Guarantees: what is sent never waits and raises no signal; every descriptor that comes is owned
// from the moment it is there, closed on exec, and closed when its message is refused.
#include <cerrno>
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
    const int number = passed.get();
    return send_descriptors(channel, bytes, std::span{&number, passed ? 1U : 0U});
}

auto send_descriptors(fd_ref channel, std::string_view bytes, std::span<const int> passed)
    -> ssize_t {
    if (passed.size() > most_passed) return errno = EINVAL, -1;
    ::iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(::cmsghdr) char space[CMSG_SPACE(most_passed * sizeof(int))] = {};
    ::msghdr whole{};
    whole.msg_iov = &part;
    whole.msg_iovlen = 1;
    if (!passed.empty()) {
        whole.msg_control = space;
        whole.msg_controllen = CMSG_SPACE(passed.size_bytes());
        auto* const header = CMSG_FIRSTHDR(&whole);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(passed.size_bytes());
        std::memcpy(CMSG_DATA(header), passed.data(), passed.size_bytes());
    }
    return ::sendmsg(channel.get(), &whole, MSG_DONTWAIT | MSG_NOSIGNAL);
}

namespace {

void take_descriptors(::msghdr& whole, std::vector<unique_fd>& out) {
    for (auto* part = CMSG_FIRSTHDR(&whole); part != nullptr; part = CMSG_NXTHDR(&whole, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const auto count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(part) + i * sizeof number, sizeof number);
            out.emplace_back(number);
        }
    }
}

} // namespace

auto receive_message(fd_ref channel, std::span<char> room, step_name step)
    -> result<received_message> {
    ::iovec part{room.data(), room.size()};
    alignas(::cmsghdr) char space[CMSG_SPACE(most_passed * sizeof(int))] = {};
    ::msghdr whole{};
    whole.msg_iov = &part;
    whole.msg_iovlen = 1;
    whole.msg_control = space;
    whole.msg_controllen = sizeof space;
    ssize_t got = 0;
    do got = ::recvmsg(channel.get(), &whole, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0) return fail_os(step, errno, "recvmsg");
    received_message out{.size = static_cast<std::size_t>(got), .descriptors = {}};
    take_descriptors(whole, out.descriptors);
    if ((whole.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
        return fail(errc::limit_exceeded, step, "a message or its descriptors do not fit");
    return out;
}

} // namespace glove::sys
