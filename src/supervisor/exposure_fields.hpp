// The field tables of exposures: requests, records, the catalog and the operator's policy.
#pragma once
#include "supervisor/refusal.hpp"
#include "supervisor/words.hpp"
#include <glove/supervisor/exposure.hpp>
#include <glove/supervisor/exposure_policy.hpp>
#include <glove/wire/maybe.hpp>

namespace glove::supervisor {

inline constexpr std::size_t most_modes = 8;
inline constexpr std::size_t most_templates = 64;

inline constexpr auto mode_fields = wire::table(
    wire::row<&exposure_mode::access, wire::choice<access_words>{}>("access"),
    wire::row<&exposure_mode::materialization, wire::choice<materialization_words>{}>(
        "materialization"),
    wire::row<&exposure_mode::max_bytes, wire::integer{}>("max_bytes"),
    wire::row<&exposure_mode::cleanup_policy, wire::choice<cleanup_words>{}>("cleanup_policy"));

inline constexpr wire::list<wire::record<mode_fields>{}> some_modes{1, most_modes};
inline constexpr wire::list<wire::ident> some_templates{1, most_templates};

inline constexpr auto create_fields =
    wire::table(wire::row<&create_exposure::exposure_id, exposure_name>("exposure_id"),
                wire::row<&create_exposure::root_id, wire::ident>("root_id"),
                wire::row<&create_exposure::host_path, wire::absolute_path>("host_path"),
                wire::row<&create_exposure::display_label, wire::label>("display_label"),
                wire::row<&create_exposure::allowed_modes, some_modes>("allowed_modes"),
                wire::row<&create_exposure::ttl_secs, positive>("ttl_secs"),
                wire::row<&create_exposure::allowed_runtime_template_ids, some_templates>(
                    "allowed_runtime_template_ids"));

inline constexpr auto revoke_fields =
    wire::table(wire::row<&revoke_exposure::exposure_id, exposure_name>("exposure_id"),
                wire::row<&revoke_exposure::generation, positive>("generation"));

// Any order is good, and nothing twice; each mode is one that there is.
[[nodiscard]] inline auto sort_modes(std::vector<exposure_mode>& modes, const wire::place& at)
    -> result<> {
    for (std::size_t i = 0; i < modes.size(); ++i)
        if (const auto fault = fault_of(modes[i]); !fault.empty())
            return refuse(errc::invalid_input, "exposure.mode", element_of(at, i), fault);
    if (const auto i = first_repeated(modes, [](const exposure_mode& m) { return m; });
        i < modes.size())
        return refuse(errc::invalid_input, "exposure.unique", element_of(at, i), "appears twice");
    std::sort(modes.begin(), modes.end());
    return {};
}
[[nodiscard]] inline auto sort_names(std::vector<std::string>& names, const wire::place& at)
    -> result<> {
    if (const auto i =
            first_repeated(names, [](const std::string& s) -> std::string_view { return s; });
        i < names.size())
        return refuse(errc::invalid_input, "exposure.unique", element_of(at, i), "appears twice");
    std::sort(names.begin(), names.end());
    return {};
}

inline constexpr wire::word<exposure_state> state_words[] = {
    {"active", exposure_state::active},
    {"revoked", exposure_state::revoked},
    {"expired", exposure_state::expired},
};

inline constexpr auto catalog_fields =
    wire::table(wire::row<&catalog_entry::schema_version, version_1>("schema_version"),
                wire::row<&catalog_entry::exposure_id, exposure_name>("exposure_id"),
                wire::row<&catalog_entry::generation, positive>("generation"),
                wire::row<&catalog_entry::scope_digest, wire::hex64>("scope_digest"),
                wire::row<&catalog_entry::display_label, wire::label>("display_label"),
                wire::row<&catalog_entry::allowed_modes, some_modes>("allowed_modes"),
                wire::row<&catalog_entry::expires_at_ms, positive>("expires_at_ms"),
                wire::row<&catalog_entry::allowed_runtime_template_ids, some_templates>(
                    "allowed_runtime_template_ids"),
                wire::row<&catalog_entry::state, wire::choice<state_words>{}>("state"));

// --- records ---

// The JSON of a record has the members of both kinds. One of a revocation has a descriptor of
// defaults, and one of a creation has the members of a revocation at theirs. The rows allow both;
// `decode_exposure_record` asks for what belongs together.
struct descriptor_in_record : exposure_descriptor {
    std::uint8_t schema_version = 1;
    std::string state;
};
struct flat_record : exposure_revoked {
    std::uint8_t schema_version = 1;
    std::uint64_t sequence = 0;
    std::string kind;
    descriptor_in_record descriptor;
    std::string host_path;
    std::string parent_identity_digest;
    std::string state;
    std::string previous_hash;
    std::string record_hash;
};

inline constexpr wire::word<std::string_view> kind_words[] = {{"create", "create"},
                                                              {"revoke", "revoke"}};
inline constexpr wire::word<std::string_view> recorded_state_words[] = {
    {"", ""}, {"active", "active"}, {"revoked", "revoked"}};

template<auto Member, auto Rule>
[[nodiscard]] consteval auto descriptor_row(std::string_view name) {
    return wire::row_at<descriptor_in_record, Rule, Member>(name);
}
inline constexpr auto descriptor_fields = wire::table(
    descriptor_row<&descriptor_in_record::schema_version, version_1>("schema_version"),
    descriptor_row<&exposure_descriptor::exposure_id, wire::maybe<exposure_name>{}>("exposure_id"),
    descriptor_row<&exposure_descriptor::generation, wire::integer{}>("generation"),
    descriptor_row<&exposure_descriptor::root_id, wire::maybe<wire::ident>{}>("root_id"),
    descriptor_row<&exposure_descriptor::source_identity_digest, wire::maybe<wire::hex64>{}>(
        "source_identity_digest"),
    descriptor_row<&exposure_descriptor::scope_digest, wire::maybe<wire::hex64>{}>("scope_digest"),
    descriptor_row<&exposure_descriptor::display_label, wire::maybe<wire::label>{}>(
        "display_label"),
    descriptor_row<&exposure_descriptor::allowed_modes,
                   wire::list<wire::record<mode_fields>{}>{0, most_modes}>("allowed_modes"),
    descriptor_row<&exposure_descriptor::expires_at_ms, wire::integer{}>("expires_at_ms"),
    descriptor_row<&exposure_descriptor::allowed_runtime_template_ids,
                   wire::list<wire::ident>{0, most_templates}>("allowed_runtime_template_ids"),
    descriptor_row<&descriptor_in_record::state, wire::choice<recorded_state_words>{}>("state"));

template<auto Member, auto Rule> [[nodiscard]] consteval auto record_row(std::string_view name) {
    return wire::row_at<flat_record, Rule, Member>(name);
}
inline constexpr auto record_fields = wire::table(
    record_row<&flat_record::schema_version, version_1>("schema_version"),
    record_row<&flat_record::sequence, positive>("sequence"),
    record_row<&flat_record::kind, wire::choice<kind_words>{}>("kind"),
    record_row<&flat_record::descriptor, wire::record<descriptor_fields>{}>("descriptor"),
    record_row<&exposure_revoked::request_id, wire::ident>("request_id"),
    record_row<&exposure_revoked::request_digest, wire::hex64>("request_digest"),
    record_row<&flat_record::host_path, wire::maybe<wire::absolute_path>{}>("host_path"),
    record_row<&flat_record::parent_identity_digest, wire::maybe<wire::hex64>{}>(
        "parent_identity_digest"),
    record_row<&exposure_revoked::exposure_id, wire::maybe<exposure_name>{}>("exposure_id"),
    record_row<&exposure_revoked::generation, wire::integer{}>("generation"),
    record_row<&flat_record::state, wire::choice<recorded_state_words>{}>("state"),
    record_row<&exposure_revoked::revoked_at_ms, wire::integer{}>("revoked_at_ms"),
    record_row<&flat_record::previous_hash, wire::hex64>("previous_hash"),
    record_row<&flat_record::record_hash, wire::hex64>("record_hash"));

// --- the operator's policy ---

inline constexpr auto root_fields =
    wire::table(wire::row<&exposure_root::root_id, wire::ident>("root_id"),
                wire::row<&exposure_root::host_root, wire::absolute_path>("host_root"),
                wire::row<&exposure_root::allowed_modes, some_modes>("allowed_modes"),
                wire::row<&exposure_root::max_ttl_secs, positive>("max_ttl_secs"),
                wire::row<&exposure_root::allowed_runtime_template_ids, some_templates>(
                    "allowed_runtime_template_ids"));

inline constexpr auto exposure_rules_fields = wire::table(
    wire::row<&exposure_rules::schema_version, version_1>("schema_version"),
    wire::row<&exposure_rules::roots, wire::list<wire::record<root_fields>{}>{1, 64}>("roots"));

} // namespace glove::supervisor
