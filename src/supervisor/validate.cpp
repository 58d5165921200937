// A plan against the rules of the operator, in the order of its members.
#include <glove/supervisor/validate.hpp>

#include "supervisor/refusal.hpp"

namespace glove::supervisor {

namespace {

using wire::place;
using view = std::string_view;

[[nodiscard]] auto refuse_member(errc code, step_name step, view name, view what)
    -> std::unexpected<error> {
    const place root;
    return refuse(code, step, member_of(root, name), what);
}

[[nodiscard]] auto has(const std::vector<std::string>& list, view name) -> bool {
    return std::find(list.begin(), list.end(), name) != list.end();
}

[[nodiscard]] auto remaining_of(const session_plan& plan, const session_rules& rules,
                                std::uint64_t now_ms) -> result<std::uint64_t> {
    if (plan.policy_revision != rules.revision)
        return refuse_member(errc::conflict, "plan.revision", "policy_revision",
                             "is not the revision of the policy");
    if (plan.expires_at_ms <= now_ms)
        return refuse_member(errc::timed_out, "plan.expired", "expires_at_ms", "is past");
    const auto remaining = plan.expires_at_ms - now_ms;
    if (remaining > rules.max_plan_ttl_ms)
        return refuse_member(errc::not_permitted, "plan.ttl", "expires_at_ms",
                             "is further away than the policy allows");
    return remaining;
}

[[nodiscard]] auto check_template(const session_plan& plan, const runtime_template& chosen)
    -> result<> {
    const auto no = [](view name) {
        return refuse_member(errc::conflict, "plan.template", name, "is not that of the template");
    };
    if (plan.runtime_id != chosen.runtime_id) return no("runtime_id");
    if (plan.adapter_command_digest != chosen.adapter_command_digest)
        return no("adapter_command_digest");
    if (plan.sandbox_backend != chosen.sandbox_backend) return no("sandbox_backend");
    return {};
}

[[nodiscard]] auto check_ids(const session_plan& plan, const session_rules& rules) -> result<> {
    const auto no = [](view name) {
        return refuse_member(errc::not_permitted, "plan.policy", name, "is not in the policy");
    };
    if (!has(rules.egress_policy_ids, plan.egress_policy_id)) return no("egress_policy_id");
    if (!has(rules.tool_policy_ids, plan.tool_policy_id)) return no("tool_policy_id");
    const place root;
    const auto list = member_of(root, "secret_handles");
    for (std::size_t i = 0; i < plan.secret_handles.size(); ++i)
        if (!has(rules.secret_handles, plan.secret_handles[i]))
            return refuse(errc::not_permitted, "plan.policy", element_of(list, i),
                          "is not in the policy");
    return {};
}

[[nodiscard]] auto check_projections(const session_plan& plan, const runtime_template& chosen)
    -> result<> {
    const place root;
    const auto list = member_of(root, "library_projections");
    for (std::size_t i = 0; i < plan.library_projections.size(); ++i) {
        const auto item = element_of(list, i);
        if (!has(chosen.allowed_projection_destinations,
                 plan.library_projections[i].destination_alias))
            return refuse(errc::not_permitted, "plan.destination",
                          member_of(item, "destination_alias"), "is not one of the template");
    }
    return {};
}

// --- grants ---

// By which time grants are judged.
struct moment {
    std::uint64_t now_ms = 0;
    std::optional<std::uint64_t> accepted_at_ms; // the plan, when it is judged once more
};

// Why the time of a grant does not fit; empty when it does. `plan_secs`: what is left of the plan.
// When the plan is judged once more, it fitted then, and may have come to its end.
[[nodiscard]] auto time_defect(std::uint64_t ttl_secs, std::uint64_t plan_secs, const moment& at)
    -> view {
    if (!at.accepted_at_ms) return ttl_secs > plan_secs ? "outlasts the plan" : "";
    const auto since = at.now_ms - std::min(*at.accepted_at_ms, at.now_ms);
    return since / 1000 >= ttl_secs ? "has passed since the plan was accepted" : "";
}

[[nodiscard]] auto rounded_up(std::uint64_t ms) -> std::uint64_t {
    return ms / 1000 + (ms % 1000 != 0 ? 1 : 0);
}

[[nodiscard]] auto check_bytes(std::uint64_t wanted, const alias_access& allowed, const place& at)
    -> result<> {
    if (allowed.max_bytes == 0 && wanted != 0)
        return refuse(errc::not_permitted, "plan.grant", at,
                      "is not 0, and the access has no quota");
    if (allowed.max_bytes != 0 && (wanted == 0 || wanted > allowed.max_bytes))
        return refuse(errc::not_permitted, "plan.grant", at,
                      "is not between 1 and what the alias allows");
    return {};
}

[[nodiscard]] auto check_grant(const alias_grant& grant, const session_rules& rules,
                               const runtime_template& chosen, const session_plan& plan,
                               const moment& when, const place& at) -> result<> {
    const auto no = [&](view member, view why) {
        return refuse(errc::not_permitted, "plan.grant", member_of(at, member), why);
    };
    const auto* alias =
        has(chosen.allowed_path_aliases, grant.alias) ? rules.find_alias(grant.alias) : nullptr;
    if (alias == nullptr) return no("alias", "is not one of the template");
    if (grant.access == access_kind::retained_write)
        return no("access", "is for exposures, in plans of version 2");
    const auto* allowed = alias->find(grant.access);
    if (allowed == nullptr) return no("access", "is not allowed by the alias");
    if (grant.materialization != allowed->materialization)
        return no("materialization", "is not that of the alias");
    if (grant.cleanup_policy != allowed->cleanup_policy)
        return no("cleanup_policy", "is not that of the alias");
    GLOVE_CHECK(check_bytes(grant.max_bytes, *allowed, member_of(at, "max_bytes")));
    if (grant.ttl_secs > alias->max_ttl_secs)
        return no("ttl_secs", "is more than the alias allows");
    const auto left = rounded_up(plan.expires_at_ms - when.now_ms);
    const auto defect = time_defect(grant.ttl_secs, left, when);
    return defect.empty() ? result<>{} : no("ttl_secs", defect);
}

[[nodiscard]] auto check_grant(const exposure_grant& grant, const session_plan& plan,
                               const exposures_now& now, const moment& when, const place& at)
    -> result<> {
    auto used = use_exposure(now.ledger, now.policy, grant, plan.runtime_template_id, when.now_ms);
    if (!used) {
        used.error().detail = wire::to_string(at) + ": " + used.error().detail;
        return std::unexpected(std::move(used).error());
    }
    auto defect = time_defect(grant.ttl_secs, (plan.expires_at_ms - when.now_ms) / 1000, when);
    if (defect.empty() && !when.accepted_at_ms && grant.ttl_secs > used->remaining_ms / 1000)
        defect = "outlasts the exposure";
    if (defect.empty()) return {};
    return refuse(errc::not_permitted, "plan.grant", member_of(at, "ttl_secs"), defect);
}

[[nodiscard]] auto check_grants(const session_plan& plan, const session_rules& rules,
                                const exposures_now* exposures, const runtime_template& chosen,
                                const moment& when) -> result<> {
    const place root;
    const auto list = member_of(root, "path_grants");
    if (const auto* first = std::get_if<0>(&plan.grants))
        for (std::size_t i = 0; i < first->size(); ++i)
            GLOVE_CHECK(check_grant((*first)[i], rules, chosen, plan, when, element_of(list, i)));
    const auto* second = std::get_if<1>(&plan.grants);
    if (second == nullptr || second->empty()) return {};
    if (exposures == nullptr)
        return refuse(errc::unsupported, "plan.exposures", list,
                      "needs exposures, and none are configured");
    for (std::size_t i = 0; i < second->size(); ++i)
        GLOVE_CHECK(check_grant((*second)[i], plan, *exposures, when, element_of(list, i)));
    return {};
}

// --- what goes with what ---

[[nodiscard]] auto writes_through(const session_plan& plan) -> bool {
    return std::visit(
        [](const auto& list) {
            return std::any_of(list.begin(), list.end(), [](const auto& grant) {
                return grant.access == access_kind::direct_write ||
                       grant.access == access_kind::retained_write;
            });
        },
        plan.grants);
}

[[nodiscard]] auto check_remote(const session_plan& plan) -> result<> {
    if (plan.sandbox_backend != backend_kind::remote_linux_container) return {};
    if (!plan.secret_handles.empty())
        return refuse_member(errc::not_permitted, "plan.remote", "secret_handles",
                             "do not leave this machine");
    if (writes_through(plan))
        return refuse_member(errc::not_permitted, "plan.remote", "path_grants",
                             "may not write to what stays, from another machine");
    return {};
}

[[nodiscard]] auto is_exactly(const std::vector<library_projection>& list,
                              const library_projection& a, const library_projection& b) -> bool {
    return list.size() == 2 && ((list[0] == a && list[1] == b) || (list[0] == b && list[1] == a));
}

[[nodiscard]] auto check_refinement(const session_plan& plan) -> result<> {
    const auto no = [](view name, view why) {
        return refuse_member(errc::not_permitted, "plan.refinement", name, why);
    };
    const bool meant = plan.runtime_template_id == refinement_template_id;
    if (meant != plan.refinement.has_value())
        return no("refinement", meant ? "is missing" : "is not for the plan's template");
    if (!plan.refinement) return {};
    const auto& wanted = *plan.refinement;
    if (plan.sandbox_backend != backend_kind::linux_production)
        return no("sandbox_backend", "is not linux_production, which a refinement needs");
    if (plan.grant_count() != 0) return no("path_grants", "is not empty, as for a refinement");
    if (wanted.fixture.projection_id == wanted.base.projection_id ||
        wanted.fixture.projection_id == wanted.candidate.projection_id ||
        wanted.base.projection_id == wanted.candidate.projection_id)
        return no("refinement", "names one projection twice");
    if (!is_exactly(plan.library_projections, wanted.fixture, wanted.selected()))
        return no("library_projections", "is not exactly the fixture and the variant's projection");
    return {};
}

} // namespace

auto validate_plan(const session_plan& plan, const session_rules& rules,
                   const exposures_now* exposures, std::uint64_t now_ms,
                   std::optional<std::uint64_t> accepted_at_ms) -> result<accepted_plan> {
    GLOVE_CHECK(check_form(plan)); // whoever decoded it
    GLOVE_TRY(const auto remaining_ms, remaining_of(plan, rules, now_ms));
    const auto* chosen = rules.find_template(plan.runtime_template_id);
    if (chosen == nullptr)
        return refuse_member(errc::not_permitted, "plan.template", "runtime_template_id",
                             "is not a template of the policy");
    GLOVE_CHECK(check_template(plan, *chosen));
    GLOVE_CHECK(check_ids(plan, rules));
    const auto* profile = rules.find_profile(plan.limits);
    if (profile == nullptr)
        return refuse_member(errc::not_permitted, "plan.limits", "limits",
                             "are not exactly those of a resource profile");
    GLOVE_CHECK(check_projections(plan, *chosen));
    GLOVE_CHECK(check_remote(plan));
    GLOVE_CHECK(check_refinement(plan));
    GLOVE_CHECK(check_grants(plan, rules, exposures, *chosen, {now_ms, accepted_at_ms}));
    return accepted_plan{chosen, profile, remaining_ms};
}

namespace {

template<class Grant> [[nodiscard]] auto check_kinds(const std::vector<Grant>& grants) -> result<> {
    const place root;
    const auto list = member_of(root, "path_grants");
    for (std::size_t i = 0; i < grants.size(); ++i) {
        const auto item = element_of(list, i);
        if (grants[i].access == access_kind::direct_write)
            return refuse(errc::not_permitted, "plan.start", member_of(item, "access"),
                          "is direct_write, and nothing writes to the host itself");
        if (writes(grants[i].access) && grants[i].materialization != materialization_kind::copy)
            return refuse(errc::unsupported, "plan.start", member_of(item, "materialization"),
                          "is not copy, and only copies are written to");
    }
    return {};
}

} // namespace

auto check_startable(const session_plan& plan, const session_rules& rules) -> result<> {
    const auto* chosen = rules.find_template(plan.runtime_template_id);
    if (chosen == nullptr || !chosen->launch)
        return refuse_member(errc::unsupported, "plan.start", "runtime_template_id",
                             "is of a template that has no launch");
    if (!means_no_network(plan.egress_policy_id) &&
        rules.find_egress(plan.egress_policy_id) == nullptr)
        return refuse_member(errc::unsupported, "plan.start", "egress_policy_id",
                             "has no entry in egress_policies");
    for (const auto& handle : plan.secret_handles)
        if (std::none_of(rules.secret_mounts.begin(), rules.secret_mounts.end(),
                         [&](const auto& mount) {
                             return mount.handle == handle && mount.runtime_id == plan.runtime_id;
                         }))
            return refuse_member(errc::unsupported, "plan.start", "secret_handles",
                                 "names a secret that is not mounted for the runtime");
    return std::visit([](const auto& list) { return check_kinds(list); }, plan.grants);
}

} // namespace glove::supervisor
