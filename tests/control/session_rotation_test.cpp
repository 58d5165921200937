// A file that is full is begun anew: what is kept, what is forgotten, and that replays stay true.
#include "control/session_book.hpp"
#include "control/session_room.hpp"
#include "session_scene.hpp"
#include <gmock/gmock.h>
#include <support/memory_storage.hpp>

namespace {

using namespace glove;
using namespace glove::test;

// What one life costs, compared with that of the program as it is shipped.
#ifdef GLOVE_SANITIZED
constexpr int costs = 20;
#else
constexpr int costs = 1;
#endif

class Rotation : public testing::Test {
protected:
    registry_scene scene;
    int made = 0;

    // One whole life; the id.
    auto live(const std::string& text) -> std::string {
        const auto id = "life-" + std::to_string(made++);
        scene.bring(id, exited, text);
        return id;
    }
    [[nodiscard]] auto rotated() const -> bool {
        return scene.disk.content().find("journal_snapshot_v1") < 32;
    }
    void fill_until_rotated() {
        const auto before = scene.disk.look("file");
        while (scene.disk.look("file") == before) {
            live(plan_text(scene.clock.ms() + 10));
            scene.clock.add(100);
            ASSERT_LT(made, 3000);
        }
        ASSERT_TRUE(rotated());
    }
};

TEST_F(Rotation, TwentyThousandSessionsInARow) {
    // A disk that can lose power copies its file at each write, which takes longer than all the
    // rest.
    memory_files files;
    memory_storage store{files};
    const auto open = [&] {
        scene.registry.reset();
        auto opened = session_registry::open(store, scene.how, &scene.channels, scene.clock);
        ASSERT_TRUE(opened.has_value()) << opened.error().detail;
        scene.registry = *std::move(opened);
    };
    scene.how.records = 1200;
    ASSERT_NO_FATAL_FAILURE(open());
    constexpr int lives = 20'000 / costs;
    for (int i = 1; i <= lives; ++i) {
        live(plan_text(scene.clock.ms() + 1000));
        scene.clock.add(10);
        if (HasFatalFailure()) return;
        if (i % 1000 != 0) continue;
        ASSERT_NO_FATAL_FAILURE(open());
    }
    EXPECT_LT(files.file->find("journal_snapshot_v1"), 32U);
    EXPECT_LE(scene->list("", 256).sessions.size(), 256U);
    EXPECT_EQ(scene.state_of("life-" + std::to_string(lives - 1)), exited);
    EXPECT_EQ(code_of(scene->status("life-100")), "session_not_found");
}

TEST_F(Rotation, AlsoInASmallFile) {
    scene.how.file_bytes = 128U << 10;
    constexpr int lives = 2'000 / costs;
    for (int i = 0; i < lives; ++i) {
        live(plan_text(scene.clock.ms() + 1000));
        scene.clock.add(10);
        if (HasFatalFailure()) return;
        ASSERT_LE(scene.disk.content().size(), 128U << 10);
    }
    ASSERT_TRUE(scene.open()) << scene.why.detail;
    EXPECT_EQ(scene.state_of("life-" + std::to_string(lives - 1)), exited);
}

TEST_F(Rotation, KeepsAllThatIsNotOver) {
    scene.how.records = 200;
    std::map<std::string, session_record> alive;
    for (const auto is : {created, preparing, starting, running, stopping}) {
        const std::string id{to_string(is)};
        scene.bring(id, is, plan_text(10'000'000));
        alive[id] = scene->record(id).value();
    }
    const auto open = scene.say("running", "open").value();
    const auto said = scene.say("running", "said").value();
    scene.decide(said).value();
    const auto expect_all = [&] {
        for (const auto& [id, what] : alive) {
            EXPECT_EQ(scene->record(id).value(), what);
            EXPECT_EQ(
                scene->create("create-" + id, {id, digits('c'), plan_text(10'000'000)}, judge_none)
                    ->state,
                created);
        }
        EXPECT_EQ(scene->replayed("running.starting")->state, starting);
        EXPECT_EQ(scene.run("stopping")->state, stopping);
        EXPECT_EQ(scene->pending(0, 10).items.size(), 1U);
        EXPECT_EQ(scene.say("running", "said")->disposition, intent_disposition::accepted);
    };
    for (int i = 0; i < 3; ++i) {
        ASSERT_NO_FATAL_FAILURE(fill_until_rotated());
        expect_all();
        ASSERT_TRUE(scene.open()) << scene.why.detail;
        expect_all();
    }
    EXPECT_EQ(code_of(scene.decide(open, intent_disposition::expired)), "");
    // Each goes on from where it is.
    EXPECT_EQ(code_of(scene.fail("preparing", "launch_failed")), "");
}

TEST_F(Rotation, ForgetsWhatCannotBeAskedForAnyMore) {
    scene.how.records = 200;
    scene.how.most_kept = 3;
    scene.bring("never", created, plan_text(2000));
    scene.bring("late", preparing, plan_text(2500));
    scene.bring("kept", exited, plan_text(100'000'000)); // its plan has not expired
    const auto first = live(plan_text(2000));
    ASSERT_NO_FATAL_FAILURE(fill_until_rotated());
    EXPECT_EQ(code_of(scene->status("never")), "session_not_found");
    EXPECT_EQ(code_of(scene->status(first)), "session_not_found");
    EXPECT_FALSE(scene->replayed("create-" + first).has_value());
    EXPECT_EQ(scene.state_of("late"), preparing); // it may still fail on record
    EXPECT_EQ(scene.state_of("kept"), exited);
    EXPECT_EQ(
        scene->create("create-kept", {"kept", digits('c'), plan_text(100'000'000)}, judge_none)
            ->state,
        created);
    EXPECT_EQ(
        code_of(scene->create("create-" + first, {first, digits('c'), plan_text(2000)}, judge_all)),
        "invalid_plan"); // forgotten, and never made twice: the plan has expired
    scene.clock.add(700'000);
    ASSERT_NO_FATAL_FAILURE(fill_until_rotated());
    EXPECT_EQ(code_of(scene->status("late")), "session_not_found");
    EXPECT_EQ(scene.state_of("kept"), exited);
}

TEST_F(Rotation, AnIntentThatWaitsKeepsItsSession) {
    scene.how.records = 200;
    scene.how.most_kept = 0;
    scene.bring("one", running);
    const auto context = [&] {
        auto out = scene.context("one");
        out.expires_at_ms = out.issued_at_ms + 10'000;
        return out;
    }();
    const auto waits = scene->enqueue(context, scene.body("waits")).value();
    scene.decide(scene.say("one", "decided").value()).value();
    scene.bring("one", exited);
    scene.clock.set(1500);
    while (!rotated()) live(plan_text(scene.clock.ms() + 1));
    scene.clock.add(100);
    ASSERT_EQ(scene->pending(0, 10).items.size(), 1U);
    EXPECT_EQ(scene.state_of("one"), exited);
    EXPECT_EQ(code_of(scene.decide(waits)), "");
    ASSERT_TRUE(scene.open());
    EXPECT_EQ(scene->pending(0, 10).items.size(), 0U);
}

// An intent needs room for itself and for its decision, whatever is left of the file, and also
// where there is no other intent that could be forgotten.
TEST(Rotations, AnIntentMakesRoomForItself) {
    for (std::size_t records = 30; records < 40; ++records) {
        registry_scene s;
        s.how.records = records;
        for (int i = 0; i < 20; ++i) {
            s.bring("life-" + std::to_string(i), exited, plan_text(s.clock.ms() + 10));
            s.clock.add(200);
        }
        s.bring("guest", running, plan_text(s.clock.ms() + 1000));
        for (int i = 0; i < 3; ++i) { // the quota of such a file
            const auto number = std::to_string(i);
            const auto said = s.say("guest", "intent-" + number);
            ASSERT_EQ(why_of(said), "") << "intent " << i << " in a file of " << records;
        }
    }
}

TEST_F(Rotation, AFileFullOfLivingSessionsIsFull) {
    scene.how.records = 60;
    std::size_t alive = 0;
    while (scene.create("s-" + std::to_string(alive))) ++alive;
    EXPECT_EQ(alive, 10U);   // six records each
    EXPECT_FALSE(rotated()); // there was nothing to forget
    for (std::size_t i = 0; i < alive; ++i) scene.bring("s-" + std::to_string(i), exited);
    EXPECT_EQ(code_of(scene.create("after-1")), ""); // five of each were needed
    EXPECT_EQ(code_of(scene.create("after-2")), "");
    EXPECT_TRUE(rotated());
    EXPECT_EQ(scene.create("s-9")->state, created); // its plan has not expired: it is remembered
}

// A rotation that fails leaves the registry as it was, whichever operation it was.
TEST_F(Rotation, AFailedRotationForgetsNothing) {
    for (std::size_t at = 1;; ++at) {
        registry_scene s;
        s.how.records = 60;
        for (int i = 0; i < 11; ++i) s.bring("s-" + std::to_string(i), exited);
        s.clock.set(70'000);
        const auto before = s->list("", 100).sessions;
        s.disk.plan({.at = at, .does = effect::part});
        const auto done = s.create("after", plan_text(100'000));
        if (!s.disk.fired()) {
            EXPECT_EQ(code_of(done), "");
            EXPECT_GT(at, 9U);
            break;
        }
        EXPECT_EQ(code_of(done), "session_storage_failed") << at;
        if (s.disk.content().find("journal_snapshot_v1") == std::string::npos) {
            EXPECT_EQ(s->list("", 100).sessions, before) << at;
        }
        s.disk.plan({});
        ASSERT_TRUE(s.open()) << at << s.why.step << s.why.detail;
        EXPECT_EQ(code_of(s.create("after", plan_text(100'000))), "");
    }
}

// Old files have no reservations: there is room once what is over is forgotten.
TEST_F(Rotation, AFullFileOfAnotherWriterIsOpened) {
    scene.how.records = 60;
    for (int i = 0; i < 9; ++i) scene.bring("s-" + std::to_string(i), exited);
    scene.bring("alive", running); // 49 records and two that are owed
    scene.clock.set(100'000);
    scene.how.records = 50;
    ASSERT_TRUE(scene.open()) << scene.why.detail;
    EXPECT_TRUE(rotated());
    EXPECT_EQ(scene.state_of("alive"), running);
}

TEST_F(Rotation, TheLongestRecordsFit) {
    auto plan = plan_of_version_2();
    const auto longest = [](char c) { return std::string(128, c); };
    plan.grants = std::vector<supervisor::exposure_grant>{};
    for (char c = 'A'; c < 'A' + 20; ++c) {
        auto grant = project_grant();
        grant.exposure_id = longest(c);
        std::get<1>(plan.grants).push_back(grant);
    }
    const std::string id(64, 's');
    const auto text = plan_text(UINT64_MAX, plan);
    scene.clock.set(1'000'000'000'000);
    ASSERT_EQ(code_of(scene->create(longest('k'), {id, digits('c'), text}, judge_all)), "");
    auto authorization = scene.authorization(id, 120'000);
    authorization.authorization_id = longest('z');
    ASSERT_EQ(code_of(scene->reserve_start(longest('l'), authorization)), "");
    auto binding = some_binding();
    binding.cgroup = cgroup_identity{1, UINT64_MAX, UINT64_MAX};
    binding.filesystem = filesystem_identity{1, UINT64_MAX, {}};
    for (const char c : std::string_view{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcd"}) // 20 + 1 + 1 + 8
        binding.filesystem->partitions.push_back({longest(c), UINT64_MAX / 100});
    ASSERT_EQ(code_of(scene->mark_starting(longest('m'), id, binding)), "");
    auto process = some_process();
    process.pid = UINT32_MAX;
    process.start_time_ticks = process.cgroup_device = process.cgroup_inode = UINT64_MAX;
    ASSERT_EQ(code_of(scene->mark_running(longest('n'), id, process)), "");
    auto context = scene.context(id);
    context.channel_generation = UINT64_MAX;
    context.channel_id = context.channel_id = longest('c');
    auto body = scene.body(longest('i'));
    body.observation = longest('o');
    const auto said = scene->enqueue(context, body);
    ASSERT_EQ(code_of(said), "") << why_of(said);
    EXPECT_EQ(code_of(scene.decide(*said)), "");
    ASSERT_EQ(code_of(scene->mark_stopping(longest('p'), id)), "");
    auto receipt = receipt_at(1, UINT64_MAX);
    receipt.sequence = UINT64_MAX;
    receipt.exit_code = 255;
    EXPECT_EQ(code_of(scene->mark_exited(longest('q'), id, receipt)), "");
    // The estimate is no lower than the longest of them, and not far above.
    const auto last = scene->record(id).value();
    const auto facts = facts_of(supervisor::decode_plan(text).value());
    EXPECT_EQ(facts.most_partitions, 30U);
    EXPECT_GE(longest_record(last, facts), encode(last).value().size());
    EXPECT_LE(longest_record(last, facts), encode(last).value().size() + 1500);
    ASSERT_TRUE(scene.open());
}

} // namespace
