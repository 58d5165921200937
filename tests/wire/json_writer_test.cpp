// The writer: canonical text, escapes, valid UTF-8 for any bytes, and what it writes reads back
// equal.
#include <glove/wire/json.hpp>
#include <glove/wire/json_writer.hpp>
#include <glove/wire/utf8.hpp>
#include <gtest/gtest.h>
#include <memory>
#include <rapidcheck/gtest.h>

namespace {

using namespace glove;
using namespace std::string_view_literals;
using wire::json::value;
using wire::json::writer;

// All ways, which must be the same: appended, put into room of the size that is promised, and
// counted.
auto literal(std::string_view text) -> std::string {
    std::string out;
    wire::json::append_quoted(out, text);
    const std::unique_ptr<char[]> room{new char[wire::json::most_quoted(text.size())]};
    const auto* const end = wire::json::put_quoted(room.get(), text);
    EXPECT_EQ((std::string_view{room.get(), end}), out);
    EXPECT_EQ(wire::json::quoted_bytes(text), out.size());
    return out;
}

TEST(JsonWriter, ARoomOfTheLongestLiteralIsFilledAndNotExceeded) {
    for (std::size_t size = 0; size < 40; ++size) {
        const auto text = literal(std::string(size, '\x01'));
        EXPECT_EQ(text.size(), wire::json::most_quoted(size));
    }
}

// Wherever in a word of eight bytes it stands, and however few follow.
TEST(JsonWriter, ASpecialByteIsFoundAtEveryPlaceOfEveryLength) {
    for (std::size_t size = 1; size < 40; ++size)
        for (std::size_t at = 0; at < size; ++at)
            for (const char special : {'"', '\\', '\n', '\x1f', '\x80'}) {
                std::string text(size, 'x');
                text[at] = special;
                const auto begin = literal(text).substr(0, at + 2);
                EXPECT_EQ(begin.substr(1, at), std::string(at, 'x'));
                EXPECT_EQ(begin.back(), special == '\x80' ? '\xef' : '\\') << size << " " << at;
            }
}

TEST(JsonWriter, MembersStandInTheOrderOfTheCallsWithoutWhiteSpace) {
    std::string out = "head ";
    {
        writer w{out};
        w.begin_object();
        w.member("z", 1U);
        w.member("a", "x");
        w.member("n", nullptr);
        w.member("t", true);
        w.member("i", -5);
        w.member("absent", std::optional<std::string>{});
        w.member("present", std::optional<int>{7});
        w.begin_array("list");
        w.element(1);
        w.element("two");
        w.begin_object();
        w.end_object();
        w.begin_array();
        w.end_array();
        w.end_array();
        w.begin_object("inner");
        w.member("b", false);
        w.end_object();
        w.key("raw");
        w.raw("{\"as\": \"is\"}");
        w.end_object();
    }
    EXPECT_EQ(out, R"(head {"z":1,"a":"x","n":null,"t":true,"i":-5,"present":7,)"
                   R"("list":[1,"two",{},[]],"inner":{"b":false},"raw":{"as": "is"}})");
}

TEST(JsonWriter, IntegersOfEveryWidthAreDecimal) {
    std::string out;
    {
        writer w{out};
        w.begin_array();
        w.element(std::uint8_t{255});
        w.element(std::int8_t{-128});
        w.element(UINT64_MAX);
        w.element(INT64_MIN);
        w.element(std::uint64_t{0});
        w.end_array();
    }
    EXPECT_EQ(out, "[255,-128,18446744073709551615,-9223372036854775808,0]");
}

TEST(JsonWriter, EscapesAreTheStandardOnes) {
    EXPECT_EQ(literal("\"\\/\b\f\n\r\t"), R"("\"\\/\b\f\n\r\t")");
    EXPECT_EQ(literal("\0\x01\x1f\x20\x7f"sv), "\"\\u0000\\u0001\\u001f \x7f\"");
    EXPECT_EQ(literal("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
              "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
    EXPECT_EQ(literal(""), "\"\"");
}

TEST(JsonWriter, MalformedBytesBecomeReplacementCharacters) {
    const auto r = std::string{"\xef\xbf\xbd"};
    EXPECT_EQ(literal("a\xff"
                      "b"),
              "\"a" + r + "b\"");
    EXPECT_EQ(literal("\xc0\x80"), "\"" + r + r + "\"");
    EXPECT_EQ(literal("\xed\xa0\x80"), "\"" + r + r + r + "\""); // a surrogate
    EXPECT_EQ(literal("\xe2\x82"), "\"" + r + "\"");             // one run, one replacement
    EXPECT_EQ(literal("\xf0\x9f\x98"
                      "a"),
              "\"" + r + "a\"");
    EXPECT_EQ(literal("\xe2\x82\n"), "\"" + r + "\\n\"");
    EXPECT_EQ(literal("\xf4\x90\x80\x80"), "\"" + r + r + r + r + "\"");
}

TEST(JsonWriter, NamesAreEscapedToo) {
    std::string out;
    {
        writer w{out};
        w.begin_object();
        w.member("a\"\n\xff", 1);
        w.end_object();
    }
    EXPECT_EQ(out, "{\"a\\\"\\n\xef\xbf\xbd\":1}");
}

#ifndef NDEBUG
TEST(JsonWriterDeathTest, UnbalancedUseAsserts) {
    EXPECT_DEATH(
        {
            std::string out;
            writer w{out};
            w.begin_object();
        },
        "");
    EXPECT_DEATH(
        {
            std::string out;
            writer w{out};
            w.begin_object();
            w.end_array();
        },
        "");
    EXPECT_DEATH(
        {
            std::string out;
            writer w{out};
            w.end_object();
        },
        "");
    EXPECT_DEATH(
        {
            std::string out;
            writer w{out};
            w.begin_object();
            w.element(1);
            w.end_object();
        },
        "");
    EXPECT_DEATH(
        {
            std::string out;
            writer w{out};
            w.begin_array();
            w.key("a");
            w.element(1);
            w.end_array();
        },
        "");
    EXPECT_DEATH(
        {
            std::string out;
            writer w{out};
            w.begin_object();
            w.key("a");
            w.end_object();
        },
        "");
    EXPECT_DEATH(
        {
            std::string out;
            writer w{out};
            w.element(1);
            w.element(2);
        },
        "");
}
#endif

// --- properties ---

auto any_string() -> rc::Gen<std::string> {
    return rc::gen::oneOf(
        rc::gen::string<std::string>(),
        rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
                         std::vector<std::string>{"a", "\"", "\\", "\n", "\x01", "\xc3\xa9",
                                                  "\xe2\x82\xac", "\xf0\x9f\x98\x80", " ", "/"})),
                     [](const std::vector<std::string>& parts) {
                         std::string out;
                         for (const auto& p : parts) out += p;
                         return out;
                     }));
}

auto clean_string() -> rc::Gen<std::string> {
    return rc::gen::map(any_string(), [](std::string s) {
        while (!wire::is_utf8(s)) s.pop_back();
        return s;
    });
}

auto tree(int depth) -> rc::Gen<value> {
    const auto scalar = rc::gen::oneOf(
        rc::gen::just(value{}),
        rc::gen::map(rc::gen::arbitrary<bool>(), [](bool b) { return value{b}; }),
        rc::gen::map(rc::gen::arbitrary<std::int64_t>(), [](std::int64_t i) { return value{i}; }),
        rc::gen::map(rc::gen::arbitrary<std::uint64_t>(), [](std::uint64_t i) { return value{i}; }),
        rc::gen::map(rc::gen::elementOf(std::vector<std::string>{"1.5", "-0", "1e9", "0.10",
                                                                 "18446744073709551616"}),
                     [](const std::string& s) { return *wire::json::make_number(s); }),
        rc::gen::map(clean_string(), [](const std::string& s) { return value{s}; }));
    if (depth == 0) return scalar;
    const auto items = rc::gen::scale(0.3, rc::gen::container<std::vector<value>>(
                                               rc::gen::lazy([=] { return tree(depth - 1); })));
    const auto list = rc::gen::map(items, [](std::vector<value> v) { return value{std::move(v)}; });
    const auto members = rc::gen::map(items, [](const std::vector<value>& v) {
        wire::json::object out;
        for (const auto& item : v)
            out.push_back({"m\n\xc3\xa9" + std::to_string(out.size()), item});
        return value{std::move(out)};
    });
    return rc::gen::oneOf(scalar, list, members);
}

RC_GTEST_PROP(JsonWriter, WhatIsWrittenReadsBackEqual, ()) {
    const auto written = *tree(3);
    const auto text = wire::json::to_text(written);
    wire::json::limits bounds;
    bounds.form = wire::json::numbers::any;
    const auto out = wire::json::read(text, bounds);
    RC_ASSERT(out.has_value());
    RC_ASSERT(*out == written);
    RC_ASSERT(wire::json::to_text(*out) == text);
}

RC_GTEST_PROP(JsonWriter, AnyBytesBecomeAReadableString, ()) {
    const auto bytes = *any_string();
    const auto text = literal(bytes);
    RC_ASSERT(wire::is_utf8(text));
    RC_ASSERT(text.find('\n') == std::string::npos); // one line stays one line
    const auto out = wire::json::read(text);
    RC_ASSERT(out.has_value());
    if (wire::is_utf8(bytes)) RC_ASSERT(*out->as_string() == bytes);
}

} // namespace
