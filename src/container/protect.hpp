// Which places inside writable grants stay as they are, and which must not appear.
//
// Never runs git; reads only what leads from one directory of a repository to another (a ".git"
// file, "commondir"), by descriptor and within a bound.
#pragma once
#include "container/grants.hpp"
#include "container/tree.hpp"
#include <glove/container/tree_walk.hpp>

namespace glove::container {

// Adds what is there to the tree, with every directory on the way to it, so that none of them can
// be renamed away; the masks must be in it already. `released` are the words of --unprotect.
[[nodiscard]] auto add_protected(tree_builder& tree, const std::vector<located_grant>& grants,
                                 const tree_walk& seen, const std::vector<std::string>& released,
                                 plan& out) -> result<>;

} // namespace glove::container
