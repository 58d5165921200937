#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <host/programs.hpp>
#include <support/folder.hpp>
#include <sys/xattr.h>

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
        search_.homes = {home_};
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
    search_.writable = {at("project")};
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

TEST_F(Programs, WhatTheRunMayWriteByAnyWayIsPassedOver) {
    program("tools/bin/agent");
    files_.link("home/bin/agent", "../tools/bin/agent");
    search_.path = {at("bin")};
    EXPECT_TRUE(find().has_value());
    for (const auto& place : {at("tools"), at("bin")}) {
        search_.writable = {at("other"), place};
        EXPECT_EQ(find().error().code, errc::not_found) << place;
    }
    program("linked/agent");
    files_.link("home/way", "linked");
    search_.path = {at("way")};
    search_.writable = {at("linked")};
    EXPECT_EQ(find().error().code, errc::not_found);
    EXPECT_THAT(host::offer_path(search_)->needs.files, IsEmpty());
}

TEST_F(Programs, OnlyWhatAPackageManagerLaysOutIsShownAsAWhole) {
    // A file of that name somewhere above says nothing about what lies around it.
    program("src/tools/bin/agent");
    files_.file("home/src/package.json", "{}");
    EXPECT_THAT(find(at("src/tools/bin/agent"))->needs.files,
                ElementsAre(at("src/tools/bin/agent")));
    files_.file("home/src/tools/package.json", "{}");
    EXPECT_THAT(find(at("src/tools/bin/agent"))->needs.files, Contains(at("src/tools")));
    program("src/scripts/run");
    EXPECT_THAT(find(at("src/scripts/run"))->needs.files, ElementsAre(at("src/scripts/run")));
    // In a node_modules, the nearest that lies directly in it.
    program("lib/node_modules/agent/dist/cli.js");
    files_.file("home/lib/node_modules/agent/dist/package.json", "{}");
    files_.file("home/lib/node_modules/agent/package.json", "{}");
    EXPECT_THAT(find(at("lib/node_modules/agent/dist/cli.js"))->needs.files,
                Contains(at("lib/node_modules/agent")));
}

TEST_F(Programs, ALinkDoesNotBringAProjectOfAnotherTree) {
    const auto real = program("other/project/bin/run");
    for (const auto* marker : {"package.json", "pyvenv.cfg"}) {
        files_.file("home/other/project/" + std::string{marker}, "{}");
        for (const auto* name : {"bin/agent", "tools/bin/agent"}) {
            const auto link = files_.link("home/" + std::string{name}, real);
            EXPECT_THAT(find(link)->needs.files, UnorderedElementsAre(link, real));
            std::filesystem::remove(link);
        }
        EXPECT_THAT(find(real)->needs.files, Contains(at("other/project")));
        std::filesystem::remove(at("other/project/" + std::string{marker}));
    }
}

TEST_F(Programs, AMarkerOfAnotherUserOrInAnOpenDirectoryMakesNothingAWhole) {
    const auto real = program("tools/bin/agent");
    for (const auto* marker : {"package.json", "pyvenv.cfg"}) {
        const auto path = files_.file("home/tools/" + std::string{marker}, "{}");
        EXPECT_THAT(find(real)->needs.files, Contains(at("tools")));
        ASSERT_EQ(::chmod(at("tools").c_str(), 01777), 0);
        EXPECT_THAT(find(real)->needs.files, ElementsAre(real));
        ASSERT_EQ(::chmod(at("tools").c_str(), 0755), 0);
        ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
        EXPECT_THAT(find(real)->needs.files, ElementsAre(real));
        ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
        if (::geteuid() == 0) {
            ASSERT_EQ(::chown(path.c_str(), 4711, 0), 0);
            EXPECT_THAT(find(real)->needs.files, ElementsAre(real));
        }
        std::filesystem::remove(path);
        files_.fifo("home/tools/" + std::string{marker});
        EXPECT_THAT(find(real)->needs.files, ElementsAre(real));
        std::filesystem::remove(path);
    }
}

// HOME can be wrong; what lies around a program says nothing then.
TEST_F(Programs, NoHomeIsEverShownAsAWhole) {
    const auto real = program("bin/agent");
    for (const auto* marker : {"package.json", "pyvenv.cfg"}) {
        const auto path = files_.file("home/" + std::string{marker}, "{}");
        EXPECT_THAT(find(real)->needs.files, ElementsAre(real));
        search_.home.clear();
        search_.homes.clear();
        EXPECT_THAT(find(real)->needs.files, ElementsAre(real));
        search_.home = files_.directory("elsewhere");
        search_.homes = {search_.home, home_};
        EXPECT_THAT(find(real)->needs.files, ElementsAre(real));
        search_.home = home_;
        search_.homes = {home_};
        std::filesystem::remove(path);
    }
}

TEST_F(Programs, TheCallersHomeIsTheOneOfItsAccountToo) {
    const std::string_view accounts{"root:x:0:0:r:/root/:/bin/sh\nbad:x:7:0::/bad\n"
                                    "a:x:7:7:,,:/home/a:/bin/sh\nb:x:8:8::b:/bin/sh\n"};
    EXPECT_EQ(host::home_in(accounts, 0), "/root");
    EXPECT_EQ(host::home_in(accounts, 7), "/home/a");
    EXPECT_EQ(host::home_in(accounts, 8), "");
    EXPECT_EQ(host::home_in(accounts, 9), "");
    for (const auto& home : {home_ + "/", home_ + "//", home_}) {
        ::setenv("HOME", home.c_str(), 1);
        EXPECT_EQ(host::caller_search({})->home, home_);
        EXPECT_THAT(host::caller_search({})->homes, Contains(home_));
    }
    ::setenv("HOME", "/", 1);
    EXPECT_EQ(host::caller_search({})->home, "");
    ::unsetenv("HOME");
    EXPECT_EQ(host::caller_search({})->home, "");
    ::setenv("HOME", home_.c_str(), 1);
}

TEST_F(Programs, TheSettingsOfNpmAreReadFromARegularFileThatTheRunCannotWrite) {
    ::setenv("HOME", home_.c_str(), 1);
    ::unsetenv("NPM_CONFIG_PREFIX");
    const auto prefixes = [&](std::vector<std::string> writable = {}) {
        return host::caller_search(writable)->prefixes;
    };
    files_.fifo("home/.npmrc");
    EXPECT_THAT(prefixes(), Not(Contains(at("npm/bin"))));
    std::filesystem::remove(at(".npmrc"));
    files_.file("home/dotfiles/npmrc", "prefix=~/npm\n");
    files_.link("home/.npmrc", "dotfiles/npmrc");
    EXPECT_THAT(prefixes(), Contains(at("npm/bin")));
    EXPECT_THAT(prefixes({at("dotfiles")}), Not(Contains(at("npm/bin"))));
}

// {version 2} and entries of {kind, bits, number}.
TEST_F(Programs, AnAccessListIsNoOwnGroup) {
    if (::getegid() != ::geteuid()) return; // then no group is the caller's own
    const auto path = program(".local/bin/agent");
    ASSERT_EQ(::chmod(path.c_str(), 0775), 0);
    EXPECT_TRUE(find().has_value());
    struct entry {
        std::uint16_t kind, bits;
        std::uint32_t who;
    };
    struct {
        std::uint32_t version = 2;
        std::array<entry, 5> entries{
            {{1, 7, ~0U}, {2, 7, 54321}, {4, 5, ~0U}, {16, 7, ~0U}, {32, 5, ~0U}}};
    } const list;
    ASSERT_EQ(::setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof list, 0), 0);
    EXPECT_THAT(find().error().detail, HasSubstr("can be written by its group"));
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
    search_.homes = {search_.home};
    // Its package lies above the home, so it is not taken for one.
    EXPECT_THAT(find(real)->needs.files, ElementsAre(real));
    search_.home = files_ / "node_modules/other";
    search_.homes = {search_.home};
    const auto got = find(real);
    ASSERT_FALSE(got.has_value());
    EXPECT_THAT(got.error().detail, HasSubstr("holds your home"));
    search_.home = home_;
    search_.homes = {home_};
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
