// Fixtures and the evaluator: strict bytes, digests that the rules give, literals and characters
// across any cut of the stream, and the outcome.
#include "control/fixture_fields.hpp"
#include "control/literal_matcher.hpp"
#include "receipt_scene.hpp"
#include <functional>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <support/malformed.hpp>

namespace {

using namespace glove;
using namespace glove::control;
using test::digits;

template<class T> auto step_of(const result<T>& out) -> std::string {
    return out ? "" : std::string{out.error().step};
}

auto smallest_fixture() -> refinement_fixture {
    auto out = test::usual_fixture();
    out.module.reset();
    out.model = {{}, "model-1", {}, {}, "small", 1};
    out.assertions = {termination_cause::signaled, {}, {}, {}, {}};
    return out;
}

TEST(Fixture, ComesBackToTheByte) {
    for (const auto& fixture : {test::usual_fixture(), smallest_fixture()}) {
        const auto text = encode(fixture).value();
        EXPECT_EQ(decode_refinement_fixture(text).value(), fixture);
        // Any other way of writing the same thing is refused.
        EXPECT_EQ(step_of(decode_refinement_fixture(text + "\n")), "fixture.form");
        EXPECT_EQ(step_of(decode_refinement_fixture(" " + text)), "fixture.form");
    }
    auto other = encode(smallest_fixture()).value();
    other.insert(other.size() - 1, R"(,"module":null)");
    EXPECT_FALSE(decode_refinement_fixture(other));
    auto escaped = encode(test::usual_fixture()).value();
    escaped.replace(escaped.find("run 1"), 5, "run\\u00201");
    EXPECT_EQ(step_of(decode_refinement_fixture(escaped)), "fixture.form");
}

TEST(Fixture, EachRowIsEnforced) {
    const auto whole = *wire::json::read(encode(test::usual_fixture()).value());
    const auto judge = [](const std::string& text) -> std::optional<error> {
        auto out = decode_refinement_fixture(text);
        if (out) return std::nullopt;
        return out.error();
    };
    test::expect_each_to_be_refused(fixture_fields, whole, "", judge);
    test::expect_each_to_be_refused(model_fields, whole, "model", judge);
    test::expect_each_to_be_refused(module_fields, whole, "module", judge);
    test::expect_each_to_be_refused(assertions_fields, whole, "assertions", judge,
                                    "$.assertions.required_transcript_literals: as many");
}

TEST(Fixture, ListsAreSortedAndExitGoesWithExited) {
    const auto refused = [](const std::function<void(refinement_fixture&)>& how) {
        auto bad = test::usual_fixture();
        how(bad);
        return step_of(encode(bad));
    };
    using f = refinement_fixture;
    EXPECT_EQ(refused([](f&) {}), "");
    EXPECT_EQ(refused([](f& x) { x.assertions.expected_exit_code.reset(); }), "fixture.exit");
    EXPECT_EQ(
        refused([](f& x) { x.assertions.expected_termination = termination_cause::signaled; }),
        "fixture.exit");
    using list = std::vector<std::string>;
    for (const auto& bad : {list{"b", "a"}, list{"a", "a"}}) {
        EXPECT_EQ(refused([&](f& x) { x.module->include_paths = bad; }), "fixture.order");
        EXPECT_EQ(refused([&](f& x) { x.module->exclude_paths = bad; }), "fixture.order");
        EXPECT_EQ(refused([&](f& x) { x.module->languages = bad; }), "fixture.order");
        EXPECT_EQ(refused([&](f& x) { x.module->frameworks = bad; }), "fixture.order");
        EXPECT_EQ(refused([&](f& x) { x.module->package_managers = bad; }), "fixture.order");
        EXPECT_EQ(refused([&](f& x) { x.assertions.required_transcript_literals = bad; }),
                  "fixture.order");
        EXPECT_EQ(refused([&](f& x) { x.assertions.forbidden_transcript_literals = bad; }),
                  "fixture.order");
    }
}

TEST(Fixture, LiteralsAreBoundedTogether) {
    auto fixture = test::usual_fixture();
    auto& required = fixture.assertions.required_transcript_literals;
    auto& forbidden = fixture.assertions.forbidden_transcript_literals;
    required.clear();
    for (char c = 'a'; c < 'a' + 15; ++c) required.emplace_back(4096, c);
    forbidden = {std::string(4096, 'z')};
    const auto text = encode(fixture);
    ASSERT_TRUE(text) << text.error().detail; // 65536 bytes
    EXPECT_TRUE(decode_refinement_fixture(*text));
    forbidden.insert(forbidden.begin(), "y");
    EXPECT_EQ(step_of(encode(fixture)), "fixture.literals");
}

TEST(Fixture, IsBoundedInBytes) {
    auto fixture = test::usual_fixture();
    for (auto* const list : {&fixture.module->include_paths, &fixture.module->exclude_paths}) {
        list->clear();
        for (int i = 0; i < 256; ++i) // escaped to twice their length
            list->push_back(std::to_string(1000 + i) + std::string(400, '"'));
    }
    EXPECT_EQ(step_of(encode(fixture)), "fixture.form");
    fixture.module->exclude_paths.clear();
    EXPECT_TRUE(decode_refinement_fixture(encode(fixture).value()));
    EXPECT_EQ(step_of(decode_refinement_fixture(std::string(most_fixture_bytes + 1, ' '))),
              "json.size");
}

TEST(Fixture, HasTheContextDigestThatTheRulesGive) {
    const auto plan = supervisor::refinement_context_digest(test::refinement_plan()).value();
    EXPECT_EQ(plan, "c1f44d1b5817fdea4f3ac8148a581bfc44f63681272c6aa63ff63513c12b32f7");
    EXPECT_EQ(matched_context_digest(test::usual_fixture(), plan).value(),
              "25c1ba8a40201a2f517a6915d653984e74acbaba24578a26524ad1a94b0e0d2a");
    EXPECT_EQ(matched_context_digest(smallest_fixture(), plan).value(),
              "db31bc39c76b6928213fa97b2f900499cccbab61f2126dc3265256d710fce4d7");
    // The same for both halves of a pair.
    auto other = test::usual_fixture();
    other.session_id = "session-2";
    other.variant = supervisor::refinement_variant::base;
    other.skill_projection_id = "skill-base";
    other.skill_projection_digest = digits('2');
    other.matched_context_digest = digits('9');
    EXPECT_EQ(matched_context_digest(other, plan).value(),
              matched_context_digest(test::usual_fixture(), plan).value());
}

TEST(Fixture, TheContextCoversEverythingElse) {
    using f = refinement_fixture;
    const std::vector<std::function<void(f&)>> edits{
        [](f&) {},
        [](f& x) { x.schema += "x"; },
        [](f& x) { x.evaluation_run_id += "x"; },
        [](f& x) { x.pair_id += "x"; },
        [](f& x) { x.proposal_digest = digits('9'); },
        [](f& x) { x.base_projection_digest = digits('9'); },
        [](f& x) { x.candidate_projection_digest = digits('9'); },
        [](f& x) { x.fixture_id += "x"; },
        [](f& x) { x.fixture_digest = digits('9'); },
        [](f& x) { x.dataset_ref += "x"; },
        [](f& x) { x.dataset_fingerprint += "x"; },
        [](f& x) { ++x.seed; },
        [](f& x) { x.model.provider.reset(); },
        [](f& x) { x.model.model_id += "x"; },
        [](f& x) { x.model.model_family.reset(); },
        [](f& x) { x.model.model_revision.reset(); },
        [](f& x) { x.model.tier += "x"; },
        [](f& x) { ++x.model.normalizer_version; },
        [](f& x) { x.harness += "x"; },
        [](f& x) { x.module.reset(); },
        [](f& x) { x.module->repository_id += "x"; },
        [](f& x) { x.module->repository_tree = digits('9'); },
        [](f& x) { x.module->module_id = digits('9'); },
        [](f& x) { x.module->label += "x"; },
        [](f& x) { x.module->include_paths.clear(); },
        [](f& x) { x.module->exclude_paths.clear(); },
        [](f& x) { x.module->languages.clear(); },
        [](f& x) { x.module->frameworks.clear(); },
        [](f& x) { x.module->package_managers.clear(); },
        [](f& x) { ++x.module->detector_version; },
        [](f& x) { x.assertions.expected_termination = termination_cause::signaled; },
        [](f& x) { x.assertions.expected_exit_code = 1; },
        [](f& x) { x.assertions.required_transcript_literals.pop_back(); },
        [](f& x) { x.assertions.forbidden_transcript_literals.clear(); },
        [](f& x) { x.assertions.max_latency_ms.reset(); },
        [](f& x) { ++*x.assertions.max_latency_ms; }};
    std::vector<std::string> seen{
        matched_context_digest(test::usual_fixture(), digits('1')).value()};
    for (const auto& edit : edits) {
        auto other = test::usual_fixture();
        edit(other);
        seen.push_back(matched_context_digest(other, digits('0')).value());
    }
    std::ranges::sort(seen);
    EXPECT_TRUE(std::ranges::adjacent_find(seen) == seen.end());
}

// A plan and a fixture that belong together.
struct pair_of {
    supervisor::session_plan plan = test::refinement_plan();
    refinement_fixture fixture = test::usual_fixture();
    std::string text;

    void match() {
        auto& wanted = *plan.refinement;
        wanted.matched_context_digest =
            matched_context_digest(fixture, supervisor::refinement_context_digest(plan).value())
                .value();
        fixture.matched_context_digest = wanted.matched_context_digest;
    }
    void name() {
        text = encode(fixture).value();
        auto& wanted = *plan.refinement;
        wanted.fixture.content_digest = wire::to_hex(wire::sha256(text).value());
    }
};

TEST(Fixture, BelongsToOnePlanAndOneSession) {
    pair_of good;
    good.match();
    good.name();
    const auto read = fixture_for(good.text, "session-1", good.plan);
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(*read, good.fixture);
    EXPECT_EQ(step_of(fixture_for(good.text, "session-2", good.plan)), "fixture.match");
    EXPECT_EQ(step_of(fixture_for(good.text, "session-1", test::usual_plan())), "fixture.match");
    const auto refused = [&](const std::function<void(pair_of&)>& how, std::string_view member) {
        auto bad = good;
        how(bad);
        const auto out = fixture_for(bad.text, "session-1", bad.plan);
        EXPECT_EQ(step_of(out), "fixture.match") << member;
        EXPECT_TRUE(!out && out.error().detail.starts_with(member)) << out.error().detail;
    };
    using p = pair_of;
    refused([](p& x) { x.fixture.variant = {}, x.name(); }, "$.variant");
    refused([](p& x) { x.fixture.base_projection_digest = digits('9'), x.match(), x.name(); },
            "$.base_projection_digest");
    refused([](p& x) { x.fixture.candidate_projection_digest = digits('9'), x.match(), x.name(); },
            "$.candidate_projection_digest");
    refused([](p& x) { x.fixture.skill_projection_id = "skill-base", x.name(); },
            "$.skill_projection_id");
    refused([](p& x) { x.fixture.skill_projection_digest = digits('2'), x.name(); },
            "$.skill_projection_digest");
    refused([](p& x) { x.fixture.matched_context_digest = digits('9'), x.name(); },
            "$.matched_context_digest");
    // What both of them say, and is not so.
    refused(
        [](p& x) {
            x.fixture.matched_context_digest = digits('9');
            x.plan.refinement->matched_context_digest = digits('9');
            x.name();
        },
        "$.matched_context_digest");
    refused([](p& x) { ++x.plan.limits.pids; }, "$.matched_context_digest");
    refused([](p& x) { x.plan.refinement->fixture.content_digest = digits('9'); }, "$ does not");
}

// --- the evaluator ---

auto evaluate(const fixture_assertions& expected, const std::vector<std::string>& pieces,
              const evaluated_end& end) -> refinement_evidence {
    auto eye = transcript_evaluator::start(expected).value();
    for (const auto& piece : pieces) EXPECT_TRUE(eye.feed(piece));
    return std::move(eye).finish(end).value();
}
const evaluated_end good_end{termination_cause::exited, 0, 750, true};

auto metric(const refinement_evidence& of, const char* name) -> std::int64_t {
    return of.evaluated_outcome.value().metrics.at(name);
}

TEST(Evaluator, MeasuresWhatTheOutcomeSays) {
    const auto evidence = test::usual_evidence();
    EXPECT_EQ(evidence.status, evidence_status::valid_outcome);
    EXPECT_EQ(encode(*evidence.evaluated_outcome).value(),
              R"({"schema":"sage.refinement-eval-outcome-v1","encoding":"canonical-json-utf8",)"
              R"("metrics":{"failed_assertions":0,"forbidden_literals":1,"latency_us":750000,)"
              R"("passed":1,"required_literals":2}})");
    EXPECT_EQ(evidence.transcript.byte_count, 19U);
    EXPECT_EQ(evidence.transcript.digest,
              wire::to_hex(wire::sha256("all good, and done\n").value()));
    EXPECT_EQ(evidence.evaluator,
              (evaluator_evidence{"glove.declarative-refinement-evaluator-v1", true, true, 2, 1}));
}

TEST(Evaluator, CountsEachFailedAssertion) {
    const auto expected = test::usual_fixture().assertions;
    struct row {
        std::string text;
        evaluated_end end;
        std::int64_t failed;
    };
    const std::string good = "all good done\n";
    using enum termination_cause;
    for (const auto& [text, end, failed] :
         {row{good, good_end, 0}, row{"all good", good_end, 1}, row{"", good_end, 2},
          row{good + "panic", good_end, 1}, row{good, {exited, 1, 750, true}, 1},
          row{good, {exited, 0, 1000, true}, 0}, row{good, {exited, 0, 1001, true}, 1},
          row{good, {memory_limit, {}, 750, true}, 2}, row{good, {signaled, {}, 5000, true}, 3},
          row{"panic", {signaled, {}, 5000, true}, 6}}) {
        const auto evidence = evaluate(expected, {text}, end);
        EXPECT_EQ(metric(evidence, "failed_assertions"), failed) << text;
        EXPECT_EQ(metric(evidence, "passed"), failed == 0 ? 1 : 0) << text;
    }
}

TEST(Evaluator, LatencyEndsWhereTheNumbersEnd) {
    const auto latency = [](std::uint64_t ms) {
        return metric(evaluate(smallest_fixture().assertions, {}, {{}, {}, ms, true}),
                      "latency_us");
    };
    EXPECT_EQ(latency(INT64_MAX / 1000), INT64_MAX / 1000 * 1000);
    EXPECT_EQ(latency(INT64_MAX / 1000 + 1), INT64_MAX);
    EXPECT_EQ(latency(UINT64_MAX), INT64_MAX);
}

TEST(Evaluator, EvidenceIsInvalidUnlessAllWasSeenAndIsUtf8) {
    const auto expected = test::usual_fixture().assertions;
    auto cut = good_end;
    cut.drained = false;
    for (const auto& evidence : {evaluate(expected, {"all good done\n"}, cut),
                                 evaluate(expected, {"all good done\n\xff"}, good_end),
                                 evaluate(expected, {"all good done\n\xc3"}, good_end)}) {
        EXPECT_EQ(evidence.status, evidence_status::invalid_outcome);
        EXPECT_FALSE(evidence.evaluated_outcome);
        EXPECT_EQ(evidence.outcome.byte_length, 0U);
        EXPECT_TRUE(encode(test::refinement_with(evidence)));
    }
}

TEST(Evaluator, WhatAProgramSaysOfItselfIsText) {
    const std::string forged = encode(*test::usual_evidence().evaluated_outcome).value();
    const auto evidence = evaluate(test::usual_fixture().assertions, {forged}, good_end);
    EXPECT_EQ(metric(evidence, "failed_assertions"), 2);
    EXPECT_EQ(metric(evidence, "passed"), 0);
}

TEST(Evaluator, RefusesAssertionsThatNoFixtureMayHave) {
    auto expected = test::usual_fixture().assertions;
    std::ranges::reverse(expected.required_transcript_literals);
    EXPECT_EQ(step_of(transcript_evaluator::start(expected)), "fixture.order");
    expected.required_transcript_literals = {""};
    EXPECT_EQ(step_of(transcript_evaluator::start(expected)), "wire.length");
}

TEST(Evaluator, EachLiteralIsFoundWhereverTheStreamIsCut) {
    const std::vector<std::string> literals{"a", "aab", "abab", "b\xc3\xa4", "babab", "ab"};
    const std::string text = "xaababab\xc3\xa4y";
    for (std::size_t first = 0; first <= text.size(); ++first)
        for (std::size_t second = first; second <= text.size(); ++second) {
            literal_matcher seen{literals};
            seen.feed(text.substr(0, first));
            seen.feed(text.substr(first, second - first));
            seen.feed(text.substr(second));
            EXPECT_EQ(seen.found(), literals.size()) << first << ' ' << second;
        }
}

auto in_pieces(const std::string& text) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
        const auto size = *rc::gen::inRange<std::size_t>(1, text.size() - at + 1);
        out.push_back(text.substr(at, size));
        at += size;
    }
    return out;
}

TEST(Evaluator, FindsWhatASearchFinds) {
    EXPECT_TRUE(rc::check([] {
        const auto few = rc::gen::container<std::string>(rc::gen::elementOf(std::string{"ab\n"}));
        const auto literals = *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty(few));
        const auto text = *few;
        auto distinct = literals;
        std::ranges::sort(distinct);
        distinct.erase(std::ranges::unique(distinct).begin(), distinct.end());
        const auto wanted = std::ranges::count_if(
            distinct, [&](const auto& one) { return text.find(one) != std::string::npos; });
        literal_matcher seen{literals};
        for (const auto& piece : in_pieces(text)) seen.feed(piece);
        RC_ASSERT(seen.found() == static_cast<std::size_t>(wanted));
    }));
}

TEST(Evaluator, JudgesUtf8AsAWholeHoweverItIsCut) {
    const auto expected = smallest_fixture().assertions;
    EXPECT_TRUE(rc::check([&] {
        const auto some = rc::gen::elementOf(std::vector<std::string>{
            "a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xed\xa0\x80",
            "\xc0\x80", "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xe0\x80\x80", "\xc3", "\x80"});
        std::string text;
        for (const auto& one : *rc::gen::container<std::vector<std::string>>(some)) text += one;
        const auto evidence = evaluate(expected, in_pieces(text), good_end);
        RC_ASSERT(evidence.evaluator.transcript_utf8 == wire::is_utf8(text));
    }));
}

} // namespace
