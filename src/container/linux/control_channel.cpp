// One message at a time, each a value.
#include "container/linux/control_channel.hpp"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <utility>

namespace glove::container {

auto send_order(sys::fd_ref control, order what, std::int32_t value) -> result<> {
    const order_message message{what, value};
    // Never waits: init reads each order at once, unless something holds it up, which must not
    // hold up the clock as well.
    if (::send(control.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        sizeof message)
        return fail_os("launch.order");
    return {};
}

auto is_hang_up(int os) noexcept -> bool { return os == EPIPE || os == ECONNRESET; }

auto receive_news(sys::fd_ref control) -> received_news {
    received_news out{};
    ::iovec part{&out.message, sizeof out.message};
    // Room for one descriptor; what else a message brings, the kernel drops.
    alignas(::cmsghdr) char space[CMSG_LEN(sizeof(int))] = {};
    ::msghdr whole{};
    // Init that ended with an order unread resets the channel once, ahead of the news it had sent.
    do {
        whole.msg_iov = &part;
        whole.msg_iovlen = 1;
        whole.msg_control = space;
        whole.msg_controllen = sizeof space;
        out.size = ::recvmsg(control.get(), &whole, MSG_CMSG_CLOEXEC);
    } while (out.size < 0 && (errno == EINTR || errno == ECONNRESET));
    const auto* const header = out.size < 0 ? nullptr : CMSG_FIRSTHDR(&whole);
    if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int)))
        return out;
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header), sizeof number);
    out.came = sys::unique_fd{number};
    return out;
}

namespace {

[[nodiscard]] auto option_is(sys::fd_ref socket, int name, int wanted) -> bool {
    int value = -1;
    ::socklen_t size = sizeof value;
    return ::getsockopt(socket.get(), SOL_SOCKET, name, &value, &size) == 0 && value == wanted;
}

// Whether the kernel says that this is the socket that was asked for, and that it listens.
[[nodiscard]] auto listens_at(sys::fd_ref socket, const listener_setup& wanted) -> bool {
    ::sockaddr_un name{};
    ::socklen_t size = sizeof name;
    return option_is(socket, SO_DOMAIN, AF_UNIX) && option_is(socket, SO_TYPE, SOCK_STREAM) &&
           option_is(socket, SO_ACCEPTCONN, 1) &&
           ::getsockname(socket.get(), reinterpret_cast<::sockaddr*>(&name), &size) == 0 &&
           size == wanted.name_size && std::strcmp(name.sun_path, wanted.name.sun_path) == 0;
}

} // namespace

auto accept_listener(sys::unique_fd came, const listener_setup& wanted) -> result<sys::unique_fd> {
    if (!came || !listens_at(came, wanted))
        return fail(errc::not_permitted, "launch.listener", "what came is no socket of the plan");
    if (::fcntl(came.get(), F_SETFL, O_NONBLOCK) != 0) return fail_os("launch.listener");
    return came;
}

auto accept_terminal(sys::unique_fd came, bool& due) -> result<sys::unique_fd> {
    struct ::stat found{};
    int number = -1;
    const bool master = came && ::fstat(came.get(), &found) == 0 && S_ISCHR(found.st_mode) &&
                        found.st_rdev == ::makedev(5, 2) &&
                        ::ioctl(came.get(), TIOCGPTN, &number) == 0;
    if (!master || !std::exchange(due, false))
        return fail(errc::not_permitted, "launch.terminal", "what came is no private terminal");
    return came;
}

} // namespace glove::container
