// Says a word without ever waiting, and takes exactly the one descriptor that is expected; whatever
// else comes over the channel is closed.
#include "kernel/mediator_process/control.hpp"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>

namespace glove::kernel {

namespace {

constexpr std::size_t most_words = 4096;

[[nodiscard]] auto option_of(int socket, int which) -> int {
    int value = -1;
    ::socklen_t size = sizeof value;
    return ::getsockopt(socket, SOL_SOCKET, which, &value, &size) == 0 ? value : -1;
}

} // namespace

auto control::adopt() -> control {
    control out;
    if (option_of(control_descriptor, SO_TYPE) != SOCK_SEQPACKET) return out;
    (void)::fcntl(control_descriptor, F_SETFD, FD_CLOEXEC);
    out.socket_ = sys::unique_fd{control_descriptor};
    return out;
}

void control::say(control_word word, std::string_view words) const {
    if (!socket_) return;
    std::string message(1, static_cast<char>(word));
    message.append(words.substr(0, most_words));
    (void)::send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

auto control::hear(sys::unique_fd& listener) const -> news {
    char word = 0;
    ::iovec part{&word, 1};
    alignas(::cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    ::msghdr whole{};
    whole.msg_iov = &part;
    whole.msg_iovlen = 1;
    whole.msg_control = space;
    whole.msg_controllen = sizeof space;
    const auto got = ::recvmsg(socket_.get(), &whole, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EAGAIN || errno == EINTR ? news::nothing : news::ended;
    if (got == 0) return news::ended;
    sys::unique_fd passed;
    if (const auto* const header = CMSG_FIRSTHDR(&whole);
        header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(header), sizeof number);
        passed = sys::unique_fd{number};
    }
    if (word != static_cast<char>(control_word::listener) || !passed ||
        option_of(passed.get(), SO_ACCEPTCONN) != 1 ||
        option_of(passed.get(), SO_TYPE) != SOCK_STREAM)
        return news::ended; // said what it must not
    // Nobody else has it any more.
    const int flags = ::fcntl(passed.get(), F_GETFL);
    if (flags < 0 || ::fcntl(passed.get(), F_SETFL, flags | O_NONBLOCK) != 0) return news::ended;
    listener = std::move(passed);
    return news::listener;
}

} // namespace glove::kernel
