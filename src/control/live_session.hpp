// One session, from the moment at which somebody begins to start it until it is cleaned up: what
// the host made of it, its terminal, its limits and its two threads. What is on record is not its
// business.
//
// Guarantees: who ends it never waits for a disk, or for anybody else; its processes are killed at
// once, and again until they have ended. What is behind it goes as soon as it is over, whoever
// still looks at what its terminal showed.
//
// One thread starts it, until the gate; then the one that watches has it, and a second one pumps
// its terminal. What says so is called by any thread.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <glove/control/receipt_journal.hpp>
#include <glove/control/service_log.hpp>
#include <glove/control/session_host.hpp>
#include <glove/control/session_receipt.hpp>
#include <glove/supervisor/plan.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace glove::control {

// The keys of the records that a start leads to.
struct start_keys {
    explicit start_keys(std::string_view of)
        : reserve{std::string{of} + ".reserve"}, starting{std::string{of} + ".starting"},
          running{std::string{of} + ".running"}, failed{std::string{of} + ".failed"},
          stopping{std::string{of} + ".stopping"}, exited{std::string{of} + ".exited"} {}
    std::string reserve, starting, running, failed, stopping, exited;
};

class live_session {
public:
    live_session(std::string id, std::string_view key, const sys::clock& clock, service_log& log);
    live_session(const live_session&) = delete;
    auto operator=(const live_session&) -> live_session& = delete;
    ~live_session();

    const std::string id;
    const start_keys keys;
    // Written before the gate is opened.
    supervisor::session_plan plan;
    std::string controller_plan_digest;
    std::uint64_t started_at_ms = 0;
    std::optional<receipt_room> room;

    // By the thread that starts it, in this order.
    [[nodiscard]] auto adopt(std::unique_ptr<hosted_session> what) -> result<>;
    [[nodiscard]] auto hosted() const -> std::shared_ptr<hosted_session>; // any thread
    // Its terminal and its limits, after the launch; `watcher` is what the thread runs that watches
    // it, once the gate is opened.
    [[nodiscard]] auto attend(std::function<void()> watcher) -> result<>;
    // Time and use count from now on; then the first process may go on. What goes wrong, before or
    // in it, is an error of the supervisor's.
    void open_gate(const answer<>& before = {});
    // Instead: ends everything that there is, and waits for it.
    void abandon_start();

    // By the thread that watches. Returns when every process has ended, or at once when the session
    // was given up. `once_killed` is called once, when it is ended by something else than itself.
    [[nodiscard]] auto wait_for_end(const std::function<void()>& once_killed)
        -> std::optional<process_end>;
    [[nodiscard]] auto settle(const process_end& end, std::chrono::nanoseconds drained_by)
        -> settled_end;
    [[nodiscard]] auto evaluator() -> evaluator_feed* { return eye_ ? &*eye_ : nullptr; }
    [[nodiscard]] auto whole_transcript() const -> bool { return text_->complete(); }
    // What the host and the terminal hold goes; what was shown stays.
    void let_go();
    void note_over(); // after that
    // By somebody else, after that.
    void join();

    // Any thread.
    void end_it(bool is_on_record = false);
    [[nodiscard]] auto is_ending() const -> bool;
    [[nodiscard]] auto is_on_record() const -> bool { return on_record_; } // its stop
    void give_up(); // it is left to the next process
    [[nodiscard]] auto is_given_up() const -> bool { return given_up_; }
    // Null while there is nothing to show.
    [[nodiscard]] auto transcript() const -> const container::transcript*;
    // Null when it is not alive.
    [[nodiscard]] auto channel() const -> std::shared_ptr<container::pty_channel>;
    [[nodiscard]] auto is_active() const -> bool { return point_ < point::over; }
    [[nodiscard]] auto is_started() const -> bool { return point_ >= point::alive; }

private:
    enum class point : std::uint8_t { starting, alive, over };
    enum class gate : std::uint8_t { shut, opened, abandoned };

    [[nodiscard]] auto open_terminal(const std::shared_ptr<hosted_session>& of) -> result<>;
    [[nodiscard]] auto begin_watch(hosted_session& of) -> result<resource_watch>;
    void pump(container::pty_channel& from);
    [[nodiscard]] auto pass_gate() -> bool;
    [[nodiscard]] auto look_at_limits() -> std::chrono::nanoseconds;
    void kill(const std::function<void()>& once_killed);
    // Until one of the host's descriptors is to be looked at, or somebody wakes it.
    void wait(const hosted_session& of, std::chrono::nanoseconds until) const;
    void kill_now();
    void wake() const;
    void tell(std::string_view name, const error& why) const;

    const sys::clock& clock_;
    service_log& log_;
    std::atomic<point> point_ = point::starting;
    std::atomic<bool> end_wanted_ = false, on_record_ = false, given_up_ = false;
    termination ended_by_;
    std::optional<evaluator_feed> eye_; // before what feeds it
    std::unique_ptr<container::transcript> text_;

    mutable std::mutex lock_; // of the next three
    std::shared_ptr<hosted_session> hosted_;
    std::shared_ptr<container::pty_channel> channel_;
    sys::unique_fd wake_;

    std::mutex gate_lock_;
    std::condition_variable gate_moved_;
    gate gate_ = gate::shut;

    // Of the thread that watches.
    std::optional<resource_watch> watch_;
    bool is_watched_ = true, is_recorded_ = false, kill_failed_ = false;

    std::thread pumping_, watching_;
};

} // namespace glove::control
