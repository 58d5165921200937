// Faults by exhaustion: the first operation breaks, then the second, and so on until a run meets no
// fault; with nothing, a part or all of it done; once, or for good. Then the process is started
// again, or the power was lost and as much of what was not synced is there as the case says. Each
// time: all that was acknowledged is there, once and in order, nothing else is but the one record
// in doubt, and the work can be done to its end.
#include <glove/journal/inspect.hpp>
#include <gmock/gmock.h>
#include <journal/notes.hpp>

namespace {

using namespace glove;
using journal::format;
using journal::mark;
using test::effect;
using test::failing_disk;
using test::fault_plan;
using test::open_notes;
using test::settings_of;
using test::survives;

// The work: records 1 to `last`, and a rotation after some of them that keeps the even ones.
constexpr std::uint64_t last = 9;
constexpr std::array<std::uint64_t, 2> rotations{4, 7};

// What is on record after each step, by text, in order.
struct history {
    std::vector<std::string> acknowledged;
    std::vector<std::string> in_doubt; // the other thing that may be there; empty: none
    std::uint64_t generation = 1;
    mark head; // acknowledged

    [[nodiscard]] auto next() const -> std::uint64_t { return head.sequence + 1; }
};

auto even_only(const std::vector<std::string>& texts) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& text : texts)
        if (std::stoul(text) % 2 == 0) out.push_back(text);
    return out;
}

// Works until it is done or something fails; returns whether it is done.
auto work(test::note_log& log, history& done) -> bool {
    for (;;) {
        const auto at = log.core().head().sequence;
        const auto wanted = 1 + static_cast<std::uint64_t>(std::ranges::count_if(
                                    rotations, [&](auto r) { return r <= at; }));
        if (log.core().generation() < wanted) {
            std::vector<std::uint64_t> live;
            for (const auto& one : log.core().records())
                if (one.sequence % 2 == 0) live.push_back(one.sequence);
            done.in_doubt = even_only(done.acknowledged);
            if (!log.core().rotate(live)) return false;
            done.acknowledged = std::exchange(done.in_doubt, {});
            continue;
        }
        if (at == last) return true;
        test::note what;
        what.text = std::to_string(at + 1);
        done.in_doubt = done.acknowledged;
        done.in_doubt.push_back(what.text);
        if (!log.append(what)) return false;
        done.acknowledged = std::exchange(done.in_doubt, {});
        done.head = log.core().head();
    }
}

auto finished() -> std::vector<std::string> { return {"2", "4", "6", "8", "9"}; }

struct crash {
    bool power = false;
    std::size_t names = 0; // the state that they are in
    survives contents{};
};
auto all_crashes() -> std::vector<crash> {
    std::vector<crash> out{{}};
    for (const std::size_t names : {0U, 1U, 2U, 3U, 99U})
        for (const auto contents : test::all_survivals) out.push_back({true, names, contents});
    return out;
}

// Opens, and where that is what an operator would have to do, repairs first. The anchor is the last
// record that was acknowledged, as Sage would have it.
auto recover(failing_disk& disk, const journal::settings& how, const history& done)
    -> test::opened_notes {
    const auto vouched = how.form.tail == journal::torn_tail::cut_when_vouched
                             ? std::optional{done.head}
                             : std::nullopt;
    auto out = open_notes(disk, how, vouched);
    if (out.log || out.why.step != "journal.torn") return out;
    test::failing_storage store{disk};
    test::note_reader reader{test::codec_of(how.form)};
    if (auto mended = journal::repair(store, how, reader); !mended) {
        out.why = mended.error();
        return out;
    }
    return open_notes(disk, how, vouched);
}

class Crash : public testing::TestWithParam<format> {
protected:
    journal::settings how_ = settings_of(GetParam());

    // One life up to the fault.
    void live(failing_disk& disk, history& done) const {
        auto journal = open_notes(disk, how_);
        if (journal.log) (void)work(*journal.log, done);
    }
    void expect_intact(const test::opened_notes& seen, const history& done) const {
        ASSERT_TRUE(seen.log.has_value()) << seen.why.step << ": " << seen.why.detail;
        if (seen.texts != done.acknowledged) {
            ASSERT_EQ(seen.texts, done.in_doubt);
        }
    }
    void finish(failing_disk& disk, history done) const {
        auto again = recover(disk, how_, done);
        ASSERT_NO_FATAL_FAILURE(expect_intact(again, done));
        done.acknowledged = again.texts;
        ASSERT_TRUE(work(*again.log, done));
        again.log.reset();
        // All of it was synced.
        disk.lose_power(0, survives::nothing);
        ASSERT_EQ(open_notes(disk, how_).texts, finished());
    }
    static void apply(const crash& how, failing_disk& disk) {
        disk.plan({});
        if (how.power) disk.lose_power(how.names, how.contents);
    }
};
INSTANTIATE_TEST_SUITE_P(All, Crash, testing::ValuesIn(test::all_formats));

TEST_P(Crash, TheWorkIsDoneWithoutFaults) {
    failing_disk disk;
    history done;
    live(disk, done);
    EXPECT_EQ(done.acknowledged, finished());
    disk.lose_power(0, survives::nothing);
    EXPECT_EQ(open_notes(disk, how_).texts, finished());
}

TEST_P(Crash, EveryOperationBreaksOnce) {
    std::size_t runs = 0;
    for (const auto does : test::all_effects)
        for (const auto after : {test::then::recovers, test::then::stays_broken})
            for (const auto& how : all_crashes())
                for (std::size_t at = 1;; ++at) {
                    failing_disk disk;
                    history done;
                    disk.plan({.at = at, .does = does, .after = after});
                    live(disk, done);
                    if (!disk.fired()) break;
                    ++runs;
                    apply(how, disk);
                    ASSERT_NO_FATAL_FAILURE(finish(disk, done))
                        << "operation " << at << ", effect " << static_cast<int>(does) << ", after "
                        << static_cast<int>(after) << ", power " << how.power << ' ' << how.names
                        << ' ' << static_cast<int>(how.contents);
                }
    RecordProperty("runs", static_cast<int>(runs));
    EXPECT_GT(runs, 5'000U);
}

// What a killed process wrote is in the page cache: the next one must not build on it before it is
// on the disk.
TEST_P(Crash, PowerIsLostAfterTheNextLifeWentOn) {
    std::size_t runs = 0;
    for (const auto does : test::all_effects)
        for (const auto& second : all_crashes())
            for (std::size_t at = 1;; ++at) {
                failing_disk disk;
                history done;
                disk.plan({.at = at, .does = does, .after = test::then::stays_broken});
                live(disk, done);
                if (!disk.fired()) break;
                ++runs;
                apply({}, disk);
                auto again = recover(disk, how_, done);
                ASSERT_NO_FATAL_FAILURE(expect_intact(again, done)) << at;
                // What was read was acted on.
                done = {.acknowledged = again.texts,
                        .in_doubt = {},
                        .generation = again.log->core().generation(),
                        .head = again.log->core().head()};
                again.log.reset();
                apply(second, disk);
                ASSERT_NO_FATAL_FAILURE(finish(disk, done)) << at;
            }
    EXPECT_GT(runs, 1'000U);
}

TEST_P(Crash, ARecoveryThatBreaksIsDoneAgain) {
    std::size_t runs = 0;
    for (const auto does : test::all_effects)
        for (const auto contents : {survives::nothing, survives::half, survives::everything})
            for (std::size_t at = 1;; ++at) {
                bool first_fired = false;
                for (std::size_t second = 1;; ++second) {
                    failing_disk disk;
                    history done;
                    disk.plan({.at = at, .does = does, .after = test::then::stays_broken});
                    live(disk, done);
                    first_fired = disk.fired();
                    if (!first_fired) break;
                    disk.lose_power(99, contents);
                    disk.plan({.at = second, .does = does, .after = test::then::stays_broken});
                    const auto broken = recover(disk, how_, done);
                    if (!disk.fired()) break;
                    ++runs;
                    // Whole, but the error came after it: then it may be acted on.
                    if (broken.log) {
                        ASSERT_NO_FATAL_FAILURE(expect_intact(broken, done));
                    }
                    disk.lose_power(99, contents);
                    ASSERT_NO_FATAL_FAILURE(finish(disk, done)) << at << ' ' << second;
                }
                if (!first_fired) break;
            }
    EXPECT_GT(runs, 1'000U);
}

// The same process goes on where the table allows it, and only there.
TEST_P(Crash, AfterAFailedWriteTheTableDecides) {
    const bool goes_on = GetParam().write == journal::failed_write::cut_back;
    for (const auto does : {effect::none, effect::part}) {
        failing_disk disk;
        auto journal = open_notes(disk, how_);
        test::note what;
        what.text = "one";
        ASSERT_TRUE(journal.log->append(what).has_value());
        const auto before = disk.content();
        disk.plan({.at = 2, .does = does}); // after the check
        const auto refused = journal.log->append(what);
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().step, "disk.fault");
        EXPECT_EQ(disk.content(), before); // whatever it was, it was cut off
        EXPECT_EQ(journal.log->core().poisoned(), !goes_on);
        const auto next = journal.log->append(what);
        EXPECT_EQ(next.has_value(), goes_on);
        if (!next) {
            EXPECT_EQ(next.error().step, "journal.poisoned");
            EXPECT_EQ(next.error().code, errc::wrong_state);
        }
        EXPECT_EQ(open_notes(disk, how_).texts.size(), goes_on ? 2U : 1U);
    }
}

TEST_P(Crash, AfterAFailedSyncNothingMoreIsWritten) {
    for (const auto does : test::all_effects) {
        failing_disk disk;
        auto journal = open_notes(disk, how_);
        test::note what;
        what.text = "one";
        disk.plan({.at = 3, .does = does}); // after check and append
        ASSERT_FALSE(journal.log->append(what).has_value());
        EXPECT_TRUE(journal.log->core().poisoned());
        const auto operations = disk.operations();
        EXPECT_EQ(journal.log->append(what).error().step, "journal.poisoned");
        EXPECT_EQ(journal.log->core().rotate({}).error().step, "journal.poisoned");
        EXPECT_EQ(disk.operations(), operations);
        EXPECT_TRUE(open_notes(disk, how_).texts.empty());
    }
}

// A write that failed, and then could not be cut off either.
TEST_P(Crash, WhatCannotBeCutOffPoisons) {
    for (const std::size_t more : {1U, 2U}) { // the cut, its sync
        failing_disk disk;
        auto journal = open_notes(disk, how_);
        test::note what;
        what.text = "one";
        disk.plan({.at = 2, .does = effect::part, .after = test::then::stays_broken});
        ASSERT_FALSE(journal.log->append(what).has_value()) << more;
        EXPECT_TRUE(journal.log->core().poisoned());
    }
}

TEST_P(Crash, ARotationThatFailsBeforeTheNamesLeavesTheJournalUsable) {
    // check, two reads of one record (digest, copy), start, append, sync
    for (std::size_t at = 2; at <= 6; ++at) {
        failing_disk disk;
        auto journal = open_notes(disk, how_);
        test::note what;
        what.text = "one";
        ASSERT_TRUE(journal.log->append(what).has_value());
        disk.plan({.at = at, .does = effect::part});
        ASSERT_FALSE(journal.log->core().rotate(std::vector<std::uint64_t>{1}).has_value()) << at;
        ASSERT_TRUE(disk.fired());
        EXPECT_FALSE(journal.log->core().poisoned()) << at;
        EXPECT_TRUE(journal.log->append(what).has_value());
        EXPECT_TRUE(journal.log->core().rotate(std::vector<std::uint64_t>{1}).has_value());
        EXPECT_EQ(open_notes(disk, how_).texts.size(), 1U);
    }
    for (std::size_t at = 7; at <= 9; ++at) { // keep, adopt, names
        failing_disk disk;
        auto journal = open_notes(disk, how_);
        test::note what;
        what.text = "one";
        ASSERT_TRUE(journal.log->append(what).has_value());
        disk.plan({.at = at, .does = effect::none});
        ASSERT_FALSE(journal.log->core().rotate(std::vector<std::uint64_t>{1}).has_value());
        ASSERT_TRUE(disk.fired());
        EXPECT_TRUE(journal.log->core().poisoned()) << at;
        EXPECT_EQ(open_notes(disk, how_).texts.size(), 1U);
    }
}

} // namespace
