// Judges first and opens in the same look at the exposures, so that nothing is revoked in between.
#include "control/host_grants.hpp"
#include <algorithm>
#include <glove/supervisor/validate.hpp>

namespace glove::control {

namespace {

using supervisor::materialization_kind;

// Names that begin so are of Glove's own partitions.
constexpr std::string_view own_prefix = "__";

[[nodiscard]] auto check_form(const std::string& alias, supervisor::access_kind access,
                              materialization_kind how) -> result<> {
    if (alias.starts_with(own_prefix))
        return fail(errc::not_permitted, "prepare.alias",
                    "the grant " + alias + " has a name of Glove's own", "give it another name");
    const auto wanted =
        supervisor::writes(access) ? materialization_kind::copy : materialization_kind::bind;
    if (how != wanted)
        return fail(errc::unsupported, "prepare.materialization",
                    "the grant " + alias + " is to be read through " +
                        std::string{supervisor::to_string(how)},
                    "what is read is bound, and what is written is copied");
    return {};
}

[[nodiscard]] auto open_grant(const supervisor::alias_grant& grant,
                              const supervisor::session_policy& policy) -> result<granted_path> {
    GLOVE_CHECK(check_form(grant.alias, grant.access, grant.materialization));
    const auto* alias = policy.rules().find_alias(grant.alias);
    GLOVE_TRY(auto source, policy.open_alias(grant.alias));
    GLOVE_TRY(auto digest,
              supervisor::source_identity_digest(supervisor::lasting_identity_of(source.facts)));
    return granted_path{.alias = grant.alias,
                        .target = alias->target_path,
                        .access = grant.access,
                        .max_bytes = grant.max_bytes,
                        .pin = std::move(source.pin),
                        .facts = source.facts,
                        .source_identity_digest = std::move(digest),
                        .exposure = {}};
}

[[nodiscard]] auto open_grant(const supervisor::exposure_grant& grant,
                              const supervisor::session_plan& plan,
                              const supervisor::exposures_now& now, std::uint64_t now_ms)
    -> result<granted_path> {
    GLOVE_CHECK(check_form(grant.exposure_id, grant.access, grant.materialization));
    GLOVE_TRY(auto used, supervisor::use_exposure(now.ledger, now.policy, grant,
                                                  plan.runtime_template_id, now_ms));
    return granted_path{.alias = grant.exposure_id,
                        .target = std::string{exposures_target} + grant.exposure_id,
                        .access = grant.access,
                        .max_bytes = grant.max_bytes,
                        .pin = std::move(used.source.pin),
                        .facts = used.source.facts,
                        .source_identity_digest =
                            used.kept->created.descriptor.source_identity_digest,
                        .exposure = granted_exposure{grant.generation, grant.scope_digest}};
}

[[nodiscard]] auto judge(const supervisor::session_plan& plan,
                         const supervisor::session_policy& policy,
                         const supervisor::exposures_now* now, std::uint64_t accepted_at_ms,
                         std::uint64_t now_ms) -> result<judged_plan> {
    const auto& rules = policy.rules();
    GLOVE_TRY(const auto accepted,
              supervisor::validate_plan(plan, rules, now, now_ms, accepted_at_ms));
    GLOVE_CHECK(supervisor::check_startable(plan, rules));
    if (plan.sandbox_backend != supervisor::backend_kind::linux_production)
        return fail(errc::unsupported, "prepare.backend",
                    "the plan is for " + std::string{supervisor::to_string(plan.sandbox_backend)});
    if (accepted.chosen->adoption)
        return fail(errc::unsupported, "prepare.adoption",
                    "the template " + plan.runtime_template_id +
                        " takes over an installation of the host");
    judged_plan out{.chosen = accepted.chosen, .grants = {}};
    if (const auto* aliases = std::get_if<0>(&plan.grants))
        for (const auto& grant : *aliases) {
            GLOVE_TRY(auto opened, open_grant(grant, policy));
            out.grants.push_back(std::move(opened));
        }
    if (const auto* exposed = std::get_if<1>(&plan.grants))
        for (const auto& grant : *exposed) { // `now` is there, or the plan was refused
            GLOVE_TRY(auto opened, open_grant(grant, plan, *now, now_ms));
            out.grants.push_back(std::move(opened));
        }
    return out;
}

} // namespace

auto judge_plan(const supervisor::session_plan& plan, const supervisor::session_policy& policy,
                const exposure_store* exposures, std::uint64_t accepted_at_ms, std::uint64_t now_ms)
    -> result<judged_plan> {
    if (exposures == nullptr) return judge(plan, policy, nullptr, accepted_at_ms, now_ms);
    std::optional<result<judged_plan>> out;
    exposures->with([&](const supervisor::exposures_now& now) {
        out.emplace(judge(plan, policy, &now, accepted_at_ms, now_ms));
    });
    return *std::move(out);
}

auto check_still_granted(const supervisor::session_plan& plan, const exposure_store* exposures,
                         std::uint64_t now_ms) -> result<> {
    const auto* const grants = std::get_if<1>(&plan.grants);
    if (grants == nullptr || exposures == nullptr) return {}; // judged without any
    result<> out;
    exposures->with([&](const supervisor::exposures_now& now) {
        for (const auto& grant : *grants) {
            const auto used = supervisor::use_exposure(now.ledger, now.policy, grant,
                                                       plan.runtime_template_id, now_ms);
            if (!used && out) out = std::unexpected(used.error());
        }
    });
    return out;
}

auto scratch_bytes(const supervisor::session_plan& plan, const std::vector<granted_path>& grants)
    -> result<std::uint64_t> {
    auto left = plan.limits.disk_bytes;
    for (const auto& grant : grants)
        if (grant.is_written()) left -= std::min(left, grant.max_bytes);
    if (left >= least_scratch_bytes) return left;
    return fail(errc::limit_exceeded, "prepare.disk",
                "the quotas of what is written leave " + std::to_string(left) + " of the " +
                    std::to_string(plan.limits.disk_bytes) +
                    " bytes of the session's disk for its private places",
                "plan for " + std::to_string(least_scratch_bytes) + " bytes beside them");
}

} // namespace glove::control
