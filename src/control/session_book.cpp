// The life of sessions as the book judges and keeps it.
#include "control/session_book.hpp"
#include "control/session_fields.hpp"

namespace glove::control {

namespace {

// Parts of a session's disk that no grant, projection or secret asks for, such as its home.
constexpr std::size_t other_partitions = 8;

using record = session_record;

// `next` as it was before the step, if it changed nothing but what the step may change.
[[nodiscard]] auto undone(record next, const record& now, life_event on) -> record {
    const auto back = [&](auto... members) { ((next.*members = now.*members), ...); };
    using enum life_event;
    switch (on) {
    case create: break;
    case reserve_start:
        back(&record::authorization_id, &record::authorized_at_ms,
             &record::authorization_expires_at_ms);
        break;
    case mark_starting:
        back(&record::launch_profile_digest, &record::starting_at_ms, &record::cgroup,
             &record::filesystem, &record::managed_runtime);
        break;
    case mark_running: back(&record::running_at_ms, &record::process); break;
    case mark_stopping: back(&record::stopping_at_ms); break;
    case mark_exited:
        back(&record::finished_at_ms, &record::receipt_started_at_ms, &record::receipt_key_id,
             &record::receipt_sequence, &record::receipt_digest, &record::receipt_previous_hmac,
             &record::receipt_hmac, &record::termination_cause, &record::exit_code);
        break;
    case mark_failed: back(&record::finished_at_ms, &record::failure_code); break;
    }
    return next;
}

// What each record has of its own.
void align(record& what, const record& to) {
    what.sequence = to.sequence;
    what.operation = to.operation;
    what.idempotency_key = to.idempotency_key;
    what.request_digest = to.request_digest;
    what.state = to.state;
    what.previous_hash = to.previous_hash;
    what.this_hash = to.this_hash;
    what.intent.reset();
}

[[nodiscard]] auto refuse(step_name step, const record& what, std::string why) {
    return fail(errc::corrupt, step,
                what.operation + " of session " + what.session_id + ": " + std::move(why));
}

} // namespace

auto facts_of(const supervisor::session_plan& plan) -> plan_facts {
    return {plan.runtime_id, plan.refinement.has_value(),
            std::min(most_partitions, other_partitions + plan.grant_count() +
                                          plan.library_projections.size() +
                                          plan.secret_handles.size())};
}

auto session_book::judge_key(const record& what) const -> result<> {
    if (const auto* taken = key(what.idempotency_key))
        return refuse("registry.key", what,
                      "the record with the sequence " + std::to_string(taken->sequence) +
                          " has the same key");
    return {};
}

auto session_book::judge_transition(const record& what, life_event on) const -> result<> {
    const auto* known = session(what.session_id);
    const auto from = known == nullptr ? std::nullopt : std::optional{known->now.state};
    if (next_state(from, on) == what.state) return {};
    return refuse("registry.transition", what,
                  "it does not lead from " + std::string{from ? to_string(*from) : "nothing"} +
                      " to " + std::string{to_string(what.state)});
}

auto session_book::judge(const record& what, const supervisor::sealed_plan& plan) const
    -> result<verdict> {
    GLOVE_CHECK(judge_key(what));
    GLOVE_CHECK(judge_transition(what, life_event::create));
    if (plan.text != what.canonical_plan_json ||
        plan.digests !=
            supervisor::plan_digests{what.controller_plan_digest, what.plan_content_digest} ||
        plan.plan.policy_revision != what.policy_revision ||
        plan.plan.expires_at_ms != what.expires_at_ms)
        return refuse("registry.plan", what, "its plan says something else");
    return verdict{facts_of(plan.plan), std::nullopt};
}

auto session_book::judge_step(const record& what, const operation& how) const -> result<verdict> {
    GLOVE_CHECK(judge_transition(what, how.event));
    const auto* known = session(what.session_id);
    auto before = undone(what, known->now, how.event);
    align(before, known->now);
    if (before != known->now)
        return refuse("registry.session", what, "it changes what the session is bound to");
    if (how.event == life_event::mark_exited &&
        known->plan.refinement != (how.kind == session_kind::refinement))
        return refuse("registry.plan", what, "the plan asks for another kind of receipt");
    return verdict{};
}

auto session_book::judge(const record& what) const -> result<verdict> {
    const auto known = operation_named(what.operation);
    if (known && known->event == life_event::create) {
        GLOVE_TRY(const auto plan,
                  supervisor::unseal(what.canonical_plan_json,
                                     {what.controller_plan_digest, what.plan_content_digest}));
        return judge(what, plan);
    }
    GLOVE_CHECK(judge_key(what));
    return known ? judge_step(what, *known) : judge_intent(what);
}

void session_book::note(record what, const verdict& how) {
    keys_.emplace(what.idempotency_key, kept_key{what.operation, what.request_digest,
                                                 what.session_id, what.state, what.sequence});
    if (what.intent) return note_intent(what, how);
    auto& kept = sessions_[what.session_id];
    if (what.state == session_state::created) kept.plan = how.plan;
    else by_end_.erase({over_at(kept.now), what.session_id});
    if (!is_terminal(what.state)) by_end_.emplace(over_at(what), what.session_id);
    kept.records.push_back(what.sequence);
    kept.now = std::move(what);
}

void session_book::forget_but(const keeping& kept) {
    const auto stays = [&](std::uint64_t sequence) {
        return std::ranges::binary_search(kept.sequences, sequence);
    };
    std::erase_if(keys_, [&](const auto& one) { return !stays(one.second.sequence); });
    std::erase_if(sessions_, [&](const auto& one) { return !kept.sessions.contains(one.first); });
    std::erase_if(by_end_, [&](const auto& one) { return !kept.sessions.contains(one.second); });
    const auto gone = [&](std::uint64_t sequence) { return !kept.intents.contains(sequence); };
    std::erase_if(by_identity_, [&](const auto& one) { return gone(one.second); });
    std::erase_if(intents_, [&](const auto& one) { return gone(one.first); });
    std::erase_if(open_, gone);
    std::erase_if(closed_, gone);
}

auto over_at(const session_record& of) -> std::uint64_t {
    constexpr auto never = std::numeric_limits<std::uint64_t>::max();
    switch (of.state) {
    case session_state::created: return of.expires_at_ms;
    case session_state::preparing:
        return of.expires_at_ms < never - late_failure_ms ? of.expires_at_ms + late_failure_ms
                                                          : never;
    default: return is_terminal(of.state) ? 0 : never;
    }
}

auto session_book::alive(std::uint64_t now) const -> living {
    const auto first = by_end_.lower_bound({now + 1, {}});
    if (first == by_end_.end()) return {};
    return {static_cast<std::size_t>(std::distance(first, by_end_.end())), first->first};
}

auto session_book::session(std::string_view id) const -> const kept_session* {
    const auto found = sessions_.find(id);
    return found == sessions_.end() ? nullptr : &found->second;
}

auto session_book::key(std::string_view key) const -> const kept_key* {
    const auto found = keys_.find(key);
    return found == keys_.end() ? nullptr : &found->second;
}

// Whatever else a view holds never changes once it is there.
auto session_book::view_at(const kept_key& key) const -> session_view {
    auto out = view_of(session(key.session_id)->now);
    out.state = key.state;
    if (key.state < session_state::starting) out.profile_digest.reset();
    return out;
}

} // namespace glove::control
