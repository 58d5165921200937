#include <filesystem>
#include <glove/wire/json.hpp>
#include <gmock/gmock.h>
#include <support/program.hpp>

namespace {

using namespace glove;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// A home with an agent that is installed by a version manager, and a project beside it.
class ProfileRun : public testing::Test {
protected:
    ProfileRun() {
        const std::string version{"home/.nvm/versions/node/v22.1.0/"};
        const auto package = version + "lib/node_modules/@anthropic-ai/claude-code/";
        place().file(package + "cli.js", "#!/usr/bin/env node\n", 0755);
        place().file(package + "package.json", "{}");
        place().link(version + "bin/claude",
                     "../lib/node_modules/@anthropic-ai/claude-code/cli.js");
        // What runs the agent says how it was called.
        place().file(version + "bin/node", "#!/bin/sh\nshift; echo \"agent: $*\"\npwd\n", 0755);
    }
    [[nodiscard]] auto place() const -> const test::folder& { return glove_.place(); }
    [[nodiscard]] auto home(std::string_view name) const -> std::string {
        return (place() / "home") + "/" + std::string{name};
    }
    void configure(std::string_view text) const {
        place().directory("home/.config/glove", 0700);
        place().file("home/.config/glove/config.toml", text, 0600);
    }
    [[nodiscard]] auto run(std::vector<std::string> words, test::variables extra = {}) const {
        return glove_(std::move(words), std::move(extra));
    }
    [[nodiscard]] auto explained(std::vector<std::string> words, test::variables extra = {}) const
        -> wire::json::value {
        words.insert(words.begin(), {"exec", "--explain", "--json"});
        const auto got = run(std::move(words), std::move(extra));
        EXPECT_EQ(got.status, 0) << got.err;
        auto parsed = wire::json::read(got.out);
        EXPECT_TRUE(parsed.has_value()) << got.out;
        return parsed ? *std::move(parsed) : wire::json::value{};
    }
    void expect_usage(const test::ran& got, const std::string& what) const {
        EXPECT_EQ(got.status, 2);
        EXPECT_THAT(got.out, IsEmpty());
        EXPECT_THAT(got.err, HasSubstr(what));
    }
    test::glove_program glove_;
};

auto texts(const wire::json::value& plan, std::string_view name) -> std::vector<std::string> {
    std::vector<std::string> out;
    if (const auto* const found = plan.find(name))
        for (const auto& each : *found->as_array()) out.push_back(*each.as_string());
    return out;
}

TEST_F(ProfileRun, StartsTheAgentOnTheWorkingDirectory) {
    const auto got = run({"exec", "-p", "claude", "--", "--version", "-x"});
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_EQ(got.out, "agent: --version -x\n" + (place() / "desk") + "\n");
    EXPECT_THAT(run({"exec", "-p", "claude"}).out, StartsWith("agent: \n"));
    EXPECT_THAT(run({"exec", "--profile", "claude", "--", "claude", "a b"}).out,
                StartsWith("agent: a b\n"));
}

TEST_F(ProfileRun, WithoutTheProfileTheAgentIsNotThere) {
    EXPECT_EQ(run({"exec", "--", home(".nvm/versions/node/v22.1.0/bin/claude")}).status, 127);
    EXPECT_EQ(run({"exec", "--", "claude"}).status, 127);
}

TEST_F(ProfileRun, AnotherCommandRunsInTheSamePerimeter) {
    const auto got = run({"exec", "-p", "claude", "--", "sh", "-c", "command -v claude; claude 1"});
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_THAT(got.out, StartsWith(home(".nvm/versions/node/v22.1.0/bin/claude\nagent: 1\n")));
    const auto looked = run({"exec", "-p", "claude", "--", "ls", "-A", place() / "home"});
    EXPECT_EQ(looked.out, ".nvm\n") << looked.err;
    const auto written =
        run({"exec", "-p", "claude", "--", "touch", home(".nvm/versions/node/v22.1.0/x")});
    EXPECT_NE(written.status, 0);
    EXPECT_EQ(run({"exec", "-p", "claude", "--", "touch", "x"}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(place() / "desk/x"));
}

TEST_F(ProfileRun, IsExplainedWithItsDestinationsAndPrograms) {
    const auto plan = explained({"-p", "claude"}, {{"ANTHROPIC_API_KEY", "k"}});
    EXPECT_THAT(texts(plan, "egress_allow"), testing::Contains("api.anthropic.com"));
    EXPECT_THAT(texts(plan, "environment"), testing::Contains("ANTHROPIC_API_KEY"));
    EXPECT_THAT(texts(plan, "environment"), Not(testing::Contains("ANTHROPIC_AUTH_TOKEN")));
    std::vector<std::string> programs;
    for (const auto& entry : *plan.find("tree")->as_array())
        if (*entry.find("origin")->as_string() == "program")
            programs.push_back(*entry.find("path")->as_string());
    EXPECT_THAT(programs, testing::ElementsAre(home(".nvm/versions/node/v22.1.0")));
    const auto text = run({"exec", "-p", "claude", "--explain"}).out;
    EXPECT_THAT(text, HasSubstr("Can be read (programs of yours)\n  " + programs.front() + "\n"));
    EXPECT_THAT(text, HasSubstr("  to api.anthropic.com\n"));
}

TEST_F(ProfileRun, AnAgentThatIsNotInstalledIsNotFound) {
    const auto got = run({"exec", "-p", "codex"});
    EXPECT_EQ(got.status, 127);
    EXPECT_THAT(got.err, HasSubstr("codex was not found"));
    EXPECT_THAT(got.err, HasSubstr("npm install -g @openai/codex"));
    EXPECT_EQ(run({"exec", "-p", "codex", "--", "true"}).status, 0);
}

TEST_F(ProfileRun, AnotherUsersWayToTheAgentIsRefused) {
    ASSERT_EQ(::chmod(home(".nvm/versions").c_str(), 0777), 0);
    expect_usage(run({"exec", "-p", "claude", "--", "true"}), "can be written by everybody");
    ASSERT_EQ(::chmod(home(".nvm/versions").c_str(), 0755), 0);
    EXPECT_EQ(run({"exec", "-p", "claude", "--", "true"}).status, 0);
}

// Everything by which a project could try to be asked.
TEST_F(ProfileRun, AProjectSaysNothing) {
    const auto before = explained({"-p", "claude"}, {{"PATH", "node_modules/.bin:/usr/bin:/bin"}});
    constexpr std::string_view evil =
        "[profile.claude]\nextends = \"claude\"\nread = [\"/etc/passwd\"]\n"
        "env = [\"EVIL=1\"]\negress-allow = [\"evil.example\"]\n";
    for (const auto* name :
         {"desk/config.toml", "desk/glove.toml", "desk/.glove.toml", "desk/.glove",
          "desk/glove/config.toml", "desk/.config/glove/config.toml", "desk/profile.toml"})
        place().file(name, evil, 0600);
    place().file("desk/.npmrc", "prefix=" + (place() / "desk/evil") + "\n");
    place().file("desk/.nvmrc", "v0\n");
    place().file("desk/.gitconfig", "[user]\n\tname = Evil\n");
    for (const auto* name : {"desk/claude", "desk/node", "desk/node_modules/.bin/claude",
                             "desk/node_modules/.bin/node", "desk/evil/bin/claude"})
        place().file(name, "#!/bin/sh\necho evil\n", 0755);
    const test::variables path{
        {"PATH", "node_modules/.bin:.:" + (place() / "desk/node_modules/.bin") + ":/usr/bin:/bin"}};
    EXPECT_TRUE(explained({"-p", "claude"}, path) == before);
    EXPECT_THAT(run({"exec", "-p", "claude", "--", "1"}, path).out, Not(HasSubstr("evil")));
    EXPECT_THAT(run({"exec", "-p", "claude"}, path).out, StartsWith("agent: \n"));
    // The twin: in its place, the same file counts.
    configure(evil);
    EXPECT_THAT(texts(explained({"-p", "claude"}, path), "environment"), testing::Contains("EVIL"));
}

// Settings that are kept in a repository of their own, with a link in their place.
TEST_F(ProfileRun, CannotChangeTheFileThatALinkInItsPlaceLeadsTo) {
    configure("[profile.w]\nworkspace = \".\"\n");
    place().directory("home/dotfiles");
    const auto own = home(".config/glove/config.toml");
    const auto real = home("dotfiles/config.toml");
    std::filesystem::rename(own, real);
    std::filesystem::create_symlink(real, own);
    for (const auto* option : {"--write", "--workspace"})
        for (const auto& words : {std::vector<std::string>{"exec", "--home", "none"},
                                  std::vector<std::string>{"exec", "-p", "w", "--home", "none"}}) {
            auto all = words;
            all.insert(all.end(), {option, home("dotfiles"), "--", "sh", "-c", "echo > " + real});
            expect_usage(run(all), "Glove's own files");
        }
    EXPECT_GT(std::filesystem::file_size(real), 1U);
    // The twin: what the link does not lead to.
    place().directory("home/other");
    EXPECT_EQ(run({"exec", "-p", "w", "--write", home("other"), "--", "true"}).status, 0);
}

TEST_F(ProfileRun, CannotMoveTheDirectoryOfSettingsByALinkInTheWorkspace) {
    place().directory("settings/glove", 0700);
    place().file("settings/glove/config.toml", "[profile.w]\nworkspace = \".\"\n", 0600);
    const auto link = place().link("desk/settings", "../settings");
    expect_usage(run({"exec", "-p", "w", "--", "true"}, {{"XDG_CONFIG_HOME", link}}),
                 "Glove's own files at " + link);
    EXPECT_EQ(
        run({"exec", "-p", "w", "--", "true"}, {{"XDG_CONFIG_HOME", place() / "settings"}}).status,
        0);
}

TEST_F(ProfileRun, OptionsComeAfterTheProfileAndReplaceWhatIsSingle) {
    place().directory("home/notes");
    place().directory("home/more");
    configure(
        "[profile.mine]\ncommand = [\"echo\", \"hi\"]\nread = [\"~/notes\"]\nnet = \"local\"\n"
        "env = [\"A=1\", \"B=1\"]\nwall-time = \"1h\"\n");
    EXPECT_EQ(run({"exec", "-p", "mine"}).out, "hi\n");
    EXPECT_EQ(run({"exec", "-p", "mine", "--", "-n", "x"}).out, "hi -n x\n");
    EXPECT_EQ(run({"exec", "-p", "mine", "--env", "A=2", "--", "sh", "-c", "echo $A$B"}).out,
              "21\n");
    const auto plan = explained({"-p", "mine", "--net", "sealed", "--read", home("more"), "--read",
                                 home("notes"), "--wall-time", "1s"});
    EXPECT_EQ(*plan.find("network")->as_string(), "sealed");
    EXPECT_EQ(plan.find("limits")->find("wall_time_ms")->as_unsigned(), 1000U);
    EXPECT_EQ(*explained({"-p", "mine"}).find("network")->as_string(), "local");
}

TEST_F(ProfileRun, ANetworkTierThatIsGivenDropsWhatTheProfileReaches) {
    for (const auto* tier : {"offline", "local", "sealed"}) {
        const auto plan = explained({"-p", "claude", "--net", tier});
        EXPECT_EQ(*plan.find("network")->as_string(), tier);
        EXPECT_THAT(texts(plan, "egress_allow"), IsEmpty());
        EXPECT_EQ(run({"exec", "-p", "claude", "--net", tier, "--", "true"}).status, 0);
    }
    expect_usage(run({"exec", "-p", "claude", "--net", "local", "--egress-allow", "a.example", "--",
                      "true"}),
                 "--egress-allow");
}

// What a run leaves behind cannot choose what the next one is shown.
TEST_F(ProfileRun, AProgramThatTheRunMayWriteIsNotTheProfiles) {
    place().file("home/tools/bin/own", "#!/bin/sh\necho own\n", 0755);
    configure("[profile.mine]\ncommand = [\"own\"]\n");
    const test::variables path{{"PATH", home("tools/bin") + ":/usr/bin:/bin"}};
    EXPECT_EQ(run({"exec", "-p", "mine"}, path).out, "own\n");
    EXPECT_EQ(run({"exec", "-p", "mine", "--write", home("tools")}, path).status, 127);
    configure("[profile.mine]\ncommand = [\"own\"]\nwrite = [\"~/tools\"]\n");
    EXPECT_EQ(run({"exec", "-p", "mine"}, path).status, 127);
}

TEST_F(ProfileRun, AProgramMayBeNamedByItsPath) {
    place().file("home/tools/own", "#!/bin/sh\necho own $*\n", 0755);
    configure("[profile.mine]\ncommand = [\"~/tools/own\", \"-a\"]\n");
    EXPECT_EQ(run({"exec", "-p", "mine"}).out, "own -a\n");
    for (const auto& name : {std::string{"own"}, home("tools/own")})
        EXPECT_EQ(run({"exec", "-p", "mine", "--", name, "b"}).out, "own -a b\n");
}

TEST_F(ProfileRun, WhoCommitsIsKnownInTheNewHome) {
    place().file("home/.gitconfig", "[user]\n\tname = Ada \"L\"\n\temail = ada@example.org\n");
    const auto got =
        run({"exec", "-p", "claude", "--", "sh", "-c",
             "git init -q . && git commit -q --allow-empty -m x && git log --format='%an %ae'"});
    EXPECT_EQ(got.out, "Ada L ada@example.org\n") << got.err;
}

TEST_F(ProfileRun, ARunWithoutACommandNeedsAProgram) {
    configure("[profile.bare]\nnet = \"local\"\n");
    expect_usage(run({"exec", "-p", "bare"}), "names no program");
    EXPECT_EQ(run({"exec", "-p", "bare", "--", "true"}).status, 0);
    expect_usage(run({"exec"}), "no command was given");
}

TEST_F(ProfileRun, AWrongFileStopsEveryProfileAndSaysWhere) {
    configure("[profile.a]\n\n[profile.b]\nreed = []\n");
    for (const auto* name : {"a", "claude"})
        expect_usage(run({"exec", "-p", name, "--", "true"}),
                     home(".config/glove/config.toml:4: [profile.b] reed: there is no such key"));
    EXPECT_EQ(run({"exec", "--", "true"}).status, 0); // it is not read for this one
    configure("[profile.a]\n");
    expect_usage(run({"exec", "-p", "c", "--", "true"}), "no profile 'c'");
}

TEST_F(ProfileRun, PathBringsTheProgramsOfTheHome) {
    place().file("home/.local/bin/own", "#!/bin/sh\necho own\n", 0755);
    place().file("home/tools/pkg/real", "#!/bin/sh\necho linked\n", 0755);
    place().link("home/.local/bin/linked", home("tools/pkg/real"));
    place().link("home/.local/bin/gone", "nowhere");
    const test::variables path{{"PATH", home(".local/bin") + ":/usr/bin:/bin"}};
    const auto got = run({"exec", "--path", "--", "sh", "-c", "own; linked"}, path);
    EXPECT_EQ(got.out, "own\nlinked\n") << got.err;
    EXPECT_THAT(got.err, HasSubstr("--path leaves out " + home(".local/bin/gone (leads nowhere)")));
    EXPECT_EQ(run({"exec", "--", "own"}, path).status, 127);
    const auto written = run({"exec", "--path", "--", "touch", home(".local/bin/own")}, path);
    EXPECT_NE(written.status, 0);
}

// -- glove profile ----------------------------------------------------------------------------

TEST_F(ProfileRun, AreListedWithSourceAndProgram) {
    configure("\n[profile.mine]\nextends = \"codex\"\n");
    const auto got = run({"profile", "list"});
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_THAT(got.out, HasSubstr(home(".nvm/versions/node/v22.1.0/bin/claude\n")));
    EXPECT_THAT(got.out, HasSubstr(home(".config/glove/config.toml:2")));
    EXPECT_THAT(got.out, HasSubstr("(not installed)\n"));
}

TEST_F(ProfileRun, AreShownSoThatTheyCanBePasted) {
    const auto shown = run({"profile", "show", "claude"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out, StartsWith("[profile.claude]\nextends = \"claude\"\n"));
    configure(shown.out);
    EXPECT_EQ(run({"profile", "show", "claude"}).out, shown.out);
}

TEST_F(ProfileRun, AreCheckedAsARunWouldBe) {
    EXPECT_EQ(run({"profile", "check"}).status, 0);
    EXPECT_EQ(run({"profile", "check", "claude"}).status, 0);
    EXPECT_EQ(run({"profile", "check", "codex"}).status, 2); // asked about, and not installed
    configure("[profile.mine]\nread = [\"~/missing\"]\n");
    const auto got = run({"profile", "check"});
    EXPECT_EQ(got.status, 2);
    EXPECT_THAT(got.err, HasSubstr("[profile.mine] --read " + home("missing")));
    place().directory("home/missing");
    EXPECT_EQ(run({"profile", "check"}).status, 0);
    configure("[profile.mine]\nread = [\"~\"]\n");
    EXPECT_THAT(run({"profile", "check", "mine"}).err, HasSubstr("Glove's own files"));
}

TEST_F(ProfileRun, AreCheckedForScripts) {
    configure("[profile.mine]\nread = [\"~/missing\"]\n");
    const auto got = run({"profile", "check", "--json", "mine"});
    EXPECT_EQ(got.status, 2);
    const auto parsed = wire::json::read(got.out);
    ASSERT_TRUE(parsed.has_value()) << got.out;
    const auto& one = (*parsed->find("profiles")->as_array())[0];
    EXPECT_EQ(*one.find("name")->as_string(), "mine");
    EXPECT_EQ(*one.find("problem")->find("step")->as_string(), "grant.resolve");
    configure("[profile.mine]\nx = 1\n");
    const auto wrong = run({"profile", "check", "--json"});
    EXPECT_EQ(wrong.status, 2);
    EXPECT_EQ(*wire::json::read(wrong.out)->find("problem")->find("step")->as_string(),
              "profile.file");
}

TEST_F(ProfileRun, TheVerbRefusesWhatItDoesNotKnow) {
    for (const auto& words :
         std::vector<std::vector<std::string>>{{"profile"},
                                               {"profile", "add"},
                                               {"profile", "show"},
                                               {"profile", "list", "x"},
                                               {"profile", "show", "claude", "--json"},
                                               {"profile", "list", "--", "x"},
                                               {"profile", "show", "none"},
                                               {"profile", "list", "a", "b"}})
        expect_usage(run(words), "error[");
}

} // namespace
