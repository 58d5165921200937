// The outline accepts what the reader accepts, and refuses what it refuses; its slices are the
// literal text of what the reader made.
#include "json_texts.hpp"
#include <glove/wire/json.hpp>
#include <glove/wire/json_outline.hpp>
#include <glove/wire/json_writer.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <wire/repeated_names.hpp>

namespace {

using namespace glove;
using test::repeat;
using wire::json::kind;
using wire::json::limits;
using wire::json::outline;
using wire::json::read;
using wire::json::slice;
using wire::json::value;

auto wide() -> limits {
    limits out;
    out.form = wire::json::numbers::any;
    out.depth = wire::json::max_depth;
    return out;
}

auto step_of(std::string_view text, const limits& bounds = wide()) -> std::string {
    outline out;
    const auto done = out.read(text, bounds);
    if (done) return "accepted";
    EXPECT_TRUE(out.members().empty());
    return std::string{done.error().step};
}

auto step_of_read(std::string_view text, const limits& bounds = wide()) -> std::string {
    const auto out = read(text, bounds);
    return out ? "accepted" : std::string{out.error().step};
}

// Wrapped, because the outermost value is an object.
auto member(std::string_view text) -> std::string {
    return std::string{"{\"m\":"}.append(text).append("}");
}

void expect_slices(std::span<const slice> found, const value& made, std::string_view text,
                   const outline& all, bool outermost) {
    const auto& members = *made.as_object();
    ASSERT_EQ(found.size(), members.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto& at = found[i];
        EXPECT_EQ(at.name, members[i].name);
        EXPECT_EQ(at.type, members[i].data.type());
        EXPECT_GE(at.text.data(), text.data());
        EXPECT_LE(at.text.data() + at.text.size(), text.data() + text.size());
        EXPECT_EQ(read(at.text, wide()).value(), members[i].data);
        EXPECT_EQ(std::string_view{" \t\r\n"}.find(at.text.front()), std::string_view::npos);
        EXPECT_EQ(std::string_view{" \t\r\n"}.find(at.text.back()), std::string_view::npos);
        if (at.type == kind::string) {
            EXPECT_EQ(wire::json::decoded_string(at.text), *members[i].data.as_string());
        }
        const auto inside = all.inside(at);
        if (outermost && at.type == kind::object)
            expect_slices(inside, members[i].data, text, all, false);
        else if (!inside.empty()) FAIL();
    }
}

// Both judge alike, and what both accept has the same members.
void expect_alike(std::string_view text, const limits& bounds = wide()) {
    outline out;
    const auto mine = out.read(text, bounds);
    const auto theirs = read(text, bounds);
    const bool is_object = theirs && theirs->type() == kind::object;
    ASSERT_EQ(mine.has_value(), is_object) << text;
    if (mine) expect_slices(out.members(), *theirs, text, out, true);
}

TEST(JsonOutline, MembersOfTwoLevelsAreFound) {
    const std::string text =
        " { \"a\" : {\"x\" : [1, {\"y\":2} ],\"z\":{\"deep\":1}} ,\"b,}\\\"\":\"q\\\",}\" ,"
        "\"c\":null\t,\"d\":[{\"in\":1}],\"e\":-1.5e3,\"f\":true,\"g\":{ } }\n";
    outline out;
    ASSERT_TRUE(out.read(text, wide()));
    ASSERT_EQ(out.members().size(), 7U);
    const auto* const a = out.find("a");
    ASSERT_NE(a, nullptr);
    EXPECT_EQ(a->text, "{\"x\" : [1, {\"y\":2} ],\"z\":{\"deep\":1}}");
    ASSERT_EQ(out.inside(*a).size(), 2U);
    EXPECT_EQ(out.find_inside(*a, "x")->text, "[1, {\"y\":2} ]");
    EXPECT_EQ(out.find_inside(*a, "z")->text, "{\"deep\":1}");
    EXPECT_EQ(out.find_inside(*a, "deep"), nullptr);
    EXPECT_EQ(out.find("b,}\"")->text, "\"q\\\",}\"");
    EXPECT_EQ(out.find("d")->type, kind::array);
    EXPECT_TRUE(out.inside(*out.find("d")).empty());
    EXPECT_EQ(out.find("e")->type, kind::number);
    EXPECT_EQ(out.find("f")->type, kind::boolean);
    EXPECT_TRUE(out.inside(*out.find("g")).empty());
    EXPECT_EQ(out.find("x"), nullptr);
    expect_alike(text);
}

TEST(JsonOutline, AnOutlineIsReusedAndForgets) {
    outline out;
    ASSERT_TRUE(out.read(R"({"a":{"b":1},"\u0063":2})", wide()));
    ASSERT_TRUE(out.read(R"({"d":{"\u0065":1}})", wide()));
    ASSERT_EQ(out.members().size(), 1U);
    EXPECT_EQ(out.inside(out.members()[0])[0].name, "e");
    EXPECT_FALSE(out.read("{", wide()));
    EXPECT_TRUE(out.members().empty());
    ASSERT_TRUE(out.read(R"({"\u0066":{"\u0067":1}})", wide()));
    const outline moved{std::move(out)};
    EXPECT_EQ(moved.members()[0].name, "f");
    EXPECT_EQ(moved.inside(moved.members()[0])[0].name, "g");
}

TEST(JsonOutline, ManyNamesWithEscapesStayWhereTheyAre) {
    std::string text = "{\"o\":{";
    for (int i = 0; i < 900; ++i)
        text += (i == 0 ? "\"\\u0061" : ",\"\\u0061") + std::to_string(i) + "\":1";
    text += "}}";
    outline out;
    for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(out.read(text, wide()));
        const auto found = out.inside(out.members()[0]);
        ASSERT_EQ(found.size(), 900U);
        for (std::size_t i = 0; i < found.size(); ++i)
            EXPECT_EQ(found[i].name, "a" + std::to_string(i));
        ASSERT_TRUE(out.read(R"({"\n":1})", wide()));
    }
}

TEST(JsonOutline, MemoryOfAnEarlierTextIsNoReasonToMoveNames) {
    outline out;
    const auto longer = std::string(200, 'l');
    for (const std::size_t earlier : {1U, 10U, 50U, 190U}) {
        ASSERT_TRUE(out.read("{\"\\n" + std::string(earlier, 'e') + "\":1}", wide()));
        ASSERT_TRUE(out.read("{\"\\u0061\":1,\"\\u0062" + longer + "\":2}", wide()));
        EXPECT_EQ(out.members()[0].name, "a");
        EXPECT_EQ(out.members()[1].name, "b" + longer);
    }
}

TEST(JsonOutline, TheOutermostValueIsAnObject) {
    for (const auto* text : {"", " ", "1", "null", "\"a\"", "[]", "[{}]", "true", "{", "}", "{}{}",
                             "{} x", "{},", "\xef\xbb\xbf{}"})
        EXPECT_EQ(step_of(text), "json.syntax") << text;
    EXPECT_EQ(step_of({}), "json.syntax");
    EXPECT_EQ(step_of(" {} \r\n\t"), "accepted");
}

// --- the same faults as the reader's ---

TEST(JsonOutline, FaultsOfSyntaxAreRefusedAsTheReaderDoes) {
    using namespace std::string_view_literals;
    const std::string_view rows[] = {
        "/**/1",
        "[1,/**/2]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1,,2]",
        "[",
        "]",
        "[1}",
        "{\"a\":1]",
        "{\"a\":1,}",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        "{null:1}",
        "{\"a",
        "\"",
        "\"a",
        "\"\\",
        "\"\\\"",
        "'a'",
        "nul",
        "nulll",
        "NULL",
        "True",
        "tru",
        "falsy",
        "undefined",
        "NaN",
        "Infinity",
        "-Infinity",
        "01",
        "00",
        "-01",
        "+1",
        ".5",
        "5.",
        "-",
        "-.5",
        "1e",
        "1e+",
        "1.e1",
        "0x10",
        "1_0",
        "--1",
        "\"\t\"",
        "\"\n\"",
        "\"\x1f\"",
        "\"\0\""sv,
        "\"\\x41\"",
        "\"\\a\"",
        "\"\\'\"",
        "\"\\U0041\"",
        "\"\\u\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\u{41}\"",
        "\"\\\0\""sv,
        R"("\ud800")",
        R"("\udc00")",
        R"("\ud800\ud800")",
        R"("\ud800x")",
        R"("\udfff\ud800")",
        R"("\ud83d\n")",
        R"({"\ud800":1})",
        R"("\ud83d\u0041")",
        R"("\ud83d\ude0")",
        "\v1",
        "1\0"sv,
        "\0"sv,
    };
    for (const auto row : rows) {
        EXPECT_EQ(step_of(member(row)), "json.syntax") << row;
        EXPECT_EQ(step_of_read(member(row)), "json.syntax") << row;
    }
    EXPECT_EQ(step_of(member(R"("\ud83d\ude00")")), "accepted");
}

TEST(JsonOutline, StringsThatAreNotUtf8AreRefusedWhereverTheyStand) {
    const std::string_view bad[] = {"\x80",
                                    "\xbf",
                                    "\xc0\x80",
                                    "\xc1\xbf",
                                    "\xc3",
                                    "\xc3(",
                                    "\xe0\x80\x80",
                                    "\xe0\x9f\xbf",
                                    "\xe2\x82",
                                    "\xe2\x28\xa1",
                                    "\xe2\x82\x28",
                                    "\xed\xa0\x80",
                                    "\xed\xbf\xbf",
                                    "\xf0\x80\x80\x80",
                                    "\xf0\x8f\xbf\xbf",
                                    "\xf0\x9f",
                                    "\xf4\x90\x80\x80",
                                    "\xf5\x80\x80",
                                    "\xf8\x88\x80\x80",
                                    "\xfe",
                                    "\xff"};
    const std::string_view good[] = {"\xc2\x80",         "\xdf\xbf",        "\xe0\xa0\x80",
                                     "\xed\x9f\xbf",     "\xee\x80\x80",    "\xef\xbf\xbf",
                                     "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
    for (std::size_t before = 0; before < 70; ++before)
        for (const std::string_view after :
             {"", "a", "\xc3\xa9", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
            for (const std::string_view lead : {"a", "\xe2\x82\xac", "\\n"}) {
                const auto literal = [&](std::string_view part) {
                    return std::string{"\""} + repeat(lead, before) + std::string{part} +
                           std::string{after} + "\"";
                };
                for (const auto part : bad)
                    ASSERT_EQ(step_of(member(literal(part))), "json.syntax") << before;
                for (const auto part : good)
                    ASSERT_EQ(step_of(member(literal(part))), "accepted") << before;
                ASSERT_EQ(step_of("{" + literal(bad[0]) + ":1}"), "json.syntax");
            }
}

TEST(JsonOutline, EveryByteInAStringIsJudgedAsTheReaderDoes) {
    for (int c = 0; c < 256; ++c)
        for (std::size_t before = 0; before < 40; ++before) {
            const auto text = member("\"" + std::string(before, 'a') + static_cast<char>(c) +
                                     std::string(9, 'b') + "\"");
            ASSERT_EQ(step_of(text), step_of_read(text)) << c;
            const auto escape = member("\"" + std::string(before, 'a') + '\\' +
                                       static_cast<char>(c) + std::string(9, 'b') + "\"");
            ASSERT_EQ(step_of(escape), step_of_read(escape)) << c;
        }
}

TEST(JsonOutline, RepeatedNamesAreRefusedAtEveryDepth) {
    for (const auto* text :
         {R"({"a":1,"a":1})", R"({"a":1,"b":2,"a":3})", R"({"x":{"a":1,"a":1}})",
          R"({"x":[[{"x":[{"a":1,"a":1}]}]]})", R"({"a":1,"\u0061":1})", R"({"\u0061":1,"a":1})",
          R"({"x":{"y":{"name":1,"na\u006de":2}}})", R"({"":1,"":1})",
          R"({"a\u0000":1,"a\u0000":1})", R"({"\ud83d\ude00":1,"😀":1})", R"({"\/":1,"/":1})",
          R"({"x":{"a":{"b":1},"a":{"c":1}}})"}) {
        EXPECT_EQ(step_of(text), "json.repeated") << text;
        EXPECT_EQ(step_of_read(text), "json.repeated") << text;
    }
    EXPECT_EQ(step_of(R"({"a":{"a":{"a":{"a":1}}},"b":[{"a":1},{"a":1}],"A":1,"a ":1})"),
              "accepted");
    EXPECT_EQ(step_of(R"({"a":1,"\\u0061":1})"), "accepted");
}

TEST(JsonOutline, ARepeatedNameAmongManyIsFoundAndNamed) {
    for (const std::size_t count : {2U, 11U, 12U, 13U, 14U, 100U, 1000U}) {
        std::string text = "{\"o\":[{";
        for (std::size_t i = 0; i + 1 < count; ++i) text += "\"key" + std::to_string(i) + "\":0,";
        EXPECT_EQ(step_of(text + "\"last\":0}]}"), "accepted");
        for (const auto* twin : {"\"key0\":0}]}", "\"\\u006bey0\":0}]}"}) {
            outline out;
            const auto done = out.read(text + twin, wide());
            ASSERT_FALSE(done) << count;
            EXPECT_EQ(done.error().step, "json.repeated");
            EXPECT_NE(done.error().detail.find("\"key0\""), std::string::npos);
        }
    }
}

struct colliding {
    auto operator()(std::string_view) const -> std::uint64_t { return 7; }
};

TEST(JsonOutline, NamesThatCollideAreStillJudged) {
    std::vector<std::string> texts;
    for (int i = 0; i < 20'000; ++i) texts.push_back("name" + std::to_string(i));
    std::vector<std::string_view> names{texts.begin(), texts.end()};
    wire::json::repeated_names<colliding> found;
    EXPECT_EQ(found.find(names), nullptr);
    names.push_back(texts[4711]);
    ASSERT_NE(found.find(names), nullptr);
    EXPECT_EQ(*found.find(names), "name4711");
}

TEST(JsonOutline, NumbersAreJudgedAsTheReaderDoes) {
    limits integers;
    for (const auto* text : {"0",
                             "1",
                             "-1",
                             "-0",
                             "0.0",
                             "1.0",
                             "1e0",
                             "1E5",
                             "1e-5",
                             "-1.50",
                             "18446744073709551615",
                             "18446744073709551616",
                             "9223372036854775807",
                             "9223372036854775808",
                             "-9223372036854775808",
                             "-9223372036854775809",
                             "0.1234567890123456789",
                             "1e400",
                             "123456789012345678901234567",
                             "0e1",
                             "1.0e+10",
                             "100000000000000000.5",
                             "1e99999999999",
                             "1e999999999",
                             "1e1000000000",
                             "1e-999999999",
                             "1e-1000000000",
                             "1e2147483647",
                             "1e0000000000000001",
                             "1e00000000001000000000",
                             "12345678901234567890123456789012",
                             "123456789012345678901234567890123"}) {
        for (const auto& bounds : {integers, wide()}) {
            EXPECT_EQ(step_of(member(text), bounds), step_of_read(member(text), bounds)) << text;
            expect_alike(member(text), bounds);
        }
        outline out;
        const auto made = read(text, wide());
        ASSERT_EQ(out.read(member(text), wide()).has_value(), made.has_value());
        EXPECT_TRUE(!made || out.members()[0].type == made->type()) << text;
    }
    EXPECT_EQ(step_of(member("1e999999999")), "accepted");
    EXPECT_EQ(step_of(member("1e1000000000")), "json.number");
}

// --- limits: n is accepted, n + 1 is not ---

TEST(JsonOutline, EveryLimitStopsAtOneMore) {
    struct row {
        std::size_t limits::* which;
        std::size_t bound;
        std::string fits, exceeds;
        std::string_view step;
    };
    const row rows[] = {
        {&limits::bytes, 10, R"({"a":1234})", R"({"a":12345})", "json.size"},
        {&limits::depth, 0, "", "{}", "json.depth"},
        {&limits::depth, 3, R"({"a":[{},[],{}]})", R"({"a":[{"b":[]}]})", "json.depth"},
        {&limits::depth, 1000, member(repeat("[", 255) + repeat("]", 255)),
         member(repeat("[", 256) + repeat("]", 256)), "json.depth"},
        {&limits::depth, 1000, R"({"a":1})", repeat("{\"a\":", 200'000), "json.depth"},
        {&limits::members, 2, R"({"a":1,"b":{"a":1,"b":2}})", R"({"a":1,"b":2,"c":3})",
         "json.members"},
        {&limits::members, 2, R"({"x":[{"a":1,"b":2}]})", R"({"x":[{"a":1,"b":2,"c":3}]})",
         "json.members"},
        {&limits::elements, 2, R"({"a":[[1,2],[3,4]]})", R"({"a":[1,2,null]})", "json.elements"},
        {&limits::elements, 2, R"({"a":[1,2]})", R"({"a":[1,2,[]]})", "json.elements"},
        {&limits::elements, 2, R"({"a":["",{}]})", R"({"a":["",{},3]})", "json.elements"},
        {&limits::values, 4, R"({"a":[{},1]})", R"({"a":[{},1,true]})", "json.values"},
        {&limits::values, 4, R"({"a":["",1]})", R"({"a":["",1,""]})", "json.values"},
        {&limits::values, 4, R"({"a":["",{}]})", R"({"a":["",{},{}]})", "json.values"},
        {&limits::string_bytes, 4, R"({"abcd":"\u0041\u0041\u0041\u0041"})",
         R"({"a":"\u0041\u0041\u0041\u0041\u0041"})", "json.string"},
        {&limits::string_bytes, 4, "{\"a\":\"\xf0\x9f\x98\x80\"}", "{\"a\":\"\xf0\x9f\x98\x80.\"}",
         "json.string"},
        {&limits::string_bytes, 4, R"({"a":"\ud83d\ude00"})", R"({"a":"\ud83d\ude00.."})",
         "json.string"},
        {&limits::string_bytes, 4, R"({"a":"\u00e9\u00e9"})", R"({"a":"\u20ac\u00e9"})",
         "json.string"},
        {&limits::string_bytes, 4, R"({"abcd":1})", R"({"abcde":1})", "json.string"},
        {&limits::number_bytes, 5, R"({"a":12345})", R"({"a":123456})", "json.number"},
        {&limits::number_bytes, 5, R"({"a":-1.50})", R"({"a":-1.500})", "json.number"},
    };
    for (const auto& at : rows) {
        auto bounds = wide();
        bounds.*at.which = at.bound;
        EXPECT_TRUE(at.fits.empty() || step_of(at.fits, bounds) == "accepted") << at.fits;
        EXPECT_EQ(step_of(at.exceeds, bounds), at.step) << at.exceeds.substr(0, 100);
        EXPECT_EQ(step_of_read(at.exceeds, bounds), at.step) << at.exceeds.substr(0, 100);
        outline out;
        EXPECT_EQ(out.read(at.exceeds, bounds).error().code, errc::limit_exceeded);
    }
}

TEST(JsonOutline, EscapedNulFollowsItsPolicy) {
    auto bounds = wide();
    EXPECT_EQ(step_of(R"({"a":"\u0000"})", bounds), "accepted");
    bounds.zero = wire::json::nul::refused;
    EXPECT_EQ(step_of(R"({"a":"\u0000"})", bounds), "json.nul");
    EXPECT_EQ(step_of(R"({"x":[{"a\u0000":1}]})", bounds), "json.nul");
    EXPECT_EQ(step_of(R"({"a":"\\u0000"})", bounds), "accepted");
}

TEST(JsonOutline, ErrorsNameOffsetAndPathAndNoContent) {
    const auto detail_of = [](std::string_view text) {
        outline out;
        return out.read(text, limits{}).error().detail;
    };
    EXPECT_EQ(detail_of(R"({"a":{"b":[1,2,x]}})"), "byte 15 at $.a.b[2]: syntax error");
    EXPECT_EQ(detail_of(R"({"a":[{},{"b":1.5}]})"), "byte 17 at $.a[1].b: not a 64-bit integer");
    EXPECT_EQ(detail_of(R"({"a":1} 2)"), "byte 8 at $: something follows the value");
    EXPECT_EQ(detail_of(R"({"a":[1)"), "byte 7 at $.a[1]: the text ends early");
    EXPECT_EQ(detail_of("[1]"), "byte 0 at $: the text is not an object");
    for (const char c : detail_of("{\"a\\n\\u001b[31m\":1,\"a\\n\\u001b[31m\":2}"))
        EXPECT_TRUE(c >= ' ' && c <= '~');
}

TEST(JsonOutline, DecodingUncheckedTextStaysInside) {
    for (const auto* text : {"", "\"", "a", "\"\\\"", "\"\\u\"", "\"\\u12\"", "\"\\ud800\"",
                             "\"\\ud800\\u\"", "\"\\ud800\\udc0\"", "\"\\q\""})
        EXPECT_LE(wire::json::decoded_string(text).size(), std::string_view{text}.size());
    EXPECT_EQ(wire::json::decoded_string(R"("a\n\u00e9\u20ac\ud83d\ude00\\z")"), "a\né€😀\\z");
}

TEST(JsonOutline, TellsWhatCouldBeTakenForTheEndOfALine) {
    const auto breaks = [](std::string_view text) {
        outline out;
        EXPECT_TRUE(out.read(text, wide())) << text;
        return out.has_line_breaks();
    };
    for (const auto* text :
         {"{\r}", "{}\n", "\r{}", "{\"a\":\r1}", "{\"a\":[1\n]}", "{\"a\":\"\xe2\x80\xa8\"}",
          "{\"a\":\"x\xc3\xa9\xe2\x80\xa9\"}", "{\"\xe2\x80\xa8\":1}",
          "{\"a\":[{\"b\":\"\xe2\x80\xa9\"}]}", "{        \r        \"a\":1}"})
        EXPECT_TRUE(breaks(text)) << text;
    for (const auto* text :
         {"{ \t}", R"({"a":"\r\n\u2028\u2029"})",
          "{\"a\":\"\xe2\x80\xa7\xe2\x80\xaa\xe2\x81\xa8\xe3\x80\xa8\"}", "{\"a\":\"\xc2\x85\"}"})
        EXPECT_FALSE(breaks(text)) << text;
    outline again;
    ASSERT_TRUE(again.read("{\r}", wide()));
    ASSERT_TRUE(again.read("{}", wide()));
    EXPECT_FALSE(again.has_line_breaks()); // of the last text alone
}

auto rewritten(std::string_view text) -> std::string {
    std::string out = "before";
    wire::json::append_rewritten(out, text);
    return out.substr(6);
}

TEST(AppendRewritten, WritesAsTheWriterDoes) {
    for (const auto* text :
         {R"({ "a" : [ 1 , -2 , 1.50e+1 , true,false ,null ] , "b":{ } ,"c" :[ ] })",
          R"("\/\u0041\u00e9\u0000\n\b")", R"("\"\\")", R"({"\u0061 b":"  x  "})",
          "18446744073709551616", "-0", "\"\x7f\"", R"("\ud83d\ude00")", R"({"a":"\\"})"})
        EXPECT_EQ(rewritten(text), wire::json::to_text(read(text, wide()).value())) << text;
    // What was never read is no reason to leave the text.
    for (const auto* text : {"", "\"", "\"\\", "\"a\\\"", "\"\\u"})
        EXPECT_LE(rewritten(text).size(), 2 * std::string_view{text}.size() + 2) << text;
}

// --- properties ---

auto some_text() -> rc::Gen<std::string> {
    return rc::gen::container<std::string>(rc::gen::element(
        'a', 'b', '"', '\\', '\n', '\x01', '\xc3', '\xa9', '\xe2', '\x82', '\xac', '/', '{', ' '));
}

using named_values = std::vector<std::pair<std::string, value>>;

auto as_object(const named_values& made) -> value {
    wire::json::object out;
    for (const auto& [name, data] : made) out.push_back({name, data});
    return value{std::move(out)};
}

template<class Make> auto members_of(Make make) -> rc::Gen<named_values> {
    return rc::gen::container<named_values>(rc::gen::pair(some_text(), rc::gen::lazy(make)));
}

auto some_value(int depth) -> rc::Gen<value> {
    using rc::gen::map;
    auto text = map(some_text(), [](std::string made) { return value{std::move(made)}; });
    auto integer = map(rc::gen::arbitrary<std::int64_t>(), [](std::int64_t n) { return value{n}; });
    auto plain = rc::gen::oneOf(text, integer, rc::gen::element(value{}, value{true}));
    if (depth == 0) return plain;
    auto elements = map(rc::gen::container<std::vector<value>>(
                            rc::gen::lazy([depth] { return some_value(depth - 1); })),
                        [](std::vector<value> made) { return value{wire::json::array{made}}; });
    auto members = map(members_of([depth] { return some_value(depth - 1); }), as_object);
    return rc::gen::oneOf(plain, elements, members, members);
}

// What the writer writes, with some bytes changed, is judged alike. Writing may make names equal.
RC_GTEST_PROP(JsonOutlineProperties, JudgesAsTheReaderDoes, ()) {
    const auto tree = as_object(*rc::gen::scale(0.2, members_of([] { return some_value(3); })));
    auto text = wire::json::to_text(tree);
    expect_alike(text);
    RC_ASSERT(rewritten(text) == text);
    const auto edits = *rc::gen::inRange(0, 4);
    for (int i = 0; i < edits; ++i) {
        const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
        const auto c = *rc::gen::element('"', '\\', '{', '}', '[', ']', ',', ':', ' ', '0', '-',
                                         'e', '.', 'u', 'n', '\0', '\x80', '\xe2', '\n');
        switch (*rc::gen::inRange(0, 4)) {
        case 0: text[at] = c; break;
        case 1: text.insert(at, 1, c); break;
        case 2: text.erase(at, 1); break;
        default: text.resize(at); break;
        }
        expect_alike(text);
        if (const auto made = read(text, wide()))
            RC_ASSERT(rewritten(text) == wire::json::to_text(*made));
        if (text.empty()) break;
    }
    RC_ASSERT(!testing::Test::HasFailure());
}

} // namespace
