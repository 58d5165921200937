// What the operator decided about the service: config.json, owner-only, read once.
//
// Guarantees: what was read obeys every rule of docs/gloved.md on its own and together with the
// rest; no two members name one file; errors name the member and the rule and never quote the file.
// Members for what this build does not have are read as strictly as all others, and then refused by
// name: nothing is taken silently.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

struct sage_guest_config {
    std::string binary_digest;
    std::string source_revision;
    std::uint8_t policy_schema_version = 1;
    std::string library_projection_schema;
    auto operator==(const sage_guest_config&) const -> bool = default;
};
struct apple_container_config {
    std::string cli;
    std::string image;
    std::string image_digest;
    std::optional<std::string> harness_closure_digest;
    std::optional<sage_guest_config> sage_guest;
    auto operator==(const apple_container_config&) const -> bool = default;
};
struct remote_backend_config {
    std::string host;
    std::string user;
    std::uint16_t port = 0;
    std::string host_public_key;
    std::string host_key_fingerprint;
    std::string identity_file;
    std::string executor_digest;
    std::string container_image;
    std::string container_image_digest;
    std::uint64_t channel_timeout_ms = 0;
    std::uint64_t max_clock_skew_ms = 0;
    std::uint64_t max_sessions = 0;
    std::string staging_root;
    auto operator==(const remote_backend_config&) const -> bool = default;
};
struct guest_channel_config {
    std::string adapter_id;
    std::string channel_schema_id;
    std::optional<std::string> transport_id;
    auto operator==(const guest_channel_config&) const -> bool = default;
};
struct service_endpoint {
    std::string alias;
    std::string socket_path;
    std::vector<std::string> runtime_ids;
    auto operator==(const service_endpoint&) const -> bool = default;
};
struct local_service_config {
    std::uint64_t io_timeout_ms = 5'000;
    std::uint64_t max_concurrency = 4;
    std::optional<guest_channel_config> guest_channel_adapter;
    std::vector<service_endpoint> endpoints;
    auto operator==(const local_service_config&) const -> bool = default;
};

struct service_config {
    std::uint8_t schema_version = 1;
    bool persistent_service = false;
    std::string runtime_directory;
    std::string audit_key;
    std::string receipt_journal;
    std::optional<std::string> session_policy;
    std::optional<std::string> session_store;
    std::optional<std::string> materialization_root;
    std::optional<std::string> library_bundle_root;
    std::optional<std::string> path_exposure_policy;
    std::optional<std::string> path_exposure_journal;
    std::optional<apple_container_config> apple_container;
    std::optional<remote_backend_config> remote_backend;
    std::optional<local_service_config> local_service_proxy;
    std::optional<std::uint64_t> exchange_timeout_ms; // of this service only
    auto operator==(const service_config&) const -> bool = default;
};

inline constexpr std::size_t most_config_bytes = 1UL << 20;

// Every rule but those that look at the file system. Steps: json.*, wire.*, config.*.
[[nodiscard]] auto parse_service_config(std::string_view text) -> result<service_config>;
// Canonical, with a line's end. Refuses what `parse_service_config` would refuse.
[[nodiscard]] auto service_config_text(const service_config& config) -> result<std::string>;
// The same rules for a configuration that was made otherwise.
[[nodiscard]] auto check_config(const service_config& config) -> result<>;
// From a file of the caller alone; errors name it.
[[nodiscard]] auto load_service_config(const std::string& path) -> result<service_config>;

// What this build does not have: config.unsupported.
[[nodiscard]] auto check_supported(const service_config& config) -> result<>;

// Files that the service writes beside the receipt journal without being told to.
[[nodiscard]] auto derived_files(const service_config& config) -> std::vector<std::string>;

} // namespace glove::control
