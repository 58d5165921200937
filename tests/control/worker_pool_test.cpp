// Whom the pool calls, and how much it takes. What its places guarantee is proven through the
// server.
#include <control/worker_pool.hpp>
#include <gtest/gtest.h>
#include <semaphore>
#include <set>

namespace glove {
namespace {

using control::exchange;
using control::worker_pool;
using std::chrono::milliseconds;

auto some_job() -> worker_pool::job {
    return std::make_unique<exchange>(sys::unique_fd{}, exchange::time{},
                                      exchange::time{milliseconds{1}});
}
auto look_only(exchange&) -> control::glance { return {}; }

// One after the other, with time for each worker to sit down again: nobody else is called then. A
// worker that the machine kept from its seat may be missed, and all of them at once are not.
TEST(WorkerPool, TheOneThatWorkedLastIsCalled) {
    constexpr std::size_t workers = 8;
    const sys::system_clock clock;
    std::set<std::thread::id> seen; // by one worker at a time
    std::counting_semaphore<> answered{0};
    worker_pool pool{workers,
                     4,
                     {.look = look_only,
                      .answer = [&](exchange&) { seen.insert(std::this_thread::get_id()); },
                      .give_up = [](exchange&) {},
                      .wake = [&] { answered.release(); }},
                     clock};
    std::this_thread::sleep_for(milliseconds{20});
    for (int i = 0; i < 100; ++i) {
        auto job = some_job();
        ASSERT_TRUE(pool.put(job));
        answered.acquire();
        EXPECT_EQ(pool.finished().size(), 1U);
        std::this_thread::sleep_for(milliseconds{2});
    }
    EXPECT_LT(seen.size(), workers);
}

// As many as may wait, and one more.
TEST(WorkerPool, WhatFindsNoRoomStaysTheCallers) {
    constexpr std::size_t most_waiting = 3;
    const sys::system_clock clock;
    std::counting_semaphore<> begun{0}, goes_on{0}, answered{0};
    worker_pool pool{1,
                     most_waiting,
                     {.look = look_only,
                      .answer =
                          [&](exchange&) {
                              begun.release();
                              goes_on.acquire();
                          },
                      .give_up = [](exchange&) {},
                      .wake = [&] { answered.release(); }},
                     clock};
    auto first = some_job();
    ASSERT_TRUE(pool.put(first));
    begun.acquire(); // the worker is busy, and nothing waits
    for (std::size_t i = 0; i < most_waiting; ++i) {
        auto job = some_job();
        EXPECT_TRUE(pool.put(job)) << i;
        EXPECT_EQ(job, nullptr);
    }
    auto more = some_job();
    EXPECT_FALSE(pool.put(more));
    EXPECT_NE(more, nullptr);
    goes_on.release(1 + most_waiting);
    for (std::size_t i = 0; i < 1 + most_waiting; ++i) answered.acquire();
    EXPECT_EQ(pool.finished().size(), 1 + most_waiting);
}

} // namespace
} // namespace glove
