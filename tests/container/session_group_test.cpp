// What is read out of a group's files, in kernels that tell more and less. What the kernel does
// with a group is in tests/vm/session_groups_guest.cpp.
#include "container/linux/session_group.hpp"
#include <gtest/gtest.h>
#include <support/folder.hpp>

namespace glove::container {
namespace {

using std::string;

struct made_up_group {
    made_up_group() {
        (void)f.file("cpu.stat", "usage_usec 700\nuser_usec 500\nsystem_usec 200\n");
        (void)f.file("memory.events",
                     "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 1\n");
        (void)f.file("memory.peak", "4096\n");
        (void)f.file("memory.current", "1024\n");
        (void)f.file("pids.events", "max 4\n");
        (void)f.file("pids.peak", "8\n");
        (void)f.file("pids.current", "5\n");
    }
    auto usage(std::optional<std::uint32_t> processes = 8) -> result<session_group_usage> {
        const sys::unique_fd group{::open(f.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        return usage_of(group, processes, seen);
    }
    void without(const string& file) const { std::filesystem::remove(f / file); }
    test::folder f;
    seen_peaks seen;
};

TEST(SessionGroupUsage, is_what_the_kernel_says) {
    made_up_group g;
    const auto used = g.usage();
    ASSERT_TRUE(used.has_value()) << used.error().detail;
    EXPECT_EQ(used->cpu_us, 700U);
    EXPECT_EQ(used->memory_peak, 4096U);
    EXPECT_EQ(used->out_of_memory, 3U);
    EXPECT_EQ(used->memory_limit_met, 2U); // and not how often pages were given back
    EXPECT_EQ(used->processes_peak, 8U);
    EXPECT_EQ(used->processes_refused, 4U);
}

TEST(SessionGroupUsage, a_limit_that_was_never_reached_refused_nothing) {
    made_up_group g;
    EXPECT_EQ(g.usage(9)->processes_refused, 0U);
    EXPECT_EQ(g.usage(8)->processes_refused, 4U);
    EXPECT_EQ(g.usage(std::nullopt)->processes_refused, 4U); // not known
    g.without("pids.peak"); // what was seen may not have been the most
    EXPECT_EQ(g.usage(9)->processes_refused, 4U);
}

TEST(SessionGroupUsage, the_most_that_was_seen_where_the_kernel_does_not_tell) {
    made_up_group g;
    g.without("memory.peak");
    g.without("pids.peak");
    EXPECT_EQ(g.usage()->memory_peak, 1024U);
    EXPECT_EQ(g.usage()->processes_peak, 5U);
    (void)g.f.file("memory.current", "512\n");
    (void)g.f.file("pids.current", "6\n");
    EXPECT_EQ(g.usage()->memory_peak, 1024U);
    EXPECT_EQ(g.usage()->processes_peak, 6U);
}

TEST(SessionGroupUsage, what_is_not_there_or_no_number_is_an_error) {
    for (const auto* file : {"cpu.stat", "memory.events", "pids.events"}) {
        made_up_group g;
        g.without(file);
        EXPECT_EQ(g.usage().error().step, "group.usage") << file;
        (void)g.f.file(file, "other 1\n");
        EXPECT_EQ(g.usage().error().step, "group.usage") << file;
    }
    for (const auto* file : {"memory.peak", "pids.peak"})
        for (const auto* wrong : {"max\n", "\n", "-1\n", "8 9\n"}) {
            made_up_group g;
            (void)g.f.file(file, wrong);
            EXPECT_EQ(g.usage().error().step, "group.usage") << file << wrong;
        }
    made_up_group g;
    g.without("memory.peak");
    g.without("memory.current");
    EXPECT_EQ(g.usage().error().step, "group.usage");
}

TEST(SessionGroupSwap, must_be_counted_where_there_can_be_any) {
    made_up_group g;
    const sys::unique_fd group{::open(g.f.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const auto uncounted = check_swap(group);
    EXPECT_EQ(uncounted.has_value(), !std::filesystem::exists("/proc/swaps"));
    if (uncounted) EXPECT_FALSE(*uncounted);
    else EXPECT_EQ(uncounted.error().step, "group.limit");
    (void)g.f.file("memory.swap.max", "max\n");
    EXPECT_EQ(check_swap(group).value_or(false), true);
}

TEST(SessionGroupProcessors, are_counted_in_a_list) {
    EXPECT_EQ(count_processors("0"), 1U);
    EXPECT_EQ(count_processors("0-3,5"), 5U);
    EXPECT_EQ(count_processors("7,9-10"), 3U);
    EXPECT_EQ(count_processors("0-65535"), 65'536U);
    for (const auto* none : {"", "-", "3-1", "0-65536", "0-65535,0", "a", "1,,2", "1-", "-1", "1 "})
        EXPECT_EQ(count_processors(none), std::nullopt) << none;
}

} // namespace
} // namespace glove::container
