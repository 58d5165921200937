// A path of the host that the operator lets sessions use for a while: what is asked for, what is
// put on record, and the digests that bind a plan to exactly one generation of it.
//
// Guarantees: only `catalog_entry` may leave the host; it holds no path, no root and no identity of
// a file. What is decoded obeys its field table and has its lists sorted without repetition.
#pragma once
#include <compare>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/supervisor/vocabulary.hpp>
#include <glove/sys/files.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace glove::supervisor {

struct exposure_mode {
    access_kind access{};
    materialization_kind materialization{};
    std::uint64_t max_bytes = 0;
    cleanup_kind cleanup_policy{};
    auto operator<=>(const exposure_mode&) const = default; // the order in digests
};

// The least quota of a retained copy: a file system of its own has to fit.
inline constexpr std::uint64_t least_retained_bytes = 32ULL << 20U;

// Empty, or why there is no such mode.
[[nodiscard]] auto fault_of(const exposure_mode& mode) noexcept -> std::string_view;
// Whether `wanted` is no more than `allowed`.
[[nodiscard]] auto within(const exposure_mode& wanted, const exposure_mode& allowed) noexcept
    -> bool;

// Contents and times are no part of it: an exposed directory may change inside. Another owner or
// another mode makes it another source.
struct source_identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint32_t mode = 0; // with the type
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    auto operator==(const source_identity&) const -> bool = default;
};
[[nodiscard]] auto identity_of(const sys::file_facts& facts) noexcept -> source_identity;
// The same with the numbers that the owner and the group have outside of this user namespace: a
// service that is moved into one, or out of it, knows its sources still.
[[nodiscard]] auto lasting_identity_of(const sys::file_facts& facts) -> source_identity;
[[nodiscard]] auto source_identity_digest(const source_identity& of) -> result<std::string>;

// `request_id` is the caller's idempotency key. Once it was used it means this request for good.
struct create_exposure {
    std::string exposure_id;
    std::string root_id;
    std::string host_path;
    std::string display_label;
    std::vector<exposure_mode> allowed_modes;
    std::uint64_t ttl_secs = 0;
    std::vector<std::string> allowed_runtime_template_ids;
    auto operator==(const create_exposure&) const -> bool = default;
};
struct revoke_exposure {
    std::string exposure_id;
    std::uint64_t generation = 0;
    auto operator==(const revoke_exposure&) const -> bool = default;
};

// Of JSON payloads. Lists may come in any order, and none of their elements twice.
[[nodiscard]] auto decode_create(std::string_view text) -> result<create_exposure>;
[[nodiscard]] auto decode_revoke(std::string_view text) -> result<revoke_exposure>;
[[nodiscard]] auto encode(const create_exposure& what) -> result<std::string>;
[[nodiscard]] auto encode(const revoke_exposure& what) -> result<std::string>;
// Checked and sorted, whoever made it.
[[nodiscard]] auto normalised(create_exposure what) -> result<create_exposure>;

[[nodiscard]] auto request_digest(std::string_view request_id, const create_exposure& what)
    -> result<std::string>;
[[nodiscard]] auto request_digest(std::string_view request_id, const revoke_exposure& what)
    -> result<std::string>;

enum class exposure_state : std::uint8_t { active, revoked, expired };
[[nodiscard]] auto to_string(exposure_state of) noexcept -> std::string_view;

// One generation, as it was made. Its state is told by later records and the clock.
struct exposure_descriptor {
    std::string exposure_id;
    std::uint64_t generation = 0;
    std::string root_id;
    std::string source_identity_digest;
    std::string scope_digest;
    std::string display_label;
    std::vector<exposure_mode> allowed_modes;
    std::uint64_t expires_at_ms = 0; // wall clock
    std::vector<std::string> allowed_runtime_template_ids;
    auto operator==(const exposure_descriptor&) const -> bool = default;
};
// Everything a plan relies on; label and scope digest themselves are no part of it.
[[nodiscard]] auto scope_digest(const exposure_descriptor& of) -> result<std::string>;

struct catalog_entry {
    std::uint8_t schema_version = 1;
    std::string exposure_id;
    std::uint64_t generation = 0;
    std::string scope_digest;
    std::string display_label;
    std::vector<exposure_mode> allowed_modes;
    std::uint64_t expires_at_ms = 0;
    std::vector<std::string> allowed_runtime_template_ids;
    exposure_state state{};
    auto operator==(const catalog_entry&) const -> bool = default;
};
[[nodiscard]] auto encode(const catalog_entry& what) -> result<std::string>;
[[nodiscard]] auto decode_catalog_entry(std::string_view text) -> result<catalog_entry>;

// What is put on record.
struct exposure_created {
    exposure_descriptor descriptor;
    std::string request_id;
    std::string request_digest;
    std::string host_path;
    std::string parent_identity_digest;
    auto operator==(const exposure_created&) const -> bool = default;
};
struct exposure_revoked {
    std::string request_id;
    std::string request_digest;
    std::string exposure_id;
    std::uint64_t generation = 0;
    std::uint64_t revoked_at_ms = 0;
    auto operator==(const exposure_revoked&) const -> bool = default;
};
struct exposure_record {
    std::uint64_t sequence = 0; // from 1
    std::variant<exposure_created, exposure_revoked> fact;
    std::string previous_hash; // of the first: 64 zeros
    std::string record_hash;
    auto operator==(const exposure_record&) const -> bool = default;
};

inline constexpr std::size_t most_exposure_record_bytes = 64UL * 1024;

[[nodiscard]] auto record_hash(const exposure_record& of) -> result<std::string>;
// The payload of a journal's frame. Decoding checks the form and the hash, and nothing of a policy:
// what was allowed once stays a fact.
[[nodiscard]] auto encode(const exposure_record& what) -> result<std::string>;
[[nodiscard]] auto decode_exposure_record(std::string_view text) -> result<exposure_record>;

} // namespace glove::supervisor
