// What the operator allows of sessions: one owner-only file, read once and frozen for the life of
// the process.
//
// Guarantees: what was loaded obeys every rule of docs/session-policy.md; each path alias is pinned
// by descriptor, without following a link; a plan can only choose among what stands here. Errors
// name the file, the member and the rule, and never quote a value, because arguments and
// environments may hold secrets.
//
// A template that could never start is refused when it is loaded, not when a session is launched.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/supervisor/vocabulary.hpp>
#include <glove/sys/files.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::supervisor {

// How the runtime of a template is started. With `runtime_discovery` its program is looked for in
// `executable_search_paths`, else `executable_path` names it.
struct launch_template {
    std::string runtime_discovery;
    std::string executable_path;
    std::vector<std::string> executable_search_paths;
    std::vector<std::string> arguments;
    std::vector<std::string> environment; // NAME=VALUE
    std::vector<std::string> read_only_paths;
    auto operator==(const launch_template&) const -> bool = default;
};

// What a plan's `adapter_command_digest` must be.
[[nodiscard]] auto launch_template_digest(const launch_template& launch) -> result<std::string>;

// Whoever may put a program into a directory that is looked in may choose what runs. So each of
// them, and each directory above it, belongs to the system or to the caller, and nobody else writes
// there. Asked when a policy is frozen, and to be asked again when a program is looked for.
[[nodiscard]] auto check_search_paths(const launch_template& launch) -> result<>;

// What a runtime takes over from the host's own installation of it.
struct runtime_adoption {
    std::string manifest_root;
    std::string manifest_digest;
    std::string snapshot_digest;
    auto operator==(const runtime_adoption&) const -> bool = default;
};

struct runtime_template {
    std::string runtime_template_id;
    std::string runtime_id;
    std::string adapter_command_digest;
    backend_kind sandbox_backend{};
    std::vector<std::string> allowed_path_aliases;
    std::vector<std::string> allowed_projection_destinations;
    std::optional<runtime_adoption> adoption;
    std::optional<launch_template> launch; // without one, plans are good and nothing starts
    auto operator==(const runtime_template&) const -> bool = default;
};

struct alias_access {
    access_kind access{};
    materialization_kind materialization{};
    creation_kind create_policy{};
    cleanup_kind cleanup_policy{};
    std::uint64_t max_bytes = 0;
    auto operator==(const alias_access&) const -> bool = default;
};

struct path_alias {
    std::string alias;
    std::string host_path;
    std::string target_path;
    std::uint64_t max_ttl_secs = 0;
    std::vector<alias_access> access; // one for each kind

    [[nodiscard]] auto find(access_kind kind) const -> const alias_access*;
    auto operator==(const path_alias&) const -> bool = default;
};

struct projection_destination {
    std::string alias;
    std::string target_path;
    auto operator==(const projection_destination&) const -> bool = default;
};

struct resource_profile {
    std::string profile_id;
    std::uint64_t cpu_time_ms = 0;
    std::uint64_t memory_bytes = 0;
    std::uint32_t pids = 0;
    std::uint64_t wall_time_ms = 0;
    std::uint64_t disk_bytes = 0;
    std::uint64_t terminal_output_bytes = 0;

    [[nodiscard]] auto limits() const -> resource_limits {
        return {cpu_time_ms, memory_bytes, pids, wall_time_ms, disk_bytes, terminal_output_bytes};
    }
    auto operator==(const resource_profile&) const -> bool = default;
};

struct egress_target {
    std::string host;
    std::uint16_t port = 443;
    bool allow_private = false;
    auto operator==(const egress_target&) const -> bool = default;
};

struct egress_policy {
    std::string policy_id;
    std::vector<egress_target> targets;
    auto operator==(const egress_policy&) const -> bool = default;
};

struct secret_mount {
    std::string handle;
    std::string runtime_id;
    std::string source_path;
    std::string target_path;
    auto operator==(const secret_mount&) const -> bool = default;
};

struct session_rules {
    std::uint8_t schema_version = 1;
    std::uint64_t revision = 0;
    std::uint64_t max_plan_ttl_ms = 0;
    std::vector<runtime_template> runtime_templates;
    std::vector<path_alias> path_aliases;
    std::vector<projection_destination> library_projection_destinations;
    std::vector<resource_profile> resource_profiles;
    std::vector<std::string> egress_policy_ids;
    std::vector<std::string> tool_policy_ids;
    std::vector<std::string> secret_handles;
    std::vector<egress_policy> egress_policies;
    std::vector<secret_mount> secret_mounts;

    // Each is null when there is none.
    [[nodiscard]] auto find_template(std::string_view id) const -> const runtime_template*;
    [[nodiscard]] auto find_alias(std::string_view name) const -> const path_alias*;
    [[nodiscard]] auto find_destination(std::string_view name) const
        -> const projection_destination*;
    [[nodiscard]] auto find_profile(const resource_limits& limits) const -> const resource_profile*;
    [[nodiscard]] auto find_egress(std::string_view id) const -> const egress_policy*;
    auto operator==(const session_rules&) const -> bool = default;
};

// Egress that needs no `egress_policies` entry to start: there is none.
[[nodiscard]] constexpr auto means_no_network(std::string_view egress_policy_id) noexcept -> bool {
    return egress_policy_id == "no-network" || egress_policy_id == "deny-all";
}

// Every rule but those that look at the file system. Steps: json.*, wire.*, policy.*.
[[nodiscard]] auto parse_session_rules(std::string_view text) -> result<session_rules>;
// Refuses rules that `parse_session_rules` would refuse.
[[nodiscard]] auto session_rules_text(const session_rules& rules) -> result<std::string>;

class session_policy {
public:
    // `path` names a regular file of the caller with mode 0600 and one link, at most 1 MiB.
    [[nodiscard]] static auto load(const std::string& path) -> result<session_policy>;
    // The same from rules that were made otherwise: opens and judges what the aliases name.
    [[nodiscard]] static auto freeze(session_rules rules) -> result<session_policy>;

    [[nodiscard]] auto rules() const noexcept -> const session_rules& { return rules_; }

    struct source {
        sys::unique_fd pin;
        sys::file_facts facts;
    };
    // What an alias names now. errc::conflict when that is no longer what it named at the load;
    // errc::not_found when there is no such alias.
    [[nodiscard]] auto open_alias(std::string_view name) const -> result<source>;

private:
    session_policy(session_rules rules, std::vector<source> sources)
        : rules_{std::move(rules)}, sources_{std::move(sources)} {}
    session_rules rules_;
    std::vector<source> sources_; // of each alias
};

} // namespace glove::supervisor
