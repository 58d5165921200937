// What became of a copy: the changes between the tree that was handed over and the tree that a
// session left, and the manifest by whose digest a receipt speaks of them.
//
// Guarantees: the same two trees give the same changes in the same order, and so the same digest. A
// page is a piece of that list. Nothing here opens a file.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/session_tree.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::container {

enum class change_kind : std::uint8_t { create, modify, rename, remove };
[[nodiscard]] auto to_string(change_kind kind) noexcept -> std::string_view;

// What is before is of what was handed over, what is after of what was left. Where there is no
// such thing, its members are empty.
struct tree_change {
    change_kind kind{};
    std::string path;          // of a removed thing: where it was
    std::string previous_path; // of a renamed thing
    std::string before_digest, after_digest;
    std::uint64_t before_bytes = 0, after_bytes = 0;
    std::uint32_t before_mode = 0, after_mode = 0; // at most 0777
    bool directory = false;
    auto operator==(const tree_change&) const -> bool = default;
};

// Whose changes they are; each text as it stands on the wire.
struct change_subject {
    std::string session_id;
    std::string exposure_id;
    std::uint64_t generation = 0;
    std::string scope_digest;
    std::string source_identity_digest;
    std::uint64_t max_bytes = 0;
    auto operator==(const change_subject&) const -> bool = default;
};

inline constexpr std::uint64_t most_tree_changes = 100'000; // of all kinds together
inline constexpr std::size_t most_change_manifest_bytes = 16UL << 20U;
// Of one page's changes, so that its answer fits into a frame. One change always does.
inline constexpr std::size_t most_change_page_bytes = 512UL << 10U;

struct change_set {
    change_subject subject;
    bool directory = true;
    std::string baseline_tree_digest, staged_tree_digest, manifest_digest;
    // In the order of their paths' bytes; of one path, what was removed comes first.
    std::vector<tree_change> changes;
    std::uint64_t created = 0, modified = 0, renamed = 0, removed = 0;
    std::uint64_t before_bytes = 0, after_bytes = 0; // of all changes together
    auto operator==(const change_set&) const -> bool = default;
};

// A file and a directory of the same path are one removed and one created thing. Of what was
// removed and what was created, those with the same digest, mode and kind are renamed, in the order
// of their paths.
//
// Steps: changes.kind (a file against a directory's tree), changes.count, changes.manifest.
[[nodiscard]] auto changes_between(const change_subject& subject, const session_tree& baseline,
                                   const session_tree& staged) -> result<change_set>;

// The text whose digest `manifest_digest` is.
[[nodiscard]] auto change_manifest(const change_set& of) -> result<std::string>;

// The answer to a controller that asks from `offset` for at most `limit` changes. It may hold
// fewer; "next_offset" is there when more follow. An offset beyond the last change is
// changes.offset.
[[nodiscard]] auto change_page(const change_set& of, std::uint64_t offset, std::size_t limit)
    -> result<std::string>;

} // namespace glove::container
