// Looks and never signals; without proof of its end, what became of a process is unknown.
#include <glove/base/numbers.hpp>
#include <glove/control/recorded_processes.hpp>
#include <glove/sys/files.hpp>
#include <optional>
#include <string_view>

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

auto recorded_processes::observe(const session_record& of) -> observed_process {
    const auto& was = of.process;
    if (was.pid == 0 || of.managed_runtime) return observed_process::unknown;
    const auto boot = sys::read_file(proc_ + "/sys/kernel/random/boot_id", most_bytes);
    if (!boot) return observed_process::unknown;
    if (std::string_view{*boot}.substr(0, was.boot_id.size()) != was.boot_id)
        return observed_process::gone;
    const auto stat = sys::read_file(proc_ + "/" + std::to_string(was.pid) + "/stat", most_bytes);
    if (!stat)
        return stat.error().code == errc::not_found ? observed_process::gone
                                                    : observed_process::unknown;
    const auto ticks = start_ticks(*stat);
    if (ticks && *ticks != was.start_time_ticks) return observed_process::gone;
    return observed_process::unknown;
}

} // namespace glove::control
