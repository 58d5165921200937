// What is put on record of a session: one record for each step of its life, each complete in
// itself; its digest; and the part of it that a controller is shown.
//
// Guarantees: decoding checks the form, what each state must and must not hold, and the digest.
// Nothing here judges whether one record may follow another: lifecycle.hpp and the registry do.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

enum class session_state : std::uint8_t {
    created,
    preparing,
    starting,
    running,
    stopping,
    exited,
    failed,
};
[[nodiscard]] auto to_string(session_state of) noexcept -> std::string_view;
[[nodiscard]] constexpr auto is_terminal(session_state of) noexcept -> bool {
    return of == session_state::exited || of == session_state::failed;
}

// Which process, whatever happens to its number: all members together.
struct process_identity {
    std::uint8_t schema_version = 1;
    std::uint32_t pid = 0;
    std::string boot_id = {}; // 36 characters, lower case
    std::uint64_t start_time_ticks = 0;
    std::uint64_t cgroup_device = 0;
    std::uint64_t cgroup_inode = 0;
    std::string cgroup_path_digest = {};
    auto operator==(const process_identity&) const -> bool = default;
};
struct cgroup_identity {
    std::uint8_t schema_version = 1;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    auto operator==(const cgroup_identity&) const -> bool = default;
};
struct filesystem_partition {
    std::string alias;
    std::uint64_t quota_bytes = 0;
    auto operator==(const filesystem_partition&) const -> bool = default;
};
struct filesystem_identity {
    std::uint8_t schema_version = 1;
    std::uint64_t disk_limit_bytes = 0;
    std::vector<filesystem_partition> partitions; // at most 128, by alias; below the limit together
    auto operator==(const filesystem_identity&) const -> bool = default;
};
struct managed_runtime_identity {
    std::uint8_t schema_version = 1;
    std::string backend; // apple_container
    std::string instance_id;
    std::string launch_identity_digest;
    auto operator==(const managed_runtime_identity&) const -> bool = default;
};

enum class intent_disposition : std::uint8_t { pending, accepted, rejected, expired };
[[nodiscard]] auto to_string(intent_disposition of) noexcept -> std::string_view;

// A guest's intent, as it stands in the record that admitted or decided it.
struct observation_intent {
    std::uint8_t schema_version = 1;
    std::string schema;
    std::string intent_id;
    std::string observation;
    std::string value_digest;
    std::uint64_t item_count = 0;
    std::string intent_digest;
    std::string profile_digest;
    std::string runtime_id;
    std::string projection_digest;
    std::string channel_id;
    std::uint64_t channel_generation = 0;
    std::uint64_t issued_at_ms = 0;
    std::uint64_t expires_at_ms = 0;
    intent_disposition disposition{};
    std::uint64_t decided_at_ms = 0; // 0 while pending
    auto operator==(const observation_intent&) const -> bool = default;
};

// Members in the order of the wire. Times are wall clock, milliseconds since 1970; 0 and empty mean
// that it has not come to that.
struct session_record {
    std::uint8_t schema_version = 1;
    std::uint64_t sequence = 0;
    std::string operation;
    std::string idempotency_key;
    std::string session_id;
    std::string controller_plan_digest;
    std::string request_digest;
    std::string plan_content_digest;
    session_state state{};
    std::uint64_t policy_revision = 0;
    std::uint64_t expires_at_ms = 0;
    std::uint64_t created_at_ms = 0;
    std::string authorization_id;
    std::uint64_t authorized_at_ms = 0;
    std::uint64_t authorization_expires_at_ms = 0;
    std::string launch_profile_digest;
    std::uint64_t starting_at_ms = 0;
    std::uint64_t running_at_ms = 0;
    std::uint64_t stopping_at_ms = 0;
    process_identity process{.schema_version = 0}; // pid 0: none
    std::optional<cgroup_identity> cgroup;
    std::optional<filesystem_identity> filesystem;
    std::optional<managed_runtime_identity> managed_runtime;
    std::string failure_code;
    std::uint64_t finished_at_ms = 0;
    std::uint64_t receipt_started_at_ms = 0;
    std::string receipt_key_id;
    std::uint64_t receipt_sequence = 0;
    std::string receipt_digest;
    std::string receipt_previous_hmac;
    std::string receipt_hmac;
    std::string termination_cause;
    std::optional<std::uint32_t> exit_code;
    std::string canonical_plan_json;
    std::string previous_hash;
    std::string this_hash;
    std::optional<observation_intent> intent;
    auto operator==(const session_record&) const -> bool = default;
};

inline constexpr std::size_t most_session_record_bytes = 1UL << 20;

[[nodiscard]] auto record_hash(const session_record& of) -> result<std::string>;
[[nodiscard]] auto encode(const session_record& what) -> result<std::string>;
[[nodiscard]] auto decode_session_record(std::string_view text) -> result<session_record>;

// What a controller is shown.
struct session_view {
    std::uint8_t schema_version = 1;
    std::string session_id;
    std::string controller_plan_digest;
    std::string plan_content_digest;
    session_state state{};
    std::uint64_t policy_revision = 0;
    std::uint64_t expires_at_ms = 0;
    std::uint64_t created_at_ms = 0;
    std::optional<std::string> profile_digest; // from `starting` on
    auto operator==(const session_view&) const -> bool = default;
};
[[nodiscard]] auto view_of(const session_record& record) -> session_view;
[[nodiscard]] auto encode(const session_view& what) -> result<std::string>;
[[nodiscard]] auto decode_session_view(std::string_view text) -> result<session_view>;

} // namespace glove::control
