// A plan against the operator's rules: each rule broken once, beside a twin that is allowed.
#include "exposure_scene.hpp"
#include "policy_scene.hpp"
#include <functional>
#include <glove/supervisor/validate.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;
using test::digits;
using test::folder;
using test::mib;

constexpr std::uint64_t now = 1000;

template<class T> auto said(const result<T>& out) -> std::string {
    return out ? "" : std::string{out.error().step} + " " + out.error().detail;
}
auto verdict(const session_plan& plan, const session_rules& rules = test::accepting_rules(),
             std::uint64_t at = now) -> std::string {
    return said(validate_plan(plan, rules, nullptr, at));
}
auto after(const std::function<void(session_plan&)>& edit) -> std::string {
    auto plan = test::usual_plan();
    edit(plan);
    return verdict(plan);
}

TEST(Validate, APlanWithinTheRulesChoosesATemplateAndAProfile) {
    const auto rules = test::accepting_rules();
    const auto out = validate_plan(test::usual_plan(), rules, nullptr, now);
    ASSERT_TRUE(out) << out.error().detail;
    EXPECT_EQ(out->chosen, rules.find_template("codex-safe"));
    EXPECT_EQ(out->profile, &rules.resource_profiles[0]);
    EXPECT_EQ(out->remaining_ms, 60'000U);
}

TEST(Validate, AMemberThatIsNotTheTemplatesIsNamed) {
    EXPECT_EQ(after([](auto& p) { p.runtime_template_id = "x"; }),
              "plan.template $.runtime_template_id is not a template of the policy");
    const std::string no = " is not that of the template";
    EXPECT_EQ(after([](auto& p) { p.runtime_id = "pi"; }), "plan.template $.runtime_id" + no);
    EXPECT_EQ(after([](auto& p) { p.adapter_command_digest = digits('0'); }),
              "plan.template $.adapter_command_digest" + no);
    EXPECT_EQ(after([](auto& p) { p.sandbox_backend = backend_kind::apple_container; }),
              "plan.template $.sandbox_backend" + no);
}

TEST(Validate, AnIdentifierThatThePolicyDoesNotHaveIsNamed) {
    EXPECT_EQ(after([](auto& p) { p.egress_policy_id = "x"; }),
              "plan.policy $.egress_policy_id is not in the policy");
    EXPECT_EQ(after([](auto& p) { p.tool_policy_id = "x"; }),
              "plan.policy $.tool_policy_id is not in the policy");
    EXPECT_EQ(after([](auto& p) { p.secret_handles.emplace_back("other"); }),
              "plan.policy $.secret_handles[1] is not in the policy");
    EXPECT_EQ(after([](auto& p) { p.secret_handles.clear(); }), "");
    EXPECT_EQ(after([](auto& p) { p.library_projections[0].destination_alias = "fixtures"; }),
              "plan.destination $.library_projections[0].destination_alias is not one of the "
              "template");
    EXPECT_EQ(after([](auto& p) { p.library_projections.clear(); }), "");
}

TEST(Validate, BoundsAreThoseOfOneProfileExactly) {
    const std::string no = "plan.limits $.limits are not exactly those of a resource profile";
    for (auto member : {&resource_limits::cpu_time_ms, &resource_limits::memory_bytes,
                        &resource_limits::wall_time_ms, &resource_limits::disk_bytes,
                        &resource_limits::terminal_output_bytes})
        for (const int step : {-1, 1})
            EXPECT_EQ(after([&](auto& p) { p.limits.*member += static_cast<std::uint64_t>(step); }),
                      no);
    EXPECT_EQ(after([](auto& p) { --p.limits.pids; }), no);
    EXPECT_EQ(
        after([](auto& p) { p.limits = test::accepting_rules().resource_profiles[1].limits(); }),
        "");
}

TEST(Validate, APlanIsOfThisRevisionAndOfThisTime) {
    EXPECT_EQ(after([](auto& p) { p.policy_revision = 6; }),
              "plan.revision $.policy_revision is not the revision of the policy");
    const auto expiring = [](std::uint64_t at, std::uint64_t clock) {
        auto plan = test::usual_plan();
        plan.expires_at_ms = at;
        return verdict(plan, test::accepting_rules(), clock);
    };
    EXPECT_EQ(expiring(5000, 4999), "");
    EXPECT_EQ(expiring(5000, 5000), "plan.expired $.expires_at_ms is past");
    EXPECT_EQ(expiring(0, 5000), "plan.expired $.expires_at_ms is past");
    EXPECT_EQ(expiring(605'000, 5000), "");
    EXPECT_EQ(expiring(605'001, 5000),
              "plan.ttl $.expires_at_ms is further away than the policy allows");
    EXPECT_EQ(expiring(UINT64_MAX, UINT64_MAX - 600'000), "");
    EXPECT_EQ(expiring(UINT64_MAX, UINT64_MAX - 600'001).substr(0, 8), "plan.ttl");
    EXPECT_EQ(expiring(UINT64_MAX, UINT64_MAX).substr(0, 12), "plan.expired");
}

TEST(Validate, AFormThatIsWrongIsSeenWhoeverMadeThePlan) {
    EXPECT_EQ(after([](auto& p) { p.runtime_id = "a b"; }).substr(0, 12), "wire.grammar");
    EXPECT_EQ(after([](auto& p) { p.limits.pids = 0; }).substr(0, 10), "wire.range");
    EXPECT_EQ(after([](auto& p) { p.schema_version = 2; }).substr(0, 11), "wire.choice");
    EXPECT_EQ(
        after([](auto& p) { p.secret_handles = {"codex-token", "codex-token"}; }).substr(0, 10),
        "plan.order");
}

// --- grants of version 1 ---

auto granting(const std::function<void(alias_grant&)>& edit, std::uint64_t expires = 61'000)
    -> std::string {
    auto grant = test::workspace_grant();
    edit(grant);
    auto plan = test::usual_plan();
    plan.grants = std::vector{grant};
    plan.expires_at_ms = expires;
    return verdict(plan);
}

void to_read(alias_grant& grant) {
    grant.access = access_kind::read;
    grant.materialization = materialization_kind::bind;
    grant.cleanup_policy = cleanup_kind::retain;
    grant.max_bytes = 0;
}

TEST(ValidateGrant, IsOfTheTripleThatTheAliasHasForItsAccess) {
    const std::string at = "plan.grant $.path_grants[0].";
    EXPECT_EQ(granting([](auto&) {}), "");
    EXPECT_EQ(granting(to_read), "");
    EXPECT_EQ(granting([](auto& g) { g.alias = "x"; }), at + "alias is not one of the template");
    EXPECT_EQ(granting([](auto& g) { g.access = access_kind::direct_write; }),
              at + "access is not allowed by the alias");
    EXPECT_EQ(granting([](auto& g) { g.access = access_kind::retained_write; }),
              at + "access is for exposures, in plans of version 2");
    EXPECT_EQ(granting([](auto& g) { g.materialization = materialization_kind::snapshot; }),
              at + "materialization is not that of the alias");
    EXPECT_EQ(granting([](auto& g) { g.cleanup_policy = cleanup_kind::retain; }),
              at + "cleanup_policy is not that of the alias");
}

TEST(ValidateGrant, IsOfAnAliasOfItsTemplate) {
    auto rules = test::accepting_rules();
    rules.runtime_templates[0].allowed_path_aliases.clear();
    auto plan = test::usual_plan();
    plan.grants = std::vector{test::workspace_grant()};
    EXPECT_EQ(verdict(plan, rules), "plan.grant $.path_grants[0].alias is not one of the template");
}

TEST(ValidateGrant, RetainedWriteIsNotOfVersion1EvenWhereAnAliasHasIt) {
    auto rules = test::accepting_rules();
    rules.path_aliases[0].access.push_back({access_kind::retained_write, materialization_kind::copy,
                                            creation_kind::never, cleanup_kind::retain, mib});
    auto plan = test::usual_plan();
    auto grant = test::workspace_grant();
    grant.access = access_kind::retained_write;
    grant.cleanup_policy = cleanup_kind::retain;
    plan.grants = std::vector{grant};
    EXPECT_EQ(verdict(plan, rules).substr(0, 10), "plan.grant");
}

TEST(ValidateGrant, HasAQuotaWhereItWritesAndNoneElsewhere) {
    const auto bytes = [](std::uint64_t count, bool reading = false) {
        return granting([&](auto& g) {
            if (reading) to_read(g);
            g.max_bytes = count;
        });
    };
    const std::string at = "plan.grant $.path_grants[0].max_bytes ";
    EXPECT_EQ(bytes(1), "");
    EXPECT_EQ(bytes(mib), "");
    EXPECT_EQ(bytes(mib + 1), at + "is not between 1 and what the alias allows");
    EXPECT_EQ(bytes(0), at + "is not between 1 and what the alias allows");
    EXPECT_EQ(bytes(1, true), at + "is not 0, and the access has no quota");
    EXPECT_EQ(bytes(0, true), "");
}

TEST(ValidateGrant, LastsAsLongAsThePlanRoundedUp) {
    const auto lasting = [](std::uint64_t secs, std::uint64_t remaining_ms) {
        return granting([&](auto& g) { g.ttl_secs = secs; }, now + remaining_ms);
    };
    const std::string at = "plan.grant $.path_grants[0].ttl_secs ";
    EXPECT_EQ(lasting(60, 60'000), "");
    EXPECT_EQ(lasting(60, 59'001), "");
    EXPECT_EQ(lasting(60, 59'000), at + "outlasts the plan");
    EXPECT_EQ(lasting(61, 60'000), at + "outlasts the plan");
    EXPECT_EQ(lasting(61, 60'001), "");
    EXPECT_EQ(lasting(1, 1), "");
    EXPECT_EQ(lasting(2, 1000), at + "outlasts the plan");
    auto rules = test::accepting_rules();
    rules.path_aliases[0].max_ttl_secs = 59;
    auto plan = test::usual_plan();
    plan.grants = std::vector{test::workspace_grant()};
    EXPECT_EQ(verdict(plan, rules), at + "is more than the alias allows");
    rules.path_aliases[0].max_ttl_secs = 60;
    EXPECT_EQ(verdict(plan, rules), "");
}

TEST(ValidateGrant, ItsTimeCountsFromWhenThePlanWasAccepted) {
    const auto again = [](std::uint64_t secs, std::uint64_t passed_ms) {
        auto plan = test::usual_plan();
        auto granted = test::workspace_grant();
        granted.ttl_secs = secs;
        plan.grants = std::vector{granted};
        plan.expires_at_ms = now + 60'000;
        return said(validate_plan(plan, test::accepting_rules(), nullptr, now + passed_ms, now));
    };
    EXPECT_EQ(again(60, 59'999), "");
    EXPECT_EQ(again(10, 9'999), "");
    EXPECT_EQ(again(10, 10'000),
              "plan.grant $.path_grants[0].ttl_secs has passed since the plan was accepted");
}

// --- another machine ---

TEST(Validate, APlanForAnotherMachineTakesNoSecretsAndWritesNothingThatStays) {
    auto rules = test::accepting_rules();
    rules.runtime_templates[0].sandbox_backend = backend_kind::remote_linux_container;
    rules.path_aliases[0].access.push_back({access_kind::direct_write, materialization_kind::bind,
                                            creation_kind::never, cleanup_kind::retain, 0});
    auto plan = test::usual_plan();
    plan.sandbox_backend = backend_kind::remote_linux_container;
    EXPECT_EQ(verdict(plan, rules), "plan.remote $.secret_handles do not leave this machine");
    plan.secret_handles.clear();
    plan.grants = std::vector{test::workspace_grant()};
    EXPECT_EQ(verdict(plan, rules), "");
    auto direct = test::workspace_grant();
    to_read(direct);
    direct.access = access_kind::direct_write;
    plan.grants = std::vector{direct};
    EXPECT_EQ(verdict(plan, rules),
              "plan.remote $.path_grants may not write to what stays, from another machine");
    plan.sandbox_backend = rules.runtime_templates[0].sandbox_backend =
        backend_kind::linux_production;
    EXPECT_EQ(verdict(plan, rules), ""); // it parses and is good, and never starts
    auto retained = test::project_grant();
    retained.access = access_kind::retained_write;
    plan.schema_version = 2;
    plan.grants = std::vector{retained};
    plan.sandbox_backend = rules.runtime_templates[0].sandbox_backend =
        backend_kind::remote_linux_container;
    EXPECT_EQ(verdict(plan, rules).substr(0, 11), "plan.remote");
}

// --- refinement ---

auto refining_rules() -> session_rules {
    auto out = test::accepting_rules();
    auto chosen = out.runtime_templates[0];
    chosen.runtime_template_id = std::string{refinement_template_id};
    chosen.allowed_projection_destinations = {"libraries", "fixtures"};
    out.runtime_templates.push_back(chosen);
    return out;
}
auto refining(const std::function<void(session_plan&)>& edit) -> std::string {
    auto plan = test::refinement_plan();
    edit(plan);
    return verdict(plan, refining_rules());
}

TEST(ValidateRefinement, GoesWithItsTemplateAndOnlyWithIt) {
    EXPECT_EQ(refining([](auto&) {}), "");
    EXPECT_EQ(refining([](auto& p) { p.refinement.reset(); }),
              "plan.refinement $.refinement is missing");
    EXPECT_EQ(refining([](auto& p) {
                  p.runtime_template_id = "codex-safe";
                  p.library_projections.clear();
              }),
              "plan.refinement $.refinement is not for the plan's template");
}

TEST(ValidateRefinement, ReadsTheFixtureAndTheVariantsSkillAndNothingElse) {
    const std::string no = "plan.refinement $.library_projections is not exactly the fixture and "
                           "the variant's projection";
    EXPECT_EQ(refining([](auto& p) { p.library_projections.pop_back(); }), no);
    EXPECT_EQ(refining([](auto& p) {
                  p.library_projections.push_back({"zz", digits('9'), "libraries"});
              }),
              no);
    EXPECT_EQ(refining([](auto& p) { p.library_projections[1] = p.refinement->base; }), no);
    EXPECT_EQ(refining([](auto& p) { p.library_projections[1].content_digest = digits('9'); }), no);
    EXPECT_EQ(refining([](auto& p) { p.library_projections[0].destination_alias = "libraries"; }),
              no);
    EXPECT_EQ(refining([](auto& p) { p.refinement->variant = refinement_variant::base; }), no);
    EXPECT_EQ(refining([](auto& p) {
                  p.refinement->variant = refinement_variant::base;
                  p.library_projections[1] = p.refinement->base;
              }),
              "");
    // The order of names decides which of the two comes first.
    EXPECT_EQ(refining([](auto& p) {
                  p.refinement->fixture.projection_id = "zz";
                  p.library_projections = {p.refinement->candidate, p.refinement->fixture};
              }),
              "");
}

TEST(ValidateRefinement, NamesThreeProjections) {
    const std::string no = "plan.refinement $.refinement names one projection twice";
    EXPECT_EQ(refining([](auto& p) {
                  p.refinement->base.projection_id = p.refinement->candidate.projection_id;
              }),
              no);
    EXPECT_EQ(refining([](auto& p) {
                  p.refinement->base.projection_id = p.refinement->fixture.projection_id;
              }),
              no);
}

TEST(ValidateRefinement, RunsHereOnly) {
    auto rules = refining_rules();
    rules.runtime_templates.back().sandbox_backend = backend_kind::apple_container;
    auto plan = test::refinement_plan();
    plan.sandbox_backend = backend_kind::apple_container;
    EXPECT_EQ(
        verdict(plan, rules),
        "plan.refinement $.sandbox_backend is not linux_production, which a refinement needs");
}

TEST(ValidateRefinement, HasNoPathsInEitherVersion) {
    const std::string no = "plan.refinement $.path_grants is not empty, as for a refinement";
    EXPECT_EQ(refining([](auto& p) { p.grants = std::vector{test::workspace_grant()}; }), no);
    EXPECT_EQ(refining([](auto& p) {
                  p.schema_version = 2;
                  p.grants = std::vector{test::project_grant()};
              }),
              no);
    EXPECT_EQ(refining([](auto& p) {
                  p.schema_version = 2;
                  p.grants = std::vector<exposure_grant>{};
              }),
              "");
}

// --- grants of version 2 ---

class ValidateExposure : public testing::Test {
protected:
    ValidateExposure() {
        place.directory("root/proj");
        policy.emplace(exposure_policy::freeze(test::usual_exposure_rules(place / "root")).value());
        const auto decision =
            decide_create(ledger, *policy, "k", test::usual_create(place / "root/proj"), now);
        test::prepared(decision && ledger.apply(*decision->record), "create");
        grant = test::project_grant();
        grant.scope_digest = ledger.find({"proj", 1})->created.descriptor.scope_digest;
    }
    [[nodiscard]] auto judged(std::uint64_t remaining_ms = 60'000, std::uint64_t at = now) const
        -> std::string {
        auto plan = test::plan_of_version_2();
        plan.grants = std::vector{grant};
        plan.expires_at_ms = at + remaining_ms;
        const exposures_now here{ledger, *policy};
        return said(validate_plan(plan, test::accepting_rules(), &here, at));
    }
    folder place;
    std::optional<exposure_policy> policy;
    exposure_ledger ledger;
    exposure_grant grant;
};

TEST_F(ValidateExposure, AGrantIsOfAnActiveGeneration) {
    EXPECT_EQ(judged(), "");
    grant.generation = 2;
    EXPECT_EQ(judged(), "exposure.unknown $.path_grants[0]: there is no such generation");
}

TEST_F(ValidateExposure, AGrantLastsAsLongAsThePlanRoundedDown) {
    const std::string no = "plan.grant $.path_grants[0].ttl_secs outlasts the plan";
    EXPECT_EQ(judged(60'000), "");
    EXPECT_EQ(judged(60'999), "");
    EXPECT_EQ(judged(59'999), no);
    grant.ttl_secs = 61;
    EXPECT_EQ(judged(60'999), no);
    EXPECT_EQ(judged(61'000), "");
    grant.ttl_secs = 1;
    EXPECT_EQ(judged(999), no);
}

TEST_F(ValidateExposure, AGrantLastsAsLongAsTheExposureRoundedDown) {
    // It ends 3600 seconds after `now`.
    EXPECT_EQ(judged(70'000, now + 3'540'000), "");
    EXPECT_EQ(judged(70'000, now + 3'540'001),
              "plan.grant $.path_grants[0].ttl_secs outlasts the exposure");
    grant.ttl_secs = 59;
    EXPECT_EQ(judged(70'000, now + 3'540'001), "");
}

TEST_F(ValidateExposure, ItsTimeCountsFromWhenThePlanWasAccepted) {
    auto plan = test::plan_of_version_2();
    plan.grants = std::vector{grant};
    plan.expires_at_ms = now + 60'000;
    const exposures_now here{ledger, *policy};
    const auto again = [&](std::uint64_t at, std::uint64_t accepted = now) {
        return said(validate_plan(plan, test::accepting_rules(), &here, at, accepted));
    };
    EXPECT_EQ(again(now), "");
    EXPECT_EQ(again(now + 59'999), "");
    grant.ttl_secs = 10;
    plan.grants = std::vector{grant};
    EXPECT_EQ(again(now + 9'999), "");
    EXPECT_EQ(again(now + 10'000),
              "plan.grant $.path_grants[0].ttl_secs has passed since the plan was accepted");
    EXPECT_EQ(again(now, now + 20'000), ""); // the clock was set back
}

TEST_F(ValidateExposure, WithoutExposuresAPlanMayHaveNoGrantsAndNoOther) {
    auto plan = test::plan_of_version_2();
    plan.grants = std::vector{grant};
    EXPECT_EQ(verdict(plan),
              "plan.exposures $.path_grants needs exposures, and none are configured");
    plan.grants = std::vector<exposure_grant>{};
    EXPECT_EQ(verdict(plan), "");
}

// --- what never starts ---

TEST(Startable, APlanOfATemplateWithALaunch) {
    auto rules = test::usual_rules();
    auto plan = test::usual_plan();
    const auto start = [&] { return said(check_startable(plan, rules)); };
    const auto prefix = std::string{"plan.start $."};
    EXPECT_EQ(start(), "");
    plan.egress_policy_id = "model-only";
    EXPECT_EQ(start(), "");
    rules.egress_policies.clear();
    EXPECT_EQ(start(), prefix + "egress_policy_id has no entry in egress_policies");
    plan.egress_policy_id = "deny-all";
    EXPECT_EQ(start(), "");
    rules.secret_mounts[0].runtime_id = "pi";
    EXPECT_EQ(start(),
              prefix + "secret_handles names a secret that is not mounted for the runtime");
    plan.secret_handles.clear();
    plan.grants = std::vector{test::workspace_grant()};
    EXPECT_EQ(start(), "");
    auto grant = test::workspace_grant();
    grant.materialization = materialization_kind::git_worktree;
    plan.grants = std::vector{grant};
    EXPECT_EQ(start(),
              prefix +
                  "path_grants[0].materialization is not copy, and only copies are written to");
    grant.access = access_kind::direct_write;
    plan.grants = std::vector{grant};
    EXPECT_EQ(start(), prefix + "path_grants[0].access is direct_write, and nothing writes to the "
                                "host itself");
    rules.runtime_templates[0].launch.reset();
    EXPECT_EQ(start(), prefix + "runtime_template_id is of a template that has no launch");
}

} // namespace
