#include <cerrno>
#include <glove/sys/child_process.hpp>
#include <gtest/gtest.h>
#include <optional>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace glove;

struct started {
    ::pid_t number;
    std::optional<sys::child_process> process;
};

template<class Body> auto start(Body body) -> started {
    const auto number = ::fork();
    if (number == 0) {
        body();
        ::_exit(0);
    }
    const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, number, 0));
    EXPECT_GE(pidfd, 0);
    return {number, sys::child_process{sys::unique_fd{pidfd}}};
}

void sleep_for_good() {
    for (;;) ::pause();
}

auto readable(sys::fd_ref fd, int milliseconds) -> bool {
    ::pollfd source{fd.get(), POLLIN, 0};
    return ::poll(&source, 1, milliseconds) == 1;
}

// The number is not in the process table any more, not even as a zombie.
auto is_gone(::pid_t number) -> bool {
    return ::waitpid(number, nullptr, WNOHANG) < 0 && errno == ECHILD && ::kill(number, 0) != 0;
}

TEST(ChildProcess, DroppingItKillsTheChildAndReapsIt) {
    auto child = start(sleep_for_good);
    EXPECT_EQ(::kill(child.number, 0), 0);
    child.process.reset();
    EXPECT_TRUE(is_gone(child.number));
}

TEST(ChildProcess, WhatWasMovedFromKillsNothing) {
    auto child = start(sleep_for_good);
    std::optional<sys::child_process> owner{*std::move(child.process)};
    child.process.reset();
    EXPECT_FALSE(readable(owner->descriptor(), 20));
    owner.reset();
    EXPECT_TRUE(is_gone(child.number));
}

TEST(ChildProcess, WaitTellsTheExitStatusAndReaps) {
    auto child = start([] { ::_exit(7); });
    const auto ended = child.process->wait();
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->si_code, CLD_EXITED);
    EXPECT_EQ(ended->si_status, 7);
    EXPECT_TRUE(is_gone(child.number));
}

TEST(ChildProcess, ASignalReachesTheChild) {
    auto child = start(sleep_for_good);
    ASSERT_TRUE(child.process->signal(SIGTERM).has_value());
    const auto ended = child.process->wait();
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->si_code, CLD_KILLED);
    EXPECT_EQ(ended->si_status, SIGTERM);
}

TEST(ChildProcess, ASignalThatDoesNotExistIsRefused) {
    auto child = start(sleep_for_good);
    const auto sent = child.process->signal(1000);
    ASSERT_FALSE(sent.has_value());
    EXPECT_EQ(sent.error().step, "child.signal");
    EXPECT_EQ(sent.error().os, EINVAL);
}

TEST(ChildProcess, AfterTheWaitASignalGoesToNobody) {
    auto child = start([] {});
    ASSERT_TRUE(child.process->wait().has_value());
    EXPECT_FALSE(child.process->signal(SIGKILL).has_value());
    EXPECT_FALSE(child.process->wait().has_value());
}

TEST(ChildProcess, TheDescriptorIsReadableOnceTheChildHasEnded) {
    auto child = start(sleep_for_good);
    EXPECT_FALSE(readable(child.process->descriptor(), 20));
    ASSERT_TRUE(child.process->signal(SIGKILL).has_value());
    EXPECT_TRUE(readable(child.process->descriptor(), 10'000));
}

void do_nothing(int) {}

TEST(ChildProcess, AnInterruptedWaitGoesOn) {
    struct ::sigaction before{};
    struct ::sigaction quiet{};
    quiet.sa_handler = do_nothing; // without SA_RESTART, so that waitid is interrupted
    ASSERT_EQ(::sigaction(SIGALRM, &quiet, &before), 0);
    auto child = start([] {
        ::usleep(30'000);
        ::_exit(3);
    });
    ::ualarm(5'000, 5'000);
    const auto ended = child.process->wait();
    ::ualarm(0, 0);
    ASSERT_EQ(::sigaction(SIGALRM, &before, nullptr), 0);
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->si_status, 3);
}

// A process of somebody else's, as far as the object knows: here the test reaps it.
TEST(ChildProcess, OneThatIsReapedElsewhereIsKilledAndWaitedForAndNotReaped) {
    const auto number = ::fork();
    if (number == 0) sleep_for_good();
    {
        const auto other = sys::child_process::reaped_elsewhere(
            sys::unique_fd{static_cast<int>(::syscall(SYS_pidfd_open, number, 0))});
        EXPECT_FALSE(other.has_ended().value_or(true));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(number, &status, WNOHANG),
              number); // it has ended, and is there to be reaped
    EXPECT_EQ(status, SIGKILL);
}

TEST(ChildProcess, OfOneThatIsReapedElsewhereTheEndIsSeenBeforeAndAfterItIsReaped) {
    for (const bool reaped : {false, true}) {
        const auto number = ::fork();
        if (number == 0) ::_exit(7);
        auto other = sys::child_process::reaped_elsewhere(
            sys::unique_fd{static_cast<int>(::syscall(SYS_pidfd_open, number, 0))});
        if (reaped) {
            EXPECT_EQ(::waitpid(number, nullptr, 0), number);
        }
        EXPECT_TRUE(readable(other.descriptor(), 10'000));
        EXPECT_TRUE(other.has_ended().value_or(false));
        EXPECT_TRUE(other.signal(SIGKILL).has_value());
        const auto ended = other.wait();
        ASSERT_TRUE(ended.has_value());
        EXPECT_EQ(ended->si_pid, 0); // nothing of it is told
        if (!reaped) {
            EXPECT_EQ(::waitpid(number, nullptr, WNOHANG), number);
        }
    }
}

} // namespace
