// The control group of one run: what the kernel holds for all of its processes together.
//
// Guarantees: the sandbox's init is in the group, and every limit was read back, before anything of
// the perimeter is built; what cannot be held is refused by name, never left out. The group is held
// by descriptor from then on. Nobody inside can reach its files, and no process leaves it. It is
// gone with the run.
// It never moves the caller, and touches no group that is not its own.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/profile.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace glove::container {

// Whether a limit is asked for that takes a control group.
[[nodiscard]] auto needs_control_group(const limits& asked) noexcept -> bool;

// Who keeps the place of the group.
enum class group_keeper : std::uint8_t {
    user_manager, // a scope of the user's service manager, made for this run
    delegation,   // a group that was delegated to this user already
};
[[nodiscard]] auto to_string(group_keeper keeper) noexcept -> std::string_view;

// What the kernel says that it holds, in its own words; empty where nothing was asked.
struct enforced_limits {
    group_keeper keeper{};
    std::string memory_max, memory_swap_max, memory_oom_group, pids_max, cpu_max;
};

// What was used, and what the kernel refused or ended.
struct group_usage {
    std::uint64_t cpu_us = 0;
    std::optional<std::uint64_t> memory_peak; // bytes; kernels before 5.19 do not tell
    std::uint64_t out_of_memory = 0;          // processes that the kernel killed for want of it
    std::uint64_t memory_limit_met = 0;       // times that this group's own limit left no room
    std::uint64_t processes_refused = 0;

    // Killed for want of memory, and for want of the group's, not of the machine's.
    [[nodiscard]] auto is_over_memory() const noexcept -> bool {
        return out_of_memory > 0 && memory_limit_met > 0;
    }
};

class control_group {
public:
    // `run` names the group. `own` is how many processes of Glove's are inside, which do not count
    // as the command's. Makes nothing yet. Every error names the options.
    [[nodiscard]] static auto prepare(const limits& asked, const std::string& run, unsigned own)
        -> result<control_group>;
    control_group(control_group&&) noexcept;
    auto operator=(control_group&&) -> control_group& = delete;
    // Ends what is left in the group, and removes it.
    ~control_group();

    // Makes the group, sets its limits, and puts the process into it. `init` is a child that was
    // not reaped, waits, and has no child of its own. Once.
    [[nodiscard]] auto admit(::pid_t init) -> result<>;
    // The keeper from the first; what is held, once `admit` has succeeded.
    [[nodiscard]] auto enforced() const -> const enforced_limits&;
    [[nodiscard]] auto usage() const -> result<group_usage>;

private:
    struct state;
    explicit control_group(std::unique_ptr<state> own);
    std::unique_ptr<state> state_;
};

} // namespace glove::container
