// A session's life as controllers see it, what is on record of it, and how it ends.
#include "session_runtime_scene.hpp"
#include <future>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using namespace glove::test;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

TEST(SessionRuntime, AWholeLife) {
    runtime_scene it;
    it.open();
    const nothing_more was;
    it.create("one");
    EXPECT_EQ(code_of(it->attach("one", 0, 10)), "session_attach_failed");
    EXPECT_EQ(code_of(it->cleanup("one")), "session_cleanup_failed");
    const auto asked = it.authorization("one");
    const auto began = it.records.clock.ms();
    it.records.clock.add(5);
    const auto started = it.start("one");
    ASSERT_TRUE(started) << why_of(started);
    EXPECT_EQ(started->state, running);
    EXPECT_EQ(started->profile_digest, digits('e'));

    auto now = it.records->record("one").value();
    EXPECT_EQ(now.idempotency_key, "start-one.running");
    EXPECT_EQ(now.operation, "mark_running");
    EXPECT_EQ(now.authorization_id, asked.authorization_id);
    EXPECT_EQ(now.authorized_at_ms, began);
    EXPECT_EQ(now.starting_at_ms, began + 5);
    EXPECT_EQ(now.running_at_ms, began + 5);
    EXPECT_EQ(now.process, some_process());
    EXPECT_EQ(now.cgroup, some_binding().cgroup);
    EXPECT_EQ(now.filesystem, some_binding().filesystem);

    const auto puppet = it.host["one"];
    ASSERT_TRUE(puppet->show("hello"));
    ASSERT_TRUE(eventually([&] { return it->attach("one", 0, 10)->bytes == "hello"; }));
    const auto page = it->attach("one", 1, 3).value();
    EXPECT_EQ(page.bytes, "ell");
    EXPECT_EQ(page.oldest_cursor, 0U);
    EXPECT_EQ(page.next_cursor, 4U);
    EXPECT_FALSE(page.truncated);
    EXPECT_FALSE(page.eof);
    EXPECT_FALSE(it->attach("one", 5, 3)->eof);
    EXPECT_EQ(code_of(it->attach("one", 6, 3)), "session_attach_failed");
    EXPECT_EQ(code_of(it->attach("other", 0, 3)), "session_attach_failed");
    EXPECT_TRUE(it->detach("one", 5));
    EXPECT_EQ(code_of(it->detach("one", 6)), "session_detach_failed");
    EXPECT_TRUE(it->write_input("one", "question"));
    EXPECT_EQ(puppet->hear(8), "question");
    EXPECT_EQ(code_of(it->write_input("one", "")), "session_input_failed");
    EXPECT_TRUE(it->resize("one", 33, 101));
    ::winsize size{};
    {
        const auto side = puppet->side();
        ASSERT_EQ(::ioctl(side.get(), TIOCGWINSZ, &size), 0);
    }
    EXPECT_EQ(size.ws_row, 33);
    EXPECT_EQ(size.ws_col, 101);
    EXPECT_EQ(code_of(it->resize("one", 0, 101)), "session_resize_failed");
    EXPECT_TRUE(it->signal("one", session_signal::terminate));
    EXPECT_EQ(puppet->last_signal, SIGTERM);
    EXPECT_TRUE(it->signal("one", session_signal::hangup));
    EXPECT_EQ(puppet->last_signal, SIGHUP);
    EXPECT_EQ(code_of(it->cleanup("one")), "session_cleanup_failed");

    it.records.clock.add(750);
    puppet->cpu = 499'001;
    puppet->exit(3);
    now = it.end_of("one");
    EXPECT_EQ(now.state, exited);
    EXPECT_EQ(now.idempotency_key, "start-one.exited");
    EXPECT_EQ(now.termination_cause, "exited");
    EXPECT_EQ(now.exit_code, 3U);
    EXPECT_EQ(now.receipt_started_at_ms, began + 5);
    EXPECT_EQ(now.finished_at_ms, began + 755);
    EXPECT_EQ(now.stopping_at_ms, 0U);
    const auto receipt = it.receipt_of("one");
    ASSERT_TRUE(receipt);
    resource_receipt expected;
    expected.profile_digest = digits('e');
    expected.backend_id = "linux-production:cgroup-v2-v1";
    expected.independently_verified = true;
    expected.configured_limits = usual_plan().limits;
    expected.mechanisms = linux_mechanisms();
    expected.observed = {500, mib, 2, 750, 4096, 5};
    expected.cause = termination_cause::exited;
    expected.exit_code = 3;
    expected.started_at_ms = began + 5;
    expected.finished_at_ms = began + 755;
    EXPECT_EQ(*receipt, expected);
    EXPECT_EQ(now.receipt_digest, receipt_digest(expected).value());
    EXPECT_EQ(now.receipt_sequence, 1U);
    EXPECT_EQ(now.receipt_key_id, it.receipts->key_id());

    EXPECT_THAT(it.steps.seen(), ElementsAre("reserve_start", "reserve_receipt", "prepare",
                                             "mark_starting", "launch", "mark_running", "release",
                                             "conclude", "append_receipt", "mark_exited"));
    EXPECT_EQ(it.shown("one"), "hello");
    EXPECT_TRUE(it->attach("one", 5, 3)->eof);
    EXPECT_EQ(code_of(it->write_input("one", "more")), "session_input_failed");
    EXPECT_EQ(code_of(it->resize("one", 3, 3)), "session_resize_failed");
    EXPECT_EQ(code_of(it->signal("one", session_signal::interrupt)), "session_signal_failed");
    EXPECT_EQ(code_of(it->stop("late", "one")), "session_stop_failed");
    EXPECT_TRUE(it->has_sessions());

    // What it held is gone, though it can still be looked at.
    EXPECT_TRUE(eventually([&] { return it.host.all_dropped(); }));
    const std::weak_ptr gone = puppet;
    it.host.forget();
    const_cast<std::shared_ptr<test::puppet>&>(puppet).reset();
    EXPECT_TRUE(eventually([&] { return gone.expired(); }));
    EXPECT_TRUE(was.holds());
    EXPECT_TRUE(it->cleanup("one"));
    EXPECT_FALSE(it->has_sessions());
    EXPECT_EQ(code_of(it->attach("one", 0, 3)), "session_attach_failed");
    EXPECT_TRUE(it->cleanup("one")); // nothing to free is fine
    EXPECT_EQ(code_of(it->cleanup("nobody")), "session_cleanup_failed");
}

// Without a disk nothing is advertised, and neither without a host; ids of runtimes never are.
TEST(SessionRuntime, SaysWhatItCanDo) {
    runtime_scene it;
    EXPECT_TRUE(it->lifecycle_operational());
    EXPECT_EQ(it->mechanisms(), linux_mechanisms());
    EXPECT_TRUE(it->evaluates_refinements());
    EXPECT_TRUE(it->runtime_ids().empty());
    EXPECT_FALSE(it->admits_observations());
    it.host.works = false;
    EXPECT_FALSE(it->lifecycle_operational());
    EXPECT_EQ(it->mechanisms(), enforcement_mechanisms{});
    EXPECT_FALSE(it->evaluates_refinements());
    it.create("one");
    EXPECT_EQ(code_of(it.start("one")), "session_start_failed");
    EXPECT_EQ(it.state_of("one"), created); // its authorization is not used up
    it.host.works = true;
    EXPECT_TRUE(it.start("one"));
    it.records.disk.plan({.at = 1, .does = effect::none, .after = then::stays_broken});
    EXPECT_EQ(code_of(it.records.create("two", plan_text(it.records.clock.ms() + 1000))),
              "session_storage_failed");
    EXPECT_FALSE(it->lifecycle_operational());
    EXPECT_TRUE(it->has_sessions());
}

TEST(SessionRuntime, OnePartMissingIsNoRuntime) {
    runtime_scene it;
    it.open();
    const runtime_parts good{it.records.registry.get(), &*it.receipts, &it.rules, &it.host,
                             &it.records.clock,         &it.log};
    EXPECT_TRUE(session_runtime::create(good));
    const auto refused = [&](auto change) {
        auto bad = good;
        change(bad);
        const auto made = session_runtime::create(bad);
        return !made && made.error().step == "runtime.parts";
    };
    EXPECT_TRUE(refused([](auto& p) { p.sessions = nullptr; }));
    EXPECT_TRUE(refused([](auto& p) { p.receipts = nullptr; }));
    EXPECT_TRUE(refused([](auto& p) { p.rules = nullptr; }));
    EXPECT_TRUE(refused([](auto& p) { p.host = nullptr; }));
    EXPECT_TRUE(refused([](auto& p) { p.clock = nullptr; }));
    EXPECT_TRUE(refused([](auto& p) { p.log = nullptr; }));
    EXPECT_FALSE(session_runtime::create(good, {.most_live = 0}));
    EXPECT_FALSE(session_runtime::create(good, {.first_retry = 0ms}));
}

// Each limit: exceeded it ends the session for this cause, on record as stopped by the supervisor.
struct limit_case {
    const char* cause;
    std::function<void(runtime_scene&, puppet&)> exceed;
    std::function<void(runtime_scene&, puppet&)> reach; // equal is fine
};
auto limit_cases() -> std::vector<limit_case> {
    const auto says = [](auto change) {
        return [change](runtime_scene&, puppet& it) {
            resource_state out{.peak_memory_bytes = 64 * mib, .peak_pids = 16};
            change(out);
            it.use(out);
        };
    };
    return {
        {"cpu_time_limit", [](auto&, puppet& it) { it.cpu = 1'000'001; },
         [](auto&, puppet& it) { it.cpu = 1'000'000; }},
        {"wall_time_limit", [](runtime_scene& of, auto&) { of.records.clock.add(2001); },
         [](runtime_scene& of, auto&) { of.records.clock.add(2000); }},
        {"memory_limit", says([](auto& s) { s.memory_kills = s.memory_limit_met = 1; }),
         says([](auto& s) { s.memory_kills = 1; })},
        {"pid_limit", says([](auto& s) { s.pids_refused = 1; }), says([](auto&) {})},
        {"disk_limit", says([](auto& s) { s.disk_refused = true; }),
         says([](auto& s) { s.disk_bytes = 2 * mib; })},
        {"terminal_output_limit",
         [](auto&, puppet& it) { (void)it.show(std::string(mib + 1, 'x')); },
         [](auto&, puppet& it) { (void)it.show(std::string(mib, 'x')); }},
    };
}

TEST(SessionRuntime, ALimitEndsASessionForItsCause) {
    runtime_scene it;
    for (const auto& one : limit_cases()) {
        const std::string id = one.cause;
        const auto puppet = it.begin(id);
        ASSERT_TRUE(puppet);
        one.exceed(it, *puppet);
        EXPECT_TRUE(it.is_killed(*puppet)) << id;
        const auto end = it.end_of(id);
        EXPECT_EQ(end.termination_cause, id);
        EXPECT_FALSE(end.exit_code);
        EXPECT_NE(end.stopping_at_ms, 0U) << id;
        EXPECT_TRUE(it.records->replayed("start-" + id + ".stopping")) << id;
        const auto receipt = it.receipt_of(id);
        ASSERT_TRUE(receipt) << id;
        EXPECT_EQ(to_string(receipt->cause), id);
        EXPECT_GE(puppet->killed, 1) << id;
    }
}

TEST(SessionRuntime, ALimitThatIsReachedEndsNothing) {
    runtime_scene it;
    for (const auto& one : limit_cases()) {
        const std::string id = one.cause;
        const auto puppet = it.begin(id);
        ASSERT_TRUE(puppet);
        one.reach(it, *puppet);
        puppet->exit(0);
        EXPECT_EQ(it.cause_of(id), "exited") << id;
        EXPECT_EQ(it.records->record(id)->stopping_at_ms, 0U);
    }
}

TEST(SessionRuntime, OfTheOutputExactlyOneByteMoreIsCounted) {
    runtime_scene it;
    const auto full = it.begin("full");
    ASSERT_TRUE(full->show(std::string(mib - 4, 'x') + "last"));
    full->exit(0);
    EXPECT_EQ(it.cause_of("full"), "exited");
    EXPECT_EQ(it.receipt_of("full")->observed.terminal_output_bytes, mib);
    const auto page = it->attach("full", mib - 4, 100).value();
    EXPECT_EQ(page.bytes, "last");
    EXPECT_TRUE(page.eof);
    const auto over = it.begin("over");
    (void)over->show(std::string(3 * mib, 'x'));
    EXPECT_EQ(it.cause_of("over"), "terminal_output_limit");
    EXPECT_EQ(it.receipt_of("over")->observed.terminal_output_bytes, mib + 1);
}

// A runaway is killed before anything waits for a disk.
TEST(SessionRuntime, ALimitWaitsForNoDisk) {
    for (const auto& one : limit_cases()) {
        runtime_scene it;
        std::promise<void> disk_works;
        const auto hangs = disk_works.get_future().share();
        it.steps.hold_at("mark_stopping", [hangs] { hangs.wait(); });
        const auto puppet = it.begin("one");
        ASSERT_TRUE(puppet);
        one.exceed(it, *puppet);
        EXPECT_TRUE(it.is_killed(*puppet)) << one.cause;
        EXPECT_EQ(it.state_of("one"), running);
        disk_works.set_value();
        EXPECT_EQ(it.cause_of("one"), one.cause);
    }
}

TEST(SessionRuntime, AKillThatFailsIsTriedAgain) {
    runtime_scene it;
    it.host.dress = [](puppet& one) { one.failing_kills = 3; };
    const auto puppet = it.begin("one");
    puppet->cpu = 2'000'000;
    EXPECT_TRUE(it.is_killed(*puppet));
    EXPECT_EQ(it.cause_of("one"), "cpu_time_limit");
    EXPECT_GE(puppet->killed, 4);
    EXPECT_TRUE(it.logged("puppet.kill"));
}

// What a host looks at may be overdue without any news.
TEST(SessionRuntime, AHostIsAskedWithoutNewsToo) {
    runtime_scene it;
    it.host.dress = [](puppet& one) { one.ends_silently = true; };
    it.begin("one")->exit(0);
    EXPECT_EQ(it.cause_of("one"), "exited");
}

TEST(SessionRuntime, TheLastBytesAreInTheReceipt) {
    runtime_scene it;
    for (int round = 0; round < 50; ++round) {
        const auto id = "s" + std::to_string(round);
        const auto puppet = it.begin(id);
        ASSERT_TRUE(puppet);
        const auto text = std::string(static_cast<std::size_t>(round) * 97, 'x') + "the last word";
        ASSERT_TRUE(puppet->show(text));
        puppet->exit(0);
        EXPECT_EQ(it.cause_of(id), "exited");
        EXPECT_EQ(it.records->record(id)->exit_code, 0U);
        EXPECT_EQ(it.shown(id), text);
        EXPECT_TRUE(it->cleanup(id));
    }
    const auto receipt = it.receipt_of("s49");
    ASSERT_TRUE(receipt);
    EXPECT_EQ(receipt->observed.terminal_output_bytes, 49U * 97 + 13);
}

TEST(SessionRuntime, AnEndThatNobodyKnowsIsTheSupervisors) {
    runtime_scene it;
    it.begin("unknown")->unknown_end = true;
    it.host["unknown"]->exit(0);
    EXPECT_EQ(it.cause_of("unknown"), "supervisor_error");
    EXPECT_EQ(it.receipt_of("unknown")->cause, termination_cause::supervisor_error);
    it.begin("meter")->broken_meter = true;
    EXPECT_TRUE(it.is_killed(*it.host["meter"]));
    EXPECT_EQ(it.cause_of("meter"), "supervisor_error");
    EXPECT_GE(it.host["meter"]->killed, 1);
    it.how.drain_time = 50ms;
    runtime_scene other;
    other.how.drain_time = 50ms;
    const auto open = other.begin("open");
    open->holds_terminal_open = true;
    open->exit(0);
    // The clock in the hand goes on when the terminal is waited for.
    EXPECT_TRUE(eventually([&] {
        other.records.clock.add(10);
        return is_terminal(other.state_of("open"));
    }));
    EXPECT_EQ(other.cause_of("open"), "supervisor_error");
    EXPECT_TRUE(other.logged("session.drain"));
}

TEST(SessionRuntime, AProcessThatIsNotReleasedEndsWithAReceipt) {
    runtime_scene it;
    it.host.dress = [](puppet& one) { one.is_not_released = true; };
    it.create("one");
    EXPECT_TRUE(it.start("one"));
    EXPECT_EQ(it.cause_of("one"), "supervisor_error");
    EXPECT_TRUE(it.receipt_of("one"));
    EXPECT_TRUE(it.logged("puppet.release"));
}

// A comparison has the other kind of receipt, with what its evaluator saw.
TEST(SessionRuntime, AComparisonHasItsEvidence) {
    runtime_scene it;
    it.host.dress = [](puppet& one) { one.fixture_output = "all good"; };
    const auto envelopes = [&] {
        controller reader;
        const auto page = it.receipts->page(reader.anchor, 15).value();
        EXPECT_TRUE(reader.take(page));
        EXPECT_TRUE(page.envelopes.empty());
        return page.refinement_envelopes;
    };
    auto plan = refinement_plan();
    const auto good = it.begin("good", plan);
    ASSERT_TRUE(good);
    ASSERT_TRUE(good->show("this is all good\n"));
    good->exit(0);
    EXPECT_EQ(it.end_of("good").operation, "mark_refinement_exited");
    const auto bad = it.begin("bad", plan);
    ASSERT_TRUE(bad->show("this is all good\n\xff"));
    bad->exit(0);
    EXPECT_EQ(it.cause_of("bad"), "exited");
    const auto cut = it.begin("cut", plan);
    (void)cut->show("all good" + std::string(2 * mib, 'x'));
    EXPECT_EQ(it.cause_of("cut"), "terminal_output_limit");

    const auto made = envelopes();
    ASSERT_EQ(made.size(), 3U);
    EXPECT_EQ(made[0].receipt.status, evidence_status::valid_outcome);
    EXPECT_EQ(made[0].receipt.evaluated_outcome->metrics.at("passed"), 1);
    EXPECT_EQ(made[0].receipt.transcript.byte_count, 17U);
    EXPECT_EQ(made[0].receipt.candidate, plan.refinement->candidate);
    EXPECT_EQ(made[0].receipt.resource.cause, termination_cause::exited);
    EXPECT_EQ(made[1].receipt.status, evidence_status::invalid_outcome);
    EXPECT_FALSE(made[1].receipt.evaluated_outcome);
    EXPECT_FALSE(made[1].receipt.evaluator.transcript_utf8);
    EXPECT_TRUE(made[1].receipt.transcript.complete);
    EXPECT_EQ(made[2].receipt.status, evidence_status::invalid_outcome);
    EXPECT_FALSE(made[2].receipt.transcript.complete);
}

// What was changed goes into the receipt; what is of no form is no receipt, and never another one.
TEST(SessionRuntime, WhatTheHostFoundIsInTheReceipt) {
    runtime_scene it;
    const auto good = it.begin("good");
    good->changes = {some_changes("proj")};
    good->exit(0);
    EXPECT_EQ(it.cause_of("good"), "exited");
    EXPECT_EQ(it.receipt_of("good")->retained_changes, good->changes);
    EXPECT_EQ(good->concluded, 1);
    const auto bad = it.begin("bad");
    bad->changes = {some_changes("site"), some_changes("proj")};
    bad->exit(0);
    const auto end = it.end_of("bad");
    EXPECT_EQ(end.state, failed);
    EXPECT_EQ(end.failure_code, "supervisor_error");
    EXPECT_FALSE(it.receipt_of("bad"));
}

TEST(SessionRuntime, AClockThatIsSetBackEndsASessionWhereItBegan) {
    runtime_scene it;
    const auto puppet = it.begin("one");
    const auto ran = it.records->record("one")->running_at_ms;
    it.records.clock.set(ran - 1000);
    puppet->exit(0);
    const auto end = it.end_of("one");
    EXPECT_EQ(end.finished_at_ms, ran);
    EXPECT_EQ(end.termination_cause, "exited");
}

// Starts of one session.
TEST(SessionRuntime, AReplayGivesTheStateAsItIs) {
    runtime_scene it;
    const auto puppet = it.begin("one");
    EXPECT_EQ(it.start("one")->state, running);
    // Another key, another authorization under the same key, and a key of somebody else's.
    EXPECT_EQ(code_of(it->start("other", it.authorization("one"))), "session_start_failed");
    auto other = it.authorization("one");
    other.authorization_id = "approval-2";
    EXPECT_EQ(code_of(it->start("start-one", other)), "session_start_failed");
    puppet->exit(7);
    (void)it.end_of("one");
    EXPECT_EQ(it.start("one")->state, exited);
    EXPECT_TRUE(it->cleanup("one"));
    EXPECT_EQ(it.start("one")->state, exited);
    it.restart();
    EXPECT_EQ(it.start("one")->state, exited);
    EXPECT_EQ(it.host.launches("one"), 1);
}

TEST(SessionRuntime, OfManyStartsAtOnceOneDoesIt) {
    runtime_scene it;
    it.open();
    it.host.dress = [](puppet& one) {
        one.during_launch = [] { std::this_thread::sleep_for(5ms); };
    };
    for (int round = 0; round < 20; ++round) {
        const auto id = "s" + std::to_string(round);
        it.create(id);
        const auto what = it.authorization(id);
        std::atomic<int> wrong = 0, waited = 0;
        {
            std::vector<std::jthread> all;
            for (int i = 0; i < 16; ++i)
                all.emplace_back([&] {
                    const auto done = it->start("start-" + id, what);
                    if (!done) ++wrong;
                    else if (done->state != running) ++waited;
                });
        }
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(it.host.launches(id), 1);
        EXPECT_EQ(it.state_of(id), running);
        EXPECT_EQ(it.start(id)->state, running);
        it.host[id]->exit(0);
        (void)it.end_of(id);
        EXPECT_TRUE(it->cleanup(id));
    }
}

// Two keys for one session: whichever is first has it, and the other one is refused.
TEST(SessionRuntime, OfTwoKeysOneIsRefused) {
    runtime_scene it;
    it.open();
    for (int round = 0; round < 50; ++round) {
        const auto id = "s" + std::to_string(round);
        it.create(id);
        const auto what = it.authorization(id);
        std::atomic<int> good = 0;
        {
            std::vector<std::jthread> all;
            for (int i = 0; i < 4; ++i)
                all.emplace_back([&, i] {
                    if (it->start(id + "-" + std::to_string(i), what)) ++good;
                });
        }
        EXPECT_EQ(good, 1);
        EXPECT_EQ(it.host.launches(id), 1);
        it.host[id]->exit(0);
        (void)it.end_of(id);
        EXPECT_TRUE(it->cleanup(id));
    }
}

TEST(SessionRuntime, SixtyFourAtOnceAndNotOneMore) {
    runtime_scene it;
    it.open();
    const auto id = [](int i) { return "s" + std::to_string(i); };
    for (int i = 0; i <= 64; ++i) {
        it.create(id(i));
        (void)it.authorization(id(i));
    }
    std::atomic<int> good = 0;
    {
        std::vector<std::jthread> all;
        for (int i = 0; i < 64; ++i)
            all.emplace_back([&, i, what = it.authorization(id(i))] {
                if (it->start("start-" + id(i), what)) ++good;
            });
    }
    EXPECT_EQ(good, 64);
    EXPECT_EQ(code_of(it.start(id(64))), "session_start_failed");
    EXPECT_EQ(it.state_of(id(64)), created);
    for (int i = 0; i < 64; ++i) ASSERT_TRUE(it.host[id(i)]->show(id(i)));
    // One that is over still has its place, until it is cleaned up.
    it.host[id(9)]->exit(0);
    (void)it.end_of(id(9));
    EXPECT_EQ(code_of(it.start(id(64))), "session_start_failed");
    EXPECT_TRUE(it->cleanup(id(9)));
    EXPECT_TRUE(it.start(id(64)));
    for (int i = 0; i <= 64; ++i) it.host[id(i)]->exit(static_cast<std::uint32_t>(i));
    for (int i = 0; i <= 64; ++i) {
        EXPECT_EQ(it.end_of(id(i)).exit_code, i == 9 ? 0U : static_cast<unsigned>(i));
        if (i == 9 || i == 64) continue;
        EXPECT_EQ(it.shown(id(i)), id(i));
    }
}

// Stops.
TEST(SessionRuntime, AStopIsOnRecordUnderTheKeyOfTheCaller) {
    runtime_scene it;
    EXPECT_EQ(code_of(it->stop("stop-0", "nobody")), "session_stop_failed");
    it.create("one");
    EXPECT_EQ(code_of(it->stop("stop-0", "one")), "session_stop_failed");
    it.host.dress = [](puppet& one) { one.outlives_kill = true; };
    ASSERT_TRUE(it.start("one"));
    const auto puppet = it.host["one"];
    const auto stopped = it->stop("stop-1", "one");
    ASSERT_TRUE(stopped) << why_of(stopped);
    EXPECT_EQ(stopped->state, stopping);
    EXPECT_EQ(it.records->record("one")->idempotency_key, "stop-1");
    EXPECT_GE(puppet->killed, 1);
    EXPECT_EQ(code_of(it->stop("stop-2", "one")), "session_stop_failed");
    EXPECT_EQ(it->stop("stop-1", "one")->state, stopping);
    EXPECT_EQ(code_of(it->cleanup("one")), "session_cleanup_failed");
    puppet->end({process_end::how::signaled, 0});
    EXPECT_EQ(it.cause_of("one"), "signaled");
    EXPECT_FALSE(it.records->replayed("start-one.stopping"));
    EXPECT_EQ(it->stop("stop-1", "one")->state, exited);
    EXPECT_TRUE(it->cleanup("one"));
    EXPECT_EQ(it->stop("stop-1", "one")->state, exited);
    EXPECT_EQ(code_of(it->stop("stop-2", "one")), "session_stop_failed");
    it.restart();
    EXPECT_EQ(it->stop("stop-1", "one")->state, exited);
    EXPECT_EQ(code_of(it->stop("stop-2", "one")), "session_stop_failed");
    EXPECT_EQ(code_of(it->stop("create-one", "one")), "session_stop_failed");
    EXPECT_TRUE(it->cleanup("one"));
}

// Once it is on record as running it can be stopped, and then nothing of it goes on to run.
TEST(SessionRuntime, AStopBeforeTheRelease) {
    runtime_scene it;
    answer<session_view> stopped;
    it.steps.hold_at("release", [&] { stopped = it->stop("stop-1", "one"); });
    it.create("one");
    ASSERT_TRUE(it.start("one"));
    ASSERT_TRUE(stopped) << why_of(stopped);
    EXPECT_EQ(stopped->state, stopping);
    EXPECT_EQ(it.cause_of("one"), "signaled");
    EXPECT_TRUE(it.receipt_of("one"));
}

TEST(SessionRuntime, AStopOfAnotherSessionEndsNothing) {
    runtime_scene it;
    ASSERT_TRUE(it.begin("one"));
    const auto two = it.begin("two");
    ASSERT_TRUE(it->stop("stop-1", "one"));
    EXPECT_EQ(code_of(it->stop("stop-1", "two")), "session_stop_failed");
    EXPECT_EQ(code_of(it->stop("create-one", "two")), "session_stop_failed");
    EXPECT_EQ(code_of(it->stop("no key", "two")), "session_stop_failed");
    EXPECT_EQ(it.cause_of("one"), "signaled");
    EXPECT_EQ(two->killed, 0);
    EXPECT_EQ(it.state_of("two"), running);
}

TEST(SessionRuntime, ManyStopsWithOneKeyAreOne) {
    runtime_scene it;
    ASSERT_TRUE(it.begin("one"));
    std::atomic<int> good = 0;
    {
        std::vector<std::jthread> all;
        for (int i = 0; i < 16; ++i)
            all.emplace_back([&] {
                if (it->stop("stop-1", "one")) ++good;
            });
    }
    EXPECT_EQ(good, 16);
    EXPECT_EQ(it.cause_of("one"), "signaled");
}

// Whoever comes while a session is being started is told so, and does not wait.
TEST(SessionRuntime, AnotherStartDoesNotWait) {
    runtime_scene it;
    it.open();
    std::promise<void> goes_on;
    it.host.dress = [hangs = goes_on.get_future().share()](puppet& one) {
        one.during_launch = [hangs] { hangs.wait(); };
    };
    it.create("one");
    const auto what = it.authorization("one");
    auto first = std::async(std::launch::async, [&] { return it->start("start-one", what); });
    EXPECT_TRUE(it.is("one", starting));
    const auto second = it->start("start-one", what);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->state, starting);
    EXPECT_EQ(code_of(it->attach("one", 0, 1)), "session_attach_failed");
    EXPECT_EQ(code_of(it->write_input("one", "x")), "session_input_failed");
    EXPECT_EQ(code_of(it->stop("stop-1", "one")), "session_stop_failed");
    goes_on.set_value();
    EXPECT_EQ(first.get()->state, running);
    EXPECT_EQ(it.host.launches("one"), 1);
    EXPECT_EQ(it.host.prepared, 1);
}

TEST(SessionRuntime, WhatIsBeingPreparedIsNotPreparedAgain) {
    runtime_scene it;
    it.open();
    std::promise<void> is_preparing, goes_on;
    std::atomic<int> prepared = 0;
    it.host.dress = [&](puppet&) {
        if (++prepared > 1) return;
        is_preparing.set_value();
        goes_on.get_future().wait();
    };
    it.create("one");
    const auto what = it.authorization("one");
    auto first = std::async(std::launch::async, [&] { return it->start("start-one", what); });
    is_preparing.get_future().wait();
    const auto second = it->start("start-one", what);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->state, preparing);
    it.records.clock.set(what.expires_at_ms); // whoever prepares it finds out, and nobody else
    std::this_thread::sleep_for(600ms);
    EXPECT_EQ(it.state_of("one"), preparing);
    it.records.clock.set(what.expires_at_ms - 1);
    goes_on.set_value();
    EXPECT_EQ(first.get()->state, running);
    EXPECT_EQ(it.host.launches("one"), 1);
    EXPECT_EQ(prepared, 1);
}

#ifdef GLOVE_SANITIZED
constexpr int stop_rounds = 100;
#else
constexpr int stop_rounds = 1000;
#endif

TEST(SessionRuntime, AStopAndAnEndAtOnce) {
    runtime_scene it;
    int stopped = 0;
    for (int round = 0; round < stop_rounds; ++round) {
        const auto id = "s" + std::to_string(round);
        const auto puppet = it.begin(id);
        ASSERT_TRUE(puppet);
        answer<session_view> done;
        {
            std::jthread ending{[&] { puppet->exit(0); }};
            if (round % 2 == 0) std::this_thread::yield();
            done = it->stop("stop-" + id, id);
        }
        const auto end = it.end_of(id);
        ASSERT_EQ(end.state, exited);
        EXPECT_EQ(end.stopping_at_ms != 0, done.has_value()) << id;
        if (done) ++stopped;
        const auto again = it->stop("stop-" + id, id);
        EXPECT_EQ(code_of(again), done ? "" : "session_stop_failed");
        EXPECT_EQ(code_of(done), code_of(again));
        EXPECT_EQ(end.termination_cause, end.exit_code ? "exited" : "signaled");
        ASSERT_TRUE(it->cleanup(id));
        it.host.forget();
    }
    RecordProperty("stopped", stopped);
}

} // namespace
