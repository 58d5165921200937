#include "container/linux/seccomp_rules.hpp"
#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gmock/gmock.h>
#include <linux/audit.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace glove::container::seccomp {
namespace {

// Register contents, whatever type the constant has.
template<class... Value> constexpr auto words(Value... value) {
    return std::array{static_cast<std::uint64_t>(value)...};
}

using arguments = std::array<std::uint64_t, 6>;
constexpr std::uint64_t high = 1ULL << 32;

const auto& offline = variants[0];
const auto& local = variants[1];
const auto& egress = variants[2];
const auto& sealed_0 = variants[3];
const auto& sealed_1 = variants[4];

auto answer(const variant& program, std::string_view name, arguments a = {},
            machine on = machine::x86_64) -> decision {
    for (const auto& row : rules_of(program))
        if (row.call.name == name && row.number(on) != no_number)
            return judge(on, program,
                         {audit_arch(on), static_cast<std::uint32_t>(row.number(on)), a});
    ADD_FAILURE() << name << " is no call of " << to_string(on);
    return kill;
}

TEST(NetworkTier, a_word_that_is_printed_is_parsed_back) {
    for (const auto& row : network_tiers) {
        EXPECT_EQ(parse_network_tier(row.name), row.tier);
        EXPECT_EQ(to_string(row.tier), row.name);
        EXPECT_FALSE(row.meaning.empty());
    }
    EXPECT_EQ(network_tiers.size(), 4U);
}
TEST(NetworkTier, another_word_is_not_a_tier) {
    for (const auto* word : {"", "Offline", "offline ", "open", "sealed_1"})
        EXPECT_EQ(parse_network_tier(word), std::nullopt) << word;
}

TEST(SeccompTable, it_has_no_fault) { EXPECT_THAT(faults(), testing::IsEmpty()); }

TEST(SeccompTable, every_call_has_one_rule_in_every_program) {
    for (const auto& program : variants) EXPECT_EQ(rules_of(program).size(), calls.size());
}

TEST(SeccompTable, every_tier_has_a_program) {
    for (const auto& row : network_tiers)
        EXPECT_TRUE(std::ranges::any_of(variants, [&](const auto& v) {
            return v.tier == row.tier;
        })) << row.name;
}

// Set GLOVE_GOLDEN_WRITE to accept a change of the table; the diff is what is reviewed.
TEST(SeccompTable, the_listing_is_the_one_that_was_reviewed) {
    for (const auto& program : variants) {
        const auto path =
            std::string{GLOVE_GOLDEN "/seccomp_"} + std::string{program.name} + ".txt";
        if (std::getenv("GLOVE_GOLDEN_WRITE") != nullptr) std::ofstream{path} << listing(program);
        std::ostringstream golden;
        golden << std::ifstream{path}.rdbuf();
        EXPECT_EQ(golden.str(), listing(program)) << path;
    }
}

TEST(SeccompTable, numbers_agree_with_the_headers_of_this_machine) {
#if defined(__x86_64__)
    const auto native = machine::x86_64;
#else
    const auto native = machine::arm64;
#endif
    const std::vector<std::pair<std::string_view, int>> headers{
        {"read", SYS_read},       {"openat", SYS_openat},   {"clone", SYS_clone},
        {"socket", SYS_socket},   {"ioctl", SYS_ioctl},     {"fchmodat", SYS_fchmodat},
        {"mkdirat", SYS_mkdirat}, {"clone3", SYS_clone3},   {"openat2", SYS_openat2},
        {"bpf", SYS_bpf},         {"ptrace", SYS_ptrace},   {"personality", SYS_personality},
        {"unshare", SYS_unshare}, {"mknodat", SYS_mknodat}, {"getsockopt", SYS_getsockopt},
    };
    for (const auto& [name, number] : headers)
        for (const auto& row : rules_of(offline))
            if (row.call.name == name) {
                EXPECT_EQ(row.number(native), number) << name;
            }
}

TEST(SeccompJudge, a_number_that_nobody_listed_does_not_exist) {
    for (const auto on : machines)
        for (const auto number : {405U, 470U, 511U, 600U, 0x3fffffffU, 0xffffffffU})
            EXPECT_EQ(judge(on, offline, {audit_arch(on), number}), absent) << number;
}

TEST(SeccompJudge, another_entry_to_the_kernel_is_killed) {
    EXPECT_EQ(judge(machine::x86_64, offline, {AUDIT_ARCH_I386, 20}), kill);
    EXPECT_EQ(judge(machine::x86_64, offline, {AUDIT_ARCH_X86_64, 0x40000000U | 39}), kill);
    EXPECT_EQ(judge(machine::x86_64, offline, {AUDIT_ARCH_X86_64, 39}), allow);
    EXPECT_EQ(judge(machine::arm64, offline, {AUDIT_ARCH_ARM, 20}), kill);
    EXPECT_EQ(judge(machine::arm64, offline, {AUDIT_ARCH_AARCH64, 172}), allow);
}

TEST(SeccompJudge, calls_with_a_way_back_are_absent) {
    for (const auto* name : {"clone3", "openat2", "io_uring_setup", "io_uring_enter",
                             "io_uring_register", "set_thread_area"})
        EXPECT_EQ(answer(offline, name), absent) << name;
}

TEST(SeccompJudge, what_reaches_past_the_container_is_refused_in_every_tier) {
    for (const auto* name : {"mount",
                             "umount2",
                             "pivot_root",
                             "chroot",
                             "open_tree",
                             "open_tree_attr",
                             "move_mount",
                             "fsopen",
                             "fsconfig",
                             "fsmount",
                             "fspick",
                             "mount_setattr",
                             "unshare",
                             "setns",
                             "bpf",
                             "userfaultfd",
                             "perf_event_open",
                             "add_key",
                             "request_key",
                             "keyctl",
                             "fanotify_init",
                             "open_by_handle_at",
                             "quotactl",
                             "quotactl_fd",
                             "init_module",
                             "finit_module",
                             "delete_module",
                             "syslog",
                             "acct",
                             "swapon",
                             "swapoff",
                             "reboot",
                             "sethostname",
                             "setdomainname",
                             "vhangup",
                             "settimeofday",
                             "clock_settime",
                             "adjtimex",
                             "clock_adjtime",
                             "modify_ldt",
                             "iopl",
                             "ioperm",
                             "fanotify_mark",
                             "mbind",
                             "lsm_set_self_attr"})
        for (const auto& program : variants)
            EXPECT_EQ(answer(program, name), refuse(EPERM)) << name;
}

TEST(SeccompJudge, the_kernel_cannot_be_replaced) {
    for (const auto* name : {"kexec_load", "kexec_file_load"})
        EXPECT_EQ(answer(offline, name), kill) << name;
}

TEST(SeccompJudge, what_debuggers_and_runtimes_use_is_allowed) {
    for (const auto* name :
         {"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_open", "pidfd_getfd",
          "rseq", "membarrier", "futex_waitv", "set_mempolicy", "landlock_restrict_self", "seccomp",
          "statx", "memfd_create", "mseal", "cachestat", "setxattrat", "epoll_pwait2"})
        for (const auto& program : variants) EXPECT_EQ(answer(program, name), allow) << name;
}

TEST(SeccompJudge, a_new_namespace_is_refused_and_a_thread_is_not) {
    for (const auto flag :
         words(0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)) {
        EXPECT_EQ(answer(offline, "clone", {flag | 17}), refuse(EPERM));
        EXPECT_EQ(answer(offline, "clone", {flag | high | 17}), refuse(EPERM));
        EXPECT_EQ(answer(offline, "clone", {flag << 32 | 17}), allow)
            << "the kernel drops these bits";
    }
    EXPECT_EQ(answer(offline, "clone", {0x3d0f00}), allow);
    EXPECT_EQ(answer(offline, "clone", {17}), allow);
}

TEST(SeccompJudge, terminal_injection_is_refused_whatever_the_upper_half_says) {
    for (const auto request : words(0x5412, 0x541c, 0x5423)) {
        EXPECT_EQ(answer(offline, "ioctl", {0, request}), refuse(EPERM));
        EXPECT_EQ(answer(offline, "ioctl", {0, request | high}), refuse(EPERM));
        EXPECT_EQ(answer(offline, "ioctl", {0, request + 1}), allow);
    }
}

TEST(SeccompJudge, a_lease_is_refused_and_a_lock_is_not) {
    constexpr std::uint64_t set_delegation = 1040; // F_SETDELEG is not in every <fcntl.h>
    for (const auto& program : variants) {
        EXPECT_EQ(answer(program, "fcntl", {0, F_SETLEASE, F_WRLCK}), refuse(EPERM));
        EXPECT_EQ(answer(program, "fcntl", {0, F_SETLEASE | high, F_RDLCK}), refuse(EPERM));
        EXPECT_EQ(answer(program, "fcntl", {0, set_delegation, 4096}), refuse(EPERM));
        EXPECT_EQ(answer(program, "fcntl", {0, set_delegation | high, 4096}), refuse(EPERM));
        for (const auto command :
             words(F_SETLK, F_OFD_SETLKW, F_GETLEASE, set_delegation - 1, F_SETFL, F_DUPFD_CLOEXEC))
            EXPECT_EQ(answer(program, "fcntl", {0, command}), allow) << command;
    }
}

TEST(SeccompJudge, the_limit_of_core_files_can_be_asked_for_and_not_set) {
    constexpr std::uint64_t place = 0x7fff0000;
    for (const auto& program : variants) {
        EXPECT_EQ(answer(program, "setrlimit", {RLIMIT_CORE, place}), pretend);
        EXPECT_EQ(answer(program, "setrlimit", {RLIMIT_CORE | high, place}), pretend);
        EXPECT_EQ(answer(program, "setrlimit", {RLIMIT_NOFILE, place}), allow);
        for (const auto given : words(place, high, place | high))
            EXPECT_EQ(answer(program, "prlimit64", {0, RLIMIT_CORE, given, 0}), pretend) << given;
        EXPECT_EQ(answer(program, "prlimit64", {0, RLIMIT_CORE | high, 0, place}), allow);
        EXPECT_EQ(answer(program, "prlimit64", {0, RLIMIT_NOFILE, place, 0}), allow);
        EXPECT_EQ(answer(program, "getrlimit", {RLIMIT_CORE, place}), allow);
    }
}

TEST(SeccompJudge, a_set_id_mode_is_refused_at_every_call_that_takes_one) {
    struct place {
        std::string_view name;
        unsigned mode;
    };
    for (const auto& [name, mode] : std::to_array<place>({{"chmod", 1},
                                                          {"fchmod", 1},
                                                          {"fchmodat", 2},
                                                          {"fchmodat2", 2},
                                                          {"mkdir", 1},
                                                          {"mkdirat", 2},
                                                          {"mknod", 1},
                                                          {"mknodat", 2},
                                                          {"creat", 1}})) {
        arguments a{};
        for (const auto bits : words(04755, 02755, 06755, 0104755)) {
            a.at(mode) = bits;
            EXPECT_EQ(answer(offline, name, a), refuse(EPERM)) << name;
            a.at(mode) = bits | high;
            EXPECT_EQ(answer(offline, name, a), refuse(EPERM)) << name;
        }
        for (const auto bits : words(0755, 01777, 0100644, 0)) {
            a.at(mode) = bits;
            EXPECT_EQ(answer(offline, name, a), allow) << name;
        }
    }
}

TEST(SeccompJudge, the_mode_of_an_open_counts_only_when_it_creates) {
    for (const auto& [name, at] :
         std::to_array<std::pair<std::string_view, std::size_t>>({{"open", 1}, {"openat", 2}}))
        for (const auto mode : words(04700, 02700)) {
            const auto opened = [&](std::uint64_t flags) {
                arguments a{};
                a.at(at) = flags;
                a.at(at + 1) = mode;
                return answer(offline, name, a);
            };
            EXPECT_EQ(opened(0101), refuse(EPERM)) << "O_CREAT|O_WRONLY";
            EXPECT_EQ(opened(020200001), refuse(EPERM)) << "O_TMPFILE|O_WRONLY";
            EXPECT_EQ(opened(02000000), allow) << "O_CLOEXEC";
            EXPECT_EQ(opened(0200000), allow) << "O_DIRECTORY";
        }
}

TEST(SeccompJudge, only_plain_personalities_are_set) {
    for (const auto p : words(0x0ULL, 0x40000ULL, 0xffffffffULL, 0xffffffffffffffffULL))
        EXPECT_EQ(answer(offline, "personality", {p}), allow) << p;
    for (const auto p : words(0x8ULL, 0x20000ULL, 0x400000ULL, 0x40008ULL, 0xfffffffeULL))
        EXPECT_EQ(answer(offline, "personality", {p}), refuse(EPERM)) << p;
}

TEST(SeccompTier, offline_has_unix_sockets_only) {
    EXPECT_EQ(answer(offline, "socket", {1, 1}), allow);
    EXPECT_EQ(answer(offline, "socket", {1 | high, 1}), allow);
    for (const auto inet : words(2, 10))
        for (const auto type : words(1, 2, 3))
            EXPECT_EQ(answer(offline, "socket", {inet, type}), refuse(EACCES));
    for (const auto family : words(0, 3, 16, 17, 31, 38, 40, 44))
        EXPECT_EQ(answer(offline, "socket", {family, 2}), refuse(EAFNOSUPPORT)) << family;
    EXPECT_EQ(answer(offline, "socketpair", {1, 5}), allow);
    EXPECT_EQ(answer(offline, "socketpair", {30, 5}), refuse(EAFNOSUPPORT));
}

TEST(SeccompTier, local_and_egress_have_tcp_udp_and_route_netlink) {
    for (const auto* program : {&local, &egress}) {
        for (const auto inet : words(2, 10)) {
            for (const auto flags : words(0, 02000000, 02004000)) {
                EXPECT_EQ(answer(*program, "socket", {inet, 1 | flags, 0}), allow);
                EXPECT_EQ(answer(*program, "socket", {inet, 1 | flags, 6}), allow);
                EXPECT_EQ(answer(*program, "socket", {inet, 2 | flags, 0}), allow);
                EXPECT_EQ(answer(*program, "socket", {inet, 2 | flags, 17}), allow);
            }
            for (const auto protocol : words(0, 1, 6, 255))
                EXPECT_EQ(answer(*program, "socket", {inet, 3, protocol}), refuse(EPERM));
            for (const auto protocol : words(132, 262, 256))
                EXPECT_EQ(answer(*program, "socket", {inet, 1, protocol}), refuse(EPROTONOSUPPORT));
            EXPECT_EQ(answer(*program, "socket", {inet, 2, 115}), refuse(EPROTONOSUPPORT));
            EXPECT_EQ(answer(*program, "socket", {inet, 10, 0}), refuse(EPROTONOSUPPORT));
        }
        for (const auto type : words(2, 3)) {
            EXPECT_EQ(answer(*program, "socket", {16, type, 0}), allow);
            for (const auto protocol : words(4, 12, 15, 16))
                EXPECT_EQ(answer(*program, "socket", {16, type, protocol}),
                          refuse(EPROTONOSUPPORT));
        }
        for (const auto family : words(0, 17, 31, 38, 40, 44))
            EXPECT_EQ(answer(*program, "socket", {family, 2}), refuse(EAFNOSUPPORT)) << family;
        EXPECT_EQ(answer(*program, "socket", {1, 1}), allow);
    }
}

TEST(SeccompTier, a_socket_that_exists_works_in_every_tier_that_can_make_one) {
    for (const auto* program : {&offline, &local, &egress})
        for (const auto* name : {"connect", "bind", "listen", "accept", "accept4", "getsockname",
                                 "getpeername", "setsockopt", "getsockopt", "shutdown", "sendto",
                                 "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg"})
            EXPECT_EQ(answer(*program, name, {~0ULL, ~0ULL, ~0ULL}), allow) << name;
}

TEST(SeccompTier, sealed_reaches_nothing_by_name) {
    for (const auto* program : {&sealed_0, &sealed_1}) {
        for (const auto* name : {"socket", "connect", "bind", "listen", "accept", "accept4",
                                 "setsockopt", "getpeername"})
            for (const auto first : words(1, 3))
                EXPECT_EQ(answer(*program, name, {first, 1, 3}), refuse(EACCES)) << name;
        for (const auto* name : {"sendmsg", "recvmsg", "sendto", "recvfrom", "shutdown", "read"})
            EXPECT_EQ(answer(*program, name, {3}), allow) << name;
        EXPECT_EQ(answer(*program, "socketpair", {1, 02000001}), allow);
        EXPECT_EQ(answer(*program, "socketpair", {1, 2}), refuse(EACCES)) << "datagrams have names";
        EXPECT_EQ(answer(*program, "socketpair", {2, 1}), refuse(EACCES));
    }
}

TEST(SeccompTier, sealed_classifies_only_what_was_handed_over) {
    EXPECT_EQ(answer(sealed_1, "getsockname", {3}), allow);
    EXPECT_EQ(answer(sealed_1, "getsockname", {3 | high}), allow) << "the kernel sees descriptor 3";
    EXPECT_EQ(answer(sealed_1, "getsockopt", {3, 1, 3}), allow);
    EXPECT_EQ(answer(sealed_1, "getsockopt", {3, 1, 17}), refuse(EACCES)) << "SO_PEERCRED";
    EXPECT_EQ(answer(sealed_1, "getsockopt", {3, 6, 3}), refuse(EACCES));
    for (const auto fd : words(0, 2, 4, 7)) {
        EXPECT_EQ(answer(sealed_1, "getsockname", {fd}), refuse(EACCES));
        EXPECT_EQ(answer(sealed_1, "getsockopt", {fd, 1, 3}), refuse(EACCES));
    }
    EXPECT_EQ(answer(sealed_0, "getsockname", {3}), refuse(EACCES));
    EXPECT_EQ(answer(sealed_0, "getsockopt", {3, 1, 3}), refuse(EACCES));
}

} // namespace
} // namespace glove::container::seccomp
