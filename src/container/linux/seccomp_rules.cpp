// The table. A call is in one group per program; the order of groups and names has no meaning.
//
// Refused calls answer EPERM where programs ask "may I?", and ENOSYS where they ask "is there one?"
// and have an older way. Constants are the ABI's own numbers, which both machines share, because
// the arm64 program is also built on other hosts.
#include "container/linux/seccomp_rules.hpp"
#include <algorithm>
#include <sys/socket.h>

namespace glove::container::seccomp {
namespace {

constexpr std::uint32_t whole = 0xffffffff;
constexpr condition any{0, 0, 0};

constexpr auto is(unsigned argument, std::uint32_t value) -> condition {
    return {argument, whole, value};
}
constexpr auto has(unsigned argument, std::uint32_t bit) -> condition {
    return {argument, bit, bit};
}

// A set-uid file that the agent leaves in a granted folder would run as the invoker's user for
// everybody on the host, long after the session.
constexpr std::uint32_t set_uid = 04000;
constexpr std::uint32_t set_gid = 02000;
constexpr auto set_id_mode(unsigned mode) {
    return std::array{clause{{has(mode, set_uid), any, any}, refuse(EPERM)},
                      clause{{has(mode, set_gid), any, any}, refuse(EPERM)}};
}
constexpr auto set_id_in_1 = set_id_mode(1);
constexpr auto set_id_in_2 = set_id_mode(2);

// Without one of these two flags the kernel never reads the mode, and libc passes rubbish there.
constexpr std::uint32_t creates = 0100;           // O_CREAT
constexpr std::uint32_t creates_temp = 020000000; // the bit of O_TMPFILE that is not O_DIRECTORY
constexpr auto set_id_creation(unsigned flags, unsigned mode) {
    return std::array{
        clause{{has(flags, creates), has(mode, set_uid), any}, refuse(EPERM)},
        clause{{has(flags, creates), has(mode, set_gid), any}, refuse(EPERM)},
        clause{{has(flags, creates_temp), has(mode, set_uid), any}, refuse(EPERM)},
        clause{{has(flags, creates_temp), has(mode, set_gid), any}, refuse(EPERM)},
    };
}
constexpr auto set_id_open = set_id_creation(1, 2);
constexpr auto set_id_openat = set_id_creation(2, 3);

// CLONE_NEWTIME has no bit here: in clone it is part of the exit signal's byte.
constexpr auto new_namespaces = std::to_array<clause>({
    {{has(0, 0x00020000), any, any}, refuse(EPERM)}, // mount
    {{has(0, 0x02000000), any, any}, refuse(EPERM)}, // cgroup
    {{has(0, 0x04000000), any, any}, refuse(EPERM)}, // uts
    {{has(0, 0x08000000), any, any}, refuse(EPERM)}, // ipc
    {{has(0, 0x10000000), any, any}, refuse(EPERM)}, // user
    {{has(0, 0x20000000), any, any}, refuse(EPERM)}, // pid
    {{has(0, 0x40000000), any, any}, refuse(EPERM)}, // net
});

constexpr auto far_reaching_ioctls = std::to_array<clause>({
    {{is(1, 0x5412), any, any}, refuse(EPERM)}, // TIOCSTI types into the operator's shell
    {{is(1, 0x541c), any, any}, refuse(EPERM)}, // TIOCLINUX pastes into it
    {{is(1, 0x540c), any, any}, refuse(EPERM)}, // TIOCEXCL locks the operator out of the terminal
    {{is(1, 0x5423), any, any}, refuse(EPERM)}, // TIOCSETD loads line disciplines
    // A btrfs snapshot of a granted subvolume holds what is hidden in it.
    {{is(1, 0x50009401), any, any}, refuse(EPERM)}, // BTRFS_IOC_SNAP_CREATE
    {{is(1, 0x50009417), any, any}, refuse(EPERM)}, // BTRFS_IOC_SNAP_CREATE_V2
});

// Whoever opens a file for which there is a lease waits for its holder, 45 seconds by default: the
// owner is enough to take one, through a read-only mount too.
constexpr auto leases = std::to_array<clause>({
    {{is(1, 1024), any, any}, refuse(EPERM)}, // F_SETLEASE
    {{is(1, 1040), any, any}, refuse(EPERM)}, // F_SETDELEG, since Linux 6.19; of directories too
});

// Where core files are handed to a program, the kernel starts that for every crash: outside, as
// root, and whatever the limit but for 1, which the agent has. Programs with secrets set it to 0
// and would not go on without: they are told that it was done.
constexpr std::uint32_t core_files = 4; // RLIMIT_CORE
constexpr auto null_pointer(unsigned argument) -> condition { return {argument, whole, 0, true}; }
constexpr auto setrlimit_of_core =
    std::to_array<clause>({{{is(0, core_files), any, any}, pretend}});
constexpr auto prlimit_of_core = std::to_array<clause>({
    {{is(1, core_files), null_pointer(2), any}, allow}, // only asks
    {{is(1, core_files), any, any}, pretend},
});

constexpr auto plain_personalities = std::to_array<clause>({
    {{is(0, 0), any, any}, allow},
    {{is(0, whole), any, any}, allow},   // asks for the current one
    {{is(0, 0x40000), any, any}, allow}, // ADDR_NO_RANDOMIZE: gdb sets it for what it starts
});

constexpr std::uint32_t type_bits = 0xf; // SOCK_CLOEXEC and SOCK_NONBLOCK are above
constexpr std::uint32_t raw = SOCK_RAW;
constexpr std::uint32_t tcp = 6;
constexpr std::uint32_t udp = 17;
constexpr std::uint32_t route = 0; // NETLINK_ROUTE
constexpr auto of_type(std::uint32_t type) -> condition { return {1, type_bits, type}; }

constexpr auto unix_sockets = std::to_array<clause>({
    {{is(0, AF_UNIX), any, any}, allow},
    {{is(0, AF_INET), any, any}, refuse(EACCES)},
    {{is(0, AF_INET6), any, any}, refuse(EACCES)},
});
// Protocols are named too: SCTP, DCCP, SMC, MPTCP and L2TP come in through AF_INET as well, and
// asking for one loads its module. EPROTONOSUPPORT makes Go fall back from MPTCP.
constexpr auto loopback_sockets = std::to_array<clause>({
    {{is(0, AF_UNIX), any, any}, allow},
    {{is(0, AF_INET), of_type(SOCK_STREAM), is(2, 0)}, allow},
    {{is(0, AF_INET), of_type(SOCK_STREAM), is(2, tcp)}, allow},
    {{is(0, AF_INET), of_type(SOCK_DGRAM), is(2, 0)}, allow},
    {{is(0, AF_INET), of_type(SOCK_DGRAM), is(2, udp)}, allow},
    {{is(0, AF_INET6), of_type(SOCK_STREAM), is(2, 0)}, allow},
    {{is(0, AF_INET6), of_type(SOCK_STREAM), is(2, tcp)}, allow},
    {{is(0, AF_INET6), of_type(SOCK_DGRAM), is(2, 0)}, allow},
    {{is(0, AF_INET6), of_type(SOCK_DGRAM), is(2, udp)}, allow},
    {{is(0, AF_NETLINK), is(2, route), any}, allow},
    {{is(0, AF_INET), of_type(raw), any}, refuse(EPERM)},
    {{is(0, AF_INET6), of_type(raw), any}, refuse(EPERM)},
    {{is(0, AF_INET), any, any}, refuse(EPROTONOSUPPORT)},
    {{is(0, AF_INET6), any, any}, refuse(EPROTONOSUPPORT)},
    {{is(0, AF_NETLINK), any, any}, refuse(EPROTONOSUPPORT)},
});
constexpr auto unix_pairs = std::to_array<clause>({{{is(0, AF_UNIX), any, any}, allow}});
// A stream pair is two pipes, which Node's spawn needs; a datagram socket could still send to a
// name.
constexpr auto stream_pairs =
    std::to_array<clause>({{{is(0, AF_UNIX), of_type(SOCK_STREAM), any}, allow}});

// libuv asks these two questions to learn what kind of stream it was handed.
constexpr std::uint32_t first_declared = 3;
constexpr auto declared_name = std::to_array<clause>({{{is(0, first_declared), any, any}, allow}});
constexpr auto declared_type =
    std::to_array<clause>({{{is(0, first_declared), is(1, SOL_SOCKET), is(2, SO_TYPE)}, allow}});

// One bit per row of `variants`.
constexpr unsigned in_offline = 1;
constexpr unsigned in_loopback = 2 | 4;
constexpr unsigned in_sealed_0 = 8;
constexpr unsigned in_sealed_1 = 16;
constexpr unsigned in_sealed = in_sealed_0 | in_sealed_1;
constexpr unsigned in_open = in_offline | in_loopback;
constexpr unsigned in_all = in_open | in_sealed;

constexpr std::span<const clause> by_number_alone;
struct group {
    std::string_view why;
    std::string_view calls; // names, separated by spaces
    decision otherwise;
    std::span<const clause> clauses = by_number_alone;
    unsigned programs = in_all;
};

constexpr auto table = std::to_array<group>({
    // -- decided by number alone, so that the kernel answers them from its bitmap
    // -------------------
    {"bytes of an open file",
     "read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 lseek sendfile "
     "splice "
     "tee vmsplice copy_file_range fsync fdatasync sync syncfs sync_file_range readahead fadvise64 "
     "fallocate ftruncate truncate flock close close_range dup dup2 dup3 pipe pipe2 "
     "cachestat",
     allow},
    {"waiting",
     "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
     "epoll_pwait2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime "
     "timerfd_gettime inotify_init inotify_init1 inotify_add_watch inotify_rm_watch",
     allow},
    {"names and attributes; the mount tree says which",
     "stat fstat lstat newfstatat statx access faccessat faccessat2 getcwd chdir fchdir getdents "
     "getdents64 rename renameat renameat2 rmdir link linkat unlink unlinkat symlink symlinkat "
     "readlink readlinkat chown fchown lchown fchownat umask utime utimes futimesat utimensat "
     "statfs "
     "fstatfs setxattr lsetxattr fsetxattr setxattrat getxattr lgetxattr fgetxattr getxattrat "
     "listxattr llistxattr flistxattr listxattrat removexattr lremovexattr fremovexattr "
     "removexattrat file_getattr file_setattr",
     allow},
    {"a handle cannot be opened, and its mount id is in /proc anyway", "name_to_handle_at", allow},
    {"reads the agent's own mount table", "statmount listmount", allow},
    {"memory",
     "mmap mprotect munmap brk mremap msync mincore madvise process_madvise process_mrelease mlock "
     "mlock2 munlock mlockall munlockall remap_file_pages pkey_mprotect pkey_alloc pkey_free "
     "membarrier memfd_create memfd_secret mseal map_shadow_stack",
     allow},
    {"NUMA placement: the JVM and databases ask for it",
     "set_mempolicy get_mempolicy set_mempolicy_home_node migrate_pages move_pages", allow},
    {"processes and threads",
     "fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid "
     "getpgrp "
     "setpgid getsid setsid set_tid_address set_robust_list get_robust_list rseq arch_prctl prctl "
     "restart_syscall futex futex_waitv futex_wake futex_wait futex_requeue getcpu",
     allow},
    {"signals",
     "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo "
     "rt_tgsigqueueinfo rt_sigsuspend sigaltstack kill tkill tgkill pause",
     allow},
    {"pidfds; the kernel applies its ptrace check", "pidfd_open pidfd_send_signal pidfd_getfd",
     allow},
    {"debuggers work; Glove's own processes in the namespace are not dumpable",
     "ptrace process_vm_readv process_vm_writev kcmp", allow},
    {"the kernel enters these for a host tracer's probes", "uretprobe uprobe", allow},
    {"identity: there is no capability to gain",
     "getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid "
     "setresuid setresgid setfsuid setfsgid setgroups capget capset",
     allow},
    {"scheduling and limits",
     "sched_yield sched_setparam sched_getparam sched_setscheduler sched_getscheduler "
     "sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_setaffinity "
     "sched_getaffinity sched_setattr sched_getattr getpriority setpriority ioprio_set ioprio_get "
     "getrlimit getrusage",
     allow},
    {"time",
     "nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times alarm getitimer "
     "setitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete",
     allow},
    {"System V and POSIX queues; the IPC namespace is private",
     "shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open "
     "mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr",
     allow},
    {"facts and random numbers", "uname sysinfo getrandom", allow},
    {"a program may confine itself further",
     "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self lsm_get_self_attr "
     "lsm_list_modules",
     allow},
    {"I/O on a socket that exists", "sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown",
     allow},

    // -- decided by arguments ---------------------------------------------------------------------
    {"a set-id bit", "chmod fchmod mkdir creat mknod", allow, set_id_in_1},
    {"a set-id bit", "fchmodat fchmodat2 mkdirat mknodat", allow, set_id_in_2},
    {"a set-id bit on a new file", "open", allow, set_id_open},
    {"a set-id bit on a new file", "openat", allow, set_id_openat},
    {"a new namespace", "clone", allow, new_namespaces},
    {"reaches the operator's terminal, or past a mask", "ioctl", allow, far_reaching_ioctls},
    {"holds up whoever opens the file on the host", "fcntl", allow, leases},
    {"the limit of core files stays as it is", "setrlimit", allow, setrlimit_of_core},
    {"the limit of core files stays as it is", "prlimit64", allow, prlimit_of_core},
    {"an execution domain with other rules", "personality", refuse(EPERM), plain_personalities},

    // -- there is none of it: the caller falls back
    // -------------------------------------------------
    {"namespace flags behind a pointer; libc falls back to clone", "clone3", absent},
    {"creation mode behind a pointer; callers fall back to openat", "openat2", absent},
    {"opens and connects past these rules; libuv and liburing's users fall back to epoll",
     "io_uring_setup io_uring_enter io_uring_register", absent},
    {"the older asynchronous I/O: one pool for the whole machine, and few need it",
     "io_setup io_destroy io_submit io_getevents io_cancel io_pgetevents", absent},
    {"gone from the kernel, or never in it",
     "uselib ustat sysfs _sysctl create_module get_kernel_syms query_module nfsservctl getpmsg "
     "putpmsg afs_syscall tuxcall security set_thread_area get_thread_area lookup_dcookie "
     "epoll_ctl_old epoll_wait_old vserver",
     absent},

    // -- refused
    // ------------------------------------------------------------------------------------
    {"the mount tree is the boundary",
     "mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig fsmount "
     "fspick mount_setattr",
     refuse(EPERM)},
    {"other namespaces", "unshare setns", refuse(EPERM)},
    {"opens a file by inode, past every mount", "open_by_handle_at", refuse(EPERM)},
    {"kernel attack surface that no agent needs", "bpf userfaultfd perf_event_open", refuse(EPERM)},
    {"keyrings are shared with the invoker's session", "add_key request_key keyctl", refuse(EPERM)},
    {"what it says of shared memory is kept without end, and counts to no limit of memory", "mbind",
     refuse(EPERM)},
    {"watches whole mounts", "fanotify_init fanotify_mark", refuse(EPERM)},
    {"16-bit segments serve DOS programs and kernel exploits", "modify_ldt", refuse(EPERM)},
    {"I/O ports", "iopl ioperm", refuse(EPERM)},
    {"a security module's label is the operator's", "lsm_set_self_attr", refuse(EPERM)},
    {"administers the host",
     "quotactl quotactl_fd swapon swapoff acct reboot sethostname setdomainname vhangup syslog "
     "init_module finit_module delete_module",
     refuse(EPERM)},
    {"the host's clock", "settimeofday clock_settime adjtimex clock_adjtime", refuse(EPERM)},
    {"nothing honest replaces the kernel", "kexec_load kexec_file_load", kill},

    // -- sockets, by tier
    // -----------------------------------------------------------------------------
    {"the offline tier has Unix sockets", "socket", refuse(EAFNOSUPPORT), unix_sockets, in_offline},
    {"TCP, UDP and a look at the interfaces", "socket", refuse(EAFNOSUPPORT), loopback_sockets,
     in_loopback},
    {"only Unix sockets come in pairs; others would load modules", "socketpair",
     refuse(EAFNOSUPPORT), unix_pairs, in_open},
    {"existing sockets: refusing these breaks Node, Bun, asyncio and Chromium",
     "connect bind listen accept accept4 getsockname getpeername setsockopt getsockopt",
     allow,
     {},
     in_open},
    {"sealed: nothing is reached by name",
     "socket connect bind listen accept accept4 getpeername setsockopt",
     refuse(EACCES),
     {},
     in_sealed},
    {"sealed: a stream pair is two pipes", "socketpair", refuse(EACCES), stream_pairs, in_sealed},
    {"sealed: nothing was handed over", "getsockname getsockopt", refuse(EACCES), {}, in_sealed_0},
    {"sealed: the descriptor handed over may be classified", "getsockname", refuse(EACCES),
     declared_name, in_sealed_1},
    {"sealed: the descriptor handed over may be classified", "getsockopt", refuse(EACCES),
     declared_type, in_sealed_1},
});

template<class Visit> void each_name(std::string_view names, Visit&& visit) {
    while (!names.empty()) {
        const auto end = std::min(names.find(' '), names.size());
        if (end != 0) visit(names.substr(0, end));
        names.remove_prefix(std::min(end + 1, names.size()));
    }
}

auto find(std::string_view name) -> const call_numbers* {
    const auto* const row = std::ranges::find(calls, name, &call_numbers::name);
    return row == calls.end() ? nullptr : row;
}

auto expand(std::size_t program) -> std::vector<rule> {
    std::vector<rule> rules;
    for (const auto& row : table)
        if ((row.programs >> program & 1) != 0)
            each_name(row.calls, [&](std::string_view name) {
                if (const auto* const call = find(name))
                    rules.push_back({*call, row.clauses, row.otherwise, row.why});
            });
    std::ranges::sort(rules, {}, [](const rule& r) { return find(r.call.name); });
    return rules;
}

void check_clause(const clause& c, std::string_view name, std::vector<std::string>& out) {
    unsigned seen = 0;
    for (const auto& test : c.all) {
        if (test.mask == 0) continue;
        if (test.argument >= 6 || (seen >> test.argument & 1) != 0)
            out.push_back(std::string{name} + ": a clause tests one argument twice");
        if ((test.value & ~test.mask) != 0)
            out.push_back(std::string{name} + ": a clause can never hold");
        seen |= 1U << test.argument;
    }
    if (seen == 0) out.push_back(std::string{name} + ": a clause without a condition");
}

} // namespace

auto rules_of(const variant& program) -> const std::vector<rule>& {
    static const auto expanded = [] {
        std::array<std::vector<rule>, variants.size()> all;
        for (std::size_t i = 0; i != all.size(); ++i) all[i] = expand(i);
        return all;
    }();
    const auto* const row = std::ranges::find(variants, program.name, &variant::name);
    return expanded.at(static_cast<std::size_t>(row - variants.begin()));
}

auto faults() -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& row : table)
        each_name(row.calls, [&](std::string_view name) {
            if (find(name) == nullptr) out.push_back(std::string{name} + ": not a call");
            for (const auto& c : row.clauses) check_clause(c, name, out);
        });
    for (const auto& program : variants)
        for (const auto& call : calls) {
            const auto times = std::ranges::count(rules_of(program), call.name,
                                                  [](const rule& r) { return r.call.name; });
            if (times != 1)
                out.push_back(std::string{call.name} + ": " + std::to_string(times) + " rules in " +
                              std::string{program.name});
        }
    for (const auto on : machines)
        for (const auto& call : calls) {
            const auto number = on == machine::x86_64 ? call.x86_64 : call.arm64;
            const auto same = [&](const call_numbers& other) {
                return number == (on == machine::x86_64 ? other.x86_64 : other.arm64);
            };
            if (number != no_number && std::ranges::count_if(calls, same) != 1)
                out.push_back(std::string{call.name} + ": its number has two names");
        }
    return out;
}

} // namespace glove::container::seccomp
