#include <algorithm>
#include <gmock/gmock.h>
#include <host/programs.hpp>
#include <support/folder.hpp>

namespace {

using namespace glove;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr const char* node_script = "#!/usr/bin/env agent-node\n";

// A home with programs as the package managers lay them out. The interpreter has a name that no
// machine has a program of.
class Programs : public testing::Test {
protected:
    Programs() {
        home_ = files_.directory("home");
        search_.home = home_;
    }
    auto program(std::string_view name, std::string_view content = "binary") const -> std::string {
        return files_.file("home/" + std::string{name}, content, 0755);
    }
    [[nodiscard]] auto at(std::string_view name) const -> std::string {
        return home_ + "/" + std::string{name};
    }
    // An npm prefix below the home, with one package.
    void npm_global(const std::string& prefix, std::string_view manifest = "{}") const {
        const auto package = prefix + "/lib/node_modules/@maker/agent";
        program(package + "/cli.js", node_script);
        files_.file("home/" + package + "/package.json", manifest);
        files_.link("home/" + prefix + "/bin/agent", "../lib/node_modules/@maker/agent/cli.js");
    }
    [[nodiscard]] auto find(std::string_view name = "agent",
                            std::span<const std::string_view> own = {}) const {
        return host::find_program(name, own, search_);
    }
    test::folder files_;
    std::string home_;
    host::program_search search_;
};

TEST_F(Programs, AGlobalPackageNeedsItsDirectoryAndItsInterpreter) {
    npm_global(".npm-global");
    const auto node = program("tools/agent-node");
    search_.path = {at("tools")};
    const auto got = find();
    ASSERT_TRUE(got.has_value()) << got.error().detail;
    EXPECT_EQ(got->path, at(".npm-global/bin/agent"));
    EXPECT_THAT(got->needs.files,
                UnorderedElementsAre(at(".npm-global/lib/node_modules/@maker/agent"),
                                     at(".npm-global/bin/agent"), node));
    EXPECT_THAT(got->needs.directories, ElementsAre(at(".npm-global/bin"), at("tools")));
}

TEST_F(Programs, APackageWhoseDependenciesStandBesideItNeedsThemAll) {
    program("tools/agent-node");
    search_.path = {at("tools")};
    const std::string_view manifest{R"({"optionalDependencies": {"@maker/agent-linux": "1"}})"};
    npm_global(".npm-global", manifest);
    const auto modules = at(".npm-global/lib/node_modules");
    EXPECT_THAT(find()->needs.files, Contains(modules + "/@maker/agent"));
    files_.directory("home/.npm-global/lib/node_modules/@maker/agent-linux");
    EXPECT_THAT(find()->needs.files, Contains(modules));
    files_.directory(
        "home/.npm-global/lib/node_modules/@maker/agent/node_modules/@maker/agent-linux");
    EXPECT_THAT(find()->needs.files, Not(Contains(modules)));
}

TEST_F(Programs, AVersionManagersProgramGetsTheInterpreterOfItsVersion) {
    npm_global(".nvm/versions/node/v9.1.0");
    npm_global(".nvm/versions/node/v22.3.0");
    program(".nvm/versions/node/v9.1.0/bin/agent-node");
    program(".nvm/versions/node/v22.3.0/bin/agent-node");
    program("tools/agent-node");
    search_.path = {at("tools")};
    auto got = find();
    ASSERT_TRUE(got.has_value()) << got.error().detail;
    EXPECT_EQ(got->path, at(".nvm/versions/node/v22.3.0/bin/agent"));
    EXPECT_THAT(got->needs.files, Contains(at(".nvm/versions/node/v22.3.0")));
    EXPECT_THAT(got->needs.directories, ElementsAre(at(".nvm/versions/node/v22.3.0/bin")));
    // The one on PATH is the one that would start.
    search_.path = {at(".nvm/versions/node/v9.1.0/bin")};
    got = find();
    EXPECT_THAT(got->needs.files, Contains(at(".nvm/versions/node/v9.1.0")));
    EXPECT_THAT(got->needs.files, Not(Contains(HasSubstr("v22"))));
}

TEST_F(Programs, AnInstallersProgramIsFoundByItsOwnPlace) {
    const auto real = program(".local/share/claude/versions/2.1.10");
    program(".local/share/claude/versions/2.1.9");
    const std::array<std::string_view, 2> own{".local/bin/agent", ".local/share/claude/versions/*"};
    EXPECT_EQ(find("agent", own)->path, real);
    const auto link = files_.link("home/.local/bin/agent", real);
    const auto got = find("agent", own);
    EXPECT_EQ(got->path, link);
    EXPECT_THAT(got->needs.files, UnorderedElementsAre(real, link));
}

TEST_F(Programs, APythonEnvironmentIsOne) {
    const auto environment = at(".local/share/pipx/venvs/agent");
    program(".local/share/pipx/venvs/agent/bin/agent", "#!" + environment + "/bin/python\n");
    program(".local/share/pipx/venvs/agent/bin/python");
    files_.file("home/.local/share/pipx/venvs/agent/pyvenv.cfg");
    files_.link("home/.local/bin/agent", environment + "/bin/agent");
    EXPECT_THAT(find()->needs.files, Contains(environment));
}

TEST_F(Programs, WhatTheSystemShowsNeedsNothing) {
    const auto got = find("sh");
    ASSERT_TRUE(got.has_value());
    EXPECT_THAT(got->needs.files, IsEmpty());
    EXPECT_THAT(got->needs.directories, IsEmpty());
}

TEST_F(Programs, DanglingLinksLoopsDirectoriesAndPlainFilesAreNoPrograms) {
    files_.link("home/.local/bin/agent", "nowhere");
    files_.link("home/.npm-global/bin/agent", "agent");
    files_.directory("home/.bun/bin/agent");
    files_.file("home/.yarn/bin/agent", "x", 0644);
    files_.fifo("home/.npm/bin/agent");
    EXPECT_EQ(find().error().code, errc::not_found);
    program(".npm-packages/bin/agent");
    EXPECT_TRUE(find().has_value());
}

TEST_F(Programs, StandInsOfVersionManagersArePassedOver) {
    program(".asdf/shims/agent");
    files_.link("home/.local/bin/agent", "../../.volta/bin/volta-shim");
    program(".volta/bin/volta-shim");
    search_.path = {at(".asdf/shims"), at(".local/bin")};
    EXPECT_EQ(find().error().code, errc::not_found);
    program(".asdf/installs/nodejs/22.1.0/bin/agent");
    EXPECT_EQ(find()->path, at(".asdf/installs/nodejs/22.1.0/bin/agent"));
}

TEST_F(Programs, WhatIsInTheProjectIsPassedOver) {
    const auto evil = program("project/node_modules/.bin/agent");
    files_.link("home/.local/bin/agent", evil);
    search_.path = {at("project/node_modules/.bin"), at(".local/bin")};
    EXPECT_EQ(find()->path, evil);
    search_.project = at("project");
    EXPECT_EQ(find().error().code, errc::not_found);
    const auto good = program("bin/agent");
    search_.path.push_back(at("bin"));
    EXPECT_EQ(find()->path, good);
}

TEST_F(Programs, APlaceThatOthersCanChangeIsRefused) {
    program(".local/bin/agent");
    for (const auto& place : {at(".local/bin/agent"), at(".local/bin"), at(".local")}) {
        ASSERT_EQ(::chmod(place.c_str(), 0777), 0);
        const auto got = find();
        ASSERT_FALSE(got.has_value()) << place;
        EXPECT_EQ(got.error().code, errc::not_permitted);
        EXPECT_THAT(got.error().detail, HasSubstr(place + " can be written by everybody"));
        ASSERT_EQ(::chmod(place.c_str(), 0755), 0);
        EXPECT_TRUE(find().has_value());
    }
}

TEST_F(Programs, OnlyTheGroupOfTheCallersOwnNumberMayWrite) {
    const auto path = program(".local/bin/agent");
    ASSERT_EQ(::chmod(path.c_str(), 0775), 0);
    EXPECT_EQ(find().has_value(), ::getegid() == ::geteuid());
    if (::geteuid() != 0) return; // nobody else can give a group away
    ASSERT_EQ(::chown(path.c_str(), 0, 4711), 0);
    EXPECT_EQ(find().error().code, errc::not_permitted);
    ASSERT_EQ(::chown(path.c_str(), 4711, 0), 0);
    EXPECT_THAT(find().error().detail, HasSubstr("belongs to another user"));
}

TEST_F(Programs, AnInterpreterThatIsNotThereIsAnError) {
    program(".local/bin/agent", node_script);
    const auto got = find();
    ASSERT_FALSE(got.has_value());
    EXPECT_THAT(got.error().detail, HasSubstr("'agent-node'"));
    program(".local/bin/agent-node", "#!" + at(".local/bin/agent-node") + "\n");
    EXPECT_THAT(find().error().detail, HasSubstr("too many interpreters"));
    program(".local/bin/agent-node");
    EXPECT_TRUE(find().has_value());
}

TEST_F(Programs, AnInterpreterIsReadFromTheFirstLineAsEnvWould) {
    program("tools/agent-node");
    search_.path = {at("tools")};
    for (const auto* line :
         {"#!/usr/bin/env -S agent-node --flag\n", "#! /usr/bin/env  agent-node\n",
          "#!/usr/bin/env A=1 agent-node\r\n"}) {
        program(".local/bin/agent", line);
        EXPECT_THAT(find()->needs.files, Contains(at("tools/agent-node"))) << line;
    }
    for (const auto* line : {"#!/bin/sh\n", "# not one\n", "", "#!/usr/bin/env\n"}) {
        program(".local/bin/agent", line);
        EXPECT_THAT(find()->needs.files, ElementsAre(at(".local/bin/agent"))) << line;
    }
}

TEST_F(Programs, AProgramThatNeedsTheWholeHomeIsRefused) {
    const auto real = files_.file("node_modules/agent/home/you/bin/agent", "x", 0755);
    files_.file("node_modules/agent/package.json", R"({"dependencies": {"other": "1"}})");
    files_.directory("node_modules/other");
    search_.home = files_ / "node_modules/agent/home/you";
    // Its package lies above the home, so it is not taken for one.
    EXPECT_THAT(find(real)->needs.files, ElementsAre(real));
    search_.home = files_ / "node_modules/other";
    const auto got = find(real);
    ASSERT_FALSE(got.has_value());
    EXPECT_THAT(got.error().detail, HasSubstr("holds your home"));
    search_.home = home_;
    EXPECT_TRUE(find(real).has_value());
    search_.closed = {files_ / "node_modules/agent/state/glove"};
    EXPECT_THAT(find(real).error().detail, HasSubstr("holds Glove's own files"));
}

TEST_F(Programs, PathOffersTheDirectoriesOfTheHomeAndWhatTheirLinksNeed) {
    npm_global(".npm-global");
    program("tools/agent-node");
    files_.link("home/tools/dangling", "nowhere");
    files_.link("home/tools/round", "round");
    files_.link("home/tools/system", "/bin/sh");
    files_.link("home/tools/beside", "agent-node");
    search_.path = {"/usr/bin", at("tools"), at(".npm-global/bin"), at("missing"), home_};
    const auto got = host::offer_path(search_);
    ASSERT_TRUE(got.has_value());
    EXPECT_THAT(got->needs.directories, ElementsAre(at("tools"), at(".npm-global/bin")));
    EXPECT_THAT(got->needs.files,
                UnorderedElementsAre(at("tools"), at(".npm-global/bin"), at("tools/agent-node"),
                                     at(".npm-global/lib/node_modules/@maker/agent")));
    EXPECT_THAT(got->left_out, UnorderedElementsAre(at("tools/dangling") + " (leads nowhere)",
                                                    at("tools/round") + " (leads nowhere)",
                                                    home_ + " (is the whole home)"));
}

TEST_F(Programs, PathLeavesOutWhatOthersCanChangeAndGlovesOwn) {
    program("tools/a");
    program("state/glove/bin/b");
    search_.path = {at("tools"), at("state/glove/bin"), at("state")};
    search_.closed = {at("state/glove")};
    ASSERT_EQ(::chmod(at("tools").c_str(), 0777), 0);
    auto got = host::offer_path(search_);
    EXPECT_THAT(got->needs.files, IsEmpty());
    EXPECT_EQ(got->left_out.size(), 3U);
    ASSERT_EQ(::chmod(at("tools").c_str(), 0755), 0);
    got = host::offer_path(search_);
    EXPECT_THAT(got->needs.files, ElementsAre(at("tools")));
}

TEST_F(Programs, PathFollowsAtMost256Links) {
    for (int i = 0; i < 257; ++i) {
        const auto name = std::to_string(i);
        program("elsewhere/" + name);
        files_.link("home/tools/" + name, at("elsewhere/" + name));
    }
    search_.path = {at("tools")};
    const auto got = host::offer_path(search_);
    EXPECT_EQ(got->needs.files.size(), 1U + 256U);
    EXPECT_EQ(got->left_out.size(), 1U);
}

TEST_F(Programs, PathWithoutAHomeIsRefused) {
    search_.home.clear();
    EXPECT_FALSE(host::offer_path(search_).has_value());
}

} // namespace
