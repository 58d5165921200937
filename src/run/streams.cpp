// Judges streams by what they are, and keeps the numbers 0 to 2 taken.
#include "run/streams.hpp"
#include <fcntl.h>
#include <glove/run/exec.hpp>
#include <glove/sys/fd.hpp>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::run {

namespace {

// Why the agent cannot be given a stream of this kind; empty when it can.
[[nodiscard]] auto stream_fault(int stream, const struct ::stat& found) -> std::string_view {
    if (S_ISDIR(found.st_mode)) return "is a directory: it would lead the agent out of its root";
    if (S_ISBLK(found.st_mode)) return "is a block device: it would show the agent a whole disk";
    if (!S_ISSOCK(found.st_mode)) return {};
    // A socket keeps the network it was made in. A connected Unix stream can reach nobody but its
    // peer.
    int domain = 0;
    int type = 0;
    ::socklen_t size = sizeof domain;
    ::sockaddr_storage peer{};
    ::socklen_t peer_size = sizeof peer;
    const bool known = ::getsockopt(stream, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
                       ::getsockopt(stream, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
    const bool confined =
        known && domain == AF_UNIX && type == SOCK_STREAM &&
        ::getpeername(stream, reinterpret_cast<::sockaddr*>(&peer), &peer_size) == 0;
    return confined ? std::string_view{} : "is a socket that can reach this machine's network";
}

} // namespace

auto check_streams() -> result<> {
    constexpr const char* names[] = {"standard input", "standard output", "standard error"};
    for (int stream = 0; stream < 3; ++stream) {
        struct ::stat found{};
        if (::fstat(stream, &found) != 0) return fail_os("exec.streams", errno, names[stream]);
        if (const auto fault = stream_fault(stream, found); !fault.empty())
            return fail(errc::not_permitted, "exec.streams",
                        std::string{names[stream]}.append(" ").append(fault),
                        "put a pipe between, as in: ... | glove exec ... | cat");
    }
    return {};
}

auto let_go_of_streams(bool relayed) -> result<> {
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    if (!nothing) return fail_os("exec.streams", errno, "/dev/null");
    if (::dup2(nothing.get(), 0) < 0) return fail_os("exec.streams");
    if (!relayed && ::dup2(nothing.get(), 1) < 0) return fail_os("exec.streams");
    return {};
}

auto claim_standard_streams() -> result<> {
    for (int stream = 0; stream < 3; ++stream) {
        if (::fcntl(stream, F_GETFD) >= 0) continue;
        // The lowest free number is this one.
        sys::unique_fd opened{::open("/dev/null", O_RDWR)};
        if (opened.get() != stream) return fail_os("exec.streams", EBADF, "/dev/null");
        (void)opened.release();
    }
    return {};
}

} // namespace glove::run
