// The filter in the kernel. It cannot be taken off, so each case spends a process; each refusal has
// an allowed twin. As root every case runs twice: with all capabilities, so that it is the filter
// that refuses, and as nobody, because an agent is nobody.
#include "support/filtered_process.hpp"
#include <csignal>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <string_view>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace glove::container::seccomp {
namespace {

// Register contents, whatever type the constant has.
template<class... Value> constexpr auto words(Value... value) {
    return std::array{static_cast<std::uint64_t>(value)...};
}

// What a call that glibc's headers may not name yet is numbered.
constexpr long nr_fchmodat2 = 452;
constexpr long nr_mseal = 462;
constexpr long nr_open_tree_attr = 467;
constexpr long nr_lsm_set_self_attr = 460;

// Capabilities that really are there: in a container root may lack the one a twin needs.
auto all_powerful() -> bool {
    ::__user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<::__user_cap_data_struct, 2> data{};
    return ::syscall(SYS_capget, &header, data.data()) == 0 &&
           (data[0].effective >> CAP_SYS_ADMIN & 1) != 0;
}

struct call {
    long number;
    std::array<std::uint64_t, 5> with{};
    [[nodiscard]] auto operator()() const -> long {
        const auto value = ::syscall(number, with[0], with[1], with[2], with[3], with[4]);
        if (number == SYS_clone && value == 0) ::_exit(0);
        return value;
    }
};
auto at(const void* address) -> std::uint64_t { return reinterpret_cast<std::uint64_t>(address); }
constexpr auto here = static_cast<std::uint64_t>(AT_FDCWD);
constexpr std::uint64_t high = 1UL << 32;
std::array<int, 4> numbers{};
constexpr ::timespec short_time{0, 1};

struct argument_case {
    std::string subject;
    setup how;
    call refused;
    int error;
    call twin;
    int twin_error = 0; // what the kernel itself says to the twin
};

void add_set_id(std::vector<argument_case>& out) {
    for (const auto bit : words(04000, 02000)) {
        const auto name = bit == 04000 ? std::string{"set-uid: "} : std::string{"set-gid: "};
        const auto both = [&](const char* what, const auto& make, int twin_error = 0) {
            out.push_back({name + what, offline, make(0600 | bit), EPERM, make(0600U), twin_error});
            out.push_back({name + what + " with rubbish above", offline, make(0600 | bit | high),
                           EPERM, make(0600 | high), twin_error});
        };
        using mode = std::uint64_t;
        both("fchmod", [](mode m) { return call{SYS_fchmod, {5, m}}; });
        both("fchmodat", [](mode m) { return call{SYS_fchmodat, {here, at("file"), m}}; });
        both("fchmodat2", [](mode m) { return call{nr_fchmodat2, {here, at("file"), m, 0}}; });
        both("mkdirat", [](mode m) { return call{SYS_mkdirat, {here, at("dir"), m}}; });
        both("mknodat", [](mode m) {
            return call{SYS_mknodat, {here, at("pipe"), (m & 0xffff0fff) | S_IFIFO, 0}};
        });
        both("openat O_CREAT",
             [](mode m) { return call{SYS_openat, {here, at("new"), O_CREAT | O_WRONLY, m}}; });
        both("openat O_TMPFILE",
             [](mode m) { return call{SYS_openat, {here, at("."), O_TMPFILE | O_WRONLY, m}}; });
        out.push_back({name + "openat that creates nothing has no mode",
                       offline,
                       {SYS_openat, {here, at("new"), O_CREAT | O_WRONLY, bit}},
                       EPERM,
                       {SYS_openat, {here, at("file"), O_RDONLY, bit}}});
#ifdef SYS_open
        both("chmod", [](mode m) { return call{SYS_chmod, {at("file"), m}}; });
        both("mkdir", [](mode m) { return call{SYS_mkdir, {at("dir"), m}}; });
        both("mknod",
             [](mode m) { return call{SYS_mknod, {at("pipe"), (m & 0xffff0fff) | S_IFIFO, 0}}; });
        both("creat", [](mode m) { return call{SYS_creat, {at("new"), m}}; });
        both("open O_CREAT",
             [](mode m) { return call{SYS_open, {at("new"), O_CREAT | O_WRONLY, m}}; });
        both("open O_TMPFILE",
             [](mode m) { return call{SYS_open, {at("."), O_TMPFILE | O_WRONLY, m}}; });
#endif
    }
}

void add_processes(std::vector<argument_case>& out) {
    for (const auto flag : words(CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                 CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET)) {
        out.push_back({"clone with a namespace flag",
                       offline,
                       {SYS_clone, {flag | SIGCHLD}},
                       EPERM,
                       {SYS_clone, {SIGCHLD}}});
        out.push_back({"clone with a namespace flag and rubbish above",
                       offline,
                       {SYS_clone, {flag | SIGCHLD | high}},
                       EPERM,
                       {SYS_clone, {SIGCHLD | high}}});
    }
    for (const auto request : words(0x5412, 0x541c, 0x5423, 0x540c, 0x50009401, 0x50009417))
        for (const auto above : words(0UL, high, ~0UL << 32))
            out.push_back({"ioctl " + std::to_string(request),
                           offline,
                           {SYS_ioctl, {5, request | above, at("x")}},
                           EPERM,
                           {SYS_ioctl, {5, 0x5401 | above, at("x")}},
                           ENOTTY});
    for (const auto kind : words(F_RDLCK, F_WRLCK))
        for (const auto above : words(0UL, high))
            out.push_back({"fcntl: a lease",
                           offline,
                           {SYS_fcntl, {5, F_SETLEASE | above, kind}},
                           EPERM,
                           {SYS_fcntl, {5, F_GETLEASE | above}}});
    for (const auto domain : words(0x8UL, 0x20000UL, 0x400000UL, 8UL | high))
        for (const auto plain : words(0x0ULL, 0x40000ULL, 0xffffffffULL, ~0ULL))
            out.push_back({"personality",
                           offline,
                           {SYS_personality, {domain}},
                           EPERM,
                           {SYS_personality, {plain}}});
}

void add_sockets(std::vector<argument_case>& out) {
    const call unix_stream{SYS_socket, {AF_UNIX, SOCK_STREAM, 0}};
    const call tcp{SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0}};
    const call udp6{SYS_socket, {AF_INET6, SOCK_DGRAM, IPPROTO_UDP}};
    const call pair{SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, at(numbers.data())}};
    for (const auto family : words(AF_INET, AF_INET6))
        for (const auto above : words(0UL, high))
            out.push_back({"offline: an internet socket",
                           offline,
                           {SYS_socket, {family | above, SOCK_STREAM, 0}},
                           EACCES,
                           unix_stream});
    for (const auto family : words(AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK, AF_XDP, AF_TIPC))
        out.push_back({"offline: another family",
                       offline,
                       {SYS_socket, {family, SOCK_DGRAM, 0}},
                       EAFNOSUPPORT,
                       unix_stream});
    for (const auto& open : {offline, local, egress})
        out.push_back({"a pair of another family",
                       open,
                       {SYS_socketpair, {AF_TIPC, SOCK_SEQPACKET, 0, at(numbers.data())}},
                       EAFNOSUPPORT,
                       pair});
    for (const auto& loopback : {local, egress}) {
        for (const auto family : words(AF_PACKET, AF_ALG, AF_VSOCK, AF_XDP, AF_TIPC))
            out.push_back({"local: another family",
                           loopback,
                           {SYS_socket, {family, SOCK_DGRAM, 0}},
                           EAFNOSUPPORT,
                           tcp});
        out.push_back({"local: a raw socket",
                       loopback,
                       {SYS_socket, {AF_INET, SOCK_RAW, IPPROTO_ICMP}},
                       EPERM,
                       tcp});
        out.push_back({"local: a raw socket of IPv6",
                       loopback,
                       {SYS_socket, {AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6}},
                       EPERM,
                       udp6});
        out.push_back({"local: SCTP",
                       loopback,
                       {SYS_socket, {AF_INET, SOCK_STREAM, IPPROTO_SCTP}},
                       EPROTONOSUPPORT,
                       tcp});
        out.push_back({"local: MPTCP",
                       loopback,
                       {SYS_socket, {AF_INET6, SOCK_STREAM, 262}},
                       EPROTONOSUPPORT,
                       unix_stream});
        out.push_back({"local: netfilter netlink",
                       loopback,
                       {SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}},
                       EPROTONOSUPPORT,
                       {SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}}});
    }
    static ::socklen_t length = sizeof numbers;
    for (const auto& sealed : {sealed_0, sealed_1}) {
        for (const auto family : words(AF_UNIX, AF_INET, AF_NETLINK))
            out.push_back(
                {"sealed: socket", sealed, {SYS_socket, {family, SOCK_STREAM, 0}}, EACCES, pair});
        out.push_back({"sealed: a datagram pair",
                       sealed,
                       {SYS_socketpair, {AF_UNIX, SOCK_DGRAM, 0, at(numbers.data())}},
                       EACCES,
                       pair});
        for (const long number :
             {SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_getpeername})
            out.push_back({"sealed: by name, call " + std::to_string(number),
                           sealed,
                           {number, {3, at(numbers.data()), at(&length), 0}},
                           EACCES,
                           {SYS_sendto, {3, at("x"), 1, 0, 0}}});
        out.push_back({"sealed: setsockopt",
                       sealed,
                       {SYS_setsockopt, {3, SOL_SOCKET, SO_PASSCRED, at(numbers.data()), 4}},
                       EACCES,
                       {SYS_shutdown, {3, SHUT_WR}}});
    }
    const call name_3{SYS_getsockname, {3, at(numbers.data()), at(&length)}};
    const call name_3_high{SYS_getsockname, {3 | high, at(numbers.data()), at(&length)}};
    const call name_4{SYS_getsockname, {4, at(numbers.data()), at(&length)}};
    const auto option = [](std::uint64_t fd, std::uint64_t name) {
        return call{SYS_getsockopt, {fd, SOL_SOCKET, name, at(numbers.data()), at(&length)}};
    };
    out.push_back({"sealed: the name of another descriptor", sealed_1, name_4, EACCES, name_3});
    out.push_back({"sealed: the same with rubbish above", sealed_1, name_4, EACCES, name_3_high});
    out.push_back(
        {"sealed: the type of another", sealed_1, option(4, SO_TYPE), EACCES, option(3, SO_TYPE)});
    out.push_back(
        {"sealed: the peer", sealed_1, option(3, SO_PEERCRED), EACCES, option(3, SO_TYPE)});
    out.push_back({"sealed: nothing handed over", sealed_0, name_3, EACCES, pair});
    out.push_back({"sealed: no type of nothing", sealed_0, option(3, SO_TYPE), EACCES, pair});
}

TEST(SeccompKernel, an_argument_rule_refuses_its_case_and_lets_the_twin_pass) {
    std::vector<argument_case> cases;
    add_set_id(cases);
    add_processes(cases);
    add_sockets(cases);
    for (const bool drop : identities())
        for (auto c : cases) {
            SCOPED_TRACE(c.subject + (drop ? " (as nobody)" : ""));
            c.how.drop = drop;
            const auto refused = spend(c.how, c.refused);
            EXPECT_EQ(refused.value, -1);
            EXPECT_EQ(refused.error, c.error);
            const auto twin = spend(c.how, c.twin);
            EXPECT_EQ(twin.signal, 0);
            EXPECT_EQ(twin.error, c.twin_error);
        }
}

struct number_case {
    std::string_view subject;
    call made; // with arguments that do nothing even where the call is permitted
    int error;
    bool twin = true; // without the filter, a powerful caller is told something else
};

auto refused_by_number() -> std::vector<number_case> {
    constexpr std::uint64_t no = ~0ULL;
    return {
        {"mount", {SYS_mount, {0, at("/nonexistent"), 0, 0, 0}}, EPERM},
        {"umount2", {SYS_umount2, {at("/nonexistent"), 0}}, EPERM},
        {"pivot_root", {SYS_pivot_root, {at("/nonexistent"), at("/nonexistent")}}, EPERM},
        {"chroot", {SYS_chroot, {at("/nonexistent")}}, EPERM},
        {"open_tree", {SYS_open_tree, {no, at("/nonexistent"), 0}}, EPERM},
        {"open_tree_attr", {nr_open_tree_attr, {no, at("/nonexistent"), 0, 0, 0}}, EPERM},
        {"move_mount", {SYS_move_mount, {no, at("x"), no, at("x"), 0}}, EPERM},
        {"fsopen", {SYS_fsopen, {at("nonexistent"), 0}}, EPERM},
        {"fsconfig", {SYS_fsconfig, {no, 0, 0, 0, 0}}, EPERM},
        {"fsmount", {SYS_fsmount, {no, 0, 0}}, EPERM},
        {"fspick", {SYS_fspick, {no, at("/nonexistent"), 0}}, EPERM},
        {"mount_setattr", {SYS_mount_setattr, {no, at("/nonexistent"), 0, 0, 0}}, EPERM},
        {"unshare", {SYS_unshare, {0}}, EPERM},
        {"setns", {SYS_setns, {no, 0}}, EPERM},
        {"open_by_handle_at", {SYS_open_by_handle_at, {here, 0, 0}}, EPERM},
        {"bpf", {SYS_bpf, {no, 0, 0}}, EPERM},
        {"userfaultfd", {SYS_userfaultfd, {no}}, EPERM},
        {"perf_event_open", {SYS_perf_event_open, {0, 0, no, no, 0}}, EPERM},
        {"add_key", {SYS_add_key, {0, 0, 0, 0, 0}}, EPERM},
        {"request_key", {SYS_request_key, {0, 0, 0, 0}}, EPERM},
        {"keyctl", {SYS_keyctl, {no}}, EPERM},
        {"mbind", {SYS_mbind, {no, no, no, 0, 0}}, EPERM},
        {"fanotify_init", {SYS_fanotify_init, {no, 0}}, EPERM},
        {"fanotify_mark", {SYS_fanotify_mark, {no, 0, 0, no, 0}}, EPERM},
        {"lsm_set_self_attr", {nr_lsm_set_self_attr, {0, 0, 0, 1}}, EPERM},
        {"quotactl", {SYS_quotactl, {no, 0, 0, 0}}, EPERM},
        {"quotactl_fd", {SYS_quotactl_fd, {no, 0, 0, 0}}, EPERM},
        {"swapon", {SYS_swapon, {at("/nonexistent"), no}}, EPERM},
        {"swapoff", {SYS_swapoff, {at("/nonexistent")}}, EPERM},
        {"acct", {SYS_acct, {at("/nonexistent")}}, EPERM},
        {"reboot", {SYS_reboot, {0, 0, 0, 0}}, EPERM},
        {"sethostname", {SYS_sethostname, {0, no}}, EPERM},
        {"setdomainname", {SYS_setdomainname, {0, no}}, EPERM},
        {"vhangup", {SYS_vhangup}, EPERM, false}, // would hang up the terminal of the test
        {"syslog", {SYS_syslog, {no}}, EPERM},
        {"init_module", {SYS_init_module, {0, 0, 0}}, EPERM},
        {"finit_module", {SYS_finit_module, {no, 0, 0}}, EPERM},
        {"delete_module", {SYS_delete_module, {at("nonexistent"), 0}}, EPERM},
        {"settimeofday", {SYS_settimeofday, {0, 0}}, EPERM},
        {"clock_settime", {SYS_clock_settime, {no, 0}}, EPERM},
        {"adjtimex", {SYS_adjtimex, {0}}, EPERM},
        {"clock_adjtime", {SYS_clock_adjtime, {0, 0}}, EPERM},
#ifdef SYS_modify_ldt
        {"modify_ldt",
         {SYS_modify_ldt, {no, 0, 0}},
         EPERM,
         false}, // returns an int: errno is not set
        {"iopl", {SYS_iopl, {99}}, EPERM},
        {"ioperm", {SYS_ioperm, {no, no, 0}}, EPERM},
#endif
        {"clone3", {SYS_clone3, {0, 0}}, ENOSYS},
        {"openat2", {SYS_openat2, {here, at("file"), 0, 0}}, ENOSYS},
        {"io_uring_setup", {SYS_io_uring_setup, {0, 0}}, ENOSYS},
        {"io_uring_enter", {SYS_io_uring_enter, {no, 0, 0, 0, 0}}, ENOSYS},
        {"io_uring_register", {SYS_io_uring_register, {no, 0, 0, 0}}, ENOSYS},
        {"io_setup", {SYS_io_setup, {1, 0}}, ENOSYS},
        {"io_destroy", {SYS_io_destroy, {no}}, ENOSYS},
        {"io_submit", {SYS_io_submit, {no, 0, 0}}, ENOSYS},
        {"io_getevents", {SYS_io_getevents, {no, 0, 0, 0, 0}}, ENOSYS},
        {"a number nobody listed", {600}, ENOSYS, false},
        {"the number that tracers skip with", {-1}, ENOSYS, false},
    };
}

TEST(SeccompKernel, a_call_refused_by_its_number_answers_the_filter_and_not_the_kernel) {
    const bool compare = all_powerful();
    if (!compare) std::cout << "no CAP_SYS_ADMIN: the twins without the filter are not compared\n";
    for (const bool drop : identities())
        for (const auto& c : refused_by_number())
            for (auto how : {offline, local, sealed_0}) {
                SCOPED_TRACE(std::string{c.subject} + (drop ? " (as nobody)" : ""));
                how.drop = drop;
                const auto seen = spend(how, c.made);
                EXPECT_EQ(seen.signal, 0);
                EXPECT_EQ(seen.value, -1);
                EXPECT_EQ(seen.error, c.error);
            }
    if (compare)
        for (const auto& c : refused_by_number()) {
            if (!c.twin) continue;
            SCOPED_TRACE(std::string{c.subject} + " without the filter");
            const auto seen = spend({.filtered = false}, c.made);
            if (seen.error == ENOSYS) continue; // this kernel was built without the call
            EXPECT_NE(seen.error, c.error);
        }
}

TEST(SeccompKernel, replacing_the_kernel_kills) {
    for (const bool drop : identities())
        for (const long number : {SYS_kexec_load, SYS_kexec_file_load}) {
            const call made{number, {~0ULL, ~0ULL, 0, 0, ~0ULL}};
            EXPECT_EQ(spend({.drop = drop}, made).signal, SIGSYS);
            EXPECT_EQ(spend({.filtered = false, .drop = drop}, made).signal, 0);
        }
}

#if defined(__x86_64__)
auto old_entry(long number) -> long {
    long answer = number;
    asm volatile("int $0x80"
                 : "+a"(answer)
                 : "b"(0L), "c"(0L), "d"(0L)
                 : "memory", "r8", "r9", "r10", "r11");
    return answer;
}

TEST(SeccompKernel, the_32_bit_entry_kills) {
    constexpr long getpid_of_i386 = 20;
    const auto made = [] { return old_entry(getpid_of_i386); };
    if (spend({.filtered = false}, made).signal != 0)
        GTEST_SKIP() << "this kernel has no 32-bit entry: there is nothing to close";
    for (const bool drop : identities())
        for (const auto tier : {network_tier::offline, network_tier::local, network_tier::sealed})
            EXPECT_EQ(spend({.tier = tier, .drop = drop}, made).signal, SIGSYS);
}

TEST(SeccompKernel, the_x32_entry_kills_even_where_the_kernel_has_none) {
    for (const bool drop : identities())
        for (const long number : {0L, 39L, 512L, 547L}) {
            const call made{0x40000000L | number};
            EXPECT_EQ(spend({.drop = drop}, made).signal, SIGSYS) << number;
        }
    EXPECT_EQ(spend({.filtered = false}, call{0x40000000L | 39}).signal, 0);
    EXPECT_EQ(spend({}, call{39}).signal, 0);
}
#endif

TEST(SeccompKernel, threads_and_processes_start_although_clone3_is_absent) {
    for (const bool drop : identities())
        for (const auto tier : {network_tier::offline, network_tier::local, network_tier::sealed}) {
            const auto seen = spend({.tier = tier, .drop = drop}, [] {
                ::pthread_t thread{};
                int done = 0;
                const auto work = [](void* out) -> void* {
                    *static_cast<int*>(out) = 1;
                    return nullptr;
                };
                if (::pthread_create(&thread, nullptr, work, &done) != 0) return -2L;
                if (::pthread_join(thread, nullptr) != 0 || done != 1) return -3L;
                const char* const words[] = {"true", nullptr};
                ::pid_t pid{};
                if (::posix_spawnp(&pid, "true", nullptr, nullptr, const_cast<char* const*>(words),
                                   environ) != 0)
                    return -4L;
                int status = 0;
                return ::waitpid(pid, &status, 0) == pid && status == 0 ? 1L : -5L;
            });
            EXPECT_EQ(seen.value, 1);
        }
}

TEST(SeccompKernel, the_filter_covers_the_threads_that_were_there_before) {
    const auto seen = spend({.filtered = false}, [] {
        static std::array<int, 2> gate;
        static long answered = 0;
        if (::pipe(gate.data()) != 0) return -2L;
        ::pthread_t thread{};
        const auto work = [](void*) -> void* {
            char byte = 0;
            if (::read(gate[0], &byte, 1) == 1)
                answered = ::syscall(SYS_unshare, 0) == -1 ? errno : 0;
            return nullptr;
        };
        if (::pthread_create(&thread, nullptr, work, nullptr) != 0) return -3L;
        if (install(program_for(network_tier::offline, 0)) != 0) return -4L;
        if (::write(gate[1], "x", 1) != 1 || ::pthread_join(thread, nullptr) != 0) return -5L;
        return answered;
    });
    EXPECT_EQ(seen.value, EPERM);
}

TEST(SeccompKernel, without_no_new_privileges_an_ordinary_user_cannot_install) {
    const auto pid = ::fork();
    if (pid == 0) {
        if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) ::_exit(2);
        ::_exit(install(program_for(network_tier::offline, 0)) == EACCES ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
}

TEST(SeccompKernel, an_agent_may_confine_itself_further_but_not_less) {
    for (const bool drop : identities()) {
        const auto seen = spend({.tier = network_tier::sealed, .drop = drop}, [] {
            if (install(program_for(network_tier::local, 0)) != 0) return -2L;
            return ::syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
        });
        EXPECT_EQ(seen.error, EACCES);
    }
}

TEST(SeccompKernel, newer_calls_reach_the_kernel) {
    EXPECT_NE(spend({}, call{nr_mseal, {0, 0, ~0ULL}}).error, EPERM);
    EXPECT_EQ(spend({}, call{SYS_futex_waitv, {0, 0, ~0ULL}}).error, EINVAL);
    EXPECT_EQ(spend({}, call{SYS_nanosleep, {at(&short_time), 0}}).value, 0);
}

} // namespace
} // namespace glove::container::seccomp
