// The form of a plan: every row of its tables broken in every way, one canonical text, and digests
// that other implementations compute, too.
#include "plan_scene.hpp"
#include "supervisor/plan_fields.hpp"
#include <glove/wire/crypto.hpp>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <support/malformed.hpp>
#include <wire/both_ways.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;
using test::digits;
using test::mib;
using wire::json::value;

const auto* const usual_digest = "22531fcb58eb4ca5d4a5cd924793dbe0543106eb9650bca1e3943a30154ba6cf";

auto text_of(const session_plan& plan) -> std::string { return canonical_text(plan).value(); }
// What may be written is of good form, and nothing else is.
auto written(const session_plan& plan) -> result<std::string> {
    auto out = canonical_text(plan);
    const auto form = check_form(plan);
    EXPECT_EQ(form.has_value(), out.has_value());
    EXPECT_TRUE(form || out || form.error().step == out.error().step);
    return out;
}
auto tree_of(const session_plan& plan) -> value { return *wire::json::read(text_of(plan)); }
auto content_digest(const session_plan& plan) -> std::string {
    return seal(plan, digits('c')).value().digests.content;
}
auto judge(const std::string& text) -> std::optional<error> {
    const auto out = decode_plan(text);
    if (out) return std::nullopt;
    return out.error();
}

TEST(Plan, HasTheDigestsThatOthersCompute) {
    auto plan = test::usual_plan();
    EXPECT_EQ(text_of(plan).size(), 669U);
    EXPECT_EQ(content_digest(plan), usual_digest);
    plan.grants = std::vector{test::workspace_grant()};
    EXPECT_EQ(text_of(plan).size(), 802U);
    EXPECT_EQ(content_digest(plan),
              "828b0dc2fa2b5765617a23eecb3a76dc72973d5a758ad725aa55d6a75d528f33");
    auto second = test::usual_plan();
    second.schema_version = 2;
    second.grants = std::vector<exposure_grant>{};
    second.library_projections.clear();
    second.secret_handles.clear();
    EXPECT_EQ(content_digest(second),
              "3393d1fb51f44624de7b8964f8aa78a70f732785759ecccfef966b47992d9f67");
}

TEST(Plan, AnyOrderAndSpaceGiveOneText) {
    auto members = *tree_of(test::usual_plan()).as_object();
    std::reverse(members.begin(), members.end());
    const auto back = decode_plan("\n " + wire::json::to_text(members) + "\t");
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, test::usual_plan());
    EXPECT_EQ(content_digest(*back), usual_digest);
}

auto second_version() -> session_plan {
    auto out = test::usual_plan();
    out.schema_version = 2;
    out.grants = std::vector{exposure_grant{.exposure_id = "code",
                                            .generation = 3,
                                            .scope_digest = digits('d'),
                                            .access = access_kind::read,
                                            .materialization = materialization_kind::bind,
                                            .max_bytes = 0,
                                            .ttl_secs = 60,
                                            .cleanup_policy = cleanup_kind::retain}};
    return out;
}

// What is taken from the text is what its tree says, and so is every complaint; a plan is unsealed
// from its one text only.
TEST(Plan, IsReadFromItsTextAsFromATree) {
    const auto check = [](std::string_view text) {
        const auto mine = decode_plan(text);
        const auto other = [&]() -> result<session_plan> {
            GLOVE_TRY(const auto tree, wire::json::read(text));
            return plan_of(tree);
        }();
        ASSERT_EQ(mine.has_value(), other.has_value()) << text;
        if (!mine) {
            EXPECT_TRUE(test::same(mine.error(), other.error())) << text << mine.error().detail;
            return;
        }
        EXPECT_EQ(*mine, *other) << text;
        const plan_digests recorded{digits('c'), wire::sha256_hex(text).value()};
        const auto back = unseal(text, recorded);
        ASSERT_EQ(back.has_value(), text_of(*other) == text) << text;
        if (!back) EXPECT_EQ(back.error().step, "plan.canonical") << text;
        else EXPECT_EQ(back->text, text);
    };
    auto first = test::usual_plan();
    first.grants = std::vector{test::workspace_grant()};
    auto refinement = first;
    refinement.refinement = refinement_request{.fixture = {"f", digits('1'), "d"},
                                               .base = {"b", digits('2'), "d"},
                                               .candidate = {"c", digits('3'), "d"},
                                               .matched_context_digest = digits('4')};
    for (const auto& plan : {test::usual_plan(), first, second_version(), refinement}) {
        const auto text = text_of(plan);
        const bool second = plan.schema_version == 2;
        const auto taken =
            second ? wire::take_text(text, plan_v2_fields) : wire::take_text(text, plan_v1_fields);
        ASSERT_TRUE(taken && taken->is_as_encoded) << text;
        check(text);
        check(" " + text);
        test::damaged(text, 1, check);
        // The other version, with the grants of this one.
        auto other = text;
        other.replace(other.find(second ? '2' : '1'), 1, second ? "1" : "2");
        check(other);
    }
}

TEST(Plan, ARefinementThatIsNullIsAbsent) {
    const auto tree = test::with_member(tree_of(test::usual_plan()), "", "refinement", value{});
    EXPECT_EQ(decode_plan(wire::json::to_text(tree)), test::usual_plan());
}

// --- what is refused ---

// With the other version, a plan's grants are of another table.
constexpr auto other_version = "$.schema_version: the ";

TEST(Plan, EachRowOfVersion1IsEnforced) {
    auto plan = test::refinement_plan();
    plan.grants = std::vector{test::workspace_grant()};
    plan.secret_handles = {"codex-token"};
    const auto whole = tree_of(plan);
    test::expect_each_to_be_refused(plan_v1_fields, whole, "", judge, other_version);
    test::expect_each_to_be_refused(alias_grant_fields, whole, "path_grants/0", judge);
    test::expect_each_to_be_refused(projection_fields, whole, "library_projections/1", judge);
    test::expect_each_to_be_refused(limits_fields, whole, "limits", judge);
    test::expect_each_to_be_refused(refinement_fields, whole, "refinement", judge);
    for (const auto* part : {"refinement/fixture", "refinement/base", "refinement/candidate"})
        test::expect_each_to_be_refused(projection_fields, whole, part, judge);
}

TEST(Plan, EachRowOfVersion2IsEnforced) {
    auto plan = test::refinement_plan();
    plan.schema_version = 2;
    plan.grants = std::vector{test::project_grant()};
    plan.secret_handles = {"codex-token"};
    const auto whole = tree_of(plan);
    test::expect_each_to_be_refused(plan_v2_fields, whole, "", judge, other_version);
    test::expect_each_to_be_refused(exposure_grant_fields, whole, "path_grants/0", judge);
}

TEST(Plan, AGrantOfTheOtherVersionIsNotKnown) {
    auto first = test::usual_plan();
    first.grants = std::vector{test::workspace_grant()};
    EXPECT_EQ(judge(wire::json::to_text(test::with_member(tree_of(first), "", "schema_version", 2)))
                  ->step,
              "wire.unknown");
    EXPECT_EQ(judge(wire::json::to_text(test::with_member(tree_of(test::plan_of_version_2()), "",
                                                          "schema_version", 1)))
                  ->step,
              "wire.unknown");
    auto mixed = test::plan_of_version_2();
    mixed.schema_version = 1;
    EXPECT_EQ(written(mixed).error().step, "wire.choice");
    mixed = test::usual_plan();
    mixed.schema_version = 2;
    EXPECT_EQ(written(mixed).error().step, "wire.choice");
    mixed.schema_version = 3;
    EXPECT_EQ(written(mixed).error().step, "wire.range");
}

TEST(Plan, WhatAControllerMustNotSendIsNotKnown) {
    for (const auto* name : {"argv", "arguments", "environment", "host_path", "secrets",
                             "prompt_ref", "executable_path"})
        EXPECT_EQ(judge(wire::json::to_text(test::with_member(tree_of(test::usual_plan()), "", name,
                                                              wire::json::array{})))
                      ->step,
                  "wire.unknown")
            << name;
}

TEST(Plan, ListsMustBeInStrictlyIncreasingOrderOfBytes) {
    const auto refused = [](const session_plan& plan) {
        const auto out = written(plan);
        return out ? std::string{} : std::string{out.error().step} + " " + out.error().detail;
    };
    const std::string wrong = " does not come after the one before it";
    auto plan = test::usual_plan();
    plan.secret_handles = {"B", "a"}; // capitals come first
    EXPECT_EQ(refused(plan), "");
    for (const auto& bad : {std::vector<std::string>{"a", "B"}, {"a", "a"}}) {
        plan.secret_handles = bad;
        EXPECT_EQ(refused(plan), "plan.order $.secret_handles[1]" + wrong);
    }
    plan = test::usual_plan();
    plan.library_projections.push_back(plan.library_projections.front());
    EXPECT_EQ(refused(plan), "plan.order $.library_projections[1]" + wrong);
    plan = test::usual_plan();
    auto grant = test::workspace_grant();
    plan.grants = std::vector{grant, grant};
    EXPECT_EQ(refused(plan), "plan.order $.path_grants[1]" + wrong);
    plan = test::plan_of_version_2();
    plan.grants = std::vector{test::project_grant(), test::project_grant()};
    EXPECT_EQ(refused(plan), "plan.order $.path_grants[1]" + wrong);
    // What the encoder refuses, the decoder refuses.
    auto text = text_of(test::usual_plan());
    const std::string one = R"(["codex-token"])";
    text.replace(text.find(one), one.size(), R"(["codex-token","alpha"])");
    EXPECT_EQ(judge(text)->step, "plan.order");
    text.replace(text.find("alpha"), 5, "delta");
    EXPECT_FALSE(judge(text));
}

TEST(Plan, ANameThatIsADirectoryItselfIsRefused) {
    for (const std::string name : {".", ".."}) {
        auto plan = test::usual_plan();
        auto grant = test::workspace_grant();
        grant.alias = name;
        plan.grants = std::vector{grant};
        EXPECT_EQ(written(plan).error().step, "wire.grammar");
        auto second = test::project_grant();
        second.exposure_id = name;
        plan.grants = std::vector{second};
        plan.schema_version = 2;
        EXPECT_EQ(written(plan).error().step, "wire.grammar");
        second.exposure_id = name + "a";
        plan.grants = std::vector{second};
        EXPECT_TRUE(written(plan));
    }
}

template<class T, class Make> auto many(std::size_t count, Make make) -> std::vector<T> {
    std::vector<T> out;
    for (std::size_t i = 0; i < count; ++i) {
        auto name = std::to_string(i);
        out.push_back(make("n" + std::string(4 - name.size(), '0') + name));
    }
    return out;
}

TEST(Plan, HoldsAsMuchAsItMayAndNoMore) {
    for (const std::size_t over : {0U, 1U}) {
        auto plan = test::usual_plan();
        plan.grants = many<alias_grant>(64 + over, [](std::string name) {
            auto grant = test::workspace_grant();
            grant.alias = std::move(name);
            return grant;
        });
        EXPECT_EQ(written(plan).has_value(), over == 0);
        plan = test::usual_plan();
        plan.library_projections = many<library_projection>(128 + over, [](std::string name) {
            return library_projection{std::move(name), digits('b'), "libraries"};
        });
        EXPECT_EQ(written(plan).has_value(), over == 0);
        plan = test::usual_plan();
        plan.secret_handles = many<std::string>(32 + over, [](std::string name) { return name; });
        EXPECT_EQ(written(plan).has_value(), over == 0);
    }
}

TEST(Plan, AComplaintNeverQuotesAValue) {
    auto text = text_of(test::usual_plan());
    text.replace(text.find("codex-token"), 11, "s3cret/tok!");
    const auto problem = judge(text);
    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->detail, "$.secret_handles[0] does not have the form ident");
}

// --- properties ---

auto ident_of(std::size_t most = 12) -> rc::Gen<std::string> {
    return rc::gen::map(rc::gen::nonEmpty(rc::gen::container<std::string>(
                            rc::gen::elementOf(std::string{"abcxyzABCZ0189-_.:"}))),
                        [most](std::string name) {
                            name.resize(std::min(name.size(), most));
                            return name == "." || name == ".." ? std::string{"dots"} : name;
                        });
}
auto digest_of() -> rc::Gen<std::string> {
    return rc::gen::container<std::string>(64, rc::gen::elementOf(std::string{"0123456789abcdef"}));
}
auto any_projection() -> library_projection { return {*ident_of(), *digest_of(), *ident_of()}; }
auto positive_number() -> std::uint64_t { return *rc::gen::inRange<std::uint64_t>(1, UINT64_MAX); }
template<class T, class Key> void sort_strictly(std::vector<T>& list, Key key) {
    std::sort(list.begin(), list.end(), [&](const T& a, const T& b) { return key(a) < key(b); });
    list.erase(std::unique(list.begin(), list.end(),
                           [&](const T& a, const T& b) { return key(a) == key(b); }),
               list.end());
}
template<class T, class Make> auto some(Make make) -> std::vector<T> {
    std::vector<T> out(*rc::gen::inRange<std::size_t>(0, 5));
    for (auto& item : out) item = make();
    return out;
}

auto any_plan() -> session_plan {
    session_plan out;
    out.schema_version = static_cast<std::uint8_t>(*rc::gen::inRange(1, 3));
    out.runtime_id = *ident_of(128);
    out.runtime_template_id = *ident_of(128);
    out.adapter_command_digest = *digest_of();
    out.sandbox_backend = static_cast<backend_kind>(*rc::gen::inRange(0, 4));
    out.egress_policy_id = *ident_of();
    out.tool_policy_id = *ident_of();
    const auto access = [] { return static_cast<access_kind>(*rc::gen::inRange(0, 4)); };
    const auto form = [] { return static_cast<materialization_kind>(*rc::gen::inRange(0, 4)); };
    const auto end = [] { return static_cast<cleanup_kind>(*rc::gen::inRange(0, 2)); };
    if (out.schema_version == 1) {
        auto list = some<alias_grant>([&] {
            auto name = *ident_of();
            std::replace(name.begin(), name.end(), ':', '_');
            return alias_grant{
                name, access(), form(), *rc::gen::arbitrary<std::uint64_t>(), positive_number(),
                end()};
        });
        sort_strictly(list, [](const auto& g) { return g.alias; });
        out.grants = list;
    } else {
        auto list = some<exposure_grant>([&] {
            return exposure_grant{*ident_of(),
                                  positive_number(),
                                  *digest_of(),
                                  access(),
                                  form(),
                                  *rc::gen::arbitrary<std::uint64_t>(),
                                  positive_number(),
                                  end()};
        });
        sort_strictly(list, [](const auto& g) { return g.exposure_id; });
        out.grants = list;
    }
    out.library_projections = some<library_projection>(any_projection);
    sort_strictly(out.library_projections, [](const auto& p) { return p.projection_id; });
    out.secret_handles = some<std::string>([] { return *ident_of(); });
    sort_strictly(out.secret_handles, [](const auto& s) { return s; });
    out.limits = {positive_number(), positive_number(), *rc::gen::inRange<std::uint32_t>(1, 99),
                  positive_number(), positive_number(), positive_number()};
    out.policy_revision = *rc::gen::arbitrary<std::uint64_t>();
    out.expires_at_ms = *rc::gen::arbitrary<std::uint64_t>();
    if (*rc::gen::arbitrary<bool>())
        out.refinement =
            refinement_request{1,
                               static_cast<refinement_variant>(*rc::gen::inRange(0, 2)),
                               any_projection(),
                               any_projection(),
                               any_projection(),
                               *digest_of()};
    return out;
}

TEST(Plan, WhatIsEncodedDecodesToTheSamePlanAndText) {
    EXPECT_TRUE(rc::check([] {
        const auto plan = any_plan();
        const auto text = written(plan);
        RC_ASSERT(text.has_value());
        const auto back = decode_plan(*text);
        RC_ASSERT(back.has_value());
        RC_ASSERT(*back == plan);
        RC_ASSERT(written(*back).value() == *text);
    }));
}

TEST(Plan, EveryMemberIsPartOfTheDigest) {
    std::vector<std::string> seen;
    const auto note = [&](session_plan plan) { seen.push_back(content_digest(plan)); };
    auto base = test::refinement_plan();
    base.grants = std::vector{test::workspace_grant()};
    base.secret_handles = {"codex-token"};
    note(base);
    const auto change = [&](auto edit) {
        auto plan = base;
        edit(plan);
        note(plan);
    };
    change([](auto& p) { p.runtime_id += "x"; });
    change([](auto& p) { p.runtime_template_id += "x"; });
    change([](auto& p) { p.adapter_command_digest = digits('9'); });
    change([](auto& p) { p.sandbox_backend = backend_kind::apple_container; });
    change([](auto& p) { p.egress_policy_id += "x"; });
    change([](auto& p) { p.tool_policy_id += "x"; });
    const auto grant = [&](auto edit) {
        change([&](auto& p) { edit(std::get<0>(p.grants).front()); });
    };
    grant([](auto& g) { g.alias += "x"; });
    grant([](auto& g) { g.access = access_kind::read; });
    grant([](auto& g) { g.materialization = materialization_kind::bind; });
    grant([](auto& g) { ++g.max_bytes; });
    grant([](auto& g) { ++g.ttl_secs; });
    grant([](auto& g) { g.cleanup_policy = cleanup_kind::retain; });
    change([](auto& p) { p.library_projections.front().projection_id += "x"; });
    change([](auto& p) { p.library_projections.front().content_digest = digits('9'); });
    change([](auto& p) { p.library_projections.front().destination_alias += "x"; });
    change([](auto& p) { p.secret_handles.front() += "x"; });
    change([](auto& p) { ++p.limits.cpu_time_ms; });
    change([](auto& p) { ++p.limits.memory_bytes; });
    change([](auto& p) { ++p.limits.pids; });
    change([](auto& p) { ++p.limits.wall_time_ms; });
    change([](auto& p) { ++p.limits.disk_bytes; });
    change([](auto& p) { ++p.limits.terminal_output_bytes; });
    change([](auto& p) { ++p.policy_revision; });
    change([](auto& p) { ++p.expires_at_ms; });
    change([](auto& p) { p.refinement->variant = refinement_variant::base; });
    change([](auto& p) { p.refinement->fixture.projection_id += "x"; });
    change([](auto& p) { p.refinement->base.content_digest = digits('9'); });
    change([](auto& p) { p.refinement->candidate.destination_alias += "x"; });
    change([](auto& p) { p.refinement->matched_context_digest = digits('9'); });
    note(test::plan_of_version_2());
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

// --- binding ---

TEST(Plan, TheControllersDigestIsCheckedInFormAndKept) {
    const auto sealed = seal(test::usual_plan(), digits('c'));
    ASSERT_TRUE(sealed);
    EXPECT_EQ(sealed->digests, (plan_digests{digits('c'), usual_digest}));
    EXPECT_EQ(sealed->text, text_of(test::usual_plan()));
    for (const auto& bad : {std::string{}, std::string(63, 'c'), std::string(65, 'c'), digits('C'),
                            digits('g'), "sha256:" + digits('c')})
        EXPECT_EQ(seal(test::usual_plan(), bad).error().step, "plan.controller_digest") << bad;
}

TEST(Plan, AsItCameItIsSealedAsItsCanonicalText) {
    const auto text = text_of(test::usual_plan());
    auto escaped = text;
    escaped.replace(escaped.find("schema"), 1, "\\u0073");
    for (const auto& came : {text, " " + text, escaped}) {
        const auto sealed = seal_text(came, digits('c'));
        ASSERT_TRUE(sealed) << came;
        EXPECT_EQ(sealed->text, text) << came;
        EXPECT_EQ(sealed->plan, test::usual_plan()) << came;
        EXPECT_EQ(sealed->digests, (plan_digests{digits('c'), usual_digest})) << came;
        EXPECT_EQ(seal_text(came, "c").error().step, "plan.controller_digest") << came;
    }
    EXPECT_EQ(seal_text(text.substr(1), digits('c')).error().step, "json.syntax");
}

TEST(Plan, ARecordedPlanMustBeTheOneThatItsDigestsName) {
    const auto text = text_of(test::usual_plan());
    const plan_digests recorded{digits('c'), usual_digest};
    EXPECT_EQ(unseal(text, recorded)->plan, test::usual_plan());
    EXPECT_EQ(unseal(text, {digits('c'), digits('0')}).error().step, "plan.content_digest");
    EXPECT_EQ(unseal(text, {"c", usual_digest}).error().step, "plan.controller_digest");
    EXPECT_EQ(unseal(" " + text, recorded).error().code, errc::corrupt);
    EXPECT_EQ(unseal(text.substr(1), recorded).error().step, "json.syntax");
}

TEST(Plan, TwoBindingsAreTheSameOnlyInBothDigests) {
    const plan_digests bound{digits('c'), digits('d')};
    EXPECT_TRUE(require_same(bound, bound));
    EXPECT_EQ(require_same(bound, {digits('0'), digits('d')}).error().step,
              "plan.controller_digest");
    const auto other = require_same(bound, {digits('c'), digits('0')});
    EXPECT_EQ(other.error().step, "plan.content_digest");
    EXPECT_EQ(other.error().code, errc::conflict);
}

TEST(Plan, TheContextOfARefinementHasTheDigestThatItsRuleGives) {
    const auto plan = test::refinement_plan();
    EXPECT_EQ(refinement_context_digest(plan).value(),
              "c1f44d1b5817fdea4f3ac8148a581bfc44f63681272c6aa63ff63513c12b32f7");
    EXPECT_EQ(refinement_context_digest(test::usual_plan()).error().step, "plan.refinement");
    std::vector<std::string> seen{refinement_context_digest(plan).value()};
    const auto change = [&](auto edit) {
        auto other = plan;
        edit(other);
        seen.push_back(refinement_context_digest(other).value());
    };
    change([](auto& p) { p.runtime_id += "x"; });
    change([](auto& p) { p.runtime_template_id += "x"; });
    change([](auto& p) { p.adapter_command_digest = digits('9'); });
    change([](auto& p) { p.sandbox_backend = backend_kind::apple_container; });
    change([](auto& p) { p.egress_policy_id += "x"; });
    change([](auto& p) { p.tool_policy_id += "x"; });
    change([](auto& p) { p.secret_handles = {"x"}; });
    change([](auto& p) { ++p.limits.pids; });
    change([](auto& p) { ++p.policy_revision; });
    change([](auto& p) { p.refinement->base.content_digest = digits('9'); });
    change([](auto& p) { p.refinement->candidate.destination_alias += "x"; });
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
    // The variant, the fixture and the answer itself are no part of what is matched.
    auto same = plan;
    same.refinement->variant = refinement_variant::base;
    same.refinement->fixture.content_digest = digits('9');
    same.refinement->matched_context_digest = digits('9');
    ++same.expires_at_ms;
    EXPECT_EQ(refinement_context_digest(same).value(), refinement_context_digest(plan).value());
}

} // namespace
