// The receipt of a session: what it was allowed, what it used, how it ended; and the envelope that
// chains it to the one before with a key that only the operator and the controller hold.
//
// Guarantees: decoding checks form, order, sums and which authority may claim what; an envelope is
// believed only after its digest and its HMAC were computed again and compared in constant time.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/supervisor/plan.hpp>
#include <glove/supervisor/vocabulary.hpp>
#include <glove/sys/secret_memory.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glove::control {

enum class termination_cause : std::uint8_t {
    exited,
    signaled,
    cpu_time_limit,
    memory_limit,
    pid_limit,
    wall_time_limit,
    disk_limit,
    terminal_output_limit,
    supervisor_error,
};
enum class mechanism : std::uint8_t {
    unavailable,
    rlimit,
    cgroup_v2,
    watchdog,
    filesystem_quota,
    byte_counter,
};
enum class observation_authority : std::uint8_t { local_enforcement, trusted_remote_claim };
[[nodiscard]] auto to_string(termination_cause of) noexcept -> std::string_view;
[[nodiscard]] auto to_string(mechanism of) noexcept -> std::string_view;
[[nodiscard]] auto to_string(observation_authority of) noexcept -> std::string_view;

struct enforcement_mechanisms {
    mechanism cpu_time{}, memory{}, pids{}, wall_time{}, disk{}, terminal_output{};
    std::uint8_t receipt_schema_version = 0;
    auto operator==(const enforcement_mechanisms&) const -> bool = default;
};
// The complete set of Linux.
[[nodiscard]] auto linux_mechanisms() noexcept -> enforcement_mechanisms;

struct observed_use {
    std::uint64_t cpu_time_ms = 0;
    std::uint64_t peak_memory_bytes = 0;
    std::uint32_t peak_pids = 0;
    std::uint64_t wall_time_ms = 0;
    std::uint64_t disk_bytes = 0;
    std::uint64_t terminal_output_bytes = 0;
    auto operator==(const observed_use&) const -> bool = default;
};
struct projection_receipt {
    std::string projection_id;
    std::string destination_alias;
    std::string target_path;
    std::string content_digest;
    auto operator==(const projection_receipt&) const -> bool = default;
};
struct retained_change_receipt {
    std::string exposure_id;
    std::uint64_t generation = 0;
    std::string scope_digest;
    std::string source_identity_digest;
    std::string baseline_tree_digest;
    std::string staged_tree_digest;
    std::string manifest_digest;
    std::uint64_t created = 0, modified = 0, renamed = 0, removed = 0;
    std::uint64_t before_bytes = 0, after_bytes = 0;
    auto operator==(const retained_change_receipt&) const -> bool = default;
};

struct resource_receipt {
    std::uint8_t schema_version = 1;
    std::string profile_digest;
    supervisor::backend_kind backend{};
    std::string backend_id;
    observation_authority authority{};
    bool independently_verified = false;
    supervisor::resource_limits configured_limits;
    enforcement_mechanisms mechanisms;
    observed_use observed;
    termination_cause cause{};
    std::optional<std::uint32_t> exit_code; // with `exited` only
    std::uint64_t started_at_ms = 0;
    std::uint64_t finished_at_ms = 0;
    std::vector<projection_receipt> library_projections;
    std::vector<retained_change_receipt> retained_changes;
    auto operator==(const resource_receipt&) const -> bool = default;
};
[[nodiscard]] auto encode(const resource_receipt& what) -> result<std::string>;
[[nodiscard]] auto decode_resource_receipt(std::string_view text) -> result<resource_receipt>;
[[nodiscard]] auto receipt_digest(const resource_receipt& of) -> result<std::string>;

// 32 bytes that never leave the process and are wiped when it is done with them. Moving leaves
// nothing behind, and what was moved from authenticates nothing. Steps: audit.key, file.*.
class audit_key {
public:
    // An owner-only file of 64 lower hexadecimal digits, 64 to 128 bytes with white space around.
    // Errors name the file and never quote it.
    [[nodiscard]] static auto load(const std::string& path) -> result<audit_key>;
    [[nodiscard]] static auto parse(std::string_view text) -> result<audit_key>;
    [[nodiscard]] auto id() const noexcept -> const std::string& { return id_; }
    // HMAC-SHA-256 as lower hexadecimal digits.
    [[nodiscard]] auto authenticate(std::string_view bytes) const -> result<std::string>;

private:
    audit_key(sys::secret_memory bytes, std::string id)
        : bytes_{std::move(bytes)}, id_{std::move(id)} {}
    sys::secret_memory bytes_;
    std::string id_;
};

// A place in the chain of receipts that somebody vouches for. Sequence 0: the beginning, 64 zeros.
struct receipt_anchor {
    std::string key_id;
    std::uint64_t sequence = 0;
    std::string head_hmac = std::string(64, '0');
    auto operator==(const receipt_anchor&) const -> bool = default;
};

template<class Receipt> struct envelope_of {
    std::uint8_t schema_version = 1;
    std::uint64_t sequence = 0;
    std::string key_id;
    std::string session_id;
    std::string controller_plan_digest;
    Receipt receipt;
    std::string receipt_digest;
    std::string previous_hmac;
    std::string this_hmac;
    auto operator==(const envelope_of&) const -> bool = default;
};
using resource_envelope = envelope_of<resource_receipt>;

} // namespace glove::control
