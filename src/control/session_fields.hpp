// The field tables of session records and of what a controller is shown, in the order of the wire.
// A record has all members from its first day on; which of them a state fills, session_rules.hpp
// says. The tests break each row.
#pragma once
#include "control/session_words.hpp"
#include <glove/adapters/guest_channel.hpp>
#include <glove/wire/maybe.hpp>

namespace glove::control {

inline constexpr std::size_t most_partitions = 128;
inline constexpr std::size_t most_plan_bytes = 1UL << 19;
inline constexpr std::size_t boot_id_bytes = 36;
inline constexpr wire::integer any_integer{};
inline constexpr wire::integer only_version_1{1, 1};
inline constexpr wire::integer positive_integer{1};

inline constexpr auto cgroup_fields =
    wire::table(wire::row<&cgroup_identity::schema_version, only_version_1>("schema_version"),
                wire::row<&cgroup_identity::device, any_integer>("device"),
                wire::row<&cgroup_identity::inode, any_integer>("inode"));

inline constexpr auto partition_fields =
    wire::table(wire::row<&filesystem_partition::alias, wire::alias>("alias"),
                wire::row<&filesystem_partition::quota_bytes, any_integer>("quota_bytes"));

inline constexpr auto filesystem_fields = wire::table(
    wire::row<&filesystem_identity::schema_version, only_version_1>("schema_version"),
    wire::row<&filesystem_identity::disk_limit_bytes, any_integer>("disk_limit_bytes"),
    wire::row<&filesystem_identity::partitions,
              wire::list<wire::record<partition_fields>{}>{0, most_partitions}>("partitions"));

inline constexpr wire::word<std::string_view> managed_backend_words[] = {
    {"apple_container", "apple_container"}};
inline constexpr auto managed_fields = wire::table(
    wire::row<&managed_runtime_identity::schema_version, only_version_1>("schema_version"),
    wire::row<&managed_runtime_identity::backend, wire::choice<managed_backend_words>{}>("backend"),
    wire::row<&managed_runtime_identity::instance_id, wire::ident>("instance_id"),
    wire::row<&managed_runtime_identity::launch_identity_digest, wire::hex64>(
        "launch_identity_digest"));

inline constexpr auto intent_fields = wire::table(
    wire::row<&observation_intent::schema_version, only_version_1>("schema_version"),
    wire::row<&observation_intent::schema, wire::ident>("schema"),
    wire::row<&observation_intent::intent_id, wire::ident>("intent_id"),
    wire::row<&observation_intent::observation, wire::ident>("observation"),
    wire::row<&observation_intent::value_digest, wire::hex64>("value_digest"),
    wire::row<&observation_intent::item_count, positive_integer>("item_count"),
    wire::row<&observation_intent::intent_digest, wire::hex64>("intent_digest"),
    wire::row<&observation_intent::profile_digest, wire::hex64>("profile_digest"),
    wire::row<&observation_intent::runtime_id, wire::ident>("runtime_id"),
    wire::row<&observation_intent::projection_digest, wire::hex64>("projection_digest"),
    wire::row<&observation_intent::channel_id, wire::ident>("channel_id"),
    wire::row<&observation_intent::channel_generation, any_integer>("channel_generation"),
    wire::row<&observation_intent::issued_at_ms, positive_integer>("issued_at_ms"),
    wire::row<&observation_intent::expires_at_ms, positive_integer>("expires_at_ms"),
    wire::row<&observation_intent::disposition, wire::choice<disposition_words>{}>("disposition"),
    wire::row<&observation_intent::decided_at_ms, any_integer>("decided_at_ms"));

// A guest's body: the same rules before it is on record.
inline constexpr auto body_fields =
    wire::table(wire::row<&adapters::guest_body::schema, wire::ident>("schema"),
                wire::row<&adapters::guest_body::intent_id, wire::ident>("intent_id"),
                wire::row<&adapters::guest_body::observation, wire::ident>("observation"),
                wire::row<&adapters::guest_body::value_digest, wire::hex64>("value_digest"),
                wire::row<&adapters::guest_body::item_count, any_integer>("item_count"));

namespace detail {

// A member of the process's identity, which stands in the record itself.
template<auto Member, auto Rule> [[nodiscard]] consteval auto process_row(std::string_view name) {
    return wire::row_at<session_record, Rule, &session_record::process, Member>(name);
}

[[nodiscard]] consteval auto session_table() {
    using r = session_record;
    using p = process_identity;
    using wire::row, wire::maybe;
    constexpr wire::text boot_id{wire::grammar::alias, 1, boot_id_bytes};
    return wire::table(
        row<&r::schema_version, only_version_1>("schema_version"),
        row<&r::sequence, positive_integer>("sequence"),
        row<&r::operation, wire::choice<operation_words>{}>("operation"),
        row<&r::idempotency_key, wire::ident>("idempotency_key"),
        row<&r::session_id, wire::ident>("session_id"),
        row<&r::controller_plan_digest, wire::hex64>("controller_plan_digest"),
        row<&r::request_digest, wire::hex64>("request_digest"),
        row<&r::plan_content_digest, wire::hex64>("plan_content_digest"),
        row<&r::state, wire::choice<state_words>{}>("state"),
        row<&r::policy_revision, any_integer>("policy_revision"),
        row<&r::expires_at_ms, positive_integer>("expires_at_ms"),
        row<&r::created_at_ms, positive_integer>("created_at_ms"),
        row<&r::authorization_id, maybe<wire::ident>{}>("authorization_id"),
        row<&r::authorized_at_ms, any_integer>("authorized_at_ms"),
        row<&r::authorization_expires_at_ms, any_integer>("authorization_expires_at_ms"),
        row<&r::launch_profile_digest, maybe<wire::hex64>{}>("launch_profile_digest"),
        row<&r::starting_at_ms, any_integer>("starting_at_ms"),
        row<&r::running_at_ms, any_integer>("running_at_ms"),
        row<&r::stopping_at_ms, any_integer>("stopping_at_ms"),
        process_row<&p::schema_version, wire::integer{0, 1}>("process_identity_schema_version"),
        process_row<&p::pid, wire::integer{0, UINT32_MAX}>("process_pid"),
        process_row<&p::boot_id, maybe<boot_id>{}>("process_boot_id"),
        process_row<&p::start_time_ticks, any_integer>("process_start_time_ticks"),
        process_row<&p::cgroup_device, any_integer>("process_cgroup_device"),
        process_row<&p::cgroup_inode, any_integer>("process_cgroup_inode"),
        process_row<&p::cgroup_path_digest, maybe<wire::hex64>{}>("process_cgroup_path_digest"),
        row<&r::cgroup, wire::record<cgroup_fields>{}>("cgroup_identity"),
        row<&r::filesystem, wire::record<filesystem_fields>{}>("filesystem_identity"),
        row<&r::managed_runtime, wire::record<managed_fields>{}>("managed_runtime_identity"),
        row<&r::failure_code, wire::choice<recorded_failure_words>{}>("failure_code"),
        row<&r::finished_at_ms, any_integer>("finished_at_ms"),
        row<&r::receipt_started_at_ms, any_integer>("receipt_started_at_ms"),
        row<&r::receipt_key_id, maybe<wire::hex64>{}>("receipt_key_id"),
        row<&r::receipt_sequence, any_integer>("receipt_sequence"),
        row<&r::receipt_digest, maybe<wire::hex64>{}>("receipt_digest"),
        row<&r::receipt_previous_hmac, maybe<wire::hex64>{}>("receipt_previous_hmac"),
        row<&r::receipt_hmac, maybe<wire::hex64>{}>("receipt_hmac"),
        row<&r::termination_cause, wire::choice<recorded_cause_words>{}>("termination_cause"),
        row<&r::exit_code, wire::integer{0, 255}>("exit_code"),
        row<&r::canonical_plan_json, wire::text{wire::grammar::no_nul, 2, most_plan_bytes}>(
            "canonical_plan_json"),
        row<&r::previous_hash, wire::hex64>("previous_hash"),
        row<&r::this_hash, wire::hex64>("this_hash"),
        row<&r::intent, wire::record<intent_fields>{}>("observation_intent"));
}

} // namespace detail

inline constexpr auto session_fields = detail::session_table();

inline constexpr auto view_fields = wire::table(
    wire::row<&session_view::schema_version, only_version_1>("schema_version"),
    wire::row<&session_view::session_id, wire::ident>("session_id"),
    wire::row<&session_view::controller_plan_digest, wire::hex64>("controller_plan_digest"),
    wire::row<&session_view::plan_content_digest, wire::hex64>("plan_content_digest"),
    wire::row<&session_view::state, wire::choice<state_words>{}>("state"),
    wire::row<&session_view::policy_revision, any_integer>("policy_revision"),
    wire::row<&session_view::expires_at_ms, positive_integer>("expires_at_ms"),
    wire::row<&session_view::created_at_ms, positive_integer>("created_at_ms"),
    wire::row<&session_view::profile_digest, wire::hex64>("profile_digest"));

} // namespace glove::control
