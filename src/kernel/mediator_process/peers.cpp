#include "kernel/mediator_process/peers.hpp"
#include <fcntl.h>
#include <string>
#include <sys/stat.h>

namespace glove::kernel {

auto own_stream(int number) -> result<sys::unique_fd> {
    struct ::stat found{};
    const int flags = ::fcntl(number, F_GETFL);
    if (flags < 0 || ::fstat(number, &found) != 0)
        return fail_os("mcp.stream", errno, "descriptor " + std::to_string(number));
    if (S_ISFIFO(found.st_mode) || S_ISCHR(found.st_mode)) {
        const auto name = "/proc/self/fd/" + std::to_string(number);
        sys::unique_fd anew{
            ::open(name.c_str(), (flags & O_ACCMODE) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
        if (anew) return anew;
    }
    // Its other end has flags of its own.
    sys::unique_fd same{::fcntl(number, F_DUPFD_CLOEXEC, 3)};
    if (!same || ::fcntl(number, F_SETFL, flags | O_NONBLOCK) != 0)
        return fail_os("mcp.stream", errno, "descriptor " + std::to_string(number));
    return same;
}

} // namespace glove::kernel
