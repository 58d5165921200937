// glove-ssh-agent: what the agent of one run has for an ssh agent. Started by `glove`, never by
// people.
//
// Guarantees: it reads no argument and no environment. It confines itself before the first byte of
// the agent is read: then it can accept on the one socket that it is handed, read and write what it
// accepted, and speak with its starter; it can open no file, make no socket and start no program.
// It ends with its starter.
#include "ssh/broker/broker.hpp"
#include "sys/confine.hpp"
#include "sys/syscalls.hpp"
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/socket.h>

namespace {

using namespace glove;

constexpr long calls[] = {
    SYS_recvfrom,       SYS_recvmsg,         SYS_sendto, SYS_accept4,    SYS_close,
    SYS_ppoll,          SYS_clock_gettime,   SYS_futex,  SYS_getrandom,  SYS_rt_sigreturn,
    SYS_rt_sigprocmask, SYS_restart_syscall, SYS_exit,   SYS_exit_group,
#ifdef GLOVE_SANITIZED
    SYS_sigaltstack, // asked for by the sanitizer at every end
#endif
};

[[nodiscard]] auto confine() -> result<> {
    GLOVE_CHECK(sys::harden("ssh.harden"));
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_os("ssh.harden");
    GLOVE_CHECK(sys::restrict_files("ssh.landlock", {}));
    if (sys::drop_capabilities() != 0) return fail_os("ssh.capabilities");
    sys::call_filter filter;
    for (const auto number : calls) filter.allow(number);
    filter.allow_memory();
    return filter.install("ssh.filter");
}

[[nodiscard]] auto serve() -> int {
    if (::fcntl(ssh::broker_control, F_SETFD, FD_CLOEXEC) != 0) return 2;
    sys::unique_fd control{ssh::broker_control};
    (void)sys::close_range(ssh::broker_control + 1, ~0U, 0);
    // Room for the longest request; where the system allows less, a long one is refused.
    constexpr int room = 2 * static_cast<int>(ssh::longest_news);
    (void)::setsockopt(control.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (const auto confined = confine(); !confined) {
        const auto words = ssh::plain_news(ssh::broker_news::failed, confined.error().os);
        (void)::send(control.get(), words.data(), words.size(), MSG_NOSIGNAL);
        return 1;
    }
    ssh::broker{std::move(control)}.run();
    return 0;
}

} // namespace

auto main() -> int {
    try {
        ::_exit(serve());
    } catch (...) {
        ::_exit(3);
    }
}
