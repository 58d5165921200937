// The field tables of config.json, in the order of the file. The tests break each row of them.
#pragma once
#include <array>
#include <glove/control/service_config.hpp>
#include <glove/wire/fields.hpp>

namespace glove::control {

inline constexpr std::size_t most_endpoints = 16;
inline constexpr wire::text short_text{wire::grammar::printable, 1, 256};

inline constexpr std::array projection_schema_words{
    wire::word<std::string_view>{"sage_bundle_v1", "sage_bundle_v1"}};
inline constexpr std::array transport_words{
    wire::word<std::string_view>{"inherited-stream-v1", "inherited-stream-v1"}};

inline constexpr auto sage_guest_fields = wire::table(
    wire::row<&sage_guest_config::binary_digest, wire::sha256_hex64>("binary_digest"),
    wire::row<&sage_guest_config::source_revision, wire::text{wire::grammar::skill_key, 40, 40}>(
        "source_revision"),
    wire::row<&sage_guest_config::policy_schema_version, wire::integer{1, 1}>(
        "policy_schema_version"),
    wire::row<&sage_guest_config::library_projection_schema,
              wire::choice<projection_schema_words>{}>("library_projection_schema"));

inline constexpr auto apple_fields = wire::table(
    wire::row<&apple_container_config::cli, wire::absolute_path>("cli"),
    wire::row<&apple_container_config::image, short_text>("image"),
    wire::row<&apple_container_config::image_digest, wire::sha256_hex64>("image_digest"),
    wire::row<&apple_container_config::harness_closure_digest, wire::sha256_hex64>(
        "harness_closure_digest"),
    wire::row<&apple_container_config::sage_guest, wire::record<sage_guest_fields>{}>(
        "sage_guest"));

inline constexpr auto remote_fields = wire::table(
    wire::row<&remote_backend_config::host, wire::text{wire::grammar::ident, 1, 253}>("host"),
    wire::row<&remote_backend_config::user, wire::text{wire::grammar::skill_key, 1, 32}>("user"),
    wire::row<&remote_backend_config::port, wire::integer{1, UINT16_MAX}>("port"),
    wire::row<&remote_backend_config::host_public_key, short_text>("host_public_key"),
    wire::row<&remote_backend_config::host_key_fingerprint, short_text>("host_key_fingerprint"),
    wire::row<&remote_backend_config::identity_file, wire::absolute_path>("identity_file"),
    wire::row<&remote_backend_config::executor_digest, wire::sha256_hex64>("executor_digest"),
    wire::row<&remote_backend_config::container_image, short_text>("container_image"),
    wire::row<&remote_backend_config::container_image_digest, wire::sha256_hex64>(
        "container_image_digest"),
    wire::row<&remote_backend_config::channel_timeout_ms, wire::integer{100, 60'000}>(
        "channel_timeout_ms"),
    wire::row<&remote_backend_config::max_clock_skew_ms, wire::integer{0, 5'000}>(
        "max_clock_skew_ms"),
    wire::row<&remote_backend_config::max_sessions, wire::integer{1, 64}>("max_sessions"),
    wire::row<&remote_backend_config::staging_root, wire::absolute_path>("staging_root"));

inline constexpr auto guest_channel_fields = wire::table(
    wire::row<&guest_channel_config::adapter_id, wire::ident>("adapter_id"),
    wire::row<&guest_channel_config::channel_schema_id, wire::ident>("channel_schema_id"),
    wire::row<&guest_channel_config::transport_id, wire::choice<transport_words>{}>(
        "transport_id"));

inline constexpr auto endpoint_fields = wire::table(
    wire::row<&service_endpoint::alias, wire::svc_alias>("alias"),
    wire::row<&service_endpoint::socket_path, wire::absolute_path>("socket_path"),
    wire::row<&service_endpoint::runtime_ids, wire::list<wire::svc_runtime>{1, 64}>("runtime_ids"));

inline constexpr auto local_service_fields = wire::table(
    wire::defaulted_row<&local_service_config::io_timeout_ms, wire::integer{1, 60'000}>(
        "io_timeout_ms"),
    wire::defaulted_row<&local_service_config::max_concurrency, wire::integer{1, 16}>(
        "max_concurrency"),
    wire::row<&local_service_config::guest_channel_adapter, wire::record<guest_channel_fields>{}>(
        "guest_channel_adapter"),
    wire::row<&local_service_config::endpoints,
              wire::list<wire::record<endpoint_fields>{}>{1, most_endpoints}>("endpoints"));

inline constexpr auto config_fields = wire::table(
    wire::row<&service_config::schema_version, wire::integer{1, 1}>("schema_version"),
    wire::row<&service_config::persistent_service, wire::flag{}>("persistent_service"),
    wire::row<&service_config::runtime_directory, wire::absolute_path>("runtime_directory"),
    wire::row<&service_config::audit_key, wire::absolute_path>("audit_key"),
    wire::row<&service_config::receipt_journal, wire::absolute_path>("receipt_journal"),
    wire::row<&service_config::session_policy, wire::absolute_path>("session_policy"),
    wire::row<&service_config::session_store, wire::absolute_path>("session_store"),
    wire::row<&service_config::materialization_root, wire::absolute_path>("materialization_root"),
    wire::row<&service_config::library_bundle_root, wire::absolute_path>("library_bundle_root"),
    wire::row<&service_config::path_exposure_policy, wire::absolute_path>("path_exposure_policy"),
    wire::row<&service_config::path_exposure_journal, wire::absolute_path>("path_exposure_journal"),
    wire::row<&service_config::apple_container, wire::record<apple_fields>{}>("apple_container"),
    wire::row<&service_config::remote_backend, wire::record<remote_fields>{}>("remote_backend"),
    wire::row<&service_config::local_service_proxy, wire::record<local_service_fields>{}>(
        "local_service_proxy"),
    wire::row<&service_config::exchange_timeout_ms, wire::integer{1, 60'000}>(
        "exchange_timeout_ms"));

} // namespace glove::control
