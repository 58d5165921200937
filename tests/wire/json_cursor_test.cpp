// What is taken from a text is what the tree of it says, under the same limits; whatever else a
// text says, the error is that of the tree.
#include "both_ways.hpp"
#include "every_rule.hpp"
#include "json_texts.hpp"
#include <algorithm>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace {

using namespace glove;
using namespace std::string_view_literals;
using test::disagreement;
using test::every_fields;
using test::every_rule;
using test::repeat;
using wire::json::limits;

auto good() -> every_rule {
    every_rule out;
    out.below = INT64_MIN;
    out.bark = "rough";
    out.under.deep = -7;
    out.any = "caf\xc3\xa9 \"\\/\b\f\n\r\t\x01\x1f\x7f";
    out.digest = std::string(64, 'a');
    out.large = UINT64_MAX;
    out.maybe_on = true;
    out.note = "";
    out.port = 80;
    out.one = {"/one", test::colour::blue};
    out.other = test::leaf{};
    out.leaves = {{"/x", test::colour::red}, {"/y", test::colour::blue}};
    out.names = {"x", "y", "z"};
    out.table = {{}, {-9}, {1, 2}};
    return out;
}
auto text_of(const every_rule& of) -> std::string { return wire::encode(of, every_fields).value(); }

auto replaced(std::string text, std::string_view what, std::string_view by) -> std::string {
    const auto at = text.find(what);
    EXPECT_NE(at, text.npos) << what;
    return text.replace(at, what.size(), by);
}

// Taken without a tree, and whether it is in the form that is written.
auto how_taken(std::string_view text, const limits& bounds = {}) -> std::string {
    const auto out = wire::take_text(text, every_fields, bounds);
    if (!out) return "not taken";
    return out->is_as_encoded ? "as written" : "otherwise";
}

TEST(JsonCursor, WhatTheEncoderWritesIsTaken) {
    const auto text = text_of(good());
    const auto out = wire::take_text(text, every_fields);
    ASSERT_TRUE(out.has_value());
    EXPECT_EQ(out->data, good());
    EXPECT_TRUE(out->is_as_encoded);
    every_rule least;
    least.names = {"x"};
    EXPECT_EQ(how_taken(text_of(least)), "as written");
    EXPECT_EQ(disagreement(text, every_fields), "");
    EXPECT_EQ(disagreement(text_of(least), every_fields), "");
}

// Each is a legal text of the same value; `taken` says whether it needs no tree.
TEST(JsonCursor, OtherFormsAreToldFromTheOneThatIsWritten) {
    const auto text = text_of(good());
    const struct {
        std::string_view what, by, how;
    } forms[] = {
        {"{\"below\"", " {\"below\"", "otherwise"},
        {"\"on\":false", "\"on\" :\n\tfalse\r", "otherwise"},
        {"[1,2]", "[ 1 , 2 ]", "otherwise"},
        {"\"note\":\"\"", "\"note\":null", "otherwise"},
        {"\"maybe_on\":true,", "", "as written"},
        {"\"port\":80,", "", "as written"},
        {"\"port\":80", "\"port\":443", "otherwise"},
        {"\"port\":80", "\"port\":null", "otherwise"},
        {"\"paint\":\"blue\"", "\"paint\":\"azure\"", "otherwise"},
        {"\"paint\":\"blue\"", "\"paint\":\"bl\\u0075e\"", "otherwise"},
        {"\"name\":", "\"n\\u0061me\":", "not taken"},
        {"\\\\/", "\\\\\\/", "otherwise"},
        {"\\\\/", "\\u005c/", "otherwise"},
        {"\\b", "\\u0008", "otherwise"},
        {"\\u001f", "\\u001F", "otherwise"},
        {"\\u0001", "\\u000b", "as written"},
        {"\\u0001", "\\u0000", "as written"},
        {"\xc3\xa9", "\\u00e9", "otherwise"},
        {"\xc3\xa9", "\xf0\x9f\x98\x80", "as written"},
        {"\xc3\xa9", "\\ud83d\\ude00", "otherwise"},
        {"\"on\":false,\"maybe_on\":true", "\"maybe_on\":true,\"on\":false", "otherwise"},
    };
    for (const auto& one : forms) {
        const auto other = replaced(text, one.what, one.by);
        EXPECT_EQ(how_taken(other), one.how) << other;
        EXPECT_EQ(disagreement(other, every_fields), "") << other;
        EXPECT_TRUE(wire::decode_text(other, every_fields).has_value()) << other;
    }
    EXPECT_EQ(how_taken(text + "\n"), "otherwise");
    EXPECT_EQ(how_taken(replaced(text, std::string(64, 'a'), "")), "as written");
}

TEST(JsonCursor, WhatIsRefusedIsRefusedAsByTheTree) {
    const auto text = text_of(good());
    const struct {
        std::string_view what, by, step;
    } faults[] = {
        {"{\"below\"", "\xef\xbb\xbf{\"below\"", "json.syntax"},
        {"{\"below\"", "[{\"below\"", "json.syntax"},
        {"\"on\":false", "\"on\":false,", "json.syntax"},
        {"\"on\":false", "\"on\":False", "json.syntax"},
        {"\"on\":false", "\"on\":falsee", "json.syntax"},
        {"\"on\":false", "\"on\" false", "json.syntax"},
        {"\"on\":false", "\"on\":0", "wire.type"},
        {"\"on\":false", "\"on\":null", "wire.type"},
        {"\"on\":false", "\"on\":false,\"on\":false", "json.repeated"},
        {"\"on\":false", "\"on\":false,\"o\\u006e\":false", "json.repeated"},
        {"\"on\":false", "\"on\":false,\"off\":false", "wire.unknown"},
        {"\"on\":false,", "", "wire.missing"},
        {"\"path\":\"/one\"", "\"path\":\"/one\",\"path\":\"/one\"", "json.repeated"},
        {"\"path\":\"/one\"", "\"path\":\"/one/\"", "wire.grammar"},
        {"\"path\":\"/one\"", "\"path\":\"/o\\u0000\"", "wire.grammar"},
        {"\"paint\":\"blue\"", "\"paint\":\"green\"", "wire.choice"},
        {"\"paint\":\"blue\"", "\"paint\":\"blue\"\"\"", "json.syntax"},
        {"[1,2]", "[1,2,3]", "wire.length"},
        {"[1,2]", "[1,2,]", "json.syntax"},
        {"[1,2]", "[,1,2]", "json.syntax"},
        {"[1,2]", "[1 2]", "json.syntax"},
        {"[1,2]", "[1,2}", "json.syntax"},
        {"[1,2]", "[1,10]", "wire.range"},
        {"[1,2]", "[1,02]", "json.syntax"},
        {"[1,2]", "[1,+2]", "json.syntax"},
        {"[1,2]", "[1,-0]", "json.number"},
        {"[1,2]", "[1,2.0]", "json.number"},
        {"[1,2]", "[1,2e0]", "json.number"},
        {"[1,2]", "[1,NaN]", "json.syntax"},
        {"[1,2]", "[1,null]", "wire.type"},
        {"[1,2]", "[1,\"2\"]", "wire.type"},
        {"18446744073709551615", "18446744073709551616", "json.number"},
        {"18446744073709551615", "-1", "wire.range"},
        {"-9223372036854775808", "-9223372036854775809", "json.number"},
        {"-9223372036854775808", "6", "wire.range"},
        {"\"names\":[\"x\",\"y\",\"z\"]", "\"names\":[]", "wire.length"},
        {"\"names\":[\"x\",\"y\",\"z\"]", "\"names\":[\"x\",\"y\",\"z\",\"a\"]", "wire.length"},
        {"\"names\":[\"x\",\"y\",\"z\"]", "\"names\":{}", "wire.type"},
        {"\xc3\xa9", "\xc3", "json.syntax"},
        {"\xc3\xa9", "\xed\xa0\x80", "json.syntax"},
        {"\xc3\xa9", "\\ud83d", "json.syntax"},
        {"\xc3\xa9", "\\ud83d\\u0041", "json.syntax"},
        {"\xc3\xa9", "\\u00g9", "json.syntax"},
        {"\xc3\xa9", "\\x", "json.syntax"},
        {"\xc3\xa9", "\x1f", "json.syntax"},
        {"\xc3\xa9", "\n", "json.syntax"},
    };
    for (const auto& one : faults) {
        const auto other = replaced(text, one.what, one.by);
        EXPECT_EQ(disagreement(other, every_fields), "") << other;
        const auto out = wire::decode_text(other, every_fields);
        ASSERT_FALSE(out.has_value()) << other;
        EXPECT_EQ(out.error().step, one.step) << other;
    }
    for (std::size_t size = 0; size < text.size(); ++size) {
        const auto part = std::string_view{text}.substr(0, size);
        EXPECT_EQ(how_taken(part), "not taken") << part;
        EXPECT_EQ(disagreement(part, every_fields), "") << part;
    }
    for (const auto* more : {"{}", "x", ",", "\""})
        EXPECT_EQ(how_taken(text + more), "not taken") << more;
    for (const auto other :
         {""sv, " "sv, "null"sv, "7"sv, "\"\""sv, "[]"sv, "{}"sv, "{,}"sv, "{"sv})
        EXPECT_EQ(disagreement(other, every_fields), "") << other;
}

// Each limit at what the text needs, and at one less.
TEST(JsonCursor, LimitsAreThoseOfTheTree) {
    auto value = good();
    value.digest.clear();
    const auto text = text_of(value);
    const struct {
        std::string_view step;
        std::size_t limits::* member;
        std::size_t needs;
    } bounds[] = {
        {"json.size", &limits::bytes, text.size()},
        {"json.depth", &limits::depth, 3},
        {"json.members", &limits::members, every_fields.size()},
        {"json.elements", &limits::elements, 3},
        {"json.values", &limits::values, 38},
        {"json.string", &limits::string_bytes, value.any.size()},
        {"json.number", &limits::number_bytes, 20},
    };
    for (const auto& one : bounds) {
        limits narrow;
        narrow.*one.member = one.needs;
        EXPECT_EQ(how_taken(text, narrow), "as written") << one.step;
        EXPECT_EQ(disagreement(text, every_fields, narrow), "") << one.step;
        narrow.*one.member = one.needs - 1;
        EXPECT_EQ(how_taken(text, narrow), "not taken") << one.step;
        EXPECT_EQ(disagreement(text, every_fields, narrow), "") << one.step;
        EXPECT_EQ(wire::decode_text(text, every_fields, narrow).error().step, one.step);
    }
    value.any = std::string("a\0b", 3);
    limits no_nul;
    EXPECT_EQ(how_taken(text_of(value), no_nul), "as written");
    no_nul.zero = wire::json::nul::refused;
    EXPECT_EQ(how_taken(text_of(value), no_nul), "not taken");
    EXPECT_EQ(disagreement(text_of(value), every_fields, no_nul), "");
    limits any_numbers;
    any_numbers.form = wire::json::numbers::any;
    EXPECT_EQ(disagreement(replaced(text, "[1,2]", "[1,2.5]"), every_fields, any_numbers), "");
}

TEST(JsonCursor, DepthIsBoundedWhateverTheLimit) {
    limits deep;
    deep.depth = 1000;
    const auto text = repeat("[", 100);
    wire::json::cursor in{text, deep};
    for (std::size_t i = 0; i < wire::json::max_depth; ++i) {
        ASSERT_TRUE(in.enter_array());
        ASSERT_TRUE(in.next_element());
    }
    EXPECT_FALSE(in.enter_array());
    EXPECT_FALSE(in.finish());
}

// --- properties ---

auto some_text(int most) -> std::string {
    const auto piece = rc::gen::element<std::string>(
        "a", "0", "-", "/", "\"", "\\", "\n", "\x01", "\x7f", " ", "\xc3\xa9", "\xe2\x80\xa8",
        "\xf0\x9f\x98\x80", "plain text of more than eight bytes", std::string(1, '\0'));
    std::string out;
    for (const auto& one : *rc::gen::container<std::vector<std::string>>(piece))
        if (out.size() + one.size() <= static_cast<std::size_t>(most)) out += one;
    return out;
}

auto some_leaf() -> test::leaf {
    return {*rc::gen::element<std::string>("/a", "/a/b", "/\xc3\xa9", "/a b\"c"),
            *rc::gen::element(test::colour::red, test::colour::blue)};
}

auto some_value() -> every_rule {
    every_rule out;
    out.below = *rc::gen::element<std::int64_t>(INT64_MIN, -1, 0, 5);
    out.under.deep = *rc::gen::element<std::int16_t>(-7, 0, 300);
    out.word = *rc::gen::element<std::string>("", "one", "two");
    if (*rc::gen::arbitrary<bool>()) out.bark = "b\xc3\xa9";
    out.any = some_text(40);
    if (*rc::gen::arbitrary<bool>()) out.digest = std::string(64, 'f');
    out.large = *rc::gen::arbitrary<std::uint64_t>();
    out.on = *rc::gen::arbitrary<bool>();
    if (*rc::gen::arbitrary<bool>()) out.maybe_on = *rc::gen::arbitrary<bool>();
    out.port = *rc::gen::element<std::uint16_t>(443, 1, 65535);
    out.one = some_leaf();
    if (*rc::gen::arbitrary<bool>()) out.other = some_leaf();
    for (auto i = *rc::gen::inRange(0, 4); i > 0; --i) out.leaves.push_back(some_leaf());
    for (auto i = *rc::gen::inRange(1, 4); i > 0; --i) out.names.push_back("n");
    for (auto i = *rc::gen::inRange(0, 4); i > 0; --i) out.table.push_back({i, -i});
    return out;
}

// As somebody else might have written it: members in another order, white space, escapes, nulls.
void spread(std::string& out, const wire::json::value& of);
void spread_text(std::string& out, std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += '"';
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (code < 0x20 || c == '"' || c == '\\' || (code < 0x80 && *rc::gen::inRange(0, 8) == 0)) {
            out.append("\\u00").push_back(digits[code >> 4U]);
            out.push_back(digits[code & 0xfU]);
        } else out += c;
    }
    out += '"';
}
void spread_parts(std::string& out, char open, char close, std::size_t count, const auto& part) {
    const auto space = [&] { out += *rc::gen::element<std::string>("", "", "", " ", "\n\t"); };
    out += open;
    for (std::size_t i = 0; i < count; ++i) {
        if (i != 0) out += ',';
        space();
        part(i);
        space();
    }
    out += close;
}
void spread(std::string& out, const wire::json::value& of) {
    if (const auto* text = of.as_string()) return spread_text(out, *text);
    if (const auto* items = of.as_array())
        return spread_parts(out, '[', ']', items->size(),
                            [&](std::size_t i) { spread(out, (*items)[i]); });
    if (const auto* members = of.as_object()) {
        auto mixed = *members;
        if (*rc::gen::arbitrary<bool>()) std::ranges::reverse(mixed);
        return spread_parts(out, '{', '}', mixed.size(), [&](std::size_t i) {
            if (*rc::gen::inRange(0, 12) == 0) spread_text(out, mixed[i].name);
            else wire::json::append_quoted(out, mixed[i].name);
            out += ':';
            if (*rc::gen::inRange(0, 30) == 0) out += "null";
            else spread(out, mixed[i].data);
        });
    }
    out += wire::json::to_text(of);
}

RC_GTEST_PROP(JsonCursor, WhatIsEncodedIsTakenEqual, ()) {
    const auto value = some_value();
    const auto text = text_of(value);
    const auto out = wire::take_text(text, every_fields);
    RC_ASSERT(out.has_value());
    RC_ASSERT(out->is_as_encoded);
    RC_ASSERT(out->data == value);
    RC_ASSERT(disagreement(text, every_fields) == "");
}

RC_GTEST_PROP(JsonCursor, HoweverItIsWrittenBothWaysAgree, ()) {
    std::string text;
    spread(text, *wire::json::read(text_of(some_value())));
    RC_ASSERT(disagreement(text, every_fields) == "");
}

RC_GTEST_PROP(JsonCursor, WhateverIsChangedBothWaysAgree, ()) {
    auto text = text_of(some_value());
    if (*rc::gen::arbitrary<bool>()) {
        const auto tree = *wire::json::read(text);
        text.clear();
        spread(text, tree);
    }
    for (auto edits = *rc::gen::inRange(1, 4); edits > 0 && !text.empty(); --edits) {
        const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
        const auto to = *rc::gen::inRange<std::size_t>(at, std::min(text.size(), at + 20) + 1);
        const auto part = text.substr(at, to - at);
        switch (*rc::gen::inRange(0, 4)) {
        case 0: text.erase(at, to - at); break;
        case 1: text.insert(*rc::gen::inRange<std::size_t>(0, text.size() + 1), part); break;
        case 2: text.resize(at); break;
        default:
            text[at] = *rc::gen::element('"', '\\', '{', '}', '[', ']', ',', ':', ' ', '0', '-',
                                         'e', '.', 'u', 'n', '\0', '\x1f', '\x80', '\xc3', '\xff');
        }
    }
    RC_ASSERT(disagreement(text, every_fields) == "");
    const limits narrow{
        .bytes = 700,
        .depth = 2 + *rc::gen::inRange<std::size_t>(0, 2),
        .members = *rc::gen::inRange<std::size_t>(1, 18),
        .elements = *rc::gen::inRange<std::size_t>(0, 4),
        .values = *rc::gen::inRange<std::size_t>(1, 60),
        .string_bytes = *rc::gen::inRange<std::size_t>(1, 64),
        .number_bytes = *rc::gen::inRange<std::size_t>(1, 21),
        .form = *rc::gen::element(wire::json::numbers::any, wire::json::numbers::integers),
        .zero = wire::json::nul::refused};
    RC_ASSERT(disagreement(text, every_fields, narrow) == "");
}

} // namespace
