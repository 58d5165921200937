// The private terminal inside: makes it, hands its master out, and reports to the supervisor as a
// shell would be told of its job.
//
// Guarantees: nothing inside keeps the master; at most one stop is on its way to the supervisor, so
// an agent that stops and goes on without end can fill no channel.
#include "container/linux/steps.hpp"
#include "sys/syscalls.hpp"
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace glove::container {

namespace {

[[nodiscard]] auto plain(news what, int value, const setup_state& state) noexcept -> news_message {
    return {.what = what,
            .step = 0,
            .where = call::none,
            .value = value,
            .index = failure::no_index,
            .armed = state.armed};
}

// Frees the number that `fd` has, which may be one of the fixed ones.
[[nodiscard]] auto move_up(int fd) noexcept -> int {
    if (fd < 0) return fd;
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, terminal_descriptor + 1);
    const int os = errno;
    (void)sys::close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0);
    errno = os;
    return moved;
}

[[nodiscard]] auto set_modes(const terminal_setup& wish) noexcept -> bool {
    auto modes = wish.modes;
    if (!wish.has_modes && ::tcgetattr(terminal_descriptor, &modes) != 0) return false;
    if (wish.quiet) modes.c_lflag |= TOSTOP;
    return ::tcsetattr(terminal_descriptor, TCSANOW, &modes) == 0;
}

[[nodiscard]] auto set_up_terminal(const terminal_setup& wish) noexcept -> failure {
    if (!set_modes(wish)) return outcome(false, call::ioctl);
    if (::ioctl(terminal_descriptor, TIOCSWINSZ, &wish.size) != 0 ||
        ::ioctl(terminal_descriptor, TIOCSCTTY, 0) != 0)
        return outcome(false, call::ioctl);
    for (int stream = 0; stream < 3; ++stream)
        if (wish.streams[static_cast<std::size_t>(stream)] &&
            ::dup2(terminal_descriptor, stream) < 0)
            return outcome(false, call::dup2);
    return {};
}

} // namespace

// A terminal of the namespace's own devpts, which the session gets as its controlling one. Init
// keeps it, so that its master lasts until the namespace is empty.
failure open_terminal(setup_state& state) noexcept {
    const auto& wish = state.plan->terminal;
    if (!wish.wanted) return {};
    const int master = move_up(::open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (master < 0) return outcome(false, call::openat);
    const int locked = 0;
    if (::ioctl(master, TIOCSPTLCK, &locked) != 0) return outcome(false, call::ioctl);
    const int opened = move_up(::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (opened < 0) return outcome(false, call::ioctl);
    if (::dup3(opened, terminal_descriptor, O_CLOEXEC) < 0) return outcome(false, call::dup3);
    if (const auto bad = set_up_terminal(wish); bad.os != 0) return bad;
    if (const auto bad = tell_with(master, plain(news::terminal, 0, state)); bad.os != 0)
        return bad;
    return outcome(sys::close_range(terminal_descriptor + 1, ~0U, 0) == 0, call::close_range);
}

// Init's own group stands in for nobody: what reads the terminal then is stopped, and shows.
void lend_terminal(setup_state& state, bool to_foreground) noexcept {
    const auto now = ::tcgetpgrp(terminal_descriptor);
    const auto own = ::getpgrp();
    if (now != own && now > 0) state.foreground = now;
    const auto wanted = to_foreground ? state.foreground : own;
    // A group that has ended meanwhile cannot have it; the agent's own can.
    if (wanted > 0 && ::tcsetpgrp(terminal_descriptor, wanted) == 0) return;
    (void)::tcsetpgrp(terminal_descriptor, ::getpgid(state.agent));
}

// On a terminal the supervisor stops with the agent, as the caller's shell expects of a job.
void note_stop(setup_state& state, int number) noexcept {
    if (state.held || !state.plan->terminal.wanted) return;
    if (state.stop_told) {
        state.stop_untold = number;
        return;
    }
    state.stop_told = true;
    tell(plain(news::stopped, number, state));
}

void note_heard(setup_state& state) noexcept {
    state.stop_told = false;
    if (const int number = std::exchange(state.stop_untold, 0); number != 0)
        note_stop(state, number);
}

// What stopped before is over. Keys must not come before this: one that stops the agent would be
// forgotten by what makes it go on.
void note_going_on(setup_state& state) noexcept {
    state.stop_told = false;
    state.stop_untold = 0;
    tell(plain(news::went_on, 0, state));
}

} // namespace glove::container
