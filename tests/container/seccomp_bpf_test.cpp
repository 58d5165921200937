// The compiled programs of both machines against the judge, without the kernel.
#include "container/linux/seccomp_bpf.hpp"
#include "container/linux/seccomp_rules.hpp"
#include "support/classic_bpf.hpp"
#include <gtest/gtest.h>
#include <linux/audit.h>

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

} // namespace
} // namespace glove::container::seccomp
