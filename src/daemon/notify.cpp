#include "daemon/notify.hpp"
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <glove/sys/fd.hpp>
#include <sys/socket.h>
#include <sys/un.h>

namespace glove::daemon {

void notify(std::string_view state) {
    const char* const set = std::getenv("NOTIFY_SOCKET");
    const std::string_view name{set == nullptr ? "" : set};
    ::sockaddr_un to{};
    if (name.size() < 2 || name.size() >= sizeof to.sun_path) return;
    if (name.front() != '/' && name.front() != '@') return;
    to.sun_family = AF_UNIX;
    std::ranges::copy(name, to.sun_path);
    if (name.front() == '@') to.sun_path[0] = '\0';
    const auto size = offsetof(::sockaddr_un, sun_path) + name.size() + (name.front() == '/');
    const sys::unique_fd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    if (!socket) return;
    (void)::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                   reinterpret_cast<const ::sockaddr*>(&to), static_cast<::socklen_t>(size));
}

} // namespace glove::daemon
