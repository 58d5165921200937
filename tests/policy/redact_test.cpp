#include "policy/scene.hpp"
#include <glove/wire/json_writer.hpp>
#include <gmock/gmock.h>

namespace {

using namespace glove::policy;
using namespace glove::policy::scene;

auto cleaned(const std::string& patterns, std::string text) -> std::string {
    const auto of = made({}, "[tool.\"up.t\"]\nallow = true\nredact = " + patterns + "\n");
    EXPECT_TRUE(of.redacts({"up", "t"}));
    const auto before = text;
    const bool changed = of.redact({"up", "t"}, text);
    EXPECT_EQ(changed, text != before);
    return text;
}

TEST(Redact, TakesSecretsOutOfEveryString) {
    EXPECT_EQ(cleaned(R"(['sk-[a-z0-9]+'])",
                      R"({"content":[{"type":"text","text":"key sk-abc1 and sk-9, end"}],)"
                      R"("structuredContent":{"k":["sk-x",1,null,{"d":"sk-y"}]}})"),
              R"({"content":[{"type":"text","text":"key [redacted] and [redacted], end"}],)"
              R"("structuredContent":{"k":["[redacted]",1,null,{"d":"[redacted]"}]}})");
}

TEST(Redact, LooksAtDecodedText) {
    EXPECT_EQ(cleaned(R"(['sk-[a-z]+'])", R"({"t":"\u0073k\u002da\u0062c"})"),
              R"({"t":"[redacted]"})");
    EXPECT_EQ(cleaned(R"(['a"b'])", R"({"t":"x a\"b y"})"), R"({"t":"x [redacted] y"})");
}

TEST(Redact, LeavesTheRestAsItWas) {
    const std::string text = R"({ "b" : 1.50, "a":"nothing\u0020here" })";
    EXPECT_EQ(cleaned(R"(['sk-[a-z]+'])", text), text); // byte for byte
    EXPECT_EQ(cleaned(R"(['sk-[a-z]+'])", R"({"n":1.50,"big":123456789012345678901,"t":"sk-a"})"),
              R"({"n":1.50,"big":123456789012345678901,"t":"[redacted]"})");
}

TEST(Redact, AppliesEveryPatternAndEveryGroupLiterally) {
    EXPECT_EQ(cleaned(R"(['(sk)-([a-z]+)', '[0-9]{4}'])", R"({"t":"sk-a 1234 \\1"})"),
              R"({"t":"[redacted] [redacted] \\1"})");
}

TEST(Redact, TakesThemOutOfNamesAndKeepsNamesApart) {
    EXPECT_EQ(cleaned(R"(['sk-[a-z]+'])", R"({"sk-a":1,"sk-b":2,"[redacted]":3,"x":"sk-c"})"),
              R"({"[redacted] 2":1,"[redacted] 3":2,"[redacted]":3,"x":"[redacted]"})");
}

TEST(Redact, KnowsHowLongATextBecomesBeforeItDoes) {
    const auto of = made({}, "[tool.\"up.t\"]\nallow = true\nredact = ['x', 'e']\n");
    const auto grown = [&](std::string text, std::size_t most) {
        EXPECT_TRUE(of.redact({"up", "t"}, text, most));
        return text;
    };
    // "x" becomes "[redacted]", and of that each "e" does.
    const std::string text = R"({"t":"x"})", wanted = R"({"t":"[r[redacted]dact[redacted]d]"})";
    EXPECT_EQ(grown(text, wanted.size() - text.size()), wanted);
    EXPECT_EQ(grown(text, wanted.size() - text.size() - 1), "");
    EXPECT_EQ(grown(R"({"x":1})", 27), R"({"[r[redacted]dact[redacted]d]":1})");
    EXPECT_EQ(grown(R"({"x":1})", 26), "");
    EXPECT_EQ(grown(R"({"t":["x","x"]})", 2 * 27 - 1), "");
    EXPECT_EQ(grown("{\"t\":\"" + std::string(1 << 20, 'x') + "\"}", 10 << 20), "");
}

TEST(Redact, PassesNothingOnThatItCannotRead) {
    for (const auto* broken :
         {"{\"t\":\"sk-abc\"", "sk-abc", "{\"t\":\"\xff\"}", "", "{\"a\":1,\"a\":2}"}) {
        const auto out = cleaned(R"(['sk-[a-z]+'])", broken);
        EXPECT_EQ(out, R"({"content":[{"type":"text","text":"[redacted]"}],"isError":true})");
    }
}

TEST(Redact, DoesNothingForOtherTools) {
    const auto of = made({.allow = {"fs.read"}});
    std::string text = "not even JSON";
    EXPECT_FALSE(of.redacts({"fs", "read"}));
    EXPECT_FALSE(of.redact({"fs", "read"}, text));
    EXPECT_EQ(text, "not even JSON");
}

// Deep and wide, within what a message may be.
TEST(Redact, TakesLargeResults) {
    std::string text = "[\"sk-a\"";
    for (int i = 0; i < 100'000; ++i) text += ",\"x\"";
    text += "]";
    EXPECT_THAT(cleaned(R"(['sk-[a-z]+'])", text), testing::StartsWith("[\"[redacted]\",\"x\""));
}

} // namespace
