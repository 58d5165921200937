// One process is signalled by its pidfd. A group can only be reached by number, so it is not when
// the number may have become somebody else's.
#include "sys/syscalls.hpp"
#include <glove/sys/child_process.hpp>
#include <poll.h>
#include <sys/wait.h>

namespace glove::sys {

child_process::~child_process() {
    if (!pidfd_) return;
    (void)signal(SIGKILL);
    (void)wait();
}

auto child_process::signal(int number) const -> result<> {
    if (pidfd_send_signal(pidfd_.get(), number) == 0) return {};
    // A child takes signals after its end, until it is reaped, and whoever signals knows no more.
    if (elsewhere_ && errno == ESRCH) return {};
    return fail_os("child.signal");
}

auto child_process::signal_group(int number) const -> result<> {
    if (!pidfd_ || leads_ <= 1)
        return fail(errc::wrong_state, "child.signal_group", "it leads no group, or was reaped");
    if (::kill(-leads_, number) != 0) return fail_os("child.signal_group");
    return {};
}

namespace {

// A pidfd is readable from the end on, whoever has reaped.
[[nodiscard]] auto await_end(fd_ref pidfd, int patience) -> result<bool> {
    ::pollfd end{pidfd.get(), POLLIN, 0};
    int got = 0;
    do got = ::poll(&end, 1, patience);
    while (got < 0 && errno == EINTR);
    if (got < 0) return fail_os("child.wait");
    if ((end.revents & POLLNVAL) != 0) return fail_os("child.wait", EBADF);
    return got == 1;
}

} // namespace

auto child_process::has_ended() const -> result<bool> {
    if (elsewhere_) return await_end(pidfd_, 0);
    ::siginfo_t info{};
    while (::waitid(P_PIDFD, static_cast<::id_t>(pidfd_.get()), &info,
                    WEXITED | WNOHANG | WNOWAIT) != 0)
        if (errno != EINTR) return fail_os("child.has_ended");
    return info.si_pid != 0;
}

auto child_process::wait() -> result<::siginfo_t> {
    ::siginfo_t info{};
    if (elsewhere_) {
        GLOVE_CHECK(await_end(pidfd_, -1));
        pidfd_ = unique_fd{};
        return info;
    }
    while (::waitid(P_PIDFD, static_cast<::id_t>(pidfd_.get()), &info, WEXITED) != 0)
        if (errno != EINTR) return fail_os("child.wait");
    pidfd_ = unique_fd{};
    return info;
}

} // namespace glove::sys
