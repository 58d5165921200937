// What leads git from one of its directories to another, and its directories inside of others,
// looked up by descriptor.
#pragma once
#include <functional>
#include <glove/base/error.hpp>
#include <glove/sys/files.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::container {

// The path that a ".git" file or "commondir" holds after `prefix`, as it stands there; empty when
// there is no such file or it holds something else. Nothing but a regular file is read, and no more
// than a path can be.
[[nodiscard]] auto read_pointer(sys::fd_ref root, const std::string& path, std::string_view prefix)
    -> result<std::string>;

inline constexpr std::size_t most_inner_names = 8192;

// Paths beneath `root` of the directories below "worktrees" and "modules" of the directory `git`
// that git may take for a repository; not those inside of them. Any of a repository's own entries
// makes one, since the others can be added. `names_left` bounds the names that are looked at, and
// `failed` is told of what could not be looked at.
[[nodiscard]] auto
inner_repositories(sys::fd_ref root, const std::string& git, std::size_t& names_left,
                   const std::function<void(const error&, const std::string&)>& failed)
    -> std::vector<std::string>;

} // namespace glove::container
