// The log's promises one by one: the bytes of each format, places, bounds at n and n+1, quotas,
// what is owed, the witness, what somebody vouches for, and rotation.
#include <glove/base/ascii.hpp>
#include <gmock/gmock.h>
#include <journal/notes.hpp>
#include <support/folder.hpp>

namespace {

using namespace glove;
using journal::absence;
using journal::format;
using journal::mark;
using journal::origin;
using test::failing_disk;
using test::note;
using test::open_notes;
using test::settings_of;
using testing::ElementsAre;
using testing::HasSubstr;

auto step_of(const auto& outcome) -> std::string_view {
    return outcome ? "ok" : outcome.error().step;
}

auto text_note(std::string text) -> note {
    note out;
    out.text = std::move(text);
    return out;
}
auto guest_note(std::string text) -> note {
    auto out = text_note(std::move(text));
    out.guest = true;
    return out;
}

auto be32(std::size_t value) -> std::string {
    std::string out;
    for (const unsigned shift : {24U, 16U, 8U, 0U})
        out += static_cast<char>(value >> shift & 0xffU);
    return out;
}

// The payload of a note is this long beside its text, for one-digit sequences.
auto plain_bytes() -> std::size_t {
    note empty;
    return test::note_codec{}.seal(empty, mark{})->size();
}

class Formats : public testing::TestWithParam<format> {};
auto position_of(const format& form) -> std::size_t {
    return static_cast<std::size_t>(
        std::ranges::find(test::all_formats, form.magic, &format::magic) -
        test::all_formats.begin());
}
auto name_of(const testing::TestParamInfo<format>& tested) -> std::string {
    return std::array{"Registry", "Receipts", "Exposures"}.at(tested.index);
}
INSTANTIATE_TEST_SUITE_P(All, Formats, testing::ValuesIn(test::all_formats), name_of);

TEST_P(Formats, AFileIsItsHeaderAndFrames) {
    failing_disk disk;
    auto journal = open_notes(disk, settings_of(GetParam()));
    ASSERT_TRUE(journal.log.has_value()) << journal.why.step;
    const auto header = std::string{GetParam().magic} + std::string(GetParam().text_bytes, 'a');
    EXPECT_EQ(disk.content(), header);
    auto first = text_note("a");
    const auto payload = test::codec_of(GetParam()).seal(first, mark{});
    ASSERT_EQ(step_of(journal.log->append(text_note("a"))), "ok");
    EXPECT_EQ(disk.content(), header + be32(payload->size()) + *payload + be32(payload->size()));
}

TEST(Headers, AreThoseOfTheTable) {
    EXPECT_EQ(journal::session_registry.magic, "GLVSES05");
    EXPECT_EQ(journal::receipts.magic, "GLVRJNL1");
    EXPECT_EQ(journal::exposures.magic.size(), 16U);
    EXPECT_TRUE(journal::exposures.magic.starts_with("GLOVE-EXPOSURE1"));
    EXPECT_EQ(journal::exposures.magic.back(), '\0');
    EXPECT_EQ(journal::receipts.magic.size() + journal::receipts.text_bytes, 72U);
}

TEST_P(Formats, WhatWasAppendedIsReadBackInOrder) {
    failing_disk disk;
    {
        auto journal = open_notes(disk, settings_of(GetParam()));
        for (const auto* text : {"one", "two", "three"})
            ASSERT_EQ(step_of(journal.log->append(text_note(text))), "ok");
        EXPECT_EQ(journal.log->read(2)->text, "two");
        EXPECT_EQ(step_of(journal.log->read(4)), "journal.sequence");
    }
    auto again = open_notes(disk, settings_of(GetParam()));
    EXPECT_THAT(again.texts, ElementsAre("one", "two", "three"));
    EXPECT_THAT(again.origins, testing::Each(origin::chain));
    EXPECT_EQ(again.log->core().head().sequence, 3U);
    EXPECT_EQ(again.log->read(3)->text, "three");
}

// Written by fuzz/make_journal_seeds.py, which shares no code with this.
TEST_P(Formats, WhatAnotherProgramWroteIsRead) {
    const std::string name = name_of({GetParam(), position_of(GetParam())});
    for (const std::string rotated : {"", "-rotated"}) {
        auto file = name + rotated;
        file.front() = to_lower(file.front());
        failing_disk disk;
        disk.put("file", test::content_of(std::string{JOURNAL_SEEDS} + "/" + file));
        const auto seen = open_notes(disk, settings_of(GetParam()));
        ASSERT_TRUE(seen.log.has_value()) << seen.why.step << seen.why.detail;
        if (rotated.empty()) EXPECT_THAT(seen.texts, ElementsAre("one", "guest", "", "four"));
        else EXPECT_THAT(seen.texts, ElementsAre("guest", "four", "five"));
        EXPECT_EQ(seen.log->core().used(1).records, 1U);
    }
}

TEST(Open, AMissingFileIsMadeOnlyWhenThatIsAskedFor) {
    failing_disk disk;
    auto how = settings_of(journal::session_registry);
    how.missing = absence::refused;
    EXPECT_EQ(open_notes(disk, how).why.step, "journal.absent");
    EXPECT_EQ(disk.look("file"), nullptr);
    how.missing = absence::creates;
    EXPECT_TRUE(open_notes(disk, how).log.has_value());
    how.missing = absence::refused;
    EXPECT_TRUE(open_notes(disk, how).log.has_value());
}

TEST(Open, AnotherKindOfFileIsRefused) {
    failing_disk disk;
    ASSERT_TRUE(open_notes(disk, settings_of(journal::session_registry)).log.has_value());
    EXPECT_EQ(open_notes(disk, settings_of(journal::exposures)).why.step, "journal.header");
    failing_disk receipts;
    auto how = settings_of(journal::receipts);
    ASSERT_TRUE(open_notes(receipts, how).log.has_value());
    how.text = std::string(64, 'b'); // another key
    const auto other = open_notes(receipts, how);
    EXPECT_EQ(other.why.step, "journal.header");
    EXPECT_THAT(other.why.detail, HasSubstr("aaaa"));
}

TEST(Open, SettingsBeyondTheFormatAreRefused) {
    failing_disk disk;
    const auto step = [&](auto change) {
        auto how = settings_of(journal::session_registry);
        change(how);
        return open_notes(disk, how).why.step;
    };
    EXPECT_EQ(step([](auto& how) { how.file_bytes = 1023; }), "journal.settings");
    EXPECT_EQ(step([](auto& how) { how.file_bytes = (64UL << 20) + 1; }), "journal.settings");
    EXPECT_EQ(step([](auto& how) { how.records = 10'001; }), "journal.settings");
    EXPECT_EQ(step([](auto& how) { how.text = "x"; }), "journal.settings");
    EXPECT_EQ(step([](auto& how) { how.file_bytes = 1024; }), "");
    EXPECT_EQ(step([](auto& how) {
                  how.file_bytes = 64UL << 20;
                  how.records = 10'000;
              }),
              "");
}

TEST(Append, ARecordMustFollowTheLast) {
    failing_disk disk;
    auto journal = open_notes(disk, settings_of(journal::session_registry));
    ASSERT_EQ(step_of(journal.log->append(text_note("one"))), "ok");
    auto& log = journal.log->core();
    const test::note_codec codec;
    const auto try_after = [&](const mark& last) {
        auto what = text_note("two");
        const auto payload = codec.seal(what, last);
        return log.append(*payload, codec.facts_of(what));
    };
    EXPECT_EQ(step_of(try_after(mark{})), "journal.place");
    EXPECT_EQ(step_of(try_after({1, std::string(64, 'f')})), "journal.place");
    EXPECT_EQ(step_of(try_after({2, log.head().digest})), "journal.place");
    EXPECT_FALSE(log.poisoned());
    EXPECT_EQ(step_of(try_after(log.head())), "ok");
}

TEST(Append, WhatIsNoRecordIsRefused) {
    failing_disk disk;
    auto journal = open_notes(disk, settings_of(journal::exposures));
    auto& log = journal.log->core();
    const journal::facts good{1, std::string(64, '0'), std::string(64, 'a'), 0};
    EXPECT_EQ(step_of(log.append("", good)), "journal.record");
    EXPECT_EQ(step_of(log.append(R"({"kind":"journal_snapshot_v1","x":1})", good)),
              "journal.record");
    auto bad = good;
    bad.digest = "abc";
    EXPECT_EQ(step_of(log.append("x", bad)), "journal.record");
    bad = good;
    bad.kind = journal::kinds;
    EXPECT_EQ(step_of(log.append("x", bad)), "journal.record");
    EXPECT_EQ(disk.content().size(), 16U);
    EXPECT_EQ(step_of(log.append("x", good)), "ok");
}

TEST_P(Formats, TheLongestRecordFitsAndOneByteMoreDoesNot) {
    failing_disk disk;
    auto journal = open_notes(disk, settings_of(GetParam()));
    const auto most = GetParam().most.record_bytes - plain_bytes();
    EXPECT_EQ(step_of(journal.log->append(text_note(std::string(most + 1, 'x')))),
              "journal.record");
    EXPECT_FALSE(journal.log->core().poisoned());
    EXPECT_EQ(step_of(journal.log->append(text_note(std::string(most, 'x')))), "ok");
    EXPECT_EQ(open_notes(disk, settings_of(GetParam())).texts.size(), 1U);
}

TEST(Bounds, TheLastRecordFitsAndNoMore) {
    failing_disk disk;
    auto how = settings_of(journal::session_registry);
    how.records = 3;
    auto journal = open_notes(disk, how);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(step_of(journal.log->append(text_note("x"))), "ok");
    const auto more = journal.log->append(text_note("x"));
    EXPECT_EQ(step_of(more), "journal.full");
    EXPECT_EQ(more.error().code, errc::limit_exceeded);
    EXPECT_EQ(open_notes(disk, how).texts.size(), 3U);
    how.records = 2; // made by somebody with wider bounds
    const auto narrow = open_notes(disk, how);
    EXPECT_EQ(narrow.why.step, "journal.count");
    EXPECT_THAT(narrow.why.detail, HasSubstr("record 3 "));
}

TEST(Bounds, TheLastByteFitsAndNoMore) {
    const auto record = plain_bytes() + 8;
    for (const std::size_t more : {0UL, 1UL}) {
        failing_disk disk;
        auto how = settings_of(journal::session_registry);
        how.file_bytes = 1024;
        auto journal = open_notes(disk, how);
        const auto fill = 1024 - 8 - 2 * record; // beside two records and their frames
        ASSERT_EQ(step_of(journal.log->append(text_note(std::string(fill, 'x')))), "ok");
        EXPECT_EQ(step_of(journal.log->append(text_note(std::string(more, 'x')))),
                  more == 0 ? "ok" : "journal.full");
        EXPECT_EQ(disk.content().size(), more == 0 ? 1024U : 1024U - record);
    }
    failing_disk disk;
    disk.put("file", "GLVSES05" + std::string(1017, 'x'));
    auto how = settings_of(journal::session_registry);
    how.file_bytes = 1024;
    EXPECT_EQ(open_notes(disk, how).why.step, "journal.size");
}

TEST(Quota, AKindHasItsShareAndTheOthersTheRest) {
    failing_disk disk;
    auto how = settings_of(journal::session_registry);
    how.quota[1] = {.records = 2, .bytes = 10'000};
    auto journal = open_notes(disk, how);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(step_of(journal.log->append(guest_note("g"))), "ok");
    EXPECT_EQ(step_of(journal.log->append(guest_note("g"))), "journal.quota");
    EXPECT_EQ(step_of(journal.log->append(text_note("host"))), "ok");
    // What is on the disk counts after a restart, too.
    auto again = open_notes(disk, how);
    EXPECT_EQ(again.log->core().used(1).records, 2U);
    EXPECT_EQ(step_of(again.log->append(guest_note("g"))), "journal.quota");
    EXPECT_EQ(step_of(again.log->append(text_note("host"))), "ok");
}

TEST(Quota, ItsLastByteFitsAndNoMore) {
    const auto record = plain_bytes() + 8 - 1; // "true" is shorter than "false"
    for (const std::size_t less : {0UL, 1UL}) {
        failing_disk disk;
        auto how = settings_of(journal::session_registry);
        how.quota[1] = {.records = 5, .bytes = 2 * record - less};
        auto journal = open_notes(disk, how);
        ASSERT_EQ(step_of(journal.log->append(guest_note(""))), "ok");
        EXPECT_EQ(step_of(journal.log->append(guest_note(""))), less == 0 ? "ok" : "journal.quota");
    }
}

TEST(Reservation, WhatIsOwedFitsWhateverElseIsWritten) {
    failing_disk disk;
    auto how = settings_of(journal::session_registry);
    how.records = 5;
    auto journal = open_notes(disk, how);
    auto owed = journal.log->core().reserve(3, 1000);
    ASSERT_EQ(step_of(owed), "ok");
    EXPECT_EQ(journal.log->core().room().records, 2U);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(step_of(journal.log->append(text_note("x"))), "ok");
    EXPECT_EQ(step_of(journal.log->append(text_note("x"))), "journal.full");
    EXPECT_EQ(step_of(journal.log->core().reserve(1, 1)), "journal.full");
    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(step_of(journal.log->append(text_note("owed"), *owed)), "ok");
    EXPECT_EQ(owed->left(), 0U);
    EXPECT_EQ(step_of(journal.log->append(text_note("owed"), *owed)), "journal.owed");
    EXPECT_FALSE(journal.log->core().poisoned());
}

TEST(Reservation, ItsBytesAreSetAsideToTheLast) {
    const auto header = 8U;
    for (const std::size_t more : {0UL, 1UL}) {
        failing_disk disk;
        auto how = settings_of(journal::session_registry);
        how.file_bytes = 2048;
        auto journal = open_notes(disk, how);
        const auto each = (2048 - header) / 4 - 8;
        auto owed = journal.log->core().reserve(4, each);
        ASSERT_EQ(step_of(owed), "ok");
        EXPECT_EQ(journal.log->core().room().bytes, 0U);
        EXPECT_EQ(step_of(journal.log->append(text_note(""))), "journal.full");
        const auto text = std::string(each - plain_bytes() + more, 'x');
        EXPECT_EQ(step_of(journal.log->append(text_note(text), *owed)),
                  more == 0 ? "ok" : "journal.owed");
    }
}

TEST(Reservation, WhatIsNotUsedIsGivenBack) {
    failing_disk disk;
    auto how = settings_of(journal::session_registry);
    how.records = 4;
    auto journal = open_notes(disk, how);
    {
        auto owed = journal.log->core().reserve(4, 500);
        ASSERT_EQ(step_of(owed), "ok");
        EXPECT_EQ(journal.log->core().room().records, 0U);
        ASSERT_EQ(step_of(journal.log->append(text_note("x"), *owed)), "ok");
        const auto moved = *std::move(owed);
        EXPECT_EQ(moved.left(), 3U);
        EXPECT_EQ(journal.log->core().room().records, 0U);
    }
    EXPECT_EQ(journal.log->core().room().records, 3U);
    EXPECT_EQ(journal.log->core().room().bytes, (64UL << 20) - disk.content().size());
}

TEST(Reservation, NoneIsOfUseInAnotherJournal) {
    failing_disk one, two;
    auto a = open_notes(one, settings_of(journal::session_registry));
    auto b = open_notes(two, settings_of(journal::session_registry));
    auto owed = a.log->core().reserve(1, 500);
    EXPECT_EQ(step_of(b.log->append(text_note("x"), *owed)), "journal.owed");
    EXPECT_EQ(step_of(a.log->append(text_note("x"), *owed)), "ok");
    journal::reservation none;
    EXPECT_EQ(step_of(a.log->append(text_note("x"), none)), "journal.owed");
}

TEST(Reservation, ARecordThatCanNeverBeWrittenIsNotOwed) {
    failing_disk disk;
    auto journal = open_notes(disk, settings_of(journal::receipts));
    EXPECT_EQ(step_of(journal.log->core().reserve(1, 65'537)), "journal.owed");
    EXPECT_EQ(step_of(journal.log->core().reserve(1, 0)), "journal.owed");
    EXPECT_EQ(step_of(journal.log->core().reserve(std::size_t{1} << 62U, 65'536)), "journal.full");
    auto one = journal.log->core().reserve(1, 65'536);
    ASSERT_EQ(step_of(one), "ok");
    EXPECT_EQ(journal.log->core().room().bytes, (64UL << 20) - 72 - 65'544);
}

TEST(Vouched, TheRecordMustBeInTheChain) {
    failing_disk disk;
    const auto how = settings_of(journal::receipts);
    mark first, second;
    {
        auto journal = open_notes(disk, how, mark{}); // the genesis
        ASSERT_TRUE(journal.log.has_value());
        ASSERT_EQ(step_of(journal.log->append(text_note("one"))), "ok");
        first = journal.log->core().head();
        ASSERT_EQ(step_of(journal.log->append(text_note("two"))), "ok");
        second = journal.log->core().head();
    }
    for (const auto& good : {mark{}, first, second})
        EXPECT_TRUE(open_notes(disk, how, good).log.has_value());
    for (const auto& bad : {mark{0, std::string(64, '1')}, mark{1, second.digest},
                            mark{3, second.digest}, mark{2, first.digest}}) {
        const auto refused = open_notes(disk, how, bad);
        EXPECT_EQ(refused.why.step, "journal.anchor") << bad.sequence;
        EXPECT_EQ(refused.why.code, errc::conflict);
    }
    failing_disk empty;
    EXPECT_EQ(open_notes(empty, how, first).why.step, "journal.anchor");
    EXPECT_EQ(empty.look("file"), nullptr);
}

TEST(Witness, AFileThatWasPutBackIsRefused) {
    failing_disk disk;
    const auto how = settings_of(journal::session_registry);
    std::string early;
    {
        auto journal = open_notes(disk, how);
        ASSERT_EQ(step_of(journal.log->append(text_note("one"))), "ok");
        early = disk.content();
        ASSERT_EQ(step_of(journal.log->append(text_note("two"))), "ok");
    }
    const auto note = disk.content("head");
    disk.put("file", early); // a whole journal, but an old one
    const auto refused = open_notes(disk, how);
    EXPECT_EQ(refused.why.step, "journal.truncated");
    EXPECT_THAT(refused.why.detail, HasSubstr("sequence 2"));
    disk.remove("file");
    EXPECT_EQ(open_notes(disk, how).why.step, "journal.truncated");
    EXPECT_EQ(disk.look("file"), nullptr);
    // An older witness is as true as the newest, and none is what other programs leave.
    disk.put("file", early);
    disk.remove("head");
    EXPECT_TRUE(open_notes(disk, how).log.has_value());
    for (auto bad : {note.substr(1), note + "x", std::string{"x"}, std::string(note.size(), '0')}) {
        disk.put("head", bad);
        EXPECT_EQ(open_notes(disk, how).why.step, "journal.witness");
    }
    for (std::size_t at = 0; at < note.size(); ++at) {
        auto bad = note;
        bad[at] = static_cast<char>(bad[at] ^ 1);
        disk.put("head", bad);
        EXPECT_EQ(open_notes(disk, how).why.step, "journal.witness") << at;
    }
}

TEST(Witness, AnotherHistoryIsRefused) {
    failing_disk mine, other;
    const auto how = settings_of(journal::session_registry);
    for (auto* disk : {&mine, &other}) {
        auto journal = open_notes(*disk, how);
        ASSERT_EQ(step_of(journal.log->append(text_note(disk == &mine ? "mine" : "other"))), "ok");
    }
    mine.put("file", other.content());
    EXPECT_EQ(open_notes(mine, how).why.step, "journal.truncated");
}

TEST_P(Formats, ARotationKeepsWhatLivesAndGoesOn) {
    failing_disk disk;
    const auto how = settings_of(GetParam());
    {
        auto journal = open_notes(disk, how);
        for (int i = 1; i <= 6; ++i)
            ASSERT_EQ(step_of(journal.log->append(text_note(std::to_string(i)))), "ok");
        const auto before = disk.content();
        const auto head = journal.log->core().head();
        ASSERT_EQ(step_of(journal.log->core().rotate(std::vector<std::uint64_t>{2, 5})), "ok");
        EXPECT_EQ(disk.content("old"), before);
        EXPECT_LT(disk.content().size(), before.size());
        EXPECT_EQ(journal.log->core().head(), head);
        EXPECT_EQ(journal.log->core().base(), head);
        EXPECT_EQ(journal.log->core().generation(), 2U);
        EXPECT_EQ(journal.log->read(2)->text, "2");
        EXPECT_EQ(step_of(journal.log->read(3)), "journal.sequence");
        ASSERT_EQ(step_of(journal.log->append(text_note("7"))), "ok");
        EXPECT_EQ(journal.log->read(7)->previous_hash, head.digest);
    }
    auto again = open_notes(disk, how);
    ASSERT_TRUE(again.log.has_value()) << again.why.step << again.why.detail;
    EXPECT_THAT(again.texts, ElementsAre("2", "5", "7"));
    EXPECT_THAT(again.origins, ElementsAre(origin::snapshot, origin::snapshot, origin::chain));
    EXPECT_EQ(again.log->core().generation(), 2U);
    EXPECT_EQ(again.log->core().base().sequence, 6U);
    EXPECT_EQ(again.log->core().head().sequence, 7U);
    ASSERT_EQ(step_of(again.log->core().rotate({})), "ok");
    ASSERT_EQ(step_of(again.log->append(text_note("8"))), "ok");
    EXPECT_THAT(open_notes(disk, how).texts, ElementsAre("8"));
    // A record that a rotation dropped can no longer be vouched for.
    EXPECT_EQ(open_notes(disk, how, mark{5, std::string(64, '1')}).why.step, "journal.anchor");
}

TEST(Rotation, OnlyRecordsThatAreThereAndInOrder) {
    failing_disk disk;
    auto journal = open_notes(disk, settings_of(journal::session_registry));
    for (int i = 0; i < 3; ++i) ASSERT_EQ(step_of(journal.log->append(text_note("x"))), "ok");
    auto& log = journal.log->core();
    for (const auto& live : std::vector<std::vector<std::uint64_t>>{{0}, {4}, {2, 1}, {2, 2}})
        EXPECT_EQ(step_of(log.rotate(live)), "journal.rotate");
    EXPECT_EQ(log.generation(), 1U);
    EXPECT_EQ(step_of(log.rotate(std::vector<std::uint64_t>{1, 3})), "ok");
}

TEST(Rotation, WhatIsOwedStillFitsAfterIt) {
    failing_disk disk;
    auto how = settings_of(journal::session_registry);
    how.records = 4;
    auto journal = open_notes(disk, how);
    auto& log = journal.log->core();
    auto owed = log.reserve(2, 500);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(step_of(journal.log->append(text_note("x"))), "ok");
    // The snapshot takes the place of a record: keeping both would leave too little.
    EXPECT_EQ(step_of(log.rotate(std::vector<std::uint64_t>{1, 2})), "journal.rotate");
    EXPECT_FALSE(log.poisoned());
    ASSERT_EQ(step_of(log.rotate(std::vector<std::uint64_t>{2})), "ok");
    EXPECT_EQ(log.room().records, 0U);
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(step_of(journal.log->append(text_note("owed"), *owed)), "ok");
    EXPECT_EQ(open_notes(disk, how).texts.size(), 3U);
}

TEST(Rotation, AQuotaCountsWhatIsKept) {
    failing_disk disk;
    auto how = settings_of(journal::session_registry);
    how.quota[1] = {.records = 2, .bytes = 10'000};
    auto journal = open_notes(disk, how);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(step_of(journal.log->append(guest_note("g"))), "ok");
    ASSERT_EQ(step_of(journal.log->core().rotate(std::vector<std::uint64_t>{2})), "ok");
    EXPECT_EQ(step_of(journal.log->append(guest_note("g"))), "ok");
    EXPECT_EQ(step_of(journal.log->append(guest_note("g"))), "journal.quota");
    auto again = open_notes(disk, how);
    EXPECT_EQ(step_of(again.log->append(guest_note("g"))), "journal.quota");
}

// A thousand sessions of four records in a file for sixteen.
TEST(Rotation, SessionsInARowNeverFillTheJournal) {
    failing_disk disk;
    auto how = settings_of(journal::session_registry);
    how.records = 16;
    auto journal = open_notes(disk, how);
    auto& log = journal.log->core();
    for (int session = 0; session < 1000; ++session) {
        if (log.room().records < 4) {
            ASSERT_EQ(step_of(log.rotate({})), "ok");
        }
        auto owed = log.reserve(3, 500);
        ASSERT_EQ(step_of(owed), "ok");
        ASSERT_EQ(step_of(journal.log->append(text_note("create"))), "ok");
        for (const auto* text : {"start", "run", "exit"})
            ASSERT_EQ(step_of(journal.log->append(text_note(text), *owed)), "ok");
    }
    EXPECT_EQ(log.head().sequence, 4000U);
    EXPECT_GT(log.generation(), 300U);
    EXPECT_TRUE(open_notes(disk, how).log.has_value());
}

} // namespace
