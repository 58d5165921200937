// What an online session may reach, from the operator's policy to the rules of the one proxy.
//
// Guarantees: a target of the policy becomes one rule for exactly this host and this port, never
// for a domain or a network; an address that is not public is reached only where the policy says
// so; a target that could never be reached is refused by its place in the policy.
#pragma once
#include <cstdint>
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

// The records of one session, in a file that all share and that lies beside the journals: what a
// session asks for must not fill their disk. After the last intent that it may have, the proxy is
// told that one is not on record, and carries nothing out; after the last refusal, none is written.
// How what was begun ends is always written.
class session_records final : public audit::sink {
public:
    static constexpr std::uint32_t most_intents = 100'000, most_refusals = 10'000;
    explicit session_records(audit::sink& file) : file_{file} {}
    // Steps: egress.records (errc::limit_exceeded), audit.*.
    [[nodiscard]] auto append(const audit::event& what) -> result<> override;

private:
    audit::sink& file_;
    std::uint32_t intents_ = 0, refusals_ = 0;
};

// One event that ties the token of a session's proxy to its launch, and holds no token. Steps:
// binding.token, audit.*.
[[nodiscard]] auto record_token(audit::sink& log, const std::string& session_id,
                                const std::string& profile_digest, const std::string& token,
                                std::int64_t now_ns) -> result<>;

} // namespace glove::control
