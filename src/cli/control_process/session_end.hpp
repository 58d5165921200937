// How a session ended, as its receipt says, and the status that this means.
#pragma once
#include "cli/control_process/receipt_chain.hpp"
#include "cli/control_process/session_shown.hpp"
#include <array>
#include <optional>

namespace glove::cli {

struct end_status {
    control::termination_cause cause;
    int status;
};
// Of a session that did not exit by itself; docs/session.md has the same.
inline constexpr std::array end_statuses{
    end_status{control::termination_cause::signaled, 128},
    end_status{control::termination_cause::cpu_time_limit, 137},
    end_status{control::termination_cause::memory_limit, 137},
    end_status{control::termination_cause::pid_limit, 137},
    end_status{control::termination_cause::wall_time_limit, 137},
    end_status{control::termination_cause::disk_limit, 137},
    end_status{control::termination_cause::terminal_output_limit, 137},
    end_status{control::termination_cause::supervisor_error, 125},
};
// Of `exited` its exit code.
[[nodiscard]] auto status_of_end(control::termination_cause cause,
                                 std::optional<std::uint32_t> exit_code) -> int;

// The receipt of a session behind a place of the chain: the last one, if there are several.
struct found_end {
    control::termination_cause cause{};
    std::optional<std::uint32_t> exit_code = {};
};
[[nodiscard]] auto find_end(const service& asks, const control::session_view& of,
                            control::receipt_anchor from)
    -> result<or_refused<std::optional<found_end>>>;

} // namespace glove::cli
