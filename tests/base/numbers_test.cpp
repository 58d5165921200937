#include <glove/base/numbers.hpp>
#include <gtest/gtest.h>

namespace {

using namespace glove;

constexpr auto largest = std::numeric_limits<std::uint64_t>::max();

TEST(Decimal, ANumberHasOneText) {
    EXPECT_EQ(parse_decimal("0", 9), 0U);
    EXPECT_EQ(parse_decimal("10", 99), 10U);
    EXPECT_EQ(parse_decimal("18446744073709551615", largest), largest);
    for (const auto* text : {"", "00", "01", "+1", "-1", " 1", "1 ", "1x", "0x1", "1e1", "1.0",
                             "18446744073709551616", "99999999999999999999"})
        EXPECT_FALSE(parse_decimal(text, largest)) << text;
}

TEST(Decimal, TheLargestNumberIsTheCallersToChoose) {
    EXPECT_EQ(parse_decimal("65535", 65535), 65535U);
    EXPECT_FALSE(parse_decimal("65536", 65535));
    EXPECT_EQ(parse_decimal("0", 0), 0U);
    EXPECT_FALSE(parse_decimal("1", 0));
}

struct size_row {
    const char* text;
    std::uint64_t bytes;
};

TEST(Size, ANumberWithAUnitIsThatManyBytes) {
    for (const auto& [text, bytes] :
         {size_row{"0", 0}, size_row{"512", 512}, size_row{"007", 7}, size_row{"1b", 1},
          size_row{"64K", 65'536}, size_row{"64KB", 65'536}, size_row{"64kib", 65'536},
          size_row{"10MiB", 10'485'760}, size_row{"2gb", 2'147'483'648}, size_row{"1T", 1ULL << 40},
          size_row{"1p", 1ULL << 50}, size_row{"15E", 15ULL << 60},
          size_row{"18446744073709551615", largest}})
        EXPECT_EQ(parse_size(text), bytes) << text;
}

TEST(Size, AnythingElseIsNone) {
    for (const auto* text : {"",
                             "K",
                             "-1",
                             "+1",
                             "1.5K",
                             "1 K",
                             " 1",
                             "1 ",
                             "1Kx",
                             "1KBx",
                             "1iB",
                             "1bb",
                             "1Ki",
                             "1KiBB",
                             "1bib",
                             "1q",
                             "0x10",
                             "1e3",
                             "16E",
                             "18446744073709551616",
                             "18014398509481984K"})
        EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Size, ItsTextIsReadAsTheSameNumber) {
    for (const auto& [text, bytes] :
         {size_row{"0", 0}, size_row{"1", 1}, size_row{"1023", 1023}, size_row{"1K", 1024},
          size_row{"1025", 1025}, size_row{"1536K", 1'572'864}, size_row{"1M", 1ULL << 20},
          size_row{"15E", 15ULL << 60}, size_row{"18446744073709551615", largest}}) {
        EXPECT_EQ(size_text(bytes), text);
        EXPECT_EQ(parse_size(text), bytes);
    }
}

TEST(Hundredths, OfANumberWithAPoint) {
    for (const auto& [text, value] :
         {size_row{"1", 100}, size_row{"0.5", 50}, size_row{"0.05", 5}, size_row{"1.25", 125},
          size_row{"0", 0}, size_row{"10.0", 1000}, size_row{"1000", 100'000}})
        EXPECT_EQ(parse_hundredths(text, 100'000), value) << text;
    for (const auto* const text : {"", ".", ".5", "1.", "1.234", "-1", "+1", "1e3", "01", "1,5",
                                   " 1", "1 ", "1.5.5", "1000.01", "1001", "99999999999999999999"})
        EXPECT_FALSE(parse_hundredths(text, 100'000)) << text;
}

} // namespace
