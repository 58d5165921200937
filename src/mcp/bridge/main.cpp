// glove-mcp: the MCP server that an agent starts inside of the sandbox. It passes bytes between its
// standard streams and the socket of the mediator, and reads none of them.
//
//   glove-mcp [SOCKET]
//
// Guarantees: the end of standard input reaches the mediator while answers still come; it holds at
// most two buffers; it waits in poll alone and never makes the agent wait for one direction because
// of the other. It allocates nothing, takes no descriptor that comes over the socket, and leaves
// the flags of the streams, which are the agent's as well, as they are.
//
// It ends with 0 when either side has ended, and with 1 and a line on standard error when something
// failed.
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <glove/sys/fd.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using glove::sys::fd_ref;
using glove::sys::unique_fd;

constexpr const char* usual_socket = "/run/glove/mcp.sock";
constexpr std::size_t buffer_bytes = 64UL << 10;
// A pipe that poll calls writable takes this much at least, whether it waits or not.
constexpr std::size_t pipe_bytes = 4096;

constexpr short gone = POLLHUP | POLLERR | POLLNVAL;

// One line of an error; `what` may be empty.
[[nodiscard]] auto fail(const char* words, const char* what, int os) noexcept -> int {
    const char* const parts[] = {"glove-mcp: ", words, what, ": ", ::strerrordesc_np(os), "\n"};
    ::iovec pieces[6];
    for (int i = 0; i < 6; ++i) {
        const char* const text = parts[i] != nullptr ? parts[i] : "unknown error";
        pieces[i] = {const_cast<char*>(text), std::strlen(text)}; // the kernel only reads it
    }
    [[maybe_unused]] const auto put = ::writev(STDERR_FILENO, pieces, 6);
    return 1;
}

// One of the standard streams or the socket.
class peer {
public:
    explicit peer(fd_ref of) noexcept : fd_{of.get()} {
        int type = 0;
        ::socklen_t size = sizeof type;
        is_socket_ = ::getsockopt(fd_, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
    }
    [[nodiscard]] auto get() const noexcept -> int { return fd_; }
    // Of a socket without a buffer for control messages. Called when poll says that it will not
    // wait.
    [[nodiscard]] auto read(char* to, std::size_t size) const noexcept -> ::ssize_t {
        return is_socket_ ? ::recv(fd_, to, size, MSG_DONTWAIT) : ::read(fd_, to, size);
    }
    [[nodiscard]] auto write(const char* from, std::size_t size) const noexcept -> ::ssize_t {
        if (is_socket_) return ::send(fd_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        return ::write(fd_, from, size < pipe_bytes ? size : pipe_bytes);
    }

private:
    int fd_;
    bool is_socket_;
};

[[nodiscard]] auto is_for_now(int os) noexcept -> bool { return os == EAGAIN || os == EINTR; }

// One direction. Its buffer is filled when it is empty.
class stream {
public:
    stream(const peer& from, const peer& to, char* buffer) noexcept
        : from_{from}, to_{to}, buffer_{buffer} {}

    [[nodiscard]] auto wants_to_read() const noexcept -> bool { return open_ && begin_ == end_; }
    [[nodiscard]] auto wants_to_write() const noexcept -> bool { return begin_ != end_; }
    // Nothing more will be passed.
    [[nodiscard]] auto is_over() const noexcept -> bool { return !open_ && begin_ == end_; }
    void give_up() noexcept {
        open_ = false;
        begin_ = end_ = 0;
    }

    // Each gives the error, or 0.
    [[nodiscard]] auto read() noexcept -> int {
        const auto got = from_.read(buffer_, buffer_bytes);
        if (got < 0) return is_for_now(errno) ? 0 : errno;
        begin_ = 0;
        end_ = static_cast<std::size_t>(got);
        open_ = got > 0;
        return 0;
    }
    [[nodiscard]] auto write() noexcept -> int {
        const auto put = to_.write(buffer_ + begin_, end_ - begin_);
        if (put < 0) return is_for_now(errno) ? 0 : errno;
        begin_ += static_cast<std::size_t>(put);
        return 0;
    }

private:
    const peer& from_;
    const peer& to_;
    char* buffer_;
    std::size_t begin_ = 0, end_ = 0;
    bool open_ = true;
};

class bridge {
public:
    explicit bridge(fd_ref socket) noexcept
        : input_{fd_ref::standard_input()}, output_{fd_ref::standard_output()}, socket_{socket} {}

    [[nodiscard]] auto run() noexcept -> int {
        for (;;) {
            if (in_.is_over()) return 0; // the mediator has ended, and all it said was passed on
            if (out_.is_over() && !half_closed_) {
                half_closed_ = true;
                (void)::shutdown(socket_.get(), SHUT_WR);
            }
            if (const int status = turn(); status >= 0) return status;
        }
    }

private:
    // The status to end with, -1 to go on.
    [[nodiscard]] auto turn() noexcept -> int {
        const auto wanted = [](bool read, bool write) {
            return static_cast<short>((read ? POLLIN : 0) | (write ? POLLOUT : 0));
        };
        const auto socket_events = wanted(in_.wants_to_read(), out_.wants_to_write());
        // One of which nothing is wanted is left out: its end would be told again and again. But
        // the end of standard output is the end of everything.
        ::pollfd of[3] = {{out_.wants_to_read() ? input_.get() : -1, POLLIN, 0},
                          {output_.get(), wanted(false, in_.wants_to_write()), 0},
                          {socket_events != 0 ? socket_.get() : -1, socket_events, 0}};
        if (::poll(of, 3, -1) < 0) return errno == EINTR ? -1 : fail("poll", "", errno);
        if ((of[1].revents & gone) != 0) return 0; // the agent listens no more
        if ((of[1].revents & POLLOUT) != 0)
            if (const int os = in_.write(); os != 0)
                return os == EPIPE ? 0 : fail("standard output", "", os);
        if (of[0].revents != 0)
            if (const int os = out_.read(); os != 0) return fail("standard input", "", os);
        if (out_.wants_to_write() && (of[2].revents & (POLLOUT | gone)) != 0)
            if (const int os = out_.write(); os != 0) out_.give_up(); // what it said still counts
        if (in_.wants_to_read() && (of[2].revents & (POLLIN | gone)) != 0)
            if (const int os = in_.read(); os != 0) return fail("the connection", "", os);
        return -1;
    }

    // The names are seen from the agent.
    char to_socket_[buffer_bytes], to_output_[buffer_bytes];
    peer input_, output_, socket_;
    stream out_{input_, socket_, to_socket_}, in_{socket_, output_, to_output_};
    bool half_closed_ = false;
};

// No descriptor that is opened later may be taken for a standard stream.
[[nodiscard]] auto fill_streams() noexcept -> bool {
    for (;;) {
        unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
        if (!nothing) return false;
        if (nothing.get() > STDERR_FILENO) return true;
        (void)nothing.release();
    }
}

[[nodiscard]] auto connect_to(const char* path, fd_ref socket) noexcept -> int {
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto size = std::strlen(path);
    if (size == 0) return ENOENT;
    if (size >= sizeof address.sun_path) return ENAMETOOLONG;
    std::memcpy(address.sun_path, path, size);
    while (::connect(socket.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address) !=
           0)
        if (errno != EINTR) return errno;
    return 0;
}

} // namespace

auto main(int argc, char** argv) -> int {
    if (!fill_streams()) return fail("cannot open ", "/dev/null", errno);
    if (argc > 2) return fail("takes one argument at most, the path of a socket", "", EINVAL);
    const char* const path = argc == 2 ? argv[1] : usual_socket;
    if (::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return fail("signal", "", errno);
    const unique_fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (!socket) return fail("cannot make a socket", "", errno);
    if (const int os = connect_to(path, socket); os != 0)
        return fail("cannot connect to ", path, os);
    static bridge between{socket};
    return between.run();
}
