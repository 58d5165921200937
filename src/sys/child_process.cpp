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

auto child_process::wait() -> result<::siginfo_t> {
    ::siginfo_t info{};
    while (::waitid(P_PIDFD, static_cast<::id_t>(pidfd_.get()), &info, WEXITED) != 0)
        if (errno != EINTR) return fail_os("child.wait");
    pidfd_ = unique_fd{};
    return info;
}

} // namespace glove::sys
