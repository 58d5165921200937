// What is left when a step of a start or of an end fails, when the process dies there, when disks
// fail, when time runs out, and when the service ends.
#include "session_runtime_scene.hpp"
#include <future>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using namespace glove::test;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A step of the start fails once: what it leaves, and what the same start does then.
struct broken_start {
    const char* step;
    session_state left;
    const char* failure;
    session_state then;
};
constexpr broken_start broken_starts[]{
    {"reserve_start", created, "", running},     {"reserve_receipt", preparing, "", running},
    {"prepare", preparing, "", running},         {"mark_starting", failed, "launch_failed", failed},
    {"launch", failed, "launch_failed", failed}, {"mark_running", failed, "launch_failed", failed},
};

TEST(SessionRuntimeFaults, AStepOfAStartThatFailsLeavesNothing) {
    for (const auto& one : broken_starts) {
        runtime_scene it;
        it.open();
        it.create("one");
        (void)it.authorization("one");
        const nothing_more was;
        it.steps.fail_at(one.step, 1);
        bool gone_first = true; // before anything is written about it
        it.steps.hold_at("mark_failed", [&] { gone_first = it.host.all_dropped(); });
        const auto refused = it.start("one");
        EXPECT_EQ(code_of(refused), "session_start_failed") << one.step;
        EXPECT_TRUE(gone_first) << one.step;
        EXPECT_EQ(it.state_of("one"), one.left) << one.step;
        EXPECT_EQ(it.records->record("one")->failure_code, one.failure);
        EXPECT_TRUE(it.host.all_dropped());
        const auto puppet = it.host["one"];
        EXPECT_EQ(puppet ? puppet->released.load() : 0, 0) << one.step;
        EXPECT_EQ(code_of(it->attach("one", 0, 1)), "session_attach_failed");
        EXPECT_EQ(code_of(it->cleanup("one")), one.left == failed ? "" : "session_cleanup_failed");
        it.host.forget();
        const_cast<std::shared_ptr<test::puppet>&>(puppet).reset();
        EXPECT_TRUE(was.holds()) << one.step;
        const auto again = it.start("one");
        ASSERT_TRUE(again) << one.step << why_of(again);
        EXPECT_EQ(again->state, one.then) << one.step;
        if (one.then != running) continue;
        it.host["one"]->exit(0);
        EXPECT_EQ(it.cause_of("one"), "exited");
    }
}

TEST(SessionRuntimeFaults, AHostThatRefusesLeavesNothing) {
    const std::pair<const char*, void (*)(puppet&)> cases[]{
        {"launch", [](puppet& it) { it.refuses_launch = true; }},
        {"terminal", [](puppet& it) { it.has_no_terminal = true; }},
        {"meter", [](puppet& it) { it.broken_meter = true; }},
        {"profile", [](puppet& it) { it.profile = "?"; }}, // refused by the registry
    };
    for (const auto& [name, dress] : cases) {
        runtime_scene it;
        it.open();
        it.create("one");
        (void)it.authorization("one");
        const nothing_more was;
        it.host.dress = dress;
        EXPECT_EQ(code_of(it.start("one")), "session_start_failed") << name;
        EXPECT_EQ(it.state_of("one"), failed) << name;
        EXPECT_EQ(it.records->record("one")->failure_code, "launch_failed") << name;
        EXPECT_TRUE(it.host.all_dropped());
        it.host.forget();
        EXPECT_TRUE(was.holds()) << name;
        EXPECT_FALSE(it.receipt_of("one"));
    }
}

// Each is tried again until it works; meanwhile the state stays.
TEST(SessionRuntimeFaults, AStepOfAnEndThatFailsIsTriedAgain) {
    for (const std::string step : {"conclude", "append_receipt", "mark_exited"}) {
        runtime_scene it;
        std::atomic<int> tries = 0;
        std::atomic<bool> stayed = true;
        it.steps.hold_at(step, [&] {
            ++tries;
            if (it.state_of("one") != running) stayed = false;
        });
        const auto puppet = it.begin("one");
        it.steps.fail_at(step, 9);
        puppet->exit(4);
        const auto end = it.end_of("one");
        EXPECT_EQ(end.exit_code, 4U) << step;
        EXPECT_EQ(tries, 10) << step;
        EXPECT_TRUE(stayed) << step;
        EXPECT_EQ(puppet->concluded, 1);
        EXPECT_EQ(end.receipt_sequence, 1U);
        EXPECT_TRUE(it.logged("session.not_on_record"));
    }
}

// The intent is not on record: the session is ended all the same, and has its receipt.
TEST(SessionRuntimeFaults, WithoutAnIntentItEndsAllTheSame) {
    runtime_scene it;
    const auto puppet = it.begin("limit");
    it.steps.fail_at("mark_stopping", 1);
    puppet->cpu = 2'000'000;
    EXPECT_TRUE(it.is_killed(*puppet));
    EXPECT_EQ(it.cause_of("limit"), "cpu_time_limit");
    EXPECT_EQ(it.records->record("limit")->stopping_at_ms, 0U);
    ASSERT_TRUE(it.begin("stop"));
    it.steps.fail_at("mark_stopping", 2); // the caller's, and the supervisor's own
    EXPECT_EQ(code_of(it->stop("stop-1", "stop")), "session_stop_failed");
    EXPECT_EQ(it.cause_of("stop"), "signaled");
    EXPECT_EQ(it.records->record("stop")->stopping_at_ms, 0U);
}

// Whoever wants it to end gets that from a disk that does not work, too; the record comes later.
TEST(SessionRuntimeFaults, AStopWithoutADiskEndsASession) {
    runtime_scene it;
    const auto puppet = it.begin("one");
    ASSERT_TRUE(puppet->show("hello"));
    it.records.disk.plan({.at = 1, .does = effect::none, .after = then::stays_broken});
    EXPECT_EQ(code_of(it->stop("stop-1", "one")), "session_stop_failed");
    EXPECT_GE(puppet->killed, 1);
    EXPECT_TRUE(eventually([&] { return it.receipt_of("one").has_value(); }));
    EXPECT_EQ(it.state_of("one"), running);
    EXPECT_EQ(it.shown("one"), "hello");
    EXPECT_EQ(code_of(it->cleanup("one")), "session_cleanup_failed");
    EXPECT_TRUE(it->has_sessions());
    it.close();
    it.records.disk.lose_power(it.records.disk.name_states() - 1, survives::nothing);
    it.restart();
    EXPECT_EQ(it.end_of("one").idempotency_key, "recovery-exit-1");
    EXPECT_EQ(it.cause_of("one"), "signaled");
}

// The process dies before a step: nothing reaches a disk from there on.
struct crash {
    const char* step;
    session_state left;   // that the next process finds, after its recovery
    const char* how = ""; // failure, or cause
};
constexpr crash crashes[]{
    {"reserve_start", created},
    {"reserve_receipt", preparing},
    {"prepare", preparing},
    {"mark_starting", preparing},
    {"launch", failed, "recovered_without_process"},
    {"mark_running", failed, "recovered_without_process"},
    {"release", failed, "recovered_without_process"},
    {"mark_stopping", failed, "recovered_without_process"},
    {"conclude", failed, "recovered_without_process"},
    {"append_receipt", failed, "recovered_without_process"},
    {"mark_exited", exited, "cpu_time_limit"},
};

TEST(SessionRuntimeFaults, ACrashBetweenTwoSteps) {
    for (const auto& one : crashes)
        for (const bool late : {false, true}) {
            runtime_scene it;
            it.open();
            it.create("one");
            const auto asked = it.authorization("one");
            const fault_plan nothing_more_works{
                .at = 1, .does = effect::none, .after = then::stays_broken};
            std::promise<void> crashed;
            std::atomic<bool> once{false}; // the step may come again, on another thread
            it.steps.hold_at(one.step, [&] {
                if (once.exchange(true)) return;
                it.records.disk.plan(nothing_more_works);
                it.receipt_disk.plan(nothing_more_works);
                crashed.set_value();
            });
            (void)it.start("one");
            if (const auto puppet = it.host["one"]) puppet->cpu = 2'000'000;
            const auto seen = crashed.get_future();
            ASSERT_TRUE(it.is_found([&] { return seen.wait_for(0s) == std::future_status::ready; }))
                << one.step;
            it.close();
            it.steps.hold_at(one.step, {});
            for (auto* disk : {&it.records.disk, &it.receipt_disk})
                disk->lose_power(disk->name_states() - 1, survives::nothing);
            const int before = it.host.launches("one");
            if (late) it.records.clock.set(asked.expires_at_ms);
            it.restart();
            const bool overdue = late && one.left == preparing;
            EXPECT_TRUE(it.is("one", overdue ? failed : one.left)) << one.step;
            auto now = it.records->record("one").value();
            EXPECT_EQ(now.failure_code + now.termination_cause,
                      overdue ? "authorization_expired" : one.how)
                << one.step;
            EXPECT_EQ(it.receipt_of("one").has_value(), now.state == exited) << one.step;
            // The same start: it goes on, or tells how it is. Nothing is started twice.
            const auto again = it.start("one");
            if (one.left == created && late) {
                EXPECT_EQ(code_of(again), "session_start_failed");
                continue;
            }
            ASSERT_TRUE(again) << one.step << why_of(again);
            const bool goes_on = !late && (one.left == created || one.left == preparing);
            EXPECT_EQ(again->state, goes_on ? running : now.state) << one.step;
            EXPECT_EQ(it.host.launches("one"), before + (goes_on ? 1 : 0)) << one.step;
            EXPECT_TRUE(!goes_on || before == 0) << one.step;
            EXPECT_EQ(code_of(it->cleanup("one")), goes_on ? "session_cleanup_failed" : "");
        }
}

// Every operation of the registry's disk fails once, in every way, and stays broken.
TEST(SessionRuntimeFaults, ARegistryThatFailsAnywhere) {
    int ran = 0;
    for (const auto how : all_effects)
        for (std::size_t at = 1;; ++at) {
            runtime_scene it;
            it.open();
            it.create("one");
            const auto asked = it.authorization("one");
            it.records.disk.plan({.at = at, .does = how, .after = then::stays_broken});
            const auto done = it.start("one");
            const auto puppet = it.host["one"];
            if (!done) {
                EXPECT_TRUE(it.host.all_dropped());
                EXPECT_EQ(puppet ? puppet->released.load() : 0, 0);
            } else {
                ++ran;
                ASSERT_TRUE(puppet->show("hello"));
                puppet->exit(5);
                EXPECT_TRUE(eventually([&] { return it.host.all_dropped(); }));
                // With or without a registry, the receipt is on the disk.
                EXPECT_TRUE(eventually([&] { return it.receipt_of("one").has_value(); }));
                EXPECT_EQ(it.shown("one"), "hello");
            }
            const bool released = puppet && puppet->released > 0;
            it.close();
            const bool fired = it.records.disk.fired();
            // Of a record that was not synced, nothing: a torn one is for people to look at.
            it.records.disk.lose_power(it.records.disk.name_states() - 1, survives::nothing);
            it.restart();
            const auto now = it.records->record("one").value();
            if (released) {
                EXPECT_EQ(now.state, exited) << at;
                EXPECT_EQ(now.exit_code, 5U);
            } else {
                EXPECT_NE(now.state, running) << at;
                EXPECT_NE(now.state, starting) << at;
                EXPECT_NE(now.state, exited) << at;
            }
            if (!fired) break;
        }
    EXPECT_GT(ran, 3);
}

// Every operation of the journal's disk; a controller comes again and opens it anew.
TEST(SessionRuntimeFaults, AJournalThatFailsAnywhere) {
    int refused = 0, failed_late = 0;
    for (const auto how : all_effects)
        for (std::size_t at = 1;; ++at) {
            runtime_scene it;
            it.open();
            it.create("one");
            (void)it.authorization("one");
            it.receipt_disk.plan({.at = at, .does = how, .after = then::recovers});
            const auto done = it.start("one");
            if (!done) {
                ++refused;
                EXPECT_EQ(it.state_of("one"), preparing);
                EXPECT_TRUE(it.host.all_dropped());
                const auto again = it.archive.reconcile(*it.receipts);
                EXPECT_TRUE(again) << why(again);
                ASSERT_TRUE(it.start("one"));
            }
            it.host["one"]->exit(5);
            const bool by_itself =
                eventually([&] { return is_terminal(it.state_of("one")); }, 30ms);
            if (!by_itself) ++failed_late;
            EXPECT_TRUE(eventually([&] {
                (void)it.archive.reconcile(*it.receipts);
                return is_terminal(it.state_of("one"));
            })) << at;
            EXPECT_EQ(it.end_of("one").exit_code, 5U);
            EXPECT_TRUE(it.archive.reconcile(*it.receipts));
            EXPECT_THAT(it.archive.seen, ElementsAre("one"));
            if (!it.receipt_disk.fired()) break;
        }
    EXPECT_GT(refused + failed_late, 2);
}

TEST(SessionRuntimeFaults, AFullJournalRefusesBeforeTheLaunch) {
    runtime_scene it;
    it.receipt_bytes = 16'384;
    it.open();
    int many = 0;
    std::string id;
    for (;; ++many) {
        id = "s" + std::to_string(many);
        it.create(id);
        if (!it.start(id)) break;
        it.host[id]->exit(0);
        (void)it.end_of(id);
        ASSERT_LT(many, 30);
    }
    EXPECT_GT(many, 2);
    EXPECT_EQ(it.state_of(id), preparing);
    EXPECT_EQ(it.host[id], nullptr);
    EXPECT_EQ(code_of(it.start(id)), "session_start_failed");
    EXPECT_TRUE(it.archive.reconcile(*it.receipts));
    EXPECT_TRUE(it.start(id));
    it.host[id]->exit(0);
    EXPECT_EQ(it.cause_of(id), "exited");
}

TEST(SessionRuntimeFaults, WithoutAControllerNothingStarts) {
    runtime_scene it;
    it.open();
    it.create("one");
    it.receipts.reset();
    it.close();
    it.receipts.emplace(journal_on(it.receipt_disk));
    it.open();
    EXPECT_EQ(code_of(it.start("one")), "session_start_failed");
    EXPECT_EQ(it.state_of("one"), preparing);
    EXPECT_TRUE(it.archive.reconcile(*it.receipts));
    EXPECT_TRUE(it.start("one"));
}

// Authorizations that pass.
TEST(SessionRuntimeFaults, WhatIsOverdueFailsByItself) {
    runtime_scene it;
    it.open();
    it.host.refuses = true;
    for (const std::string id : {"one", "two", "three"}) {
        it.create(id);
        EXPECT_EQ(code_of(it.start(id)), "session_start_failed");
        EXPECT_EQ(it.state_of(id), preparing);
    }
    const auto until = it.authorization("one").expires_at_ms;
    it.records.clock.set(until - 1);
    std::this_thread::sleep_for(600ms);
    EXPECT_EQ(it.state_of("one"), preparing);
    it.host.refuses = false;
    EXPECT_EQ(it.start("one")->state, running); // a last moment is one
    it.records.clock.set(until);
    // The start of it finds out at once.
    EXPECT_EQ(it.start("two")->state, failed);
    EXPECT_TRUE(it.is("three", failed));
    for (const std::string id : {"two", "three"}) {
        const auto now = it.records->record(id).value();
        EXPECT_EQ(now.failure_code, "authorization_expired");
        EXPECT_EQ(now.idempotency_key, "start-" + id + ".failed");
        EXPECT_EQ(it.start(id)->state, failed);
        EXPECT_TRUE(it->cleanup(id));
        EXPECT_EQ(it.host.launches(id), 0);
    }
    EXPECT_EQ(it.state_of("one"), running);
}

TEST(SessionRuntimeFaults, TimeThatPassesWithinAStart) {
    runtime_scene it;
    it.open();
    const auto expire = [&] { it.records.clock.add(60'000); };
    it.host.dress = [&](puppet&) { expire(); };
    it.create("prepared");
    EXPECT_EQ(code_of(it.start("prepared")), "session_start_failed");
    EXPECT_EQ(it.end_of("prepared").failure_code, "authorization_expired");
    EXPECT_EQ(it.host.launches("prepared"), 0);
    it.host.dress = [&](puppet& one) { one.during_launch = expire; };
    it.create("launched");
    EXPECT_EQ(code_of(it.start("launched")), "session_start_failed");
    const auto end = it.end_of("launched");
    EXPECT_EQ(end.failure_code, "authorization_expired");
    EXPECT_NE(end.starting_at_ms, 0U);
    EXPECT_EQ(it.host["launched"]->released, 0);
    EXPECT_TRUE(it.host.all_dropped());
}

// Keys are the caller's: some may be there already.
TEST(SessionRuntimeFaults, AKeyThatIsSomebodyElses) {
    runtime_scene it;
    it.open();
    const auto take = [&](const std::string& key) {
        EXPECT_TRUE(it.records->create(
            key, {"of-" + key, digits('c'), plan_text(it.records.clock.ms() + 600'000)},
            judge_all));
    };
    take("start-one.reserve");
    it.create("one");
    EXPECT_EQ(code_of(it.start("one")), "session_start_failed");
    EXPECT_EQ(it.state_of("one"), created);
    take("start-two.starting");
    it.create("two");
    EXPECT_EQ(code_of(it.start("two")), "session_start_failed");
    EXPECT_EQ(it.end_of("two").failure_code, "launch_failed");
    take("start-three.exited");
    take("start-three.stopping");
    it.begin("three")->cpu = 2'000'000;
    EXPECT_TRUE(it.is_killed(*it.host["three"]));
    EXPECT_EQ(it.cause_of("three"), "cpu_time_limit");
    EXPECT_EQ(it.records->record("three")->idempotency_key, "recovery-exit-1");
    EXPECT_TRUE(it.host.all_dropped());
}

// The end of the service.
TEST(SessionRuntimeFaults, TheEndOfTheServiceEndsEverySession) {
    runtime_scene it;
    it.open();
    const nothing_more was;
    for (int i = 0; i < 9; ++i) ASSERT_TRUE(it.begin("s" + std::to_string(i)));
    it.create("late");
    const auto started = std::chrono::steady_clock::now();
    EXPECT_THAT(it->stop_all(it.records.clock.monotonic() + 20s), IsEmpty());
    EXPECT_LT(std::chrono::steady_clock::now() - started, 10s);
    for (int i = 0; i < 9; ++i) {
        const auto id = "s" + std::to_string(i);
        const auto end = it.records->record(id).value();
        EXPECT_EQ(end.state, exited);
        EXPECT_EQ(end.termination_cause, "signaled");
        EXPECT_NE(end.stopping_at_ms, 0U);
        EXPECT_TRUE(it.records->replayed("start-" + id + ".stopping"));
        EXPECT_TRUE(it.receipt_of(id));
    }
    EXPECT_FALSE(it->lifecycle_operational());
    EXPECT_EQ(code_of(it.start("late")), "session_start_failed");
    EXPECT_EQ(it.state_of("late"), created);
    EXPECT_EQ(it.start("s1")->state, exited); // what is on record is told
    EXPECT_TRUE(it.host.all_dropped());
    it.host.forget();
    EXPECT_TRUE(was.holds());
}

TEST(SessionRuntimeFaults, TheEndOfTheServiceWaitsNoLongerThanItMay) {
    runtime_scene it;
    it.open();
    std::promise<void> disk_works;
    const auto hangs = disk_works.get_future().share();
    ASSERT_TRUE(it.begin("good"));
    it.host.dress = [](puppet& one) { one.outlives_kill = true; };
    ASSERT_TRUE(it.begin("stubborn"));
    it.host.dress = [hangs](puppet& one) {
        one.during_conclude = [hangs](const std::stop_token&) { hangs.wait(); };
    };
    ASSERT_TRUE(it.begin("stuck"));
    const auto started = std::chrono::steady_clock::now();
    EXPECT_THAT(it->stop_all(it.records.clock.monotonic() + 300ms),
                ElementsAre("stubborn", "stuck"));
    EXPECT_LT(std::chrono::steady_clock::now() - started, 5s);
    EXPECT_EQ(it.state_of("good"), exited);
    EXPECT_EQ(it.state_of("stubborn"), stopping);
    disk_works.set_value();
    it.restart();
    EXPECT_TRUE(it.host.all_dropped());
    EXPECT_EQ(it.end_of("stubborn").failure_code, "recovered_without_process");
    EXPECT_EQ(it.end_of("stuck").state, exited); // its receipt came to the disk
}

// The host is told to hurry in time for a receipt.
TEST(SessionRuntimeFaults, AtTheEndOfTheServiceTheHostHurries) {
    runtime_scene it;
    std::atomic<bool> told = false;
    it.host.dress = [&](puppet& one) {
        one.during_conclude = [&](const std::stop_token& stop) {
            told = eventually([&] { return stop.stop_requested(); });
        };
    };
    ASSERT_TRUE(it.begin("one"));
    EXPECT_THAT(it->stop_all(it.records.clock.monotonic() + 2s), IsEmpty());
    EXPECT_TRUE(told);
    EXPECT_EQ(it.state_of("one"), exited);
}

TEST(SessionRuntimeFaults, AStartWithinTheEndOfTheServiceComesToNothing) {
    runtime_scene it;
    it.open();
    std::promise<void> is_launching, goes_on;
    it.host.dress = [&](puppet& one) {
        one.during_launch = [&] {
            is_launching.set_value();
            goes_on.get_future().wait();
        };
    };
    it.create("one");
    const auto what = it.authorization("one");
    auto starting_it =
        std::async(std::launch::async, [&] { return code_of(it->start("start-one", what)); });
    is_launching.get_future().wait();
    auto ending = std::async(std::launch::async,
                             [&] { return it->stop_all(it.records.clock.monotonic() + 20s); });
    EXPECT_TRUE(eventually([&] { return !it->lifecycle_operational(); }));
    goes_on.set_value();
    EXPECT_EQ(starting_it.get(), "session_start_failed");
    EXPECT_THAT(ending.get(), IsEmpty());
    EXPECT_EQ(it.end_of("one").failure_code, "launch_failed");
    EXPECT_EQ(it.host["one"]->released, 0);
    EXPECT_TRUE(it.host.all_dropped());
}

// A runtime that goes without a word leaves sessions to the next process, and nothing alive.
TEST(SessionRuntimeFaults, ARuntimeThatGoesLeavesNothingAlive) {
    const nothing_more was;
    {
        runtime_scene it;
        for (int i = 0; i < 5; ++i) ASSERT_TRUE(it.begin("s" + std::to_string(i)));
        it.steps.fail_at("append_receipt", 1'000'000);
        it.host["s1"]->exit(0);
        EXPECT_TRUE(eventually([&] { return it.logged("append_receipt"); }));
        it.close();
        EXPECT_TRUE(it.host.all_dropped());
        EXPECT_EQ(it.state_of("s1"), running);
        it.steps.fail_at("append_receipt", 0);
        it.restart();
        for (int i = 0; i < 5; ++i)
            EXPECT_EQ(it.end_of("s" + std::to_string(i)).failure_code, "recovered_without_process");
    }
    EXPECT_TRUE(was.holds());
}

// Whoever is in a call when it ends gets an answer.
TEST(SessionRuntimeFaults, CallsWhileItEnds) {
    runtime_scene it;
    it.open();
    for (int round = 0; round < 30; ++round) {
        const auto id = "s" + std::to_string(round);
        const auto puppet = it.begin(id);
        ASSERT_TRUE(puppet);
        std::atomic<bool> over = false;
        {
            std::vector<std::jthread> all;
            for (int i = 0; i < 4; ++i)
                all.emplace_back([&, i] {
                    while (!over) {
                        (void)it->attach(id, 0, 100);
                        (void)it->resize(id, 20, 20);
                        (void)it->signal(id, session_signal::hangup);
                        (void)it->detach(id, 0);
                        if (i == 0) (void)it->write_input(id, "x");
                        if (i == 1) (void)it->cleanup(id);
                        if (i == 2) (void)it.records->status(id);
                    }
                });
            (void)puppet->show("hello");
            puppet->exit(0);
            EXPECT_EQ(it.cause_of(id), "exited");
            over = true;
        }
        EXPECT_TRUE(it->cleanup(id));
        EXPECT_EQ(code_of(it->attach(id, 0, 1)), "session_attach_failed");
    }
}

} // namespace
