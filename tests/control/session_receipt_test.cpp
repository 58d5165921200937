// From the end of a session to a receipt that journals take.
#include "control/receipt_scene.hpp"
#include <glove/control/session_receipt.hpp>
#include <gtest/gtest.h>

namespace {

using namespace glove;
using namespace control;
using namespace test;
using namespace std::chrono_literals;
using enum termination_cause;
using how = process_end::how;

class still_clock final : public sys::clock {
public:
    auto monotonic() const noexcept -> std::chrono::nanoseconds override { return now; }
    auto wall() const noexcept -> std::chrono::nanoseconds override { return 0ns; }
    std::chrono::nanoseconds now = 5s;
};
class fixed_meter final : public resource_meter {
public:
    auto cpu_us() -> result<std::uint64_t> override {
        if (broken) return fail(errc::io, "meter.cpu", "gone");
        return cpu;
    }
    auto state() -> result<resource_state> override { return says; }
    std::uint64_t cpu = 0;
    resource_state says;
    bool broken = false;
};

constexpr supervisor::resource_limits limits{1000, 64 * mib, 16, 2000, 2 * mib, mib};

struct ended {
    still_clock clock;
    fixed_meter meter;
    termination into;
    container::pty_account terminal{.output_bytes = 40, .ended = true, .drained = true};
    resource_watch watch = resource_watch::begin({limits, 1, &clock, &meter, &into}).value();

    auto settle(const process_end& end = {how::exited, 3}) -> settled_end {
        return control::settle(watch, terminal, end, into);
    }
};
auto facts() -> receipt_facts {
    return {.profile_digest = digits('c'),
            .backend_id = "linux-production:cgroup-v2-v1",
            .limits = limits,
            .started_at_ms = 1000,
            .finished_at_ms = 1750,
            .library_projections = {projection_at("skill-candidate", '3')},
            .retained_changes = {}};
}

TEST(SessionReceipt, AnExitIsWhatNothingCameBefore) {
    ended it;
    it.meter.cpu = 500'000;
    it.meter.says = {.peak_memory_bytes = mib, .peak_pids = 2, .disk_bytes = 4096};
    it.clock.now += 750ms;
    const auto end = it.settle();
    EXPECT_EQ(end.verdict, (termination_verdict{exited, 3}));
    EXPECT_EQ(end.observed, (observed_use{500, mib, 2, 750, 4096, 40}));
    EXPECT_FALSE(end.trouble);
    const auto receipt = receipt_of(facts(), end);
    ASSERT_TRUE(receipt) << receipt.error().detail;
    EXPECT_EQ(receipt->cause, exited);
    EXPECT_EQ(receipt->exit_code, 3U);
    EXPECT_EQ(receipt->mechanisms, linux_mechanisms());
    EXPECT_TRUE(receipt->independently_verified);
    EXPECT_EQ(decode_resource_receipt(encode(*receipt).value()).value(), *receipt);
}

TEST(SessionReceipt, WhatCameBeforeTheEndIsTheCause) {
    const auto cause_of = [](auto change, process_end end = {how::exited, 0}) {
        ended it;
        change(it);
        return it.settle(end).verdict.cause;
    };
    EXPECT_EQ(cause_of([](ended& it) { it.meter.cpu = 1'000'000; }), exited);
    EXPECT_EQ(cause_of([](ended& it) { it.meter.cpu = 1'000'001; }), cpu_time_limit);
    EXPECT_EQ(cause_of([](ended& it) { it.clock.now += 2s; }), exited);
    EXPECT_EQ(cause_of([](ended& it) { it.clock.now += 2s + 1ns; }), wall_time_limit);
    EXPECT_EQ(cause_of([](ended& it) { it.terminal.exceeded = true; }), terminal_output_limit);
    EXPECT_EQ(cause_of([](ended& it) { it.meter.says.pids_refused = 1; }), pid_limit);
    EXPECT_EQ(cause_of([](ended& it) { it.meter.says.disk_refused = true; }), disk_limit);
    const auto oom = [](ended& it) {
        it.meter.says.memory_kills = it.meter.says.memory_limit_met = 1;
    };
    EXPECT_EQ(cause_of(oom, {how::signaled, 0}), memory_limit);
    EXPECT_EQ(cause_of([](ended&) {}, {how::signaled, 0}), signaled);
    EXPECT_EQ(cause_of([](ended&) {}, {}), supervisor_error);
    // An earlier word stands against all of them.
    EXPECT_EQ(cause_of([&](ended& it) {
                  (void)it.into.note(wall_time_limit);
                  it.terminal.exceeded = true;
                  oom(it);
              }),
              wall_time_limit);
}

TEST(SessionReceipt, ATerminalThatWasNotDrainedIsNoExit) {
    for (const bool told : {true, false}) {
        ended it;
        it.terminal.drained = false;
        it.terminal.ended = told;
        const auto end = it.settle();
        EXPECT_EQ(end.verdict.cause, supervisor_error);
        ASSERT_TRUE(end.trouble);
        EXPECT_EQ(end.trouble->step, "session.drain");
        EXPECT_TRUE(receipt_of(facts(), end));
    }
}

TEST(SessionReceipt, AMeterThatFailsAtTheEndIsSaid) {
    ended it;
    it.meter.broken = true;
    const auto end = it.settle();
    EXPECT_EQ(end.verdict.cause, supervisor_error);
    ASSERT_TRUE(end.trouble);
    EXPECT_EQ(end.trouble->step, "meter.cpu");
    EXPECT_TRUE(receipt_of(facts(), end));
}

TEST(SessionReceipt, AClockThatWasSetBackEndsItWhereItBegan) {
    ended it;
    auto with = facts();
    with.finished_at_ms = 900;
    const auto receipt = receipt_of(with, it.settle());
    ASSERT_TRUE(receipt);
    EXPECT_EQ(receipt->finished_at_ms, 1000U);
}

TEST(SessionReceipt, WhatIsOfNoFormIsNotAReceipt) {
    ended it;
    const auto end = it.settle();
    auto with = facts();
    with.profile_digest = "?";
    EXPECT_FALSE(receipt_of(with, end));
    with = facts();
    with.started_at_ms = with.finished_at_ms = 0;
    EXPECT_FALSE(receipt_of(with, end));
    EXPECT_TRUE(receipt_of(facts(), end));
}

// A whole story: the evaluator sees what the transcript has long forgotten.
struct evaluation {
    evaluator_feed feed{transcript_evaluator::start(usual_fixture().assertions).value()};
    std::unique_ptr<container::transcript> text = container::transcript::create(8, {&feed}).value();

    auto finish(ended& it, std::string_view shown, bool whole = true)
        -> result<refinement_receipt> {
        if (!text->append(shown)) std::abort();
        text->finish(whole);
        it.terminal.output_bytes = text->count();
        it.terminal.drained = whole;
        const auto end = it.settle({how::exited, 0});
        GLOVE_TRY(auto evidence, feed.finish(evaluated(end, text->complete())));
        GLOVE_TRY(auto resource, receipt_of(facts(), end));
        return receipt_of(std::move(resource), refinement_plan(), std::move(evidence));
    }
};

TEST(SessionReceipt, TheEvaluatorSeesEveryByte) {
    ended it;
    const auto receipt =
        evaluation{}.finish(it, "all good, and more than there is room for, done\n");
    ASSERT_TRUE(receipt) << receipt.error().detail;
    EXPECT_EQ(receipt->status, evidence_status::valid_outcome);
    EXPECT_EQ(receipt->evaluated_outcome->metrics.at("passed"), 1);
    EXPECT_EQ(receipt->transcript.byte_count, receipt->resource.observed.terminal_output_bytes);
    EXPECT_EQ(decode_refinement_receipt(encode(*receipt).value()).value(), *receipt);
}

TEST(SessionReceipt, ALimitOverridesWhatTheTranscriptShows) {
    ended it;
    (void)it.into.note(cpu_time_limit);
    const auto receipt = evaluation{}.finish(it, "all good, done\n");
    ASSERT_TRUE(receipt);
    EXPECT_EQ(receipt->status, evidence_status::valid_outcome);
    EXPECT_EQ(receipt->evaluated_outcome->metrics.at("passed"), 0);
    EXPECT_EQ(receipt->evaluated_outcome->metrics.at("failed_assertions"), 2); // cause and status
}

TEST(SessionReceipt, HalfATranscriptAndOtherTextsAreNoEvidence) {
    ended cut;
    const auto half = evaluation{}.finish(cut, "all good, done\n", false);
    ASSERT_TRUE(half);
    EXPECT_EQ(half->status, evidence_status::invalid_outcome);
    EXPECT_FALSE(half->evaluated_outcome);
    ended odd;
    const auto no_text = evaluation{}.finish(odd, "all good, done\n\xff");
    ASSERT_TRUE(no_text);
    EXPECT_EQ(no_text->status, evidence_status::invalid_outcome);
}

TEST(SessionReceipt, OnlyAComparisonHasTheOtherKind) {
    const auto other = receipt_of(usual_receipt(), usual_plan(), usual_evidence());
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().step, "receipt.plan");
    // Evidence of another transcript than the one that was counted.
    EXPECT_FALSE(receipt_of(usual_receipt(), refinement_plan(), usual_evidence()));
}

} // namespace
