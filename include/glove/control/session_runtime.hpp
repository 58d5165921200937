// Runs the sessions of plans: the order of a start and of an end, and what is on record at each
// point of it.
//
// Guarantees:
// - Nothing of a session runs before its record says `running`, and a record never says that it is
//   over before its receipt is on the disk. A start that is refused leaves no process, thread or
//   descriptor. A session that is on record as running ends with a receipt; only one whose receipt
//   cannot be made, because a host gave facts of no form, fails as `supervisor_error`.
// - Whatever is asked, however often and by how many, a session is started once. Of two starts of
//   one session at a time one does it, and the other is told the state as it is, at once.
// - A limit ends a session without any disk: its processes are killed first and the intent goes on
//   record after that. A stop that somebody asks for is on record first; when that fails, it is
//   refused, and the session is ended all the same.
// - The last byte that the terminal showed is counted and kept before the receipt is made.
// - A session that was prepared and whose authorization has passed fails as
//   `authorization_expired`: at the next start of it, or by a thread of the runtime's own, which
//   also does so for those of the process before this one.
// - One session has two threads while it is alive and none when it is over, or was refused. What
//   its terminal showed stays until it is cleaned up. A place is taken from the start until then.
//
// It judges no plan and owns no namespace, control group or file: the host does. Starts work on the
// thread of the caller, who sees to the request's deadline. Safe for use by several threads.
#pragma once
#include <array>
#include <chrono>
#include <functional>
#include <glove/control/managed_runtime.hpp>
#include <glove/control/receipt_journal.hpp>
#include <glove/control/service_log.hpp>
#include <glove/control/session_host.hpp>
#include <glove/control/session_registry.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <glove/sys/clock.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

// What a start and an end are made of, in their order. The last two also end a start that failed.
inline constexpr std::array<std::string_view, 12> runtime_steps{
    "reserve_start", "reserve_receipt", "prepare",  "mark_starting",  "launch",      "mark_running",
    "release",       "mark_stopping",   "conclude", "append_receipt", "mark_exited", "mark_failed"};

struct runtime_settings {
    std::size_t most_live = 64; // sessions that were started and not cleaned up
    std::chrono::milliseconds launch_time{30'000};
    std::chrono::milliseconds drain_time{2'000}; // of a terminal, after the last process
    // Between attempts to put an end on record; doubled up to the longest.
    std::chrono::milliseconds first_retry{100};
    std::chrono::milliseconds longest_retry{5'000};
    // For tests: asked before each of `runtime_steps`, by its name and the session. An error is the
    // step's.
    std::function<result<>(std::string_view step, std::string_view session_id)> before_step = {};
};

// All outlive the runtime.
struct runtime_parts {
    session_registry* sessions = nullptr;
    receipt_journal* receipts = nullptr;
    const supervisor::session_rules* rules = nullptr;
    session_host* host = nullptr;
    const sys::clock* clock = nullptr;
    service_log* log = nullptr;
};

class session_runtime final : public managed_runtime {
public:
    // Steps: runtime.parts, runtime.thread.
    [[nodiscard]] static auto create(const runtime_parts& of, runtime_settings how = {})
        -> result<std::unique_ptr<session_runtime>>;
    // Nobody may be in a call any more. What `stop_all` did not end is ended without a record: the
    // next process finds it.
    ~session_runtime() override;

    [[nodiscard]] auto lifecycle_operational() const noexcept -> bool override;
    [[nodiscard]] auto has_sessions() const noexcept -> bool override;
    [[nodiscard]] auto backend() const noexcept -> supervisor::backend_kind override;
    // None while nothing can be started.
    [[nodiscard]] auto mechanisms() const -> enforcement_mechanisms override;
    [[nodiscard]] auto runtime_ids() const -> std::vector<std::string> override;
    [[nodiscard]] auto evaluates_refinements() const noexcept -> bool override;
    [[nodiscard]] auto admits_observations() const -> bool override;

    // Each refusal is the code of its method; why it is one stands in the error. Steps:
    // runtime.stopping, runtime.host, runtime.capacity, runtime.expired, runtime.session, and those
    // of the registry, the journal, the host and the terminal.
    [[nodiscard]] auto start(std::string_view key, const start_authorization& what)
        -> answer<session_view> override;
    [[nodiscard]] auto attach(std::string_view session_id, std::uint64_t cursor,
                              std::size_t most_bytes) -> answer<transcript_page> override;
    [[nodiscard]] auto write_input(std::string_view session_id, std::string_view bytes)
        -> answer<> override;
    [[nodiscard]] auto resize(std::string_view session_id, std::uint16_t rows,
                              std::uint16_t columns) -> answer<> override;
    [[nodiscard]] auto signal(std::string_view session_id, session_signal which)
        -> answer<> override;
    [[nodiscard]] auto detach(std::string_view session_id, std::uint64_t cursor)
        -> answer<> override;
    [[nodiscard]] auto stop(std::string_view key, std::string_view session_id)
        -> answer<session_view> override;
    [[nodiscard]] auto cleanup(std::string_view session_id) -> answer<> override;

    // The service ends: nothing more is started, and every session is ended and gets its receipt,
    // by the deadline on the monotonic clock. The ids of those that did not make it; the next
    // process finds them.
    [[nodiscard]] auto stop_all(std::chrono::nanoseconds deadline) -> std::vector<std::string>;

private:
    struct state;
    explicit session_runtime(std::unique_ptr<state> owned);
    std::unique_ptr<state> state_;
};

} // namespace glove::control
