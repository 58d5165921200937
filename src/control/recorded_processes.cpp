// Looks at /proc and never signals. Another boot or another beginning means that a process is gone;
// everything that is not certain is unknown.
#include <cerrno>
#include <csignal>
#include <glove/base/numbers.hpp>
#include <glove/control/recorded_processes.hpp>
#include <glove/sys/files.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace glove::control {

namespace {

constexpr std::size_t most_bytes = 4096;
constexpr std::size_t start_field = 19; // after the name, from 0

// The time since boot at which the process began, as the kernel counts it. The name stands in
// parentheses and may hold anything.
[[nodiscard]] auto start_ticks(std::string_view stat) -> std::optional<std::uint64_t> {
    const auto name_end = stat.rfind(") ");
    if (name_end == stat.npos) return std::nullopt;
    stat.remove_prefix(name_end + 2);
    for (std::size_t i = 0; i < start_field; ++i) {
        const auto space = stat.find(' ');
        if (space == stat.npos) return std::nullopt;
        stat.remove_prefix(space + 1);
    }
    return parse_decimal(stat.substr(0, stat.find(' ')), UINT64_MAX);
}

} // namespace

// Signal 0 is none. A process of another user is there as well.
auto recorded_processes::kernel_says_free(std::uint32_t pid) -> bool {
    if (pid == 0 || !std::in_range<pid_t>(pid)) return false;
    return ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

auto recorded_processes::observe(const session_record& of) -> observed_process {
    const auto& was = of.process;
    if (was.pid == 0 || of.managed_runtime) return observed_process::unknown;
    const auto boot = sys::read_file(proc_ + "/sys/kernel/random/boot_id", most_bytes);
    if (!boot) return observed_process::unknown;
    if (std::string_view{*boot}.substr(0, was.boot_id.size()) != was.boot_id)
        return observed_process::gone;
    const auto stat = sys::read_file(proc_ + "/" + std::to_string(was.pid) + "/stat", most_bytes);
    if (!stat) return is_free_(was.pid) ? observed_process::gone : observed_process::unknown;
    const auto ticks = start_ticks(*stat);
    if (ticks && *ticks != was.start_time_ticks) return observed_process::gone;
    return observed_process::unknown;
}

} // namespace glove::control
