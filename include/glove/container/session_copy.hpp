// A copy of what an operator handed over, for one session to change.
//
// Guarantees: what is copied is what `session_tree.hpp` describes, within its limits. A file that
// has a name outside of the source is refused. The copy is whole or it is begun anew: a record that
// the session never sees says which, and is on the disk before the step that it speaks of. Nothing
// is ever deleted that no record says was begun.
#pragma once
#include <functional>
#include <glove/container/session_tree.hpp>
#include <optional>

namespace glove::container {

enum class copy_state : std::uint8_t { begun, whole };

// On the disk as a file of mode 0600, JSON.
struct copy_record {
    std::uint8_t schema_version = 1;
    copy_state state{};
    std::string source_identity_digest; // 64 lower-case hexadecimal digits, the caller's
    std::uint64_t max_bytes = 0;        // the grant's
    session_tree tree;                  // without rows and digest while the copy is begun
    auto operator==(const copy_record&) const -> bool = default;
};

inline constexpr std::size_t most_copy_record_bytes = 64UL << 20U;

enum class lasts : bool { until_reboot, for_good };

struct copy_request {
    sys::fd_ref source;  // pinned: a directory or a regular file
    sys::fd_ref into;    // a directory that is empty, or was once begun by this request
    sys::fd_ref records; // another directory, the caller's alone
    std::string record;  // a name in it
    std::string source_identity_digest;
    tree_limits limits; // bytes: the grant's max_bytes
    lasts how_long = lasts::for_good;
    // What else it takes until a copy that lasts for good is on the disk. Called when everything
    // was copied and synced, before anything says that the copy is whole.
    std::function<result<>()> settle = {};
    // Asked before each durable step by its name: begin, empty, copy, sync, whole. Its error ends
    // the copy there.
    std::function<result<>(std::string_view)> before_step = {};
};

// The tree that the copy has in common with the source: the baseline of all changes. A single file
// becomes `single_file_name` in the directory. A copy that is whole already is not looked at: by
// now it may be the session's.
//
// Steps: those of a tree; copy.not_empty, copy.other (a record of another source or other limits),
// copy.record, copy.make, copy.write, copy.mode, copy.sync, copy.empty.
[[nodiscard]] auto copy_source(const copy_request& what, const tree_patience& patience)
    -> result<session_tree>;

// None when there is no such record. Step: copy.record (errc::corrupt).
[[nodiscard]] auto find_copy_record(sys::fd_ref records, const std::string& name)
    -> result<std::optional<copy_record>>;

} // namespace glove::container
