#include "policy/scene.hpp"

namespace {

using namespace glove::policy;
using namespace std::chrono_literals;

TEST(Meter, CountsCallsOfARun) {
    meter of;
    const tool_limits limits{.timeout = {}, .result_bytes = {}, .calls = 3, .per_minute = {}};
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(of.admit("fs.read", limits, i * 1h).allowed);
    const auto refused = of.admit("fs.read", limits, 1000h);
    EXPECT_FALSE(refused.allowed);
    EXPECT_EQ(refused.rule, "fs.read has reached its limit of 3 calls in a run");
    EXPECT_TRUE(of.admit("fs.write", limits, 1000h).allowed); // a tool of its own
    EXPECT_TRUE(of.admit("fs.read", {}, 1000h).allowed);      // without a limit
}

TEST(Meter, SlidesOverAMinute) {
    meter of;
    const tool_limits limits{.timeout = {}, .result_bytes = {}, .calls = {}, .per_minute = 2};
    EXPECT_TRUE(of.admit("fs.read", limits, 0s).allowed);
    EXPECT_TRUE(of.admit("fs.read", limits, 30s).allowed);
    EXPECT_EQ(of.admit("fs.read", limits, 45s).rule,
              "fs.read has reached its limit of 2 calls a minute; the next is possible in 15 s");
    EXPECT_FALSE(of.admit("fs.read", limits, 60s - 1ns).allowed);
    EXPECT_TRUE(of.admit("fs.read", limits, 60s).allowed);
    EXPECT_FALSE(of.admit("fs.read", limits, 89s).allowed); // of 30 s and 60 s
    EXPECT_TRUE(of.admit("fs.read", limits, 90s).allowed);
}

TEST(Meter, ChargesNothingForWhatItRefuses) {
    meter of;
    const tool_limits limits{.timeout = {}, .result_bytes = {}, .calls = 2, .per_minute = 1};
    EXPECT_TRUE(of.admit("fs.read", limits, 0s).allowed);
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(of.admit("fs.read", limits, 1s).allowed);
    EXPECT_TRUE(of.admit("fs.read", limits, 61s).allowed);
    EXPECT_EQ(of.admit("fs.read", limits, 200s).rule,
              "fs.read has reached its limit of 2 calls in a run");
}

TEST(Meter, SpeaksOfOneCall) {
    meter of;
    const tool_limits limits{.timeout = {}, .result_bytes = {}, .calls = 1, .per_minute = {}};
    EXPECT_TRUE(of.admit("fs.read", limits, 0s).allowed);
    EXPECT_EQ(of.admit("fs.read", limits, 0s).rule,
              "fs.read has reached its limit of 1 call in a run");
    auto moved = std::move(of);
    EXPECT_FALSE(moved.admit("fs.read", limits, 0s).allowed);
}

} // namespace
