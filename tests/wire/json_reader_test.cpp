// The reader: what is not exactly one strict JSON value is refused, and each limit stops at n + 1.
#include "json_texts.hpp"
#include <glove/wire/json.hpp>
#include <glove/wire/json_writer.hpp>
#include <gtest/gtest.h>

namespace {

using namespace glove;
using test::repeat;
using wire::json::limits;
using wire::json::read;
using wire::json::value;

auto step_of(std::string_view text, const limits& bounds = {}) -> std::string {
    const auto out = read(text, bounds);
    return out ? "accepted" : std::string{out.error().step};
}

auto quote(std::string_view text) -> std::string {
    std::string out{'"'};
    return out.append(text).append("\"");
}

auto nested(std::size_t depth) -> std::string { return repeat("[", depth) + repeat("]", depth); }

struct refused {
    std::string_view text;
    std::string_view step;
};

TEST(JsonReader, TextThatIsNotStrictJsonIsRefused) {
    using namespace std::string_view_literals;
    const refused rows[] = {
        {"", "json.syntax"},
        {" ", "json.syntax"},
        {"\n\t", "json.syntax"},
        {"\xef\xbb\xbf{}", "json.syntax"}, // a byte order mark
        {"\xff\xfe{\0}\0"sv, "json.syntax"},
        {"{} x", "json.syntax"},
        {"{}{}", "json.syntax"},
        {"1 2", "json.syntax"},
        {"{}\0"sv, "json.syntax"},
        {"\0{}"sv, "json.syntax"},
        {"{}\v", "json.syntax"},
        {"/**/{}", "json.syntax"},
        {"{}//x", "json.syntax"},
        {"{}/*x*/", "json.syntax"},
        {"[1,/**/2]", "json.syntax"},
        {"[1,]", "json.syntax"},
        {"[,1]", "json.syntax"},
        {"[1 2]", "json.syntax"},
        {"[1,,2]", "json.syntax"},
        {"{\"a\":1,}", "json.syntax"},
        {"{,}", "json.syntax"},
        {"{\"a\"}", "json.syntax"},
        {"{\"a\":}", "json.syntax"},
        {"{\"a\" 1}", "json.syntax"},
        {"{\"a\":1 \"b\":2}", "json.syntax"},
        {"{a:1}", "json.syntax"},
        {"{'a':1}", "json.syntax"},
        {"{1:1}", "json.syntax"},
        {"{null:1}", "json.syntax"},
        {"[", "json.syntax"},
        {"{", "json.syntax"},
        {"]", "json.syntax"},
        {"}", "json.syntax"},
        {"[1}", "json.syntax"},
        {"{\"a\":1]", "json.syntax"},
        {"[1", "json.syntax"},
        {"{\"a\":1", "json.syntax"},
        {"{\"a", "json.syntax"},
        {"{\"a\":", "json.syntax"},
        {"\"", "json.syntax"},
        {"\"a", "json.syntax"},
        {"\"\\", "json.syntax"},
        {"\"\\\"", "json.syntax"},
        {"'a'", "json.syntax"},
        {"nul", "json.syntax"},
        {"nulll", "json.syntax"},
        {"NULL", "json.syntax"},
        {"True", "json.syntax"},
        {"tru", "json.syntax"},
        {"undefined", "json.syntax"},
        {"NaN", "json.syntax"},
        {"nan", "json.syntax"},
        {"Infinity", "json.syntax"},
        {"-Infinity", "json.syntax"},
        {"inf", "json.syntax"},
        {"01", "json.syntax"},
        {"00", "json.syntax"},
        {"+1", "json.syntax"},
        {".5", "json.syntax"},
        {"5.", "json.syntax"},
        {"-", "json.syntax"},
        {"-.5", "json.syntax"},
        {"1e", "json.syntax"},
        {"1e+", "json.syntax"},
        {"1.e1", "json.syntax"},
        {"0x10", "json.syntax"},
        {"1_000", "json.syntax"},
        {"1,000", "json.syntax"},
        {"--1", "json.syntax"},
        {"\"\t\"", "json.syntax"}, // control characters need an escape
        {"\"\n\"", "json.syntax"},
        {"\"\x1f\"", "json.syntax"},
        {"\"\0\""sv, "json.syntax"},
        {"\"\\x41\"", "json.syntax"},
        {"\"\\a\"", "json.syntax"},
        {"\"\\'\"", "json.syntax"},
        {"\"\\U0041\"", "json.syntax"},
        {"\"\\u\"", "json.syntax"},
        {"\"\\u12\"", "json.syntax"},
        {"\"\\u12g4\"", "json.syntax"},
        {"\"\\u{41}\"", "json.syntax"},
    };
    limits any_number;
    any_number.form = wire::json::numbers::any;
    for (const auto& row : rows) {
        EXPECT_EQ(step_of(row.text), row.step) << row.text;
        EXPECT_EQ(step_of(row.text, any_number), row.step) << row.text;
    }
}

TEST(JsonReader, NoTextAtAllIsRefused) { EXPECT_EQ(step_of(std::string_view{}), "json.syntax"); }

TEST(JsonReader, StringsThatAreNotUtf8AreRefused) {
    const std::string_view rows[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc3",
        "\xc3(",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xe2\x82",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x9f",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80",
        "\xf8\x88\x80\x80",
        "\xfe",
        "\xff",
    };
    for (const auto row : rows) {
        const auto text = std::string{row};
        EXPECT_EQ(step_of(quote(text)), "json.syntax");
        EXPECT_EQ(step_of("{\"" + text + "\":1}"), "json.syntax");
        // Beyond the parser's vector width, and after an escape.
        EXPECT_EQ(step_of("\"" + std::string(40, 'a') + text + std::string(40, 'a') + "\""),
                  "json.syntax");
        EXPECT_EQ(step_of(quote("\\n" + text)), "json.syntax");
    }
}

TEST(JsonReader, LoneSurrogatesAreRefusedAndPairsAreJoined) {
    for (const auto* text :
         {R"("\ud800")", R"("\udc00")", R"("\ud800\ud800")", R"("\ud800x")", R"("\udfff\ud800")",
          R"("\ud83d\n")", R"({"\ud800":1})", R"("\ud83d\u0041")"})
        EXPECT_EQ(step_of(text), "json.syntax") << text;
    EXPECT_EQ(read(R"("\ud83d\ude00")").value(), value{"\xf0\x9f\x98\x80"});
}

TEST(JsonReader, ValuesKeepTheirContentAndOrder) {
    const auto out = read(
        " {\"z\" : [ null,true,false , \"\\u0041\\\"\\\\\\/\\b\\f\\n\\r\\t\" ],\r\n\t\"a\":{}} ");
    ASSERT_TRUE(out) << out.error().detail;
    using wire::json::array;
    using wire::json::object;
    const value expected{
        object{{"z", array{value{}, value{true}, value{false}, value{"A\"\\/\b\f\n\r\t"}}},
               {"a", object{}}}};
    EXPECT_EQ(*out, expected);
    ASSERT_NE(out->find("z"), nullptr);
    EXPECT_EQ(out->find("z")->as_array()->size(), 4U);
    EXPECT_EQ(out->find("y"), nullptr);
    EXPECT_EQ(value{1}.find("z"), nullptr);
}

TEST(JsonReader, EveryKindOfScalarMayStandAlone) {
    EXPECT_EQ(read("null").value(), value{});
    EXPECT_EQ(read("true").value(), value{true});
    EXPECT_EQ(read("false").value(), value{false});
    EXPECT_EQ(read("\"\"").value(), value{""});
    EXPECT_EQ(read("0").value(), value{0});
}

TEST(JsonReader, AccessorsAnswerOnlyForTheirType) {
    EXPECT_EQ(value{true}.as_unsigned(), std::nullopt);
    EXPECT_EQ(value{1}.as_bool(), std::nullopt);
    EXPECT_EQ(value{-1}.as_unsigned(), std::nullopt);
    EXPECT_EQ(value{-1}.as_signed(), -1);
    EXPECT_EQ(value{1}.as_signed(), 1);
    EXPECT_EQ(value{UINT64_MAX}.as_signed(), std::nullopt);
    EXPECT_EQ(value{"1"}.as_unsigned(), std::nullopt);
    EXPECT_EQ(value{}.as_string(), nullptr);
    EXPECT_EQ(value{}.as_object(), nullptr);
    EXPECT_EQ(value{"x"}.type(), wire::json::kind::string);
    EXPECT_EQ(value{-1}.type(), wire::json::kind::integer);
    EXPECT_EQ(value{}.type(), wire::json::kind::null);
}

// --- names ---

TEST(JsonReader, RepeatedMemberAtAnyDepthIsRefused) {
    for (const auto* text : {R"({"a":1,"a":1})", R"({"a":1,"b":2,"a":3})", R"({"x":{"a":1,"a":1}})",
                             R"([[{"x":[{"a":1,"a":1}]}]])", R"({"a":1,"\u0061":1})",
                             R"({"":1,"":1})", R"({"a\u0000":1,"a\u0000":1})"})
        EXPECT_EQ(step_of(text), "json.repeated") << text;
}

TEST(JsonReader, EqualNamesInDifferentObjectsAreAccepted) {
    EXPECT_EQ(step_of(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}],"A":1,"a ":1})"), "accepted");
}

TEST(JsonReader, RepeatedMemberAmongManyIsFoundAndNamed) {
    limits bounds;
    bounds.members = 50'001;
    std::string text = "{";
    for (int i = 0; i < 50'000; ++i) text += "\"key" + std::to_string(i) + "\":0,";
    EXPECT_EQ(step_of(text + "\"last\":0}", bounds), "accepted");
    const auto out = read(text + "\"key777\":0}", bounds);
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().step, "json.repeated");
    EXPECT_NE(out.error().detail.find("key777"), std::string::npos);
}

TEST(JsonReader, HostileNamesDoNotReachTheMessageAsTheyAre) {
    const auto out = read(R"({"a\n\u001b[31m":1,"a\n\u001b[31m":2})");
    ASSERT_FALSE(out);
    for (const char c : out.error().detail) EXPECT_TRUE(c >= ' ' && c <= '~');
    const auto name = std::string(5000, 'n');
    const auto late = read("{\"" + name + "\":[x]}");
    ASSERT_FALSE(late);
    EXPECT_LT(late.error().detail.size(), 200U);
}

TEST(JsonReader, NamesInMessagesArePrintableAndCut) {
    EXPECT_EQ(wire::json::readable_name("a\x1b\x7f\xc3 z"), "a??? z");
    EXPECT_EQ(wire::json::readable_name(std::string(64, 'n')), std::string(64, 'n'));
    EXPECT_EQ(wire::json::readable_name(std::string(65, 'n')), std::string(64, 'n') + "...");
}

// --- numbers ---

TEST(JsonReader, IntegersOf64BitsAreExact) {
    for (const auto* text : {"0", "1", "9", "10", "-1", "9007199254740993", "9223372036854775807",
                             "9223372036854775808", "18446744073709551615", "-9223372036854775808",
                             "1234567890123456789"}) {
        const auto out = read(text);
        ASSERT_TRUE(out) << text;
        EXPECT_EQ(out->type(), wire::json::kind::integer);
        EXPECT_EQ(wire::json::to_text(*out), text);
    }
    EXPECT_EQ(read("18446744073709551615")->as_unsigned(), UINT64_MAX);
    EXPECT_EQ(read("-9223372036854775808")->as_signed(), INT64_MIN);
}

TEST(JsonReader, OtherNumbersAreRefusedUnlessAllowedAndThenKeepTheirText) {
    limits any;
    any.form = wire::json::numbers::any;
    for (const auto* text :
         {"-0", "0.0", "1.0", "1e0", "1E5", "1e-5", "-1.50", "18446744073709551616",
          "-9223372036854775809", "0.1234567890123456789", "1e400", "123456789012345678901234567",
          "0e1", "1.0e+10", "100000000000000000.5"}) {
        EXPECT_EQ(step_of(text), "json.number") << text;
        EXPECT_EQ(step_of("{\"a\":[" + std::string{text} + "]}"), "json.number") << text;
        const auto out = read(text, any);
        ASSERT_TRUE(out) << text << ": " << out.error().detail;
        ASSERT_NE(out->as_number(), nullptr);
        EXPECT_EQ(out->as_number()->text(), text);
        EXPECT_EQ(wire::json::to_text(*out), text);
    }
    EXPECT_EQ(step_of("1e99999999999", any), "json.number");
}

TEST(JsonReader, LeadingZeroAfterTheSignIsRefused) {
    limits any;
    any.form = wire::json::numbers::any;
    for (const auto* text : {"-01", "[-00]", "{\"a\":-012}"}) {
        EXPECT_NE(step_of(text), "accepted") << text;
        EXPECT_EQ(step_of(text, any), "json.syntax") << text;
    }
}

TEST(JsonReader, NumbersMadeByHandFollowTheSameGrammar) {
    using wire::json::make_number;
    for (const auto* text : {"", "-", "01", "1.", ".1", "1e", "1x", " 1", "1 ", "+1", "NaN", "0x1"})
        EXPECT_FALSE(make_number(text)) << text;
    EXPECT_EQ(make_number("5"), value{5});
    EXPECT_EQ(make_number("-5"), value{-5});
    EXPECT_EQ(make_number("1.5").value().as_number()->text(), "1.5");
}

// --- limits: n is accepted, n + 1 is not ---

TEST(JsonReader, BytesAreLimited) {
    limits bounds;
    bounds.bytes = 10;
    EXPECT_EQ(step_of("\"12345678\"", bounds), "accepted");
    EXPECT_EQ(step_of("\"123456789\"", bounds), "json.size");
    EXPECT_EQ(step_of("         1", bounds), "accepted");
    EXPECT_EQ(step_of("          1", bounds), "json.size");
    EXPECT_EQ(read("          1", bounds).error().code, errc::limit_exceeded);
}

TEST(JsonReader, DepthIsLimited) {
    limits bounds;
    bounds.depth = 3;
    EXPECT_EQ(step_of(nested(3), bounds), "accepted");
    EXPECT_EQ(step_of(nested(4), bounds), "json.depth");
    EXPECT_EQ(step_of(R"({"a":{"b":{}}})", bounds), "accepted");
    EXPECT_EQ(step_of(R"({"a":{"b":{"c":[]}}})", bounds), "json.depth");
    EXPECT_EQ(step_of("[[[],[],[]],[[]]]", bounds), "accepted"); // siblings do not add up
    bounds.depth = 0;
    EXPECT_EQ(step_of("1", bounds), "accepted");
    EXPECT_EQ(step_of("[]", bounds), "json.depth");
}

TEST(JsonReader, DepthHasACeilingThatLimitsCannotRaise) {
    limits bounds;
    bounds.depth = 1'000'000;
    EXPECT_EQ(step_of(nested(wire::json::max_depth), bounds), "accepted");
    EXPECT_EQ(step_of(nested(wire::json::max_depth + 1), bounds), "json.depth");
    EXPECT_EQ(step_of(repeat("[", 500'000), bounds), "json.depth");
    EXPECT_EQ(step_of(repeat("{\"a\":", 200'000), bounds), "json.depth");
}

TEST(JsonReader, MembersOfOneObjectAreLimited) {
    limits bounds;
    bounds.members = 2;
    EXPECT_EQ(step_of(R"({"a":1,"b":{"a":1,"b":2}})", bounds), "accepted");
    EXPECT_EQ(step_of(R"({"a":1,"b":2,"c":3})", bounds), "json.members");
    EXPECT_EQ(step_of(R"([{"x":{"a":1,"b":2,"c":3}}])", bounds), "json.members");
}

TEST(JsonReader, ElementsOfOneArrayAreLimited) {
    limits bounds;
    bounds.elements = 2;
    EXPECT_EQ(step_of("[[1,2],[3,4]]", bounds), "accepted");
    for (const auto* text :
         {"[1,2,3]", "[1,2,null]", "[1,2,true]", "[1,2,\"\"]", "[1,2,[]]", "[1,2,{}]", "[[1,2,3]]"})
        EXPECT_EQ(step_of(text, bounds), "json.elements") << text;
}

TEST(JsonReader, ValuesInTheWholeTextAreLimited) {
    limits bounds;
    bounds.values = 4;
    EXPECT_EQ(step_of(R"([{"a":1},[]])", bounds), "accepted");
    EXPECT_EQ(step_of("[1,null,true]", bounds), "accepted");
    for (const auto* text : {R"([{"a":1},[],1])", R"([{"a":1},[],[]])", R"([{"a":1},[],{}])",
                             R"([{"a":1},[],""])", R"([{"a":1},[],null])", R"([{"a":1},[],true])"})
        EXPECT_EQ(step_of(text, bounds), "json.values") << text;
}

TEST(JsonReader, BytesOfAStringOrNameAreLimitedAfterDecoding) {
    limits bounds;
    bounds.string_bytes = 4;
    EXPECT_EQ(step_of(R"({"abcd":"\u0041\u0041\u0041\u0041"})", bounds), "accepted");
    EXPECT_EQ(step_of(R"("\u0041\u0041\u0041\u0041\u0041")", bounds), "json.string");
    EXPECT_EQ(step_of(R"("abcde")", bounds), "json.string");
    EXPECT_EQ(step_of(R"({"abcde":1})", bounds), "json.string");
    EXPECT_EQ(step_of("\"\xf0\x9f\x98\x80\"", bounds), "accepted");
    EXPECT_EQ(step_of("\"\xf0\x9f\x98\x80.\"", bounds), "json.string");
    bounds.string_bytes = 100'000;
    EXPECT_EQ(step_of(quote(repeat("\\n", 100'000)), bounds), "accepted");
    EXPECT_EQ(step_of(quote(repeat("\\n", 100'001)), bounds), "json.string");
}

TEST(JsonReader, LengthOfANumberIsLimited) {
    limits bounds;
    bounds.number_bytes = 5;
    EXPECT_EQ(step_of("12345", bounds), "accepted");
    EXPECT_EQ(step_of("-1234", bounds), "accepted");
    EXPECT_EQ(step_of("123456", bounds), "json.number");
    EXPECT_EQ(step_of("-12345", bounds), "json.number");
    EXPECT_EQ(step_of("[12345,12345]", bounds), "accepted"); // counted for each
    EXPECT_EQ(read("123456", bounds).error().code, errc::limit_exceeded);
}

TEST(JsonReader, EscapedNulFollowsItsPolicy) {
    EXPECT_EQ(read(R"("a\u0000b")").value(), value{std::string("a\0b", 3)});
    limits bounds;
    bounds.zero = wire::json::nul::refused;
    EXPECT_EQ(step_of(R"("a\u0000b")", bounds), "json.nul");
    EXPECT_EQ(step_of(R"({"a\u0000":1})", bounds), "json.nul");
    EXPECT_EQ(step_of(R"("a\\u0000b")", bounds), "accepted");
}

// --- messages and slices ---

TEST(JsonReader, ErrorsNameOffsetAndPath) {
    EXPECT_EQ(read(R"({"a":{"b":[1,2,x]}})").error().detail, "byte 15 at $.a.b[2]: syntax error");
    EXPECT_EQ(read(R"({"a":[{},{"b":1.5}]})").error().detail,
              "byte 17 at $.a[1].b: not a 64-bit integer");
    EXPECT_EQ(read("[1] 2").error().detail, "byte 4 at $: something follows the value");
    EXPECT_EQ(read("[1").error().detail, "byte 2 at $[1]: the text ends early");
}

TEST(JsonReader, SlicesAreTheLiteralTextOfEachMember) {
    const std::string text =
        "{ \"a\" : {\"x\" : [1, 2 ]} ,\"b,}\\\"\":\"q\\\",}\", \"c\":null , \"d\":[\"]\",{}]\n}";
    ASSERT_TRUE(read(text));
    const auto out = wire::json::member_slices(text);
    ASSERT_EQ(out.size(), 4U);
    EXPECT_EQ(out[0], "{\"x\" : [1, 2 ]}");
    EXPECT_EQ(out[1], "\"q\\\",}\"");
    EXPECT_EQ(out[2], "null");
    EXPECT_EQ(out[3], "[\"]\",{}]");
    EXPECT_TRUE(wire::json::member_slices("{}").empty());
    EXPECT_TRUE(wire::json::member_slices("[1]").empty());
}

TEST(JsonReader, ElementSlicesAreTheTextOfElements) {
    const auto out = wire::json::element_slices(R"( [ {"x":[1,"]"]} ,[ ], "a,\"", -1 ] )");
    const std::vector<std::string_view> wanted{R"({"x":[1,"]"]})", "[ ]", R"("a,\"")", "-1"};
    EXPECT_EQ(out, wanted);
    EXPECT_TRUE(wire::json::element_slices(" [ ] ").empty());
    EXPECT_TRUE(wire::json::element_slices(R"({"a":1})").empty());
}

TEST(JsonReader, SlicesOfUncheckedTextStayInside) {
    for (const auto* text : {"", "{", "{\"", "{\"a", "{\"a\\", "{\"a\":", "{\"a\":\"\\", "{\"a\":[",
                             "{\"a\":]", "{\"a\" 1}", "{\"a\":1,", "{1:2}"})
        (void)wire::json::member_slices(text);
    for (const auto* text : {"", "[", "[\"", "[\"a\\", "[1", "[1,", "[[", "[}", "[]]"})
        (void)wire::json::element_slices(text);
}

} // namespace
