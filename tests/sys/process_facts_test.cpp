#include <fstream>
#include <glove/sys/process_facts.hpp>
#include <gtest/gtest.h>
#include <support/folder.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace glove::sys {
namespace {

using std::string;

auto stat_of(const string& name, const string& parent, const string& ticks,
             const string& state = "S", const string& threads = "1") -> string {
    string line = "42 (" + name + ") " + state + " " + parent;
    for (int i = 0; i < 15; ++i) line += " -" + std::to_string(i);
    return line + " " + threads + " 0 " + ticks + " 0 0\n";
}

TEST(ProcessFacts, whatever_the_name_is) {
    const process_facts wanted{7, 987, false};
    for (const auto* name : {"agent", "", "an agent", ") S 1 (", ") S 1 2", "\n"})
        EXPECT_EQ(process_facts_in(stat_of(name, "7", "987")), wanted) << name;
    EXPECT_EQ(process_facts_in(stat_of("a", "0", "18446744073709551615")),
              (process_facts{0, UINT64_MAX, false}));
}

TEST(ProcessFacts, one_that_was_not_waited_for_has_ended_with_its_last_thread) {
    const auto ended = [](const string& state, const string& threads) {
        return process_facts_in(stat_of("a", "7", "987", state, threads)).value().has_ended;
    };
    EXPECT_TRUE(ended("Z", "1"));
    EXPECT_TRUE(ended("Z", "0"));
    EXPECT_FALSE(ended("Z", "2"));
    for (const auto* state : {"R", "S", "D", "T", "t", "I"})
        EXPECT_FALSE(ended(state, "1")) << state;
    EXPECT_EQ(process_facts_in(stat_of("a", "7", "987", "Z", "x")), std::nullopt);

    const auto child = ::fork(); // the kernel's own
    test::prepared(child >= 0, "fork");
    if (child == 0) ::_exit(0);
    ::siginfo_t how{};
    test::prepared(::waitid(P_PID, static_cast<::id_t>(child), &how, WEXITED | WNOWAIT) == 0,
                   "waitid");
    EXPECT_TRUE(facts_of_process(child).value().has_ended);
    EXPECT_FALSE(facts_of_process(::getpid()).value().has_ended);
    test::prepared(::waitpid(child, nullptr, 0) == child, "waitpid");
}

TEST(ProcessFacts, a_text_of_another_form_tells_nothing) {
    EXPECT_EQ(process_facts_in(""), std::nullopt);
    EXPECT_EQ(process_facts_in("42 (no end"), std::nullopt);
    EXPECT_EQ(process_facts_in("42 (short) S 1 2 3\n"), std::nullopt);
    for (const auto* wrong : {"-1", "x", "", "2147483648"})
        EXPECT_EQ(process_facts_in(stat_of("a", wrong, "987")), std::nullopt) << wrong;
    for (const auto* wrong : {"-1", "x", "", "18446744073709551616"})
        EXPECT_EQ(process_facts_in(stat_of("a", "7", wrong)), std::nullopt) << wrong;
}

TEST(ProcessFacts, of_this_process) {
    const auto facts = facts_of_process(::getpid());
    ASSERT_TRUE(facts.has_value()) << facts.error().detail;
    EXPECT_EQ(facts->parent, ::getppid());
    EXPECT_NE(facts->start_ticks, 0U);
    const auto none = facts_of_process(1 << 30);
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, errc::not_found);
}

TEST(BootId, has_one_form) {
    const test::folder proc;
    const string id = "01234567-89ab-cdef-0123-456789abcdef";
    for (const auto& good : {id, id + "\n"}) {
        (void)proc.file("sys/kernel/random/boot_id", good);
        EXPECT_EQ(boot_id(proc.path()).value_or(""), id);
    }
    for (const auto& wrong : {string{}, id + "0", id.substr(1), "F" + id.substr(1), id + "\n\n",
                              string(36, '0'), string(36, '-')}) {
        (void)proc.file("sys/kernel/random/boot_id", wrong);
        EXPECT_FALSE(boot_id(proc.path()).has_value()) << wrong;
    }
    EXPECT_EQ(boot_id().value_or("").size(), 36U);
}

TEST(UnifiedGroup, is_the_line_of_that_hierarchy) {
    EXPECT_EQ(unified_group_in("0::/user.slice/a b\n"), "/user.slice/a b");
    EXPECT_EQ(unified_group_in("12:pids:/x\n1:name=systemd:/y\n0::/z"), "/z");
    EXPECT_EQ(unified_group_in("0::/\n"), "/");
    for (const auto* none : {"", "\n", "1::/x\n", "10::/x\n", "0:pids:/x\n", "0::x\n"})
        EXPECT_EQ(unified_group_in(none), std::nullopt) << none;
}

} // namespace
} // namespace glove::sys
