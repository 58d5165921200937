#include <algorithm>
#include <array>
#include <cstdlib>
#include <glove/host/profiles.hpp>
#include <gmock/gmock.h>
#include <support/folder.hpp>

namespace {

using namespace glove;
using host::profile_catalogue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* file = "/home/you/.config/glove/config.toml";

auto parse(std::string_view text) { return profile_catalogue::parse(text, file, "/home/you"); }

auto values(const host::effective_profile& profile, std::string_view key)
    -> std::vector<std::string> {
    const auto* const found = profile.values.find(key);
    return found == nullptr ? std::vector<std::string>{} : *found;
}

// The profile `p` of a text.
auto profile(std::string_view text, std::string_view name = "p") -> host::effective_profile {
    auto catalogue = parse(text);
    EXPECT_TRUE(catalogue.has_value()) << catalogue.error().detail;
    if (!catalogue) return {};
    auto found = catalogue->find(name);
    EXPECT_TRUE(found.has_value()) << found.error().detail;
    return found ? *std::move(found) : host::effective_profile{};
}

void expect_refused(std::string_view text, const std::string& place, const std::string& what) {
    const auto got = parse(text);
    ASSERT_FALSE(got.has_value()) << text;
    EXPECT_THAT(got.error().detail, StartsWith(std::string{file} + ":" + place)) << text;
    EXPECT_THAT(got.error().detail, HasSubstr(what)) << text;
    EXPECT_FALSE(got.error().remedy.empty()) << text;
}

// One value that each key takes, and what its option gets.
struct sample {
    const char* toml;
    std::vector<std::string> texts;
};
auto samples() -> const std::map<std::string_view, sample>& {
    static const std::map<std::string_view, sample> all{
        {"command", {R"(["agent", "--flag"])", {"agent", "--flag"}}},
        {"workspace", {R"(".")", {"."}}},
        {"read", {R"(["/srv/a", "~/b", "~"])", {"/srv/a", "/home/you/b", "/home/you"}}},
        {"write", {R"(["/srv/a"])", {"/srv/a"}}},
        {"hide", {R"(["~/b/.env"])", {"/home/you/b/.env"}}},
        {"unprotect", {R"([".vscode", "~/a"])", {".vscode", "/home/you/a"}}},
        {"path", {"true", {"true"}}},
        {"env", {R"(["KEY", "A=b=c", "E="])", {"KEY", "A=b=c", "E="}}},
        {"home", {R"("work.2")", {"work.2"}}},
        {"net", {R"("local")", {"local"}}},
        {"egress-allow", {R"([".example.com", "a.example:22"])", {".example.com", "a.example:22"}}},
        {"publish", {"[3000, 1]", {"3000", "1"}}},
        {"egress-connections", {"65536", {"65536"}}},
        {"ssh-agent", {R"("work key")", {"work key"}}},
        {"wall-time", {R"("90s")", {"90s"}}},
        {"output-bytes", {R"("64K")", {"64K"}}},
        {"memory", {R"("2G")", {"2G"}}},
        {"pids", {"4194303", {"4194303"}}},
        {"cpus", {R"("0.5")", {"0.5"}}},
        {"cpu-time", {R"("10m")", {"10m"}}},
        {"disk", {R"("64MB")", {"64MB"}}},
        {"scratch-bytes", {"1048576", {"1048576"}}},
        {"pty", {"true", {"true"}}},
        {"upstream", {R"(["files=server,."])", {"files=server,."}}},
        {"mcp-config", {R"(["~/servers.json"])", {"/home/you/servers.json"}}},
        {"contain-upstreams", {"true", {"true"}}},
        {"upstream-read", {R"(["files=~/a"])", {"files=/home/you/a"}}},
        {"upstream-write", {R"(["files=/srv/a"])", {"files=/srv/a"}}},
        {"upstream-egress", {R"(["web=.example.com"])", {"web=.example.com"}}},
        {"allow", {R"(["files.*", "web.get"])", {"files.*", "web.get"}}},
        {"deny", {R"(["files.write"])", {"files.write"}}},
        {"policy", {R"("~/tools.toml")", {"/home/you/tools.toml"}}},
    };
    return all;
}

auto with(std::string_view key, std::string_view value) -> std::string {
    return "[profile.p]\n" + std::string{key} + " = " + std::string{value} + "\n";
}

TEST(Configuration, EveryKeyTakesItsOwnValue) {
    for (const auto& row : host::setting_rows()) {
        SCOPED_TRACE(row.key);
        ASSERT_TRUE(samples().contains(row.key)) << "a row without a sample";
        const auto& [toml, texts] = samples().at(row.key);
        EXPECT_EQ(values(profile(with(row.key, toml)), row.key), texts);
    }
    EXPECT_EQ(samples().size(), host::setting_rows().size());
}

TEST(Configuration, EveryKeyRefusesEveryOtherType) {
    const std::vector<std::pair<host::toml_type, const char*>> others{
        {host::toml_type::text, R"("")"},         {host::toml_type::integer, "0"},
        {host::toml_type::truth, "maybe"},        {host::toml_type::list, "[[1]]"},
        {host::toml_type::list, "[{}]"},          {host::toml_type::other, "1.5"},
        {host::toml_type::other, "{}"},           {host::toml_type::other, "2026-01-01"},
        {host::toml_type::list, "[1.5]"},         {host::toml_type::list, R"([""])"},
        {host::toml_type::list, "[true]"},        {host::toml_type::integer, "-1"},
        {host::toml_type::text, R"("a\u0000b")"}, {host::toml_type::list, R"(["/a\u0000b"])"},
    };
    for (const auto& row : host::setting_rows())
        for (const auto& [type, text] : others) {
            // The one of these that is a size.
            const bool of_size =
                row.key.ends_with("-bytes") || row.key == "memory" || row.key == "disk";
            if (of_size && std::string_view{text} == "0") continue;
            expect_refused(with(row.key, text),
                           "2: ", std::string_view{text} == "maybe" ? "" : std::string{row.key});
        }
}

TEST(Configuration, WhatIsOutOfBoundsIsRefusedWithTheValueAndTheMend) {
    struct row {
        const char *key, *value, *shown;
    };
    for (const auto& [key, value, shown] :
         {row{"read", R"(["notes"])", "'notes'"},
          row{"read", R"(["./x"])", "'./x'"},
          row{"write", R"(["~other/x"])", "'~other/x'"},
          row{"hide", R"([".env"])", "'.env'"},
          row{"unprotect", R"(["../x"])", "'../x'"},
          row{"ssh-agent", R"("")", "''"},
          row{"workspace", R"("src")", "'src'"},
          row{"workspace", R"("..")", "'..'"},
          row{"env", R"(["1A"])", "'1A'"},
          row{"env", R"(["A-B=1"])", "'A-B=1'"},
          row{"env", R"(["=x"])", "'=x'"},
          row{"env", R"(["A=1", "A=2"])", "more than once"},
          row{"net", R"("egress")", "'egress'"},
          row{"net", R"("Local")", "'Local'"},
          row{"egress-allow", R"(["https://a.example"])", "https://a.example"},
          row{"egress-allow", R"(["10.0.0.1"])", "10.0.0.1"},
          row{"read", R"(["/a", "/a"])", "more than once"},
          row{"publish", "[0]", "0"},
          row{"publish", "[65536]", "65536"},
          row{"egress-connections", "0", "0"},
          row{"egress-connections", "65537", "65537"},
          row{"wall-time", R"("soon")", "'soon'"},
          row{"wall-time", R"("0s")", "'0s'"},
          row{"output-bytes", R"("1.5M")", "'1.5M'"},
          row{"memory", R"("much")", "'much'"},
          row{"pids", "0", "0"},
          row{"pids", "4194304", "4194304"},
          row{"cpus", R"("0.001")", "'0.001'"},
          row{"cpus", "0", "0"},
          row{"cpu-time", R"("soon")", "'soon'"},
          row{"command", "[]", "empty"},
          row{"command", R"(["./x"])", "'./x'"},
          row{"command", R"(["a/b"])", "'a/b'"}})
        expect_refused(with(key, value), "2: ", shown);
}

TEST(Configuration, AListHoldsAtMost256Values) {
    const auto list = [](int count) {
        std::string out{"["};
        for (int i = 0; i < count; ++i) out += "\"/" + std::to_string(i) + "\",";
        return out + "]";
    };
    EXPECT_EQ(values(profile(with("read", list(256))), "read").size(), 256U);
    expect_refused(with("read", list(257)), "2: ", "256");
}

TEST(Configuration, WhatIsUnknownOrRepeatedIsRefusedWhereItStands) {
    expect_refused("\n[profile.p]\n\nrad = []\n", "4: [profile.p] rad", "no such key");
    expect_refused("[profile.p]\nread = []\nread = []\n", "3: ", "");
    expect_refused("[profile.p]\n[profile.p]\n", "2: ", "");
    expect_refused("[profiles.p]\n", "1: profiles", "no such key");
    expect_refused("net = \"local\"\n", "1: net", "no such key");
    expect_refused("profile = 3\n", "1: profile", "not a table");
    expect_refused("[profile]\np = 3\n", "2: [profile.p]", "not a table");
    expect_refused("[profile.\"a b\"]\n", "1: [profile.a b]", "is not a name");
    expect_refused("[profile.Work]\n", "1: [profile.Work]", "is not a name");
    expect_refused("[profile.none]\n", "1: [profile.none]", "is not a name");
    expect_refused("[profile.\"\"]\n", "1: ", "is not a name");
    expect_refused("[profile." + std::string(65, 'x') + "]\n", "1: ", "is not a name");
    expect_refused("[profile.p]\nextends = [\"claude\"]\n", "2: [profile.p] extends", "");
    expect_refused("[profile.p]\nread = [\n", "", "");
    expect_refused("[profile.p]\nread = [\"\xff\"]\n", "2: ", "");
    EXPECT_TRUE(parse("[profile." + std::string(64, 'x') + "]\n").has_value());
    EXPECT_TRUE(parse("").has_value());
}

// The reader of TOML ends by a stack overflow on these.
TEST(Configuration, AKeyOfEndlessPartsIsRefusedBeforeItIsRead) {
    const auto dotted = [](int parts) {
        std::string out;
        for (int i = 0; i < parts; ++i) out += "a.";
        return out;
    };
    for (const auto& text :
         {dotted(1025) + "a = 1\n", "[" + dotted(1025) + "a]\n",
          "x = {" + dotted(1025) + "a = 1}\n", "\"#=\"." + dotted(1025) + "a = 1\n"})
        expect_refused("\n" + text, "2: ", "more than 1024 dots");
    EXPECT_EQ(parse(dotted(131'000) + "a = 1\n").error().code, errc::limit_exceeded);
    expect_refused(dotted(1024) + "a = 1\n", "1: a", "no such key");
    std::string lines;
    for (int i = 0; i < 31; ++i) lines += "[" + dotted(1020) + "b" + std::to_string(i) + "]\n";
    expect_refused(lines, "1: a", "no such key");
}

// What is nearer says where nothing can be reached; what is inherited does not undo it.
TEST(Profiles, ANetworkTierDropsWhatIsInheritedToBeReached) {
    const auto got = profile("[profile.p]\nextends = \"claude\"\nnet = \"local\"\n");
    EXPECT_THAT(values(got, "egress-allow"), testing::IsEmpty());
    EXPECT_THAT(values(got, "net"), ElementsAre("local"));
    const std::string base{"[profile.base]\negress-allow = [\"a.example\"]\npublish = [80]\n"};
    const auto own = profile(base + "[profile.p]\nextends = \"base\"\nnet = \"local\"\n"
                                    "publish = [81]\n");
    EXPECT_THAT(values(own, "egress-allow"), testing::IsEmpty());
    EXPECT_THAT(values(own, "publish"), ElementsAre("81"));
    const auto plain = profile(base + "[profile.p]\nextends = \"base\"\n");
    EXPECT_THAT(values(plain, "egress-allow"), ElementsAre("a.example"));
    EXPECT_THAT(values(plain, "publish"), ElementsAre("80"));
    const auto shown = host::to_toml(got);
    EXPECT_EQ(host::to_toml(profile(shown)), shown);
}

// The rules of the machine's owner for an agent hold inside as well.
TEST(Profiles, TheMachinesPolicyForAnAgentIsSeenWhereThereIsOne) {
    const test::folder files;
    const auto there = files.directory("policy");
    const auto missing = files / "missing";
    const std::array<std::string_view, 2> places{there, missing};
    const adapters::agent_description agent{.name = "a",
                                            .title = "",
                                            .install = "",
                                            .command = {},
                                            .own_places = {},
                                            .policy_places = places,
                                            .passed_environment = {},
                                            .set_environment = {},
                                            .destinations = {},
                                            .credentials = {},
                                            .seeds = {}};
    const auto got =
        host::prepare_profile({.name = "a", .source = "", .values = {}, .agent = &agent}, {});
    ASSERT_TRUE(got.has_value());
    EXPECT_THAT(got->files, ElementsAre(there));
}

TEST(Configuration, AProgramIsANameOrAPathLikeOthers) {
    EXPECT_THAT(values(profile(with("command", R"(["~/bin/x", "./y"])")), "command"),
                ElementsAre("/home/you/bin/x", "./y"));
}

TEST(Profiles, AListIsTheParentsAndThenTheChilds) {
    const auto got =
        profile("[profile.base]\nread = [\"/a\", \"/b\"]\nenv = [\"A=1\", \"B=1\"]\n"
                "net = \"local\"\ncommand = [\"x\", \"y\"]\npath = true\n"
                "[profile.p]\nextends = \"base\"\nread = [\"/c\", \"/a\"]\n"
                "env = [\"A=2\"]\nnet = \"sealed\"\ncommand = [\"z\"]\npath = false\n");
    EXPECT_THAT(values(got, "read"), ElementsAre("/b", "/c", "/a"));
    EXPECT_THAT(values(got, "env"), ElementsAre("B=1", "A=2"));
    EXPECT_THAT(values(got, "net"), ElementsAre("sealed"));
    EXPECT_THAT(values(got, "command"), ElementsAre("z"));
    EXPECT_THAT(values(got, "path"), ElementsAre("false"));
    EXPECT_EQ(got.agent, nullptr);
}

TEST(Profiles, ABuiltInOneIsAnAgent) {
    for (const auto* const agent : adapters::agents()) {
        const auto got = profile("", agent->name);
        EXPECT_EQ(got.source, "built-in");
        EXPECT_EQ(got.agent, agent);
        EXPECT_THAT(values(got, "workspace"), ElementsAre("."));
        EXPECT_EQ(values(got, "egress-allow").size(), agent->destinations.size());
    }
}

TEST(Profiles, AnOwnOneMayExtendABuiltInOneAlsoUnderItsName) {
    const auto plain = profile("", "claude");
    for (const auto* name : {"claude", "work"}) {
        const auto got = profile("[profile." + std::string{name} +
                                     "]\nextends = \"claude\"\negress-allow = [\"x.example\"]\n",
                                 name);
        EXPECT_EQ(got.agent, plain.agent);
        EXPECT_EQ(got.source, std::string{file} + ":1");
        EXPECT_EQ(values(got, "egress-allow").size(), plain.agent->destinations.size() + 1);
    }
    // Others that extend it get the own one.
    const auto both = profile("[profile.claude]\nextends = \"claude\"\nread = [\"/a\"]\n"
                              "[profile.p]\nextends = \"claude\"\n");
    EXPECT_THAT(values(both, "read"), ElementsAre("/a"));
}

TEST(Profiles, TheNameOfABuiltInOneMeansNothingElse) {
    expect_refused("[profile.claude]\nread = [\"/a\"]\n", "1: ", "does not extend it");
    expect_refused("[profile.codex]\nextends = \"claude\"\n", "1: ", "does not extend it");
}

TEST(Profiles, ACircleAndAnUnknownParentAreRefused) {
    expect_refused("[profile.a]\nextends = \"b\"\n[profile.b]\nextends = \"a\"\n",
                   "3: ", "extends");
    expect_refused("[profile.p]\nextends = \"p\"\n", "1: ", "extends itself");
    expect_refused("[profile.p]\nextends = \"nobody\"\n", "1: ", "no profile 'nobody'");
    const auto catalogue = parse("");
    EXPECT_EQ(catalogue->find("none").error().code, errc::not_found);
}

TEST(Profiles, AChainHasAtMostEightLinks) {
    const auto chain = [](int links) {
        std::string out{"[profile.p1]\n"};
        for (int i = 2; i <= links; ++i)
            out += "[profile.p" + std::to_string(i) + "]\nextends = \"p" + std::to_string(i - 1) +
                   "\"\n";
        return out;
    };
    EXPECT_TRUE(parse(chain(8)).has_value());
    EXPECT_EQ(parse(chain(9)).error().code, errc::limit_exceeded);
}

TEST(Profiles, WhatIsShownCanBePastedAndMeansTheSame) {
    std::string text{"[profile.p]\nextends = \"codex\"\n"};
    for (const auto& [key, one] : samples())
        text.append(key).append(" = ").append(one.toml) += "\n";
    const auto first = profile(text);
    const auto pasted = host::to_toml(first);
    const auto second = profile(pasted);
    EXPECT_EQ(host::to_toml(second), pasted);
    for (const auto& row : host::setting_rows())
        EXPECT_THAT(values(second, row.key),
                    testing::UnorderedElementsAreArray(values(first, row.key)))
            << row.key;
    for (const auto* const agent : adapters::agents()) {
        const auto shown = host::to_toml(profile("", agent->name));
        EXPECT_EQ(host::to_toml(profile(shown, agent->name)), shown);
    }
}

TEST(Profiles, AStringIsShownSoThatItIsReadBack) {
    const std::string odd{"a\"b\\c\n\t\x01\x7f é'#="};
    const auto got = profile(with("env", "[" + host::toml_text("A=" + odd) + "]"));
    EXPECT_THAT(values(got, "env"), ElementsAre("A=" + odd));
}

TEST(Profiles, OptionsSayTheSameAndLeaveOutVariablesThatAreNotSet) {
    ::setenv("GLOVE_TEST_SET", "x", 1);
    ::unsetenv("GLOVE_TEST_UNSET");
    const auto got = profile("[profile.p]\nread = [\"/a\"]\npath = true\npublish = [80]\n"
                             "env = [\"GLOVE_TEST_SET\", \"GLOVE_TEST_UNSET\", \"A=-b\"]\n"
                             "command = [\"x\"]\nnet = \"local\"\n");
    std::vector<std::string> words;
    for (const auto& option : host::options_of(got)) words.push_back(option.word);
    EXPECT_THAT(words, ElementsAre("--read=/a", "--path", "--env=GLOVE_TEST_SET", "--env=A=-b",
                                   "--net=local", "--publish=80"));
}

// -- the file ---------------------------------------------------------------------------------

class ConfigurationFile : public testing::Test {
protected:
    ConfigurationFile() {
        ::setenv("HOME", home_.path().c_str(), 1);
        ::unsetenv("XDG_CONFIG_HOME");
        directory_ = home_.directory(".config/glove", 0700);
    }
    auto put(::mode_t mode = 0600) const -> std::string {
        return home_.file(".config/glove/config.toml", "[profile.p]\nnet = \"local\"\n", mode);
    }
    static auto is_found() -> bool {
        const auto catalogue = profile_catalogue::load();
        return catalogue && catalogue->find("p").has_value();
    }
    static void expect_unsafe(const std::string& what) {
        const auto got = profile_catalogue::load();
        ASSERT_FALSE(got.has_value());
        EXPECT_THAT(got.error().step, testing::StrEq("profile.file"));
        EXPECT_THAT(got.error().detail, HasSubstr(what));
    }
    test::folder home_;
    std::string directory_;
};

TEST_F(ConfigurationFile, IsReadWhereItBelongs) {
    EXPECT_FALSE(is_found());
    EXPECT_TRUE(profile_catalogue::load().has_value()); // without a file
    put();
    EXPECT_TRUE(is_found());
    ::setenv("XDG_CONFIG_HOME", (home_ / "elsewhere").c_str(), 1);
    EXPECT_FALSE(is_found());
    ::unsetenv("XDG_CONFIG_HOME");
}

TEST_F(ConfigurationFile, MayBeReadByOthersAndNotWritten) {
    for (const auto mode : {0600U, 0644U, 0400U}) {
        put(mode);
        EXPECT_TRUE(is_found()) << mode;
    }
    put(0620);
    expect_unsafe("can be written by its group");
    put(0602);
    expect_unsafe("can be written by everybody");
}

TEST_F(ConfigurationFile, LiesInDirectoriesThatOthersCannotWrite) {
    put();
    for (const auto& directory : {directory_, home_ / ".config"}) {
        ASSERT_EQ(::chmod(directory.c_str(), 0770), 0);
        expect_unsafe(directory + " can be written by its group");
        ASSERT_EQ(::chmod(directory.c_str(), 0777), 0);
        expect_unsafe(directory + " can be written by everybody");
        ASSERT_EQ(::chmod(directory.c_str(), 0755), 0);
        EXPECT_TRUE(is_found());
    }
}

TEST_F(ConfigurationFile, MayBeALinkToASafePlaceOnly) {
    home_.file("dotfiles/config.toml", "[profile.p]\n");
    home_.link(".config/glove/config.toml", "../../dotfiles/config.toml");
    EXPECT_TRUE(is_found());
    ASSERT_EQ(::chmod((home_ / "dotfiles").c_str(), 0777), 0);
    expect_unsafe("dotfiles can be written by everybody");
}

TEST_F(ConfigurationFile, HasNoOtherName) {
    const auto path = put();
    const auto other = home_ / "other.toml";
    std::filesystem::create_hard_link(path, other);
    expect_unsafe("has 2 names");
    std::filesystem::remove(other);
    EXPECT_TRUE(is_found());
}

TEST_F(ConfigurationFile, ThatIsThereAndCannotBeReadIsAnError) {
    const auto link = home_.link(".config/glove/config.toml", "nowhere");
    expect_unsafe(link);
    std::filesystem::remove(link);
    home_.directory(".config/glove/config.toml", 0700);
    expect_unsafe("is not a regular file");
    std::filesystem::remove(link);
    home_.fifo(".config/glove/config.toml");
    expect_unsafe("is not a regular file");
}

TEST_F(ConfigurationFile, HasAtMost64Kibibytes) {
    const std::string line(1023, '#');
    std::string text{"[profile.p]\n"};
    while (text.size() + 1024 <= 65536) text += line + "\n";
    text.append(65536 - text.size() - 1, '#') += '\n';
    home_.file(".config/glove/config.toml", text, 0600);
    EXPECT_TRUE(is_found());
    home_.file(".config/glove/config.toml", text + "#", 0600);
    expect_unsafe("larger than 64 KiB");
}

TEST_F(ConfigurationFile, OfAnotherUserIsRefused) {
    if (::geteuid() != 0) return; // nobody else can give files away
    const auto path = put();
    ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
    expect_unsafe("belongs to another user");
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
    ASSERT_EQ(::chown(directory_.c_str(), 12345, 0), 0);
    expect_unsafe(directory_ + " belongs to another user");
}

} // namespace
