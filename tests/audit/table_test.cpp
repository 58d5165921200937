#include <glove/audit/table.hpp>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using audit::fitted;
using audit::row;
using audit::safe_text;
using audit::table_line;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

auto ended_row() -> row {
    row out;
    out.run = "r";
    out.action = audit::action::egress;
    out.state = audit::row_state::ended;
    out.status = audit::status::ok;
    out.began_ns = 1'769'862'896'000'000'000;
    out.duration_ns = 1'500'000'000;
    out.what = "a.example:443";
    out.sent = 1536;
    out.received = 0;
    return out;
}

TEST(TableLine, EachColumnHasItsPlace) {
    const auto head = audit::table_head({});
    const auto line = table_line(ended_row(), {});
    EXPECT_EQ(line,
              "2026-01-31T12:34:56Z  egress        ok                  1.5s      1.5K/0         "
              "a.example:443\n");
    for (const auto& [title, cell] :
         {std::pair{"TIME", "2026"}, std::pair{"ACTION", "egress"}, std::pair{"STATUS", "ok"},
          std::pair{"DURATION", "1.5s"}, std::pair{"SENT", "1.5K"}, std::pair{"WHAT", "a.example"}})
        EXPECT_EQ(head.find(title), line.find(cell)) << title;
}

TEST(TableLine, WhatIsNotKnownIsADash) {
    auto at = ended_row();
    at.state = audit::row_state::open;
    at.duration_ns.reset();
    at.sent.reset();
    at.received.reset();
    EXPECT_THAT(table_line(at, {}), HasSubstr("open                -         -              a.ex"));
}

TEST(TableLine, AnErrorStandsBelow) {
    auto at = ended_row();
    at.error = "nobody listens\nforged";
    EXPECT_THAT(table_line(at, {}), HasSubstr("\n    nobody listens\\x0aforged\n"));
}

TEST(TableLine, NoLineIsWiderThanTheTerminal) {
    auto at = ended_row();
    at.what = std::string(500, 'w') + "\xe6\xbc\xa2";
    at.error = std::string(500, 'e');
    at.detail = "terminated";
    for (const std::size_t width : {1U, 2U, 10U, 40U, 80U, 100U, 101U, 120U, 300U}) {
        const audit::table_style style{.width = width, .colours = false};
        const auto text = audit::table_head(style) + table_line(at, style);
        for (std::size_t from = 0; from < text.size();) {
            const auto end = text.find('\n', from);
            EXPECT_LE(end - from, width);
            from = end + 1;
        }
    }
    EXPECT_THAT(table_line(at, {.width = 120, .colours = false}), HasSubstr("www...\n"));
    EXPECT_THAT(table_line(at, {}), HasSubstr(std::string(500, 'w'))); // nothing to fit into
}

TEST(TableLine, ColoursChangeNothingElse) {
    const auto plain = table_line(ended_row(), {.width = 120, .colours = false});
    auto coloured = table_line(ended_row(), {.width = 120, .colours = true});
    EXPECT_THAT(coloured, HasSubstr("\033[32mok"));
    for (std::size_t at = 0; (at = coloured.find('\033')) != std::string::npos;)
        coloured.erase(at, coloured.find('m', at) - at + 1);
    EXPECT_EQ(coloured, plain);
}

// What an agent can put into a record.
TEST(SafeText, NothingDrawsOnTheTerminal) {
    EXPECT_EQ(safe_text("plain \xc3\xa9 \xe6\xbc\xa2"), "plain \xc3\xa9 \xe6\xbc\xa2");
    EXPECT_EQ(safe_text("a\x1b[2Jb\r\n\t\x7f"), "a\\x1b[2Jb\\x0d\\x0a\\x09\\x7f");
    EXPECT_EQ(safe_text(std::string_view{"a\0b", 3}), "a\\x00b");
    EXPECT_EQ(safe_text("\xc2\x9b"
                        "31m"),
              "\\u{9b}31m");                           // a control sequence in one character
    EXPECT_EQ(safe_text("\xe2\x80\xae"), "\\u{202e}"); // right to left
    EXPECT_EQ(safe_text("\xe2\x80\x8b"), "\\u{200b}"); // no width
    EXPECT_EQ(safe_text("\x9b\xff"), "\\x9b\\xff");
    EXPECT_EQ(safe_text("\xe6\xbc"), "\\xe6\\xbc"); // cut off
    EXPECT_EQ(safe_text("\xe6"
                        "a"),
              "\\xe6a");
}

TEST(Fitted, ACharacterIsNeverCutInTwo) {
    EXPECT_EQ(fitted("abcdef", 6), "abcdef");
    EXPECT_EQ(fitted("abcdefg", 6), "abc...");
    EXPECT_EQ(fitted("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4), "\xc3\xa9...");
    EXPECT_EQ(fitted("\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", 6),
              "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2");
    EXPECT_EQ(fitted("\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", 5), "\xe6\xbc\xa2...");
    EXPECT_EQ(fitted("abcdef", 2), "..");
    EXPECT_EQ(fitted("abcdef", 0), "");
}

TEST(Numbers, AreShort) {
    EXPECT_EQ(audit::duration_text(0), "0.0ms");
    EXPECT_EQ(audit::duration_text(7'000'000), "7.0ms");
    EXPECT_EQ(audit::duration_text(999'949'999), "999.9ms");
    EXPECT_EQ(audit::duration_text(999'950'000), "1.0s");
    EXPECT_EQ(audit::duration_text(59'949'999'999), "59.9s");
    EXPECT_EQ(audit::duration_text(60'000'000'000), "1m00s");
    EXPECT_EQ(audit::duration_text(3'600'000'000'000), "1h00m");
    EXPECT_EQ(audit::duration_text(360'000'000'000'000), "4d04h");
    EXPECT_EQ(audit::duration_text(-1), "?");
    EXPECT_EQ(audit::bytes_text(0), "0");
    EXPECT_EQ(audit::bytes_text(1023), "1023");
    EXPECT_EQ(audit::bytes_text(1024), "1.0K");
    EXPECT_EQ(audit::bytes_text(20UL << 20), "20M");
    EXPECT_EQ(audit::bytes_text((1UL << 20) - 1), "1.0M");
    EXPECT_EQ(audit::bytes_text(UINT64_MAX), "16E");
    for (const auto ns : {INT64_MAX, std::int64_t{1}, std::int64_t{86'400'000'000'000}})
        EXPECT_LE(audit::duration_text(ns).size(), 10U);
}

} // namespace
