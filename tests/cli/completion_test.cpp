// The scripts are read by the shells they are for; bash is asked for completions as well.
#include <gmock/gmock.h>
#include <sstream>
#include <support/program.hpp>

namespace {

using glove::test::glove_program;
using glove::test::run_program;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

class Completion : public testing::Test {
protected:
    void SetUp() override {
        for (const auto* shell : {"bash", "zsh", "fish"}) {
            const auto got = glove({"completion", shell});
            ASSERT_EQ(got.status, 0) << got.err;
            glove.place().file(shell, got.out);
        }
    }
    [[nodiscard]] auto script(std::string_view shell) const -> std::string {
        return glove.place() / shell;
    }
    // What bash offers for the last word.
    [[nodiscard]] auto offered(const std::vector<std::string>& words) const
        -> std::vector<std::string> {
        std::vector<std::string> argv{
            "bash",
            "--norc",
            "--noprofile",
            "-c",
            R"(source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _glove; printf '%s\n' "${COMPREPLY[@]}")",
            "test",
            script("bash")};
        argv.insert(argv.end(), words.begin(), words.end());
        const auto got = run_program(argv, {}, glove.place() / "desk");
        EXPECT_EQ(got.status, 0) << got.err;
        EXPECT_THAT(got.err, IsEmpty());
        std::vector<std::string> out;
        std::istringstream lines{got.out};
        for (std::string line; std::getline(lines, line);)
            if (!line.empty()) out.push_back(line);
        return out;
    }
    glove_program glove;
};

TEST_F(Completion, EachShellCanReadItsScript) {
    for (const auto& [shell, option] :
         {std::pair{"bash", "-n"}, std::pair{"zsh", "-n"}, std::pair{"fish", "--no-execute"}}) {
        const auto got =
            run_program({shell, option, script(shell)}, {{"HOME", glove.place() / "home"}});
        EXPECT_EQ(got.status, 0) << shell << ": " << got.err;
        EXPECT_THAT(got.err, IsEmpty()) << shell;
    }
}

TEST_F(Completion, EveryOptionOfTheHelpIsInEveryScript) {
    const auto help = glove({"exec", "--help"}).out;
    std::vector<std::string> options;
    for (std::size_t at = 0; (at = help.find("\n  --", at)) != std::string::npos; ++at)
        options.push_back(help.substr(at + 3, help.find_first_of(" ,\n", at + 3) - at - 3));
    EXPECT_GE(options.size(), 12U);
    for (const auto& option : options) {
        EXPECT_THAT(offered({"glove", "exec", option}), Contains(option));
        EXPECT_THAT(glove::test::content_of(script("zsh")), HasSubstr(option + "["));
        EXPECT_THAT(glove::test::content_of(script("fish")),
                    HasSubstr(" -l " + option.substr(2) + " "));
    }
}

TEST_F(Completion, TheFirstWordIsAVerb) {
    EXPECT_THAT(offered({"glove", ""}),
                UnorderedElementsAre("exec", "run", "mcp", "profile", "doctor", "log", "home",
                                     "quarantine", "daemon", "session", "exposure", "journal",
                                     "completion", "--help", "--version"));
    EXPECT_THAT(offered({"glove", "ex"}), UnorderedElementsAre("exec", "exposure"));
    EXPECT_THAT(offered({"glove", "zz"}), IsEmpty());
}

TEST_F(Completion, AVerbOffersItsOptions) {
    EXPECT_THAT(offered({"glove", "exec", "--w"}),
                UnorderedElementsAre("--workspace", "--write", "--wall-time"));
    EXPECT_THAT(offered({"glove", "exec", "--workspace", ".", "--re"}),
                UnorderedElementsAre("--read", "--report"));
}

TEST_F(Completion, AnOptionForAPathOffersFiles) {
    glove.place().file("desk/one file");
    glove.place().file("desk/other");
    for (const auto* option :
         {"--workspace", "--read", "--write", "--hide", "--report", "--audit-log"})
        EXPECT_THAT(offered({"glove", "exec", option, "o"}),
                    UnorderedElementsAre("one file", "other"))
            << option;
    EXPECT_THAT(offered({"glove", "exec", "--net", "o"}), IsEmpty());
}

TEST_F(Completion, AVerbWhoseWordsAreFilesOffersThem) {
    glove.place().file("desk/record");
    EXPECT_THAT(offered({"glove", "log", "r"}), ElementsAre("record"));
    EXPECT_THAT(offered({"glove", "log", "--run", "x", ""}), ElementsAre("record"));
    EXPECT_THAT(offered({"glove", "log", "--fo"}), ElementsAre("--follow"));
    EXPECT_THAT(offered({"glove", "doctor", "r"}), IsEmpty());
    EXPECT_THAT(offered({"glove", "doctor", "--j"}), ElementsAre("--json"));
}

TEST_F(Completion, AfterTheDashesComeACommandAndItsFiles) {
    glove.place().file("desk/envelope");
    EXPECT_THAT(offered({"glove", "exec", "--workspace", ".", "--", "env"}),
                AllOf(Contains("env"), Not(Contains("envelope"))));
    EXPECT_THAT(offered({"glove", "exec", "--", "cat", "env"}), ElementsAre("envelope"));
    EXPECT_THAT(offered({"glove", "exec", "--", "cat", "--w"}), IsEmpty());
}

TEST_F(Completion, ZshAndFishLoadTheirScripts) {
    const auto zsh = run_program(
        {"zsh", "-f", "-c",
         "compdef() { print -r -- $*; }; source " + script("zsh") + "; whence -w _glove"},
        {{"HOME", glove.place() / "home"}});
    EXPECT_EQ(zsh.out, "_glove glove\n_glove: function\n") << zsh.err;
    const auto fish =
        run_program({"fish", "--no-config", "-c",
                     "source " + script("fish") + "; complete -C 'glove exec --wall'"},
                    {{"HOME", glove.place() / "home"}});
    EXPECT_THAT(fish.out, HasSubstr("--wall-time")) << fish.err;
}

} // namespace
