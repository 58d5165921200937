// The field tables of the session policy. The tests break each row of them, and the reference page
// repeats them.
#pragma once
#include "supervisor/words.hpp"
#include <glove/supervisor/session_policy.hpp>

namespace glove::supervisor {

inline constexpr std::size_t policy_bytes = 1U << 20U;
inline constexpr wire::text short_ident{wire::grammar::ident, 1, 120};
inline constexpr wire::text launch_string{wire::grammar::no_nul, 1, 65'536};
inline constexpr wire::text host_name{wire::grammar::token, 1, 253};
// A path, or nothing where the other way of finding the program is meant.
inline constexpr wire::text maybe_path{wire::grammar::no_nul, 0, 4096};
inline constexpr wire::text maybe_ident{wire::grammar::ident, 0, 128};

inline constexpr wire::list<wire::ident> idents_128{0, 128};
inline constexpr wire::list<wire::ident> some_idents_128{1, 128};
inline constexpr wire::list<launch_string> launch_strings{0, 256};
inline constexpr wire::list<wire::absolute_path> launch_paths{0, 256};

inline constexpr auto launch_fields = wire::table(
    wire::defaulted_row<&launch_template::runtime_discovery, maybe_ident>("runtime_discovery"),
    wire::defaulted_row<&launch_template::executable_path, maybe_path>("executable_path"),
    wire::defaulted_row<&launch_template::executable_search_paths, launch_paths>(
        "executable_search_paths"),
    wire::row<&launch_template::arguments, launch_strings>("arguments"),
    wire::row<&launch_template::environment, launch_strings>("environment"),
    wire::row<&launch_template::read_only_paths, launch_paths>("read_only_paths"));

inline constexpr auto adoption_fields =
    wire::table(wire::row<&runtime_adoption::manifest_root, wire::absolute_path>("manifest_root"),
                wire::row<&runtime_adoption::manifest_digest, wire::hex64>("manifest_digest"),
                wire::row<&runtime_adoption::snapshot_digest, wire::hex64>("snapshot_digest"));

inline constexpr auto template_fields = wire::table(
    wire::row<&runtime_template::runtime_template_id, wire::ident>("runtime_template_id"),
    wire::row<&runtime_template::runtime_id, wire::ident>("runtime_id"),
    wire::row<&runtime_template::adapter_command_digest, wire::hex64>("adapter_command_digest"),
    wire::row<&runtime_template::sandbox_backend, wire::choice<backend_words>{}>("sandbox_backend"),
    wire::row<&runtime_template::allowed_path_aliases, wire::list<alias_name>{0, 64}>(
        "allowed_path_aliases"),
    wire::row<&runtime_template::allowed_projection_destinations, idents_128>(
        "allowed_projection_destinations"),
    wire::row<&runtime_template::adoption, wire::record<adoption_fields>{}>("adoption"),
    wire::row<&runtime_template::launch, wire::record<launch_fields>{}>("launch"));

inline constexpr auto alias_access_fields = wire::table(
    wire::row<&alias_access::access, wire::choice<access_words>{}>("access"),
    wire::row<&alias_access::materialization, wire::choice<materialization_words>{}>(
        "materialization"),
    wire::row<&alias_access::create_policy, wire::choice<creation_words>{}>("create_policy"),
    wire::row<&alias_access::cleanup_policy, wire::choice<cleanup_words>{}>("cleanup_policy"),
    wire::row<&alias_access::max_bytes, wire::integer{}>("max_bytes"));

inline constexpr auto alias_fields = wire::table(
    wire::row<&path_alias::alias, alias_name>("alias"),
    wire::row<&path_alias::host_path, wire::absolute_path>("host_path"),
    wire::row<&path_alias::target_path, wire::absolute_path>("target_path"),
    wire::row<&path_alias::max_ttl_secs, positive>("max_ttl_secs"),
    wire::row<&path_alias::access, wire::list<wire::record<alias_access_fields>{}>{1, 4}>(
        "access"));

inline constexpr auto destination_fields = wire::table(
    wire::row<&projection_destination::alias, wire::ident>("alias"),
    wire::row<&projection_destination::target_path, wire::absolute_path>("target_path"));

inline constexpr auto profile_fields = wire::table(
    wire::row<&resource_profile::profile_id, wire::ident>("profile_id"),
    wire::row<&resource_profile::cpu_time_ms, positive>("cpu_time_ms"),
    wire::row<&resource_profile::memory_bytes, positive>("memory_bytes"),
    wire::row<&resource_profile::pids, wire::integer{1, UINT32_MAX}>("pids"),
    wire::row<&resource_profile::wall_time_ms, positive>("wall_time_ms"),
    wire::row<&resource_profile::disk_bytes, positive>("disk_bytes"),
    wire::row<&resource_profile::terminal_output_bytes, positive>("terminal_output_bytes"));

inline constexpr auto egress_target_fields =
    wire::table(wire::row<&egress_target::host, host_name>("host"),
                wire::defaulted_row<&egress_target::port, wire::integer{1, UINT16_MAX}>("port"),
                wire::defaulted_row<&egress_target::allow_private, wire::flag{}>("allow_private"));

inline constexpr auto egress_policy_fields = wire::table(
    wire::row<&egress_policy::policy_id, wire::ident>("policy_id"),
    wire::row<&egress_policy::targets, wire::list<wire::record<egress_target_fields>{}>{0, 128}>(
        "targets"));

inline constexpr auto secret_mount_fields =
    wire::table(wire::row<&secret_mount::handle, short_ident>("handle"),
                wire::row<&secret_mount::runtime_id, wire::ident>("runtime_id"),
                wire::row<&secret_mount::source_path, wire::absolute_path>("source_path"),
                wire::row<&secret_mount::target_path, wire::absolute_path>("target_path"));

inline constexpr auto session_rules_fields = wire::table(
    wire::row<&session_rules::schema_version, version_1>("schema_version"),
    wire::row<&session_rules::revision, positive>("revision"),
    wire::row<&session_rules::max_plan_ttl_ms, positive>("max_plan_ttl_ms"),
    wire::row<&session_rules::runtime_templates,
              wire::list<wire::record<template_fields>{}>{1, 64}>("runtime_templates"),
    wire::row<&session_rules::path_aliases, wire::list<wire::record<alias_fields>{}>{1, 64}>(
        "path_aliases"),
    wire::defaulted_row<&session_rules::library_projection_destinations,
                        wire::list<wire::record<destination_fields>{}>{0, 128}>(
        "library_projection_destinations"),
    wire::row<&session_rules::resource_profiles, wire::list<wire::record<profile_fields>{}>{1, 64}>(
        "resource_profiles"),
    wire::row<&session_rules::egress_policy_ids, some_idents_128>("egress_policy_ids"),
    wire::row<&session_rules::tool_policy_ids, some_idents_128>("tool_policy_ids"),
    wire::defaulted_row<&session_rules::secret_handles, idents_128>("secret_handles"),
    wire::defaulted_row<&session_rules::egress_policies,
                        wire::list<wire::record<egress_policy_fields>{}>{0, 128}>(
        "egress_policies"),
    wire::defaulted_row<&session_rules::secret_mounts,
                        wire::list<wire::record<secret_mount_fields>{}>{0, 128}>("secret_mounts"));

} // namespace glove::supervisor
