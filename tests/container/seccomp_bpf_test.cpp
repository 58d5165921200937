// The compiled programs of both machines against the judge, without the kernel.
#include "container/linux/seccomp_bpf.hpp"
#include "container/linux/seccomp_rules.hpp"
#include "support/classic_bpf.hpp"
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <set>
#include <sys/syscall.h>

namespace glove::container::seccomp {
namespace {

// Register contents, whatever type the constant has.
template<class... Value> constexpr auto words(Value... value) {
    return std::array{static_cast<std::uint64_t>(value)...};
}

namespace on_x86_64 {
#include "seccomp_bpf_x86_64.inc"
}
namespace on_arm64 {
#include "seccomp_bpf_arm64.inc"
}

struct compiled {
    machine on;
    const variant& rules;
    program code;
};
const std::vector<compiled> programs{
    {machine::x86_64, variants[0], on_x86_64::offline},
    {machine::x86_64, variants[1], on_x86_64::local},
    {machine::x86_64, variants[2], on_x86_64::egress},
    {machine::x86_64, variants[3], on_x86_64::sealed_0},
    {machine::x86_64, variants[4], on_x86_64::sealed_1},
    {machine::arm64, variants[0], on_arm64::offline},
    {machine::arm64, variants[1], on_arm64::local},
    {machine::arm64, variants[2], on_arm64::egress},
    {machine::arm64, variants[3], on_arm64::sealed_0},
    {machine::arm64, variants[4], on_arm64::sealed_1},
};

auto action_of(const decision& d) -> std::uint32_t {
    switch (d.outcome) {
    case verdict::allow: return SECCOMP_RET_ALLOW;
    case verdict::refuse: return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(d.error);
    case verdict::kill: return SECCOMP_RET_KILL_PROCESS;
    }
    return 0;
}

auto run(const compiled& p, const entry& call) -> test::bpf_run {
    ::seccomp_data data{};
    data.nr = static_cast<int>(call.number);
    data.arch = call.arch;
    data.instruction_pointer = 0x7f0012345678;
    for (std::size_t i = 0; i != 6; ++i) data.args[i] = call.arguments.at(i);
    return test::run_bpf(p.code, data);
}

// One disagreement fails; a thousand would only hide it.
auto agrees(const compiled& p, const entry& call) -> bool {
    const auto got = run(p, call).action;
    const auto want = action_of(judge(p.on, p.rules, call));
    EXPECT_EQ(got, want) << to_string(p.on) << ' ' << p.rules.name << " number " << call.number
                         << std::hex << " arch " << call.arch << " arguments " << call.arguments[0]
                         << ' ' << call.arguments[1] << ' ' << call.arguments[2] << ' '
                         << call.arguments[3];
    return got == want;
}

// Every value next to a value that some clause compares with, with and without rubbish above it.
auto boundaries(const rule& r, unsigned argument) -> std::set<std::uint64_t> {
    std::set<std::uint64_t> values{0};
    for (const auto& c : r.clauses)
        for (const auto& test : c.all)
            if (test.mask != 0 && test.argument == argument)
                for (const std::uint32_t low :
                     {test.value, test.value + 1, test.value - 1, test.value ^ 2, ~test.value,
                      test.value | ~test.mask, test.value | 0x80000000U,
                      test.value & (test.value - 1)})
                    for (const auto above : words(0ULL, 1ULL, 0xffffffffULL))
                        values.insert(above << 32 | low);
    return values;
}

auto uses(const rule& r, unsigned argument) -> bool { return boundaries(r, argument).size() > 1; }

TEST(SeccompBpf, every_number_with_any_arguments_is_answered_as_the_judge_says) {
    for (const auto& p : programs) {
        std::vector<std::uint32_t> numbers{0x3fffffff,      0x40000000,       0x40000001,
                                           0x40000000 | 39, 0x40000000 | 547, 0x7fffffff,
                                           0x80000000,      0xfffffffe,       0xffffffff};
        for (std::uint32_t n = 0; n <= 600; ++n) numbers.push_back(n);
        for (const auto number : numbers)
            for (const auto fill : words(0ULL, 1ULL, 3ULL, 0xffffffffULL, ~0ULL, 1ULL << 32)) {
                const entry call{audit_arch(p.on), number, {fill, fill, fill, fill, fill, fill}};
                ASSERT_TRUE(agrees(p, call));
            }
    }
}

TEST(SeccompBpf, every_clause_is_answered_as_the_judge_says_at_its_boundaries) {
    std::size_t compared = 0;
    for (const auto& p : programs)
        for (const auto& r : rules_of(p.rules)) {
            if (r.clauses.empty() || r.number(p.on) == no_number) continue;
            ASSERT_FALSE(uses(r, 4) || uses(r, 5));
            entry call{audit_arch(p.on), static_cast<std::uint32_t>(r.number(p.on))};
            for (const auto a : boundaries(r, 0))
                for (const auto b : boundaries(r, 1))
                    for (const auto c : boundaries(r, 2))
                        for (const auto d : boundaries(r, 3)) {
                            call.arguments = {a, b, c, d, ~0ULL, ~0ULL};
                            ASSERT_TRUE(agrees(p, call));
                            ++compared;
                        }
        }
    EXPECT_GT(compared, 100'000U);
}

TEST(SeccompBpf, every_other_architecture_is_killed) {
    for (const auto& p : programs)
        for (const auto arch : std::to_array<std::uint32_t>(
                 {AUDIT_ARCH_I386, AUDIT_ARCH_X86_64, AUDIT_ARCH_ARM, AUDIT_ARCH_AARCH64,
                  AUDIT_ARCH_RISCV64, AUDIT_ARCH_AARCH64 & ~0x80000000U, 0, 0xffffffff}))
            for (std::uint32_t number = 0; number <= 600; ++number)
                ASSERT_TRUE(agrees(p, {arch, number}));
}

// The kernel answers such a call from a bitmap and never runs the program again.
TEST(SeccompBpf, a_call_without_clauses_is_decided_by_its_number_alone) {
    for (const auto& p : programs)
        for (const auto& r : rules_of(p.rules)) {
            if (r.number(p.on) == no_number) continue;
            const entry call{audit_arch(p.on), static_cast<std::uint32_t>(r.number(p.on))};
            EXPECT_EQ(run(p, call).read_arguments, !r.clauses.empty()) << r.call.name;
        }
}

TEST(SeccompBpf, a_program_stays_within_what_the_kernel_takes) {
    for (const auto& p : programs) {
        EXPECT_LE(p.code.size(), std::size_t{BPF_MAXINSNS});
        unsigned longest = 0;
        for (const auto& r : rules_of(p.rules))
            if (r.number(p.on) != no_number)
                longest = std::max(
                    longest,
                    run(p, {audit_arch(p.on), static_cast<std::uint32_t>(r.number(p.on))}).steps);
        RecordProperty(std::string{to_string(p.on)} + "_" + std::string{p.rules.name},
                       std::to_string(p.code.size_bytes()) + " bytes, at most " +
                           std::to_string(longest) + " steps");
        std::cout << to_string(p.on) << ' ' << p.rules.name << ": " << p.code.size_bytes()
                  << " bytes, at most " << longest << " steps\n";
        EXPECT_LE(longest, 120U);
    }
}

TEST(SeccompBpf, the_accessor_hands_out_this_machines_programs) {
#if defined(__x86_64__)
    const auto native = machine::x86_64;
#else
    const auto native = machine::arm64;
#endif
    for (const auto& p : programs) {
        if (p.on != native) continue;
        const auto given = program_for(p.rules.tier, p.rules.declared);
        ASSERT_EQ(given.size_bytes(), p.code.size_bytes());
        EXPECT_EQ(std::memcmp(given.data(), p.code.data(), given.size_bytes()), 0);
    }
}

TEST(SeccompBpf, a_sealed_agent_with_more_descriptors_than_there_are_programs_for_has_none) {
    EXPECT_FALSE(program_for(network_tier::sealed, 1).empty());
    EXPECT_TRUE(program_for(network_tier::sealed, 2).empty());
    EXPECT_FALSE(program_for(network_tier::offline, 2).empty());
    EXPECT_EQ(install(program_for(network_tier::sealed, 2)), EINVAL);
}

// -- the program below it, for an agent that shares its process group -----------------------------

constexpr std::uint64_t above = 0xffffffffULL << 32; // the kernel takes the low half

struct group_call {
    long number;
    std::array<std::uint64_t, 4> with;
    bool refused;
};

auto group_calls() -> std::vector<group_call> {
    constexpr std::uint64_t group_flag = 4;
    std::vector<group_call> out;
    for (const std::uint64_t rubbish : {0ULL, 1ULL << 32, static_cast<unsigned long long>(above)}) {
        const auto add = [&](long number, std::array<std::uint64_t, 4> with, bool refused) {
            for (auto& one : with) one |= rubbish;
            out.push_back({number, with, refused});
        };
        add(SYS_kill, {0, 9, 0, 0}, true);
        for (const std::uint64_t whom : {1ULL, 5ULL, 0xffffffffULL, 0x80000000ULL})
            add(SYS_kill, {whom, 0, 0, 0}, false);
        for (const std::uint64_t flags : {4ULL, 5ULL, 6ULL, 0xffffffffULL})
            add(SYS_pidfd_send_signal, {0, 9, 0, flags}, true);
        for (const std::uint64_t flags : {0ULL, 1ULL, 2ULL, 3ULL, 8ULL})
            add(SYS_pidfd_send_signal, {group_flag, group_flag, group_flag, flags}, false);
        for (const long number : {SYS_setpriority, SYS_ioprio_set}) {
            const std::uint64_t group = number == SYS_setpriority ? 1 : 2;
            add(number, {group, 0, 0, 0}, true);
            add(number, {group, 7, 0, 0}, false);
            for (const std::uint64_t kind :
                 {0ULL, 3ULL, 3 - static_cast<unsigned long long>(group)})
                add(number, {kind, 0, 0, 0}, false);
        }
        for (const long number : {SYS_tgkill, SYS_tkill, SYS_getpriority, SYS_ioprio_get, SYS_read})
            add(number, {0, 0, 0, 4}, false);
    }
    return out;
}

TEST(SeccompGroupGuard, it_refuses_what_names_the_own_group_and_nothing_else) {
    for (const auto& call : group_calls()) {
        ::seccomp_data data{};
        data.nr = static_cast<int>(call.number);
        for (std::size_t i = 0; i != call.with.size(); ++i) data.args[i] = call.with.at(i);
        const std::uint32_t want = call.refused ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_ALLOW;
        EXPECT_EQ(test::run_bpf(group_guard(), data).action, want)
            << "number " << call.number << std::hex << " arguments " << call.with[0] << ' '
            << call.with[1] << ' ' << call.with[3];
    }
}

TEST(SeccompGroupGuard, it_lets_every_other_number_pass_whatever_its_arguments) {
    const std::set<int> looked_at{SYS_kill, SYS_pidfd_send_signal, SYS_setpriority, SYS_ioprio_set};
    for (int number = 0; number <= 600; ++number) {
        if (looked_at.contains(number)) continue;
        for (const auto fill : words(0ULL, 1ULL, 2ULL, 4ULL, ~0ULL)) {
            ::seccomp_data data{};
            data.nr = number;
            for (auto& argument : data.args) argument = fill;
            const auto seen = test::run_bpf(group_guard(), data);
            EXPECT_EQ(seen.action, std::uint32_t{SECCOMP_RET_ALLOW}) << number;
            EXPECT_FALSE(seen.read_arguments) << number;
        }
    }
}

} // namespace
} // namespace glove::container::seccomp
