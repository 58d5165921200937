// Whether the operator's policy allows a plan at this moment.
//
// Guarantees: judges the plan as it is, whoever decoded it: its form is checked again, and every
// rule is asked of the real plan, not of a copy with something taken out. What it accepts chooses
// one template and one resource profile, and nothing in it goes beyond them. Remaining time is
// rounded up for grants of version 1 and down for those of version 2. A grant's time counts from
// when its plan was accepted, so one for as long as the plan can be started as long as the plan.
//
// A plan that is accepted may still be of a kind that never starts: `check_startable`.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/supervisor/exposure_ledger.hpp>
#include <glove/supervisor/plan.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <optional>

namespace glove::supervisor {

// Of a service that has exposures at all.
struct exposures_now {
    const exposure_ledger& ledger;
    const exposure_policy& policy;
};

// Points into the rules, and lives as long as they do.
struct accepted_plan {
    const runtime_template* chosen = nullptr;
    const resource_profile* profile = nullptr;
    std::uint64_t remaining_ms = 0;
};

// `exposures` may be null; then a grant of version 2 is refused, and a plan without grants is not.
// `accepted_at_ms`: of a plan that was accepted then and is judged once more.
// Steps: plan.* and those of `use_exposure`; the detail names the member.
[[nodiscard]] auto validate_plan(const session_plan& plan, const session_rules& rules,
                                 const exposures_now* exposures, std::uint64_t now_ms,
                                 std::optional<std::uint64_t> accepted_at_ms = {})
    -> result<accepted_plan>;

// What a session of an accepted plan would need and this product does not do, or does not do
// without more configuration: plan.start.
[[nodiscard]] auto check_startable(const session_plan& plan, const session_rules& rules)
    -> result<>;

} // namespace glove::supervisor
