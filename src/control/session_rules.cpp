// The rules of one record: a table says which parts a state fills, and a few functions compare what
// is there.
#include "control/session_rules.hpp"
#include "control/session_digests.hpp"
#include <glove/base/ascii.hpp>

namespace glove::control {

namespace {

enum class need : std::uint8_t { never, may, always };

// A part is there as a whole or not at all.
struct part {
    std::string_view name;
    bool (*any)(const session_record&);
    bool (*all)(const session_record&);
    std::array<need, 7> in{}; // by state
};

using r = session_record;
using enum need;
//                                created preparing starting running stopping exited failed
constexpr std::array parts{
    part{"authorization",
         [](const r& x) {
             return !x.authorization_id.empty() || x.authorized_at_ms != 0 ||
                    x.authorization_expires_at_ms != 0;
         },
         [](const r& x) {
             return !x.authorization_id.empty() && x.authorized_at_ms != 0 &&
                    x.authorization_expires_at_ms != 0;
         },
         {never, always, always, always, always, always, always}},
    part{"launch",
         [](const r& x) { return !x.launch_profile_digest.empty() || x.starting_at_ms != 0; },
         [](const r& x) { return !x.launch_profile_digest.empty() && x.starting_at_ms != 0; },
         {never, never, always, always, always, always, may}},
    part{"identity of the place",
         [](const r& x) { return x.cgroup || x.filesystem || x.managed_runtime; },
         [](const r& x) { return !x.managed_runtime || (!x.cgroup && !x.filesystem); },
         {never, never, may, may, may, may, may}},
    part{"time of running",
         [](const r& x) { return x.running_at_ms != 0; },
         [](const r&) { return true; },
         {never, never, never, always, always, always, may}},
    part{"process",
         [](const r& x) {
             const auto& p = x.process;
             return p.pid != 0 || !p.boot_id.empty() || p.start_time_ticks != 0 ||
                    p.cgroup_device != 0 || p.cgroup_inode != 0 || !p.cgroup_path_digest.empty();
         },
         [](const r& x) {
             const auto& p = x.process;
             return p.schema_version == 1 && p.pid != 0 && !p.boot_id.empty() &&
                    p.start_time_ticks != 0 && !p.cgroup_path_digest.empty();
         },
         {never, never, never, may, may, may, may}},
    part{"time of stopping",
         [](const r& x) { return x.stopping_at_ms != 0; },
         [](const r&) { return true; },
         {never, never, never, never, always, may, may}},
    part{"end",
         [](const r& x) { return x.finished_at_ms != 0; },
         [](const r&) { return true; },
         {never, never, never, never, never, always, always}},
    part{"failure",
         [](const r& x) { return !x.failure_code.empty(); },
         [](const r&) { return true; },
         {never, never, never, never, never, never, always}},
    part{"receipt",
         [](const r& x) {
             return x.receipt_started_at_ms != 0 || !x.receipt_key_id.empty() ||
                    x.receipt_sequence != 0 || !x.receipt_digest.empty() ||
                    !x.receipt_previous_hmac.empty() || !x.receipt_hmac.empty() ||
                    !x.termination_cause.empty() || x.exit_code;
         },
         [](const r& x) {
             return x.receipt_started_at_ms != 0 && !x.receipt_key_id.empty() &&
                    x.receipt_sequence != 0 && !x.receipt_digest.empty() &&
                    !x.receipt_previous_hmac.empty() && !x.receipt_hmac.empty() &&
                    !x.termination_cause.empty();
         },
         {never, never, never, never, never, always, never}},
};

[[nodiscard]] auto wrong(step_name step, const session_record& in, std::string what) {
    return fail(errc::invalid_input, step,
                std::string{to_string(in.state)} + ": " + std::move(what));
}

[[nodiscard]] auto check_parts(const session_record& in) -> result<> {
    for (const auto& one : parts) {
        const auto wanted = one.in.at(static_cast<std::size_t>(in.state));
        const bool any = one.any(in);
        if (wanted == never && any)
            return wrong("record.part", in, std::string{one.name} + " cannot be there yet");
        if (wanted == always && !any)
            return wrong("record.part", in, std::string{one.name} + " is missing");
        if (any && !one.all(in))
            return wrong("record.part", in, std::string{one.name} + " is not complete");
    }
    const bool launched = in.starting_at_ms != 0;
    const bool ran = in.running_at_ms != 0;
    const bool identified = in.cgroup || in.filesystem || in.managed_runtime;
    const bool has_process = in.process.pid != 0;
    if ((identified || ran) && !launched) return wrong("record.part", in, "it was never launched");
    if (in.stopping_at_ms != 0 && !ran) return wrong("record.part", in, "it never ran");
    if (has_process != (ran && !in.managed_runtime))
        return wrong("record.process", in,
                     has_process ? "a process that cannot be its own" : "its process is missing");
    return {};
}

[[nodiscard]] auto is_boot_id(std::string_view text) noexcept -> bool {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        const char c = text[i];
        if (dash ? c != '-' : !(is_digit(c) || (c >= 'a' && c <= 'f'))) return false;
    }
    return text.size() == 36;
}

[[nodiscard]] auto check_identities(const session_record& in) -> result<> {
    if (in.process.pid != 0 && !is_boot_id(in.process.boot_id))
        return wrong("record.process", in, "the boot id is not one");
    if (!in.filesystem) return {};
    std::uint64_t left = in.filesystem->disk_limit_bytes;
    const std::string* before = nullptr;
    for (const auto& one : in.filesystem->partitions) {
        if (before != nullptr && !(*before < one.alias))
            return wrong("record.filesystem", in, "its partitions are not in order");
        if (one.quota_bytes >= left)
            return wrong("record.filesystem", in, "its partitions are not below its limit");
        left -= one.quota_bytes;
        before = &one.alias;
    }
    return {};
}

[[nodiscard]] auto check_times(const session_record& in) -> result<> {
    const auto late = [&](std::string what) { return wrong("record.time", in, std::move(what)); };
    if (in.created_at_ms >= in.expires_at_ms) return late("it was created after its plan expired");
    if (in.authorized_at_ms == 0) return {};
    if (in.authorized_at_ms < in.created_at_ms ||
        in.authorization_expires_at_ms <= in.authorized_at_ms ||
        in.authorization_expires_at_ms > in.expires_at_ms)
        return late("the authorization is not within the life of the plan");
    if (in.starting_at_ms != 0 && (in.starting_at_ms < in.authorized_at_ms ||
                                   in.starting_at_ms >= in.authorization_expires_at_ms))
        return late("it started outside of the authorization");
    if (in.running_at_ms != 0 && (in.running_at_ms < in.starting_at_ms ||
                                  in.running_at_ms >= in.authorization_expires_at_ms))
        return late("it ran outside of the authorization");
    if (in.stopping_at_ms != 0 && in.stopping_at_ms < in.running_at_ms)
        return late("it was stopped before it ran");
    if (in.finished_at_ms == 0) return {};
    if (in.finished_at_ms < std::max(in.starting_at_ms, in.running_at_ms))
        return late("it ended before it ran");
    if (in.receipt_started_at_ms > in.running_at_ms) return late("its receipt begins after it ran");
    return {};
}

// The state before the end, as far as the record tells.
[[nodiscard]] auto end_came_from(const session_record& in) noexcept -> session_state {
    if (in.running_at_ms != 0) return session_state::running;
    return in.starting_at_ms != 0 ? session_state::starting : session_state::preparing;
}

[[nodiscard]] auto check_end(const session_record& in) -> result<> {
    if (in.state == session_state::failed && !may_fail(end_came_from(in), in.failure_code))
        return wrong("record.failure", in,
                     in.failure_code + " is no failure of a session that was " +
                         std::string{to_string(end_came_from(in))});
    if (in.state == session_state::exited &&
        in.exit_code.has_value() != (in.termination_cause == "exited"))
        return wrong("record.receipt", in, "an exit code belongs to the cause exited");
    return {};
}

[[nodiscard]] auto check_operation(const session_record& in) -> result<> {
    const auto known = operation_named(in.operation);
    if (!known) {
        if (!in.intent) return wrong("record.intent", in, "the intent is missing");
        return {};
    }
    if (in.intent) return wrong("record.intent", in, "an intent that nothing asked for");
    bool leads_here = false;
    for (const auto& row : transitions)
        leads_here = leads_here || (row.on == known->event && row.to == in.state);
    if (!leads_here)
        return wrong("record.operation", in, in.operation + " does not lead to this state");
    const auto kind = in.managed_runtime ? session_kind::managed : session_kind::plain;
    if (known->kind != session_kind::refinement &&
        in.operation != operation_name(known->event, kind))
        return wrong("record.operation", in, in.operation + " is not for this kind of session");
    return {};
}

[[nodiscard]] auto check_intent(const session_record& in) -> result<> {
    if (!in.intent) return {};
    const auto& what = *in.intent;
    const auto bad = [&](const char* text) { return wrong("record.intent", in, text); };
    const bool asked = in.operation == enqueue_operation;
    if (in.running_at_ms == 0 || (asked && in.state != session_state::running))
        return bad("the session is not running");
    if (asked != (what.disposition == intent_disposition::pending) ||
        asked != (what.decided_at_ms == 0))
        return bad("its disposition is not one of this operation");
    if (what.issued_at_ms >= what.expires_at_ms) return bad("it expires before it is issued");
    if (what.profile_digest != in.launch_profile_digest) return bad("it is of another launch");
    if (!asked && what.decided_at_ms < what.issued_at_ms)
        return bad("it is decided before it is issued");
    if (!asked && (what.decided_at_ms >= what.expires_at_ms) !=
                      (what.disposition == intent_disposition::expired))
        return bad("its disposition is not one of this time");
    GLOVE_TRY(const auto body, intent_digest(body_of(what)));
    if (body != what.intent_digest) return bad("its digest is another one");
    GLOVE_TRY(const auto request, asked ? enqueue_digest(in, what) : disposition_digest(in, what));
    if (request != in.request_digest || in.idempotency_key != intent_key(what, request))
        return bad("its request is another one");
    return {};
}

} // namespace

auto session_kind_of(const session_record& of) noexcept -> session_kind {
    return of.managed_runtime ? session_kind::managed : session_kind::plain;
}

auto authorization_left(const session_record& of, std::uint64_t now_ms) noexcept
    -> std::chrono::milliseconds {
    constexpr std::uint64_t longest_ms = 3'600'000;
    const auto ends = of.authorization_expires_at_ms;
    return std::chrono::milliseconds{std::min(ends - std::min(ends, now_ms), longest_ms)};
}

auto check_session_record(const session_record& what) -> result<> {
    GLOVE_CHECK(check_operation(what));
    GLOVE_CHECK(check_parts(what));
    GLOVE_CHECK(check_identities(what));
    GLOVE_CHECK(check_times(what));
    GLOVE_CHECK(check_end(what));
    return check_intent(what);
}

} // namespace glove::control
