// The durable exposures: what a restart brings back, what a rotation keeps, what damage and a
// failing disk lead to, and that looking waits for no disk.
#include "supervisor/exposure_scene.hpp"
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <future>
#include <glove/control/exposure_store.hpp>
#include <glove/control/protocol.hpp>
#include <glove/journal/format.hpp>
#include <glove/journal/inspect.hpp>
#include <glove/wire/crypto.hpp>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <support/failing_disk.hpp>
#include <support/folder.hpp>
#include <support/memory_storage.hpp>
#include <thread>

namespace {

using namespace glove;
using namespace glove::control;
using namespace glove::supervisor;
using test::failing_disk;
using test::memory_files;

class fake_clock final : public sys::clock {
public:
    [[nodiscard]] auto monotonic() const noexcept -> std::chrono::nanoseconds override {
        return {};
    }
    [[nodiscard]] auto wall() const noexcept -> std::chrono::nanoseconds override {
        return std::chrono::milliseconds{now_ms.load()};
    }
    std::atomic<std::int64_t> now_ms = 1'000;
};

template<class T> auto code_of(const answer<T>& out) -> std::string {
    return out ? "" : std::string{to_string(out.error().code)};
}
template<class T> auto why(const answer<T>& out) -> std::string {
    return out ? ""
               : std::string{to_string(out.error().code)} + " " +
                     std::string{out.error().why.step} + " " + out.error().why.detail;
}

class Exposures : public testing::Test {
protected:
    auto policy(std::uint64_t max_ttl = 86'400) -> exposure_policy {
        auto rules = test::usual_exposure_rules(root_);
        rules.roots[0].max_ttl_secs = max_ttl;
        return exposure_policy::freeze(std::move(rules)).value();
    }
    auto wanted(std::string id = "proj", std::uint64_t ttl = 3600) -> create_exposure {
        auto out = test::usual_create(root_ + "/proj");
        out.exposure_id = std::move(id);
        out.ttl_secs = ttl;
        return out;
    }
    auto open(journal::storage& store) { return exposure_store::open(store, policy(), clock_); }
    static auto ledger_of(const exposure_store& store) -> exposure_snapshot {
        exposure_snapshot out;
        store.with([&](const exposures_now& now) { out = now.ledger.snapshot(); });
        return out;
    }

    test::folder home_;
    std::string root_ = home_.directory("root");
    std::string project_ = home_.directory("root/proj");
    fake_clock clock_;
};

TEST_F(Exposures, WhatWasAnsweredIsThereAfterARestart) {
    memory_files files;
    test::memory_storage store{files};
    exposure_snapshot before;
    {
        const auto exposures = open(store).value();
        EXPECT_TRUE(exposures->list().empty());
        const auto made = exposures->create("k1", wanted());
        ASSERT_TRUE(made) << why(made);
        EXPECT_EQ(made->generation, 1U);
        EXPECT_EQ(made->state, exposure_state::active);
        EXPECT_EQ(exposures->create("k1", wanted()).value(), *made); // a replay
        ASSERT_TRUE(exposures->create("k2", wanted("other")));
        const auto ended = exposures->revoke("k3", {"proj", 1});
        ASSERT_TRUE(ended) << why(ended);
        EXPECT_EQ(ended->state, exposure_state::revoked);
        EXPECT_EQ(exposures->create("k4", wanted()).value().generation, 2U);
        before = ledger_of(*exposures);
        EXPECT_EQ(before.sequence, 4U);
    }
    const auto again = open(store).value();
    EXPECT_EQ(ledger_of(*again), before);
    EXPECT_EQ(again->list().size(), 2U);
    EXPECT_EQ(again->create("k1", wanted()).value().generation, 1U);
    EXPECT_EQ(again->revoke("k3", {"proj", 1}).value().generation, 1U);
    EXPECT_EQ(ledger_of(*again), before);
}

TEST_F(Exposures, SaysNoWithTheCodeThatItMeans) {
    memory_files files;
    test::memory_storage store{files};
    const auto exposures = open(store).value();
    ASSERT_TRUE(exposures->create("k1", wanted()));
    EXPECT_EQ(code_of(exposures->create("k1", wanted("other"))), "idempotency_conflict");
    EXPECT_EQ(code_of(exposures->revoke("k1", {"proj", 1})), "idempotency_conflict");
    EXPECT_EQ(code_of(exposures->create("k2", wanted())), "path_exposure_rejected"); // active
    EXPECT_EQ(code_of(exposures->create("k2", wanted("late", 86'401))), "path_exposure_rejected");
    EXPECT_EQ(code_of(exposures->create("", wanted("x"))), "path_exposure_rejected");
    auto outside = wanted("x");
    outside.host_path = home_.path();
    EXPECT_EQ(code_of(exposures->create("k2", outside)), "path_exposure_rejected");
    EXPECT_EQ(code_of(exposures->revoke("k2", {"proj", 2})), "path_exposure_rejected");
    for (const char* id : {"-x", ".x", "_x", "a:b"}) {
        const auto named = exposures->create("k2", wanted(id));
        EXPECT_EQ(code_of(named), "path_exposure_rejected") << id;
        EXPECT_EQ(named.error().why.step, "exposure.name");
    }
    EXPECT_EQ(ledger_of(*exposures).sequence, 1U);
    EXPECT_TRUE(exposures->create("named", wanted("9_x-y.z")));
    EXPECT_TRUE(exposures->create("k2", wanted("late", 86'400)));
    EXPECT_TRUE(exposures->revoke("k3", {"proj", 1}));
}

TEST_F(Exposures, APolicyThatBecameTighterForgetsNothing) {
    memory_files files;
    test::memory_storage store{files};
    exposure_snapshot before;
    {
        const auto exposures = open(store).value();
        ASSERT_TRUE(exposures->create("k1", wanted()));
        ASSERT_TRUE(exposures->create("k2", wanted("short", 60)));
        before = ledger_of(*exposures);
    }
    auto other_root = test::usual_exposure_rules(home_.directory("elsewhere"));
    other_root.roots[0].root_id = "others";
    auto no_modes = test::usual_exposure_rules(root_);
    no_modes.roots[0].allowed_modes = {test::ephemeral_mode()};
    for (auto rules : {other_root, no_modes}) {
        const auto tight =
            exposure_store::open(store, exposure_policy::freeze(std::move(rules)).value(), clock_);
        ASSERT_TRUE(tight) << tight.error().detail;
        EXPECT_EQ(ledger_of(**tight), before);
        for (const auto& entry : (*tight)->list())
            EXPECT_EQ(entry.state, exposure_state::revoked) << entry.exposure_id;
        EXPECT_EQ((*tight)->create("k1", wanted()).value().generation, 1U); // what was answered
        EXPECT_EQ(code_of((*tight)->create("k3", wanted("new"))), "path_exposure_rejected");
    }
    EXPECT_EQ(open(store).value()->list().front().state, exposure_state::active);
}

TEST_F(Exposures, TwentyThousandInARowNeverHaveAGenerationTwice) {
    memory_files files;
    test::memory_storage store{files};
    auto exposures = open(store).value();
    std::set<std::pair<std::string, std::uint64_t>> given;
    std::size_t rotations = 0;
    auto size = files.file->size();
    for (int i = 0; i < 20'000; ++i) {
        // Some come again and again, some once.
        const auto id = i % 2 == 0 ? "e" + std::to_string(i % 14) : "x" + std::to_string(i);
        const auto made = exposures->create("c" + std::to_string(i), wanted(id, 1));
        ASSERT_TRUE(made) << i << ' ' << why(made);
        ASSERT_TRUE(given.emplace(id, made->generation).second) << i;
        if (i % 3 == 0) {
            ASSERT_TRUE(exposures->revoke("r" + std::to_string(i), {id, made->generation})) << i;
        }
        clock_.now_ms += 1'000;
        if (files.file->size() < size) ++rotations;
        size = files.file->size();
        if (i % 3'999 == 0) {
            const auto before = ledger_of(*exposures);
            exposures = open(store).value();
            ASSERT_EQ(ledger_of(*exposures), before) << i;
        }
    }
    EXPECT_GT(rotations, 10U);
    const auto before = ledger_of(*exposures);
    exposures = open(store).value();
    EXPECT_EQ(ledger_of(*exposures), before);
    // A name that was forgotten goes on above everything.
    EXPECT_GT(exposures->create("again", wanted("x1")).value().generation, 1'000U);
}

TEST_F(Exposures, AThousandAndTwentyFourMayLiveAndEachCanBeRevoked) {
    memory_files files;
    test::memory_storage store{files};
    auto exposures = open(store).value();
    for (int i = 0; i < 1'024; ++i)
        ASSERT_TRUE(exposures->create("c" + std::to_string(i), wanted("e" + std::to_string(i))))
            << i;
    const auto more = exposures->create("more", wanted("more"));
    EXPECT_EQ(code_of(more), "path_exposure_rejected");
    EXPECT_EQ(more.error().why.step, "exposure.capacity");
    for (int i = 0; i < 1'024; ++i)
        ASSERT_TRUE(exposures->revoke("r" + std::to_string(i), {"e" + std::to_string(i), 1}));
    EXPECT_TRUE(exposures->create("more", wanted("more")));
    const auto before = ledger_of(*exposures);
    exposures = open(store).value();
    EXPECT_EQ(ledger_of(*exposures), before);
}

// The longest records: the file is full long before the ledger.
TEST_F(Exposures, AFileFullOfLongRecordsBeginsAnew) {
    memory_files files;
    test::memory_storage store{files};
    auto exposures = open(store).value();
    auto deep = root_;
    while (deep.size() < 3'700) {
        deep += "/" + std::string(200, '"');
        std::filesystem::create_directory(deep);
    }
    std::size_t rotations = 0;
    auto size = files.file->size();
    for (int i = 0; i < 1'500; ++i) {
        auto what = wanted("e" + std::to_string(i), 1);
        what.host_path = deep;
        what.display_label = std::string(256, '"');
        const auto made = exposures->create("c" + std::to_string(i), what);
        ASSERT_TRUE(made) << i << ' ' << why(made);
        clock_.now_ms += 1'000;
        if (files.file->size() < size) ++rotations;
        size = files.file->size();
    }
    EXPECT_GT(rotations, 1U);
    const auto before = ledger_of(*exposures);
    exposures = open(store).value();
    EXPECT_EQ(ledger_of(*exposures), before);
    bool refused = false;
    for (int i = 1'500; i < 2'600 && !refused; ++i) { // that live
        auto what = wanted("e" + std::to_string(i));
        what.host_path = deep;
        what.display_label = std::string(256, '"');
        const auto made = exposures->create("c" + std::to_string(i), what);
        refused = !made;
        if (made) continue;
        EXPECT_GT(i, 2'000);
        EXPECT_EQ(code_of(made), "path_exposure_unavailable");
    }
    ASSERT_TRUE(refused);
    // Again and again: nothing is written until something ends.
    std::size_t syncs = 0;
    files.on_sync = [&] { ++syncs; };
    auto more = wanted("more");
    more.host_path = deep;
    for (int i = 0; i < 5; ++i)
        EXPECT_EQ(code_of(exposures->create("more", more)), "path_exposure_unavailable");
    EXPECT_EQ(syncs, 0U);
    files.on_sync = {};
    bool made = false;
    for (const auto& one : exposures->list()) { // some are needed for the longest record
        if (one.state != exposure_state::active) continue;
        ASSERT_TRUE(exposures->revoke("r" + one.exposure_id, {one.exposure_id, one.generation}));
        made = exposures->create("more", more).has_value();
        if (made) break;
    }
    EXPECT_TRUE(made);
    for (const auto& entry : exposures->list())
        if (entry.state == exposure_state::active) {
            ASSERT_TRUE(
                exposures->revoke("r" + entry.exposure_id, {entry.exposure_id, entry.generation}));
        }
}

// Exposures whose part of the catalog is as long as it may be.
class Catalog : public Exposures {
protected:
    static auto long_names() -> std::vector<std::string> {
        std::vector<std::string> out;
        for (int i = 100; i < 164; ++i) out.push_back(std::to_string(i) + std::string(125, 't'));
        return out;
    }
    auto open(journal::storage& store) {
        auto rules = test::usual_exposure_rules(root_);
        rules.roots[0].allowed_runtime_template_ids = long_names();
        return exposure_store::open(store, exposure_policy::freeze(std::move(rules)).value(),
                                    clock_);
    }
    auto long_one(const std::string& id, std::uint64_t ttl = 3600) -> create_exposure {
        auto out = wanted(id, ttl);
        out.allowed_runtime_template_ids = long_names();
        return out;
    }
    // Until one is refused; how many were made.
    auto fill(exposure_store& exposures, const std::string& name, std::uint64_t ttl = 3600) -> int {
        for (int i = 0;; ++i) {
            const auto n = name + std::to_string(i);
            const auto made = exposures.create("c" + n, long_one(n, ttl));
            if (made) continue;
            EXPECT_EQ(code_of(made), "path_exposure_unavailable") << why(made);
            EXPECT_EQ(made.error().why.step, "exposure.capacity");
            EXPECT_EQ(made.error().why.code, errc::limit_exceeded);
            return i;
        }
    }
    static auto shown(const exposure_store& exposures) -> std::size_t {
        std::size_t out = 0;
        for (const auto& one : exposures.list()) out += encode(one).value().size() + 1;
        return out;
    }
};

TEST_F(Catalog, WhatDoesNotFitIntoAnAnswerIsNotMade) {
    memory_files files;
    test::memory_storage store{files};
    auto exposures = open(store).value();
    const auto made = fill(*exposures, "e");
    EXPECT_GT(made, 100);
    const auto bytes = shown(*exposures);
    EXPECT_LE(bytes, most_frame_bytes - 1'000);
    EXPECT_GT(bytes + bytes / static_cast<std::size_t>(made), most_frame_bytes - 2'000);
    const auto before = ledger_of(*exposures);
    exposures = open(store).value(); // it is measured again
    EXPECT_EQ(fill(*exposures, "more"), 0);
    EXPECT_EQ(ledger_of(*exposures), before);
    EXPECT_EQ(exposures->create("ce0", long_one("e0"))->generation, 1U); // a replay
    EXPECT_EQ(exposures->list().size(), static_cast<std::size_t>(made));
    // The next generation stands in the place of the one before it.
    ASSERT_TRUE(exposures->revoke("r0", {"e0", 1}));
    EXPECT_EQ(exposures->create("again", long_one("e0"))->generation, 2U);
    // What is dead makes place for another name.
    ASSERT_TRUE(exposures->revoke("r1", {"e1", 1}));
    EXPECT_EQ(fill(*exposures, "other"), 1);
    EXPECT_LE(shown(*exposures), most_frame_bytes - 1'000);
    clock_.now_ms += 3'600'000;
    EXPECT_GT(fill(*exposures, "late"), 100);
}

TEST_F(Catalog, WhatMakesNoRoomWritesNothing) {
    memory_files files;
    test::memory_storage store{files};
    auto exposures = open(store).value();
    ASSERT_GT(fill(*exposures, "e"), 100);
    std::size_t syncs = 0;
    files.on_sync = [&] { ++syncs; };
    const auto bytes = *files.file;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(fill(*exposures, "more"), 0);
    EXPECT_EQ(syncs, 0U);
    EXPECT_EQ(*files.file, bytes);
}

// --- damage ---

class Damage : public Exposures {
protected:
    void SetUp() override {
        memory_files files;
        test::memory_storage store{files};
        const auto exposures = open(store).value();
        ASSERT_TRUE(exposures->create("k1", wanted()));
        ASSERT_TRUE(exposures->create("k2", wanted("other")));
        ASSERT_TRUE(exposures->revoke("k3", {"proj", 1}));
        ASSERT_TRUE(exposures->create("k4", wanted()));
        file_ = *files.file;
        for (std::size_t at = 16; at < file_.size();) {
            std::size_t size = 0;
            for (std::size_t i = 0; i < 4; ++i)
                size = size << 8U | static_cast<unsigned char>(file_[at + i]);
            frames_.push_back(file_.substr(at, size + 8));
            at += size + 8;
        }
        ASSERT_EQ(frames_.size(), 4U);
    }
    auto reading(const std::string& bytes) -> std::optional<error> {
        memory_files files{.file = bytes, .next = {}, .head = {}, .on_sync = {}};
        test::memory_storage store{files};
        const auto opened = open(store);
        EXPECT_EQ(files.file, bytes);
        if (opened) return std::nullopt;
        return opened.error();
    }
    std::string file_;
    std::vector<std::string> frames_;
};

TEST_F(Damage, AFileThatEndsInsideOfARecordIsRefused) {
    std::set<std::size_t> whole{16};
    for (const auto& frame : frames_) whole.insert(*whole.rbegin() + frame.size());
    for (std::size_t size = 0; size < file_.size(); ++size)
        EXPECT_EQ(reading(file_.substr(0, size)).has_value(), !whole.contains(size)) << size;
    EXPECT_FALSE(reading(file_));
}

TEST_F(Damage, AnyChangedByteIsRefused) {
    for (std::size_t at = 0; at < file_.size(); ++at) {
        auto bad = file_;
        bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
        EXPECT_TRUE(reading(bad)) << at;
    }
}

TEST_F(Damage, RecordsAreNeitherMovedNorDoubledNorLeftOut) {
    const auto head = file_.substr(0, 16);
    const auto& f = frames_;
    for (const auto& [bytes, number] :
         {std::pair{head + f[0] + f[0] + f[1] + f[2] + f[3], "record 2"},
          std::pair{head + f[1] + f[0] + f[2] + f[3], "record 1"},
          std::pair{head + f[0] + f[2] + f[3], "record 2"},
          std::pair{head + f[0] + f[1] + f[2] + f[3] + f[3], "record 5"}}) {
        const auto problem = reading(bytes);
        ASSERT_TRUE(problem);
        EXPECT_EQ(problem->step, "journal.order");
        EXPECT_TRUE(problem->detail.starts_with(number)) << problem->detail;
    }
}

// Whole, hashed and chained, and not what can have happened.
TEST_F(Damage, AHistoryThatCannotBeIsRefusedWithTheRecordsNumber) {
    const auto payload = [](const std::string& frame) { return frame.substr(4, frame.size() - 8); };
    const auto framed = [](const exposure_record& record) {
        const auto text = encode(record).value();
        std::string length;
        for (const unsigned shift : {24U, 16U, 8U, 0U})
            length += static_cast<char>(text.size() >> shift & 0xffU);
        return length + text + length;
    };
    auto third = decode_exposure_record(payload(frames_[2])).value();
    auto& fact = std::get<exposure_revoked>(third.fact);
    fact.generation = 7;
    fact.request_digest = request_digest(fact.request_id, revoke_exposure{"proj", 7}).value();
    third.record_hash = record_hash(third).value();
    const auto problem = reading(file_.substr(0, 16) + frames_[0] + frames_[1] + framed(third));
    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->step, "exposure.replay");
    EXPECT_TRUE(problem->detail.starts_with("record 3")) << problem->detail;
}

// --- faults by exhaustion ---

// What the command that repairs journals reads exposures with.
class record_reader final : public journal::record_reader {
public:
    auto read(std::string_view payload) -> result<journal::facts> override {
        GLOVE_TRY(const auto record, decode_exposure_record(payload));
        return journal::facts{record.sequence, record.previous_hash, record.record_hash, 0};
    }
    auto apply(journal::origin) -> result<> override { return {}; }
    auto authenticate(std::string_view bytes) -> result<std::string> override {
        GLOVE_TRY(const auto digest, wire::sha256(bytes));
        return wire::to_hex(digest);
    }
};

class Crash : public Exposures {
protected:
    // A torn tail is refused until somebody has it cut off.
    static auto repaired(failing_disk& disk) -> bool {
        test::failing_storage store{disk};
        record_reader reader;
        return journal::repair(store, {.form = journal::exposures}, reader).has_value();
    }
    static constexpr int work = 6;
    // One life. The request ids make doing it again harmless.
    auto live(failing_disk& disk, std::vector<std::string>& answered) -> bool {
        test::failing_storage store{disk};
        const auto exposures = open(store);
        if (!exposures) return false;
        for (int i = 0; i < work; ++i) {
            const auto n = std::to_string(i);
            const auto made = (*exposures)->create("c" + n, wanted("e" + n));
            if (!made) return false;
            answered.push_back(made->scope_digest);
            if (i % 2 == 1 && !(*exposures)->revoke("r" + n, {"e" + n, 1})) return false;
        }
        return true;
    }
};

TEST_F(Crash, EveryOperationBreaksAndWhatWasAnsweredStays) {
    std::size_t runs = 0;
    for (const auto does : test::all_effects)
        for (const int power : {0, 1, 2, 3})
            for (std::size_t at = 1;; ++at) {
                failing_disk disk;
                std::vector<std::string> before, after;
                disk.plan({.at = at, .does = does, .after = test::then::stays_broken});
                (void)live(disk, before);
                if (!disk.fired()) break;
                ++runs;
                disk.plan({});
                if (power == 1) disk.lose_power(0, test::survives::nothing);
                if (power == 2) disk.lose_power(99, test::survives::everything);
                if (power == 3) disk.lose_power(99, test::survives::nothing);
                if (disk.look("file") != nullptr) {
                    ASSERT_TRUE(repaired(disk)) << at;
                }
                ASSERT_TRUE(live(disk, after)) << at << ' ' << static_cast<int>(does) << power;
                before.resize(std::min(before.size(), after.size()));
                ASSERT_TRUE(std::ranges::equal(before, std::span{after}.first(before.size())))
                    << at;
                test::failing_storage store{disk};
                const auto exposures = open(store).value();
                ASSERT_EQ(ledger_of(*exposures).kept.size(), static_cast<std::size_t>(work));
                ASSERT_EQ(ledger_of(*exposures).sequence, 9U);
            }
    EXPECT_GT(runs, 200U);
}

// A ledger that is full of what is dead, but for one: the next creation begins the file anew.
TEST_F(Crash, EveryOperationOfARotationBreaksToo) {
    memory_files full;
    {
        test::memory_storage store{full};
        const auto exposures = open(store).value();
        ASSERT_TRUE(exposures->create("c-lives", wanted("lives")));
        for (int i = 1; i < 1'024; ++i)
            ASSERT_TRUE(
                exposures->create("c" + std::to_string(i), wanted("e" + std::to_string(i), 1)));
    }
    clock_.now_ms += 2'000;
    const auto work_on = [&](failing_disk& disk, std::optional<std::uint64_t>& answered) {
        test::failing_storage store{disk};
        const auto exposures = open(store);
        if (!exposures) return false;
        const auto made = (*exposures)->create("c-new", wanted("e7"));
        if (!made) return false;
        if (!answered) answered = made->generation;
        EXPECT_EQ(*answered, made->generation);
        return (*exposures)->revoke("r-lives", {"lives", 1}).has_value();
    };
    const auto put_full = [&](failing_disk& disk) {
        disk.put("file", *full.file);
        disk.put("head", full.head);
    };
    failing_disk whole;
    put_full(whole);
    std::optional<std::uint64_t> of_whole;
    ASSERT_TRUE(work_on(whole, of_whole));
    const auto operations = whole.operations();
    // Most of them read a record or copy one, each like the next.
    const auto next = [&](std::size_t at) {
        const bool is_alike = at >= 8 && at + 40 < operations;
        return is_alike ? std::min(at + 197, operations - 32) : at + 1;
    };
    std::size_t runs = 0;
    for (const auto does : test::all_effects)
        for (const int power : {0, does == test::effect::part ? 2 : 1})
            for (std::size_t at = 1;; at = next(at)) {
                failing_disk disk;
                put_full(disk);
                std::optional<std::uint64_t> answered;
                disk.plan({.at = at, .does = does, .after = test::then::stays_broken});
                (void)work_on(disk, answered);
                if (!disk.fired()) break;
                ++runs;
                disk.plan({});
                if (power == 1) disk.lose_power(0, test::survives::nothing);
                if (power == 2) disk.lose_power(99, test::survives::half);
                ASSERT_TRUE(repaired(disk)) << at;
                ASSERT_TRUE(work_on(disk, answered))
                    << at << ' ' << static_cast<int>(does) << power;
                ASSERT_NE(disk.look("old"), nullptr);
                test::failing_storage store{disk};
                const auto exposures = open(store).value();
                EXPECT_GT(*answered, 1U); // the name was used before
                const auto after = ledger_of(*exposures);
                ASSERT_EQ(after.sequence, 1'026U) << at;
                ASSERT_LE(after.kept.size(), 514U);
                ASSERT_TRUE(after.kept.front().revoked) << at;
                ASSERT_EQ(after.kept.back().created.descriptor.exposure_id, "e7");
            }
    EXPECT_GT(runs, 60U);
}

TEST_F(Crash, AfterAFailedWriteNothingMoreIsWrittenAndLookingGoesOn) {
    failing_disk disk;
    test::failing_storage store{disk};
    const auto exposures = open(store).value();
    ASSERT_TRUE(exposures->create("k1", wanted()));
    disk.plan({.at = 3, .does = test::effect::none}); // the sync
    EXPECT_EQ(code_of(exposures->create("k2", wanted("other"))), "path_exposure_unavailable");
    disk.plan({});
    const auto refused = exposures->create("k2", wanted("other"));
    EXPECT_EQ(code_of(refused), "path_exposure_unavailable");
    EXPECT_EQ(refused.error().why.step, "journal.poisoned");
    EXPECT_EQ(code_of(exposures->revoke("k3", {"proj", 1})), "path_exposure_unavailable");
    EXPECT_EQ(exposures->list().size(), 1U);
    EXPECT_EQ(exposures->create("k1", wanted()).value().generation, 1U);
}

// --- threads ---

TEST_F(Exposures, LookingDoesNotWaitForTheDisk) {
    memory_files files;
    test::memory_storage store{files};
    const auto exposures = open(store).value();
    ASSERT_TRUE(exposures->create("k1", wanted()));
    std::promise<void> reached, released;
    auto go_on = released.get_future().share();
    std::atomic<bool> first = true;
    files.on_sync = [&] {
        if (first.exchange(false)) reached.set_value();
        go_on.wait();
    };
    std::thread writer{[&] { EXPECT_TRUE(exposures->create("k2", wanted("other"))); }};
    reached.get_future().wait();
    auto looked = std::async(std::launch::async, [&] {
        std::size_t kept = 0;
        exposures->with(
            [&](const exposures_now& now) { kept = now.ledger.snapshot().kept.size(); });
        return kept + exposures->list().size();
    });
    // Not there yet, because it is not on the disk.
    EXPECT_EQ(looked.wait_for(std::chrono::seconds{20}), std::future_status::ready);
    released.set_value();
    writer.join();
    EXPECT_EQ(looked.get(), 2U);
    EXPECT_EQ(exposures->list().size(), 2U);
}

TEST_F(Exposures, ManyWriteWhileOthersLook) {
    memory_files files;
    test::memory_storage store{files};
    const auto exposures = open(store).value();
    std::atomic<int> running = 3;
    std::vector<std::thread> threads;
    for (int w = 0; w < 3; ++w)
        threads.emplace_back([&, w] {
            for (int i = 0; i < 60; ++i) {
                const auto id = "w" + std::to_string(w) + "-" + std::to_string(i);
                EXPECT_TRUE(exposures->create("c" + id, wanted(id)));
                EXPECT_TRUE(exposures->revoke("r" + id, {id, 1}));
            }
            --running;
        });
    threads.emplace_back([&] {
        std::uint64_t last = 0;
        while (running > 0) {
            exposures->with([&](const exposures_now& now) {
                const auto here = now.ledger.snapshot();
                EXPECT_GE(here.sequence, last);
                last = here.sequence;
            });
            (void)exposures->list();
        }
    });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(ledger_of(*exposures).sequence, 360U);
}

} // namespace
