#include <cstdlib>
#include <gtest/gtest.h>
#include <host/git_identity.hpp>
#include <support/folder.hpp>

namespace {

using namespace glove;

auto read(std::string_view text) -> host::git_identity {
    host::git_identity out;
    host::read_git_identity(text, out);
    return out;
}

TEST(GitIdentity, IsNameAndEmailOfTheUserSection) {
    const auto got = read("# mine\n[core]\n\tname = no\n[user]\n\tname = Ada Lovelace  ; me\n"
                          "\temail=ada@example.org\n[alias]\n\temail = no\n");
    EXPECT_EQ(got.name, "Ada Lovelace");
    EXPECT_EQ(got.email, "ada@example.org");
}

TEST(GitIdentity, KnowsQuotesEscapesAndCase) {
    EXPECT_EQ(read("[USER]\nNAME = \"A \\\"B\\\" # C\"\n").name, "A \"B\" # C");
    EXPECT_EQ(read("[ user ]\nname = a\\\\b\n").name, "a\\b");
    EXPECT_EQ(read("[user] name = in one line\n").name, "in one line");
    EXPECT_EQ(read("[user]\nname = first\nname = second\r\n").name, "second");
}

TEST(GitIdentity, WhatIsOddIsAsIfItWereNotThere) {
    for (const auto* text :
         {"[user]\nname = \"open\n", "[user]\nname = goes on \\\n on\n", "[user]\nname =\n",
          "[user]\nname\n", "[user \"x\"]\nname = sub\n", "[user\nname = x\n", "name = x\n",
          "[users]\nname = x\n", "[user]\nname = a\x01z\n", "[user]\nname = a\\nb\n"})
        EXPECT_EQ(read(text).name, "") << text;
    EXPECT_EQ(read("[user]\nname = " + std::string(513, 'x') + "\n").name, "");
    EXPECT_EQ(read("[user]\nname = " + std::string(512, 'x') + "\n").name.size(), 512U);
}

TEST(GitIdentity, AnIncludedFileIsNotRead) {
    const test::folder home;
    const auto other = home.file("other", "[user]\nname = included\n");
    EXPECT_EQ(read("[include]\npath = " + other + "\n[user]\nemail = e\n").name, "");
}

TEST(GitIdentity, TheFileOfTheHomeComesAfterTheOneOfTheSettings) {
    const test::folder home;
    home.file(".config/git/config", "[user]\nname = settings\nemail = s@x\n");
    home.file(".gitconfig", "[user]\nname = home\n");
    ::setenv("HOME", home.path().c_str(), 1);
    ::unsetenv("XDG_CONFIG_HOME");
    ::unsetenv("GIT_CONFIG_GLOBAL");
    auto got = host::caller_git_identity();
    EXPECT_EQ(got.name, "home");
    EXPECT_EQ(got.email, "s@x");
    ::setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    got = host::caller_git_identity();
    EXPECT_EQ(got.name + got.email, "");
    ::unsetenv("GIT_CONFIG_GLOBAL");
}

TEST(GitIdentity, IsWrittenSoThatItIsReadBack) {
    const host::git_identity who{.name = "A \"B\" \\ #;C", .email = "a@b"};
    const auto back = read(host::git_settings(who));
    EXPECT_EQ(back.name, who.name);
    EXPECT_EQ(back.email, who.email);
    EXPECT_EQ(host::git_settings({}), "");
}

} // namespace
