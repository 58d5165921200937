// A bounded look at the names below some directories: FIFOs, sockets and repositories of git.
//
// Guarantees: breadth first; every directory is opened beneath its root without following a link;
// no file is looked at beyond its name and type in the directory; what was not seen is said.
#pragma once
#include <glove/container/plan.hpp>

namespace glove::container {

struct tree_walk {
    std::vector<rendezvous> found;
    // Directories that hold something named ".git".
    std::vector<std::string> with_git;
    // Directories that git takes for a repository by what they hold, whatever their name.
    std::vector<std::string> bare;
    // Directories, outside of repositories, that may not be listed or passed through.
    std::vector<std::string> closed;
    bool complete = true;              // every directory was listed
    bool repositories_complete = true; // every directory was but the insides of repositories
    bool within_limit = true;          // no entry was left out for the limit's sake
    int failed_os = 0;                 // as in `rendezvous_search`
    std::string failed_path = {};
};

// Directory entries that one launch looks at in its writable grants.
inline constexpr std::size_t writable_walk_limit = 8192;

// At most `entry_limit` entries. The insides of repositories, where no other lies, come last.
[[nodiscard]] auto walk_trees(const std::vector<std::string>& roots, std::size_t entry_limit)
    -> tree_walk;

// Whether some file system takes the name for ".git": letters of either case, and characters that
// are left out when names are compared. The file system itself has the last word.
[[nodiscard]] auto may_mean_git(std::string_view name) noexcept -> bool;

} // namespace glove::container
