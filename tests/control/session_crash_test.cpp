// Faults by exhaustion: the first operation of the disk breaks, then the second, and so on until a
// run meets no fault; then the process is started again, or the power was lost. All that was
// answered is there, nothing is there twice, and the work can be done to its end.
#include "control/session_state.hpp"
#include "session_scene.hpp"
#include <glove/journal/inspect.hpp>

namespace {

using namespace glove;
using namespace glove::test;

class reader final : public journal::record_reader {
public:
    auto read(std::string_view payload) -> result<journal::facts> override {
        GLOVE_TRY(const auto what, codec_.decode(payload));
        return codec_.facts_of(what);
    }
    auto apply(journal::origin) -> result<> override { return {}; }
    auto authenticate(std::string_view bytes) -> result<std::string> override {
        return codec_.authenticate(bytes);
    }

private:
    session_codec codec_;
};

constexpr std::uint64_t short_life = 1500;
constexpr std::size_t file_records = 18; // so that the last session needs a rotation

// What was answered, by key.
struct history {
    std::map<std::string, session_view> steps;
    std::map<std::string, intent_disposition> intents;
};

class life {
public:
    registry_scene scene;
    history seen;

    life() {
        scene.how.records = file_records;
        scene.how.most_kept = 0;
    }
    // Up to the first answer that blames the disk; false when there was one. Every call has a key,
    // so it may be made again.
    auto work() -> bool {
        if (scene.clock.ms() < short_life) scene.clock.set(1000);
        return session("a", plan_text(short_life), exited) && talk() && late();
    }
    [[nodiscard]] auto last_sequence() -> std::uint64_t { return scene->record("c")->sequence; }

private:
    template<class T> auto fine(const answer<T>& what, const std::string& key) -> bool {
        if (what) return true;
        // Forgotten: over, and its plan has expired.
        const auto code = code_of(what);
        if (key.ends_with("a") || key.starts_with("a.")) {
            if (code == "session_not_found" || code == "invalid_plan") return true;
        }
        EXPECT_TRUE(code.ends_with("storage_failed")) << key << " " << why_of(what);
        return false;
    }
    auto note(const answer<session_view>& what, const std::string& key) -> bool {
        if (what && !seen.steps.contains(key)) seen.steps[key] = *scene->replayed(key);
        return fine(what, key);
    }
    auto session(const std::string& id, const std::string& text, session_state to) -> bool {
        if (!note(scene->create("create-" + id, {id, digits('c'), text}, judge_all),
                  "create-" + id))
            return false;
        const start_authorization granted{
            1, "approval-1", id, digits('c'), wire::to_hex(*wire::sha256(text)), 1000, 1400};
        if (!note(scene->reserve_start(id + ".reserve", granted), id + ".reserve")) return false;
        if (!note(scene.start(id), id + ".starting")) return false;
        if (!note(scene.run(id), id + ".running")) return false;
        if (to == running) return true;
        return note(scene->mark_exited(id + ".exited", id, receipt_at(1000, 1000)), id + ".exited");
    }
    auto talk() -> bool {
        if (!session("b", plan_text(), running)) return false;
        const auto said = scene.say("b", "x");
        if (!fine(said, "x")) return false;
        seen.intents.emplace("x", said->disposition);
        const auto decided = scene.decide(*said);
        if (!fine(decided, "x")) return false;
        seen.intents["x"] = decided->disposition;
        return note(scene->mark_stopping("b.stopping", "b"), "b.stopping");
    }
    auto late() -> bool {
        scene.clock.set(short_life + 1);
        return note(scene->create("create-c", {"c", digits('c'), plan_text()}, judge_all),
                    "create-c");
    }
};

struct crash {
    bool power = false;
    std::size_t names = 0;
    survives contents{};
};
auto all_crashes() -> std::vector<crash> {
    std::vector<crash> out{{}};
    for (const std::size_t names : {0U, 1U, 99U})
        for (const auto contents : {survives::nothing, survives::half, survives::everything})
            out.push_back({true, names, contents});
    return out;
}

void open_again(life& now) {
    if (now.scene.open()) return;
    ASSERT_EQ(now.scene.why.step, "journal.torn") << now.scene.why.detail;
    failing_storage store{now.scene.disk};
    reader with;
    journal::settings how{.form = journal::session_registry, .records = file_records};
    const auto mended = journal::repair(store, how, with);
    ASSERT_TRUE(mended.has_value()) << mended.error().step << mended.error().detail;
    ASSERT_TRUE(now.scene.open()) << now.scene.why.step << ": " << now.scene.why.detail;
}

void expect_all(life& now, bool forgets) {
    for (const auto& [key, view] : now.seen.steps) {
        const auto again = now.scene->replayed(key);
        if (!again && forgets && view.session_id == "a") continue;
        ASSERT_TRUE(again.has_value()) << key;
        ASSERT_EQ(*again, view) << key;
    }
    const auto pending = now.scene->pending(0, 10).items.size();
    for (const auto& [id, disposition] : now.seen.intents) {
        if (disposition == intent_disposition::pending) continue;
        ASSERT_EQ(pending, 0U) << id;
    }
}

struct gone final : process_observer {
    auto observe(const session_record&) -> observed_process override {
        return observed_process::gone;
    }
};

TEST(SessionCrash, TheWorkIsDoneWithoutFaults) {
    life now;
    ASSERT_TRUE(now.work());
    EXPECT_NE(now.scene.disk.content().find("journal_snapshot_v1"), std::string::npos);
    const auto last = now.last_sequence();
    EXPECT_TRUE(now.work()); // all of it is a replay
    EXPECT_EQ(now.last_sequence(), last);
}

TEST(SessionCrash, EveryOperationBreaksOnce) {
    std::size_t runs = 0;
    for (const auto does : all_effects)
        for (const auto after : {then::recovers, then::stays_broken})
            for (const auto& how : all_crashes())
                for (std::size_t at = 1;; ++at) {
                    life now;
                    now.scene.disk.plan({.at = at, .does = does, .after = after});
                    if (now.scene.open()) (void)now.work();
                    if (!now.scene.disk.fired()) break;
                    ++runs;
                    now.scene.disk.plan({});
                    now.scene.registry.reset();
                    if (how.power) now.scene.disk.lose_power(how.names, how.contents);
                    const auto place = testing::Message()
                                       << "operation " << at << ", effect "
                                       << static_cast<int>(does) << ", after "
                                       << static_cast<int>(after) << ", power " << how.power << ' '
                                       << how.names << ' ' << static_cast<int>(how.contents);
                    ASSERT_NO_FATAL_FAILURE(open_again(now)) << place;
                    ASSERT_NO_FATAL_FAILURE(expect_all(now, true)) << place;
                    // What was left is ended, and everything else can be done to its end.
                    gone nobody;
                    ASSERT_TRUE(now.scene->recover({}, nobody).has_value()) << place;
                    now.scene.clock.set(short_life + 1);
                    ASSERT_EQ(code_of(now.scene->create("create-c", {"c", digits('c'), plan_text()},
                                                        judge_all)),
                              "")
                        << place;
                    const auto all = now.scene->list("", 100).sessions;
                    now.scene.disk.lose_power(0, survives::nothing);
                    ASSERT_TRUE(now.scene.open()) << place;
                    ASSERT_EQ(now.scene->list("", 100).sessions, all) << place;
                }
    EXPECT_GT(runs, 2000U);
}

// The same request, sent again after each fault, is done once: the chain is as long as without one.
TEST(SessionCrash, NothingIsDoneTwice) {
    for (const auto does : all_effects)
        for (std::size_t at = 1;; ++at) {
            registry_scene scene;
            ASSERT_TRUE(scene.open());
            scene.disk.plan({.at = at, .does = does});
            bool fired = false;
            for (int tries = 0; tries < 3; ++tries) {
                const auto made = scene.create("one");
                if (made && scene.reserve("one") && scene.start("one")) break;
                fired = fired || scene.disk.fired();
                scene.disk.plan({});
                if (scene.open()) continue;
                ASSERT_EQ(scene.why.step, "journal.torn");
                failing_storage store{scene.disk};
                reader with;
                ASSERT_TRUE(
                    journal::repair(store, {.form = journal::session_registry}, with).has_value());
                ASSERT_TRUE(scene.open());
            }
            ASSERT_EQ(scene->record("one")->sequence, 3U) << at;
            if (!fired) break;
        }
}

} // namespace
