// The relay writes to this process's own streams, so every case spends a child whose streams are
// pipes that the case reads.
#include "run/output_relay.hpp"
#include <functional>
#include <glove/sys/files.hpp>
#include <gtest/gtest.h>
#include <support/forked.hpp>

namespace {

using namespace glove;
using run::output_relay;
using test::pipe_ends;

enum class streams { apart, merged };

// What a case sees of a relay: the agent's two ends, and what comes out of Glove's own streams.
struct bench {
    output_relay relay;
    pipe_ends out, err;
    std::string got_out = {}, got_err = {};
    bool reads_out = true;

    static auto make(std::uint64_t limit, streams how) -> bench {
        pipe_ends first;
        pipe_ends second;
        const int error = how == streams::merged ? first.write.get() : second.write.get();
        test::prepared(::dup2(first.write.get(), 1) == 1 && ::dup2(error, 2) == 2, "dup2");
        first.write = {};
        second.write = {};
        for (const auto* end : {&first.read, &second.read})
            test::prepared(::fcntl(end->get(), F_SETFL, O_NONBLOCK) == 0, "fcntl");
        (void)::signal(SIGPIPE, SIG_IGN);
        return {.relay = output_relay::create(limit).value(),
                .out = std::move(first),
                .err = std::move(second)};
    }
    void write(int stream, std::string_view text) const {
        const auto ends = relay.agent_streams();
        test::prepared(::write(ends[static_cast<std::size_t>(stream - 1)], text.data(),
                               text.size()) == static_cast<ssize_t>(text.size()),
                       "write");
    }
    static void take(sys::fd_ref from, std::string& into) {
        char part[4096];
        for (ssize_t n = 0; (n = ::read(from.get(), part, sizeof part)) > 0;)
            into.append(part, static_cast<std::size_t>(n));
    }
    // Until nothing more happens. False when the relay has nothing to wait for any more.
    auto settle() -> bool {
        for (;;) {
            auto waiting = relay.interest();
            if (waiting.empty()) return false;
            const int ready = ::poll(waiting.data(), waiting.size(), 0);
            if (ready == 0) return true;
            relay.advance(waiting);
            if (out.read && reads_out) take(out.read, got_out);
            if (err.read) take(err.read, got_err);
        }
    }
};

auto with(std::uint64_t limit, streams how, const std::function<std::string(bench&)>& body)
    -> std::string {
    return test::said_by([&] {
        auto made = bench::make(limit, how);
        return body(made);
    });
}

auto facts(const bench& b) -> std::string {
    return b.got_out + "|" + b.got_err + "|" + std::to_string(b.relay.passed()) +
           (b.relay.limit_reached() ? "|over" : "|within");
}

TEST(OutputRelay, EachStreamPassesUnchanged) {
    using namespace std::string_view_literals;
    EXPECT_EQ(with(100, streams::apart,
                   [](bench& b) {
                       b.write(1, "to \0out\n"sv);
                       b.write(2, "to \xff err");
                       b.settle();
                       return facts(b);
                   }),
              "to \0out\n|to \xff err|16|within"sv);
}

TEST(OutputRelay, ExactlyTheLimitPassesAndIsNotOver) {
    EXPECT_EQ(with(10, streams::apart,
                   [](bench& b) {
                       b.write(1, "0123456789");
                       b.settle();
                       return facts(b);
                   }),
              "0123456789||10|within");
}

TEST(OutputRelay, OneByteMoreIsOverAndDoesNotPass) {
    EXPECT_EQ(with(10, streams::apart,
                   [](bench& b) {
                       b.write(1, "0123456789X");
                       b.settle();
                       return facts(b);
                   }),
              "0123456789||10|over");
    EXPECT_EQ(with(10, streams::apart,
                   [](bench& b) {
                       b.write(1, "0123456789");
                       b.settle();
                       b.write(1, "X");
                       b.settle();
                       return facts(b);
                   }),
              "0123456789||10|over");
}

TEST(OutputRelay, BothStreamsShareTheLimit) {
    EXPECT_EQ(with(6, streams::apart,
                   [](bench& b) {
                       b.write(1, "abc");
                       b.settle();
                       b.write(2, "defg");
                       b.settle();
                       return facts(b);
                   }),
              "abc|def|6|over");
}

TEST(OutputRelay, ALimitOfNothingLetsNothingPass) {
    EXPECT_EQ(with(0, streams::apart,
                   [](bench& b) {
                       b.settle();
                       auto before = facts(b);
                       b.write(2, "x");
                       b.settle();
                       return before + " " + facts(b);
                   }),
              "||0|within ||0|over");
}

TEST(OutputRelay, WhatComesAfterTheLimitIsStillTaken) {
    EXPECT_EQ(with(4, streams::apart,
                   [](bench& b) {
                       for (int i = 0; i < 100; ++i) { // more than a pipe holds
                           b.write(1, std::string(4096, 'x'));
                           b.settle();
                       }
                       return facts(b);
                   }),
              "xxxx||4|over");
}

TEST(OutputRelay, MergedStreamsKeepTheirOrder) {
    EXPECT_EQ(with(1000, streams::merged,
                   [](bench& b) {
                       const auto ends = b.relay.agent_streams();
                       for (int i = 0; i < 5; ++i) {
                           b.write(1, "o" + std::to_string(i));
                           b.write(2, "e" + std::to_string(i));
                       }
                       b.settle();
                       return facts(b) + (ends[0] == ends[1] ? "|one" : "|two");
                   }),
              "o0e0o1e1o2e2o3e3o4e4||20|within|one");
}

TEST(OutputRelay, StreamsThatAreApartStayApart) {
    EXPECT_EQ(with(10, streams::apart,
                   [](bench& b) {
                       const auto ends = b.relay.agent_streams();
                       return std::to_string(static_cast<int>(ends[0] == ends[1])) +
                              std::to_string(b.relay.interest().size());
                   }),
              "02");
}

TEST(OutputRelay, WhenTheAgentHasClosedBothNothingIsLeftToWaitFor) {
    EXPECT_EQ(with(10, streams::apart,
                   [](bench& b) {
                       b.write(1, "last");
                       const std::string open = b.settle() ? "open" : "ended";
                       b.relay.agent_has_streams();
                       return open + (b.settle() ? " open " : " ended ") + facts(b);
                   }),
              "open ended last||4|within");
}

TEST(OutputRelay, AfterTheAgentAnEndThatSomebodyKeepsOpenIsNotWaitedFor) {
    EXPECT_EQ(with(10, streams::apart,
                   [](bench& b) {
                       b.write(1, "last");
                       b.relay.agent_has_ended(); // the agent's ends are still open here
                       const std::string open = b.settle() ? "open " : "ended ";
                       return open + facts(b);
                   }),
              "ended last||4|within");
}

TEST(OutputRelay, AReaderThatIsGoneEndsItsStreamOnly) {
    EXPECT_EQ(with(100, streams::apart,
                   [](bench& b) {
                       b.out.read = {};
                       b.write(1, "lost");
                       b.write(2, "kept");
                       b.settle();
                       // The agent's own end is what tells it.
                       const auto put = ::write(b.relay.agent_streams()[0], "x", 1);
                       const std::string told = put < 0 && errno == EPIPE ? "EPIPE" : "nothing";
                       b.write(2, " on");
                       const auto open = b.settle();
                       return b.got_err + "|" + told + (open ? "|open" : "|ended");
                   }),
              "kept on|EPIPE|open");
}

TEST(OutputRelay, AReaderThatDoesNotReadStopsNothingElse) {
    EXPECT_EQ(with(1 << 20, streams::apart,
                   [](bench& b) {
                       test::prepared(::fcntl(b.out.read.get(), F_SETPIPE_SZ, 4096) == 4096,
                                      "size");
                       b.reads_out = false;
                       b.write(1, std::string(20'000, 'x'));
                       b.settle(); // must come back although stdout is full
                       b.write(2, "still here");
                       b.settle();
                       return b.got_err;
                   }),
              "still here");
}

TEST(OutputRelay, LargeOutputComesThroughWhole) {
    EXPECT_EQ(with(1 << 20, streams::apart,
                   [](bench& b) {
                       std::string sent;
                       for (int i = 0; i < 64; ++i) {
                           const std::string part(8000, static_cast<char>('a' + i % 26));
                           b.write(1, part);
                           sent += part;
                           b.settle();
                       }
                       return std::string{sent == b.got_out ? "same" : "different"};
                   }),
              "same");
}

} // namespace
