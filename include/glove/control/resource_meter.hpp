// What a session has used, as whoever holds its limits can tell. The readers of control groups and
// of file systems with quotas are behind this; tests put their own here.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>

namespace glove::control {

// What the kernel refused or ended, and the most that was used so far, since the session began.
struct resource_state {
    std::uint64_t peak_memory_bytes = 0;
    std::uint64_t memory_kills = 0;     // processes that were killed for want of memory
    std::uint64_t memory_limit_met = 0; // times that the session's own limit left no room
    std::uint32_t peak_pids = 0;
    std::uint64_t pids_refused = 0; // processes and threads that the limit refused
    std::uint64_t disk_bytes = 0;   // the most that its writable file systems held together
    bool disk_refused = false;      // one of them had no room for a write
    auto operator==(const resource_state&) const -> bool = default;

    // Killed for want of the session's memory, and not of the machine's.
    [[nodiscard]] constexpr auto is_over_memory() const noexcept -> bool {
        return memory_kills != 0 && memory_limit_met != 0;
    }
};

// Used by one thread. Never waits. An error means that a limit cannot be watched any more.
class resource_meter {
public:
    virtual ~resource_meter() = default;
    // Microseconds of processor time of all processes, the ended ones too; never less than before.
    [[nodiscard]] virtual auto cpu_us() -> result<std::uint64_t> = 0;
    [[nodiscard]] virtual auto state() -> result<resource_state> = 0;
};

} // namespace glove::control
