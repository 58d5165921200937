#include <cstring>
#include <fcntl.h>
#include <glove/mcp/framing.hpp>
#include <gmock/gmock.h>
#include <set>
#include <support/forked.hpp>
#include <sys/socket.h>

namespace {

using namespace glove;
using mcp::line_queue;
using mcp::line_reader;
using test::pipe_ends;
using testing::ElementsAre;

// What a reader makes of the bytes when they come in pieces that end at `cuts`.
struct seen {
    std::string text;
    bool too_long;
    std::size_t bytes;
    auto operator==(const seen&) const -> bool = default;
};

void drain(line_reader& from, std::vector<seen>& to) {
    while (const auto line = from.next())
        to.push_back({std::string{line->text}, line->too_long, line->bytes});
}

auto lines_of(std::string_view bytes, std::size_t longest, std::vector<std::size_t> cuts)
    -> std::vector<seen> {
    line_reader reader{longest};
    std::vector<seen> out;
    std::size_t from = 0;
    cuts.push_back(bytes.size());
    for (const auto to : cuts) {
        reader.feed(bytes.substr(from, to - from));
        drain(reader, out);
        from = to;
    }
    return out;
}

void do_not_wait(sys::fd_ref of) { ASSERT_EQ(::fcntl(of.get(), F_SETFL, O_NONBLOCK), 0); }

auto texts(const std::vector<seen>& lines) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& each : lines) out.push_back(each.text);
    return out;
}

TEST(LineReader, OnlyLineFeedEndsALine) {
    // U+2028, U+2029, U+0085, VT, FF and a CR that no LF follows
    const std::string odd = "{\"a\":\"\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\v\f\rx\"}";
    EXPECT_THAT(texts(lines_of(odd + "\n", 100, {})), ElementsAre(odd));
    EXPECT_THAT(texts(lines_of(odd + "\n" + odd + "\n", 100, {})), ElementsAre(odd, odd));
}

TEST(LineReader, CarriageReturnBeforeTheEndAndBlankLinesAreTolerated) {
    EXPECT_THAT(texts(lines_of("a\r\n\n\r\n\n b\r\r\nc\n", 100, {})),
                ElementsAre("a", " b\r", "c"));
}

TEST(LineReader, WhatHasNoEndIsNoLine) {
    EXPECT_THAT(texts(lines_of("a\nb", 100, {})), ElementsAre("a"));
    EXPECT_THAT(texts(lines_of("", 100, {})), ElementsAre());
}

TEST(LineReader, AnyCutGivesTheSameLines) {
    const std::string bytes = "first\r\n\n12345678\n12345678\r\n123456789\n123456789\r\n"
                              "1234567890123456789012345\r\n\r\nlast\n\r\rx\n";
    const auto whole = lines_of(bytes, 8, {});
    const std::vector<seen> expected{
        {"first", false, 5},   {"12345678", false, 8}, {"12345678", false, 8},
        {"12345678", true, 9}, {"12345678", true, 9},  {"12345678", true, 25},
        {"last", false, 4},    {"\r\rx", false, 3},
    };
    EXPECT_EQ(whole, expected);
    for (std::size_t a = 0; a <= bytes.size(); ++a) {
        EXPECT_EQ(lines_of(bytes, 8, {a}), expected) << a;
        for (std::size_t b = a; b <= bytes.size(); ++b)
            ASSERT_EQ(lines_of(bytes, 8, {a, b}), expected) << a << " " << b;
    }
    std::vector<std::size_t> every;
    for (std::size_t i = 1; i < bytes.size(); ++i) every.push_back(i);
    EXPECT_EQ(lines_of(bytes, 8, every), expected);
}

TEST(LineReader, TheLongestLineIsTakenAndOneByteMoreIsSkipped) {
    constexpr std::size_t longest = 300'000;
    const std::string fits(longest, 'a');
    const std::string more = "b" + fits;
    const std::vector<seen> expected{
        {fits, false, longest}, {more.substr(0, 256), true, longest + 1}, {"good", false, 4}};
    for (const auto* end : {"\n", "\r\n"}) {
        const auto bytes = fits + end + more + end + "good" + end;
        EXPECT_EQ(lines_of(bytes, longest, {}), expected);
        std::vector<std::size_t> pieces;
        for (std::size_t i = 4096; i < bytes.size(); i += 4096) pieces.push_back(i);
        EXPECT_EQ(lines_of(bytes, longest, pieces), expected);
    }
}

TEST(LineReader, OfALineThatIsTooLongTheEndIsShownToo) {
    // longest, how many bytes of the end are shown
    for (const auto& [longest, shown] :
         {std::pair<std::size_t, std::size_t>{8, 0}, {258, 1}, {300, 22}, {300'000, 2048}})
        for (const std::size_t piece : {1UL, 7UL, 100'000UL})
            for (const auto* end : {"\n", "\r\n"}) {
                if (piece < 100 && longest > 1000) continue;
                std::string text;
                while (text.size() < longest + 1 + piece) text += std::to_string(text.size());
                line_reader reader{longest};
                const auto bytes = text + end + "next" + end;
                bool told = false;
                for (std::size_t at = 0; at < bytes.size(); at += piece) {
                    reader.feed(std::string_view{bytes}.substr(at, piece));
                    while (const auto line = reader.next()) {
                        if (!std::exchange(told, true)) {
                            EXPECT_TRUE(line->too_long);
                            EXPECT_EQ(line->bytes, text.size());
                            EXPECT_EQ(line->tail, text.substr(text.size() - shown));
                        } else {
                            EXPECT_EQ(line->text, "next");
                            EXPECT_EQ(line->tail, "");
                        }
                    }
                    EXPECT_LE(reader.held_bytes(), std::max(longest, piece) + 1);
                }
                EXPECT_TRUE(told);
            }
}

TEST(LineReader, ASharedPartStaysWhatItWas) {
    line_reader reader;
    const std::string large(20'000, 'l');
    reader.feed(large + "\nsecond\nthi");
    const auto first = reader.next();
    ASSERT_TRUE(first);
    const auto part = first->text.substr(1000);
    const auto kept = first->share(part);
    ASSERT_TRUE(kept.owner);
    EXPECT_EQ(kept.text.data(), part.data()); // no copy
    EXPECT_EQ(reader.next()->text, "second");
    EXPECT_FALSE(reader.next());
    reader.feed("rd\n" + std::string(100'000, 'x') + "\n");
    EXPECT_EQ(reader.next()->text, "third");
    EXPECT_EQ(reader.next()->text, std::string(100'000, 'x'));
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(kept.text, large.substr(1000));
}

TEST(LineReader, AShortPartAndOneThatKeepsMuchMoreThanItHasAreNotShared) {
    const auto shares = [](std::size_t part, std::size_t all) {
        line_reader reader;
        reader.feed(std::string(all, 'x') + "\n");
        const auto line = reader.next();
        return line->share(line->text.substr(0, part)).owner != nullptr;
    };
    EXPECT_FALSE(shares(16'383, 20'000));
    EXPECT_TRUE(shares(16'384, 20'000));
    EXPECT_TRUE(shares(50'000, 200'000));
    EXPECT_FALSE(shares(50'000, 200'010));
    const line_reader::line alone{.text = "text", .bytes = 4};
    EXPECT_FALSE(alone.share(alone.text).owner);
}

TEST(LineQueue, CountsTheMemoryThatASharedPartKeeps) {
    line_reader reader;
    reader.feed(std::string(200'000, 'x') + "\n");
    const auto line = reader.next();
    line_queue queue;
    queue.push("head", line->share(line->text.substr(0, 50'000)), "tail");
    EXPECT_EQ(queue.bytes(), 50'009U);
    EXPECT_EQ(queue.kept_bytes(), 50'009U + 150'001U);
    queue.push("head", {nullptr, line->text}, "tail"); // another keeps it
    EXPECT_EQ(queue.kept_bytes() - queue.bytes(), 150'001U);
    sys::unique_fd null{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
    EXPECT_EQ(queue.flush(null), line_queue::state::empty);
    EXPECT_EQ(queue.kept_bytes(), 0U);
}

TEST(LineReader, WhatIsSharedOfATooLongLineIsNotCutOut) {
    line_reader reader{20'000};
    const std::string large(20'000, 'l');
    reader.feed(large + "\n" + std::string(30'000, 'x'));
    const auto kept = reader.next()->share(large);
    EXPECT_FALSE(reader.next());
    reader.feed(std::string(30'000, 'y') + "\n");
    EXPECT_TRUE(reader.next()->too_long);
    EXPECT_EQ(kept.text, large);
}

TEST(SpareBuffer, HoldsOneLargeBufferForTheNextLongMessage) {
    const auto spare = std::make_shared<mcp::spare_buffer>();
    const std::string large(2UL << 20, 'x');
    const auto pass = [&](line_reader& reader) {
        for (std::size_t at = 0; at < large.size(); at += 100'000)
            (void)reader.next(), reader.feed(std::string_view{large}.substr(at, 100'000));
        reader.feed("\n");
        ASSERT_EQ(reader.next()->text, large);
    };
    line_reader first, second;
    first.use(spare);
    second.use(spare);
    pass(first);
    EXPECT_FALSE(spare->is_held());
    EXPECT_FALSE(first.next());
    EXPECT_TRUE(spare->is_held());
    pass(second);
    EXPECT_FALSE(spare->is_held()); // taken
    EXPECT_FALSE(second.next());
    EXPECT_LE(first.reserved_bytes(), 1UL << 20);
    EXPECT_LE(second.reserved_bytes(), 1UL << 20);
    EXPECT_TRUE(spare->is_held());
    spare->give_back();
    EXPECT_FALSE(spare->is_held());
    pass(first);
    EXPECT_FALSE(first.next());
    EXPECT_TRUE(spare->is_held());
}

TEST(SpareBuffer, IsAsMuchMemoryAsItEverWas) {
    const auto spare = std::make_shared<mcp::spare_buffer>();
    const auto shares = [&](std::size_t bytes) {
        line_reader reader;
        reader.use(spare);
        for (std::size_t held = 0; held < bytes; held += 100'000)
            (void)reader.next(), reader.feed(std::string(100'000, 'x'));
        reader.feed("\n");
        const auto line = reader.next();
        return line->share(line->text).owner != nullptr;
    };
    EXPECT_TRUE(shares(400'000));
    EXPECT_TRUE(shares(4'000'000));
    EXPECT_FALSE(shares(400'000)); // would keep the four million
    EXPECT_TRUE(shares(1'100'000));
    spare->give_back();
    EXPECT_TRUE(shares(400'000));
}

TEST(LineReader, ALineWithoutEndCostsNoMemory) {
    line_reader reader{1000};
    std::string part(100'000, 'x');
    for (int i = 0; i < 100; ++i) {
        reader.feed(part);
        EXPECT_FALSE(reader.next());
        ASSERT_LT(reader.held_bytes(), 1000U);
        ASSERT_LT(reader.reserved_bytes(), 1U << 20);
    }
    reader.feed("\nnext\n");
    std::vector<seen> out;
    drain(reader, out);
    EXPECT_THAT(out,
                ElementsAre(seen{std::string(256, 'x'), true, 10'000'000}, seen{"next", false, 4}));
}

TEST(LineReader, WhatALongMessageNeededIsGivenBack) {
    line_reader reader;
    const std::string large(8UL << 20, 'x');
    for (std::size_t at = 0; at < large.size(); at += 65536) {
        reader.feed(std::string_view{large}.substr(at, 65536));
        EXPECT_FALSE(reader.next());
        ASSERT_LE(reader.reserved_bytes(), mcp::longest_message + (1UL << 20));
    }
    reader.feed("\nrest");
    const auto line = reader.next();
    ASSERT_TRUE(line);
    EXPECT_EQ(line->text, large);
    EXPECT_GT(reader.reserved_bytes(), 8UL << 20);
    EXPECT_FALSE(reader.next());
    EXPECT_LE(reader.reserved_bytes(), 512UL << 10);
    reader.feed("!\n");
    EXPECT_EQ(reader.next()->text, "rest!");
}

TEST(LineReader, ReadsAPipeToItsEnd) {
    pipe_ends pipe;
    do_not_wait(pipe.read);
    line_reader reader;
    EXPECT_EQ(reader.fill(pipe.read), line_reader::state::open); // nothing is there yet
    EXPECT_FALSE(reader.next());
    test::say(pipe.write, "one\ntwo\nthr");
    EXPECT_EQ(reader.fill(pipe.read), line_reader::state::open);
    EXPECT_EQ(reader.next()->text, "one");
    EXPECT_EQ(reader.next()->text, "two");
    EXPECT_FALSE(reader.next());
    pipe.write = {};
    EXPECT_EQ(reader.fill(pipe.read), line_reader::state::ended);
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.held_bytes(), 3U);
}

TEST(LineReader, SaysWhenItCannotRead) {
    pipe_ends pipe;
    line_reader reader;
    EXPECT_EQ(reader.fill(pipe.write), line_reader::state::broken);
}

TEST(LineReader, ReadsNoFurtherThanALineMayBeUntilSomethingIsTaken) {
    pipe_ends pipe;
    do_not_wait(pipe.read);
    line_reader reader{16};
    test::say(pipe.write, "0123456789\n0123456789\n");
    EXPECT_EQ(reader.fill(pipe.read), line_reader::state::open);
    test::say(pipe.write, "more\n");
    EXPECT_EQ(reader.fill(pipe.read), line_reader::state::open);
    EXPECT_EQ(reader.held_bytes(), 22U);
    std::vector<seen> out;
    drain(reader, out);
    EXPECT_EQ(reader.fill(pipe.read), line_reader::state::open);
    drain(reader, out);
    EXPECT_THAT(texts(out), ElementsAre("0123456789", "0123456789", "more"));
}

TEST(LineReader, TakesNoDescriptorFromASocket) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    const sys::unique_fd ours{ends[0]};
    const sys::unique_fd theirs{ends[1]};
    pipe_ends sent;
    char text[] = "hello\n";
    ::iovec piece{text, 6};
    alignas(::cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    ::msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    const int passed = sent.write.get();
    std::memcpy(CMSG_DATA(head), &passed, sizeof passed);
    ASSERT_EQ(::sendmsg(theirs.get(), &message, 0), 6);
    line_reader reader;
    ASSERT_EQ(reader.fill(ours), line_reader::state::open);
    EXPECT_EQ(reader.next()->text, "hello");
    // The last writer is gone: the copy on its way was dropped.
    sent.write = {};
    EXPECT_EQ(test::hear(sent.read), "");
}

auto written(const std::vector<std::string>& messages) -> std::string {
    std::string out;
    for (const auto& each : messages) out += each + "\n";
    return out;
}

TEST(LineQueue, WritesWholeLinesInTheirOrder) {
    pipe_ends pipe;
    do_not_wait(pipe.write);
    line_queue queue;
    EXPECT_EQ(queue.flush(pipe.write), line_queue::state::empty);
    std::vector<std::string> messages;
    for (int i = 0; i < 200; ++i) messages.push_back("message " + std::to_string(i));
    messages.emplace_back();
    for (const auto& each : messages) queue.push(each);
    EXPECT_EQ(queue.bytes(), written(messages).size());
    EXPECT_EQ(queue.flush(pipe.write), line_queue::state::empty);
    EXPECT_EQ(queue.bytes(), 0U);
    pipe.write = {};
    EXPECT_EQ(test::hear(pipe.read), written(messages));
}

TEST(LineQueue, GoesOnWhereAFullPipeStoppedIt) {
    pipe_ends pipe;
    do_not_wait(pipe.write);
    do_not_wait(pipe.read);
    line_queue queue;
    std::vector<std::string> messages;
    for (int i = 0; i < 300; ++i)
        messages.push_back(
            std::string(static_cast<std::size_t>(i) * 37 % 5000, 'a' + char(i % 26)));
    for (const auto& each : messages) queue.push(each);
    std::string heard;
    int waits = 0;
    for (;;) {
        const auto state = queue.flush(pipe.write);
        ASSERT_NE(state, line_queue::state::broken);
        char part[777];
        const auto got = ::read(pipe.read.get(), part, sizeof part);
        if (got > 0) heard.append(part, static_cast<std::size_t>(got));
        EXPECT_EQ(heard.size() + queue.bytes() <= written(messages).size(), true);
        if (state == line_queue::state::waiting) ++waits;
        else if (got < 0) break;
    }
    EXPECT_GT(waits, 100);
    EXPECT_EQ(heard, written(messages));
}

TEST(LineQueue, PartsAreOneLineAndKeepTheirOwnerUntilTheyHaveLeft) {
    pipe_ends pipe;
    do_not_wait(pipe.write);
    do_not_wait(pipe.read);
    line_queue queue;
    const auto owner = std::make_shared<const std::string>(300'000, 'b');
    std::string wanted;
    for (int i = 0; i < 3; ++i) {
        queue.push("short");
        queue.push("head" + std::to_string(i), {owner, *owner}, "tail");
        queue.push(std::string(5000, 'l'));
        wanted +=
            "short\nhead" + std::to_string(i) + *owner + "tail\n" + std::string(5000, 'l') + "\n";
    }
    EXPECT_EQ(queue.bytes(), wanted.size());
    EXPECT_EQ(owner.use_count(), 4);
    std::string heard;
    while (heard.size() < wanted.size()) {
        ASSERT_NE(queue.flush(pipe.write), line_queue::state::broken);
        char part[4999];
        const auto got = ::read(pipe.read.get(), part, sizeof part);
        ASSERT_GT(got, 0);
        heard.append(part, static_cast<std::size_t>(got));
    }
    EXPECT_EQ(heard, wanted);
    EXPECT_EQ(queue.bytes(), 0U);
    EXPECT_EQ(owner.use_count(), 1);
}

TEST(LineQueue, WhatNothingHasLeftOfCanBeTakenBack) {
    pipe_ends pipe;
    do_not_wait(pipe.write);
    do_not_wait(pipe.read);
    line_queue queue;
    const std::string large(200'000, 'x');
    queue.push("plain");
    queue.push(large, 10);
    queue.push("between");
    queue.push("eleven", 11);
    queue.push("behind");
    queue.push("fifteen", 15);
    EXPECT_FALSE(queue.take_back(9));
    EXPECT_FALSE(queue.take_back(12));
    EXPECT_FALSE(queue.take_back(16));
    EXPECT_EQ(queue.flush(pipe.write), line_queue::state::waiting);
    EXPECT_FALSE(queue.take_back(10)); // its beginning has left
    const auto before = queue.bytes();
    EXPECT_TRUE(queue.take_back(11));
    EXPECT_FALSE(queue.take_back(11));
    EXPECT_EQ(queue.bytes(), before - 7);
    EXPECT_TRUE(queue.take_back(15));
    queue.push("last", 20);
    std::string heard;
    for (auto state = line_queue::state::waiting; state != line_queue::state::empty;) {
        char part[4999];
        const auto got = ::read(pipe.read.get(), part, sizeof part);
        if (got > 0) heard.append(part, static_cast<std::size_t>(got));
        state = queue.flush(pipe.write);
    }
    EXPECT_EQ(queue.bytes(), 0U);
    pipe.write = {};
    heard += test::hear(pipe.read);
    EXPECT_EQ(heard, "plain\n" + large + "\nbetween\nbehind\nlast\n");
    // Nothing but what was taken back.
    queue.push("a", 21);
    queue.push("b", 22);
    EXPECT_TRUE(queue.take_back(21));
    EXPECT_TRUE(queue.take_back(22));
    EXPECT_EQ(queue.bytes(), 0U);
}

TEST(LineQueue, TakingBackInAnyOrderLeavesTheOthers) {
    for (std::uint64_t step : {1U, 7U, 13U, 99U}) {
        pipe_ends pipe;
        line_queue queue;
        std::string wanted;
        std::set<std::uint64_t> gone;
        for (std::uint64_t key = 1; key <= 100; ++key) {
            queue.push("call " + std::to_string(key), key);
            if (key % 10 == 0) queue.push("note");
        }
        for (std::uint64_t i = 0; i < 80; ++i) gone.insert(1 + i * step % 101 % 100);
        for (const auto key : gone) EXPECT_TRUE(queue.take_back(key)) << key;
        for (const auto key : gone) EXPECT_FALSE(queue.take_back(key)) << key;
        for (std::uint64_t key = 1; key <= 100; ++key) {
            if (!gone.contains(key)) wanted += "call " + std::to_string(key) + "\n";
            if (key % 10 == 0) wanted += "note\n";
        }
        EXPECT_EQ(queue.bytes(), wanted.size());
        EXPECT_EQ(queue.flush(pipe.write), line_queue::state::empty);
        pipe.write = {};
        EXPECT_EQ(test::hear(pipe.read), wanted);
    }
}

TEST(LineQueue, SaysWhenThePeerHasGone) {
    EXPECT_EQ(test::said_by([] {
                  (void)::signal(SIGPIPE, SIG_IGN);
                  pipe_ends pipe;
                  pipe.read = {};
                  line_queue queue;
                  queue.push("x");
                  return queue.flush(pipe.write) == line_queue::state::broken ? "broken" : "?";
              }),
              "broken");
}

} // namespace
