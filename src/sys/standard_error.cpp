#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <glove/sys/standard_error.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::sys {

error_stream::error_stream() {
    struct ::stat found{};
    if (::fstat(2, &found) != 0) return;
    is_socket = S_ISSOCK(found.st_mode);
    can_wait = S_ISFIFO(found.st_mode) || ::isatty(2) == 1;
    constexpr int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    if (can_wait) own = unique_fd{::open("/proc/self/fd/2", flags)};
}

// A terminal may be raw for the command's sake.
void say_line(const std::string& words) {
    const auto line = "glove: " + words + (::isatty(2) == 1 ? "\r\n" : "\n");
    const error_stream to;
    if (to.is_socket) (void)::send(2, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (!to.can_wait) (void)write_all(fd_ref::standard_error(), line);
    else if (to.own) (void)write_all(to.own, line);
}

} // namespace glove::sys
