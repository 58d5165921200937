// What a helper program of Glove takes away from itself before it reads a byte of the agent.
//
// Each of these can only make the caller weaker. Nothing here is a boundary alone: the filter, the
// files and the capabilities go together.
#pragma once
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <linux/filter.h>
#include <span>
#include <string>
#include <vector>

namespace glove::sys {

// No core file is written, and no program that the machine may have for them is started: the kernel
// starts that for a limit of 0 as well, and not for one of 1 byte. Where the limit is 0 already it
// cannot be raised. Between fork and exec, too.
[[nodiscard]] auto forbid_core_files() noexcept -> bool;

// Ends with its starter, cannot be traced or read, leaves no core, and sees a broken pipe as an
// error.
[[nodiscard]] auto harden(step_name step) -> result<>;
// What a service manager sends to every process of a service, and a terminal to a group.
inline constexpr std::array farewells{SIGHUP, SIGINT, SIGTERM};
// They are meant for whoever started this one, and wait from now on.
[[nodiscard]] auto block_farewells(step_name step) -> result<>;

// Only `places` can be read, and nothing written, executed or made; without Landlock in the kernel
// the filter has to do. What does not exist is left out.
[[nodiscard]] auto restrict_files(step_name step, std::span<const std::string> places) -> result<>;

// A list that is read from top to bottom: what is not on it answers EPERM. Foreign entries kill.
class call_filter {
public:
    call_filter();
    void allow(long number);
    // With none of `bits` in argument `index`.
    void allow_without(long number, unsigned index, std::uint32_t bits);
    // With one of `values` in argument `index`.
    void allow_values(long number, unsigned index, const std::vector<std::uint32_t>& values);
    // Memory that is never executable.
    void allow_memory();
    [[nodiscard]] auto install(step_name step) -> result<>;

    // For rules that look at more than one argument: instructions whose jumps stay among
    // themselves.
    void append(::sock_filter instruction) { code_.push_back(instruction); }
    void load_argument(unsigned index);
    void load_number();
    void answer(std::uint32_t what);
    // Goes on with the next instruction when equal, else `skip` instructions further.
    void unless_equal(long value, std::size_t skip);
    static constexpr std::uint32_t refusal = 0x0005'0001; // SECCOMP_RET_ERRNO | EPERM

private:
    void load(std::size_t offset);
    std::vector<::sock_filter> code_;
};

} // namespace glove::sys
