// Watches the limits of a session that nothing but looking can hold: processor time and wall time;
// and tells of those that the kernel holds, when it had to.
//
// Guarantees: no cause is told before its limit was exceeded; equal is fine. Wall time is told at
// the first look after it, and `check` says when to look. Processor time is looked at again before
// the processors together could use up what is left, but not sooner than `shortest_look` after the
// last time. So when looks come `lateness` late at most, a session on `cpus` processors is told of
// after at most
//     limit + cpus * (shortest_look + lateness) + 1 us, which a meter does not tell
// (`most_overrun`), and ended as much later as the ending takes. What cannot be read is not held:
// the session has an error of the supervisor's then. Nothing here reads a clock but the one that is
// given, nor ends anything.
//
// When one look finds several limits exceeded, what the kernel has acted on goes before what was
// only looked at: memory, processes, disk, processor time, wall time.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/control/receipt.hpp>
#include <glove/control/resource_meter.hpp>
#include <glove/control/termination.hpp>
#include <glove/sys/clock.hpp>
#include <optional>

namespace glove::control {

class resource_watch {
public:
    static constexpr std::chrono::milliseconds shortest_look{10};
    static constexpr std::chrono::milliseconds longest_look{250};
    static constexpr unsigned most_cpus = 65'536;

    struct wish {
        supervisor::resource_limits limits;
        unsigned cpus = 1; // how many the session can use at once; 1 to most_cpus
        // All outlive the watch.
        const sys::clock* clock = nullptr;
        resource_meter* meter = nullptr;
        termination* into = nullptr;
    };
    // The session begins now: what its meters say already is not its own. Steps: watch.limits, and
    // those of the meter.
    [[nodiscard]] static auto begin(const wish& with) -> result<resource_watch>;

    // Looks at what is due, notes what is exceeded, and says when, on the clock's monotonic time,
    // to look again. One thread. After an error, which is noted as the supervisor's, too, there is
    // no point in looking again.
    [[nodiscard]] auto check() -> result<std::chrono::nanoseconds>;
    // The first process has ended now: wall time stops. What was written and used before is still
    // to be found, by `finish`. The first call stands.
    void end_wall_time();
    // The last look, after every process has ended and before the end is noted. When a meter fails,
    // what was used is the most that was seen.
    [[nodiscard]] auto finish() -> result<>;

    // The most that was seen so far; processor and wall time as whole milliseconds, rounded up, so
    // that what exceeded a limit also looks like it. Output is not its own: 0.
    [[nodiscard]] auto observed() const -> observed_use;
    [[nodiscard]] auto is_over_memory() const noexcept -> bool { return state_.is_over_memory(); }

    [[nodiscard]] static constexpr auto most_overrun(unsigned cpus,
                                                     std::chrono::nanoseconds lateness) noexcept
        -> std::chrono::nanoseconds {
        return cpus * (std::chrono::nanoseconds{shortest_look} + lateness) +
               std::chrono::microseconds{1};
    }

private:
    explicit resource_watch(const wish& with) : with_{with} {}
    [[nodiscard]] auto wall_now() const -> std::chrono::nanoseconds;
    [[nodiscard]] auto look_at_cpu() -> result<>;
    [[nodiscard]] auto look_at_state() -> result<>;
    [[nodiscard]] auto look(bool at_all) -> result<>;
    void judge();
    [[nodiscard]] auto cpu_left_us() const -> std::uint64_t;

    wish with_;
    std::uint64_t first_cpu_us_ = 0, cpu_us_ = 0; // at the beginning; since then
    resource_state first_, state_;
    std::chrono::nanoseconds begun_{}, cpu_due_{}, state_due_{};
    std::optional<std::chrono::nanoseconds> wall_; // once it has stopped
};

} // namespace glove::control
