// The life of sessions: replays, conflicts, authorizations, times, failures, and what a failing
// disk leaves. Each refusal leaves the session as it was.
#include "session_scene.hpp"
#include <gmock/gmock.h>
#include <support/folder.hpp>

namespace {

using namespace glove;
using namespace glove::test;

class Registry : public testing::Test {
protected:
    registry_scene scene;

    void expect_state(const std::string& id, session_state is) {
        EXPECT_EQ(scene.state_of(id), is) << id;
    }
};

TEST_F(Registry, WritesWhatAnotherImplementationWrites) {
    const auto seed = [](const std::string& name) {
        return content_of(std::string{GLOVE_SOURCE} + "/fuzz/seeds/session_registry/" + name);
    };
    const auto at = [&](std::uint64_t ms) { scene.clock.set(ms); };
    const auto begin = [&] {
        at(1000);
        ASSERT_TRUE(scene.create("session-1").has_value());
        at(1001);
        ASSERT_TRUE(scene.reserve("session-1").has_value());
    };
    const auto live = [&](const start_binding& how, const process_identity& what) {
        at(1100);
        ASSERT_TRUE(scene->mark_starting("k.starting", "session-1", how).has_value());
        at(1200);
        ASSERT_TRUE(scene->mark_running("k.running", "session-1", what).has_value());
    };
    const auto end = [&] {
        at(1300);
        ASSERT_TRUE(scene->mark_stopping("k.stopping", "session-1").has_value());
        ASSERT_TRUE(
            scene->mark_exited("k.exited", "session-1", receipt_at(1150, 1400)).has_value());
    };
    const auto begin_again = [&] {
        scene.registry.reset();
        scene.disk = failing_disk{};
    };
    begin();
    live(some_binding(), some_process());
    EXPECT_EQ(scene.disk.content(), seed("running"));
    end();
    EXPECT_EQ(scene.disk.content(), seed("whole-life"));
    begin_again();
    begin();
    live(managed_binding(), {.schema_version = 0, .pid = 0});
    end();
    EXPECT_EQ(scene.disk.content(), seed("managed-life"));
    begin_again();
    begin();
    at(1250);
    EXPECT_TRUE(scene.fail("session-1", "launch_failed").has_value());
    EXPECT_EQ(scene.disk.content(), seed("failed-while-preparing"));
}

TEST_F(Registry, OpensWhatAnotherImplementationWrote) {
    for (const char* name : {"empty", "running", "whole-life", "managed-life", "intents",
                             "failed-while-preparing", "failed-while-starting", "two-sessions"}) {
        scene.disk = failing_disk{};
        scene.disk.put(
            "file", content_of(std::string{GLOVE_SOURCE} + "/fuzz/seeds/session_registry/" + name));
        EXPECT_TRUE(scene.open()) << name << " " << scene.why.step << ": " << scene.why.detail;
    }
    scene.disk = failing_disk{};
    scene.disk.put(
        "file", content_of(std::string{GLOVE_SOURCE} + "/fuzz/seeds/session_registry/older-magic"));
    EXPECT_FALSE(scene.open());
    EXPECT_EQ(scene.why.step, "journal.header");
}

TEST_F(Registry, CreatesOnce) {
    const auto first = scene.create("one");
    ASSERT_TRUE(first.has_value()) << why_of(first);
    EXPECT_EQ(first->state, created);
    EXPECT_EQ(first->created_at_ms, 1000U);
    EXPECT_EQ(first->policy_revision, 7U);
    scene.bring("one", running);
    const auto size = scene.disk.content().size();
    const create_session same{"one", digits('c'), plan_text()};
    scene.clock.set(100'000); // the plan has expired, and nobody judges it again
    const auto again = scene->create("create-one", same, judge_none);
    ASSERT_TRUE(again.has_value()) << why_of(again);
    EXPECT_EQ(*again, *first);
    EXPECT_EQ(code_of(scene->create("create-one", {"two", digits('c'), plan_text()}, judge_none)),
              "idempotency_conflict");
    EXPECT_EQ(code_of(scene->create("create-one", {"one", digits('d'), plan_text()}, judge_none)),
              "idempotency_conflict");
    EXPECT_EQ(
        code_of(scene->create("create-one", {"one", digits('c'), plan_text() + " "}, judge_none)),
        "idempotency_conflict");
    EXPECT_EQ(code_of(scene->create("one.running", same, judge_none)), "idempotency_conflict");
    EXPECT_EQ(code_of(scene->create("another", same, judge_none)), "session_conflict");
    EXPECT_EQ(scene.disk.content().size(), size);
    ASSERT_TRUE(scene.open());
    EXPECT_EQ(scene->create("create-one", same, judge_none).value(), *first);
}

TEST_F(Registry, KeepsTheCanonicalPlanAndTheDigestOfWhatCame) {
    const auto sent = "  " + plan_text() + "\n";
    ASSERT_TRUE(scene.create("one", sent).has_value());
    const auto kept = scene->record("one").value();
    EXPECT_EQ(kept.canonical_plan_json, plan_text());
    EXPECT_EQ(kept.request_digest, wire::to_hex(*wire::sha256(sent)));
    EXPECT_EQ(kept.plan_content_digest, wire::to_hex(*wire::sha256(plan_text())));
}

TEST_F(Registry, RefusesWhatCannotBeCreated) {
    const auto with_id = [&](const std::string& id) {
        return code_of(scene->create("key", {id, digits('c'), plan_text()}, judge_all));
    };
    for (const std::string& wrong :
         {std::string{}, std::string{"."}, std::string{".."}, std::string{"a:b"},
          std::string{"a/b"}, std::string{"a b"}, std::string(65, 'a'), std::string{"-a"},
          std::string{".a"}, std::string{"..."}, std::string{"_a"}})
        EXPECT_EQ(with_id(wrong), "invalid_request") << wrong;
    for (const std::string& right : {std::string{"9"}, std::string{"a-"}, std::string{"Z.."},
                                     std::string(64, 'a'), std::string{"A_b-c.d9"}})
        EXPECT_EQ(code_of(scene.create(right)), "") << right;
    const create_session good{"one", digits('c'), plan_text()};
    EXPECT_EQ(code_of(scene->create("", good, judge_all)), "invalid_request");
    EXPECT_EQ(code_of(scene->create("a key", good, judge_all)), "invalid_request");
    EXPECT_EQ(code_of(scene->create(std::string(129, 'k'), good, judge_all)), "invalid_request");
    EXPECT_EQ(code_of(scene->create("key", {"one", digits('C'), plan_text()}, judge_all)),
              "invalid_request");
    EXPECT_EQ(code_of(scene->create("key", {"one", digits('c'), "{}"}, judge_all)), "invalid_plan");
    EXPECT_EQ(code_of(scene->create("key", good, judge_none)), "invalid_plan");
    scene.clock.set(61'000);
    EXPECT_EQ(code_of(scene->create("key", good, judge_all)), "invalid_plan");
    scene.clock.set(60'999);
    EXPECT_EQ(code_of(scene->create(std::string(128, 'k'), good, judge_all)), "");
}

TEST_F(Registry, HoldsSoManyThatAreNotOver) {
    scene.how.most_live = 2;
    EXPECT_EQ(code_of(scene.create("one")), "");
    EXPECT_EQ(code_of(scene.create("two", plan_text(5000))), "");
    const auto full = scene.create("three");
    EXPECT_EQ(code_of(full), "session_capacity");
    EXPECT_NE(why_of(full).find("2 sessions are not over"), std::string::npos);
    EXPECT_TRUE(why_of(full).ends_with("at the time 5000")) << why_of(full);
    scene.clock.set(4999);
    EXPECT_EQ(code_of(scene.create("three")), "session_capacity");
    scene.clock.set(5000); // the second one cannot be started any more
    EXPECT_EQ(code_of(scene.create("three")), "");
    EXPECT_EQ(code_of(scene.create("four")), "session_capacity");
    scene.bring("one", exited);
    EXPECT_EQ(code_of(scene.create("four")), "");
}

TEST_F(Registry, GoesThroughALife) {
    scene.bring("one", created);
    const auto reserved = scene.reserve("one");
    EXPECT_EQ(reserved->state, preparing);
    EXPECT_FALSE(reserved->profile_digest.has_value());
    scene.clock.add(10);
    EXPECT_EQ(scene.start("one")->profile_digest, digits('e'));
    scene.clock.add(10);
    EXPECT_EQ(scene.run("one")->state, running);
    scene.clock.add(10);
    EXPECT_EQ(scene.stop("one")->state, stopping);
    scene.clock.add(10);
    EXPECT_EQ(scene.exit("one")->state, exited);
    const auto last = scene->record("one").value();
    EXPECT_EQ(last.starting_at_ms, 1010U);
    EXPECT_EQ(last.running_at_ms, 1020U);
    EXPECT_EQ(last.stopping_at_ms, 1030U);
    EXPECT_EQ(last.finished_at_ms, 1040U);
    EXPECT_EQ(last.sequence, 6U);
    ASSERT_TRUE(scene.open());
    EXPECT_EQ(scene->record("one").value(), last);
}

// A key gives what the session is now, whatever it has become, and also after a restart.
TEST_F(Registry, AStepIsReplayed) {
    scene.bring("one", created);
    const auto granted = scene.authorization("one");
    ASSERT_TRUE(scene->reserve_start("one.reserve", granted).has_value());
    scene.bring("one", exited);
    scene.bring("two", created);
    const auto size = scene.disk.content().size();
    for (int life = 0; life < 2; ++life) {
        EXPECT_EQ(scene->reserve_start("one.reserve", granted)->state, exited);
        EXPECT_EQ(scene.start("one")->state, exited);
        EXPECT_EQ(scene.run("one")->state, exited);
        EXPECT_EQ(scene.exit("one")->state, exited);
        EXPECT_EQ(scene->replayed("one.running")->state, running);
        EXPECT_EQ(scene->replayed("one.reserve")->profile_digest, std::nullopt);
        EXPECT_EQ(scene->replayed("create-one")->state, created);
        EXPECT_FALSE(scene->replayed("unknown").has_value());
        auto other = granted;
        other.expires_at_ms += 1;
        EXPECT_EQ(code_of(scene->reserve_start("one.reserve", other)), "idempotency_conflict");
        other = granted;
        other.plan_content_digest = digits('f'); // is no part of what the record holds
        EXPECT_EQ(code_of(scene->reserve_start("one.reserve", other)), "idempotency_conflict");
        EXPECT_EQ(code_of(scene->mark_starting("one.starting", "two", some_binding())),
                  "idempotency_conflict");
        EXPECT_EQ(code_of(scene->mark_starting("one.starting", "three", some_binding())),
                  "idempotency_conflict");
        EXPECT_EQ(code_of(scene->mark_starting("one.starting", "one", managed_binding())),
                  "idempotency_conflict");
        auto process = some_process();
        process.pid = 1;
        EXPECT_EQ(code_of(scene.run("one", process)), "idempotency_conflict");
        EXPECT_EQ(code_of(scene->mark_exited("one.exited", "one", receipt_at(1, 1))),
                  "idempotency_conflict");
        EXPECT_EQ(code_of(scene->mark_stopping("one.running", "one")), "idempotency_conflict");
        ASSERT_TRUE(scene.open());
    }
    EXPECT_EQ(scene.disk.content().size(), size);
}

// Every event in every state: what the table does not lead from is refused and changes nothing.
TEST_F(Registry, TakesOnlyTheStepsOfTheTable) {
    using enum life_event;
    for (const auto from : {created, preparing, starting, running, stopping, exited, failed})
        for (const auto on : {reserve_start, mark_starting, mark_running, mark_stopping,
                              mark_exited, mark_failed}) {
            registry_scene fresh;
            fresh.bring("one", from);
            const auto before = fresh->record("one").value();
            const auto done = [&]() -> answer<session_view> {
                switch (on) {
                case reserve_start: return fresh->reserve_start("key", fresh.authorization("one"));
                case mark_starting: return fresh->mark_starting("key", "one", some_binding());
                case mark_running: return fresh->mark_running("key", "one", some_process());
                case mark_stopping: return fresh->mark_stopping("key", "one");
                case mark_exited: return fresh->mark_exited("key", "one", receipt_at(1000, 1000));
                default:
                    return fresh->mark_failed(
                        "key", "one", from == preparing ? "launch_failed" : "supervisor_error");
                }
            }();
            if (const auto to = next_state(from, on)) {
                ASSERT_TRUE(done.has_value()) << why_of(done);
                EXPECT_EQ(done->state, *to);
            } else {
                EXPECT_EQ(code_of(done), "invalid_session_state")
                    << to_string(from) << " " << static_cast<int>(on);
                EXPECT_EQ(fresh->record("one").value(), before);
                EXPECT_FALSE(fresh->replayed("key").has_value());
            }
        }
}

TEST_F(Registry, StartsOnlyWhatIsAuthorized) {
    scene.how.most_live = 50;
    scene.clock.set(1000);
    scene.bring("one", created, plan_text(400'000));
    scene.clock.set(10'000);
    const auto good = scene.authorization("one", 120'000);
    const auto with = [&](auto change) {
        auto what = good;
        change(what);
        return code_of(scene->reserve_start("key", what));
    };
    const std::string no = "invalid_authorization";
    using a = start_authorization;
    EXPECT_EQ(with([](a& x) { x.schema_version = 2; }), no);
    EXPECT_EQ(with([](a& x) { x.authorization_id = ""; }), no);
    EXPECT_EQ(with([](a& x) { x.authorization_id = "a b"; }), no);
    EXPECT_EQ(with([](a& x) { x.controller_plan_digest = digits('d'); }), no);
    EXPECT_EQ(with([](a& x) { x.plan_content_digest = digits('d'); }), no);
    EXPECT_EQ(with([](a& x) { x.approved_at_ms = 0; }), no);
    EXPECT_EQ(with([](a& x) { x.expires_at_ms = x.approved_at_ms; }), no);
    EXPECT_EQ(with([](a& x) { x.expires_at_ms += 1; }), no);  // longer than 120 s
    EXPECT_EQ(with([](a& x) { x.approved_at_ms += 1; }), no); // in the future
    EXPECT_EQ(with([](a& x) {
                  x.approved_at_ms = 999;
                  x.expires_at_ms = 20'000;
              }),
              no);
    EXPECT_EQ(with([](a& x) {
                  x.approved_at_ms = 9000;
                  x.expires_at_ms = 10'000;
              }),
              no);
    EXPECT_EQ(with([](a& x) { x.session_id = "two"; }), "session_not_found");
    EXPECT_EQ(code_of(scene->reserve_start("", good)), "invalid_request");
    expect_state("one", created);
    scene.clock.set(300'000);
    auto late = scene.authorization("one", 100'000);
    late.expires_at_ms = 400'001;
    EXPECT_EQ(code_of(scene->reserve_start("key", late)), no); // outlives the plan
    late.expires_at_ms = 400'000;
    EXPECT_EQ(code_of(scene->reserve_start("key", late)), "");
    // Just within: approved with the creation, to the last moment.
    scene.bring("two", created, plan_text(400'000));
    auto edge = scene.authorization("two", 2);
    edge.approved_at_ms = 300'000;
    edge.expires_at_ms = 300'001;
    EXPECT_EQ(code_of(scene->reserve_start("key-2", edge)), "");
}

TEST_F(Registry, AnAuthorizationEnds) {
    scene.bring("one", preparing); // from 1000 until 2000
    scene.bring("two", preparing);
    scene.clock.set(1999);
    EXPECT_EQ(code_of(scene.start("two")), "");
    scene.clock.set(2000);
    EXPECT_EQ(code_of(scene.start("one")), "invalid_authorization");
    EXPECT_EQ(code_of(scene.run("two")), "invalid_authorization");
    EXPECT_EQ(scene.fail("one", "authorization_expired")->state, failed);
    EXPECT_EQ(scene.fail("two", "authorization_expired")->state, failed);
    EXPECT_FALSE(scene->status("one")->profile_digest.has_value());
    EXPECT_TRUE(scene->status("two")->profile_digest.has_value());
    ASSERT_TRUE(scene.open());
    EXPECT_EQ(scene->record("one")->failure_code, "authorization_expired");
}

// Whatever the clock does, a session that runs can be ended on record.
TEST_F(Registry, AClockThatIsSetBackEndsNothing) {
    scene.clock.set(5000);
    scene.bring("one", preparing);
    scene.clock.set(4000);
    EXPECT_EQ(code_of(scene.start("one")), "");
    scene.clock.set(3000);
    EXPECT_EQ(code_of(scene.run("one")), "");
    scene.clock.set(2000);
    EXPECT_EQ(code_of(scene.stop("one")), "");
    EXPECT_EQ(code_of(scene.fail("one", "supervisor_error")), "");
    EXPECT_EQ(scene->record("one")->finished_at_ms, 5000U);
    ASSERT_TRUE(scene.open());
}

TEST_F(Registry, AFailureFitsTheState) {
    const std::vector<std::string_view> codes{"authorization_expired", "launch_failed",
                                              "supervisor_error", "recovered_without_process",
                                              "recovered_terminated"};
    for (const auto from : {preparing, starting, running, stopping})
        for (const auto code : codes) {
            registry_scene fresh;
            fresh.bring("one", from);
            EXPECT_EQ(code_of(fresh.fail("one", code)),
                      may_fail(from, code) ? "" : "session_control_failed")
                << to_string(from) << " " << code;
            EXPECT_EQ(fresh.state_of("one"), may_fail(from, code) ? failed : from);
        }
    scene.bring("one", running);
    EXPECT_EQ(code_of(scene.fail("one", "another")), "session_control_failed");
    EXPECT_EQ(code_of(scene.fail("one", "")), "session_control_failed");
}

TEST_F(Registry, RefusesReceiptsThatDoNotFit) {
    scene.clock.set(1500);
    scene.bring("one", running);
    const auto with = [&](auto change) {
        auto what = receipt_at(1400, 1600);
        change(what);
        return code_of(scene->mark_exited("key", "one", what));
    };
    const std::string no = "session_control_failed";
    using t = terminal_envelope;
    EXPECT_EQ(with([](t& x) { x.started_at_ms = 1501; }), no);
    EXPECT_EQ(with([](t& x) { x.finished_at_ms = 1499; }), no);
    EXPECT_EQ(with([](t& x) { x.sequence = 0; }), no);
    EXPECT_EQ(with([](t& x) { x.key_id = "short"; }), no);
    EXPECT_EQ(with([](t& x) { x.receipt_digest = ""; }), no);
    EXPECT_EQ(with([](t& x) { x.termination_cause = "boredom"; }), no);
    EXPECT_EQ(with([](t& x) { x.termination_cause = "signaled"; }), no);
    EXPECT_EQ(with([](t& x) { x.exit_code = 256; }), no);
    EXPECT_EQ(with([](t& x) { x.refinement = true; }), no);
    expect_state("one", running);
    EXPECT_EQ(with([](t& x) {
                  x.started_at_ms = 1500;
                  x.finished_at_ms = 1500;
              }),
              "");
}

TEST_F(Registry, ARefinementEndsWithAReceiptOfItsKind) {
    scene.bring("one", running, plan_text(61'000, refinement_plan()));
    auto what = receipt_at(1000, 1000);
    EXPECT_EQ(code_of(scene->mark_exited("key", "one", what)), "session_control_failed");
    what.refinement = true;
    EXPECT_EQ(code_of(scene->mark_exited("key", "one", what)), "");
    EXPECT_EQ(scene->record("one")->operation, "mark_refinement_exited");
    EXPECT_EQ(scene->mark_exited("key", "one", what)->state, exited);
    ASSERT_TRUE(scene.open());
    expect_state("one", exited);
}

TEST_F(Registry, RefusesBindingsAndProcessesThatAreNone) {
    scene.bring("one", preparing);
    const auto start = [&](auto change) {
        auto what = some_binding();
        change(what);
        return code_of(scene.start("one", what));
    };
    const std::string no = "session_control_failed";
    using b = start_binding;
    EXPECT_EQ(start([](b& x) { x.launch_profile_digest = ""; }), no);
    EXPECT_EQ(start([](b& x) { x.launch_profile_digest = "e"; }), no);
    EXPECT_EQ(start([](b& x) { x.managed_runtime = managed_binding().managed_runtime; }), no);
    EXPECT_EQ(start([](b& x) { x.filesystem->partitions[0].alias = "z"; }), no);
    EXPECT_EQ(start([](b& x) { x.filesystem->disk_limit_bytes = 1; }), no);
    EXPECT_EQ(start([](b& x) { x.cgroup->schema_version = 2; }), no);
    // The plan has one projection and one secret, and eight are always allowed.
    const auto partitions = [&](std::size_t count) {
        return start([&](b& x) {
            x.filesystem->partitions.clear();
            for (std::size_t i = 0; i < count; ++i)
                x.filesystem->partitions.push_back({"p" + std::to_string(10 + i), 1});
        });
    };
    EXPECT_EQ(partitions(11), no);
    expect_state("one", preparing);
    EXPECT_EQ(partitions(10), "");
    const auto run = [&](auto change) {
        auto what = some_process();
        change(what);
        return code_of(scene.run("one", what));
    };
    using p = process_identity;
    EXPECT_EQ(run([](p& x) { x.pid = 0; }), no);
    EXPECT_EQ(run([](p& x) { x.boot_id = "boot"; }), no);
    EXPECT_EQ(run([](p& x) { x.cgroup_path_digest = ""; }), no);
    EXPECT_EQ(run([](p&) {}), "");
}

TEST_F(Registry, ListsById) {
    for (const char* id : {"b", "a", "d", "c"}) scene.bring(id, created);
    const auto page = [&](std::string_view after, std::size_t limit) {
        const auto got = scene->list(after, limit);
        std::string out;
        for (const auto& one : got.sessions) out += one.session_id;
        return out + (got.next_after ? ">" + *got.next_after : "");
    };
    EXPECT_EQ(page("", 10), "abcd");
    EXPECT_EQ(page("", 4), "abcd");
    EXPECT_EQ(page("", 3), "abc>c");
    EXPECT_EQ(page("b", 1), "c>c");
    EXPECT_EQ(page("d", 1), "");
    EXPECT_EQ(page("", 0), "a>a");
    EXPECT_EQ(code_of(scene->status("e")), "session_not_found");
    EXPECT_EQ(code_of(scene->record("")), "session_not_found");
}

// What a disk refuses is as if nobody had asked, but for the disk; looking goes on.
TEST_F(Registry, AFailedWriteChangesNothingThatIsSeen) {
    for (const auto does : all_effects) {
        registry_scene fresh;
        fresh.bring("one", running);
        const auto before = fresh->record("one").value();
        fresh.disk.plan({.at = 2, .does = does});
        EXPECT_EQ(code_of(fresh.stop("one")), "session_storage_failed");
        ASSERT_TRUE(fresh.disk.fired());
        EXPECT_EQ(fresh->record("one").value(), before);
        EXPECT_FALSE(fresh->replayed("one.stopping").has_value());
        // Poisoned from now on.
        EXPECT_EQ(code_of(fresh.stop("one")), "session_storage_failed");
        EXPECT_EQ(code_of(fresh.create("two")), "session_storage_failed");
        EXPECT_EQ(code_of(fresh.say("one", "intent-1")), "observation_intent_storage_failed");
        EXPECT_EQ(fresh->status("one")->state, running);
        EXPECT_EQ(fresh->list("", 10).sessions.size(), 1U);
        EXPECT_EQ(fresh.run("one")->state, running); // a replay needs no disk
        EXPECT_EQ(fresh.create("one")->state, created);
    }
}

} // namespace
