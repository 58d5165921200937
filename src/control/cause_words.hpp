// Why a session ended, as it stands in receipts and in session records alike.
#pragma once
#include <glove/control/receipt.hpp>
#include <glove/wire/rules.hpp>

namespace glove::control {

inline constexpr wire::word<termination_cause> cause_words[] = {
    {"exited", termination_cause::exited},
    {"signaled", termination_cause::signaled},
    {"cpu_time_limit", termination_cause::cpu_time_limit},
    {"memory_limit", termination_cause::memory_limit},
    {"pid_limit", termination_cause::pid_limit},
    {"wall_time_limit", termination_cause::wall_time_limit},
    {"disk_limit", termination_cause::disk_limit},
    {"terminal_output_limit", termination_cause::terminal_output_limit},
    {"supervisor_error", termination_cause::supervisor_error},
};

} // namespace glove::control
