// What the agent's system calls are answered, as data, and the judge that reads it.
//
// Guarantees: every call of `calls` has exactly one rule in every program; a number without a rule
// answers ENOSYS; a foreign architecture or the x32 entry kills. `judge` is the specification: the
// compiled programs must agree with it for every number. It never asks the kernel or libseccomp,
// and the product does not link it: only the generator and the tests do.
#pragma once
#include "container/linux/seccomp_calls.hpp"
#include <array>
#include <cerrno>
#include <cstdint>
#include <glove/container/network_tier.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glove::container::seccomp {

enum class machine : std::uint8_t { x86_64, arm64 };
inline constexpr auto machines = std::to_array({machine::x86_64, machine::arm64});

[[nodiscard]] auto to_string(machine on) noexcept -> std::string_view;
// The AUDIT_ARCH_* value the kernel reports for the machine's own entry.
[[nodiscard]] auto audit_arch(machine on) noexcept -> std::uint32_t;

// One compiled program each. A sealed agent's descriptors 3 .. 3 + declared - 1 are its own.
struct variant {
    std::string_view name;
    network_tier tier;
    unsigned declared;
};
inline constexpr auto variants = std::to_array<variant>({
    {"offline", network_tier::offline, 0},
    {"local", network_tier::local, 0},
    {"egress", network_tier::egress, 0},
    {"sealed_0", network_tier::sealed, 0},
    {"sealed_1", network_tier::sealed, 1},
});

enum class verdict : std::uint8_t { allow, refuse, kill };
struct decision {
    verdict outcome;
    int error = 0; // what a refused caller sees in errno
    auto operator==(const decision&) const -> bool = default;
};
inline constexpr decision allow{verdict::allow};
inline constexpr decision kill{verdict::kill};
[[nodiscard]] constexpr auto refuse(int error) -> decision { return {verdict::refuse, error}; }
// Nothing is done, and the caller is told that it was.
inline constexpr auto pretend = refuse(0);
// As a kernel without the call answers, so libc tries its older way.
inline constexpr auto absent = refuse(ENOSYS);

// (argument & mask) == value. Both are 32 bits wide on purpose: where the kernel takes an int it
// ignores the upper half of the register, so a rule that looked at it could be passed by filling
// it.
struct condition {
    unsigned argument;
    std::uint32_t mask; // 0: no condition
    std::uint32_t value;
    bool is_pointer = false; // all 64 bits count, and those above are zero
};
struct clause {
    std::array<condition, 3> all; // each about another argument
    decision then;
};

struct rule {
    call_numbers call;
    std::span<const clause> clauses; // the first that holds decides
    decision otherwise;
    std::string_view why;
    [[nodiscard]] auto number(machine on) const noexcept -> int {
        return on == machine::x86_64 ? call.x86_64 : call.arm64;
    }
};

// In the order of `calls`.
[[nodiscard]] auto rules_of(const variant& program) -> const std::vector<rule>&;

// What struct seccomp_data tells a filter.
struct entry {
    std::uint32_t arch;
    std::uint32_t number;
    std::array<std::uint64_t, 6> arguments{};
};
[[nodiscard]] auto judge(machine on, const variant& program, const entry& call) -> decision;

// Mistakes in the table, one sentence each; the build and the tests both insist on none.
[[nodiscard]] auto faults() -> std::vector<std::string>;

// The table as a person reviews it, one line per call.
[[nodiscard]] auto listing(const variant& program) -> std::string;

} // namespace glove::container::seccomp
