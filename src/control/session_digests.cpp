// The encodings of requests, in the order of docs/journal-format.md and of the wire. Nothing here
// judges what it encodes.
#include "control/session_digests.hpp"
#include "control/session_rules.hpp"

namespace glove::control {

namespace {

constexpr std::uint64_t version = 1;

[[nodiscard]] auto named(std::string_view domain) -> wire::digest_encoder {
    wire::digest_encoder out;
    out.str(domain);
    return out;
}

// What every commitment of a launched session begins with.
[[nodiscard]] auto commitment(std::string_view domain, const session_record& of)
    -> wire::digest_encoder {
    auto out = named(domain);
    out.u8(version).str(of.session_id).str(of.controller_plan_digest);
    out.str(of.plan_content_digest).str(of.authorization_id).str(of.launch_profile_digest);
    return out;
}

[[nodiscard]] auto binding(const session_record& of) -> wire::digest_encoder {
    if (of.managed_runtime) {
        auto out = commitment("glove.managed-session-execution-binding", of);
        put_managed(out, of.managed_runtime);
        return out;
    }
    auto out = commitment("glove.session-execution-binding", of);
    put_cgroup(out, of.cgroup);
    put_filesystem(out, of.filesystem);
    return out;
}

[[nodiscard]] auto presence(std::string_view plain, std::string_view managed,
                            const session_record& of) -> wire::digest_encoder {
    if (of.managed_runtime) {
        auto out = commitment(managed, of);
        put_managed(out, of.managed_runtime);
        return out;
    }
    auto out = commitment(plain, of);
    put_process(out, of.process);
    put_filesystem(out, of.filesystem);
    return out;
}

[[nodiscard]] auto terminal(const session_record& of) -> wire::digest_encoder {
    auto out = named("glove.session-terminal-envelope");
    out.u8(version).u64(of.receipt_sequence).str(of.receipt_key_id).str(of.session_id);
    out.str(of.controller_plan_digest).str(of.launch_profile_digest).str(of.receipt_digest);
    out.str(of.receipt_previous_hmac).str(of.receipt_hmac).str(of.termination_cause);
    out.u64(of.receipt_started_at_ms).u64(of.finished_at_ms).boolean(of.exit_code.has_value());
    if (of.exit_code) out.u32(*of.exit_code);
    return out;
}

[[nodiscard]] auto failure_of(const session_record& of) -> wire::digest_encoder {
    auto out = commitment("glove.session-failure-commitment", of);
    out.str(of.failure_code);
    return out;
}

} // namespace

void put_cgroup(wire::digest_encoder& out, const std::optional<cgroup_identity>& what) {
    out.boolean(what.has_value());
    if (what) out.u8(what->schema_version).u64(what->device).u64(what->inode);
}

void put_filesystem(wire::digest_encoder& out, const std::optional<filesystem_identity>& what) {
    out.boolean(what.has_value());
    if (!what) return;
    out.u8(what->schema_version).u64(what->disk_limit_bytes).count(what->partitions.size());
    for (const auto& one : what->partitions) out.str(one.alias).u64(one.quota_bytes);
}

// Nothing at all when there is none.
void put_managed(wire::digest_encoder& out, const std::optional<managed_runtime_identity>& what) {
    if (!what) return;
    out.u8(1).str("glove.managed-runtime-identity.v1").u8(what->schema_version);
    out.str(what->backend).str(what->instance_id).str(what->launch_identity_digest);
}

void put_process(wire::digest_encoder& out, const process_identity& what) {
    out.u8(what.schema_version).u32(what.pid).str(what.boot_id).u64(what.start_time_ticks);
    out.u64(what.cgroup_device).u64(what.cgroup_inode).str(what.cgroup_path_digest);
}

auto start_digest(const start_authorization& what) -> result<std::string> {
    auto out = named("glove.session-start-authorization");
    out.u8(what.schema_version).str(what.authorization_id).str(what.session_id);
    out.str(what.controller_plan_digest).str(what.plan_content_digest);
    return out.u64(what.approved_at_ms).u64(what.expires_at_ms).sha256_hex();
}

auto step_digest(const session_record& next) -> result<std::string> {
    const auto known = operation_named(next.operation);
    if (!known) return fail(errc::invalid_input, "record.operation", "it is no step of a life");
    using enum life_event;
    switch (known->event) {
    case mark_starting: return binding(next).sha256_hex();
    case mark_running:
        return presence("glove.session-running-commitment",
                        "glove.managed-session-running-commitment", next)
            .sha256_hex();
    case mark_stopping:
        return presence("glove.session-stopping-commitment",
                        "glove.managed-session-stopping-commitment", next)
            .sha256_hex();
    case mark_exited: return terminal(next).sha256_hex();
    case mark_failed: return failure_of(next).sha256_hex();
    case reserve_start:
        return start_digest({1, next.authorization_id, next.session_id, next.controller_plan_digest,
                             next.plan_content_digest, next.authorized_at_ms,
                             next.authorization_expires_at_ms});
    case create: break;
    }
    return fail(errc::invalid_input, "record.operation",
                "the digest of a creation is that of the plan as it was received");
}

auto body_of(const observation_intent& what) -> adapters::guest_body {
    return {what.schema, what.intent_id, what.observation, what.value_digest, what.item_count};
}

auto intent_digest(const adapters::guest_body& body) -> result<std::string> {
    auto out = named("glove.observation-body.v1");
    out.str(body.schema).str(body.intent_id).str(body.observation).str(body.value_digest);
    return out.u64(body.item_count).sha256_hex();
}

auto enqueue_digest(const session_record& session, const observation_intent& what)
    -> result<std::string> {
    auto out = named("glove.observation-intent-enqueue.v1");
    out.str(what.schema).str(what.intent_id).str(what.observation).str(what.value_digest);
    out.str(session.session_id).str(session.controller_plan_digest).str(what.profile_digest);
    out.str(what.runtime_id).str(what.projection_digest).str(what.channel_id);
    out.u64(what.item_count).u64(session.policy_revision).u64(what.channel_generation);
    return out.u64(what.issued_at_ms).u64(what.expires_at_ms).sha256_hex();
}

auto disposition_digest(const session_record& session, const observation_intent& what)
    -> result<std::string> {
    auto out = named("glove.observation-intent-disposition.v1");
    out.str(session.session_id).str(what.intent_id).str(what.intent_digest);
    out.str(to_string(what.disposition));
    return out.u64(what.channel_generation).u64(what.decided_at_ms).sha256_hex();
}

auto intent_key(const observation_intent& what, std::string_view request_digest) -> std::string {
    std::string out{what.disposition == intent_disposition::pending ? "intent-enqueue:"
                                                                    : "intent-disposition:"};
    return out.append(request_digest);
}

} // namespace glove::control
