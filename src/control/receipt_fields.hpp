// The field tables of receipts and their envelopes, in canonical order. The tests break each row.
#pragma once
#include "control/cause_words.hpp"
#include "supervisor/plan_fields.hpp"
#include <glove/control/receipt.hpp>

namespace glove::control {

inline constexpr std::size_t most_projections = supervisor::most_projections;
inline constexpr std::size_t most_retained = supervisor::most_grants;
inline constexpr std::uint64_t most_changes = 100'000; // of one exposure, of all kinds together

inline constexpr wire::word<mechanism> mechanism_words[] = {
    {"unavailable", mechanism::unavailable},
    {"rlimit", mechanism::rlimit},
    {"cgroup_v2", mechanism::cgroup_v2},
    {"watchdog", mechanism::watchdog},
    {"filesystem_quota", mechanism::filesystem_quota},
    {"byte_counter", mechanism::byte_counter},
};
inline constexpr wire::word<observation_authority> authority_words[] = {
    {"local_enforcement", observation_authority::local_enforcement},
    {"trusted_remote_claim", observation_authority::trusted_remote_claim},
};

inline constexpr wire::integer exit_status{0, 255};
inline constexpr wire::integer change_count{0, most_changes};
inline constexpr wire::choice<mechanism_words> any_mechanism{};

inline constexpr auto mechanisms_fields = wire::table(
    wire::row<&enforcement_mechanisms::cpu_time, any_mechanism>("cpu_time"),
    wire::row<&enforcement_mechanisms::memory, any_mechanism>("memory"),
    wire::row<&enforcement_mechanisms::pids, any_mechanism>("pids"),
    wire::row<&enforcement_mechanisms::wall_time, any_mechanism>("wall_time"),
    wire::row<&enforcement_mechanisms::disk, any_mechanism>("disk"),
    wire::row<&enforcement_mechanisms::terminal_output, any_mechanism>("terminal_output"),
    wire::row<&enforcement_mechanisms::receipt_schema_version, supervisor::version_1>(
        "receipt_schema_version"));

inline constexpr auto observed_fields = wire::table(
    wire::row<&observed_use::cpu_time_ms, wire::integer{}>("cpu_time_ms"),
    wire::row<&observed_use::peak_memory_bytes, wire::integer{}>("peak_memory_bytes"),
    wire::row<&observed_use::peak_pids, wire::integer{0, UINT32_MAX}>("peak_pids"),
    wire::row<&observed_use::wall_time_ms, wire::integer{}>("wall_time_ms"),
    wire::row<&observed_use::disk_bytes, wire::integer{}>("disk_bytes"),
    wire::row<&observed_use::terminal_output_bytes, wire::integer{}>("terminal_output_bytes"));

inline constexpr auto projection_receipt_fields =
    wire::table(wire::row<&projection_receipt::projection_id, wire::ident>("projection_id"),
                wire::row<&projection_receipt::destination_alias, wire::ident>("destination_alias"),
                wire::row<&projection_receipt::target_path, wire::absolute_path>("target_path"),
                wire::row<&projection_receipt::content_digest, wire::hex64>("content_digest"));

inline constexpr auto retained_change_fields = wire::table(
    wire::row<&retained_change_receipt::exposure_id, supervisor::exposure_name>("exposure_id"),
    wire::row<&retained_change_receipt::generation, supervisor::positive>("generation"),
    wire::row<&retained_change_receipt::scope_digest, wire::hex64>("scope_digest"),
    wire::row<&retained_change_receipt::source_identity_digest, wire::hex64>(
        "source_identity_digest"),
    wire::row<&retained_change_receipt::baseline_tree_digest, wire::hex64>("baseline_tree_digest"),
    wire::row<&retained_change_receipt::staged_tree_digest, wire::hex64>("staged_tree_digest"),
    wire::row<&retained_change_receipt::manifest_digest, wire::hex64>("manifest_digest"),
    wire::row<&retained_change_receipt::created, change_count>("created"),
    wire::row<&retained_change_receipt::modified, change_count>("modified"),
    wire::row<&retained_change_receipt::renamed, change_count>("renamed"),
    wire::row<&retained_change_receipt::removed, change_count>("removed"),
    wire::row<&retained_change_receipt::before_bytes, wire::integer{}>("before_bytes"),
    wire::row<&retained_change_receipt::after_bytes, wire::integer{}>("after_bytes"));

inline constexpr auto resource_receipt_fields = wire::table(
    wire::row<&resource_receipt::schema_version, supervisor::version_1>("schema_version"),
    wire::row<&resource_receipt::profile_digest, wire::hex64>("profile_digest"),
    wire::row<&resource_receipt::backend, wire::choice<supervisor::backend_words>{}>("backend"),
    wire::row<&resource_receipt::backend_id, wire::ident>("backend_id"),
    wire::row<&resource_receipt::authority, wire::choice<authority_words>{}>(
        "observation_authority"),
    wire::row<&resource_receipt::independently_verified, wire::flag{}>("independently_verified"),
    wire::row<&resource_receipt::configured_limits, wire::record<supervisor::limits_fields>{}>(
        "configured_limits"),
    wire::row<&resource_receipt::mechanisms, wire::record<mechanisms_fields>{}>("mechanisms"),
    wire::row<&resource_receipt::observed, wire::record<observed_fields>{}>("observed"),
    wire::row<&resource_receipt::cause, wire::choice<cause_words>{}>("termination_cause"),
    wire::row<&resource_receipt::exit_code, exit_status>("exit_code"),
    wire::row<&resource_receipt::started_at_ms, supervisor::positive>("started_at_ms"),
    wire::row<&resource_receipt::finished_at_ms, supervisor::positive>("finished_at_ms"),
    wire::row<&resource_receipt::library_projections,
              wire::list<wire::record<projection_receipt_fields>{}>{0, most_projections}>(
        "library_projections"),
    wire::row<&resource_receipt::retained_changes,
              wire::list<wire::record<retained_change_fields>{}>{0, most_retained}>(
        "retained_changes"));

inline constexpr auto anchor_fields =
    wire::table(wire::row<&receipt_anchor::key_id, wire::hex64>("key_id"),
                wire::row<&receipt_anchor::sequence, wire::integer{}>("sequence"),
                wire::row<&receipt_anchor::head_hmac, wire::hex64>("head_hmac"));

template<class Receipt, const auto& ReceiptFields> [[nodiscard]] consteval auto envelope_table() {
    using e = envelope_of<Receipt>;
    return wire::table(wire::row<&e::schema_version, supervisor::version_1>("schema_version"),
                       wire::row<&e::sequence, supervisor::positive>("sequence"),
                       wire::row<&e::key_id, wire::hex64>("key_id"),
                       wire::row<&e::session_id, wire::ident>("session_id"),
                       wire::row<&e::controller_plan_digest, wire::hex64>("controller_plan_digest"),
                       wire::row<&e::receipt, wire::record<ReceiptFields>{}>("receipt"),
                       wire::row<&e::receipt_digest, wire::hex64>("receipt_digest"),
                       wire::row<&e::previous_hmac, wire::hex64>("previous_hmac"),
                       wire::row<&e::this_hmac, wire::hex64>("this_hmac"));
}
inline constexpr auto resource_envelope_fields =
    envelope_table<resource_receipt, resource_receipt_fields>();

// The rules that no row states: order, sums, and which authority may claim what.
[[nodiscard]] auto check_rules(const resource_receipt& of, const wire::place& at) -> result<>;

// An object's rows and then its rules.
template<class T, std::size_t N>
[[nodiscard]] auto checked_text(const T& what, const wire::fields<T, N>& rows)
    -> result<std::string> {
    GLOVE_CHECK(wire::check_object(what, rows, wire::place{}));
    GLOVE_CHECK(check_rules(what, wire::place{}));
    return wire::encode(what, rows);
}
template<class T, std::size_t N>
[[nodiscard]] auto checked_value(std::string_view text, const wire::fields<T, N>& rows)
    -> result<T> {
    GLOVE_TRY(auto out, wire::decode_text(text, rows));
    GLOVE_CHECK(check_rules(out, wire::place{}));
    return out;
}

} // namespace glove::control
