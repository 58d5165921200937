// Trees that were made to be hard to list and to delete.
#include <algorithm>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <glove/sys/trees.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>

namespace {

using namespace glove;

auto opened(const std::string& path, int flags = O_RDONLY) -> sys::unique_fd {
    sys::unique_fd out{::open(path.c_str(), flags | O_CLOEXEC)};
    test::prepared(static_cast<bool>(out), path);
    return out;
}

TEST(trees, names_come_in_order_and_no_more_than_asked_for) {
    const test::folder place;
    for (const auto* name : {"c", "a", "b"}) (void)place.file(name);
    const auto top = opened(place.path(), O_PATH);
    EXPECT_EQ(sys::names_in(top).value(), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(sys::names_in(top, 2)->size(), 2U);
    const auto file = opened(place / "a");
    EXPECT_EQ(sys::names_in(file).error().step, "tree.list");
}

TEST(trees, everything_in_a_directory_goes_and_nothing_else) {
    const test::folder place;
    const auto outside = place.file("outside/kept", "x");
    (void)place.file("top/d/e/f", "x");
    (void)place.link("top/d/link", place / "outside");
    (void)place.fifo("top/fifo");
    (void)place.directory("top/d/e", 0);
    (void)place.directory("top/d", 0500);
    const auto top = opened(place / "top");
    const auto emptied = sys::empty_directory(top, "the top");
    EXPECT_TRUE(emptied) << emptied.error().detail;
    EXPECT_EQ(test::names_in(place / "top"), 0U);
    EXPECT_EQ(test::content_of(outside), "x");
}

TEST(trees, a_tree_deeper_than_any_path_goes) {
    const test::folder place;
    (void)place.directory("top");
    const std::string name(200, 'n');
    {
        auto at = opened(place / "top");
        for (int depth = 0; depth < 300; ++depth) {
            test::prepared(::mkdirat(at.get(), name.c_str(), 0700) == 0, "mkdirat");
            at = sys::unique_fd{::openat(at.get(), name.c_str(), O_RDONLY | O_CLOEXEC)};
        }
    }
    const auto top = opened(place / "top");
    ASSERT_TRUE(sys::empty_directory(top, "the top"));
    EXPECT_EQ(test::names_in(place / "top"), 0U);
}

TEST(trees, whoever_asks_ends_the_work) {
    const test::folder place;
    for (const auto* name : {"a", "b", "c"}) (void)place.file(name);
    int asked = 0;
    const auto top = opened(place.path());
    const auto ended = sys::empty_directory(top, "it", [&]() -> result<> {
        return ++asked == 3 ? fail(errc::timed_out, "test.end") : result<>{};
    });
    EXPECT_EQ(ended.error().step, "test.end");
    EXPECT_EQ(test::names_in(place.path()), 1U);
}

TEST(trees, private_files_by_directory) {
    const test::folder place;
    const auto top = opened(place.path(), O_PATH);
    (void)place.file("mine", "12345", 0600);
    const auto step = [&](const char* name, std::size_t limit) -> std::string_view {
        const auto got = sys::open_private_file(top, name, limit);
        return got ? std::string_view{"none"} : got.error().step;
    };
    const auto mine = sys::open_private_file(top, "mine", 5).value();
    EXPECT_EQ(mine.content, "12345");
    EXPECT_EQ(sys::inspect(mine.file).value(), mine.facts);
    EXPECT_EQ(step("mine", 4), "file.private");
    (void)place.file("empty", "", 0600);
    EXPECT_EQ(step("empty", 5), "file.private");
    (void)place.file("open", "1", 0640);
    EXPECT_EQ(step("open", 5), "file.private");
    (void)place.link("link", place / "mine");
    EXPECT_EQ(step("link", 5), "file.open");
    (void)place.fifo("fifo");
    EXPECT_EQ(step("fifo", 5), "file.private");
    EXPECT_EQ(step("../", 5), "file.open");
    EXPECT_EQ(sys::open_private_file(top, "absent", 5).error().os, ENOENT);
}

TEST(trees, a_pin_is_opened_anew_whatever_has_its_name) {
    const test::folder place;
    const auto path = place.file("file", "first");
    const auto pin = opened(path, O_PATH);
    (void)place.file("other", "second");
    std::filesystem::rename(place / "other", path);
    const auto again = sys::reopen(pin, O_RDONLY).value();
    EXPECT_EQ(sys::read_all(again, 100).value(), "first");
}

} // namespace
