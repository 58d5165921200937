// Messages with descriptors, over a channel that is made in pairs.
#include <array>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <glove/sys/sockets.hpp>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace {

using namespace glove;

struct channel {
    sys::unique_fd ours, theirs;
    channel() {
        auto ends = sys::message_channel("test.channel");
        EXPECT_TRUE(ends.has_value());
        ours = std::move((*ends)[0]);
        theirs = std::move((*ends)[1]);
    }
};

auto identity_of(int fd) -> sys::file_identity {
    const sys::unique_fd copy{::dup(fd)};
    const auto facts = sys::inspect(copy);
    EXPECT_TRUE(facts.has_value());
    return facts ? facts->identity : sys::file_identity{};
}

TEST(Messages, WhatIsPassedArrivesInItsOrderAndIsClosedOnExec) {
    const channel with;
    const sys::unique_fd null{::open("/dev/null", O_RDONLY)};
    const sys::unique_fd zero{::open("/dev/zero", O_RDONLY)};
    const std::array passed{null.get(), zero.get()};
    ASSERT_EQ(sys::send_descriptors(with.ours, "two", passed), 3);
    std::array<char, 3> room;
    const auto came = sys::receive_message(with.theirs, room, "test.receive");
    ASSERT_TRUE(came.has_value()) << came.error().detail;
    EXPECT_EQ(std::string_view(room.data(), came->size), "two");
    ASSERT_EQ(came->descriptors.size(), 2U);
    EXPECT_EQ(identity_of(came->descriptors[0].get()), identity_of(null.get()));
    EXPECT_EQ(identity_of(came->descriptors[1].get()), identity_of(zero.get()));
    for (const auto& one : came->descriptors)
        EXPECT_EQ(::fcntl(one.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(Messages, AsManyAsThereMayBeArriveAndNoMoreAreSent) {
    const channel with;
    const std::vector<int> most(sys::most_passed, with.ours.get());
    std::array<char, 1> room;
    ASSERT_EQ(sys::send_descriptors(with.ours, "x", most), 1);
    const auto came = sys::receive_message(with.theirs, room, "test.receive");
    ASSERT_TRUE(came.has_value());
    EXPECT_EQ(came->descriptors.size(), sys::most_passed);
    const std::vector<int> more(sys::most_passed + 1, with.ours.get());
    EXPECT_EQ(sys::send_descriptors(with.ours, "x", more), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST(Messages, OneThatDoesNotFitIsRefused) {
    const channel with;
    std::array<char, 3> room;
    ASSERT_EQ(sys::send_descriptors(with.ours, "four", {}), 4);
    const auto came = sys::receive_message(with.theirs, room, "test.receive");
    ASSERT_FALSE(came.has_value());
    EXPECT_EQ(came.error().step, "test.receive");
    EXPECT_EQ(came.error().code, errc::limit_exceeded);
}

// What cannot be opened here any more is not left out without a word.
TEST(Messages, ADescriptorForWhichThereIsNoNumberMakesItRefused) {
    const channel with;
    const int passed = with.ours.get();
    ASSERT_EQ(sys::send_descriptors(with.ours, "x", {&passed, 1}), 1);
    ::rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const ::rlimit none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    std::array<char, 1> room;
    const auto came = sys::receive_message(with.theirs, room, "test.receive");
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_FALSE(came.has_value());
    EXPECT_EQ(came.error().code, errc::limit_exceeded);
}

TEST(Messages, TheEndOfTheOtherSideIsAMessageOfNothing) {
    channel with;
    with.ours = {};
    std::array<char, 1> room;
    const auto came = sys::receive_message(with.theirs, room, "test.receive");
    ASSERT_TRUE(came.has_value());
    EXPECT_EQ(came->size, 0U);
    EXPECT_EQ(sys::send_descriptors(with.theirs, "x", {}), -1);
    EXPECT_EQ(errno, EPIPE);
}

} // namespace
