// Whether others could have put something in the place of a file.
//
// Guarantees: what is called trusted belongs to root or to the caller, as does every directory on
// the way to it, and nobody else may write there. The file itself is pinned, so what was judged is
// what is used.
#pragma once
#include <glove/base/error.hpp>
#include <glove/container/plan.hpp>
#include <glove/sys/files.hpp>
#include <string>

namespace glove::host {

// Whether a group that has the caller's own number may write: such a group has no other member on
// systems that give each user one. With an access control list it never counts as such.
enum class own_group : bool { refused, allowed };

struct trusted_file {
    std::string real;                                       // without links
    std::vector<std::pair<std::string, std::string>> links; // on the way
    sys::file_facts facts;
    sys::unique_fd pin;
};

// Follows links, and judges the directories that hold them, too. What is not there is
// errc::not_found. `step` names the error.
[[nodiscard]] auto find_trusted(const std::string& path, own_group group, step_name step)
    -> result<trusted_file>;

// The content of a pinned regular file.
[[nodiscard]] auto read_pinned(const trusted_file& file, std::size_t limit) -> result<std::string>;

// The first bytes of a pinned file; nothing when it cannot be read.
[[nodiscard]] auto read_head(const trusted_file& file, std::size_t bytes) -> std::string;

} // namespace glove::host
