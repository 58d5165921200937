// What a run protects and what was absent, in a form that outlives it, and the look for what became
// of it.
//
// Guarantees: a manifest is bounded and decoded strictly; the look opens each grant by the name
// that the operator gave and everything below it by descriptor, without following a link.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/plan.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::container {

// One path of a grant, relative to it. Without an inode nothing was there.
struct watched_path {
    std::string path;
    std::uint64_t device = 0, inode = 0;
};

struct watched_grant {
    std::string path;
    std::uint64_t device = 0, inode = 0;
    std::vector<watched_path> present;
    std::vector<std::string> absent;               // relative
    std::vector<std::string> repositories;         // directories, relative
    std::vector<std::string> git_directories = {}; // git's own, relative
};

struct run_manifest {
    std::string run;
    bool complete = true; // what is found later and not named here is new
    std::vector<watched_grant> grants;
};

inline constexpr std::size_t most_manifest_bytes = 4UL << 20U;

// Empty `grants`: nothing is to be watched.
[[nodiscard]] auto manifest_of(const plan& source, std::string run) -> run_manifest;
[[nodiscard]] auto manifest_text(const run_manifest& from) -> result<std::string>;
[[nodiscard]] auto read_manifest(std::string_view text) -> result<run_manifest>;

enum class finding_kind : std::uint8_t {
    made,           // was absent
    hook,           // in a repository that is new
    replaced,       // the name leads to another file than at the start, or to none
    new_repository, // with its own settings
    unsearched,     // not looked at in full: another directory now, too large, or not readable
};
[[nodiscard]] auto to_string(finding_kind kind) noexcept -> std::string_view;
// Whether `glove quarantine` moves it.
[[nodiscard]] constexpr auto is_movable(finding_kind kind) noexcept -> bool {
    return kind == finding_kind::made || kind == finding_kind::hook;
}

struct finding {
    finding_kind kind;
    std::size_t grant = 0; // of the manifest
    std::string path;      // relative to the grant
};

inline constexpr std::size_t most_findings = 1024; // hooks, and new repositories

// What the manifest names comes first and is looked at in full. Where hooks or repositories are
// more than `most_findings`, the grant is told as unsearched.
[[nodiscard]] auto find_changes(const run_manifest& from) -> std::vector<finding>;
// Whether there may be more hooks than are told.
[[nodiscard]] auto is_cut_short(const std::vector<finding>& changes) noexcept -> bool;
[[nodiscard]] auto full_path(const run_manifest& from, const finding& what) -> std::string;

} // namespace glove::container
