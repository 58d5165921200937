// Directories that somebody else made to be hard to list and to delete.
//
// Guarantees: no link is followed and no mount is entered; a bounded number of descriptors is open
// however deep a tree is, and no path is ever put together; what cannot be deleted is an error that
// names it.
#pragma once
#include <cstddef>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <string>
#include <vector>

namespace glove::sys {

// Names in a directory, without "." and "..", one by one, until `take` says no. Step: tree.list.
[[nodiscard]] auto each_name(fd_ref directory, const std::function<bool(const std::string&)>& take)
    -> result<>;
// In order; no more than so many.
[[nodiscard]] auto names_in(fd_ref directory, std::size_t most = 65536)
    -> result<std::vector<std::string>>;

// A directory whose owner is the caller; when its owner's rights were taken away, it gets them
// back. The descriptor says which one it is, whatever has its name now. Step: tree.rights.
[[nodiscard]] auto open_with_own_rights(fd_ref directory, const std::string& name)
    -> result<unique_fd>;

// Asked before every entry; its error ends the work.
using go_on = std::function<result<>()>;

// Deletes all that is in a directory. `path` is its name for errors. Step: tree.remove.
[[nodiscard]] auto empty_directory(fd_ref top, const std::string& path, const go_on& ask = {})
    -> result<>;

} // namespace glove::sys
