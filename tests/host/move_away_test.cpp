#include <fcntl.h>
#include <filesystem>
#include <glove/sys/files.hpp>
#include <gtest/gtest.h>
#include <host/move_away.hpp>
#include <support/folder.hpp>
#include <sys/stat.h>

namespace {

using namespace glove;
using test::folder;

struct ends {
    sys::unique_fd from, to;
};
[[nodiscard]] auto directories(const folder& place) -> ends {
    place.directory("from");
    place.directory("to");
    return {*sys::make_directory(place / "from"), *sys::make_directory(place / "to")};
}

TEST(MoveAway, ACopyHoldsFilesLinksAndDirectoriesAndTheRestIsGone) {
    const folder place;
    const auto [from, to] = directories(place);
    place.file("from/x/a", "text");
    place.link("from/x/l", "/etc/passwd");
    place.fifo("from/x/deep/fifo");
    ASSERT_EQ(::chmod((place / "from/x/a").c_str(), 0755), 0);
    const auto done = host::copy_and_remove(from, "x", to);
    ASSERT_TRUE(done) << done.error().step << done.error().detail;
    EXPECT_FALSE(std::filesystem::exists(place / "from/x"));
    EXPECT_EQ(*sys::read_file(place / "to/x/a", 10), "text");
    EXPECT_EQ(*sys::read_link(place / "to/x/l"), "/etc/passwd");
    EXPECT_TRUE(std::filesystem::is_empty(place / "to/x/deep"));
}

TEST(MoveAway, PastTheBudgetEverythingStaysWhereItWas) {
    const folder place;
    const auto [from, to] = directories(place);
    place.file("from/x/a", "0123456789");
    place.file("from/x/b", "0123456789");
    for (const host::copy_budget small :
         {host::copy_budget{.bytes = 19, .entries = 10}, {.bytes = 100, .entries = 2}}) {
        EXPECT_EQ(host::copy_and_remove(from, "x", to, small).error().code, errc::limit_exceeded);
        EXPECT_TRUE(std::filesystem::exists(place / "from/x/a"));
        EXPECT_TRUE(std::filesystem::is_empty(place / "to"));
    }
    EXPECT_TRUE(host::copy_and_remove(from, "x", to, {.bytes = 20, .entries = 3}));
}

TEST(MoveAway, NothingIsReplaced) {
    const folder place;
    const auto [from, to] = directories(place);
    place.file("from/x", "new");
    place.file("to/x", "old");
    EXPECT_FALSE(host::move_away(from, "x", to));
    EXPECT_FALSE(host::copy_and_remove(from, "x", to));
    EXPECT_EQ(*sys::read_file(place / "to/x", 10), "old");
    EXPECT_EQ(*sys::read_file(place / "from/x", 10), "new");
}

// What an agent does to its own directories so that they cannot be moved.
void close_all(const folder& place) {
    place.file("from/x/a", "text");
    place.file("from/x/closed/b", "text");
    ASSERT_EQ(::chmod((place / "from/x/a").c_str(), 0), 0);
    ASSERT_EQ(::chmod((place / "from/x/closed").c_str(), 0), 0);
    ASSERT_EQ(::chmod((place / "from/x").c_str(), 0555), 0);
    ASSERT_EQ(::chmod((place / "from").c_str(), 0555), 0);
}

TEST(MoveAway, WhatItsOwnerClosedIsMoved) {
    const folder place;
    const auto [from, to] = directories(place);
    close_all(place);
    const auto done = host::move_away(from, "x", to);
    EXPECT_TRUE(done) << done.error().step << done.error().os;
    EXPECT_TRUE(std::filesystem::is_empty(place / "from"));
    EXPECT_TRUE(std::filesystem::exists(place / "to/x/a"));
    (void)::chmod((place / "to/x/closed").c_str(), 0700);
}

TEST(MoveAway, AFileInAClosedDirectoryIsMoved) {
    const folder place;
    const auto [from, to] = directories(place);
    place.file("from/x", "text");
    ASSERT_EQ(::chmod((place / "from").c_str(), 0555), 0);
    const auto done = host::move_away(from, "x", to);
    EXPECT_TRUE(done) << done.error().step << done.error().os;
    EXPECT_EQ(*sys::read_file(place / "to/x", 10), "text");
}

TEST(MoveAway, WhatItsOwnerClosedIsCopiedAndRemoved) {
    const folder place;
    const auto [from, to] = directories(place);
    close_all(place);
    const auto done = host::copy_and_remove(from, "x", to);
    EXPECT_TRUE(done) << done.error().step << done.error().os;
    EXPECT_TRUE(std::filesystem::is_empty(place / "from"));
    EXPECT_EQ(*sys::read_file(place / "to/x/closed/b", 10), "text");
}

} // namespace
