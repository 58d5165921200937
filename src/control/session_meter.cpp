// Reads and keeps the most: a peak is one, and a file system that was full has been full.
#include <algorithm>
#include <glove/control/session_meter.hpp>

namespace glove::control {

session_meter::session_meter(const container::session_group& group, disk_reader disk)
    : from_{.cpu_us = [&group] { return group.cpu_us(); },
            .group = [&group] { return group.usage(); },
            .disk = std::move(disk)} {}

auto session_meter::cpu_us() -> result<std::uint64_t> {
    GLOVE_TRY(const auto now, from_.cpu_us());
    cpu_us_ = std::max(cpu_us_, now);
    return cpu_us_;
}

auto session_meter::state() -> result<resource_state> {
    GLOVE_TRY(const auto group, from_.group());
    GLOVE_TRY(const auto disk, from_.disk());
    const auto keep = [](auto& most, auto now) { most = std::max(most, now); };
    keep(most_.peak_memory_bytes, group.memory_peak);
    keep(most_.memory_kills, group.out_of_memory);
    keep(most_.memory_limit_met, group.memory_limit_met);
    keep(most_.peak_pids, group.processes_peak);
    keep(most_.pids_refused, group.processes_refused);
    keep(most_.disk_bytes, disk.bytes);
    keep(most_.disk_refused, disk.refused);
    keep(cpu_us_, group.cpu_us);
    return most_;
}

} // namespace glove::control
