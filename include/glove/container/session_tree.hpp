// What a directory or a file that a session may change holds: names, modes and digests of contents,
// in the form of which a tree digest is made.
//
// Guarantees: only regular files and directories are in it. Everything else, another mount, a name
// that is no UTF-8 and what changed while it was read is refused by its relative path; no link is
// followed. The walk ends at the limits, at the deadline and when it is told to stop.
//
// Of a mode the lowest nine bits count: set-id bits and the sticky bit are neither copied nor seen.
// The top itself is no row of a directory's tree; of a single file the one row has the path ".".
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/fd.hpp>
#include <glove/sys/files.hpp>
#include <limits>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace glove::container {

struct tree_row {
    std::string path;           // relative; components are one or more bytes, UTF-8, without NUL
    std::string content_digest; // SHA-256 in lower-case hex; "" of a directory
    std::uint64_t bytes = 0;    // 0 of a directory
    std::uint32_t mode = 0;     // at most 0777
    bool directory = false;
    auto operator==(const tree_row&) const -> bool = default;
};

struct session_tree {
    bool directory = true;      // or a single file
    std::vector<tree_row> rows; // in the order of their paths' bytes, each path once
    std::uint64_t bytes = 0;    // of all files together
    std::string digest;         // SHA-256 in lower-case hex of the rows as a JSON array
    auto operator==(const session_tree&) const -> bool = default;
};

inline constexpr std::uint64_t most_tree_entries = 100'000;
inline constexpr std::uint32_t most_tree_depth = 64; // what lies in the top has depth 1
inline constexpr std::size_t most_tree_path = 4096;  // bytes of one path
inline constexpr std::uint64_t most_tree_path_bytes = 32ULL << 20U; // of all paths together

// No limit is above the ones here.
struct tree_limits {
    std::uint64_t bytes = 0; // of all files together, as their sizes say: holes count
    std::uint64_t entries = most_tree_entries;
    std::uint32_t depth = most_tree_depth;
};

// Until when, on the clock's monotonic time, and who may end it before.
struct tree_patience {
    const sys::clock& time;
    std::chrono::nanoseconds deadline;
    std::stop_token stop = {};
};

// The name of a single file in the directory that holds its copy.
inline constexpr std::string_view single_file_name = "file";

// Of what lies below the directory `top`. Hard links are looked at like other files, each name for
// itself: a session can make none that lead out of its own file system.
//
// Steps: tree.kind, tree.name, tree.mount, tree.changed, tree.entries, tree.depth, tree.path,
// tree.bytes, tree.read, tree.list, tree.deadline (errc::timed_out), tree.stopped
// (errc::wrong_state).
[[nodiscard]] auto read_tree(sys::fd_ref top, const tree_limits& limits,
                             const tree_patience& patience) -> result<session_tree>;
// Of the file that `copy_source` made of a single one. The directory may hold nothing else.
[[nodiscard]] auto read_single(sys::fd_ref holder, const tree_limits& limits,
                               const tree_patience& patience) -> result<session_tree>;

// The rows must be in order.
[[nodiscard]] auto tree_digest(std::span<const tree_row> rows) -> result<std::string>;

} // namespace glove::container
