// The secrets of one session: lent by the store of leases, put into the session's own home, and
// taken back when it is over.
//
// Guarantees: while a session has a secret nobody else has it. In the home it is a plain file of
// the session's user, so that a runtime can renew it by renaming another one over it; it takes room
// of the session's scratch space. No error holds a content. What could not be taken back leaves the
// lease as it was.
#pragma once
#include <glove/base/error.hpp>
#include <glove/control/launch_binding.hpp>
#include <glove/supervisor/plan.hpp>
#include <glove/supervisor/secret_leases.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <string>
#include <vector>

namespace glove::control {

struct session_secret {
    const supervisor::secret_mount* what = nullptr; // lives as long as the policy
    bound_source source;                            // the host's file
    std::string directory, name;                    // below the home; "" is the home itself
    supervisor::secret_lease lease;
    bool given = false;
};

// Steps: prepare.secret, lease.*.
[[nodiscard]] auto lend_secrets(const supervisor::session_plan& plan,
                                const supervisor::session_rules& rules,
                                const supervisor::lease_store& store)
    -> result<std::vector<session_secret>>;

// `home` is the session's, which nobody uses yet. Steps: prepare.secret, lease.give.
[[nodiscard]] auto give(std::vector<session_secret>& secrets, sys::fd_ref home) -> result<>;

// What was given; nobody uses the home any more. One error for each that could not be taken.
[[nodiscard]] auto take_back(std::vector<session_secret>& secrets, sys::fd_ref home)
    -> std::vector<error>;

} // namespace glove::control
