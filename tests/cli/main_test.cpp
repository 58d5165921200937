#include <gmock/gmock.h>
#include <sstream>
#include <support/program.hpp>

namespace {

using glove::test::glove_program;
using glove::test::ran;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

// One screen: not longer than a tall terminal and not wider than a normal one.
void expect_one_screen(const ran& help) {
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.err, IsEmpty());
    std::istringstream text{help.out};
    std::size_t count = 0;
    for (std::string line; std::getline(text, line); ++count) EXPECT_LE(line.size(), 100U) << line;
    EXPECT_LE(count, 43U) << help.out;
    EXPECT_GE(count, 5U) << help.out;
    EXPECT_THAT(help.out, HasSubstr("usage: glove"));
    EXPECT_THAT(help.out, HasSubstr("\nExamples:\n"));
}

void expect_usage_error(const ran& got, const std::string& detail) {
    EXPECT_EQ(got.status, 2);
    EXPECT_THAT(got.out, IsEmpty());
    EXPECT_THAT(got.err, StartsWith("error[invalid_input]: usage: "));
    EXPECT_THAT(got.err, HasSubstr(detail));
    EXPECT_THAT(got.err, HasSubstr("\nTry: "));
}

TEST(Help, EachFitsOnOneScreenAndHasExamples) {
    const glove_program glove;
    expect_one_screen(glove({"--help"}));
    expect_one_screen(glove({"exec", "--help"}));
    expect_one_screen(glove({"doctor", "--help"}));
    expect_one_screen(glove({"mcp", "--help"}));
    expect_one_screen(glove({"log", "--help"}));
    expect_one_screen(glove({"home", "--help"}));
    expect_one_screen(glove({"session", "--help"}));
    expect_one_screen(glove({"exposure", "--help"}));
    expect_one_screen(glove({"journal", "--help"}));
    expect_one_screen(glove({"completion", "--help"}));
}

// It takes all that exec takes, and the tools: its help is twice as long.
TEST(Help, ThatOfRunNamesTheToolsAndTheSandbox) {
    const glove_program glove;
    const auto help = glove({"run", "--help"});
    EXPECT_EQ(help.status, 0);
    std::istringstream text{help.out};
    std::size_t count = 0;
    for (std::string line; std::getline(text, line); ++count) EXPECT_LE(line.size(), 100U) << line;
    EXPECT_LE(count, 80U) << help.out;
    for (const auto* word : {"usage: glove run", "--workspace", "--upstream", "\nExamples:\n"})
        EXPECT_THAT(help.out, HasSubstr(word));
}

TEST(Help, TheShortAndTheLongFormSayTheSame) {
    const glove_program glove;
    const auto top = glove({"--help"}).out;
    EXPECT_EQ(glove({"-h"}).out, top);
    EXPECT_EQ(glove({"help"}).out, top);
    for (const auto* verb : {"exec", "run", "mcp", "doctor", "log", "home", "completion"}) {
        EXPECT_EQ(glove({verb, "-h"}).out, glove({verb, "--help"}).out);
        EXPECT_THAT(top, HasSubstr(std::string{"\n  "} + verb + " "));
    }
}

TEST(Help, WithoutAVerbItIsShownAndTheStatusIsUsage) {
    const glove_program glove;
    const auto got = glove({});
    EXPECT_EQ(got.status, 2);
    EXPECT_EQ(got.out, glove({"--help"}).out);
}

TEST(Version, ItIsOneLine) {
    const glove_program glove;
    const auto got = glove({"--version"});
    EXPECT_EQ(got.status, 0);
    EXPECT_THAT(got.out, MatchesRegex("glove [0-9]+\\.[0-9]+\\.[0-9]+\n"));
    EXPECT_THAT(got.err, IsEmpty());
    EXPECT_EQ(glove({"-V"}).out, got.out);
}

TEST(Usage, AnUnknownVerbIsNamed) {
    const glove_program glove;
    expect_usage_error(glove({"exce"}), "'exce' is not a verb of glove");
    expect_usage_error(glove({"--exec"}), "'--exec' is not a verb of glove");
    expect_usage_error(glove({""}), "'' is not a verb of glove");
}

TEST(Usage, AnUnknownOptionOrAStrayWordIsNamed) {
    const glove_program glove;
    expect_usage_error(glove({"exec", "--wokspace", ".", "--", "true"}), "--wokspace");
    expect_usage_error(glove({"exec", "stray", "--", "true"}), "stray");
    expect_usage_error(glove({"completion", "tcsh"}), "bash, zsh, fish");
    expect_usage_error(glove({"completion"}), "bash, zsh, fish");
    expect_usage_error(glove({"completion", "bash", "zsh"}), "'zsh' is not expected here");
}

} // namespace
