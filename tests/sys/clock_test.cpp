#include <ctime>
#include <glove/sys/clock.hpp>
#include <gtest/gtest.h>
#include <thread>

namespace {

using glove::sys::system_clock;
using std::chrono::nanoseconds;

TEST(SystemClock, TheMonotonicClockNeverStepsBack) {
    const system_clock time;
    auto last = time.monotonic();
    for (int i = 0; i < 1000; ++i) {
        const auto now = time.monotonic();
        ASSERT_GE(now, last);
        last = now;
    }
}

TEST(SystemClock, TheMonotonicClockRunsInNanoseconds) {
    const system_clock time;
    const auto before = time.monotonic();
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    EXPECT_GE(time.monotonic() - before, std::chrono::milliseconds{2});
    EXPECT_LT(time.monotonic() - before, std::chrono::minutes{1});
}

TEST(SystemClock, TheWallClockCountsFrom1970) {
    const system_clock time;
    const auto before = std::chrono::seconds{std::time(nullptr)};
    const auto now = time.wall();
    EXPECT_GE(now, before - std::chrono::seconds{1});
    EXPECT_LE(now, before + std::chrono::minutes{1});
}

} // namespace
