// The chain of receipts and its controller: anchors, pages, room, rotation, recovery.
#include "control/receipt_record.hpp"
#include "receipt_journal_scene.hpp"
#include <atomic>
#include <glove/control/protocol.hpp>
#include <glove/journal/format.hpp>
#include <gtest/gtest.h>
#include <thread>

namespace {

using namespace glove;
using namespace glove::control;
using test::beginning;
using test::code_of;
using test::controller;
using test::digits;
using test::failing_disk;
using test::journal_on;
using test::put_receipt;
using test::why;

// --- the beginning ---

TEST(ReceiptJournal, BeginsWithAControllerAndItsAcknowledgement) {
    failing_disk disk;
    auto journal = journal_on(disk);
    controller sage;
    EXPECT_EQ(disk.look("file"), nullptr);
    EXPECT_EQ(code_of(journal.acknowledge(sage.anchor)), "audit_reconciliation_required");
    EXPECT_EQ(code_of(put_receipt(journal, "s")), "audit_reconciliation_required");
    ASSERT_TRUE(sage.archive(journal));
    ASSERT_TRUE(sage.archive(journal)); // again, and still not acknowledged
    EXPECT_FALSE(journal.reconciled());
    EXPECT_EQ(code_of(put_receipt(journal, "s")), "audit_reconciliation_required");
    EXPECT_EQ(journal.acknowledge(sage.anchor).value(), sage.anchor);
    EXPECT_TRUE(journal.reconciled());
    EXPECT_EQ(why(put_receipt(journal, "s")), "");
}

TEST(ReceiptJournal, ANewOneIsMadeForTheBeginningAndNothingElse) {
    const auto key = test::usual_key();
    for (const auto& anchor :
         {receipt_anchor{test::other_key().id(), 0, digits('0')},
          receipt_anchor{key.id(), 0, digits('1')}, receipt_anchor{key.id(), 1, digits('0')},
          receipt_anchor{digits('0'), 0, digits('0')}, receipt_anchor{}}) {
        failing_disk disk;
        auto journal = journal_on(disk);
        EXPECT_EQ(code_of(journal.page(anchor, 15)), "audit_reconciliation_failed");
        EXPECT_EQ(disk.look("file"), nullptr);
        EXPECT_TRUE(journal.page(beginning(key), 15)); // what was refused does no harm
    }
}

// --- anchors ---

class Chain : public testing::Test {
protected:
    void SetUp() override {
        auto journal = journal_on(disk);
        ASSERT_EQ(why(sage.reconcile(journal)), "");
        for (int i = 1; i <= 4; ++i) {
            ASSERT_EQ(why(put_receipt(journal, "s" + std::to_string(i))), "");
            ASSERT_EQ(why(sage.archive(journal)), "");
            anchors.push_back(sage.anchor);
        }
    }
    failing_disk disk;
    controller sage;
    std::vector<receipt_anchor> anchors{beginning(sage.key)}; // by sequence
};

TEST_F(Chain, WhoHasItAllNeedsNoAcknowledgementAfterARestart) {
    auto journal = journal_on(disk);
    EXPECT_FALSE(journal.reconciled());
    const auto page = journal.page(sage.anchor, 15);
    ASSERT_TRUE(page);
    EXPECT_TRUE(page->envelopes.empty());
    EXPECT_EQ(page->local_anchor, sage.anchor);
    EXPECT_TRUE(journal.reconciled());
}

TEST_F(Chain, AnOlderPlaceIsShownTheRestAndHasToAcknowledge) {
    for (std::size_t i = 0; i < 4; ++i) {
        auto journal = journal_on(disk);
        const auto page = journal.page(anchors[i], 15);
        ASSERT_TRUE(page) << why(page);
        EXPECT_EQ(page->envelopes.size(), 4 - i);
        EXPECT_EQ(page->envelopes.front().sequence, i + 1);
        EXPECT_FALSE(page->has_more);
        EXPECT_FALSE(journal.reconciled());
        for (std::size_t j = 0; j < 4; ++j)
            EXPECT_EQ(code_of(journal.acknowledge(anchors[j])), "audit_reconciliation_failed");
        EXPECT_TRUE(journal.acknowledge(anchors[4]));
        EXPECT_TRUE(journal.reconciled());
        // Any place of the chain is still good for a page.
        for (const auto& anchor : anchors) EXPECT_TRUE(journal.page(anchor, 15));
    }
}

TEST_F(Chain, WhatIsNoPlaceOfItIsRefused) {
    std::vector<receipt_anchor> wrong{{sage.key.id(), 0, digits('1')},
                                      {sage.key.id(), 2, anchors[1].head_hmac},
                                      {sage.key.id(), 4, digits('1')},
                                      {sage.key.id(), 5, anchors[4].head_hmac},
                                      {sage.key.id(), UINT64_MAX, anchors[4].head_hmac},
                                      {test::other_key().id(), 4, anchors[4].head_hmac},
                                      {sage.key.id(), 4, ""}};
    const auto before = disk.content();
    auto opened = journal_on(disk);
    ASSERT_TRUE(opened.page(sage.anchor, 15));
    for (const auto& anchor : wrong) {
        auto journal = journal_on(disk);
        EXPECT_EQ(code_of(journal.page(anchor, 15)), "audit_reconciliation_failed");
        EXPECT_FALSE(journal.reconciled());
        EXPECT_EQ(disk.content(), before);
        EXPECT_EQ(code_of(opened.page(anchor, 15)), "audit_reconciliation_failed");
        EXPECT_EQ(code_of(opened.acknowledge(anchor)), "audit_reconciliation_failed");
        EXPECT_TRUE(journal.page(sage.anchor, 15)); // the next one may be right
    }
}

TEST_F(Chain, AnotherKeyIsRefused) {
    auto journal = journal_on<test::failing_storage>(disk, 0, test::other_key());
    const auto page = journal.page(beginning(test::other_key()), 15);
    EXPECT_EQ(code_of(page), "audit_reconciliation_failed");
    EXPECT_EQ(page.error().why.step, "journal.header");
}

TEST_F(Chain, AReceiptIsFoundByWhoseItIs) {
    auto journal = journal_on(disk);
    ASSERT_TRUE(journal.page(sage.anchor, 15));
    const auto found = journal.find("s3", digits('a'), digits('c')).value();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->sequence, 3U);
    EXPECT_EQ(found->key_id, sage.key.id());
    EXPECT_EQ(found->this_hmac, anchors[3].head_hmac);
    EXPECT_EQ(found->previous_hmac, anchors[2].head_hmac);
    EXPECT_EQ(found->termination_cause, "exited");
    EXPECT_EQ(found->exit_code, 0U);
    EXPECT_EQ(found->started_at_ms, 1000U);
    EXPECT_EQ(found->finished_at_ms, 1750U);
    EXPECT_FALSE(found->refinement);
    EXPECT_FALSE(journal.find("s5", digits('a'), digits('c')).value());
    EXPECT_FALSE(journal.find("s3", digits('b'), digits('c')).value());
    EXPECT_FALSE(journal.find("s3", digits('a'), digits('d')).value());
}

// Whoever took it for absent would call a session failed that has a receipt.
TEST_F(Chain, AReceiptThatCannotBeReadIsNotSaidToBeAbsent) {
    auto journal = journal_on(disk);
    ASSERT_TRUE(journal.page(sage.anchor, 15));
    ASSERT_TRUE(journal.find("s3", digits('a'), digits('c')).value());
    const auto head = sage.anchor.sequence;
    for (const std::size_t at : {1U, 2U}) { // whether it is the same file, and its content
        disk.plan({.at = at, .does = test::effect::none, .after = test::then::recovers});
        EXPECT_FALSE(journal.find("s3", digits('a'), digits('c')).has_value()) << at;
        // What is not there needs no disk.
        EXPECT_FALSE(journal.find("s5", digits('a'), digits('c')).value());
        ASSERT_TRUE(journal.page(sage.anchor, 15)); // opens it again when it has to
        EXPECT_EQ(journal.find("s3", digits('a'), digits('c')).value()->sequence, 3U);
    }
    // Nor is it put on record again.
    auto room = journal.reserve(test::usual_plan(), test::usual_rules());
    ASSERT_TRUE(room);
    disk.plan({.at = 2, .does = test::effect::none, .after = test::then::recovers});
    EXPECT_FALSE(journal.append("s3", digits('a'), test::usual_receipt(), std::move(*room)));
    EXPECT_EQ(
        journal.append("s3", digits('a'), test::usual_receipt(), std::move(*room)).value().sequence,
        3U);
    ASSERT_TRUE(sage.archive(journal));
    EXPECT_EQ(sage.anchor.sequence, head);
}

// --- pages ---

TEST(ReceiptJournal, PagesHoldFifteenOfBothKindsInOrder) {
    test::memory_files files;
    auto journal = journal_on(files);
    controller sage;
    ASSERT_TRUE(sage.reconcile(journal));
    std::vector<std::string> sessions;
    auto plan = test::refinement_plan();
    for (int i = 0; i < 40; ++i) {
        sessions.push_back("s" + std::to_string(i));
        if (i % 3 != 0) {
            ASSERT_TRUE(put_receipt(journal, sessions.back()));
            continue;
        }
        auto room = journal.reserve(plan, test::usual_rules());
        ASSERT_TRUE(room) << why(room);
        const auto done = journal.append(sessions.back(), digits('a'), test::usual_refinement(),
                                         *std::move(room));
        ASSERT_TRUE(done) << why(done);
        EXPECT_TRUE(done->refinement);
    }
    std::vector<std::size_t> sizes;
    for (bool more = true; more;) {
        const auto page = journal.page(sage.anchor, 1000).value();
        ASSERT_TRUE(encode(page));
        sizes.push_back(page.envelopes.size() + page.refinement_envelopes.size());
        ASSERT_TRUE(sage.take(page));
        more = page.has_more;
    }
    EXPECT_EQ(sizes, (std::vector<std::size_t>{15, 15, 10}));
    EXPECT_EQ(sage.seen, sessions);
    EXPECT_EQ(code_of(journal.page(sage.anchor, 0)), "invalid_request");
    EXPECT_EQ(journal.page(beginning(sage.key), 1).value().envelopes.size(), 0U);
    EXPECT_EQ(journal.page(beginning(sage.key), 14).value().envelopes.size(), 9U);
    EXPECT_EQ(journal.page(beginning(sage.key), 16).value().envelopes.size(), 10U);
    // After a restart, too.
    auto again = journal_on(files);
    controller other;
    ASSERT_TRUE(other.archive(again, 7));
    EXPECT_EQ(other.seen, sessions);
    EXPECT_EQ(other.anchor, sage.anchor);
}

// As many projections as fit into one record.
auto plan_of(std::size_t projections) -> supervisor::session_plan {
    auto plan = test::usual_plan();
    plan.library_projections.clear();
    for (std::size_t i = 0; i < projections; ++i) {
        auto digest = wire::to_hex(wire::sha256(std::to_string(i)).value());
        plan.library_projections.push_back(
            {std::to_string(1000 + i) + std::string(124, 'x'), std::move(digest), "libraries"});
    }
    return plan;
}
const std::string far_away = "/opt/" + std::string(200, 'l');
// Under which a record cannot take as many as a plan may have.
auto long_rules() -> supervisor::session_rules {
    auto out = test::usual_rules();
    out.library_projection_destinations.front().target_path = far_away;
    return out;
}
auto receipt_for(const supervisor::session_plan& plan,
                 const std::string& place = "/opt/sage/library-bundles") -> resource_receipt {
    auto out = test::usual_receipt();
    out.backend_id = std::string(128, 'x');
    out.configured_limits = plan.limits;
    out.observed = {UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    out.exit_code = 255;
    out.started_at_ms = out.finished_at_ms = UINT64_MAX;
    for (const auto& p : plan.library_projections)
        out.library_projections.push_back({p.projection_id, p.destination_alias,
                                           place + "/" + p.content_digest + ".json",
                                           p.content_digest});
    return out;
}
auto most_projections_of_a_record() -> std::size_t {
    std::size_t out = 0;
    while (longest_receipt(plan_of(out + 1), long_rules())) ++out;
    return out;
}

TEST(ReceiptJournal, APlanWhoseReceiptCannotBeRecordedIsRefusedBeforeItStarts) {
    const auto rules = long_rules();
    const auto most = most_projections_of_a_record();
    EXPECT_GT(most, 64U);
    EXPECT_LT(most, 128U);
    const auto refused = longest_receipt(plan_of(most + 1), rules);
    EXPECT_EQ(refused.error().step, "receipt.size");
    test::memory_files files;
    auto journal = journal_on(files);
    controller sage;
    ASSERT_TRUE(sage.reconcile(journal));
    EXPECT_EQ(code_of(journal.reserve(plan_of(most + 1), rules)), "invalid_plan");
    EXPECT_TRUE(journal.reserve(plan_of(most), rules));
    auto elsewhere = test::usual_plan();
    elsewhere.library_projections.front().destination_alias = "nowhere";
    EXPECT_EQ(longest_receipt(elsewhere, rules).error().step, "receipt.target");
}

TEST(ReceiptJournal, APageOfTheLongestReceiptsFitsIntoAFrame) {
    const auto plan = plan_of(most_projections_of_a_record());
    test::memory_files files;
    auto journal = journal_on(files);
    controller sage;
    ASSERT_TRUE(sage.reconcile(journal));
    for (int i = 0; i < 16; ++i) {
        auto room = journal.reserve(plan, long_rules());
        const auto done = journal.append(std::to_string(i) + std::string(120, 'x'), digits('a'),
                                         receipt_for(plan, far_away), *std::move(room));
        ASSERT_TRUE(done) << why(done);
    }
    const auto page = journal.page(sage.anchor, 15).value();
    EXPECT_EQ(page.envelopes.size(), 15U);
    EXPECT_TRUE(page.has_more);
    const auto text = encode(page).value();
    EXPECT_GT(text.size(), 15U * 64'000);

    EXPECT_LT(text.size() + 4096, most_frame_bytes);
}

// --- room ---

TEST(ReceiptJournal, TheLongestReceiptOfAPlanIsAsLongAsItIsSaidToBe) {
    const auto rules = test::usual_rules();
    auto plan = test::plan_of_version_2();
    auto& grants = std::get<1>(plan.grants);
    grants.front().access = supervisor::access_kind::retained_write;
    grants.front().generation = UINT64_MAX;
    auto receipt = receipt_for(plan);
    auto changes = test::some_changes("proj");
    changes.generation = UINT64_MAX;
    changes.created = changes.modified = changes.renamed = changes.removed = 25'000;
    changes.before_bytes = changes.after_bytes = plan.limits.disk_bytes;
    receipt.retained_changes = {changes};
    for (auto* const by : {&receipt.mechanisms.cpu_time, &receipt.mechanisms.memory,
                           &receipt.mechanisms.pids, &receipt.mechanisms.wall_time,
                           &receipt.mechanisms.disk, &receipt.mechanisms.terminal_output})
        *by = mechanism::filesystem_quota;
    const auto key = test::usual_key();
    chained_receipt record{
        test::sealed(receipt, key, {key.id(), UINT64_MAX - 1, digits('1')}, std::string(128, 's'))};
    EXPECT_EQ(encode(record).value().size(), longest_receipt(plan, rules).value());
    // No other cause makes it longer.
    auto& envelope = std::get<0>(record.envelope);
    for (int c = 1; c < 9; ++c) {
        envelope.receipt.cause = static_cast<termination_cause>(c);
        envelope.receipt.exit_code.reset();
        envelope.receipt_digest = receipt_digest(envelope.receipt).value();
        EXPECT_LT(encode(record).value().size(), longest_receipt(plan, rules).value());
    }
}

TEST(ReceiptJournal, TheEvidenceOfARefinementFits) {
    const auto plan = test::refinement_plan();
    auto refinement = test::usual_refinement();
    const auto most = longest_receipt(plan, test::usual_rules()).value();
    const auto key = test::usual_key();
    for (const bool valid : {true, false}) {
        auto receipt = valid ? test::usual_refinement() : test::invalid_refinement();
        receipt.resource.backend_id = std::string(128, 'x');
        receipt.resource.library_projections = receipt_for(plan).library_projections;
        receipt.resource.library_projections[0].target_path =
            "/opt/sage/fixtures/" + digits('1') + ".json";
        const chained_receipt record{test::sealed(
            receipt, key, {key.id(), UINT64_MAX - 1, digits('1')}, std::string(128, 's'))};
        EXPECT_LE(encode(record).value().size(), most);
    }
}

TEST(ReceiptJournal, WhatWasReservedForFitsWhateverElseIsOnRecord) {
    test::memory_files files;
    auto journal = journal_on(files, 64UL << 10);
    controller sage;
    ASSERT_TRUE(sage.reconcile(journal));
    const auto plan = plan_of(3);
    std::vector<receipt_room> rooms;
    for (;;) {
        auto room = journal.reserve(plan, test::usual_rules());
        if (!room) {
            EXPECT_EQ(code_of(room), "session_capacity");
            break;
        }
        rooms.push_back(*std::move(room));
    }
    ASSERT_GT(rooms.size(), 10U);
    rooms.pop_back(); // given back, and taken again
    auto another = journal.reserve(plan, test::usual_rules());
    ASSERT_TRUE(another);
    rooms.push_back(*std::move(another));
    for (std::size_t i = 0; i < rooms.size(); ++i) {
        const auto done = journal.append(std::to_string(i) + std::string(120, 's'), digits('a'),
                                         receipt_for(plan), std::move(rooms[i]));
        ASSERT_TRUE(done) << why(done);
    }
    EXPECT_EQ(code_of(journal.reserve(plan, test::usual_rules())), "session_capacity");
    // One that is larger than its room is refused, and its room is still there.
    ASSERT_TRUE(sage.reconcile(journal));
    auto small = journal.reserve(test::usual_plan(), test::usual_rules());
    ASSERT_TRUE(small) << why(small);
    const auto large = journal.append("large", digits('a'), receipt_for(plan), std::move(*small));
    EXPECT_EQ(code_of(large), "session_storage_failed");
    EXPECT_EQ(large.error().why.step, "journal.owed");
    EXPECT_TRUE(journal.append("small", digits('a'), test::usual_receipt(), std::move(*small)));
    // A room is for one receipt.
    const auto twice =
        journal.append("more", digits('a'), test::usual_receipt(), std::move(*small));
    EXPECT_EQ(twice.error().why.step, "receipt.room");
}

TEST(ReceiptJournal, ARoomOfAnotherJournalIsNone) {
    test::memory_files one, two;
    auto first = journal_on(one);
    auto second = journal_on(two);
    controller a, b;
    ASSERT_TRUE(a.reconcile(first));
    ASSERT_TRUE(b.reconcile(second));
    auto room = first.reserve(test::usual_plan(), test::usual_rules());
    EXPECT_EQ(
        second.append("s", digits('a'), test::usual_receipt(), std::move(*room)).error().why.step,
        "receipt.room");
    EXPECT_TRUE(first.append("s", digits('a'), test::usual_receipt(), std::move(*room)));
}

TEST(ReceiptJournal, ARoomMayOutliveTheJournal) {
    test::memory_files files;
    std::optional<receipt_room> room;
    {
        auto journal = journal_on(files);
        controller sage;
        ASSERT_TRUE(sage.reconcile(journal));
        room.emplace(journal.reserve(test::usual_plan(), test::usual_rules()).value());
    }
    room.reset();
}

TEST(ReceiptJournal, AReceiptThatNoControllerWouldBelieveIsNotRecorded) {
    test::memory_files files;
    auto journal = journal_on(files);
    controller sage;
    ASSERT_TRUE(sage.reconcile(journal));
    const auto before = files.file;
    auto room = journal.reserve(test::usual_plan(), test::usual_rules());
    auto bad = test::usual_receipt();
    bad.finished_at_ms = 1;
    EXPECT_EQ(code_of(journal.append("s", digits('a'), bad, std::move(*room))),
              "session_storage_failed");
    EXPECT_EQ(
        code_of(journal.append("not an id", digits('a'), test::usual_receipt(), std::move(*room))),
        "session_storage_failed");
    EXPECT_EQ(files.file, before);
    EXPECT_TRUE(journal.append("s", digits('a'), test::usual_receipt(), std::move(*room)));
}

// --- rotation ---

TEST(ReceiptJournal, TwentyThousandReceiptsInARowWithOneFile) {
    test::memory_files files;
    auto journal = journal_on(files);
    controller sage;
    ASSERT_TRUE(sage.reconcile(journal));
    for (int i = 0; i < 20'000; ++i)
        ASSERT_EQ(why(put_receipt(journal, "s" + std::to_string(i))), "");
    ASSERT_EQ(why(sage.reconcile(journal)), "");
    EXPECT_EQ(sage.seen.size(), 20'000U);
    auto again = journal_on(files);
    ASSERT_TRUE(again.page(sage.anchor, 15));
    EXPECT_TRUE(again.reconciled());
    EXPECT_EQ(again.find("s12345", digits('a'), digits('c')).value()->sequence, 12'346U);
}

TEST(ReceiptJournal, TwentyThousandReceiptsInARowInASmallFile) {
    test::memory_files files;
    constexpr std::uint64_t bytes = 128UL << 10;
    controller sage;
    std::optional<receipt_journal> journal;
    receipt_anchor older;
    for (int i = 0; i < 20'000; ++i) {
        if (i % 1'000 == 0) { // another life
            journal.emplace(journal_on(files, bytes));
            ASSERT_EQ(why(sage.archive(*journal)), "");
            if (i == 0) {
                ASSERT_TRUE(journal->acknowledge(sage.anchor));
            }
            ASSERT_TRUE(journal->reconciled());
            if (i == 0) older = sage.anchor;
        }
        ASSERT_EQ(why(put_receipt(*journal, "s" + std::to_string(i))), "") << i;
        if (i % 7 == 0) {
            ASSERT_EQ(why(sage.reconcile(*journal)), "") << i;
        }
        ASSERT_LE(files.file->size(), bytes);
        if (i % 1'000 == 999) {
            ASSERT_EQ(why(sage.archive(*journal)), "");
        }
    }
    EXPECT_EQ(sage.seen.size(), 20'000U);
    EXPECT_EQ(sage.seen.back(), "s19999");
    // What the file does not show any more is not held in memory either.
    EXPECT_FALSE(journal->find("s19001", digits('a'), digits('c')).value());
    EXPECT_TRUE(journal->find("s19999", digits('a'), digits('c')).value());
    // The beginning is gone, and cannot be proven any more; the end can.
    const auto page = journal->page(older, 15);
    EXPECT_EQ(code_of(page), "audit_reconciliation_failed");
    EXPECT_EQ(page.error().why.step, "receipt.anchor");
    auto again = journal_on(files, bytes);
    EXPECT_EQ(code_of(again.page(older, 15)), "audit_reconciliation_failed");
    EXPECT_TRUE(again.page(sage.anchor, 15));
}

TEST(ReceiptJournal, AFullFileKeepsWhatNobodyAcknowledged) {
    test::memory_files files;
    constexpr std::uint64_t bytes = 32UL << 10;
    auto journal = journal_on(files, bytes);
    controller sage;
    ASSERT_TRUE(sage.reconcile(journal));
    std::vector<receipt_anchor> places{sage.anchor};
    std::size_t count = 0;
    const auto fill = [&] {
        for (;;) {
            const auto done = put_receipt(journal, "s" + std::to_string(count));
            if (!done) return code_of(done);
            ++count;
            places.push_back({sage.key.id(), done->sequence, done->this_hmac});
        }
    };
    EXPECT_EQ(fill(), "session_capacity");
    const auto first = count;
    ASSERT_GT(first, 10U);
    // Nothing was let go: a controller can still begin at the beginning.
    EXPECT_TRUE(journal.page(places.front(), 15));
    ASSERT_TRUE(sage.reconcile(journal));
    EXPECT_EQ(sage.seen.size(), first);
    // Now there is room, and what came after the acknowledgement is kept again.
    EXPECT_EQ(fill(), "session_capacity");
    EXPECT_GT(count, first + first / 2);
    EXPECT_EQ(code_of(journal.page(places.front(), 15)), "audit_reconciliation_failed");
    ASSERT_TRUE(sage.archive(journal));
    EXPECT_EQ(sage.seen.size(), count);
    // So does the next life, from the place that was acknowledged.
    auto again = journal_on(files, bytes);
    controller late;
    late.anchor = places[first];
    ASSERT_EQ(why(late.reconcile(again)), "");
    EXPECT_EQ(late.anchor, sage.anchor);
    EXPECT_EQ(why(put_receipt(again, "more")), "");
}

TEST(ReceiptJournal, RoomsOutliveARotation) {
    test::memory_files files;
    auto journal = journal_on(files, 32UL << 10);
    controller sage;
    ASSERT_TRUE(sage.reconcile(journal));
    auto room = journal.reserve(test::usual_plan(), test::usual_rules());
    ASSERT_TRUE(room);
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(why(put_receipt(journal, "s" + std::to_string(i))), "");
        ASSERT_TRUE(sage.reconcile(journal));
    }
    EXPECT_TRUE(journal.append("late", digits('a'), test::usual_receipt(), std::move(*room)));
}

// --- trouble ---

TEST(ReceiptJournal, AWriteThatFailsIsTriedAgainInTheSameRoom) {
    failing_disk disk;
    auto journal = journal_on(disk);
    controller sage;
    ASSERT_TRUE(sage.reconcile(journal));
    auto room = journal.reserve(test::usual_plan(), test::usual_rules());
    disk.plan({.at = 2, .does = test::effect::part}); // after the check
    EXPECT_EQ(code_of(journal.append("s", digits('a'), test::usual_receipt(), std::move(*room))),
              "session_storage_failed");
    EXPECT_TRUE(journal.reconciled()); // it was cut off again
    disk.plan({});
    const auto done = journal.append("s", digits('a'), test::usual_receipt(), std::move(*room));
    ASSERT_TRUE(done) << why(done);
    EXPECT_EQ(done->sequence, 1U);
}

TEST(ReceiptJournal, ASyncThatFailsEndsReconciliationUntilThePagesAreReadAgain) {
    for (const auto does : test::all_effects)
        for (const bool cut : {true, false}) {
            failing_disk disk;
            auto journal = journal_on(disk);
            controller sage;
            ASSERT_TRUE(sage.reconcile(journal));
            ASSERT_TRUE(put_receipt(journal, "first"));
            ASSERT_TRUE(sage.reconcile(journal));
            auto room = journal.reserve(test::usual_plan(), test::usual_rules());
            auto other = journal.reserve(test::usual_plan(), test::usual_rules());
            disk.plan({.at = 3,
                       .does = does,
                       .after = cut ? test::then::recovers : test::then::stays_broken});
            EXPECT_FALSE(journal.append("s", digits('a'), test::usual_receipt(), std::move(*room)));
            disk.plan({});
            EXPECT_FALSE(journal.reconciled());
            EXPECT_EQ(code_of(put_receipt(journal, "new")), "audit_reconciliation_required");
            EXPECT_EQ(code_of(journal.acknowledge(sage.anchor)), "audit_reconciliation_required");
            EXPECT_FALSE(journal.append("s", digits('a'), test::usual_receipt(), std::move(*room)));
            // The controller's anchor opens it again, with what is on the disk.
            ASSERT_EQ(why(sage.reconcile(journal)), "");
            const auto done =
                journal.append("s", digits('a'), test::usual_receipt(), std::move(*room));
            ASSERT_TRUE(done) << why(done);
            EXPECT_EQ(done->sequence, 2U);
            EXPECT_TRUE(journal.append("t", digits('a'), test::usual_receipt(), std::move(*other)));
            ASSERT_TRUE(sage.archive(journal));
            EXPECT_EQ(sage.seen, (std::vector<std::string>{"first", "s", "t"}));
        }
}

TEST_F(Chain, TheSameReceiptOfASessionIsRecordedOnce) {
    auto journal = journal_on(disk);
    ASSERT_TRUE(journal.page(sage.anchor, 15));
    const auto again = put_receipt(journal, "s2");
    ASSERT_TRUE(again);
    EXPECT_EQ(again->sequence, 2U);
    // Another one is not lost.
    auto room = journal.reserve(test::usual_plan(), test::usual_rules());
    auto other = test::usual_receipt();
    ++other.finished_at_ms;
    EXPECT_EQ(journal.append("s2", digits('a'), other, std::move(*room)).value().sequence, 5U);
    EXPECT_EQ(journal.find("s2", digits('a'), digits('c')).value()->sequence, 5U);
}

// --- damage ---

auto frames_of(const std::string& file) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (std::size_t at = 72; at < file.size();) {
        std::size_t size = 0;
        for (std::size_t i = 0; i < 4; ++i)
            size = size << 8U | static_cast<unsigned char>(file[at + i]);
        out.push_back(file.substr(at, size + 8));
        at += size + 8;
    }
    return out;
}
auto frame_of(const std::string& payload) -> std::string {
    std::string length;
    for (const unsigned shift : {24U, 16U, 8U, 0U})
        length += static_cast<char>(payload.size() >> shift & 0xffU);
    return length + payload + length;
}
auto opened(const std::string& bytes, const receipt_anchor& by, std::string* after = nullptr)
    -> answer<receipt_page> {
    failing_disk disk;
    disk.put("file", bytes);
    auto journal = journal_on(disk);
    auto out = journal.page(by, 15);
    if (after != nullptr) *after = disk.content();
    return out;
}

TEST_F(Chain, ATornTailIsCutForAnAnchorOfTheChainOnly) {
    const auto file = disk.content();
    const auto frames = frames_of(file);
    const auto third = file.size() - frames[3].size();
    for (auto size = third + 1; size < file.size(); ++size) {
        std::string after;
        const auto torn = file.substr(0, size);
        ASSERT_TRUE(opened(torn, anchors[3], &after)) << size;
        ASSERT_EQ(after, file.substr(0, third)) << size;
        if (size % 97 != 0) continue;
        ASSERT_TRUE(opened(torn, anchors[0], &after)) << size;
        // Somebody has the record that is torn here: nothing is cut off.
        for (const auto& wrong : {anchors[4], receipt_anchor{sage.key.id(), 2, digits('1')}}) {
            EXPECT_EQ(code_of(opened(torn, wrong, &after)), "audit_reconciliation_failed");
            EXPECT_EQ(after, torn);
        }
    }
}

TEST_F(Chain, AFileOfWholeRecordsThatEndsTooEarlyIsRefused) {
    const auto file = disk.content();
    auto size = file.size();
    const auto frames = frames_of(file);
    for (std::size_t i = 4; i-- > 0;) {
        size -= frames[i].size();
        EXPECT_EQ(code_of(opened(file.substr(0, size), sage.anchor)),
                  "audit_reconciliation_failed");
        EXPECT_TRUE(opened(file.substr(0, size), anchors[i]));
        // With the note of what was acknowledged, no anchor helps.
        disk.put("file", file.substr(0, size));
        auto journal = journal_on(disk);
        const auto page = journal.page(anchors[i], 15);
        EXPECT_EQ(page.error().why.step, "journal.truncated");
    }
}

TEST_F(Chain, AnyChangedByteIsRefused) {
    const auto file = disk.content();
    for (std::size_t at = 0; at < file.size(); ++at) {
        auto bad = file;
        bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
        std::string after;
        EXPECT_EQ(code_of(opened(bad, sage.anchor, &after)), "audit_reconciliation_failed") << at;
        EXPECT_EQ(after, bad);
    }
}

TEST_F(Chain, RecordsAreNeitherMovedNorDoubledNorLeftOut) {
    const auto file = disk.content();
    const auto f = frames_of(file);
    const auto head = file.substr(0, 72);
    const auto refused = [&](const std::string& bytes) {
        const auto page = opened(bytes, anchors[0]);
        return page ? "" : page.error().why.detail.substr(0, page.error().why.detail.find(','));
    };
    EXPECT_EQ(refused(file), "");
    for (const auto& [bytes, number] :
         {std::pair{head + f[0] + f[0] + f[1] + f[2] + f[3], "record 2"},
          std::pair{head + f[1] + f[0] + f[2] + f[3], "record 1"},
          std::pair{head + f[0] + f[2] + f[1] + f[3], "record 2"},
          std::pair{head + f[0] + f[1] + f[3], "record 3"},
          std::pair{head + f[1] + f[2] + f[3], "record 1"},
          std::pair{head + f[0] + f[1] + f[2] + f[3] + f[3], "record 5"}}) {
        const auto page = opened(bytes, anchors[0]);
        ASSERT_FALSE(page);
        EXPECT_EQ(page.error().why.step, "journal.order");
        EXPECT_TRUE(page.error().why.detail.starts_with(number)) << page.error().why.detail;
    }
}

// --- old files, and the form of a record ---

TEST(ReceiptJournal, OldFilesHoldEnvelopesWithoutTheirKind) {
    const auto key = test::usual_key();
    receipt_anchor after = beginning(key);
    std::string file = "GLVRJNL1" + key.id();
    for (int i = 0; i < 3; ++i) {
        const auto envelope = test::sealed(test::full_receipt(), key, after);
        after = verify(envelope, key, after).value();
        file += frame_of(encode(envelope).value());
    }
    failing_disk disk;
    disk.put("file", file);
    auto journal = journal_on(disk);
    controller sage;
    ASSERT_EQ(why(sage.reconcile(journal)), "");
    EXPECT_EQ(sage.anchor, after);
    EXPECT_TRUE(put_receipt(journal, "new"));
    EXPECT_EQ(frames_of(disk.content())[3].substr(4, 38),
              R"({"kind":"resource_enforcement_v1","res)");
    ASSERT_TRUE(sage.archive(journal));
    EXPECT_EQ(sage.seen.size(), 4U);
}

TEST(ReceiptJournal, ARecordIsOfOneKindToTheByte) {
    const auto key = test::usual_key();
    const receipt_codec codec{key};
    const auto resource = encode(test::sealed(test::usual_receipt(), key, beginning(key))).value();
    const auto refinement =
        encode(test::sealed(test::usual_refinement(), key, beginning(key))).value();
    const std::string a = R"({"kind":"resource_enforcement_v1","resource":)" + resource + "}";
    const std::string b = R"({"kind":"refinement_evaluation_v1","refinement":)" + refinement + "}";
    EXPECT_EQ(encode(codec.decode(a).value()).value(), a);
    EXPECT_EQ(encode(codec.decode(b).value()).value(), b);
    EXPECT_TRUE(codec.decode(resource).value().bare);
    for (const auto& bad :
         {R"({"kind":"resource_enforcement_v1","refinement":)" + refinement + "}",
          R"({"kind":"refinement_evaluation_v1","resource":)" + resource + "}",
          R"({"kind":"resource_enforcement_v1","resource":)" + resource + R"(,"refinement":)" +
              refinement + "}",
          std::string{R"({"kind":"resource_enforcement_v1"})"},
          R"({"kind":"another","resource":)" + resource + "}",
          R"({"resource":)" + resource + R"(,"kind":"resource_enforcement_v1"})",
          R"({"resource":)" + resource + "}", a + " ", " " + a, refinement, std::string{"{}"},
          std::string{}, R"({"kind":"resource_enforcement_v1","resource":)" + refinement + "}",
          std::string(65'537, ' ')})
        EXPECT_FALSE(codec.decode(bad)) << bad.substr(0, 60);
    const auto other = test::other_key();
    EXPECT_EQ(receipt_codec{other}.decode(a).error().step, "receipt.key");
    auto forged = test::sealed(test::usual_receipt(), key, beginning(key));
    forged.this_hmac = digits('1');
    EXPECT_EQ(codec.decode(encode(forged).value()).error().step, "receipt.hmac");
}

// --- faults by exhaustion ---

constexpr std::size_t work = 8;
constexpr std::uint64_t small_file = 6UL << 10; // it rotates twice

// One life: everything is archived, and the rest of the work done. Whether it came to its end.
auto live(failing_disk& disk, controller& sage) -> bool {
    auto journal = journal_on(disk, small_file);
    if (!sage.reconcile(journal)) return false;
    while (sage.seen.size() < work) {
        if (!put_receipt(journal, "s" + std::to_string(sage.seen.size()))) return false;
        if (!sage.reconcile(journal)) return false;
    }
    return true;
}

TEST(ReceiptJournalCrash, EveryOperationBreaksAndNoReceiptIsLost) {
    std::vector<std::string> wanted;
    for (std::size_t i = 0; i < work; ++i) wanted.push_back("s" + std::to_string(i));
    struct crash {
        bool power = false;
        std::size_t names = 0;
        test::survives contents{};
    };
    std::size_t runs = 0;
    bool rotated = false;
    for (const auto does : test::all_effects)
        for (const auto& how :
             {crash{}, crash{true, 0, test::survives::nothing},
              crash{true, 99, test::survives::half}, crash{true, 99, test::survives::everything},
              crash{true, 0, test::survives::all_but_one_byte}})
            for (std::size_t at = 1;; ++at) {
                failing_disk disk;
                controller sage;
                disk.plan({.at = at, .does = does, .after = test::then::stays_broken});
                const bool done = live(disk, sage);
                if (!disk.fired()) break;
                ++runs;
                ASSERT_FALSE(done && sage.seen != wanted);
                disk.plan({});
                if (how.power) disk.lose_power(how.names, how.contents);
                ASSERT_TRUE(live(disk, sage)) << at << ' ' << static_cast<int>(does);
                ASSERT_EQ(sage.seen, wanted) << at; // each once, in order
                disk.lose_power(0, test::survives::nothing);
                auto again = journal_on(disk, small_file);
                ASSERT_TRUE(again.page(sage.anchor, 15));
                rotated = rotated || disk.look("old") != nullptr;
            }
    EXPECT_TRUE(rotated);
    EXPECT_GT(runs, 1'000U);
    RecordProperty("runs", static_cast<int>(runs));
}

// --- threads ---

TEST(ReceiptJournalThreads, ManyAppendWhileOthersLook) {
    test::memory_files files;
    auto journal = journal_on(files, 256UL << 10);
    controller sage;
    ASSERT_TRUE(sage.reconcile(journal));
    constexpr int each = 100, writers = 3;
    std::atomic<int> running = writers;
    std::atomic<int> done = 0;
    std::vector<std::thread> threads;
    for (int w = 0; w < writers; ++w)
        threads.emplace_back([&, w] {
            for (int i = 0; i < each;) {
                const auto name = "w" + std::to_string(w) + "-" + std::to_string(i);
                if (put_receipt(journal, name)) ++i, ++done; // else the file is full for now
                (void)journal.find(name, digits('a'), digits('c'));
                (void)journal.reconciled();
            }
            --running;
        });
    threads.emplace_back([&] {
        while (running > 0)
            if (sage.archive(journal)) (void)journal.acknowledge(sage.anchor);
    });
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(why(sage.archive(journal)), "");
    EXPECT_EQ(done, each * writers);
    auto sessions = sage.seen;
    std::ranges::sort(sessions);
    EXPECT_TRUE(std::ranges::adjacent_find(sessions) == sessions.end());
    EXPECT_EQ(sessions.size(), static_cast<std::size_t>(each * writers));
}

} // namespace
