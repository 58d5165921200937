// The order of an end: every process gone, the terminal drained, what was used settled, what the
// host keeps concluded, the receipt on the disk, and the session on record as over. Nothing of it
// is left out because a disk fails: it is tried again.
#include "control/session_runtime_state.hpp"

namespace glove::control {

namespace {

[[nodiscard]] auto words_of(const termination_verdict& what) -> std::string {
    std::string out{to_string(what.cause)};
    if (what.exit_code) out += " " + std::to_string(*what.exit_code);
    return out;
}

} // namespace

void session_runtime::state::run(const session_ptr& mine) {
    const auto end = mine->wait_for_end([&] { note_stopping(*mine); });
    if (end) put_end_on_record(*mine, *end);
    else say("session.left", mine->id + ": the service ends before it; the next one finds it");
    mine->let_go();
    mine->note_over();
    const std::scoped_lock hold{lock};
    finished.push_back(mine);
    --working;
    changed.notify_all();
}

// Whatever the disk does, it has been killed.
void session_runtime::state::note_stopping(live_session& mine) {
    if (mine.is_on_record()) return;
    auto done = [&]() -> answer<session_view> {
        GLOVE_CHECK(ask("mark_stopping", mine.id));
        return has.sessions->mark_stopping(mine.keys.stopping, mine.id);
    }();
    // Somebody may have asked for it meanwhile.
    if (!done && done.error().code != error_code::invalid_session_state)
        tell("session.not_on_record", mine.id, done.error().why);
}

void session_runtime::state::put_end_on_record(live_session& mine, const process_end& end) {
    const auto settled = mine.settle(end, has.clock->monotonic() + how.drain_time);
    auto made = receipt_for(mine, settled);
    if (!made) return; // the service ended first
    mine.let_go();     // a disk may take its time
    if (!*made) {
        tell("session.trouble", mine.id, made->error());
        return note_failure(mine.keys.failed, mine.id, "supervisor_error");
    }
    const auto always = [](const refusal&) { return again::yes; };
    const auto envelope =
        keep_trying("append_receipt", mine.id, [&] { return append(mine, **made); }, always);
    if (!envelope) return;
    // A registry that has failed takes nothing more: the next process finds the receipt.
    const auto works = [&](const refusal& why) {
        return why.code == error_code::session_storage_failed && has.sessions->operational()
                   ? again::yes
                   : again::no;
    };
    if (keep_trying("mark_exited", mine.id, [&] { return note_exit(mine, *envelope); }, works))
        say("session.ended", mine.id + ": " + words_of(settled.verdict));
}

// Nothing: it was not concluded.
auto session_runtime::state::receipt_for(live_session& mine, const settled_end& end)
    -> std::optional<result<receipt>> {
    const auto finished_at_ms = now_ms();
    const auto always = [](const refusal&) { return again::yes; };
    const auto nothing = [] { return answer<bool>{true}; };
    if (!keep_trying("conclude", mine.id, nothing, always)) return std::nullopt;
    return [&]() -> result<receipt> {
        const auto hosted = mine.hosted();
        auto remains = hosted->conclude(concluding.get_token());
        for (const auto& one : remains.troubles) tell("session.trouble", mine.id, one);
        auto facts = hosted->facts();
        facts.started_at_ms = mine.started_at_ms;
        facts.finished_at_ms = finished_at_ms;
        facts.retained_changes = std::move(remains.retained_changes);
        GLOVE_TRY(auto resource, receipt_of(std::move(facts), end));
        if (!mine.plan.refinement) return receipt{std::move(resource)};
        auto* const eye = mine.evaluator();
        if (eye == nullptr)
            return fail(errc::wrong_state, "runtime.evaluator", "nobody looked at the terminal");
        GLOVE_TRY(auto evidence, eye->finish(evaluated(end, mine.whole_transcript())));
        GLOVE_TRY(auto both, receipt_of(std::move(resource), mine.plan, std::move(evidence)));
        return receipt{std::move(both)};
    }();
}

auto session_runtime::state::append(live_session& mine, const receipt& what)
    -> answer<terminal_envelope> {
    return std::visit(
        [&](const auto& one) {
            return has.receipts->append(mine.id, mine.controller_plan_digest, one,
                                        std::move(*mine.room));
        },
        what);
}

// A key of this name may be somebody else's: then it is the one that a recovery would use.
auto session_runtime::state::note_exit(live_session& mine, const terminal_envelope& what)
    -> answer<session_view> {
    auto done = has.sessions->mark_exited(mine.keys.exited, mine.id, what);
    if (done || done.error().code != error_code::idempotency_conflict) return done;
    return has.sessions->mark_exited("recovery-exit-" + std::to_string(what.sequence), mine.id,
                                     what);
}

} // namespace glove::control
