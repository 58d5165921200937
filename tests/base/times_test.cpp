#include <glove/base/times.hpp>
#include <gtest/gtest.h>

namespace {

using namespace glove;
constexpr std::int64_t second = 1'000'000'000;

TEST(Times, AMomentIsReadExactly) {
    EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00Z"), 0);
    EXPECT_EQ(parse_rfc3339("2026-01-31T12:34:56Z"), 1'769'862'896 * second);
    EXPECT_EQ(parse_rfc3339("2026-01-31t12:34:56z"), 1'769'862'896 * second);
    EXPECT_EQ(parse_rfc3339("2026-01-31 14:34:56+02:00"), 1'769'862'896 * second);
    EXPECT_EQ(parse_rfc3339("2026-01-31T12:04:56-00:30"), 1'769'862'896 * second);
    EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:01.5Z"), second * 3 / 2);
    EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.0000000019Z"), 1);
    EXPECT_EQ(parse_rfc3339("2024-02-29T00:00:00Z"), 1'709'164'800 * second);
}

TEST(Times, WhatIsNoMomentIsRefused) {
    for (const auto* text : {"",
                             "2026",
                             "2026-01-31",
                             "2026-01-31T12:34:56",
                             "2026-01-31T12:34Z",
                             "2026-02-29T00:00:00Z",
                             "2026-13-01T00:00:00Z",
                             "2026-00-01T00:00:00Z",
                             "2026-01-00T00:00:00Z",
                             "2026-01-31T24:00:00Z",
                             "2026-01-31T12:60:00Z",
                             "2026-01-31T12:34:60Z",
                             "2026-01-31T12:34:56.Z",
                             "2026-01-31T12:34:56+0200",
                             "2026-01-31T12:34:56+24:00",
                             "2026-01-31T12:34:56Zx",
                             " 2026-01-31T12:34:56Z",
                             "1969-12-31T23:59:59Z",
                             "2262-01-01T00:00:00Z",
                             "+026-01-31T12:34:56Z"})
        EXPECT_FALSE(parse_rfc3339(text).has_value()) << text;
}

TEST(Times, AnAgeIsANumberWithAUnit) {
    EXPECT_EQ(parse_age("90s"), 90 * second);
    EXPECT_EQ(parse_age("10m"), 600 * second);
    EXPECT_EQ(parse_age("2h"), 7200 * second);
    EXPECT_EQ(parse_age("1d"), 86'400 * second);
    EXPECT_EQ(parse_age("0s"), 0);
    EXPECT_TRUE(parse_age("36600d").has_value());
    for (const auto* text :
         {"", "m", "10", "10min", "-1h", "1.5h", "1 h", "1w", "36601d", "99999999999999999999s"})
        EXPECT_FALSE(parse_age(text).has_value()) << text;
}

TEST(Times, ALimitIsANumberWithOrWithoutAUnit) {
    EXPECT_EQ(parse_duration("90").ms, 90'000U);
    EXPECT_EQ(parse_duration("90s").ms, 90'000U);
    EXPECT_EQ(parse_duration("250ms").ms, 250U);
    EXPECT_EQ(parse_duration("10m").ms, 600'000U);
    EXPECT_EQ(parse_duration("878400h").ms, 3'162'240'000'000U);
    EXPECT_EQ(parse_duration("878401h").complaint, "is more than 100 years");
    EXPECT_EQ(parse_duration("0ms").complaint, "is no time at all");
    for (const auto* text : {"", "s", "-1", "1.5h", "1 s", "1S", "1d", "1234567890s"})
        EXPECT_FALSE(parse_duration(text).complaint.empty()) << text;
}

TEST(Times, WhatIsPrintedIsRead) {
    EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00Z");
    EXPECT_EQ(utc_text(1'769'862'896 * second + 999'999'999), "2026-01-31T12:34:56Z");
    EXPECT_EQ(parse_rfc3339(utc_text(1'769'862'896 * second)), 1'769'862'896 * second);
    EXPECT_EQ(utc_text(-1), "1969-12-31T23:59:59Z");
}

} // namespace
