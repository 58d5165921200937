// One process is signalled by its pidfd. A group can only be reached by number, so it is not when
// the number may have become somebody else's.
#include "sys/syscalls.hpp"
#include <glove/sys/child_process.hpp>
#include <sys/wait.h>

namespace glove::sys {

child_process::~child_process() {
    if (!pidfd_) return;
    (void)signal(SIGKILL);
    (void)wait();
}

auto child_process::signal(int number) const -> result<> {
    if (pidfd_send_signal(pidfd_.get(), number) != 0) return fail_os("child.signal");
    return {};
}

auto child_process::signal_group(int number) const -> result<> {
    if (!pidfd_ || leads_ <= 1)
        return fail(errc::wrong_state, "child.signal_group", "it leads no group, or was reaped");
    if (::kill(-leads_, number) != 0) return fail_os("child.signal_group");
    return {};
}

auto child_process::has_ended() const -> result<bool> {
    ::siginfo_t info{};
    while (::waitid(P_PIDFD, static_cast<::id_t>(pidfd_.get()), &info,
                    WEXITED | WNOHANG | WNOWAIT) != 0)
        if (errno != EINTR) return fail_os("child.has_ended");
    return info.si_pid != 0;
}

auto child_process::wait() -> result<::siginfo_t> {
    ::siginfo_t info{};
    while (::waitid(P_PIDFD, static_cast<::id_t>(pidfd_.get()), &info, WEXITED) != 0)
        if (errno != EINTR) return fail_os("child.wait");
    pidfd_ = unique_fd{};
    return info;
}

} // namespace glove::sys
