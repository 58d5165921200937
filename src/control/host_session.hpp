// One session of the Linux host, from the moment when everything is ready for its launch.
//
// Guarantees: its parts end in the order in which they need each other; dropping it ends every
// process of it, and what it never used is removed.
#pragma once
#include "control/host_egress.hpp"
#include "control/host_filesystems.hpp"
#include "control/host_program.hpp"
#include "control/host_secrets.hpp"
#include <atomic>
#include <functional>
#include <glove/audit/jsonl.hpp>
#include <glove/container/launcher.hpp>
#include <glove/container/session_groups.hpp>
#include <glove/control/session_host.hpp>
#include <glove/control/session_meter.hpp>
#include <glove/net/egress_service.hpp>
#include <memory>
#include <mutex>
#include <optional>

namespace glove::control {

// What of the host a session needs; it outlives the session.
struct host_means {
    const sys::clock& time;
    container::launcher& launcher;
    std::string egress_log, egress_program;
    unsigned processors = 1;
};

// How long the processes of a session may take to end, once they were killed or the first of them
// has said that it ends.
inline constexpr std::chrono::seconds patience_with_end{30};
class slow_end {
public:
    // Asked now and then. From the patience on, counted from when it was first ending.
    [[nodiscard]] auto is_overdue(bool is_ending, std::chrono::nanoseconds now) -> bool {
        if (!is_ending) return false;
        if (!since_) since_ = now;
        return now - *since_ >= patience_with_end;
    }

private:
    std::optional<std::chrono::nanoseconds> since_;
};

struct prepared_session {
    std::string session_id;
    start_binding binding;
    receipt_facts facts;
    std::optional<transcript_evaluator> evaluator;
    session_program program;
    std::optional<online_plan> online;
    std::vector<session_secret> secrets;
    container::session_group group;
    session_filesystems files;
    std::function<result<>()> is_still_granted;
    std::unique_ptr<container::plan> plan; // whoever was launched by it points to it
};

class host_session final : public hosted_session {
public:
    host_session(const host_means& means, prepared_session made);
    ~host_session() override;

    [[nodiscard]] auto binding() const -> const start_binding& override { return made_.binding; }
    [[nodiscard]] auto facts() const -> receipt_facts override { return made_.facts; }
    [[nodiscard]] auto take_evaluator() -> std::optional<transcript_evaluator> override;
    [[nodiscard]] auto launch(std::chrono::nanoseconds deadline)
        -> result<process_identity> override;
    [[nodiscard]] auto take_terminal() -> sys::unique_fd override;
    [[nodiscard]] auto meter() -> resource_meter& override { return meter_; }
    [[nodiscard]] auto processors() const -> unsigned override { return means_.processors; }
    [[nodiscard]] auto release() -> result<> override;
    [[nodiscard]] auto descriptors() const -> std::vector<sys::fd_ref> override;
    [[nodiscard]] auto advance() -> result<std::optional<process_end>> override;
    [[nodiscard]] auto signal_foreground(int number) const -> result<> override;
    [[nodiscard]] auto kill() const -> result<> override;
    [[nodiscard]] auto conclude(std::stop_token stop) -> session_remains override;

private:
    void end_process();
    [[nodiscard]] auto use() -> result<container::filesystem_use>;
    [[nodiscard]] auto start_network(sys::unique_fd relay) -> result<>;
    [[nodiscard]] auto await_terminal(std::chrono::nanoseconds deadline) -> result<>;

    const host_means& means_;
    prepared_session made_;
    std::optional<audit::jsonl_sink> egress_log_;
    std::optional<session_records> records_; // its place in there
    std::optional<net::egress_service> network_;
    // Who is not the owner's thread signals it while this is held.
    mutable std::mutex reach_;
    std::optional<container::running> process_;
    bool is_live_ = false; // from its launch to its end
    mutable std::atomic<bool> killed_{false};
    slow_end end_;
    sys::unique_fd terminal_;
    container::filesystem_use last_use_;
    session_meter meter_;
};

} // namespace glove::control
