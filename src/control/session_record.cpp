// Records as text and as what their digest is computed from.
#include "control/session_digests.hpp"
#include "control/session_fields.hpp"
#include "control/session_rules.hpp"
#include <glove/wire/crypto.hpp>
#include <glove/wire/words.hpp>

namespace glove::control {

namespace {

[[nodiscard]] constexpr auto from(session_state first, session_state is) noexcept -> bool {
    return is >= first;
}

void put_receipt(wire::digest_encoder& out, const session_record& of) {
    out.str(of.receipt_key_id).str(of.receipt_digest).str(of.receipt_previous_hmac);
    out.str(of.receipt_hmac).str(of.termination_cause).u64(of.receipt_sequence);
    out.u64(of.receipt_started_at_ms).u64(of.finished_at_ms).boolean(of.exit_code.has_value());
    if (of.exit_code) out.u32(*of.exit_code);
}

void put_intent(wire::digest_encoder& out, const observation_intent& what) {
    out.str("glove.session-registry.observation-intent.v1").u8(what.schema_version);
    out.str(what.schema).str(what.intent_id).str(what.observation).str(what.value_digest);
    out.str(what.intent_digest).str(what.profile_digest).str(what.runtime_id);
    out.str(what.projection_digest).str(what.channel_id).str(to_string(what.disposition));
    out.u64(what.item_count).u64(what.channel_generation).u64(what.issued_at_ms);
    out.u64(what.expires_at_ms).u64(what.decided_at_ms);
}

// What each state adds to what the ones before it have.
void put_states(wire::digest_encoder& out, const session_record& of) {
    using enum session_state;
    if (from(starting, of.state)) {
        out.str(of.launch_profile_digest).u64(of.starting_at_ms);
        put_cgroup(out, of.cgroup);
        put_filesystem(out, of.filesystem);
        put_managed(out, of.managed_runtime);
    }
    if (from(running, of.state)) {
        out.u64(of.running_at_ms);
        put_process(out, of.process);
    }
    if (from(stopping, of.state)) out.u64(of.stopping_at_ms);
    if (of.state == failed) out.str(of.failure_code).u64(of.finished_at_ms);
    if (of.state == exited) put_receipt(out, of);
}

} // namespace

auto to_string(session_state of) noexcept -> std::string_view {
    return wire::name_in(state_words, of);
}
auto to_string(intent_disposition of) noexcept -> std::string_view {
    return wire::name_in(disposition_words, of);
}

auto record_hash(const session_record& of) -> result<std::string> {
    wire::digest_encoder out;
    out.str("glove.session-registry.record").u8(of.schema_version).u64(of.sequence);
    out.str(of.operation).str(of.idempotency_key).str(of.session_id);
    out.str(of.controller_plan_digest).str(of.request_digest).str(of.plan_content_digest);
    out.str(to_string(of.state)).str(of.authorization_id).u64(of.policy_revision);
    out.u64(of.expires_at_ms).u64(of.created_at_ms).u64(of.authorized_at_ms);
    out.u64(of.authorization_expires_at_ms);
    put_states(out, of);
    if (of.intent) put_intent(out, *of.intent);
    return out.str(of.canonical_plan_json).str(of.previous_hash).sha256_hex();
}

auto encode(const session_record& what) -> result<std::string> {
    GLOVE_CHECK(check_session_record(what));
    return wire::encode(what, session_fields);
}

auto decode_session_record(std::string_view text) -> result<session_record> {
    GLOVE_TRY(auto read,
              wire::decode_and_compare(text, session_fields, {.bytes = most_session_record_bytes}));
    auto& out = read.data;
    // The digest does not cover how the text is written, nor members that its state leaves empty.
    GLOVE_CHECK(check_session_record(out));
    GLOVE_TRY(const auto hash, record_hash(out));
    if (!read.is_as_encoded || !wire::equal_in_constant_time(hash, out.this_hash))
        return fail(errc::corrupt, "record.hash",
                    "record " + std::to_string(out.sequence) + " is not what its hash says");
    return std::move(out);
}

auto view_of(const session_record& record) -> session_view {
    session_view out{.session_id = record.session_id,
                     .controller_plan_digest = record.controller_plan_digest,
                     .plan_content_digest = record.plan_content_digest,
                     .state = record.state,
                     .policy_revision = record.policy_revision,
                     .expires_at_ms = record.expires_at_ms,
                     .created_at_ms = record.created_at_ms,
                     .profile_digest = std::nullopt};
    if (!record.launch_profile_digest.empty()) out.profile_digest = record.launch_profile_digest;
    return out;
}

auto encode(const session_view& what) -> result<std::string> {
    return wire::encode(what, view_fields);
}
auto decode_session_view(std::string_view text) -> result<session_view> {
    return wire::decode_text(text, view_fields);
}

} // namespace glove::control
