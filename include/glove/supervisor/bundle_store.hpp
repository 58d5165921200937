// The library that plans refer to by digest: objects beneath one root of the operator's, and the
// bundles of skills that they hold. Fixtures of evaluations are objects of the same store.
//
// Guarantees: the root is the caller's alone, pinned by descriptor, and its path still leads to it
// before and after each look. An object is opened beneath it without following a link; it is a
// regular file of the caller with mode 0600 and one link, did not change while it was read, and has
// the SHA-256 of its name. A document is decoded strictly; an entry's content has its digest.
// Errors never quote a content.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/supervisor/plan.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <glove/sys/files.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glove::supervisor {

inline constexpr std::size_t most_bundle_bytes = 16UL << 20U; // of an object, and of one launch
inline constexpr std::size_t most_bundle_entries = 4096;
inline constexpr std::size_t most_bundle_content = 1UL << 20U; // bytes of one entry

enum class bundle_kind : std::uint8_t { skill };

struct bundle_entry {
    std::string key;
    bundle_kind kind{};
    std::string content_digest; // SHA-256 of the content, lower-case hex
    std::string content;        // 1 byte to 1 MiB, UTF-8 without NUL
    auto operator==(const bundle_entry&) const -> bool = default;
};
struct bundle_document {
    std::uint8_t schema_version = 1;
    std::string source_library_ref;
    std::string source_manifest_digest;
    std::vector<bundle_entry> entries; // no key twice
    auto operator==(const bundle_document&) const -> bool = default;
};

// Steps: json.*, wire.*, bundle.key, bundle.content. A kind other than skill is wire.choice.
[[nodiscard]] auto decode_bundle(std::string_view text) -> result<bundle_document>;
// Refuses what `decode_bundle` would refuse.
[[nodiscard]] auto encode(const bundle_document& what) -> result<std::string>;

// An object of the store, open for reading.
struct pinned_object {
    std::string digest;
    sys::unique_fd file;
    sys::file_facts facts;
    std::string content;
};

class bundle_store {
public:
    // `path` is absolute and no component of it a link. Steps: bundle.root, file.*.
    [[nodiscard]] static auto open(const std::string& path) -> result<bundle_store>;

    // Steps: bundle.name, bundle.root, bundle.object (with the reason), bundle.digest
    // (errc::corrupt).
    [[nodiscard]] auto fetch(std::string_view digest, std::size_t limit = most_bundle_bytes) const
        -> result<pinned_object>;

private:
    bundle_store(std::string path, sys::unique_fd root, sys::file_identity identity)
        : path_{std::move(path)}, root_{std::move(root)}, identity_{identity} {}
    [[nodiscard]] auto check_root() const -> result<>;

    std::string path_;
    sys::unique_fd root_;
    sys::file_identity identity_;
};

// That an object still is what was fetched; to be asked immediately before it is mounted. Step:
// bundle.changed (errc::conflict).
[[nodiscard]] auto check_unchanged(const pinned_object& object) -> result<>;

// One projection of a plan as it is to be mounted: `object.file`, read-only, at `target_path`.
struct resolved_bundle {
    library_projection projection;
    std::string target_path; // the destination's, and DIGEST.json
    pinned_object object;
    bundle_document document;
};

// Of the projections that are mounted; an evaluation's fixture is not among them, and is fetched by
// itself. Together they have at most `most_bundle_bytes`. Steps: those above; bundle.destination,
// bundle.repeated (a projection), bundle.target (two with the same), bundle.total.
[[nodiscard]] auto resolve_bundles(const bundle_store& store, const session_rules& rules,
                                   std::span<const library_projection> projections)
    -> result<std::vector<resolved_bundle>>;

} // namespace glove::supervisor
