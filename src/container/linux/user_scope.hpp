// A scope of the user's service manager, in which a run has a group of its own.
//
// Guarantees: the manager is the one of this user, found by its number and not by a variable; no
// shell and no search path are involved, and the time is bounded. The scope stays until `keeper` is
// dropped, so that what was used can be read after the last process of the run has ended.
#pragma once
#include <glove/base/error.hpp>
#include <glove/sys/child_process.hpp>
#include <glove/sys/fd.hpp>
#include <string>
#include <sys/types.h>

namespace glove::container {

struct user_scope {
    sys::child_process keeper; // a process that does nothing, and ends with this one
    sys::unique_fd group;      // of the scope: empty but for the keeper's own
};

// Whether this user has a manager that can be asked.
[[nodiscard]] auto has_user_manager() -> bool;

// Makes the scope `glove-RUN.scope` around `init` and the keeper, and moves `init` into the new
// group `child`.
[[nodiscard]] auto make_user_scope(const std::string& run, ::pid_t init, const std::string& child)
    -> result<user_scope>;

} // namespace glove::container
