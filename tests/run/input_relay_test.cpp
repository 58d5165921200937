// What goes in comes out, and how the end of it is told.
#include "run/input_relay.hpp"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <string>
#include <termios.h>
#include <unistd.h>

namespace {

using namespace glove;
using run::input_relay;

struct pipe_pair {
    sys::unique_fd read, write;
    pipe_pair() {
        int ends[2];
        EXPECT_EQ(::pipe(ends), 0);
        read = sys::unique_fd{ends[0]};
        write = sys::unique_fd{ends[1]};
    }
    void put(const std::string& text) const {
        EXPECT_EQ(::write(write.get(), text.data(), text.size()), ssize_t(text.size()));
    }
};

struct terminal_pair {
    sys::unique_fd master, slave;
    terminal_pair() {
        int ends[2];
        EXPECT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
        master = sys::unique_fd{ends[0]};
        slave = sys::unique_fd{ends[1]};
    }
    [[nodiscard]] auto copy() const { return sys::unique_fd{::dup(master.get())}; }
    // One read: a line, or "" at the end of the file.
    [[nodiscard]] auto line() const -> std::string {
        char some[256];
        const auto got = ::read(slave.get(), some, sizeof some);
        return got < 0 ? "error" : std::string(some, std::size_t(got));
    }
};

// Until there is nothing to do at once.
void settle(input_relay& relay) {
    for (;;) {
        std::vector<::pollfd> sources;
        relay.interest(sources);
        if (sources.empty() || ::poll(sources.data(), sources.size(), 100) <= 0) return;
        relay.advance(sources);
        if (relay.hung_up()) return;
    }
}

TEST(InputRelay, TheEndOfAPipeIsTheKeyForItAtATerminal) {
    pipe_pair in;
    const terminal_pair out;
    input_relay relay{in.read, input_relay::source::bytes};
    relay.connect(out.copy(), true);
    relay.enable(true);
    in.put("one\ntwo\n");
    in.write = {};
    settle(relay);
    EXPECT_EQ(out.line(), "one\n");
    EXPECT_EQ(out.line(), "two\n");
    EXPECT_EQ(out.line(), "");
}

TEST(InputRelay, TheEndIsTypedAgainForTheNextProgramThatReads) {
    pipe_pair in;
    const terminal_pair out;
    ASSERT_EQ(::fcntl(out.slave.get(), F_SETFL, O_NONBLOCK), 0);
    input_relay relay{in.read, input_relay::source::bytes};
    relay.connect(out.copy(), true);
    relay.enable(true);
    relay.repeat_end();
    EXPECT_FALSE(relay.repeats_end());
    EXPECT_EQ(out.line(), "error"); // it has not ended yet
    in.write = {};
    settle(relay);
    for (int reader = 0; reader < 3; ++reader) {
        EXPECT_TRUE(relay.repeats_end());
        relay.repeat_end();
        relay.repeat_end();
        EXPECT_EQ(out.line(), "") << reader;
        EXPECT_EQ(out.line(), "error") << reader; // one at a time
    }
}

TEST(InputRelay, TheEndIsNotTypedWhileTheTerminalReadsNoLines) {
    pipe_pair in;
    const terminal_pair out;
    ASSERT_EQ(::fcntl(out.slave.get(), F_SETFL, O_NONBLOCK), 0);
    ::termios lines{};
    ASSERT_EQ(::tcgetattr(out.slave.get(), &lines), 0);
    auto raw = lines;
    ::cfmakeraw(&raw);
    ASSERT_EQ(::tcsetattr(out.slave.get(), TCSANOW, &raw), 0);
    input_relay relay{in.read, input_relay::source::bytes};
    relay.connect(out.copy(), true);
    relay.enable(true);
    in.write = {};
    settle(relay);
    relay.repeat_end();
    EXPECT_EQ(out.line(), "error");
    ASSERT_EQ(::tcsetattr(out.slave.get(), TCSANOW, &lines), 0);
    relay.repeat_end();
    EXPECT_EQ(out.line(), "");
}

TEST(InputRelay, NothingPassesWhileItIsHeld) {
    pipe_pair in;
    pipe_pair out;
    ASSERT_EQ(::fcntl(out.read.get(), F_SETFL, O_NONBLOCK), 0);
    input_relay relay{in.read, input_relay::source::bytes};
    relay.connect(std::move(out.write), false);
    relay.enable(true);
    relay.hold(true);
    in.put("one");
    settle(relay);
    char some[8];
    EXPECT_EQ(::read(out.read.get(), some, sizeof some), -1);
    relay.hold(false);
    settle(relay);
    EXPECT_EQ(::read(out.read.get(), some, sizeof some), 3);
}

TEST(InputRelay, AnUnfinishedLineArrivesBeforeTheEnd) {
    pipe_pair in;
    const terminal_pair out;
    input_relay relay{in.read, input_relay::source::bytes};
    relay.connect(out.copy(), true);
    relay.enable(true);
    in.put("part");
    in.write = {};
    settle(relay);
    EXPECT_EQ(out.line(), "part");
    EXPECT_EQ(out.line(), "");
}

TEST(InputRelay, TheEndOfATerminalIsTheEndOfAPipe) {
    const terminal_pair in;
    pipe_pair out;
    input_relay relay{in.slave, input_relay::source::terminal};
    relay.connect(std::move(out.write), false);
    relay.enable(true);
    EXPECT_EQ(::write(in.master.get(), "word\n\x04", 6), 6);
    settle(relay);
    char some[16];
    EXPECT_EQ(::read(out.read.get(), some, sizeof some), 5);
    EXPECT_EQ(::read(out.read.get(), some, sizeof some), 0);
    EXPECT_FALSE(relay.hung_up());
}

TEST(InputRelay, ATerminalThatHangsUpIsNoticedWithoutReading) {
    terminal_pair in;
    const terminal_pair out;
    input_relay relay{in.slave, input_relay::source::terminal};
    relay.connect(out.copy(), true);
    settle(relay);
    EXPECT_FALSE(relay.hung_up());
    in.master = {};
    settle(relay);
    EXPECT_TRUE(relay.hung_up());
}

TEST(InputRelay, ATerminalInTheBackgroundIsNotRead) {
    const terminal_pair in;
    const terminal_pair out;
    input_relay relay{in.slave, input_relay::source::terminal};
    relay.connect(out.copy(), true);
    EXPECT_EQ(::write(in.master.get(), "kept\n", 5), 5);
    settle(relay);
    EXPECT_EQ(in.line(), "kept\n");
}

TEST(InputRelay, WhatWasTypedAheadArrivesWithItsEnd) {
    const terminal_pair in;
    const terminal_pair out;
    const sys::unique_fd own{::open(::ttyname(in.slave.get()), O_RDWR | O_NOCTTY | O_NONBLOCK)};
    input_relay relay{own, input_relay::source::terminal};
    relay.connect(out.copy(), true);
    EXPECT_EQ(::write(in.master.get(), "early\n\x04", 7), 7);
    ::usleep(50'000);
    relay.take_typed_ahead();
    EXPECT_EQ(out.line(), "early\n");
    EXPECT_EQ(out.line(), "");
    EXPECT_FALSE(relay.hung_up());
}

} // namespace
