// The first cause wins, whoever comes with the next one.
#include <atomic>
#include <glove/control/termination.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <thread>
#include <vector>

namespace {

using namespace glove::control;
using enum termination_cause;
using how = process_end::how;

constexpr std::array noted_causes{cpu_time_limit,  memory_limit, pid_limit,
                                  wall_time_limit, disk_limit,   terminal_output_limit,
                                  supervisor_error};

auto verdict_of(const process_end& end, bool over_memory = false) -> termination_verdict {
    termination one;
    EXPECT_TRUE(one.note_end(end, over_memory));
    return one.verdict().value();
}

TEST(Termination, NothingStandsAtFirst) { EXPECT_FALSE(termination{}.verdict()); }

TEST(Termination, AnExitHasItsStatusAndNothingElseHas) {
    EXPECT_EQ(verdict_of({how::exited, 0}), (termination_verdict{exited, 0}));
    EXPECT_EQ(verdict_of({how::exited, 255}), (termination_verdict{exited, 255}));
    EXPECT_EQ(verdict_of({how::exited, 256}), (termination_verdict{supervisor_error, {}}));
    EXPECT_EQ(verdict_of({how::signaled, 9}), (termination_verdict{signaled, {}}));
    EXPECT_EQ(verdict_of({}), (termination_verdict{supervisor_error, {}}));
    for (const auto why : noted_causes) {
        termination one;
        EXPECT_TRUE(one.note(why));
        EXPECT_EQ(one.verdict(), (termination_verdict{why, {}}));
    }
}

TEST(Termination, WaitStatusesAreMapped) {
    EXPECT_EQ(end_of(0), (process_end{how::exited, 0}));
    EXPECT_EQ(end_of(137 << 8), (process_end{how::exited, 137})); // what a shell makes of SIGKILL
    EXPECT_EQ(end_of(9), (process_end{how::signaled, 0}));
    EXPECT_EQ(end_of(9 | 0x80), (process_end{how::signaled, 0})); // with a core
    EXPECT_EQ(end_of(0x137f), (process_end{how::unknown, 0}));    // stopped
    EXPECT_EQ(end_of(0xffff), (process_end{how::unknown, 0}));    // went on
}

TEST(Termination, MemoryThatRanOutIsToldApartFromAKill) {
    EXPECT_EQ(verdict_of({how::signaled, 0}, true), (termination_verdict{memory_limit, {}}));
    EXPECT_EQ(verdict_of({how::signaled, 0}, false), (termination_verdict{signaled, {}}));
    // The kernel killed a part of it, and the rest went down with an exit.
    EXPECT_EQ(verdict_of({how::exited, 1}, true), (termination_verdict{memory_limit, {}}));
    EXPECT_EQ(verdict_of({}, true), (termination_verdict{memory_limit, {}}));
    // But what stood before still stands.
    termination one;
    EXPECT_TRUE(one.note(wall_time_limit));
    EXPECT_FALSE(one.note_end({how::signaled, 0}, true));
    EXPECT_EQ(one.verdict()->cause, wall_time_limit);
}

TEST(Termination, AnEndIsToldByTheEndOnly) {
    termination one;
    EXPECT_FALSE(one.note(exited));
    EXPECT_FALSE(one.note(signaled));
    EXPECT_FALSE(one.verdict());
    EXPECT_TRUE(one.note(disk_limit));
}

RC_GTEST_PROP(Termination, TheFirstOfAnyStoryStands, ()) {
    const auto story = *rc::gen::container<std::vector<std::pair<unsigned, unsigned>>>(
        rc::gen::pair(rc::gen::inRange(0U, 10U), rc::gen::inRange(0U, 256U)));
    termination one;
    std::optional<termination_verdict> first;
    for (const auto& [what, code] : story) {
        termination_verdict next{};
        bool took = false;
        if (what < noted_causes.size()) {
            next = {noted_causes[what], {}};
            took = one.note(next.cause);
        } else if (what == 7) {
            next = {exited, code};
            took = one.note_end({how::exited, code}, false);
        } else if (what == 8) {
            next = {signaled, {}};
            took = one.note_end({how::signaled, code}, false);
        } else {
            next = {memory_limit, {}};
            took = one.note_end({how::signaled, code}, true);
        }
        RC_ASSERT(took == !first);
        if (!first) first = next;
        RC_ASSERT(one.verdict() == first);
    }
}

TEST(Termination, OneOfManyThreadsIsTheFirst) {
    for (int round = 0; round < 200; ++round) {
        termination one;
        std::atomic<unsigned> winners = 0;
        std::atomic<termination_cause> winner{exited};
        std::atomic<bool> go = false;
        {
            std::vector<std::jthread> all;
            for (const auto why : {cpu_time_limit, memory_limit, terminal_output_limit})
                all.emplace_back([&, why] {
                    while (!go) std::this_thread::yield();
                    if (!one.note(why)) return;
                    ++winners;
                    winner = why;
                });
            go = true;
        }
        ASSERT_EQ(winners, 1U);
        ASSERT_EQ(one.verdict()->cause, winner.load());
        ASSERT_FALSE(one.note_end({how::exited, 0}, false));
        ASSERT_EQ(one.verdict()->cause, winner.load());
    }
}

} // namespace
