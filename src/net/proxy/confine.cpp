// The filter is a list that is read from top to bottom: what is not on it answers EPERM.
#include "net/proxy/confine.hpp"
#include "sys/confine.hpp"
#include "sys/syscalls.hpp"
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace glove::net::proxy {

namespace {

// TCP, UDP, and the kernel's list of interfaces.
void allow_sockets(sys::call_filter& filter) {
    constexpr std::uint32_t type_mask = 0xf;
    filter.unless_equal(SYS_socket, 16);
    filter.load_argument(0);
    filter.append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 10, 0));
    filter.append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0));
    filter.append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 11));
    filter.load_argument(1);
    filter.append(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, type_mask));
    filter.append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 1, 0));
    filter.append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_DGRAM, 0, 7));
    // Other protocols of these types, such as MPTCP, are more of the kernel than is needed.
    filter.load_argument(2);
    filter.append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, 0));
    filter.append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 3, 0));
    filter.append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 2, 3));
    filter.load_argument(2);
    filter.append(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ROUTE, 0, 1));
    filter.answer(SECCOMP_RET_ALLOW);
    filter.answer(sys::call_filter::refusal);
}

constexpr long plain_calls[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_close,
    SYS_splice,
    SYS_lseek,
    SYS_pipe2,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_sendto,
    SYS_sendmsg,
    SYS_connect,
    SYS_bind,
    SYS_accept4,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_shutdown,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_timerfd_settime,
    SYS_eventfd2,
    SYS_ppoll,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_clock_nanosleep,
    SYS_futex,
    SYS_sched_yield,
    SYS_getrandom,
    SYS_uname,
    SYS_getpid,
    SYS_gettid,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_rt_sigreturn,
    SYS_rt_sigprocmask,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#ifdef GLOVE_SANITIZED
    SYS_sigaltstack, // asked for by the sanitizer at every end
#endif
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
    SYS_poll,
    SYS_time,
    SYS_stat,
    SYS_access,
#endif
};

[[nodiscard]] auto install_filter() -> result<> {
    sys::call_filter filter;
    constexpr std::uint32_t writing = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | O_TMPFILE;
    for (const auto number : plain_calls) filter.allow(number);
    allow_sockets(filter);
    // O_TMPFILE holds O_DIRECTORY, which is harmless.
    filter.allow_without(SYS_openat, 2, writing & ~static_cast<std::uint32_t>(O_DIRECTORY));
#ifdef SYS_open
    filter.allow_without(SYS_open, 1, writing & ~static_cast<std::uint32_t>(O_DIRECTORY));
#endif
    filter.allow_memory();
    filter.allow_values(SYS_fcntl, 1,
                        {F_GETFL, F_SETFL, F_GETFD, F_SETFD, F_SETPIPE_SZ, F_GETPIPE_SZ});
    filter.allow_values(SYS_ioctl, 1, {FIONBIO, FIONREAD});
    return filter.install("egress.filter");
}

// Where it is a link to somewhere else, that is where the resolver's settings are.
[[nodiscard]] auto settings_directory() -> std::string {
    char* const real = ::realpath("/etc/resolv.conf", nullptr);
    if (real == nullptr) return "/etc";
    std::string out = sys::parent_of(real);
    std::free(real);
    return out == "/" ? "/etc" : out;
}

[[nodiscard]] auto restrict_to_settings() -> result<> {
    const std::string places[] = {"/etc",
                                  "/run/systemd/resolve",
                                  "/run/resolvconf",
                                  "/run/NetworkManager",
                                  settings_directory(),
                                  "/dev/urandom"};
    return sys::restrict_files("egress.landlock", places);
}

} // namespace

auto harden() -> result<> {
    GLOVE_CHECK(sys::harden("egress.harden"));
    // The session or run that it serves may still be at its last connections.
    GLOVE_CHECK(sys::block_farewells("egress.harden"));
    ::rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return fail_os("egress.harden");
    files.rlim_cur = files.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return fail_os("egress.harden");
    return {};
}

auto confine() -> result<> {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_os("egress.no_new_privileges");
    GLOVE_CHECK(restrict_to_settings());
    if (sys::drop_capabilities() != 0) return fail_os("egress.capabilities");
    return install_filter();
}

} // namespace glove::net::proxy
