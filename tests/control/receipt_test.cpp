// Receipts and envelopes: digests that others compute, every row broken in every way, and what
// makes an envelope believed.
#include "control/receipt_record.hpp"
#include "control/refinement_fields.hpp"
#include "receipt_scene.hpp"
#include <functional>
#include <glove/control/protocol.hpp>
#include <glove/journal/format.hpp>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <support/malformed.hpp>
#include <wire/both_ways.hpp>

namespace {

using namespace glove;
using namespace glove::control;
using test::digits;
using wire::json::value;

template<class T> auto problem_of(const result<T>& out) -> std::optional<error> {
    if (out) return std::nullopt;
    return out.error();
}
template<class T> auto step_of(const result<T>& out) -> std::string {
    return out ? "" : std::string{out.error().step};
}
auto tree(const result<std::string>& text) -> value { return *wire::json::read(text.value()); }

// --- digests ---

TEST(Receipt, HasTheDigestsThatOthersCompute) {
    const auto key = test::usual_key();
    EXPECT_EQ(key.id(), "b97d6f8d2ae381761ea00f360c230cf75e8de5fdc6a8d25624a5c36b97f0d475");
    const auto first = test::sealed(test::usual_receipt(), key, test::beginning(key));
    EXPECT_EQ(first.receipt_digest,
              "cf4dfdc1627c93e00c10a83a780937dba2a9493c03f0f91843af49ee17ed11a4");
    EXPECT_EQ(first.this_hmac, "57bafec7db274bd24763fdbe4cfb680f6d19c46121bb79649ef3456532458f12");
}

TEST(Receipt, HasTheDigestsThatTheRulesGive) {
    EXPECT_EQ(receipt_digest(test::full_receipt()).value(),
              "dfafafe0ace3f8127136dde5cefacc65914f4e6171f0ff3794a03d6076713438");
    EXPECT_EQ(receipt_digest(test::remote_receipt()).value(),
              "362e0880bbd68fdafbff10d8e6b2cb5f312a9ec5d7f8482e8419e034affb3c8e");
    EXPECT_EQ(receipt_digest(test::usual_refinement()).value(),
              "d37d7c1b9540d5ca6df8252ddf0d42411bb25f0ae52284bb4b3770126b2f2068");
    EXPECT_EQ(receipt_digest(test::invalid_refinement()).value(),
              "13fd57f2ed1f38ac4366baf9d469908bb1df0a9d1c37c682616d1d012da6c23f");
    const auto key = test::usual_key();
    EXPECT_EQ(test::sealed(test::usual_refinement(), key, test::beginning(key)).this_hmac,
              "b32fdbd7f22db936867bcc34781bca51043839e71f5416420574552a80ac9155");
}

TEST(Receipt, TheOutcomeIsTheBytesThatOthersHash) {
    const refinement_outcome outcome{"sage.refinement-eval-outcome-v1",
                                     "canonical-json-utf8",
                                     {{"required_literals", 2},
                                      {"passed", 1},
                                      {"failed_assertions", 0},
                                      {"latency_us", 750'000},
                                      {"forbidden_literals", 1}}};
    const auto bytes = encode(outcome).value();
    EXPECT_EQ(bytes.size(), 187U);
    EXPECT_EQ(wire::to_hex(wire::sha256(bytes).value()),
              "44acc671ba02023607ab1ed73f0aee8382342625ba1fe4c7c5c09b9c63224111");
    EXPECT_EQ(test::usual_refinement().outcome.digest, wire::to_hex(wire::sha256(bytes).value()));
    EXPECT_EQ(test::invalid_refinement().outcome.digest,
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

template<class T>
void expect_all_different(const T& base, const std::vector<std::function<void(T&)>>& edits) {
    std::vector<std::string> seen{receipt_digest(base).value()};
    for (const auto& edit : edits) {
        auto other = base;
        edit(other);
        seen.push_back(receipt_digest(other).value());
    }
    auto sorted = seen;
    std::ranges::sort(sorted);
    EXPECT_TRUE(std::ranges::adjacent_find(sorted) == sorted.end()) << edits.size();
}

TEST(Receipt, TheDigestCoversEveryMember) {
    using r = resource_receipt;
    expect_all_different<r>(
        test::full_receipt(),
        {[](r& x) { x.profile_digest = digits('d'); },
         [](r& x) { x.backend = supervisor::backend_kind::apple_container; },
         [](r& x) { x.backend_id += "x"; },
         [](r& x) { ++x.configured_limits.cpu_time_ms; },
         [](r& x) { ++x.configured_limits.memory_bytes; },
         [](r& x) { ++x.configured_limits.pids; },
         [](r& x) { ++x.configured_limits.wall_time_ms; },
         [](r& x) { ++x.configured_limits.disk_bytes; },
         [](r& x) { ++x.configured_limits.terminal_output_bytes; },
         [](r& x) { x.mechanisms.cpu_time = mechanism::rlimit; },
         [](r& x) { x.mechanisms.memory = mechanism::rlimit; },
         [](r& x) { x.mechanisms.pids = mechanism::rlimit; },
         [](r& x) { x.mechanisms.wall_time = mechanism::rlimit; },
         [](r& x) { x.mechanisms.disk = mechanism::rlimit; },
         [](r& x) { x.mechanisms.terminal_output = mechanism::rlimit; },
         [](r& x) { ++x.mechanisms.receipt_schema_version; },
         [](r& x) { ++x.observed.cpu_time_ms; },
         [](r& x) { ++x.observed.peak_memory_bytes; },
         [](r& x) { ++x.observed.peak_pids; },
         [](r& x) { ++x.observed.wall_time_ms; },
         [](r& x) { ++x.observed.disk_bytes; },
         [](r& x) { ++x.observed.terminal_output_bytes; },
         [](r& x) { x.cause = termination_cause::signaled; },
         [](r& x) { x.exit_code.reset(); },
         [](r& x) { x.exit_code = 1; },
         [](r& x) { ++x.started_at_ms; },
         [](r& x) { ++x.finished_at_ms; },
         [](r& x) { x.library_projections.clear(); },
         [](r& x) { x.library_projections[0].projection_id += "x"; },
         [](r& x) { x.library_projections[0].destination_alias += "x"; },
         [](r& x) { x.library_projections[0].target_path += "x"; },
         [](r& x) { x.library_projections[0].content_digest = digits('9'); },
         [](r& x) { x.retained_changes.clear(); },
         [](r& x) { x.retained_changes[0].exposure_id += "x"; },
         [](r& x) { ++x.retained_changes[0].generation; },
         [](r& x) { x.retained_changes[0].scope_digest = digits('9'); },
         [](r& x) { x.retained_changes[0].source_identity_digest = digits('9'); },
         [](r& x) { x.retained_changes[0].baseline_tree_digest = digits('9'); },
         [](r& x) { x.retained_changes[0].staged_tree_digest = digits('9'); },
         [](r& x) { x.retained_changes[0].manifest_digest = digits('9'); },
         [](r& x) { ++x.retained_changes[0].created; },
         [](r& x) { ++x.retained_changes[0].modified; },
         [](r& x) { ++x.retained_changes[0].renamed; },
         [](r& x) { ++x.retained_changes[0].removed; },
         [](r& x) { ++x.retained_changes[0].before_bytes; },
         [](r& x) { ++x.retained_changes[0].after_bytes; }});
    using e = refinement_receipt;
    expect_all_different<e>(test::usual_refinement(),
                            {[](e& x) { x.runtime_template_id += "x"; },
                             [](e& x) { ++x.resource.finished_at_ms; },
                             [](e& x) { x.status = evidence_status::invalid_outcome; },
                             [](e& x) { x.variant = supervisor::refinement_variant::base; },
                             [](e& x) { x.fixture.projection_id += "x"; },
                             [](e& x) { x.base.content_digest = digits('9'); },
                             [](e& x) { x.candidate.destination_alias += "x"; },
                             [](e& x) { x.matched_context_digest = digits('9'); },
                             [](e& x) { x.outcome.schema += "x"; },
                             [](e& x) { x.outcome.encoding += "x"; },
                             [](e& x) { x.outcome.digest = digits('9'); },
                             [](e& x) { ++x.outcome.byte_length; },
                             [](e& x) { x.evaluated_outcome.reset(); },
                             [](e& x) { x.evaluated_outcome->metrics["passed"] = 0; },
                             [](e& x) { x.transcript.schema += "x"; },
                             [](e& x) { x.transcript.digest = digits('9'); },
                             [](e& x) { ++x.transcript.byte_count; },
                             [](e& x) { x.transcript.complete = false; },
                             [](e& x) { x.evaluator.schema += "x"; },
                             [](e& x) { x.evaluator.fixture_complete = false; },
                             [](e& x) { x.evaluator.transcript_utf8 = false; },
                             [](e& x) { ++x.evaluator.required_literals; },
                             [](e& x) { ++x.evaluator.forbidden_literals; }});
}

// --- form ---

TEST(Receipt, EachRowIsEnforced) {
    const auto whole = tree(encode(test::full_receipt()));
    const auto judge = [](const std::string& t) { return problem_of(decode_resource_receipt(t)); };
    test::expect_each_to_be_refused(resource_receipt_fields, whole, "", judge);
    test::expect_each_to_be_refused(supervisor::limits_fields, whole, "configured_limits", judge);
    test::expect_each_to_be_refused(mechanisms_fields, whole, "mechanisms", judge);
    test::expect_each_to_be_refused(observed_fields, whole, "observed", judge);
    test::expect_each_to_be_refused(projection_receipt_fields, whole, "library_projections/0",
                                    judge);
    test::expect_each_to_be_refused(retained_change_fields, whole, "retained_changes/1", judge);
}

TEST(Receipt, EachRowOfARefinementIsEnforced) {
    const auto whole = tree(encode(test::usual_refinement()));
    const auto judge = [](const std::string& t) {
        return problem_of(decode_refinement_receipt(t));
    };
    test::expect_each_to_be_refused(refinement_receipt_fields, whole, "", judge);
    test::expect_each_to_be_refused(resource_receipt_fields, whole, "resource_receipt", judge,
                                    "$.resource_receipt.retained_changes: one");
    test::expect_each_to_be_refused(supervisor::projection_fields, whole, "candidate", judge);
    test::expect_each_to_be_refused(outcome_reference_fields, whole, "outcome", judge);
    test::expect_each_to_be_refused(outcome_fields, whole, "evaluated_outcome", judge);
    test::expect_each_to_be_refused(transcript_fields, whole, "transcript", judge);
    test::expect_each_to_be_refused(evaluator_fields, whole, "evaluator", judge);
}

TEST(Receipt, EachRowOfAnEnvelopeIsEnforced) {
    const auto key = test::usual_key();
    const auto resource = test::sealed(test::full_receipt(), key, test::beginning(key));
    test::expect_each_to_be_refused(
        resource_envelope_fields, tree(encode(resource)), "",
        [](const std::string& t) { return problem_of(decode_resource_envelope(t)); });
    const auto refinement = test::sealed(test::usual_refinement(), key, test::beginning(key));
    test::expect_each_to_be_refused(
        refinement_envelope_fields, tree(encode(refinement)), "",
        [](const std::string& t) { return problem_of(decode_refinement_envelope(t)); });
}

TEST(Receipt, StandsOnTheWireAsOthersReadIt) {
    const auto text = encode(test::usual_receipt()).value();
    EXPECT_EQ(
        text,
        R"({"schema_version":1,"profile_digest":")" + digits('c') +
            R"(","backend":"linux_production","backend_id":"linux-production:cgroup-v2-v1",)"
            R"("observation_authority":"local_enforcement","independently_verified":true,)"
            R"("configured_limits":{"cpu_time_ms":60000,"memory_bytes":536870912,"pids":128,)"
            R"("wall_time_ms":120000,"disk_bytes":1073741824,"terminal_output_bytes":16777216},)"
            R"("mechanisms":{"cpu_time":"cgroup_v2","memory":"cgroup_v2","pids":"cgroup_v2",)"
            R"("wall_time":"watchdog","disk":"filesystem_quota",)"
            R"("terminal_output":"byte_counter","receipt_schema_version":1},)"
            R"("observed":{"cpu_time_ms":500,"peak_memory_bytes":16777216,"peak_pids":2,)"
            R"("wall_time_ms":750,"disk_bytes":4096,"terminal_output_bytes":1024},)"
            R"("termination_cause":"exited","exit_code":0,"started_at_ms":1000,)"
            R"("finished_at_ms":1750,"library_projections":[],"retained_changes":[]})");
}

TEST(Receipt, DecodesToWhatWasEncoded) {
    for (const auto& receipt :
         {test::usual_receipt(), test::full_receipt(), test::remote_receipt()})
        EXPECT_EQ(decode_resource_receipt(encode(receipt).value()).value(), receipt);
    for (const auto& receipt : {test::usual_refinement(), test::invalid_refinement()})
        EXPECT_EQ(decode_refinement_receipt(encode(receipt).value()).value(), receipt);
}

// --- rules that no row states ---

template<class T> struct broken {
    std::string step;
    std::function<void(T&)> how;
};
// The allowed twin of each is `good` itself.
template<class T> void expect_refused(const T& good, const std::vector<broken<T>>& cases) {
    ASSERT_TRUE(encode(good)) << encode(good).error().detail;
    std::size_t number = 0;
    for (const auto& [step, how] : cases) {
        auto bad = good;
        how(bad);
        EXPECT_EQ(step_of(encode(bad)), step) << number;
        ++number;
    }
}

TEST(Receipt, AnAuthorityClaimsOnlyWhatIsItsOwn) {
    using r = resource_receipt;
    expect_refused<r>(test::full_receipt(),
                      {{"receipt.authority",
                        [](r& x) { x.authority = observation_authority::trusted_remote_claim; }},
                       {"receipt.authority", [](r& x) { x.independently_verified = false; }},
                       {"receipt.authority", [](r& x) {
                            x.backend = supervisor::backend_kind::remote_linux_container;
                        }}});
    expect_refused<r>(
        test::remote_receipt(),
        {{"receipt.authority",
          [](r& x) { x.authority = observation_authority::local_enforcement; }},
         {"receipt.authority", [](r& x) { x.independently_verified = true; }},
         {"receipt.authority", [](r& x) { x.retained_changes = {test::some_changes("a")}; }},
         {"receipt.authority", [](r& x) { x.backend = {}; }}});
}

TEST(Receipt, EndsOnce) {
    using r = resource_receipt;
    expect_refused<r>(test::usual_receipt(),
                      {{"receipt.cause", [](r& x) { x.exit_code.reset(); }},
                       {"receipt.cause", [](r& x) { x.cause = termination_cause::signaled; }},
                       {"receipt.times", [](r& x) { x.finished_at_ms = x.started_at_ms - 1; }},
                       {"wire.range", [](r& x) { x.exit_code = 256; }}});
    auto same = test::usual_receipt();
    same.finished_at_ms = same.started_at_ms;
    same.exit_code = 255;
    EXPECT_TRUE(encode(same));
}

TEST(Receipt, ProjectionsAreInOrderAndApart) {
    using r = resource_receipt;
    expect_refused<r>(
        test::full_receipt(),
        {{"receipt.order",
          [](r& x) { std::swap(x.library_projections[0], x.library_projections[1]); }},
         {"receipt.order", [](r& x) { x.library_projections[1] = x.library_projections[0]; }},
         {"receipt.target", [](r& x) { x.library_projections[1].content_digest = digits('c'); }},
         {"receipt.target",
          [](r& x) { // the same file under another name
              x.library_projections[1].content_digest = digits('8');
              x.library_projections[1].target_path = x.library_projections[0].target_path;
          }},
         {"receipt.target",
          [](r& x) { // below the other
              x.library_projections[1].target_path =
                  x.library_projections[0].target_path + "/" + digits('b') + ".json";
          }},
         {"receipt.target",
          [](r& x) { x.library_projections[0].target_path = "/x" + digits('8') + ".json"; }}});
}

TEST(Receipt, ChangesAreInOrderAndBounded) {
    using r = resource_receipt;
    const auto disk = test::full_receipt().configured_limits.disk_bytes;
    const auto sum = [](std::uint64_t renamed) {
        return [=](r& x) {
            auto& c = x.retained_changes[1];
            c.created = c.modified = c.removed = 20'000;
            c.renamed = renamed;
        };
    };
    expect_refused<r>(
        test::full_receipt(),
        {{"receipt.order", [](r& x) { std::swap(x.retained_changes[0], x.retained_changes[1]); }},
         {"receipt.order", [](r& x) { x.retained_changes[1].exposure_id = "proj"; }},
         {"receipt.changes", sum(40'001)},
         {"", sum(40'000)},
         {"receipt.changes", [&](r& x) { x.retained_changes[0].before_bytes = disk + 1; }},
         {"receipt.changes", [&](r& x) { x.retained_changes[0].after_bytes = disk + 1; }},
         {"", [&](r& x) {
              x.retained_changes[0].before_bytes = x.retained_changes[0].after_bytes = disk;
          }}});
}

TEST(Receipt, EvidenceIsWhatTheTranscriptAllows) {
    using e = refinement_receipt;
    expect_refused<e>(
        test::usual_refinement(),
        {{"refinement.evidence", [](e& x) { x.evaluated_outcome.reset(); }},
         {"refinement.evidence", [](e& x) { x.status = evidence_status::invalid_outcome; }},
         {"refinement.evidence", [](e& x) { x.transcript.complete = false; }},
         {"refinement.evidence", [](e& x) { x.evaluator.transcript_utf8 = false; }},
         {"refinement.evidence", [](e& x) { x.evaluator.fixture_complete = false; }},
         {"refinement.outcome", [](e& x) { x.outcome.digest = digits('9'); }},
         {"refinement.outcome", [](e& x) { ++x.outcome.byte_length; }},
         {"refinement.outcome", [](e& x) { x.evaluated_outcome->metrics["passed"] = 0; }},
         {"refinement.transcript", [](e& x) { ++x.transcript.byte_count; }},
         {"refinement.projections", [](e& x) { x.base.projection_id = "fixture"; }},
         {"refinement.projections", [](e& x) { x.candidate.projection_id = "fixture"; }},
         {"refinement.projections", [](e& x) { x.candidate.projection_id = "skill-base"; }},
         {"refinement.backend",
          [](e& x) { x.resource.backend = supervisor::backend_kind::apple_container; }},
         {"receipt.times", [](e& x) { x.resource.finished_at_ms = 1; }}});
    expect_refused<e>(
        test::invalid_refinement(),
        {{"refinement.evidence", [](e& x) { x.status = evidence_status::valid_outcome; }},
         {"refinement.evidence",
          [](e& x) { x.evaluated_outcome = test::usual_refinement().evaluated_outcome; }},
         {"refinement.evidence", [](e& x) { x.transcript.complete = true; }},
         {"refinement.outcome", [](e& x) { x.outcome = test::usual_refinement().outcome; }},
         {"", [](e& x) { x.evaluator.transcript_utf8 = false; }}});
}

TEST(Receipt, MetricsAreBounded) {
    auto outcome = *test::usual_refinement().evaluated_outcome;
    outcome.metrics.clear();
    for (int i = 0; i < 256; ++i) outcome.metrics["m" + std::to_string(i)] = INT64_MIN;
    EXPECT_TRUE(encode(outcome));
    outcome.metrics["one-more"] = INT64_MAX;
    EXPECT_EQ(step_of(encode(outcome)), "wire.length");
    for (const auto* name : {"", "Capital", "1st", "a b", "a\n"}) {
        outcome.metrics = {{name, 1}};
        EXPECT_FALSE(encode(outcome)) << name;
    }
    outcome.metrics = {{std::string(64, 'a'), 1}};
    EXPECT_TRUE(encode(outcome));
    outcome.metrics = {{std::string(65, 'a'), 1}};
    EXPECT_EQ(step_of(encode(outcome)), "wire.length");
}

// --- envelopes ---

TEST(Receipt, AnEnvelopeIsTheNextOneOrNothing) {
    const auto key = test::usual_key();
    const auto start = test::beginning(key);
    const auto first = test::sealed(test::full_receipt(), key, start);
    const auto after = verify(first, key, start).value();
    EXPECT_EQ(after, (receipt_anchor{key.id(), 1, first.this_hmac}));
    const auto second = test::sealed(test::usual_refinement(), key, after);
    EXPECT_EQ(verify(second, key, after).value().sequence, 2U);
    using e = resource_envelope;
    const auto refused = [&](const std::function<void(e&)>& how, const receipt_anchor& anchor) {
        auto bad = first;
        how(bad);
        return step_of(verify(bad, key, anchor));
    };
    const auto as_it_is = [](e&) {};
    EXPECT_EQ(refused(as_it_is, start), "");
    EXPECT_EQ(refused([](e& x) { ++x.sequence; }, start), "receipt.chain");
    EXPECT_EQ(refused(as_it_is, after), "receipt.chain");
    EXPECT_EQ(refused(as_it_is, {key.id(), 0, digits('1')}), "receipt.chain");
    EXPECT_EQ(refused(as_it_is, {key.id(), UINT64_MAX, digits('0')}), "receipt.chain");
    EXPECT_EQ(refused(as_it_is, test::beginning(test::other_key())), "receipt.key");
    EXPECT_EQ(refused([](e& x) { x.key_id = digits('1'); }, start), "receipt.key");
    EXPECT_EQ(refused([](e& x) { x.session_id = "other"; }, start), "receipt.hmac");
    EXPECT_EQ(refused([](e& x) { x.controller_plan_digest = digits('b'); }, start), "receipt.hmac");
    EXPECT_EQ(refused([](e& x) { x.this_hmac = digits('b'); }, start), "receipt.hmac");
    EXPECT_EQ(refused([](e& x) { x.receipt_digest = digits('b'); }, start), "receipt.digest");
    EXPECT_EQ(refused([](e& x) { ++x.receipt.observed.disk_bytes; }, start), "receipt.digest");
    EXPECT_EQ(step_of(verify(first, test::other_key(), start)), "receipt.key");
}

// One kind does not pass as the other: the domains differ.
TEST(Receipt, TheKindsHaveHmacsOfTheirOwn) {
    const auto key = test::usual_key();
    auto one = test::sealed(test::usual_receipt(), key, test::beginning(key));
    auto two = test::sealed(test::usual_refinement(), key, test::beginning(key));
    two.receipt_digest = one.receipt_digest;
    EXPECT_NE(envelope_hmac(one, key).value(), envelope_hmac(two, key).value());
}

TEST(Receipt, AnyChangedByteOfAnEnvelopeIsRefused) {
    const auto key = test::usual_key();
    const auto start = test::beginning(key);
    const auto text = encode(test::sealed(test::full_receipt(), key, start)).value();
    for (std::size_t i = 0; i < text.size(); ++i)
        for (const char c : {'0', '1', 'f', static_cast<char>(text[i] ^ 1)}) {
            auto other = text;
            other[i] = c;
            if (other == text) continue;
            const auto read = decode_resource_envelope(other);
            EXPECT_TRUE(!read || !verify(*read, key, start)) << i << ' ' << c;
        }
}

TEST(Receipt, APageIsOneRunOfTheChain) {
    const auto key = test::usual_key();
    receipt_page page;
    page.local_anchor = test::beginning(key);
    for (int i = 0; i < 15; ++i) {
        if (i % 2 == 0) {
            page.envelopes.push_back(test::sealed(test::usual_receipt(), key, page.local_anchor));
            page.local_anchor = verify(page.envelopes.back(), key, page.local_anchor).value();
        } else {
            page.refinement_envelopes.push_back(
                test::sealed(test::usual_refinement(), key, page.local_anchor));
            page.local_anchor =
                verify(page.refinement_envelopes.back(), key, page.local_anchor).value();
        }
    }
    const auto text = encode(page).value();
    const auto back = decode_receipt_page(text).value();
    EXPECT_EQ(back.envelopes, page.envelopes);
    EXPECT_EQ(back.refinement_envelopes, page.refinement_envelopes);
    EXPECT_EQ(back.local_anchor, page.local_anchor);
    test::expect_each_to_be_refused(page_fields, tree(text), "", [](const std::string& t) {
        return problem_of(decode_receipt_page(t));
    });
    test::expect_each_to_be_refused(
        anchor_fields, tree(text), "local_anchor",
        [](const std::string& t) { return problem_of(decode_receipt_page(t)); });
    const auto refused = [&](const std::function<void(receipt_page&)>& how) {
        auto bad = page;
        how(bad);
        return step_of(encode(bad));
    };
    using p = receipt_page;
    EXPECT_EQ(refused([](p& x) { x.has_more = true; }), "receipt.page");
    EXPECT_EQ(refused([](p& x) { ++x.local_anchor.sequence; }), "receipt.page");
    EXPECT_EQ(refused([](p& x) { --x.local_anchor.sequence; }), "receipt.order");
    EXPECT_EQ(refused([](p& x) { x.local_anchor.key_id = digits('1'); }), "receipt.key");
    EXPECT_EQ(refused([](p& x) { x.refinement_envelopes.pop_back(); }), "receipt.page");
    EXPECT_EQ(refused([](p& x) { std::swap(x.envelopes[0], x.envelopes[1]); }), "receipt.order");
    EXPECT_EQ(refused([](p& x) { x.envelopes[0].receipt_digest = digits('1'); }), "receipt.digest");
    EXPECT_EQ(refused([&](p& x) { // sixteen
                  x.envelopes.push_back(test::sealed(test::usual_receipt(), key, x.local_anchor));
                  ++x.local_anchor.sequence;
              }),
              "receipt.page");
    EXPECT_EQ(refused([](p& x) { ++x.local_anchor.sequence, x.has_more = true; }), "");
    p empty;
    empty.local_anchor = test::beginning(key);
    EXPECT_TRUE(encode(empty));
}

// --- whatever it holds ---

auto one_of_digests() -> std::string {
    return *rc::gen::container<std::string>(64,
                                            rc::gen::elementOf(std::string{"0123456789abcdef"}));
}
auto any_ident() -> std::string {
    auto out =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string{"abcxyzABCZ0189-_.:"}));
    return "i" + out.substr(0, 100);
}
auto any_number() -> std::uint64_t { return *rc::gen::inRange<std::uint64_t>(1, UINT64_MAX); }

auto any_receipt() -> resource_receipt {
    resource_receipt out;
    const bool remote = *rc::gen::arbitrary<bool>();
    out.profile_digest = one_of_digests();
    out.backend = remote ? supervisor::backend_kind::remote_linux_container
                         : supervisor::backend_kind::linux_production;
    out.backend_id = any_ident();
    out.authority = static_cast<observation_authority>(remote);
    out.independently_verified = !remote;
    out.configured_limits = {any_number(), any_number(), *rc::gen::inRange(1U, UINT32_MAX),
                             any_number(), any_number(), any_number()};
    const auto by = [] { return static_cast<mechanism>(*rc::gen::inRange(0, 6)); };
    out.mechanisms = {by(), by(), by(), by(), by(), by(), 1};
    out.observed = {any_number(), any_number(), *rc::gen::arbitrary<std::uint32_t>(),
                    any_number(), any_number(), any_number()};
    out.cause = static_cast<termination_cause>(*rc::gen::inRange(0, 9));
    if (out.cause == termination_cause::exited) out.exit_code = *rc::gen::inRange(0U, 256U);
    out.started_at_ms = *rc::gen::inRange<std::uint64_t>(1, 1U << 30U);
    out.finished_at_ms = out.started_at_ms + *rc::gen::inRange<std::uint64_t>(0, 1U << 30U);
    for (int i = 0, n = *rc::gen::inRange(0, 4); i < n; ++i) {
        const auto digest = one_of_digests();
        const auto* const place = *rc::gen::arbitrary<bool>() ? "/opt/a \"b\"/" : "/\xc3\xa4/";
        out.library_projections.push_back({static_cast<char>('a' + i) + any_ident(), any_ident(),
                                           place + std::to_string(i) + "/" + digest + ".json",
                                           digest});
    }
    for (int i = 0, n = remote ? 0 : *rc::gen::inRange(0, 4); i < n; ++i) {
        const auto count = [] { return *rc::gen::inRange<std::uint64_t>(0, 25'001); };
        const auto most = out.configured_limits.disk_bytes;
        out.retained_changes.push_back({static_cast<char>('a' + i) + any_ident(), any_number(),
                                        one_of_digests(), one_of_digests(), one_of_digests(),
                                        one_of_digests(), one_of_digests(), count(), count(),
                                        count(), count(), any_number() % most, most});
    }
    return out;
}

TEST(Receipt, WhateverItHoldsItComesBackAndIsBelieved) {
    const auto key = test::usual_key();
    EXPECT_TRUE(rc::check([&] {
        const auto receipt = any_receipt();
        receipt_anchor after{key.id(), *rc::gen::inRange<std::uint64_t>(1, UINT64_MAX - 1),
                             one_of_digests()};
        const auto envelope = test::sealed(receipt, key, after, any_ident());
        const auto text = encode(envelope);
        RC_ASSERT(text.has_value());
        const auto back = decode_resource_envelope(*text);
        RC_ASSERT(back.has_value());
        RC_ASSERT(*back == envelope);
        RC_ASSERT(verify(*back, key, after).has_value());
        RC_ASSERT(encode(*back).value() == *text);
    }));
}

TEST(Receipt, WhateverTheTranscriptTheRefinementComesBack) {
    const auto key = test::usual_key();
    EXPECT_TRUE(rc::check([&] {
        auto eye = transcript_evaluator::start(test::usual_fixture().assertions).value();
        const auto bytes = *rc::gen::arbitrary<std::string>();
        RC_ASSERT(eye.feed(bytes).has_value());
        const bool drained = *rc::gen::arbitrary<bool>();
        const auto evidence =
            std::move(eye).finish({termination_cause::exited, 0, any_number(), drained}).value();
        const auto envelope =
            test::sealed(test::refinement_with(evidence), key, test::beginning(key));
        const auto text = encode(envelope);
        RC_ASSERT(text.has_value());
        RC_ASSERT(decode_refinement_envelope(*text).value() == envelope);
        RC_ASSERT(verify(envelope, key, test::beginning(key)).has_value());
    }));
}

// --- records of the journal ---

struct tagged {
    std::string kind;
    std::optional<resource_envelope> resource;
    std::optional<refinement_envelope> refinement;
};
constexpr wire::word<std::string_view> kind_words[] = {
    {"resource_enforcement_v1", "resource_enforcement_v1"},
    {"refinement_evaluation_v1", "refinement_evaluation_v1"}};
constexpr auto tagged_fields = wire::table(
    wire::row<&tagged::kind, wire::choice<kind_words>{}>("kind"),
    wire::row<&tagged::resource, wire::record<resource_envelope_fields>{}>("resource"),
    wire::row<&tagged::refinement, wire::record<refinement_envelope_fields>{}>("refinement"));

// By a tree, and by writing it again.
auto judged_by_tree(std::string_view text) -> result<chained_receipt> {
    GLOVE_TRY(const auto tree,
              wire::json::read(text, {.bytes = journal::receipts.most.record_bytes}));
    chained_receipt out;
    if (tree.find("kind") == nullptr) {
        GLOVE_TRY(out.envelope, wire::decode(tree, resource_envelope_fields));
        out.bare = true;
    } else {
        GLOVE_TRY(auto in, wire::decode(tree, tagged_fields));
        if (in.resource.has_value() == in.refinement.has_value() ||
            in.resource.has_value() != (in.kind == kind_words[0].name))
            return fail(errc::corrupt, "receipt.kind",
                        "the envelope is not of the kind that is named");
        if (in.resource) out.envelope = *std::move(in.resource);
        else out.envelope = *std::move(in.refinement);
    }
    GLOVE_TRY(const auto canonical, encode(out));
    if (canonical != text)
        return fail(errc::corrupt, "receipt.form", "the record is not in its canonical form");
    return out;
}

// What is taken from the text is what its tree says, and so is every complaint.
TEST(Receipt, IsReadFromItsTextAsFromATree) {
    const auto check = [](std::string_view text) {
        const auto mine = decode_chained_receipt(text);
        const auto other = judged_by_tree(text);
        ASSERT_EQ(mine.has_value(), other.has_value()) << text;
        if (mine) EXPECT_EQ(*mine, *other) << text;
        else EXPECT_TRUE(test::same(mine.error(), other.error())) << text << mine.error().detail;
    };
    const auto key = test::usual_key();
    auto receipt = test::usual_receipt();
    receipt.library_projections = {test::projection_at("sage-core", 'b')};
    const auto resource = test::sealed(receipt, key, test::beginning(key));
    const chained_receipt all[] = {
        {resource},
        {resource, true},
        {test::sealed(test::usual_refinement(), key, test::beginning(key))},
        {test::sealed(test::invalid_refinement(), key, test::beginning(key))}};
    for (const auto& one : all) {
        const auto text = encode(one).value();
        const bool taken = one.bare ? wire::take_text(text, resource_envelope_fields).has_value()
                                    : wire::take_text(text, tagged_fields).has_value();
        EXPECT_TRUE(taken) << text;
        check(text);
        check(text + " ");
        test::damaged(text, 1, check);
    }
}

} // namespace
