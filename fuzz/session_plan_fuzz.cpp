// Whatever the bytes: a plan that is accepted has one canonical text that decodes to it, and a
// policy's judgement of it depends on the plan alone. A complaint is fit for a terminal.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <glove/supervisor/validate.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;

void require(bool holds) {
    if (!holds) std::abort();
}

void check_error(const error& problem) {
    require(!problem.step.empty() && !problem.detail.empty());
    require(std::all_of(problem.detail.begin(), problem.detail.end(),
                        [](char c) { return c >= ' ' && c <= '~'; }));
}

// Takes what it can from the plan, so that the rules further on are reached.
[[nodiscard]] auto rules_for(const session_plan& plan) -> session_rules {
    session_rules out;
    out.revision = plan.policy_revision;
    out.max_plan_ttl_ms = 600'000;
    runtime_template chosen{plan.runtime_template_id,
                            plan.runtime_id,
                            plan.adapter_command_digest,
                            plan.sandbox_backend,
                            {},
                            {},
                            {},
                            {}};
    if (const auto* grants = std::get_if<0>(&plan.grants))
        for (const auto& grant : *grants) {
            chosen.allowed_path_aliases.push_back(grant.alias);
            out.path_aliases.push_back({grant.alias,
                                        "/srv/x",
                                        "/workspace",
                                        60,
                                        {{grant.access, grant.materialization, creation_kind::never,
                                          grant.cleanup_policy, 1000}}});
        }
    for (const auto& projection : plan.library_projections)
        chosen.allowed_projection_destinations.push_back(projection.destination_alias);
    out.runtime_templates = {chosen};
    const auto& limits = plan.limits;
    out.resource_profiles = {{"p", limits.cpu_time_ms, limits.memory_bytes, limits.pids,
                              limits.wall_time_ms, limits.disk_bytes,
                              limits.terminal_output_bytes}};
    out.egress_policy_ids = {plan.egress_policy_id};
    out.tool_policy_ids = {plan.tool_policy_id};
    out.secret_handles = plan.secret_handles;
    return out;
}

void check_judgement(const session_plan& plan) {
    const auto rules = rules_for(plan);
    for (const auto now : {std::uint64_t{0}, plan.expires_at_ms, plan.expires_at_ms - 1,
                           plan.expires_at_ms - 60'000}) {
        const auto out = validate_plan(plan, rules, nullptr, now);
        if (!out) {
            check_error(out.error());
            continue;
        }
        require(now < plan.expires_at_ms && out->remaining_ms == plan.expires_at_ms - now);
        require(out->remaining_ms <= rules.max_plan_ttl_ms);
        require(out->chosen == rules.runtime_templates.data());
        require(plan.refinement.has_value() ==
                (plan.runtime_template_id == refinement_template_id));
        require(!plan.refinement || plan.grant_count() == 0);
        require(plan.schema_version == 1 || plan.grant_count() == 0);
        (void)check_startable(plan, rules);
    }
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    const auto plan = decode_plan(text);
    if (!plan) {
        check_error(plan.error());
        return 0;
    }
    const auto sealed = seal(*plan, std::string(64, 'c'));
    require(sealed.has_value() && sealed->text.size() <= 1UL << 20U);
    const auto back = unseal(sealed->text, sealed->digests);
    require(back.has_value() && back->plan == *plan);
    require((sealed->text == text) == unseal(text, sealed->digests).has_value());
    require(refinement_context_digest(*plan).has_value() == plan->refinement.has_value());
    check_judgement(*plan);
    return 0;
}
