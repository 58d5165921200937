#include "policy/scene.hpp"
#include <gmock/gmock.h>

namespace {

using namespace glove::policy;
using namespace glove::policy::scene;

// What a rule for /v answers for a value.
auto ask(const std::string& rule, const std::string& value) -> std::string {
    const auto said = answer_of("[[tool.\"up.t\".argument]]\nat = \"/v\"\n" + rule + "\n",
                                "{\"v\":" + value + "}");
    constexpr std::string_view begin = "argument /v ";
    return said.starts_with(begin) ? said.substr(begin.size()) : said;
}

TEST(Matchers, EqualsTakesOneValueOfOneType) {
    EXPECT_EQ(ask("equals = \"a\"", R"("a")"), "ok");
    EXPECT_EQ(ask("equals = \"a\"", R"("\u0061")"), "ok");
    for (const auto* other :
         {R"("A")", R"("a ")", R"("ab")", R"("")", "1", "null", "true", "[]", R"(["a"])", "{}"})
        EXPECT_EQ(ask("equals = \"a\"", other), "is not the permitted value") << other;
    EXPECT_EQ(ask("equals = 1", "1"), "ok");
    for (const auto* other : {"2", "-1", "1.0", "1e0", R"("1")", "true"})
        EXPECT_EQ(ask("equals = 1", other), "is not the permitted value") << other;
    EXPECT_EQ(ask("equals = false", "false"), "ok");
    for (const auto* other : {"true", "null", "0", R"("")", R"("false")"})
        EXPECT_EQ(ask("equals = false", other), "is not the permitted value") << other;
}

TEST(Matchers, InTakesOneOfTheValues) {
    for (const auto* value : {R"("a")", "1", "true"})
        EXPECT_EQ(ask("in = [\"a\", 1, true]", value), "ok");
    for (const auto* value : {R"("b")", "2", "false", "null", R"("1")", R"(["a"])"})
        EXPECT_EQ(ask("in = [\"a\", 1, true]", value), "is none of the permitted values") << value;
}

TEST(Matchers, MatchIsAboutTheWholeText) {
    const std::string rule = "match = \"[a-z]+\"";
    EXPECT_EQ(ask(rule, R"("abc")"), "ok");
    for (const auto* other : {R"("abc;rm")", R"("abc\n")", R"("\nabc")", R"("")", R"("abc\u0000")",
                              R"("Abc")", R"("abc ")"})
        EXPECT_EQ(ask(rule, other), "does not have the permitted form") << other;
    for (const auto* other : {"1", "null", R"(["abc"])"})
        EXPECT_EQ(ask(rule, other), "is not a string") << other;
    // An alternative is not anchored on one side only.
    EXPECT_EQ(ask("match = \"a|b\"", R"("ab")"), "does not have the permitted form");
    EXPECT_EQ(ask("match = \"a|b\"", R"("b")"), "ok");
    EXPECT_EQ(ask("match = \".*\"", R"("a\nb")"), "does not have the permitted form");
    EXPECT_EQ(ask("match = \".\"", R"("ä")"), "ok"); // characters, not bytes
    // No backtracking: what makes others take for ever is answered at once.
    EXPECT_EQ(ask("match = \"(a+)+b\"", "\"" + std::string(50'000, 'a') + "\""),
              "does not have the permitted form");
}

TEST(Matchers, RangeTakesItsBoundsAndNothingBeyond) {
    const std::string rule = "range = [1, 10]";
    for (const auto* value : {"1", "10", "5", "1.0", "9.999", "1e1"})
        EXPECT_EQ(ask(rule, value), "ok") << value;
    for (const auto* value : {"0", "11", "-5", "0.999", "10.001", "1e9", "1e400", "-0",
                              "18446744073709551616", "-1e400"})
        EXPECT_EQ(ask(rule, value), "is not in the permitted range") << value;
    for (const auto* value : {R"("5")", "null", "true", "[5]"})
        EXPECT_EQ(ask(rule, value), "is not a number") << value;
    EXPECT_EQ(ask("range = [-0.5, 0.5]", "-0.5"), "ok");
    EXPECT_EQ(ask("range = [-0.5, 0.5]", "0.51"), "is not in the permitted range");
    EXPECT_EQ(ask("range = [0, 9223372036854775807]", "9223372036854775807"), "ok");
    EXPECT_EQ(ask("range = [0, 9223372036854775807]", "9223372036854775808"),
              "is not in the permitted range");
}

TEST(Matchers, LengthCountsCharactersAndItems) {
    const std::string rule = "length = [1, 3]";
    for (const auto* value : {R"("a")", R"("abc")", R"("äöü")", R"("\ud83d\ude00bc")"})
        EXPECT_EQ(ask(rule, value), "ok") << value;
    for (const auto* value : {R"("")", R"("abcd")", R"("äöüx")", "[]"})
        EXPECT_EQ(ask(rule, value), "is not of a permitted length") << value;
    for (const auto* value : {"1", "null", R"({"a":1})"})
        EXPECT_EQ(ask(rule, value), "is neither a string nor an array") << value;
    // The number of items says nothing about what they are.
    EXPECT_EQ(ask(rule, R"(["a"])"), "holds values that the rules of this tool do not speak of");
    const auto both = rule + "\n[[tool.\"up.t\".argument]]\nat = \"/v/*\"\nmatch = \"[a-z]\"";
    EXPECT_EQ(ask(both, R"(["a","b","c"])"), "ok");
    EXPECT_EQ(ask(both, R"(["a","b","c","d"])"), "is not of a permitted length");
    EXPECT_EQ(ask(both, R"(["a","B"])"), "argument /v/1 does not have the permitted form");
}

TEST(Matchers, NotLeadingDashKeepsOptionsOut) {
    const std::string rule = "not_leading_dash = true";
    for (const auto* value : {R"("main")", R"("a-b")", R"("")", R"(" -x")"})
        EXPECT_EQ(ask(rule, value), "ok") << value;
    for (const auto* value : {R"("-x")", R"("--upload-pack=touch x")", R"("-")", R"("\u002dx")"})
        EXPECT_EQ(ask(rule, value), "begins with a dash") << value;
    EXPECT_EQ(ask(rule, "-1"), "is not a string");
}

TEST(Matchers, AllHoldTogether) {
    const std::string rule = "not_leading_dash = true\nmatch = \"[-a-z]+\"\nlength = [2, 4]";
    EXPECT_EQ(ask(rule, R"("ab-c")"), "ok");
    EXPECT_EQ(ask(rule, R"("-abc")"), "begins with a dash");
    EXPECT_EQ(ask(rule, R"("abcde")"), "is not of a permitted length");
    EXPECT_EQ(ask(rule, R"("ABC")"), "does not have the permitted form");
}

TEST(Matchers, AnyTakesWhateverIsThere) {
    for (const auto* value : {R"("x")", "1", "null", R"([{"a":[1]}])", R"({"a":{"b":1}})"})
        EXPECT_EQ(ask("any = true", value), "ok") << value;
}

TEST(Arguments, AreThereUnlessTheRuleIsOptional) {
    const std::string must = "[[tool.\"up.t\".argument]]\nat = \"/a/b\"\nany = true\n";
    EXPECT_EQ(answer_of(must, R"({"a":{"b":1}})"), "ok");
    EXPECT_EQ(answer_of(must, R"({"a":{}})"), "argument /a/b is missing");
    EXPECT_EQ(answer_of(must, "{}"), "argument /a is missing");
    EXPECT_EQ(answer_of(must, R"({"a":1})"), "argument /a is not an object");
    const auto may = must + "optional = true\n";
    for (const auto* given : {R"({"a":{"b":1}})", R"({"a":{}})", "{}"})
        EXPECT_EQ(answer_of(may, given), "ok") << given;
    EXPECT_EQ(answer_of(may, R"({"a":1})"), "argument /a is not an object");
    // One that speaks of it as needed is enough.
    const auto both = may + "[[tool.\"up.t\".argument]]\nat = \"/a/b\"\nrange = [0, 5]\n";
    EXPECT_EQ(answer_of(both, "{}"), "argument /a is missing");
    EXPECT_EQ(answer_of(may + "", "{}"), "ok");
    const std::string list = "[[tool.\"up.t\".argument]]\nat = \"/l/*/x\"\nequals = 1\n";
    EXPECT_EQ(answer_of(list, R"({"l":[{"x":1},{"x":1}]})"), "ok");
    EXPECT_EQ(answer_of(list, R"({"l":[{"x":1},{}]})"), "argument /l/1/x is missing");
    EXPECT_EQ(answer_of(list, "{}"), "argument /l is missing");
    EXPECT_EQ(answer_of(list, R"({"l":[]})"), "ok");
}

TEST(Arguments, ThatNoRuleSpeaksOfAreRefusedAtEveryLevel) {
    const std::string table = "[[tool.\"up.t\".argument]]\nat = \"/a/b\"\nequals = 1\n";
    EXPECT_EQ(answer_of(table, R"({"a":{"b":1}})"), "ok");
    EXPECT_EQ(answer_of(table, R"({"a":{"b":1},"c":1})"),
              "argument /c is not one that the rules of this tool speak of");
    EXPECT_EQ(answer_of(table, R"({"a":{"b":1,"c":1}})"),
              "argument /a/c is not one that the rules of this tool speak of");
    const auto open = "additional = true\n" + table;
    EXPECT_EQ(answer_of(open, R"({"a":{"b":1,"c":1},"c":[{"d":1}]})"), "ok");
    EXPECT_EQ(answer_of(open, R"({"a":{"b":2,"c":1},"c":1})"),
              "argument /a/b is not the permitted value");
    // Without any rule for an argument nothing is closed.
    EXPECT_EQ(answer_of("", R"({"x":{"y":[1]}})"), "ok");
    // The first by name is told, whatever the order.
    EXPECT_EQ(answer_of(table, R"({"z":1,"a":{"b":1},"y":1})"),
              answer_of(table, R"({"y":1,"a":{"b":1},"z":1})"));
}

// Some servers do not tell upper case from lower case.
TEST(Arguments, CannotBeGivenTwiceInAnotherCase) {
    const std::string table = "additional = true\n[[tool.\"up.t\".argument]]\nat = \"/task\"\n"
                              "equals = 1\noptional = true\n";
    EXPECT_EQ(answer_of(table, R"({"task":1,"other":2,"tas":3,"tasks":4})"), "ok");
    for (const auto* name : {"Task", "TASK", "tasK", "ta\u017fk", "tas\u212a"})
        EXPECT_THAT(answer_of(table, "{\"" + std::string{name} + "\":2}"),
                    testing::EndsWith(" is written differently where rules speak of it"));
    EXPECT_EQ(answer_of("forbidden = [\"/force\"]\n", R"({"Force":true})"),
              "argument /Force is written differently where rules speak of it");
}

TEST(Arguments, CanBeRequiredAndForbidden) {
    const std::string table = "required = [\"/a\"]\nforbidden = [\"/force\", \"/o/x\"]\n";
    EXPECT_EQ(answer_of(table, R"({"a":{"deep":1},"other":2,"o":{"y":1}})"), "ok");
    EXPECT_EQ(answer_of(table, R"({"other":2})"), "argument /a is missing");
    EXPECT_EQ(answer_of(table, R"({"a":1,"force":false})"), "argument /force is not permitted");
    EXPECT_EQ(answer_of(table, R"({"a":1,"force":null})"), "argument /force is not permitted");
    EXPECT_EQ(answer_of(table, R"({"a":1,"o":{"x":1}})"), "argument /o/x is not permitted");
    const auto closed = table + "[[tool.\"up.t\".argument]]\nat = \"/b\"\nequals = 1\n";
    EXPECT_EQ(answer_of(closed, R"({"a":{"deep":1},"b":1})"), "ok");
    EXPECT_EQ(answer_of(closed, R"({"a":1,"b":1,"c":1})"),
              "argument /c is not one that the rules of this tool speak of");
}

TEST(Arguments, AreNamedByPointersWithEscapes) {
    const std::string table = "[[tool.\"up.t\".argument]]\nat = \"/a~1b/m~0n\"\nequals = 1\n";
    EXPECT_EQ(answer_of(table, R"({"a/b":{"m~n":1}})"), "ok");
    EXPECT_EQ(answer_of(table, R"({"a/b":{"m~n":2}})"),
              "argument /a~1b/m~0n is not the permitted value");
    EXPECT_EQ(answer_of(table, R"({"a":{"b":{"m~n":1}}})"), "argument /a~1b is missing");
}

TEST(Arguments, AreToldInPrintableWords) {
    const std::string table = "[[tool.\"up.t\".argument]]\nat = \"/a\"\nequals = 1\n";
    const auto said = answer_of(table, "{\"a\":1,\"\\u001b[2J" + std::string(5000, 'x') + "\":1}");
    EXPECT_LT(said.size(), 400U);
    for (const char c : said) EXPECT_TRUE(c >= ' ' && c <= '~');
}

TEST(Arguments, OfEveryToolHoldForEachTool) {
    const std::string file = R"(
[tool."fs.*"]
allow = true
calls = 5
timeout = "10s"
redact = ["secret"]
[[tool."fs.*".argument]]
at = "/path"
match = "/srv/.*"
[tool."fs.write"]
calls = 1
[[tool."fs.write".argument]]
at = "/content"
length = [0, 5]
[tool."fs.list"]
additional = true
)";
    const auto of = made({}, file);
    EXPECT_EQ(answer(of, {"fs", "read"}, R"({"path":"/srv/x"})"), "ok");
    EXPECT_EQ(answer(of, {"fs", "read"}, R"({"path":"/etc/x"})"),
              "argument /path does not have the permitted form");
    EXPECT_EQ(answer(of, {"fs", "write"}, R"({"path":"/srv/x","content":"12345"})"), "ok");
    EXPECT_EQ(answer(of, {"fs", "write"}, R"({"path":"/srv/x","content":"123456"})"),
              "argument /content is not of a permitted length");
    EXPECT_EQ(answer(of, {"fs", "write"}, R"({"path":"/etc/x","content":""})"),
              "argument /path does not have the permitted form");
    EXPECT_EQ(answer(of, {"fs", "list"}, R"({"path":"/srv/x","more":1})"), "ok");
    EXPECT_EQ(answer(of, {"fs", "read"}, R"({"path":"/srv/x","more":1})"),
              "argument /more is not one that the rules of this tool speak of");
    EXPECT_EQ(of.limits_of({"fs", "read"}).calls, 5U);
    EXPECT_EQ(of.limits_of({"fs", "write"}).calls, 1U);
    EXPECT_EQ(of.limits_of({"fs", "write"}).timeout, std::chrono::seconds{10});
    EXPECT_TRUE(of.redacts({"fs", "write"}));
    EXPECT_FALSE(of.redacts({"git", "write"}));
    EXPECT_FALSE(of.limits_of({"git", "log"}).calls);
    EXPECT_FALSE(of.limits_of({"nosuch", "log"}).calls);
}

} // namespace
