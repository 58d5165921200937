// What an online session may reach, from the operator's policy to the rules of the one proxy.
//
// Guarantees: a target of the policy becomes one rule for exactly this host and this port, never
// for a domain or a network; an address that is not public is reached only where the policy says
// so; a target that could never be reached is refused by its place in the policy.
#pragma once
#include <glove/base/audit.hpp>
#include <glove/base/error.hpp>
#include <glove/container/bridge.hpp>
#include <glove/supervisor/plan.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <optional>
#include <string>

namespace glove::control {

struct online_plan {
    container::bridge_plan bridge;
    std::string policy_digest; // for the binding
};

// Nothing for a session without a network, which is also one whose policy names no target. Step:
// prepare.egress.
[[nodiscard]] auto plan_egress(const supervisor::session_plan& plan,
                               const supervisor::session_rules& rules)
    -> result<std::optional<online_plan>>;

// One event that ties the token of a session's proxy to its launch, and holds no token. Steps:
// binding.token, audit.*.
[[nodiscard]] auto record_token(audit::sink& log, const std::string& session_id,
                                const std::string& profile_digest, const std::string& token,
                                std::int64_t now_ns) -> result<>;

} // namespace glove::control
