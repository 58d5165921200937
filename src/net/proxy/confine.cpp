// The filter is a list that is read from top to bottom: what is not on it answers EPERM.
#include "net/proxy/confine.hpp"
#include "sys/seccomp.hpp"
#include "sys/syscalls.hpp"
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <glove/sys/fd.hpp>
#include <glove/sys/files.hpp>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <vector>

namespace glove::net::proxy {

namespace {

using sys::seccomp::argument;
using sys::seccomp::machine;

class program {
public:
    program() {
        load(offsetof(::seccomp_data, arch));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0));
        answer(SECCOMP_RET_KILL_PROCESS);
        load(offsetof(::seccomp_data, nr));
    }
    void allow(long number) {
        unless_equal(number, 1);
        answer(SECCOMP_RET_ALLOW);
    }
    // With none of `bits` in argument `index`.
    void allow_without(long number, unsigned index, std::uint32_t bits) {
        unless_equal(number, 4);
        load(argument(index));
        add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
        answer(refusal);
        answer(SECCOMP_RET_ALLOW);
    }
    // With one of `values` in argument `index`.
    void allow_values(long number, unsigned index, const std::vector<std::uint32_t>& values) {
        unless_equal(number, 2 + 2 * values.size());
        load(argument(index));
        for (const auto value : values) {
            unless_equal(value, 1);
            answer(SECCOMP_RET_ALLOW);
        }
        answer(refusal);
    }
    // TCP, UDP, and the kernel's list of interfaces.
    void allow_sockets() {
        constexpr std::uint32_t type_mask = 0xf;
        unless_equal(SYS_socket, 16);
        load(argument(0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 10, 0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 11));
        load(argument(1));
        add(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, type_mask));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 1, 0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_DGRAM, 0, 7));
        // Other protocols of these types, such as MPTCP, are more of the kernel than is needed.
        load(argument(2));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, 0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 3, 0));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 2, 3));
        load(argument(2));
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ROUTE, 0, 1));
        answer(SECCOMP_RET_ALLOW);
        answer(refusal);
    }
    [[nodiscard]] auto install() -> int {
        answer(refusal);
        const ::sock_fprog code{static_cast<unsigned short>(code_.size()), code_.data()};
        return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code) == 0 ? 0 : errno;
    }

private:
    static constexpr std::uint32_t refusal = SECCOMP_RET_ERRNO | EPERM;
    void add(::sock_filter instruction) { code_.push_back(instruction); }
    void load(std::size_t offset) {
        add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
    }
    void answer(std::uint32_t what) { add(BPF_STMT(BPF_RET | BPF_K, what)); }
    // Goes on with the next instruction when equal, else `skip` instructions further.
    void unless_equal(long value, std::size_t skip) {
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(value), 0,
                     static_cast<std::uint8_t>(skip)));
    }
    std::vector<::sock_filter> code_;
};

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
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
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
#ifdef __SANITIZE_ADDRESS__
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
    program filter;
    constexpr std::uint32_t writing = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | O_TMPFILE;
    for (const auto number : plain_calls) filter.allow(number);
    filter.allow_sockets();
    // O_TMPFILE holds O_DIRECTORY, which is harmless.
    filter.allow_without(SYS_openat, 2, writing & ~static_cast<std::uint32_t>(O_DIRECTORY));
#ifdef SYS_open
    filter.allow_without(SYS_open, 1, writing & ~static_cast<std::uint32_t>(O_DIRECTORY));
#endif
    filter.allow_without(SYS_mmap, 2, PROT_EXEC);
    filter.allow_without(SYS_mprotect, 2, PROT_EXEC);
    filter.allow_values(SYS_fcntl, 1,
                        {F_GETFL, F_SETFL, F_GETFD, F_SETFD, F_SETPIPE_SZ, F_GETPIPE_SZ});
    filter.allow_values(SYS_ioctl, 1, {FIONBIO, FIONREAD});
    if (const int os = filter.install(); os != 0) return fail_os("egress.filter", os);
    return {};
}

// What the running kernel can refuse: more with each version of the interface.
[[nodiscard]] auto handled_access(int version) -> std::uint64_t {
    constexpr std::uint64_t first = (1ULL << 13) - 1;
    auto out = first;
    if (version >= 2) out |= 1ULL << 13; // linking between directories
    if (version >= 3) out |= 1ULL << 14; // truncating
    if (version >= 5) out |= 1ULL << 15; // device controls
    return out;
}

void let_read(int ruleset, const std::string& path, std::uint64_t access) {
    const sys::unique_fd place{::open(path.c_str(), O_PATH | O_CLOEXEC)};
    if (!place) return; // this host has none
    ::landlock_path_beneath_attr rule{};
    rule.allowed_access = access;
    rule.parent_fd = place.get();
    (void)sys::landlock_add_path(ruleset, rule);
}

// Where it is a link to somewhere else, that is where the resolver's settings are.
[[nodiscard]] auto settings_directory() -> std::string {
    char* const real = ::realpath("/etc/resolv.conf", nullptr);
    if (real == nullptr) return "/etc";
    std::string out = sys::parent_of(real);
    std::free(real);
    return out == "/" ? "/etc" : out;
}

[[nodiscard]] auto restrict_files() -> result<> {
    const int version = sys::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version <= 0) return {}; // this kernel has none
    ::landlock_ruleset_attr wanted{};
    wanted.handled_access_fs = handled_access(version);
    const sys::unique_fd ruleset{
        sys::landlock_create_ruleset(&wanted, sizeof wanted.handled_access_fs, 0)};
    if (!ruleset) return fail_os("egress.landlock");
    const std::string places[] = {"/etc", "/run/systemd/resolve", "/run/resolvconf",
                                  "/run/NetworkManager", settings_directory()};
    for (const auto& path : places)
        let_read(ruleset.get(), path, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
    let_read(ruleset.get(), "/dev/urandom", LANDLOCK_ACCESS_FS_READ_FILE);
    if (sys::landlock_restrict_self(ruleset.get()) != 0) return fail_os("egress.landlock");
    return {};
}

} // namespace

auto harden() -> result<> {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::prctl(PR_SET_DUMPABLE, 0) != 0)
        return fail_os("egress.harden");
    ::rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return fail_os("egress.harden");
    files.rlim_cur = files.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return fail_os("egress.harden");
    const ::rlimit none{0, 0};
    if (::setrlimit(RLIMIT_CORE, &none) != 0) return fail_os("egress.harden");
    if (::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return fail_os("egress.harden");
    return {};
}

auto confine() -> result<> {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_os("egress.no_new_privileges");
    GLOVE_CHECK(restrict_files());
    if (sys::drop_capabilities() != 0) return fail_os("egress.capabilities");
    return install_filter();
}

} // namespace glove::net::proxy
