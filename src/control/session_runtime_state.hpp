// What is behind a runtime: the places of its sessions, and the thread that keeps house. The lock
// is never held while a disk, a host or a terminal is asked.
#pragma once
#include "control/live_session.hpp"
#include <condition_variable>
#include <glove/control/session_runtime.hpp>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <variant>

namespace glove::control {

struct session_runtime::state {
    using session_ptr = std::shared_ptr<live_session>;
    using receipt = std::variant<resource_receipt, refinement_receipt>;

    state(const runtime_parts& of, runtime_settings with) : has{of}, how{std::move(with)} {}
    ~state();

    [[nodiscard]] auto now_ms() const -> std::uint64_t;
    [[nodiscard]] auto ask(std::string_view step, std::string_view id) const -> answer<>;
    void tell(std::string_view name, std::string_view id, const error& why) const;
    void say(std::string_view name, std::string text) const;
    [[nodiscard]] auto find(std::string_view id) -> session_ptr;

    // A start: session_runtime_start.cpp.
    class attempt; // that is withdrawn unless it came to the gate
    [[nodiscard]] auto start(std::string_view key, const start_authorization& what)
        -> answer<session_view>;
    // `lock` is held.
    [[nodiscard]] auto may_start() const -> answer<>;
    // Null when somebody else has it.
    [[nodiscard]] auto claim(std::string_view key, const std::string& id) -> answer<session_ptr>;
    void withdraw(live_session& what);
    [[nodiscard]] auto prepare(live_session& mine, const session_record& record) -> answer<>;
    [[nodiscard]] auto launch(const session_ptr& mine, const session_record& record) -> answer<>;
    void note_failure(const std::string& key, std::string_view id, std::string_view code);

    // An end, by the session's own thread: session_runtime_end.cpp.
    void run(const session_ptr& mine);
    void note_stopping(live_session& mine);
    void put_end_on_record(live_session& mine, const process_end& end);
    [[nodiscard]] auto receipt_for(live_session& mine, const settled_end& end)
        -> std::optional<result<receipt>>;
    [[nodiscard]] auto append(live_session& mine, const receipt& what) -> answer<terminal_envelope>;
    [[nodiscard]] auto note_exit(live_session& mine, const terminal_envelope& what)
        -> answer<session_view>;
    enum class again : bool { no, yes };
    // Again and again until it succeeds, or the service ends; nothing then, or when another try
    // would not help.
    template<class Act, class May>
    [[nodiscard]] auto keep_trying(std::string_view step, std::string_view id, Act act, May may)
        -> std::optional<typename std::invoke_result_t<Act>::value_type>;
    [[nodiscard]] auto pause(std::chrono::milliseconds time) -> bool; // false: it is no use

    // The thread that keeps house: session_runtime.cpp.
    void keep_house();
    void look_for_prepared();
    void fail_overdue();
    [[nodiscard]] auto overdue() -> std::vector<std::string>;
    void close(); // nothing more is started, everything is ended
    void give_up();
    [[nodiscard]] auto wait_until_over(std::chrono::nanoseconds deadline)
        -> std::vector<std::string>;

    const runtime_parts has;
    const runtime_settings how;
    mutable std::mutex lock;
    std::condition_variable changed;
    std::map<std::string, session_ptr, std::less<>> slots;
    // Until when those may be launched that are prepared; wall clock.
    std::map<std::string, std::uint64_t, std::less<>> prepared;
    std::vector<session_ptr> finished; // their threads end
    std::size_t working = 0;           // sessions that are being started, alive or being ended
    bool closing = false, given_up = false, house_over = false;
    std::stop_source concluding;
    std::thread house;
};

template<class Act, class May> auto
session_runtime::state::keep_trying(std::string_view step, std::string_view id, Act act, May may)
    -> std::optional<typename std::invoke_result_t<Act>::value_type> {
    bool told = false;
    for (auto wait = how.first_retry;; wait = std::min(2 * wait, how.longest_retry)) {
        auto done = [&]() -> std::invoke_result_t<Act> {
            GLOVE_CHECK(ask(step, id));
            return act();
        }();
        if (done) return *std::move(done);
        if (!std::exchange(told, true)) tell("session.not_on_record", id, done.error().why);
        if (may(done.error()) == again::no || !pause(wait)) return std::nullopt;
    }
}

} // namespace glove::control
