// The order of a start: reserved on record, room for the receipt, prepared by the host, on record
// as starting, launched, on record as running, released. Up to the third nothing is lost by a
// refusal, and the same start may be tried again; after that it fails for good; after the sixth it
// ends with a receipt.
#include "control/session_rules.hpp"
#include "control/session_runtime_state.hpp"
#include <utility>

namespace glove::control {

// Whatever becomes of it, nothing of it stays unless it came to the gate.
class session_runtime::state::attempt {
public:
    attempt(state& of, session_ptr what) : of_{of}, what_{std::move(what)} {}
    attempt(const attempt&) = delete;
    auto operator=(const attempt&) -> attempt& = delete;
    ~attempt() { withdraw(); }
    void withdraw() {
        if (const auto mine = std::exchange(what_, nullptr)) of_.withdraw(*mine);
    }
    void keep() { what_.reset(); }

private:
    state& of_;
    session_ptr what_;
};

namespace {

constexpr std::string_view expired = "authorization_expired";
constexpr std::string_view not_launched = "launch_failed";

// Only the time that was left may be why: everything else is a launch that failed.
[[nodiscard]] auto code_of(const refusal& why, bool has_expired) -> std::string_view {
    const bool late = has_expired && why.why.code == errc::timed_out;
    return late || why.code == error_code::invalid_authorization ? expired : not_launched;
}

} // namespace

auto session_runtime::state::may_start() const -> answer<> {
    if (closing)
        return refuse(error_code::session_start_failed, errc::wrong_state, "runtime.stopping",
                      "the service ends");
    if (slots.size() >= how.most_live)
        return refuse(error_code::session_capacity, errc::limit_exceeded, "runtime.capacity",
                      std::to_string(slots.size()) +
                          " sessions were started and not cleaned up, and no more may be");
    return {};
}

auto session_runtime::state::claim(std::string_view key, const std::string& id)
    -> answer<session_ptr> {
    const std::scoped_lock hold{lock};
    if (slots.contains(id)) return session_ptr{};
    GLOVE_CHECK(may_start());
    auto mine = std::make_shared<live_session>(id, key, *has.clock, *has.log);
    slots.emplace(id, mine);
    ++working;
    return mine;
}

void session_runtime::state::withdraw(live_session& what) {
    what.abandon_start();
    session_ptr gone; // outside of the lock
    const std::scoped_lock hold{lock};
    const auto at = slots.find(what.id);
    if (at != slots.end() && at->second.get() == &what) {
        gone = std::move(at->second);
        slots.erase(at);
    }
    --working;
    changed.notify_all();
}

void session_runtime::state::note_failure(const std::string& key, std::string_view id,
                                          std::string_view code) {
    auto done = [&]() -> answer<session_view> {
        GLOVE_CHECK(ask("mark_failed", id));
        return has.sessions->mark_failed(key, id, code);
    }();
    if (!done) return tell("session.not_on_record", id, done.error().why);
    say("session.failed", std::string{id} + ": " + std::string{code});
    const std::scoped_lock hold{lock};
    if (const auto at = prepared.find(id); at != prepared.end()) prepared.erase(at);
}

auto session_runtime::state::start(std::string_view key, const start_authorization& what)
    -> answer<session_view> {
    const start_keys keys{key};
    // What cannot be started now is not prepared, either: its authorization stays good.
    if (!has.sessions->replayed(keys.reserve)) {
        if (!has.host->operational())
            return refuse(error_code::session_start_failed, errc::wrong_state, "runtime.host",
                          "the limits of a session cannot be held now");
        const std::scoped_lock hold{lock};
        GLOVE_CHECK(may_start());
    }
    GLOVE_CHECK(ask("reserve_start", what.session_id));
    GLOVE_TRY(auto now, has.sessions->reserve_start(keys.reserve, what));
    if (now.state != session_state::preparing) return now;
    {
        const std::scoped_lock hold{lock};
        prepared.insert_or_assign(what.session_id, what.expires_at_ms);
        changed.notify_all();
    }
    GLOVE_TRY(auto mine, claim(key, what.session_id));
    if (mine == nullptr) return has.sessions->status(what.session_id);
    attempt trying{*this, mine};
    // Somebody else may have done it in between.
    GLOVE_TRY(const auto record, has.sessions->record(what.session_id));
    if (record.state != session_state::preparing) return view_of(record);
    if (now_ms() >= record.authorization_expires_at_ms) {
        note_failure(keys.failed, what.session_id, expired);
        return has.sessions->status(what.session_id);
    }
    GLOVE_CHECK(prepare(*mine, record));
    if (auto done = launch(mine, record); !done) {
        trying.withdraw(); // before anything is written about it
        const bool has_expired = now_ms() >= record.authorization_expires_at_ms;
        note_failure(keys.failed, what.session_id, code_of(done.error(), has_expired));
        return std::unexpected(std::move(done).error());
    }
    trying.keep();
    return has.sessions->status(what.session_id);
}

auto session_runtime::state::prepare(live_session& mine, const session_record& record) -> answer<> {
    const auto& id = mine.id;
    GLOVE_TRY(const auto sealed, or_refuse(supervisor::unseal(record.canonical_plan_json,
                                                              {record.controller_plan_digest,
                                                               record.plan_content_digest}),
                                           error_code::session_control_failed));
    mine.plan = sealed.plan;
    mine.controller_plan_digest = record.controller_plan_digest;
    GLOVE_CHECK(ask("reserve_receipt", id));
    GLOVE_TRY(mine.room, has.receipts->reserve(sealed.plan, *has.rules));
    GLOVE_CHECK(ask("prepare", id));
    GLOVE_TRY(auto hosted,
              or_refuse(has.host->prepare(record, sealed), error_code::session_start_failed));
    GLOVE_CHECK(or_refuse(mine.adopt(std::move(hosted)), error_code::session_start_failed));
    if (mine.is_ending())
        return refuse(error_code::session_start_failed, errc::wrong_state, "runtime.stopping",
                      "the service ends");
    return {};
}

auto session_runtime::state::launch(const session_ptr& mine, const session_record& record)
    -> answer<> {
    const auto& id = mine->id;
    const auto hosted = mine->hosted();
    GLOVE_CHECK(ask("mark_starting", id));
    GLOVE_CHECK(has.sessions->mark_starting(mine->keys.starting, id, hosted->binding()));
    GLOVE_CHECK(ask("launch", id));
    const auto deadline =
        has.clock->monotonic() + std::min(authorization_left(record, now_ms()), how.launch_time);
    GLOVE_TRY(const auto process,
              or_refuse(hosted->launch(deadline), error_code::session_start_failed));
    GLOVE_CHECK(
        or_refuse(mine->attend([this, mine] { run(mine); }), error_code::session_start_failed));
    if (mine->is_ending())
        return refuse(error_code::session_start_failed, errc::wrong_state, "runtime.stopping",
                      "the service ends");
    GLOVE_CHECK(ask("mark_running", id));
    GLOVE_CHECK(has.sessions->mark_running(mine->keys.running, id, process));
    // From here on it ends with a receipt.
    const auto running = has.sessions->record(id);
    mine->started_at_ms = running ? running->running_at_ms : now_ms();
    {
        const std::scoped_lock hold{lock};
        prepared.erase(id);
    }
    mine->open_gate(ask("release", id));
    say("session.started", id);
    return {};
}

} // namespace glove::control
