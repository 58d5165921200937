// What the files of control groups say.
#include "container/linux/cgroup.hpp"
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using namespace glove;
namespace cgroup = container::cgroup;

TEST(ControlGroupFiles, AnEntryIsFoundByItsWholeName) {
    constexpr std::string_view table = "low 1\nhigh 2\noom 3\noom_kill 4\noom_group_kill 5\nmax";
    EXPECT_EQ(cgroup::entry(table, "low"), 1U);
    EXPECT_EQ(cgroup::entry(table, "oom"), 3U);
    EXPECT_EQ(cgroup::entry(table, "oom_kill"), 4U);
    for (const auto* name : {"oom_", "kill", "ow", "max", "swap", ""})
        EXPECT_EQ(cgroup::entry(table, name), std::nullopt) << name;
    for (const auto* wrong : {"oom x", "oom ", "oom -1", "oom 1 2", "oom 18446744073709551616", ""})
        EXPECT_EQ(cgroup::entry(wrong, "oom"), std::nullopt) << wrong;
    EXPECT_EQ(cgroup::entry("oom 18446744073709551615", "oom"), UINT64_MAX);
}

TEST(ControlGroupFiles, AListHasWholeWords) {
    for (const auto* words : {"cpu memory pids", "cpu\nmemory\npids", "memory", "memory "})
        EXPECT_TRUE(cgroup::lists(words, "memory")) << words;
    for (const auto* words : {"", "memor", "memory_hugetlb", "amemory", "cpu pids"})
        EXPECT_FALSE(cgroup::lists(words, "memory")) << words;
}

TEST(ControlGroupFiles, TheOwnGroupIsKnownAndNoOtherProcessHasOne) {
    const auto own = cgroup::path_of(::getpid());
    ASSERT_TRUE(own.has_value()) << own.error().detail;
    EXPECT_TRUE(own->starts_with('/')) << *own;
    EXPECT_FALSE(cgroup::path_of(0).has_value());
}

} // namespace
