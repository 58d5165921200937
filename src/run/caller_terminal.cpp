// Finds the terminal by its device number, so that /dev/tty and its own name are one.
#include "run/caller_terminal.hpp"
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::run {

namespace {

[[nodiscard]] auto device_of(int fd) -> std::optional<unsigned> {
    unsigned device = 0;
    if (::isatty(fd) != 1 || ::ioctl(fd, TIOCGDEV, &device) != 0) return std::nullopt;
    return device;
}

[[nodiscard]] auto path_of(int fd) -> std::string { return "/proc/self/fd/" + std::to_string(fd); }

// By its name as our controlling terminal, which every user may open, or by the stream itself. The
// device is compared: a name can lead to another terminal, and that of a master makes a new one.
[[nodiscard]] auto open_own(int stream, unsigned device, int access) -> sys::unique_fd {
    for (const auto& path : {std::string{"/dev/tty"}, path_of(stream)}) {
        sys::unique_fd fd{::open(path.c_str(), access | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)};
        if (fd && device_of(fd.get()) == device) return fd;
    }
    return {};
}

void set_modes(int fd, const ::termios& modes) {
    // Not TCSADRAIN: a terminal that takes no output must not hold up the end of a run.
    while (::tcsetattr(fd, TCSANOW, &modes) != 0 && errno == EINTR) continue;
}

} // namespace

auto caller_terminal::find() -> std::optional<caller_terminal> {
    for (int stream = 0; stream < 3; ++stream) {
        const auto device = device_of(stream);
        if (!device) continue;
        if (auto own = open_own(stream, *device, O_RDWR))
            return caller_terminal{std::move(own), *device, false};
        sys::unique_fd shared{::fcntl(stream, F_DUPFD_CLOEXEC, 3)};
        if (shared) return caller_terminal{std::move(shared), *device, true};
    }
    return std::nullopt;
}

caller_terminal::caller_terminal(caller_terminal&& other) noexcept
    : fd_{std::move(other.fd_)}, device_{other.device_}, may_block_{other.may_block_},
      before_{std::exchange(other.before_, std::nullopt)} {}

auto caller_terminal::is(int stream) const -> bool { return device_of(stream) == device_; }

auto caller_terminal::in_foreground() const -> bool {
    const auto group = ::tcgetpgrp(fd_.get());
    return group < 0 || group == ::getpgrp();
}

auto caller_terminal::modes() const -> std::optional<::termios> {
    ::termios out{};
    if (::tcgetattr(fd_.get(), &out) != 0) return std::nullopt;
    return out;
}

auto caller_terminal::size() const -> std::optional<::winsize> {
    ::winsize out{};
    if (::ioctl(fd_.get(), TIOCGWINSZ, &out) != 0) return std::nullopt;
    return out;
}

auto caller_terminal::take() -> bool {
    if (!in_foreground()) return false;
    auto raw = modes();
    if (!raw) return false;
    if (!before_) before_ = raw;
    ::cfmakeraw(&*raw);
    set_modes(fd_.get(), *raw);
    return true;
}

// Whoever has taken the foreground meanwhile has modes of its own.
void caller_terminal::give_back() {
    if (before_ && in_foreground()) set_modes(fd_.get(), *before_);
    before_.reset();
}

auto reopen_terminal(int stream, int access) -> sys::unique_fd {
    const auto device = device_of(stream);
    return device ? open_own(stream, *device, access) : sys::unique_fd{};
}

auto reopen_pipe(int stream, int access) -> sys::unique_fd {
    struct ::stat found{};
    if (::fstat(stream, &found) != 0 || !S_ISFIFO(found.st_mode)) return {};
    return sys::unique_fd{::open(path_of(stream).c_str(), access | O_NONBLOCK | O_CLOEXEC)};
}

namespace {

// Takes the signal as if nobody had ever asked for another effect of it; `send` raises it.
[[nodiscard]] auto stop_by(int number, void (*send)(int)) -> bool {
    struct ::sigaction standard{};
    struct ::sigaction before{};
    if (::sigaction(number, nullptr, &before) != 0) return false;
    if (number == SIGTSTP && before.sa_handler == SIG_IGN) return false; // as the caller asked
    ::sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, number);
    ::sigset_t mask;
    if (::sigprocmask(SIG_BLOCK, &one, &mask) != 0) return false;
    (void)::sigaction(number, &standard, nullptr);
    send(number);
    (void)::sigprocmask(SIG_UNBLOCK, &one, nullptr); // here it stops, and goes on
    (void)::sigprocmask(SIG_SETMASK, &mask, nullptr);
    (void)::sigaction(number, &before, nullptr);
    // The inbox has SIGCONT blocked, and a stop forgets older ones: so this one is the shell's.
    ::sigset_t go_on;
    ::sigemptyset(&go_on);
    ::sigaddset(&go_on, SIGCONT);
    const ::timespec at_once{};
    return ::sigtimedwait(&go_on, nullptr, &at_once) == SIGCONT;
}

} // namespace

auto stop_job(int number) -> bool {
    return stop_by(number, [](int all) { (void)::kill(0, all); });
}

void stop_self(int number) {
    (void)stop_by(number, [](int one) { (void)::kill(::getpid(), one); });
}

} // namespace glove::run
