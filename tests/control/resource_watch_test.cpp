// The watch over loads that are made up: no processor is burnt, and time is what the test says.
#include <glove/control/resource_watch.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace {

using namespace glove;
using namespace control;
using namespace std::chrono_literals;
using enum termination_cause;
using std::chrono::nanoseconds;

class stepped_clock final : public sys::clock {
public:
    auto monotonic() const noexcept -> nanoseconds override { return now; }
    auto wall() const noexcept -> nanoseconds override { return 0ns; }
    nanoseconds now = 1000s;
};

class made_up_meter final : public resource_meter {
public:
    auto cpu_us() -> result<std::uint64_t> override {
        ++cpu_looks;
        if (broken) return fail(errc::io, "meter.cpu", "gone");
        return static_cast<std::uint64_t>(used.count() / 1000);
    }
    auto state() -> result<resource_state> override {
        ++state_looks;
        if (broken) return fail(errc::io, "meter.state", "gone");
        return says;
    }
    nanoseconds used = 77s; // before the session
    resource_state says;
    bool broken = false;
    int cpu_looks = 0, state_looks = 0;
};

constexpr std::uint32_t most_pids = 16;

struct scene {
    stepped_clock clock;
    made_up_meter meter;
    termination into;
    std::optional<resource_watch> watch;

    auto begin(supervisor::resource_limits limits = {1000, 1 << 20, most_pids, 2000, 1 << 20,
                                                     1 << 20},
               unsigned cpus = 1) -> resource_watch& {
        watch = resource_watch::begin({limits, cpus, &clock, &meter, &into}).value();
        return *watch;
    }
    void pass(nanoseconds time, nanoseconds cpu = 0ns) {
        clock.now += time;
        meter.used += cpu;
    }
    [[nodiscard]] auto cause() const -> std::optional<termination_cause> {
        const auto v = into.verdict();
        return v ? std::optional{v->cause} : std::nullopt;
    }
};

TEST(ResourceWatch, EveryLimitMustBeSet) {
    scene it;
    const auto step_of = [&](auto change) -> std::string {
        resource_watch::wish with{
            {1000, 1 << 20, 16, 2000, 1 << 20, 1 << 20}, 1, &it.clock, &it.meter, &it.into};
        change(with);
        const auto begun = resource_watch::begin(with);
        return begun ? "" : std::string{begun.error().step};
    };
    EXPECT_EQ(step_of([](auto&) {}), "");
    EXPECT_EQ(step_of([](auto& w) { w.limits.cpu_time_ms = 0; }), "watch.limits");
    EXPECT_EQ(step_of([](auto& w) { w.limits.memory_bytes = 0; }), "watch.limits");
    EXPECT_EQ(step_of([](auto& w) { w.limits.pids = 0; }), "watch.limits");
    EXPECT_EQ(step_of([](auto& w) { w.limits.wall_time_ms = 0; }), "watch.limits");
    EXPECT_EQ(step_of([](auto& w) { w.limits.disk_bytes = 0; }), "watch.limits");
    EXPECT_EQ(step_of([](auto& w) { w.limits.terminal_output_bytes = 0; }), "watch.limits");
    EXPECT_EQ(step_of([](auto& w) { w.cpus = 0; }), "watch.limits");
    EXPECT_EQ(step_of([](auto& w) { w.cpus = resource_watch::most_cpus; }), "");
    EXPECT_EQ(step_of([](auto& w) { w.cpus = resource_watch::most_cpus + 1; }), "watch.limits");
    EXPECT_EQ(step_of([](auto& w) { w.meter = nullptr; }), "watch.limits");
    // The largest numbers of a plan are limits as well.
    EXPECT_EQ(step_of([](auto& w) { w.limits = {~0ULL, ~0ULL, ~0U, ~0ULL, ~0ULL, ~0ULL}; }), "");
}

TEST(ResourceWatch, WallTimeIsFineUntilItIsExceeded) {
    scene it;
    auto& watch = it.begin();
    ASSERT_TRUE(watch.check());
    it.pass(2000ms);
    const auto due = watch.check();
    EXPECT_FALSE(it.cause());
    EXPECT_EQ(*due, it.clock.now + 1ns);
    it.pass(1ns);
    ASSERT_TRUE(watch.check());
    EXPECT_EQ(it.cause(), wall_time_limit);
    EXPECT_EQ(watch.observed().wall_time_ms, 2001U); // looks like what it is
}

TEST(ResourceWatch, WallTimeStopsWithTheFirstProcess) {
    scene it;
    auto& watch = it.begin();
    it.pass(2000ms);
    watch.end_wall_time();
    it.pass(5s); // the drain
    watch.end_wall_time();
    ASSERT_TRUE(watch.check());
    ASSERT_TRUE(watch.finish());
    EXPECT_FALSE(it.cause());
    EXPECT_EQ(watch.observed().wall_time_ms, 2000U);
}

TEST(ResourceWatch, ProcessorTimeIsFineUntilItIsExceeded) {
    scene it;
    auto& watch = it.begin();
    it.pass(1s, 1000ms);
    ASSERT_TRUE(watch.check());
    EXPECT_FALSE(it.cause());
    EXPECT_EQ(watch.observed().cpu_time_ms, 1000U);
    it.pass(10ms, 1us);
    ASSERT_TRUE(watch.check());
    EXPECT_EQ(it.cause(), cpu_time_limit);
    EXPECT_EQ(watch.observed().cpu_time_ms, 1001U);
}

TEST(ResourceWatch, ProcessorTimeOfTheLastMomentIsFoundAfterTheEnd) {
    scene it;
    auto& watch = it.begin();
    ASSERT_TRUE(watch.check());
    it.pass(1ms, 1001ms);
    ASSERT_TRUE(watch.check()); // not due
    EXPECT_FALSE(it.cause());
    ASSERT_TRUE(watch.finish());
    EXPECT_EQ(it.cause(), cpu_time_limit);
}

TEST(ResourceWatch, WhatTheKernelHoldsIsTold) {
    const auto cause_of = [](auto change) {
        scene it;
        it.meter.says.pids_refused = 5; // before the session
        it.meter.says.memory_kills = 2;
        it.meter.says.memory_limit_met = 1;
        auto& watch = it.begin();
        EXPECT_TRUE(watch.check());
        EXPECT_FALSE(it.cause());
        change(it.meter.says);
        it.pass(resource_watch::longest_look);
        EXPECT_TRUE(watch.check());
        return it.cause();
    };
    EXPECT_EQ(cause_of([](auto&) {}), std::nullopt);
    EXPECT_EQ(cause_of([](auto& s) { s.pids_refused = 6; }), pid_limit);
    // Somebody outside had lifted the limit, and put it back.
    EXPECT_EQ(cause_of([](auto& s) { s.peak_pids = most_pids; }), std::nullopt);
    EXPECT_EQ(cause_of([](auto& s) { s.peak_pids = most_pids + 1; }), pid_limit);
    EXPECT_EQ(cause_of([](auto& s) { s.disk_refused = true; }), disk_limit);
    EXPECT_EQ(cause_of([](auto& s) { s.memory_kills = 3, s.memory_limit_met = 2; }), memory_limit);
    // A kill for the machine's sake, and a limit that was met and gave way.
    EXPECT_EQ(cause_of([](auto& s) { s.memory_kills = 3; }), std::nullopt);
    EXPECT_EQ(cause_of([](auto& s) { s.memory_limit_met = 2; }), std::nullopt);
    EXPECT_EQ(
        cause_of([](auto& s) {
            s = {.memory_kills = 3, .memory_limit_met = 2, .pids_refused = 6, .disk_refused = true};
        }),
        memory_limit);
}

TEST(ResourceWatch, PeaksNeverGoBack) {
    scene it;
    auto& watch = it.begin();
    it.meter.says = {.peak_memory_bytes = 500, .peak_pids = 7, .disk_bytes = 90};
    ASSERT_TRUE(watch.check());
    it.meter.says = {.peak_memory_bytes = 400, .peak_pids = 3, .disk_bytes = 10};
    it.pass(1s);
    ASSERT_TRUE(watch.finish());
    EXPECT_EQ(watch.observed(), (observed_use{0, 500, 7, 1000, 90, 0}));
}

TEST(ResourceWatch, WhatCannotBeReadIsNotHeld) {
    scene it;
    auto& watch = it.begin();
    it.pass(1s, 20ms);
    ASSERT_TRUE(watch.check());
    it.meter.broken = true;
    it.pass(1s);
    EXPECT_EQ(watch.check().error().step, "meter.state");
    EXPECT_EQ(it.cause(), supervisor_error);
    EXPECT_EQ(watch.observed().cpu_time_ms, 20U); // what was seen
    scene before;
    before.meter.broken = true;
    EXPECT_FALSE(
        resource_watch::begin({{1, 1, 1, 1, 1, 1}, 1, &before.clock, &before.meter, &before.into}));
}

TEST(ResourceWatch, ACounterThatGoesBackIsNotBelieved) {
    scene it;
    auto& watch = it.begin();
    it.pass(1s, 20ms);
    ASSERT_TRUE(watch.check());
    it.pass(1s, -1ms);
    EXPECT_EQ(watch.check().error().step, "watch.meter");
    EXPECT_EQ(it.cause(), supervisor_error);
}

TEST(ResourceWatch, LooksOftenOnlyWhenLittleIsLeft) {
    scene it;
    auto& watch = it.begin({60'000, 1, 1, 600'000, 1, 1}, 4);
    auto due = watch.check();
    EXPECT_EQ(*due, it.clock.now + resource_watch::longest_look);
    it.pass(15s, 59'600ms); // 400 ms for four processors
    due = watch.check();
    EXPECT_EQ(*due, it.clock.now + 100ms);
    it.pass(100ms, 380ms);
    due = watch.check();
    EXPECT_EQ(*due, it.clock.now + resource_watch::shortest_look);
    // Between, nothing is asked.
    const auto looks = it.meter.cpu_looks;
    it.pass(9ms);
    ASSERT_TRUE(watch.check());
    EXPECT_EQ(it.meter.cpu_looks, looks);
}

// A load of up to `cpus` processors, looked at as asked for but late: never told of before the
// limit was exceeded, and never later than the bound that is stated.
RC_GTEST_PROP(ResourceWatch, OverrunIsBoundedAndNobodyIsTakenTooEarly, ()) {
    const auto cpus = *rc::gen::inRange(1U, 65U);
    const auto limit_ms = *rc::gen::inRange<std::uint64_t>(1, 5'000);
    const auto lateness = nanoseconds{*rc::gen::inRange(0, 20'000'000)};
    const bool spins = *rc::gen::arbitrary<bool>(); // else a part of the time
    scene it;
    auto& watch = it.begin({limit_ms, 1, 1, 1'000'000'000, 1, 1}, cpus);
    const auto limit = nanoseconds{static_cast<std::int64_t>(limit_ms) * 1'000'000};
    nanoseconds used{};
    for (int looks = 0; looks < 100'000; ++looks) {
        const auto due = watch.check();
        RC_ASSERT(due.has_value());
        if (it.cause()) break;
        const auto late = lateness.count() == 0
                              ? 0ns
                              : nanoseconds{*rc::gen::inRange<std::int64_t>(0, lateness.count())};
        const auto wait = *due - it.clock.now + late;
        RC_ASSERT(wait > 0ns);
        const auto share = spins ? 100 : *rc::gen::inRange(0, 101);
        const auto more = wait * cpus * share / 100;
        it.pass(wait, more);
        used += more;
        if (looks > 3000) return; // it sleeps: nothing to be found
    }
    RC_ASSERT(it.cause() == std::optional{cpu_time_limit});
    RC_ASSERT(used > limit);
    RC_ASSERT(used - limit <= resource_watch::most_overrun(cpus, lateness));
}

} // namespace
