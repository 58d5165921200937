// What comes with news is let in only as one descriptor, and only as what was waited for.
#include "container/linux/control_channel.hpp"
#include "container/linux/launch_parts.hpp"
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <glove/sys/sockets.hpp>
#include <glove/sys/spawn.hpp>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace glove;
using namespace glove::container;

struct two_ends {
    sys::unique_fd ours, theirs;
    two_ends() {
        auto made = sys::message_channel("test").value();
        ours = std::move(made[0]);
        theirs = std::move(made[1]);
    }
    // As an init that was taken over could say it.
    void say(const std::vector<int>& with) const {
        news_message message{.what = news::terminal,
                             .step = 0,
                             .where = call::none,
                             .value = 0,
                             .index = failure::no_index,
                             .armed = 0};
        ::iovec part{&message, sizeof message};
        alignas(::cmsghdr) char space[CMSG_SPACE(8 * sizeof(int))] = {};
        ::msghdr whole{};
        whole.msg_iov = &part;
        whole.msg_iovlen = 1;
        if (!with.empty()) {
            whole.msg_control = space;
            whole.msg_controllen = CMSG_SPACE(with.size() * sizeof(int));
            auto* const header = CMSG_FIRSTHDR(&whole);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(with.size() * sizeof(int));
            std::memcpy(CMSG_DATA(header), with.data(), with.size() * sizeof(int));
        }
        ASSERT_EQ(::sendmsg(theirs.get(), &whole, MSG_NOSIGNAL), ssize_t(sizeof message));
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
};

auto open_descriptors() -> std::ptrdiff_t {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
}

TEST(ControlChannel, TheMasterOfATerminalIsTakenOnceAndOnlyWhenItIsDue) {
    const two_ends channel;
    const terminal_pair terminal;
    bool due = true;
    for (const bool good : {true, false}) {
        channel.say({terminal.master.get()});
        auto got = receive_news(channel.ours);
        ASSERT_EQ(got.size, ssize_t(sizeof(news_message)));
        ASSERT_TRUE(got.came);
        EXPECT_NE(::fcntl(got.came.get(), F_GETFD) & FD_CLOEXEC, 0);
        const auto taken = accept_terminal(std::move(got.came), due);
        EXPECT_EQ(taken.has_value(), good);
        EXPECT_FALSE(due);
        EXPECT_EQ(taken ? "" : taken.error().step, good ? "" : "launch.terminal");
    }
}

TEST(ControlChannel, WhatIsNoMasterIsRefusedAndClosed) {
    const two_ends channel;
    const terminal_pair terminal;
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const sys::unique_fd pipe_end{ends[0]};
    const sys::unique_fd other_end{ends[1]};
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    const sys::unique_fd names_it{::open("/dev/ptmx", O_PATH | O_CLOEXEC)};
    const auto before = open_descriptors();
    for (const int wrong : {terminal.slave.get(), pipe_end.get(), nothing.get(), names_it.get()}) {
        channel.say({wrong});
        auto got = receive_news(channel.ours);
        ASSERT_TRUE(got.came);
        bool due = true;
        EXPECT_FALSE(accept_terminal(std::move(got.came), due)) << wrong;
        EXPECT_TRUE(due);
    }
    channel.say({});
    auto got = receive_news(channel.ours);
    EXPECT_FALSE(got.came);
    bool due = true;
    EXPECT_FALSE(accept_terminal(std::move(got.came), due));
    EXPECT_EQ(open_descriptors(), before);
}

TEST(ControlChannel, OfSeveralDescriptorsNoMoreThanOneGetsIn) {
    const two_ends channel;
    const terminal_pair terminal;
    const auto before = open_descriptors();
    channel.say({terminal.master.get(), terminal.slave.get(), terminal.slave.get()});
    {
        const auto got = receive_news(channel.ours);
        EXPECT_LE(open_descriptors(), before + 1);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(ControlChannel, AnOrderNeverWaitsForAnInitThatDoesNotRead) {
    const two_ends channel;
    for (int sent = 0; sent < 100'000; ++sent)
        if (const auto told = send_order(channel.ours, order::signal, sent); !told) {
            EXPECT_EQ(told.error().os, EAGAIN);
            return;
        }
    ADD_FAILURE() << "the channel took everything";
}

// --- an end that takes its time ---

// Somebody stands for an init that has said everything, and cannot end yet.
struct slow_init {
    two_ends channel;
    plan of;
    sys::child_process process = sys::spawn({.program = "/bin/sleep",
                                             .arguments = {"sleep", "1000"},
                                             .environment = {},
                                             .descriptors = {}})
                                     .value();
    // As glove holds one that its launcher reaps.
    [[nodiscard]] auto launched() -> running {
        sys::unique_fd pidfd{::fcntl(process.descriptor().get(), F_DUPFD_CLOEXEC, 3)};
        return running_elsewhere(of, sys::child_process::reaped_elsewhere(std::move(pidfd)),
                                 std::move(channel.ours));
    }
    void say(news what, std::int32_t value) const {
        news_message message{};
        message.what = what;
        message.value = value;
        ASSERT_EQ(::send(channel.theirs.get(), &message, sizeof message, MSG_NOSIGNAL),
                  ssize_t(sizeof message));
    }
    void end() const { ASSERT_TRUE(process.signal(SIGKILL)); }
};

auto is_readable(sys::fd_ref what, int patience) -> bool {
    ::pollfd source{what.get(), POLLIN, 0};
    return ::poll(&source, 1, patience) == 1;
}

TEST(LookForNews, NeverWaitsForAnInitThatHasSaidThatItEnds) {
    slow_init init;
    auto agent = init.launched();
    EXPECT_FALSE(agent.look_for_news().value());
    EXPECT_FALSE(agent.is_ending());
    init.say(news::started, 0);
    EXPECT_TRUE(is_readable(agent.awaited(), 0));
    EXPECT_FALSE(agent.look_for_news().value());
    EXPECT_TRUE(agent.takes_input());
    EXPECT_FALSE(agent.is_ending());

    init.say(news::ended, 7 << 8);
    init.channel.theirs = {};
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(agent.look_for_news().value());
    EXPECT_TRUE(agent.is_ending());
    EXPECT_FALSE(is_readable(agent.awaited(), 0)) << "whoever waits for it would turn round";
    init.end();
    EXPECT_TRUE(is_readable(agent.awaited(), 10'000));
    const auto end = agent.look_for_news();
    ASSERT_TRUE(end && *end);
    EXPECT_EQ((*end)->wait_status, 7 << 8);
}

TEST(LookForNews, NorForOneThatHungUpWithoutAWord) {
    slow_init init;
    auto agent = init.launched();
    init.channel.theirs = {};
    EXPECT_TRUE(is_readable(agent.awaited(), 10'000)); // its copy goes when the program begins
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(agent.look_for_news().value());
    EXPECT_TRUE(agent.is_ending());
    init.end();
    EXPECT_TRUE(is_readable(agent.init(), 10'000));
    const auto end = agent.look_for_news();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().step, "launch.init");
}

} // namespace
