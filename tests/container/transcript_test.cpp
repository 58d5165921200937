// The transcript against a model that forgets nothing.
#include <atomic>
#include <glove/container/transcript.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <thread>

namespace {

using namespace glove;
using container::transcript;

class remembering final : public container::transcript_sink {
public:
    auto take(std::string_view bytes) -> result<> override {
        if (seen.size() + bytes.size() > most) return fail(errc::io, "sink.full", "no more");
        seen += bytes;
        return {};
    }
    std::string seen;
    std::size_t most = ~std::size_t{0} >> 1U;
};

// A byte that tells its own place, so that a page of the wrong place is seen.
auto stream(std::uint64_t from, std::uint64_t size) -> std::string {
    std::string out;
    for (auto i = from; i < from + size; ++i)
        out += static_cast<char>((i * 131 + (i >> 8U) * 17) & 0xffU);
    return out;
}

auto made(std::size_t capacity, std::vector<container::transcript_sink*> sinks = {})
    -> std::unique_ptr<transcript> {
    return transcript::create(capacity, std::move(sinks)).value();
}

TEST(Transcript, CapacityIsBounded) {
    EXPECT_EQ(transcript::create(0).error().step, "transcript.capacity");
    EXPECT_TRUE(transcript::create(1));
    EXPECT_TRUE(transcript::create(transcript::most_capacity));
    const auto over = transcript::create(transcript::most_capacity + 1);
    ASSERT_FALSE(over);
    EXPECT_EQ(over.error().step, "transcript.capacity");
    EXPECT_FALSE(transcript::create(16, {nullptr}));
}

TEST(Transcript, PageIsBounded) {
    const auto it = made(8);
    EXPECT_EQ(it->page(0, 0).error().step, "transcript.page");
    EXPECT_TRUE(it->page(0, 1));
    EXPECT_TRUE(it->page(0, transcript::most_page_bytes));
    EXPECT_EQ(it->page(0, transcript::most_page_bytes + 1).error().step, "transcript.page");
}

TEST(Transcript, TheEndIsAPlaceAndWhatIsBeyondIsNot) {
    const auto it = made(8);
    ASSERT_TRUE(it->append("abc"));
    const auto end = it->page(3, 10);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->bytes, "");
    EXPECT_EQ(end->next_cursor, 3U);
    EXPECT_FALSE(end->eof);
    EXPECT_TRUE(it->check(3));
    EXPECT_EQ(it->page(4, 10).error().step, "transcript.cursor");
    EXPECT_EQ(it->check(4).error().step, "transcript.cursor");
}

TEST(Transcript, ForgetsTheOldestByteOnlyWhenThereIsNoRoom) {
    const auto it = made(8);
    ASSERT_TRUE(it->append("01234567"));
    auto page = it->page(0, 100).value();
    EXPECT_EQ(page.oldest_cursor, 0U);
    EXPECT_FALSE(page.truncated);
    EXPECT_EQ(page.bytes, "01234567");
    ASSERT_TRUE(it->append("8"));
    page = it->page(0, 100).value();
    EXPECT_EQ(page.oldest_cursor, 1U);
    EXPECT_TRUE(page.truncated);
    EXPECT_EQ(page.bytes, "12345678");
    EXPECT_EQ(page.next_cursor, 9U);
    EXPECT_FALSE(it->page(1, 100)->truncated);
}

TEST(Transcript, EofIsOfThePageThatReachesTheEnd) {
    const auto it = made(8);
    ASSERT_TRUE(it->append("abcd"));
    EXPECT_FALSE(it->page(0, 4)->eof);
    it->finish(true);
    EXPECT_FALSE(it->page(0, 3)->eof);
    EXPECT_TRUE(it->page(0, 4)->eof);
    EXPECT_TRUE(it->page(4, 1)->eof);
    EXPECT_EQ(it->append("e").error().step, "transcript.ended");
    EXPECT_EQ(it->count(), 4U);
}

TEST(Transcript, SinksGetWhatTheRingForgetsInOneGo) {
    remembering a;
    remembering b;
    const auto it = made(4, {&a, &b});
    ASSERT_TRUE(it->append("0123456789"));
    EXPECT_EQ(a.seen, "0123456789");
    EXPECT_EQ(b.seen, a.seen);
    EXPECT_EQ(it->page(0, 100)->bytes, "6789");
    it->finish(true);
    EXPECT_TRUE(it->complete());
}

TEST(Transcript, ASinkThatFailsCostsTheEvidenceAndNothingElse) {
    remembering bad;
    remembering good;
    bad.most = 3;
    const auto it = made(16, {&bad, &good});
    ASSERT_TRUE(it->append("abc"));
    EXPECT_EQ(it->append("de").error().step, "sink.full");
    // It is given what follows: it may count, and knows that it has a gap.
    bad.most = 100;
    EXPECT_TRUE(it->append("f"));
    EXPECT_EQ(bad.seen, "abcf");
    EXPECT_EQ(good.seen, "abcdef");
    EXPECT_EQ(it->page(0, 100)->bytes, "abcdef");
    it->finish(true);
    EXPECT_FALSE(it->complete());
}

TEST(Transcript, WhatWasNotDrainedIsNotComplete) {
    const auto cut = made(4);
    cut->finish(false);
    EXPECT_FALSE(cut->complete());
    cut->finish(true); // the first word stands
    EXPECT_FALSE(cut->complete());
    const auto whole = made(4);
    EXPECT_FALSE(whole->complete());
    whole->finish(true);
    EXPECT_TRUE(whole->complete());
}

RC_GTEST_PROP(Transcript, EveryPageIsThatOfAModel, ()) {
    const auto capacity = *rc::gen::inRange<std::size_t>(1, 40);
    remembering all;
    const auto it = made(capacity, {&all});
    const auto sizes =
        *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 100));
    for (const auto size : sizes) {
        RC_ASSERT(it->append(stream(all.seen.size(), size)));
        const auto count = all.seen.size();
        RC_ASSERT(it->count() == count);
        const auto cursor = *rc::gen::inRange<std::size_t>(0, count + 2);
        const auto most = *rc::gen::inRange<std::size_t>(1, 120);
        const auto page = it->page(cursor, most);
        if (cursor > count) {
            RC_ASSERT(!page);
            continue;
        }
        const auto oldest = count - std::min(count, capacity);
        const auto from = std::max(cursor, oldest);
        RC_ASSERT(page->oldest_cursor == oldest);
        RC_ASSERT(page->truncated == (cursor < oldest));
        RC_ASSERT(page->bytes == all.seen.substr(from, most));
        RC_ASSERT(page->next_cursor == from + page->bytes.size());
        RC_ASSERT(!page->eof);
    }
}

// Readers that follow see each byte once and in order, or are told that some are gone.
TEST(Transcript, ReadersFollowAWriterThatNeverWaits) {
    constexpr std::uint64_t total = 3UL << 20;
    const auto it = made(64UL << 10);
    std::atomic<int> wrong = 0;
    const auto follow = [&] {
        std::uint64_t cursor = 0;
        for (bool eof = false; !eof;) {
            const auto page = it->page(cursor, 4096);
            if (!page) return void(++wrong);
            const auto from = page->next_cursor - page->bytes.size();
            if (from != cursor && !(page->truncated && from == page->oldest_cursor)) ++wrong;
            if (page->bytes != stream(from, page->bytes.size())) ++wrong;
            cursor = page->next_cursor;
            eof = page->eof;
        }
        if (cursor != total) ++wrong;
    };
    std::vector<std::jthread> readers;
    for (int i = 0; i < 3; ++i) readers.emplace_back(follow);
    for (std::uint64_t at = 0; at < total; at += 4096) ASSERT_TRUE(it->append(stream(at, 4096)));
    it->finish(true);
    readers.clear();
    EXPECT_EQ(wrong, 0);
}

} // namespace
