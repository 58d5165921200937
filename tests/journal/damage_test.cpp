// Whatever happens to the bytes of a journal at rest: every flipped bit, every shorter length,
// records twice, in another order, left out or added. All of it is refused, the record is named,
// and nothing is changed by looking. What a repair may cut is the beginning of a record at the end.
#include <glove/journal/inspect.hpp>
#include <gmock/gmock.h>
#include <journal/notes.hpp>

namespace {

using namespace glove;
using journal::format;
using journal::mark;
using journal::witnessed;
using test::failing_disk;
using test::open_notes;
using test::settings_of;
using testing::ElementsAre;
using testing::HasSubstr;

struct span_of_frame {
    std::size_t begin = 0, size = 0;
};

struct sample {
    format form;
    std::string bytes, witness;
    std::vector<span_of_frame> frames; // with the snapshot's
    std::vector<mark> marks;           // after each record of the chain
};

auto frames_of(const std::string& bytes, std::size_t header) -> std::vector<span_of_frame> {
    std::vector<span_of_frame> out;
    for (auto at = header; at < bytes.size();) {
        std::size_t length = 0;
        for (std::size_t i = 0; i < 4; ++i)
            length = length << 8U | static_cast<unsigned char>(bytes[at + i]);
        out.push_back({at, length + 8});
        at += length + 8;
    }
    return out;
}

auto make(const format& form, bool rotated) -> sample {
    failing_disk disk;
    auto journal = open_notes(disk, settings_of(form));
    sample out{.form = form, .bytes = {}, .witness = {}, .frames = {}, .marks = {}};
    const auto put = [&](const char* text) {
        test::note what;
        what.text = text;
        if (!journal.log->append(what)) std::abort();
        out.marks.push_back(journal.log->core().head());
    };
    for (const auto* text : {"first", "second", "", "fourth"}) put(text);
    if (rotated) {
        if (!journal.log->core().rotate(std::vector<std::uint64_t>{2, 3})) std::abort();
        out.marks.clear();
        for (const auto* text : {"fifth", "sixth"}) put(text);
    }
    out.bytes = disk.content();
    out.witness = disk.content("head");
    out.frames = frames_of(out.bytes, form.magic.size() + form.text_bytes);
    return out;
}

struct verdict {
    std::string_view step;
    std::string detail;
    std::vector<std::string> texts;
    bool unchanged = false;
};

auto opened(const sample& of, const std::string& bytes, bool with_witness,
            const std::optional<mark>& vouched = {}) -> verdict {
    failing_disk disk;
    disk.put("file", bytes);
    if (with_witness) disk.put("head", of.witness);
    auto how = settings_of(of.form);
    how.missing = journal::absence::refused;
    auto journal = open_notes(disk, how, vouched);
    return {journal.why.step, journal.why.detail, journal.texts, disk.content() == bytes};
}

auto inspected(failing_disk& disk, const sample& of) -> result<journal::inspection> {
    test::failing_storage store{disk};
    test::note_reader reader{test::codec_of(of.form)};
    return journal::inspect(store, settings_of(of.form), reader);
}
auto repaired(failing_disk& disk, const sample& of, journal::loss accepted = journal::loss::refused)
    -> result<journal::inspection> {
    test::failing_storage store{disk};
    test::note_reader reader{test::codec_of(of.form)};
    return journal::repair(store, settings_of(of.form), reader, accepted);
}

auto number_in(const sample& of, std::size_t offset) -> std::string {
    for (std::size_t i = 0; i < of.frames.size(); ++i)
        if (offset < of.frames[i].begin + of.frames[i].size)
            return "record " + std::to_string(i + 1) + " at byte ";
    return {};
}

struct tested {
    format form;
    bool rotated;
};
void PrintTo(const tested& what, std::ostream* out) {
    *out << what.form.name << (what.rotated ? ", rotated" : "");
}
class Damage : public testing::TestWithParam<tested> {
protected:
    sample whole_ = make(GetParam().form, GetParam().rotated);
    std::size_t header_ = GetParam().form.magic.size() + GetParam().form.text_bytes;
};
INSTANTIATE_TEST_SUITE_P(All, Damage,
                         testing::Values(tested{journal::session_registry, false},
                                         tested{journal::session_registry, true},
                                         tested{journal::receipts, false},
                                         tested{journal::receipts, true},
                                         tested{journal::exposures, false},
                                         tested{journal::exposures, true}));

TEST_P(Damage, TheWholeFileIsAccepted) {
    for (const bool with_witness : {false, true}) {
        const auto seen = opened(whole_, whole_.bytes, with_witness);
        EXPECT_EQ(seen.step, "") << seen.detail;
        EXPECT_EQ(seen.texts.size(), 4U);
    }
}

// Without a witness, and with an anchor that would allow a torn tail to be cut.
TEST_P(Damage, EveryFlippedBitIsRefusedByTheNumberOfItsRecord) {
    for (std::size_t at = 0; at < whole_.bytes.size(); ++at)
        for (unsigned bit = 0; bit < 8; ++bit) {
            auto bytes = whole_.bytes;
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
            const auto seen = opened(whole_, bytes, false, whole_.marks.front());
            ASSERT_NE(seen.step, "") << at << " " << bit;
            ASSERT_TRUE(seen.unchanged) << at << " " << bit;
            if (at < header_) {
                ASSERT_EQ(seen.step, "journal.header") << at;
            } else {
                ASSERT_THAT(seen.detail, HasSubstr(number_in(whole_, at)))
                    << at << " " << bit << " " << seen.step;
            }
            if (bit != 0) continue;
            failing_disk disk;
            disk.put("file", bytes);
            ASSERT_FALSE(repaired(disk, whole_, journal::loss::accepted).has_value());
            ASSERT_EQ(disk.content(), bytes);
        }
}

TEST_P(Damage, EveryShorterLengthIsRefused) {
    for (std::size_t size = 0; size < whole_.bytes.size(); ++size) {
        const auto bytes = whole_.bytes.substr(0, size);
        const auto seen = opened(whole_, bytes, true);
        ASSERT_NE(seen.step, "") << size;
        ASSERT_TRUE(seen.unchanged);
        failing_disk disk;
        disk.put("file", bytes);
        disk.put("head", whole_.witness);
        ASSERT_FALSE(repaired(disk, whole_).has_value()) << size;
        ASSERT_EQ(disk.content(), bytes);
    }
}

TEST_P(Damage, WithoutAWitnessOnlyWholeRecordsAreAccepted) {
    const auto live = GetParam().rotated ? 3U : 0U; // the snapshot and what it keeps
    for (std::size_t size = 0; size < whole_.bytes.size(); ++size) {
        const auto seen = opened(whole_, whole_.bytes.substr(0, size), false);
        std::size_t frames = 0;
        bool boundary = size == header_;
        for (const auto& f : whole_.frames)
            if (f.begin + f.size <= size) {
                ++frames;
                boundary = f.begin + f.size == size;
            }
        if (size < header_) {
            ASSERT_EQ(seen.step, "journal.header") << size;
        } else if (boundary && frames >= live) {
            ASSERT_EQ(seen.step, "") << size;
        } else if (frames > 0 && frames < live) {
            ASSERT_EQ(seen.step, "journal.snapshot") << size;
        } else if (!boundary) {
            ASSERT_EQ(seen.step, "journal.torn") << size;
            ASSERT_THAT(seen.detail,
                        HasSubstr("record " + std::to_string(frames + 1) + " at byte "));
        }
    }
}

TEST_P(Damage, ARecordTwiceOrElsewhereOrMissingIsRefused) {
    const auto frame = [&](std::size_t i) {
        return whole_.bytes.substr(whole_.frames[i].begin, whole_.frames[i].size);
    };
    const auto count = whole_.frames.size();
    const auto with_order = [&](const std::vector<std::size_t>& order) {
        auto out = whole_.bytes.substr(0, header_);
        for (const auto i : order) out += frame(i);
        return opened(whole_, out, false, mark{});
    };
    std::vector<std::size_t> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = i;
    ASSERT_EQ(opened(whole_, whole_.bytes, false).step, "");
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t to = 0; to <= count; ++to) { // a second copy of i
            auto order = all;
            order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), i);
            const auto seen = with_order(order);
            ASSERT_NE(seen.step, "") << i << " again at " << to;
            // Of the two copies, the one that is not in its place; of what a snapshot keeps, which
            // has gaps, the first that is out of order.
            if (GetParam().rotated && (i < 3 || to < 3)) continue;
            ASSERT_THAT(seen.detail,
                        HasSubstr("record " + std::to_string(to == i ? to + 2 : to + 1)))
                << i << " " << to << " " << seen.step;
        }
        for (std::size_t to = i + 1; to < count; ++to) { // two that changed places
            auto order = all;
            std::swap(order[i], order[to]);
            const auto seen = with_order(order);
            // What a snapshot keeps has gaps: there the second of the two is out of order.
            const bool kept = GetParam().rotated && i > 0 && to < 3;
            ASSERT_THAT(seen.detail, HasSubstr("record " + std::to_string(kept ? to + 1 : i + 1)))
                << seen.step;
        }
        if (i + 1 < count) { // one that is left out
            auto order = all;
            order.erase(order.begin() + static_cast<std::ptrdiff_t>(i));
            ASSERT_NE(with_order(order).step, "") << i;
        }
    }
}

TEST(Tampering, ADuplicateIsNamedByItsNumber) {
    const auto whole = make(journal::session_registry, false);
    const auto third = whole.bytes.substr(whole.frames[2].begin, whole.frames[2].size);
    auto bytes = whole.bytes;
    bytes.insert(whole.frames[3].begin, third);
    const auto seen = opened(whole, bytes, true);
    EXPECT_EQ(seen.step, "journal.order");
    EXPECT_THAT(seen.detail, HasSubstr("record 4 at byte "));
    EXPECT_THAT(seen.detail, HasSubstr("has the sequence 3 where 4 belongs"));
}

TEST(Tampering, AChainIsHeldTogetherByItsDigests) {
    // Of two journals that differ in their first record, no record fits into the other.
    failing_disk other;
    auto journal = open_notes(other, settings_of(journal::session_registry));
    for (const auto* text : {"other", "second"}) {
        test::note what;
        what.text = text;
        ASSERT_TRUE(journal.log->append(what).has_value());
    }
    const auto whole = make(journal::session_registry, false);
    const auto foreign = frames_of(other.content(), 8);
    auto bytes = whole.bytes.substr(0, whole.frames[1].begin);
    bytes += other.content().substr(foreign[1].begin);
    const auto seen = opened(whole, bytes, false);
    EXPECT_EQ(seen.step, "journal.chain");
    EXPECT_THAT(seen.detail, HasSubstr("record 2 at byte "));
}

TEST(Tampering, AKeyedJournalIsRefusedUnderAnotherKey) {
    const auto whole = make(journal::receipts, true);
    failing_disk disk;
    disk.put("file", whole.bytes);
    test::failing_storage store{disk};
    test::note_reader reader{test::note_codec{"another key"}};
    const auto seen = journal::inspect(store, settings_of(journal::receipts), reader);
    ASSERT_TRUE(seen.has_value());
    ASSERT_TRUE(seen->defect.has_value());
    EXPECT_EQ(seen->defect->step, "journal.snapshot");
}

TEST_P(Damage, ATornTailIsCutWhereTheTableAllowsIt) {
    const bool allowed = GetParam().form.tail == journal::torn_tail::cut_when_vouched;
    const auto& last = whole_.frames.back();
    for (std::size_t size = last.begin + 1; size < last.begin + last.size; ++size) {
        failing_disk disk;
        disk.put("file", whole_.bytes.substr(0, size));
        const auto how = settings_of(GetParam().form);
        EXPECT_EQ(open_notes(disk, how).why.step, "journal.torn"); // nobody vouches
        // The torn record itself is vouched for: it was acknowledged.
        EXPECT_EQ(open_notes(disk, how, whole_.marks.back()).why.step, "journal.anchor");
        ASSERT_EQ(disk.content().size(), size);
        auto journal = open_notes(disk, how, whole_.marks.front());
        if (!allowed) {
            EXPECT_EQ(journal.why.step, "journal.torn");
            EXPECT_EQ(disk.content().size(), size);
            continue;
        }
        ASSERT_TRUE(journal.log.has_value()) << journal.why.detail;
        EXPECT_EQ(disk.content(), whole_.bytes.substr(0, last.begin));
        test::note again;
        again.text = "again";
        EXPECT_TRUE(journal.log->append(again).has_value());
    }
}

TEST_P(Damage, AWitnessKeepsAcknowledgedRecordsFromBeingCut) {
    const auto& last = whole_.frames.back();
    failing_disk disk;
    disk.put("file", whole_.bytes.substr(0, last.begin + 9));
    disk.put("head", whole_.witness);
    EXPECT_EQ(open_notes(disk, settings_of(GetParam().form), whole_.marks.front()).why.step,
              "journal.truncated");
    const auto seen = inspected(disk, whole_);
    ASSERT_TRUE(seen.has_value());
    EXPECT_EQ(seen->witness, witnessed::lost);
    EXPECT_EQ(seen->acknowledged, whole_.marks.back());
    EXPECT_EQ(seen->cut_bytes, 9U);
    EXPECT_FALSE(seen->sound());
    EXPECT_EQ(repaired(disk, whole_).error().step, "journal.truncated");
    ASSERT_TRUE(repaired(disk, whole_, journal::loss::accepted).has_value());
    EXPECT_EQ(disk.content(), whole_.bytes.substr(0, last.begin));
    EXPECT_TRUE(inspected(disk, whole_)->sound());
    EXPECT_TRUE(open_notes(disk, settings_of(GetParam().form)).log.has_value());
}

TEST_P(Damage, ARepairCutsTheBeginningOfARecordAndNothingElse) {
    const auto& last = whole_.frames.back();
    for (std::size_t size = last.begin + 1; size < last.begin + last.size; ++size) {
        failing_disk disk;
        const auto torn = whole_.bytes.substr(0, size);
        disk.put("file", torn);
        const auto seen = inspected(disk, whole_);
        ASSERT_TRUE(seen.has_value());
        EXPECT_EQ(seen->cut_bytes, size - last.begin);
        EXPECT_EQ(seen->file_bytes, size);
        EXPECT_EQ(seen->found.frames, whole_.frames.size() - 1);
        EXPECT_FALSE(seen->zeros);
        EXPECT_EQ(disk.content(), torn); // looking changes nothing
        ASSERT_TRUE(repaired(disk, whole_).has_value());
        EXPECT_EQ(disk.content(), whole_.bytes.substr(0, last.begin));
        EXPECT_TRUE(open_notes(disk, settings_of(GetParam().form)).log.has_value());
    }
    failing_disk disk;
    disk.put("file", whole_.bytes);
    ASSERT_TRUE(repaired(disk, whole_).has_value());
    EXPECT_EQ(disk.content(), whole_.bytes);
}

TEST_P(Damage, RoomThatWasNeverWrittenIsCutByARepair) {
    for (const std::size_t zeros : {1UL, 3UL, 4UL, 8UL, 9UL, 4096UL}) {
        failing_disk disk;
        disk.put("file", whole_.bytes + std::string(zeros, '\0'));
        EXPECT_EQ(open_notes(disk, settings_of(GetParam().form)).why.step, "journal.torn");
        const auto vouched = open_notes(disk, settings_of(GetParam().form), whole_.marks.front());
        if (GetParam().form.tail == journal::torn_tail::cut_when_vouched) {
            EXPECT_TRUE(vouched.log.has_value()) << vouched.why.detail;
            EXPECT_EQ(disk.content(), whole_.bytes);
            disk.put("file", whole_.bytes + std::string(zeros, '\0'));
        } else {
            EXPECT_EQ(vouched.why.step, "journal.torn");
        }
        const auto seen = inspected(disk, whole_);
        ASSERT_TRUE(seen.has_value());
        EXPECT_EQ(seen->zeros, zeros >= 4); // fewer are the beginning of a length
        EXPECT_EQ(seen->cut_bytes, zeros);
        ASSERT_TRUE(repaired(disk, whole_).has_value());
        EXPECT_EQ(disk.content(), whole_.bytes);
        if (zeros < 4) continue;
        // One byte among them, and it is something else.
        for (std::size_t at = 4; at < zeros; ++at) {
            failing_disk other;
            auto bytes = whole_.bytes + std::string(zeros, '\0');
            bytes[whole_.bytes.size() + at] = '\1';
            other.put("file", bytes);
            ASSERT_FALSE(repaired(other, whole_).has_value());
            ASSERT_EQ(other.content(), bytes);
        }
    }
}

TEST_P(Damage, WhatSomebodyAppendedIsRefusedAndStays) {
    for (const auto* more : {"x", "\n", "not a record at all"}) {
        failing_disk disk;
        disk.put("file", whole_.bytes + more);
        disk.put("head", whole_.witness);
        const auto seen = open_notes(disk, settings_of(GetParam().form));
        EXPECT_THAT(seen.why.detail,
                    HasSubstr("record " + std::to_string(whole_.frames.size() + 1)));
        EXPECT_EQ(disk.content(), whole_.bytes + more);
    }
}

} // namespace
