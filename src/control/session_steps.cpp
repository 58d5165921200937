// The steps of a session's life after its creation.
#include "control/session_digests.hpp"
#include "control/session_fields.hpp"
#include "control/session_room.hpp"
#include "control/session_rules.hpp"
#include "control/session_state.hpp"

namespace glove::control {

namespace {

constexpr std::uint64_t longest_authorization_ms = 120'000;

[[nodiscard]] auto no_start(std::string why) {
    return refuse(error_code::invalid_authorization, errc::not_permitted, "registry.authorization",
                  std::move(why));
}

[[nodiscard]] auto check_authorization(const start_authorization& what, const session_record& of,
                                       std::uint64_t now) -> answer<> {
    if (what.schema_version != 1) return no_start("it is of another version");
    if (!wire::ident.check(what.authorization_id, {})) return no_start("its name is no identifier");
    if (what.controller_plan_digest != of.controller_plan_digest ||
        what.plan_content_digest != of.plan_content_digest)
        return no_start("it is for another plan");
    if (what.approved_at_ms == 0 || what.expires_at_ms <= what.approved_at_ms)
        return no_start("it expires before it is approved");
    if (what.expires_at_ms - what.approved_at_ms > longest_authorization_ms)
        return no_start("it is for longer than " + std::to_string(longest_authorization_ms) +
                        " ms");
    if (what.approved_at_ms > now) return no_start("it is approved in the future");
    if (now >= what.expires_at_ms) return no_start("it has expired");
    if (what.approved_at_ms < of.created_at_ms)
        return no_start("it was approved before the session was created");
    if (what.expires_at_ms > of.expires_at_ms) return no_start("it outlives the plan");
    return {};
}

[[nodiscard]] auto still_authorized(const session_record& next, std::uint64_t at) -> answer<> {
    if (at < next.authorization_expires_at_ms) return {};
    return no_start("it has expired");
}

[[nodiscard]] auto operation_of(const kept_session& what, const session_record& next, life_event on)
    -> std::string {
    const bool receipt = on == life_event::mark_exited;
    return std::string{operation_name(on, receipt && what.plan.refinement ? session_kind::refinement
                                                                          : session_kind_of(next))};
}

} // namespace

auto session_registry::state::step(const step_request& what) -> answer<session_view> {
    GLOVE_CHECK(
        or_refuse(wire::ident.check(std::string{what.key}, {}), error_code::invalid_request));
    const auto* kept = book.session(what.session_id);
    const auto* known = book.key(what.key);
    const auto conflict = [&] {
        return refuse(error_code::idempotency_conflict, errc::conflict, "registry.key",
                      "the key is that of " + known->operation + " of session " +
                          known->session_id);
    };
    if (kept == nullptr && known != nullptr) return conflict();
    if (kept == nullptr)
        return refuse(error_code::session_not_found, errc::not_found, "registry.session");
    auto next = kept->now;
    what.fill(next);
    next.operation = operation_of(*kept, next, what.on);
    next.idempotency_key = what.key;
    if (what.digest) next.request_digest = *what.digest;
    else {
        GLOVE_TRY(next.request_digest,
                  or_refuse(step_digest(next), error_code::session_control_failed));
    }
    if (known != nullptr) {
        if (known->operation != next.operation || known->session_id != what.session_id ||
            known->request_digest != next.request_digest)
            return conflict();
        return view_of(kept->now);
    }
    if (!what.recovers && unsettled.contains(what.session_id))
        return refuse(error_code::session_reconciliation_failed, errc::wrong_state,
                      "registry.recovery", "the process before this one left the session");
    const auto to = next_state(kept->now.state, what.on);
    if (!to)
        return refuse(error_code::invalid_session_state, errc::wrong_state, "registry.transition",
                      "it is " + std::string{to_string(kept->now.state)});
    if (what.check) GLOVE_CHECK(what.check(*kept, next));
    next.state = *to;
    auto room = owed.find(what.session_id);
    if (room == owed.end()) { // it was over when the registry was opened
        const auto longest = longest_record(kept->now, kept->plan);
        auto more = log->core().reserve(records_left(kept->now.state), longest);
        if (!more) return refuse_write(std::move(more).error(), session_codes);
        room = owed.emplace(what.session_id, owed_room{*std::move(more), longest}).first;
    }
    const auto judged = book.judge(next);
    auto out = put(std::move(next), judged, room->second.room);
    if (out && is_terminal(out->state)) owed.erase(room);
    return out;
}

auto exit_request(std::string_view key, std::string_view session_id, const terminal_envelope& what)
    -> step_request {
    return {
        .key = key,
        .session_id = session_id,
        .on = life_event::mark_exited,
        .fill =
            [what](session_record& next) {
                next.receipt_sequence = what.sequence;
                next.receipt_key_id = what.key_id;
                next.receipt_digest = what.receipt_digest;
                next.receipt_previous_hmac = what.previous_hmac;
                next.receipt_hmac = what.this_hmac;
                next.termination_cause = what.termination_cause;
                next.receipt_started_at_ms = what.started_at_ms;
                next.finished_at_ms = what.finished_at_ms;
                next.exit_code = what.exit_code;
            },
        .check = [kind = what.refinement](const kept_session& kept, session_record&) -> answer<> {
            if (kept.plan.refinement == kind) return {};
            return refuse(error_code::session_control_failed, errc::invalid_input,
                          "registry.receipt", "the plan asks for another kind of receipt");
        }};
}

auto failure_request(std::string_view key, std::string_view session_id, std::string_view code,
                     std::uint64_t now) -> step_request {
    return {.key = key,
            .session_id = session_id,
            .on = life_event::mark_failed,
            .fill = [code = std::string{code}](session_record& next) { next.failure_code = code; },
            .check = [now](const kept_session& kept, session_record& next) -> answer<> {
                next.finished_at_ms =
                    std::max({now, next.starting_at_ms, next.running_at_ms, next.stopping_at_ms});
                if (may_fail(kept.now.state, next.failure_code)) return {};
                return refuse(error_code::session_control_failed, errc::invalid_input,
                              "registry.failure",
                              "it is no failure of a session that is " +
                                  std::string{to_string(kept.now.state)});
            }};
}

auto session_registry::state::put(session_record next, const result<session_book::verdict>& judged,
                                  journal::reservation& from) -> answer<session_view> {
    GLOVE_TRY(const auto verdict, or_refuse(judged, error_code::session_control_failed));
    auto sealed = log->append(std::move(next), from);
    if (!sealed) return refuse_write(std::move(sealed).error(), session_codes);
    auto shown = view_of(*sealed);
    remember(*std::move(sealed), verdict);
    return shown;
}

void session_registry::state::remember(session_record sealed,
                                       const session_book::verdict& how_judged) {
    const std::unique_lock lock{looking};
    book.note(std::move(sealed), how_judged);
}

auto session_registry::reserve_start(std::string_view key, const start_authorization& what)
    -> answer<session_view> {
    GLOVE_TRY(auto digest, or_refuse(start_digest(what), error_code::session_control_failed));
    const std::scoped_lock lock{state_->writing};
    return state_->step({.key = key,
                         .session_id = what.session_id,
                         .on = life_event::reserve_start,
                         .fill =
                             [&](session_record& next) {
                                 next.authorization_id = what.authorization_id;
                                 next.authorized_at_ms = what.approved_at_ms;
                                 next.authorization_expires_at_ms = what.expires_at_ms;
                             },
                         .check = [&](const kept_session& kept, session_record&) -> answer<> {
                             return check_authorization(what, kept.now, state_->now_ms());
                         },
                         .digest = std::move(digest)});
}

// A clock that was set back must not end a session: a step is never earlier than the one before.
auto session_registry::mark_starting(std::string_view key, std::string_view session_id,
                                     const start_binding& what) -> answer<session_view> {
    const std::scoped_lock lock{state_->writing};
    return state_->step(
        {.key = key,
         .session_id = session_id,
         .on = life_event::mark_starting,
         .fill =
             [&](session_record& next) {
                 next.launch_profile_digest = what.launch_profile_digest;
                 next.cgroup = what.cgroup;
                 next.filesystem = what.filesystem;
                 next.managed_runtime = what.managed_runtime;
             },
         .check = [&](const kept_session& kept, session_record& next) -> answer<> {
             next.starting_at_ms = std::max(state_->now_ms(), next.authorized_at_ms);
             if (what.filesystem && what.filesystem->partitions.size() > kept.plan.most_partitions)
                 return refuse(error_code::session_control_failed, errc::limit_exceeded,
                               "registry.partitions",
                               "the plan has room for " +
                                   std::to_string(kept.plan.most_partitions));
             return still_authorized(next, next.starting_at_ms);
         }});
}

auto session_registry::mark_running(std::string_view key, std::string_view session_id,
                                    const process_identity& what) -> answer<session_view> {
    const std::scoped_lock lock{state_->writing};
    return state_->step({.key = key,
                         .session_id = session_id,
                         .on = life_event::mark_running,
                         .fill = [&](session_record& next) { next.process = what; },
                         .check = [&](const kept_session&, session_record& next) -> answer<> {
                             next.running_at_ms = std::max(state_->now_ms(), next.starting_at_ms);
                             return still_authorized(next, next.running_at_ms);
                         }});
}

auto session_registry::mark_stopping(std::string_view key, std::string_view session_id)
    -> answer<session_view> {
    const std::scoped_lock lock{state_->writing};
    return state_->step({.key = key,
                         .session_id = session_id,
                         .on = life_event::mark_stopping,
                         .fill = [](session_record&) {},
                         .check = [&](const kept_session&, session_record& next) -> answer<> {
                             next.stopping_at_ms = std::max(state_->now_ms(), next.running_at_ms);
                             return {};
                         }});
}

auto session_registry::mark_exited(std::string_view key, std::string_view session_id,
                                   const terminal_envelope& what) -> answer<session_view> {
    const std::scoped_lock lock{state_->writing};
    return state_->step(exit_request(key, session_id, what));
}

auto session_registry::mark_failed(std::string_view key, std::string_view session_id,
                                   std::string_view failure_code) -> answer<session_view> {
    const std::scoped_lock lock{state_->writing};
    return state_->step(failure_request(key, session_id, failure_code, state_->now_ms()));
}

} // namespace glove::control
