// What the runtime needs of the machine: a host that makes a plan's session ready, and the session
// that it made. The runtime owns the order of things and the records; what is behind this owns
// namespaces, control groups, file systems, copies and leases. Tests put their own here.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/control/answer.hpp>
#include <glove/control/receipt.hpp>
#include <glove/control/resource_meter.hpp>
#include <glove/control/session_receipt.hpp>
#include <glove/control/session_record.hpp>
#include <glove/control/session_registry.hpp>
#include <glove/control/termination.hpp>
#include <glove/sys/fd.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace glove::control {

// What a session left, for its receipt, and what could not be told.
struct session_remains {
    std::vector<retained_change_receipt> retained_changes; // by id
    std::vector<error> troubles;                           // for the log
};

// A session that is ready to be launched, and then the one that was. Dropping it ends every process
// of it at once and gives back what it held.
class hosted_session {
public:
    virtual ~hosted_session() = default;

    // Before the launch.
    [[nodiscard]] virtual auto binding() const -> const start_binding& = 0;
    // Without the times and the retained changes.
    [[nodiscard]] virtual auto facts() const -> receipt_facts = 0;
    // Of one half of a comparison: what is to be shown every byte of the terminal. Once.
    [[nodiscard]] virtual auto take_evaluator() -> std::optional<transcript_evaluator> = 0;

    // Builds everything, up to a first process that waits for `release`. Who that is, for the
    // record. By the deadline, on the monotonic clock.
    [[nodiscard]] virtual auto launch(std::chrono::nanoseconds deadline)
        -> result<process_identity> = 0;
    // After the launch, once: the master of its terminal.
    [[nodiscard]] virtual auto take_terminal() -> sys::unique_fd = 0;
    [[nodiscard]] virtual auto meter() -> resource_meter& = 0;
    [[nodiscard]] virtual auto processors() const -> unsigned = 0;
    // That it is on record: the first process goes on to the agent's program.
    [[nodiscard]] virtual auto release() -> result<> = 0;

    // What is to be waited for; `advance` is asked whenever one of them is readable, and each
    // second at the latest. It never waits for a process of the session. By one thread.
    [[nodiscard]] virtual auto descriptors() const -> std::vector<sys::fd_ref> = 0;
    // How the first process ended, once every process of the session has. An error is an end that
    // nobody knows, told once.
    [[nodiscard]] virtual auto advance() -> result<std::optional<process_end>> = 0;

    // Any thread, without waiting; after the end they do nothing.
    [[nodiscard]] virtual auto signal_foreground(int number) const -> result<> = 0;
    [[nodiscard]] virtual auto kill() const -> result<> = 0;

    // After the end, and before the receipt: what it left is read, what was lent is taken back, and
    // what must last is on the disk. Ends early, with troubles, when it is told to stop.
    [[nodiscard]] virtual auto conclude(std::stop_token stop) -> session_remains = 0;
};

class session_host {
public:
    virtual ~session_host() = default;
    // Whether every one of the six limits can be held now, and something be started.
    [[nodiscard]] virtual auto operational() const noexcept -> bool = 0;
    [[nodiscard]] virtual auto evaluates_refinements() const noexcept -> bool = 0;
    // Judges the plan again, as the policy and the exposures are now, and makes everything ready
    // that can be before the first record. Nothing is left behind by a refusal.
    [[nodiscard]] virtual auto prepare(const session_record& of,
                                       const supervisor::sealed_plan& plan)
        -> result<std::unique_ptr<hosted_session>> = 0;
};

} // namespace glove::control
