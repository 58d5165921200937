#include <glove/base/ascii.hpp>
#include <glove/base/text.hpp>
#include <gtest/gtest.h>

namespace {

using namespace glove;

TEST(Ascii, LettersAndDigitsAreThoseOfAscii) {
    for (int i = -128; i < 128; ++i) {
        const auto c = static_cast<char>(i);
        const auto among = [&](std::string_view set) { return set.find(c) != set.npos; };
        EXPECT_EQ(is_lower(c), among("abcdefghijklmnopqrstuvwxyz")) << i;
        EXPECT_EQ(is_upper(c), among("ABCDEFGHIJKLMNOPQRSTUVWXYZ")) << i;
        EXPECT_EQ(is_digit(c), among("0123456789")) << i;
        EXPECT_EQ(hex_value(c) >= 0, among("0123456789abcdefABCDEF")) << i;
        EXPECT_EQ(to_lower(c) == c, !is_upper(c)) << i;
    }
    EXPECT_EQ(to_lower('A'), 'a');
    EXPECT_EQ(to_lower('Z'), 'z');
    EXPECT_EQ(hex_value('9'), 9);
    EXPECT_EQ(hex_value('a'), 10);
    EXPECT_EQ(hex_value('F'), 15);
}

TEST(Printable, ControlBytesAreSpeltOut) {
    using namespace std::string_view_literals;
    EXPECT_EQ(printable("a\n\x1b[2J\0\x7f"sv), "a\\x0a\\x1b[2J\\x00\\x7f");
    EXPECT_EQ(printable("a b~\xc3\xbc"), "a b~\xc3\xbc");
}

TEST(Printable, WhatDrawsElsewhereOrNothingIsSpeltOut) {
    EXPECT_EQ(printable("\u009b31m\u202ea\u200b\U000e0041"),
              "\\u{9b}31m\\u{202e}a\\u{200b}\\u{e0041}");
    EXPECT_EQ(printable("\x9b\xff\xe6\xbc"), "\\x9b\\xff\\xe6\\xbc");
    EXPECT_EQ(printable("\u00a0\u6f22\U0001f600"), "\u00a0\u6f22\U0001f600");
}

TEST(PrintableJson, ItIsTheSameDocument) {
    EXPECT_EQ(printable_json("{\"a\":\"\u009b\u202e\x7f\U000e0041\u00fc\\n\"}\n"),
              R"({"a":"\u009b\u202e\u007f\udb40\udc41)"
              "\u00fc\\n\"}\n");
}

TEST(InQuotes, ItIsAsciiInQuotes) {
    EXPECT_EQ(in_quotes(""), "''");
    EXPECT_EQ(in_quotes("a b~"), "'a b~'");
    EXPECT_EQ(in_quotes("\xc3\xbc\n"), "'\\xc3\\xbc\\x0a'");
}

TEST(InQuotes, WhatIsLongIsCut) {
    EXPECT_EQ(in_quotes(std::string(256, 'a')), "'" + std::string(256, 'a') + "'");
    EXPECT_EQ(in_quotes(std::string(257, 'a')), "'" + std::string(256, 'a') + "...'");
}

} // namespace
