// Measuring and deleting trees that somebody else made to be hard to measure and delete.
//
// Guarantees: no link is followed and no mount is entered; a bounded number of descriptors is open
// however deep the tree is, and no path is ever put together; what cannot be deleted is an error
// that names it.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <string>

namespace glove::host {

struct tree_size {
    std::uint64_t bytes = 0; // on the disk
    std::uint64_t entries = 0;
    bool counted_all = true;
};
// Looks at no more than `entry_limit` entries, and not at very deep ones.
[[nodiscard]] auto measure_tree(sys::fd_ref top, std::uint64_t entry_limit) -> result<tree_size>;

// Deletes the directory `name` of `holder` with all that is in it. `path` is for errors.
[[nodiscard]] auto remove_tree(sys::fd_ref holder, const std::string& name, const std::string& path)
    -> result<>;

} // namespace glove::host
