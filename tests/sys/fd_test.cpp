#include <fcntl.h>
#include <glove/sys/fd.hpp>
#include <gtest/gtest.h>
#include <type_traits>

namespace {

using namespace glove::sys;

auto fresh() -> unique_fd { return unique_fd{::open("/dev/null", O_RDONLY | O_CLOEXEC)}; }
auto is_open(int number) -> bool { return ::fcntl(number, F_GETFD) >= 0; }

// A borrow comes from a named owner only.
static_assert(!std::is_copy_constructible_v<unique_fd>);
static_assert(std::is_constructible_v<fd_ref, const unique_fd&>);
static_assert(!std::is_constructible_v<fd_ref, unique_fd&&>);
static_assert(!std::is_constructible_v<fd_ref, int>);
static_assert(!std::is_convertible_v<int, unique_fd>);

TEST(UniqueFd, AnOwnedDescriptorIsClosedWithItsOwner) {
    int number = -1;
    {
        const auto owner = fresh();
        ASSERT_TRUE(owner);
        number = owner.get();
        EXPECT_TRUE(is_open(number));
    }
    EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, AnEmptyOneClosesNothing) {
    const unique_fd nothing;
    EXPECT_FALSE(nothing);
    EXPECT_EQ(nothing.get(), -1);
}

TEST(UniqueFd, ZeroIsADescriptorToo) {
    unique_fd zero{0};
    EXPECT_TRUE(zero);
    EXPECT_EQ(zero.release(), 0);
}

TEST(UniqueFd, AMoveLeavesTheOldOwnerEmpty) {
    auto first = fresh();
    const int number = first.get();
    const unique_fd second{std::move(first)};
    EXPECT_FALSE(first); // NOLINT(bugprone-use-after-move): what a moved-from owner is
    EXPECT_EQ(second.get(), number);
    EXPECT_TRUE(is_open(number));
}

TEST(UniqueFd, AMovedFromOwnerDoesNotCloseTheNumberAgain) {
    unique_fd reused;
    {
        auto first = fresh();
        const int number = first.get();
        {
            const unique_fd second{std::move(first)};
        }
        EXPECT_FALSE(is_open(number));
        reused = fresh(); // the lowest free number
        EXPECT_EQ(reused.get(), number);
    }
    EXPECT_TRUE(is_open(reused.get()));
}

TEST(UniqueFd, AnAssignmentClosesWhatWasOwnedBefore) {
    auto first = fresh();
    auto second = fresh();
    const int old = first.get();
    const int kept = second.get();
    first = std::move(second);
    EXPECT_FALSE(is_open(old));
    EXPECT_TRUE(is_open(kept));
    EXPECT_EQ(first.get(), kept);
}

TEST(UniqueFd, AMoveToItselfKeepsTheDescriptor) {
    auto owner = fresh();
    const int number = owner.get();
    auto& same = owner;
    owner = std::move(same);
    EXPECT_EQ(owner.get(), number);
    EXPECT_TRUE(is_open(number));
}

TEST(UniqueFd, AReleasedDescriptorStaysOpen) {
    int number = -1;
    {
        auto owner = fresh();
        number = owner.release();
        EXPECT_FALSE(owner);
    }
    EXPECT_TRUE(is_open(number));
    const unique_fd adopted{number};
}

TEST(FdRef, ABorrowNamesTheSameDescriptorAndClosesNothing) {
    const auto owner = fresh();
    {
        const fd_ref borrowed{owner};
        EXPECT_EQ(borrowed.get(), owner.get());
    }
    EXPECT_TRUE(is_open(owner.get()));
}

TEST(FdRef, TheStandardStreamsHaveTheirNumbers) {
    EXPECT_EQ(fd_ref::standard_input().get(), 0);
    EXPECT_EQ(fd_ref::standard_output().get(), 1);
    EXPECT_EQ(fd_ref::standard_error().get(), 2);
}

} // namespace
