// Many threads with all calls at once; and looking while the disk takes its time.
#include "session_scene.hpp"
#include <condition_variable>
#include <thread>

namespace {

using namespace glove;
using namespace glove::test;

constexpr int threads = 64;

TEST(SessionThreads, AllCallsAtOnce) {
    registry_scene scene;
    scene.how.records = 1000; // rotations happen
    scene.how.most_live = 100;
    scene.clock.set(1000);
    ASSERT_TRUE(scene.open());
    std::atomic<int> wrong = 0;
    const auto expect = [&](bool holds) {
        if (!holds) ++wrong;
    };
    const auto work = [&](int who) {
        for (int round = 0; round < 4; ++round) {
            const auto id = "t" + std::to_string(who) + "-" + std::to_string(round);
            // Expired once the clock was moved on, so that it may be forgotten.
            expect(scene.create(id, plan_text(100'000'000)).has_value());
            expect(scene.create(id, plan_text(100'000'000)).has_value());
            expect(scene
                       ->reserve_start(id + ".reserve",
                                       {1, "approval", id, digits('c'),
                                        scene->status(id)->plan_content_digest, 1000, 60'000})
                       .has_value());
            expect(scene.start(id).has_value());
            expect(scene.run(id).has_value());
            const auto said = scene.say(id, "intent");
            expect(said.has_value());
            (void)scene->pending(0, 256);
            (void)scene->quarantined(0, 256);
            (void)scene->list("", 256);
            expect(scene.decide(*said).has_value());
            expect(scene->replayed(id + ".running")->state == running);
            if (who % 2 == 0) expect(scene.stop(id).has_value());
            expect(scene.exit(id).has_value());
            // The same key for all: one of them makes it, the others are told so.
            const auto shared = "shared-" + std::to_string(round);
            expect(scene.create(shared, plan_text(100'000'000)).has_value());
            const auto now = scene->status(id);
            expect(!now || now->state == exited);
        }
    };
    {
        std::vector<std::jthread> all;
        for (int i = 0; i < threads; ++i) all.emplace_back(work, i);
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(scene->pending(0, 256).items.size(), 0U);
    std::map<std::string, session_record> kept;
    for (std::string after;;) {
        const auto page = scene->list(after, 256);
        for (const auto& one : page.sessions)
            kept[one.session_id] = scene->record(one.session_id).value();
        if (!page.next_after) break;
        after = *page.next_after;
    }
    EXPECT_GT(kept.size(), 60U);
    ASSERT_TRUE(scene.open()) << scene.why.detail;
    for (const auto& [id, what] : kept) EXPECT_EQ(scene->record(id).value(), what);
}

// A disk that takes as long as the test wants.
class slow_storage final : public journal::storage {
public:
    explicit slow_storage(failing_disk& disk) : fast_{disk} {}
    void hold() {
        const std::scoped_lock lock{mutex_};
        held_ = true;
    }
    void release() {
        {
            const std::scoped_lock lock{mutex_};
            held_ = false;
        }
        changed_.notify_all();
    }
    void wait_until_waiting() {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return waiting_; });
    }

    auto size() -> result<std::optional<std::uint64_t>> override { return fast_.size(); }
    auto read(std::uint64_t at, std::span<char> out) -> result<std::size_t> override {
        return fast_.read(at, out);
    }
    auto check() -> result<> override { return fast_.check(); }
    auto append(std::string_view bytes) -> result<> override { return fast_.append(bytes); }
    auto truncate(std::uint64_t size) -> result<> override { return fast_.truncate(size); }
    auto sync() -> result<> override {
        std::unique_lock lock{mutex_};
        waiting_ = held_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return !held_; });
        waiting_ = false;
        return fast_.sync();
    }
    auto start_next() -> result<> override { return fast_.start_next(); }
    auto append_next(std::string_view bytes) -> result<> override {
        return fast_.append_next(bytes);
    }
    auto sync_next() -> result<> override { return fast_.sync_next(); }
    auto keep_present() -> result<> override { return fast_.keep_present(); }
    auto adopt_next() -> result<> override { return fast_.adopt_next(); }
    auto sync_names() -> result<> override { return fast_.sync_names(); }
    auto witness() -> result<std::string> override { return fast_.witness(); }
    auto set_witness(std::string_view text) -> result<> override { return fast_.set_witness(text); }

private:
    failing_storage fast_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool held_ = false;
    bool waiting_ = false;
};

TEST(SessionThreads, LookingDoesNotWaitForTheDisk) {
    failing_disk disk;
    slow_storage store{disk};
    hand_clock clock;
    const auto registry = session_registry::open(store, {}, nullptr, clock).value();
    ASSERT_TRUE(
        registry->create("create-one", {"one", digits('c'), plan_text()}, judge_all).has_value());
    store.hold();
    std::jthread writer{[&] {
        EXPECT_TRUE(registry->create("create-two", {"two", digits('c'), plan_text()}, judge_all)
                        .has_value());
    }};
    store.wait_until_waiting();
    EXPECT_EQ(registry->status("one")->state, created);
    EXPECT_EQ(registry->list("", 10).sessions.size(), 1U); // nothing is shown before it is there
    EXPECT_FALSE(registry->replayed("create-two").has_value());
    EXPECT_TRUE(registry->pending(0, 1).items.empty());
    EXPECT_EQ(registry->create("create-one", {"one", digits('c'), plan_text()}, judge_none)->state,
              created); // a replay of a creation does not wait either
    store.release();
    writer.join();
    EXPECT_EQ(registry->list("", 10).sessions.size(), 2U);
}

} // namespace
