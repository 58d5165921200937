// Intents of guests: admitted once, decided once. What a guest may write has a quota of its own,
// for its session and for all of them; room for the decision is reserved with it.
#include "control/session_digests.hpp"
#include "control/session_fields.hpp"
#include "control/session_room.hpp"
#include "control/session_rules.hpp"
#include "control/session_state.hpp"

namespace glove::control {

namespace {

using enum error_code;

[[nodiscard]] auto not_now(std::string why) {
    return refuse(invalid_observation_intent_state, errc::wrong_state, "intent.state",
                  std::move(why));
}
[[nodiscard]] auto malformed(std::string why) {
    return refuse(invalid_request, errc::invalid_input, "intent.form", std::move(why));
}

[[nodiscard]] auto intent_of(const guest_context& from, const adapters::guest_body& what,
                             std::string digest) -> observation_intent {
    return {.schema = what.schema,
            .intent_id = what.intent_id,
            .observation = what.observation,
            .value_digest = what.value_digest,
            .item_count = what.item_count,
            .intent_digest = std::move(digest),
            .profile_digest = from.profile_digest,
            .runtime_id = from.runtime_id,
            .projection_digest = from.projection_digest,
            .channel_id = from.channel_id,
            .channel_generation = from.channel_generation,
            .issued_at_ms = from.issued_at_ms,
            .expires_at_ms = from.expires_at_ms};
}

// Times are not compared: a guest that sends again sends later.
[[nodiscard]] auto same_origin(const guest_context& a, const guest_context& b) -> bool {
    return a.controller_plan_digest == b.controller_plan_digest &&
           a.profile_digest == b.profile_digest && a.runtime_id == b.runtime_id &&
           a.projection_digest == b.projection_digest && a.policy_revision == b.policy_revision &&
           a.channel_id == b.channel_id;
}

// Of the host's word about the guest, against the session.
[[nodiscard]] auto check_session(const kept_session& kept, const guest_context& from,
                                 std::uint64_t most_ttl_ms) -> answer<> {
    const auto& now = kept.now;
    if (now.state != session_state::running)
        return refuse(invalid_session_state, errc::wrong_state, "intent.session",
                      "it is " + std::string{to_string(now.state)});
    if (from.runtime_id != kept.plan.runtime_id) return not_now("it is of another runtime");
    if (from.controller_plan_digest != now.controller_plan_digest ||
        from.profile_digest != now.launch_profile_digest ||
        from.policy_revision != now.policy_revision)
        return not_now("it is of another launch");
    if (from.issued_at_ms < now.running_at_ms) return not_now("it is older than the session");
    if (from.expires_at_ms <= from.issued_at_ms ||
        from.expires_at_ms - from.issued_at_ms > most_ttl_ms)
        return not_now("it lives for longer than " + std::to_string(most_ttl_ms) + " ms");
    return {};
}

[[nodiscard]] auto check_times(const guest_context& from, std::uint64_t now, std::uint64_t skew)
    -> answer<> {
    if (from.issued_at_ms > now && from.issued_at_ms - now > skew)
        return not_now("it is issued in the future");
    if (now >= from.expires_at_ms) return not_now("it has expired");
    return {};
}

} // namespace

auto session_registry::state::enqueue(const guest_context& from, const adapters::guest_body& what)
    -> answer<intent_item> {
    const auto* before = book.intent({from.session_id, from.channel_generation, what.intent_id});
    if (before != nullptr && before->closed) return not_now("it is in quarantine");
    if (const auto no = why_inadmissible(channels, what)) {
        if (no->reason == closed_reason::schema_unavailable)
            return refuse(unsupported_schema, errc::unsupported, "intent.schema", no->why);
        return malformed(no->why);
    }
    const auto& bounds = channels->find(what.schema)->bounds;
    GLOVE_TRY(auto digest, or_refuse(intent_digest(what), observation_intent_control_failed));
    if (before != nullptr) {
        if (before->item.intent_digest == digest && same_origin(before->item.context, from))
            return before->item;
        return refuse(idempotency_conflict, errc::conflict, "intent.identity",
                      "another intent has this id");
    }
    GLOVE_CHECK(check_times(from, now_ms(), bounds.max_skew_ms));
    const auto* kept = book.session(from.session_id);
    if (kept == nullptr) return refuse(session_not_found, errc::not_found, "intent.session");
    if (unsettled.contains(from.session_id)) return not_now("its session is not running any more");
    GLOVE_CHECK(check_session(*kept, from, bounds.max_ttl_ms));
    if (kept->intents >= how.intents_per_session)
        return refuse(observation_intent_capacity, errc::limit_exceeded, "intent.session",
                      "the session has left " + std::to_string(kept->intents));
    const auto longest = longest_decision(kept->now, kept->plan);
    if (kept->intents >= how.intent_bytes_per_session / longest)
        return refuse(observation_intent_capacity, errc::limit_exceeded, "intent.session",
                      "the session has left " + std::to_string(kept->intents) +
                          ", each of which may "
                          "take " +
                          std::to_string(longest) + " bytes");
    auto next = kept->now;
    next.operation = enqueue_operation;
    next.intent = intent_of(from, what, std::move(digest));
    return admit(std::move(next), longest);
}

auto session_registry::state::admit(session_record next, std::size_t decision_bytes)
    -> answer<intent_item> {
    GLOVE_TRY(next.request_digest,
              or_refuse(enqueue_digest(next, *next.intent), observation_intent_control_failed));
    next.idempotency_key = intent_key(*next.intent, next.request_digest);
    GLOVE_CHECK(or_refuse(check_session_record(next), observation_intent_control_failed));
    GLOVE_TRY(const auto verdict, or_refuse(book.judge(next), observation_intent_control_failed));
    const auto identity = identity_of(next);
    const auto attempt = [&]() -> result<> {
        GLOVE_TRY(auto room, log->core().reserve(1, decision_bytes));
        GLOVE_TRY(const auto sealed, log->append(next));
        remember(sealed, verdict);
        owed_decisions.emplace(sealed.sequence, owed_room{std::move(room), decision_bytes});
        return {};
    };
    auto done = attempt();
    const auto full = !done && done.error().step == "journal.full";
    if (full || (!done && done.error().step == "journal.quota")) {
        // Where the quota is used up, only what frees a guest's record helps.
        const auto more = make_room(full ? wanted::room : wanted::room_for_intents);
        if (!more) return refuse_write(more.error(), intent_codes);
        if (*more) done = attempt();
    }
    if (!done) return refuse_write(std::move(done).error(), intent_codes);
    return book.intent(identity)->item;
}

auto session_registry::state::decide(const intent_decision& what) -> answer<intent_item> {
    if (what.disposition == intent_disposition::pending) return malformed("pending is no decision");
    const auto* kept = book.intent({what.session_id, what.channel_generation, what.intent_id});
    if (kept == nullptr || kept->item.intent_digest != what.intent_digest)
        return refuse(observation_intent_not_found, errc::not_found, "intent.identity");
    if (kept->closed) return not_now("it is in quarantine");
    const auto item = kept->item;
    if (kept->decision != 0) {
        if (item.disposition == what.disposition) return item;
        return refuse(idempotency_conflict, errc::conflict, "intent.decided",
                      "it is " + std::string{to_string(item.disposition)});
    }
    auto next = book.session(what.session_id)->now;
    next.operation = disposition_operation;
    next.intent = intent_of(item.context, item.body, item.intent_digest);
    next.intent->disposition = what.disposition;
    // A guest's clock may be ahead of ours, within bounds.
    next.intent->decided_at_ms = std::max(now_ms(), item.context.issued_at_ms);
    const bool late = next.intent->decided_at_ms >= item.context.expires_at_ms;
    if (late != (what.disposition == intent_disposition::expired))
        return not_now(late ? "it has expired" : "it has not expired yet");
    GLOVE_TRY(next.request_digest,
              or_refuse(disposition_digest(next, *next.intent), observation_intent_control_failed));
    next.idempotency_key = intent_key(*next.intent, next.request_digest);
    GLOVE_CHECK(or_refuse(check_session_record(next), observation_intent_control_failed));
    GLOVE_TRY(const auto verdict, or_refuse(book.judge(next), observation_intent_control_failed));
    const auto room = owed_decisions.find(item.sequence);
    if (room == owed_decisions.end())
        return refuse(observation_intent_storage_failed, errc::wrong_state, "intent.owed",
                      "no room was kept for it");
    const auto identity = identity_of(next);
    const auto sealed = log->append(std::move(next), room->second.room);
    if (!sealed) return refuse_write(sealed.error(), intent_codes);
    remember(*sealed, verdict);
    owed_decisions.erase(room);
    return book.intent(identity)->item;
}

auto session_registry::enqueue(const guest_context& from, const adapters::guest_body& what)
    -> answer<intent_item> {
    const std::scoped_lock lock{state_->writing};
    return state_->enqueue(from, what);
}

auto session_registry::decide(const intent_decision& what) -> answer<intent_item> {
    const std::scoped_lock lock{state_->writing};
    return state_->decide(what);
}

} // namespace glove::control
