// Looks at /proc and never signals. Another boot or another beginning means that a process is gone;
// everything that is not certain is unknown.
#include <cerrno>
#include <csignal>
#include <glove/control/recorded_processes.hpp>
#include <glove/sys/process_facts.hpp>
#include <utility>

namespace glove::control {

// Signal 0 is none. A process of another user is there as well.
auto recorded_processes::kernel_says_free(std::uint32_t pid) -> bool {
    if (pid == 0 || !std::in_range<pid_t>(pid)) return false;
    return ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

auto recorded_processes::observe(const session_record& of) -> observed_process {
    const auto& was = of.process;
    if (was.pid == 0 || of.managed_runtime) return observed_process::unknown;
    const auto boot = sys::boot_id(proc_);
    if (!boot || was.boot_id.empty()) return observed_process::unknown;
    if (*boot != was.boot_id) return observed_process::gone;
    if (!std::in_range<::pid_t>(was.pid)) return observed_process::unknown;
    const auto facts = sys::facts_of_process(static_cast<::pid_t>(was.pid), proc_);
    if (facts) {
        const bool is_another = facts->start_ticks != was.start_time_ticks;
        return is_another || facts->has_ended ? observed_process::gone : observed_process::unknown;
    }
    if (facts.error().code != errc::corrupt && is_free_(was.pid)) return observed_process::gone;
    return observed_process::unknown;
}

} // namespace glove::control
