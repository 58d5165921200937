// The table of methods, and the way of a request: secret, version, deadline, method, its part, its
// key, its size, its phase; and only then what it asks for.
#include "control/service_state.hpp"
#include <algorithm>
#include <array>
#include <glove/base/wipe.hpp>
#include <glove/wire/fields.hpp>
#include <glove/wire/json.hpp>
#include <glove/wire/json_outline.hpp>
#include <glove/wire/rules.hpp>

namespace glove::control {

namespace {

constexpr std::size_t null_bytes = 4;
constexpr std::size_t small_bytes = 4096;
constexpr std::size_t exposure_bytes = 64UL << 10;
// A byte takes five characters at most; with room for white space.
constexpr std::size_t input_bytes = 512UL << 10;

// Whether a method may wait for a disk, or for somebody else who does.
constexpr bool looks = false;
constexpr bool writes = true;
// Copies what a session gets, or reads what one left, which may be anything.
constexpr bool slow = true;

using enum part;
// clang-format off
constexpr std::array table{
    method{"health", nothing, key_rule::none, null_bytes, phase::always, "null",
           "schema_version, status", health, looks},
    method{"capabilities", nothing, key_rule::none, null_bytes, phase::always, "null",
           "the capability document", capabilities, looks},
    method{"validate_plan", session_policy, key_rule::none, most_frame_bytes, phase::always,
           "a plan", "schema_version (the plan's), policy_revision", validate_plan, looks},
    method{"create_session", session_store, key_rule::ident, most_frame_bytes, phase::always,
           "session_id, controller_plan_digest, plan", "a session", create_session_of, writes},
    method{"session_status", session_store, key_rule::none, small_bytes, phase::always,
           "session_id", "a session", session_status, looks},
    method{"list_sessions", session_store, key_rule::none, small_bytes, phase::always,
           "after?, limit", "schema_version, sessions, next_after?", list_sessions, looks},
    method{"start_session", operational_runtime, key_rule::ident112, small_bytes, phase::reconciled,
           "authorization", "a session", start_session, writes, slow},
    method{"attach", operational_runtime, key_rule::none, small_bytes, phase::always,
           "session_id, cursor, max_bytes", "a page of the terminal", attach, looks},
    method{"write_stdin", operational_runtime, key_rule::ident, input_bytes, phase::always,
           "session_id, bytes", "schema_version, session_id", write_stdin, writes},
    method{"resize", operational_runtime, key_rule::ident, small_bytes, phase::always,
           "session_id, rows, columns", "schema_version, session_id", resize, writes},
    method{"signal", operational_runtime, key_rule::ident, small_bytes, phase::always,
           "session_id, signal", "schema_version, session_id", signal_session, writes},
    method{"detach", operational_runtime, key_rule::ident, small_bytes, phase::always,
           "session_id, transcript_cursor", "schema_version, session_id, transcript_cursor",
           detach, writes},
    method{"stop_session", operational_runtime, key_rule::ident, small_bytes, phase::always,
           "session_id", "a session", stop_session, writes},
    method{"cleanup_session", operational_runtime, key_rule::ident, small_bytes, phase::always,
           "session_id", "schema_version, session_id", cleanup_session, writes},
    method{"verify_audit_chain", nothing, key_rule::none, small_bytes, phase::always,
           "sage_anchor, limit", "a page of receipts", verify_audit_chain, writes},
    method{"acknowledge_audit_chain", nothing, key_rule::ident, small_bytes, phase::always,
           "anchor", "schema_version, acknowledged_anchor", acknowledge_audit_chain, writes},
    method{"create_path_exposure", exposure_policy, key_rule::ident, exposure_bytes, phase::always,
           "exposure_id, root_id, host_path, display_label, allowed_modes, ttl_secs, "
           "allowed_runtime_template_ids", "schema_version, exposure", create_path_exposure, writes},
    method{"list_path_exposures", exposure_policy, key_rule::none, null_bytes, phase::always,
           "null", "schema_version, exposures", list_path_exposures, looks},
    method{"revoke_path_exposure", exposure_policy, key_rule::ident, small_bytes, phase::always,
           "exposure_id, generation", "schema_version, exposure", revoke_path_exposure, writes},
    method{"inspect_retained_changes", materialization_root, key_rule::none, small_bytes,
           phase::always, "session_id, exposure_id, offset, limit", "a page of changes",
           inspect_retained_changes, writes, slow},
    method{"page_observation_intents", channel_catalog, key_rule::none, small_bytes, phase::always,
           "after_sequence, limit", "schema_version, items, next_after_sequence?", page_intents, looks},
    method{"set_observation_intent_disposition", channel_catalog, key_rule::ident, small_bytes,
           phase::always,
           "session_id, channel_generation, intent_id, intent_digest, disposition, decided_at_ms",
           "schema_version, item", decide_intent, writes},
};
// clang-format on

[[nodiscard]] auto check_key(const method& row, const std::optional<std::string>& key) -> result<> {
    const wire::place root;
    const wire::place params{&root, "params"};
    const wire::place here{&params, "idempotency_key"};
    if (key && row.key == key_rule::none)
        return wire::detail::refuse(errc::invalid_input, "method.key", here,
                                    "is not taken by this method");
    if (!key && row.key != key_rule::none)
        return wire::detail::refuse(errc::invalid_input, "method.key", here,
                                    "is demanded by this method");
    if (row.key == key_rule::none) return {};
    return (row.key == key_rule::ident112 ? wire::ident112 : wire::ident).check(*key, here);
}

[[nodiscard]] auto check_size(const method& row, std::string_view payload) -> result<> {
    if (payload.size() <= row.payload_bytes) return {};
    return fail(errc::limit_exceeded, "method.payload",
                std::to_string(payload.size()) + " bytes; this method takes " +
                    std::to_string(row.payload_bytes));
}

// The moment on a clock that never steps; far ones are as good as none.
[[nodiscard]] auto deadline_of(std::uint64_t deadline_ms, const arrival& when)
    -> answer<std::chrono::nanoseconds> {
    using std::chrono::milliseconds;
    constexpr std::uint64_t year_ms = 1000ULL * 3600 * 24 * 365;
    const auto now_ms = static_cast<std::uint64_t>(when.wall / milliseconds{1});
    if (deadline_ms == 0 || deadline_ms < now_ms)
        return refuse(error_code::deadline_exceeded, errc::timed_out, "request.deadline",
                      "had passed when the request arrived");
    return when.monotonic + milliseconds{std::min(deadline_ms - now_ms + 1, year_ms)};
}

[[nodiscard]] auto check_phase(service_state& of, const method& row) -> answer<> {
    if (row.when == phase::always) return {};
    if (!of.has.receipts->reconciled())
        return refuse(error_code::audit_reconciliation_required, errc::wrong_state, "method.phase");
    return or_refuse(of.recover_once(), error_code::session_reconciliation_failed);
}

[[nodiscard]] auto carry_out(service_state& of, const request& asked, const arrival& when)
    -> answer<std::string> {
    if (!of.secret.is(asked.bootstrap_secret))
        return refuse(error_code::unauthorized, errc::not_permitted, "request.secret");
    if (asked.schema_version != 1)
        return refuse(error_code::unsupported_schema, errc::unsupported, "request.version",
                      std::to_string(asked.schema_version));
    GLOVE_TRY(const auto deadline, deadline_of(asked.deadline_ms, when));
    const auto* row = find_method(asked.method);
    if (row == nullptr) return refuse(error_code::method_not_found, errc::not_found, "method.name");
    if (!is_there(row->needs, of.has))
        return refuse(error_code::method_not_found, errc::not_found, "method.part",
                      std::string{to_string(row->needs)} + " is not there");
    GLOVE_CHECK(invalid(check_key(*row, asked.idempotency_key)));
    GLOVE_CHECK(invalid(check_size(*row, asked.payload)));
    const call what{asked, *row, deadline};
    GLOVE_CHECK(of.still_in_time(what)); // it may have waited for its turn
    GLOVE_CHECK(check_phase(of, *row));
    return row->carry_out(of, what);
}

void tell(service_state& of, std::string_view method, std::string_view id, const refusal& why) {
    of.has.log->write({.name = "request.refused",
                       .method = method,
                       .request = id,
                       .code = to_string(why.code),
                       .why = &why.why});
}

} // namespace

auto methods() -> std::span<const method> { return table; }

auto find_method(std::string_view name) -> const method* {
    const auto* at = std::ranges::find(table, name, &method::name);
    return at == table.end() ? nullptr : at;
}

auto to_string(part of) noexcept -> std::string_view {
    switch (of) {
    case nothing: return "always";
    case session_policy: return "session policy";
    case session_store: return "session store";
    case operational_runtime: return "operational runtime";
    case exposure_policy: return "exposure policy";
    case materialization_root: return "materialization root";
    case channel_catalog: return "channel catalog";
    }
    return "";
}

auto is_there(part of, const parts& among) -> bool {
    switch (of) {
    case nothing: return true;
    case session_policy: return among.policy != nullptr;
    case session_store: return among.policy != nullptr && among.sessions != nullptr;
    case operational_runtime:
        // A session that is there can be looked at and stopped, whatever can be started.
        return is_there(session_store, among) && among.runtime != nullptr &&
               (among.runtime->lifecycle_operational() || among.runtime->has_sessions());
    case exposure_policy: return among.exposures != nullptr;
    case materialization_root: return among.retained != nullptr;
    case channel_catalog: return is_there(session_store, among) && among.channels != nullptr;
    }
    return false;
}

auto is_operational(const method& what, const parts& among) -> bool {
    if (!is_there(what.needs, among)) return false;
    if (what.needs == operational_runtime && !among.runtime->lifecycle_operational()) return false;
    if (!what.writes) return true;
    switch (what.needs) {
    case session_store:
    case operational_runtime:
    case channel_catalog: return among.sessions->operational();
    case exposure_policy: return among.exposures->operational();
    case nothing: // the journal of receipts is opened anew by the next page
    case session_policy:
    case materialization_root: return true;
    }
    return false;
}

auto to_string(key_rule of) noexcept -> std::string_view {
    switch (of) {
    case key_rule::none: return "none";
    case key_rule::ident: return "ident";
    case key_rule::ident112: return "ident112";
    }
    return "";
}

auto to_string(phase of) noexcept -> std::string_view {
    return of == phase::always ? "always" : "reconciled";
}

auto require_nothing(const call& of) -> answer<> {
    if (of.asked.payload == "null") return {};
    return refuse(error_code::invalid_request, errc::invalid_input, "method.payload",
                  "$.params.payload is not null");
}

auto service_state::still_in_time(const call& of) const -> answer<> {
    if (has.clock->monotonic() < of.deadline) return {};
    return refuse(error_code::deadline_exceeded, errc::timed_out, "request.deadline",
                  "passed before the step that cannot be undone");
}

auto service_state::recover_once() -> result<> {
    const std::lock_guard held{recovery_};
    if (recovered_ || has.sessions == nullptr || has.processes == nullptr ||
        !has.receipts->reconciled())
        return {};
    const auto receipt_of = [this](const session_record& of) {
        return has.receipts->find(of.session_id, of.controller_plan_digest,
                                  of.launch_profile_digest);
    };
    GLOVE_TRY(const auto left, has.sessions->recover(receipt_of, *has.processes));
    recovered_ = true;
    for (const auto& id : left)
        has.log->write({.name = "session.quarantined",
                        .text = id + ": its process could not be identified; it is left alone"});
    return {};
}

void service_state::try_to_recover() {
    if (const auto done = recover_once(); !done)
        has.log->write({.name = "sessions.recovery_failed", .why = &done.error()});
}

service::service(const parts& of, bootstrap_secret secret)
    : state_{std::make_unique<service_state>(of, std::move(secret))} {}
service::~service() = default;

namespace {

// A result that does not fit is a refusal like any other.
[[nodiscard]] auto frame_of(service_state& of, std::string_view method, const std::string& id,
                            answer<std::string> outcome) -> std::string {
    if (outcome) {
        auto text = encode(response{id, *std::move(outcome)});
        if (text) return *std::move(text);
        outcome = refuse(error_code::response_too_large, std::move(text).error());
    }
    tell(of, method, id, outcome.error());
    return encode(response{id, outcome.error().code}).value_or(std::string{});
}

} // namespace

auto service::answer_to(std::string& text, const arrival& when) -> std::string {
    const wiped_at_end wiped{text};
    auto asked = decode_request(text);
    if (!asked)
        return frame_of(*state_, "", asked.error().id,
                        std::unexpected(std::move(asked).error().why));
    const wiped_at_end secret{asked->bootstrap_secret};
    return frame_of(*state_, asked->method, asked->id, carry_out(*state_, *asked, when));
}

auto service::look_at(std::string_view text, const arrival& when) -> glance {
    wire::json::outline outline;
    if (!outline.read(text, {})) return {};
    const auto* name = outline.find("method");
    const auto* params = outline.find("params");
    if (name == nullptr || name->type != wire::json::kind::string || params == nullptr ||
        params->type != wire::json::kind::object)
        return {};
    const auto* row = find_method(wire::json::decoded_string(name->text));
    if (row == nullptr || !row->writes) return {};
    const auto members = outline.inside(*params);
    const auto at = std::ranges::find(members, "deadline_ms", &wire::json::slice::name);
    if (at == members.end()) return {};
    const auto deadline_ms = wire::json::make_number(at->text);
    if (!deadline_ms) return {};
    std::uint64_t ms = 0;
    if (!wire::integer{}.read(*deadline_ms, ms, {})) return {};
    const auto deadline = deadline_of(ms, when);
    return deadline ? glance{true, row->slow, *deadline} : glance{};
}

auto service::answer_to_no_frame(const error& why) -> std::string {
    return frame_of(*state_, "", "", refuse(error_code::invalid_request, error{why}));
}

} // namespace glove::control
