#include <algorithm>
#include <glove/container/plan.hpp>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using namespace glove::container;
using testing::Contains;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

constexpr user_identity ordinary{.uid = 1000, .gid = 1000};

auto environment(std::vector<const char*> outer, const profile& wish = {},
                 const user_identity& user = ordinary) -> result<std::vector<std::string>> {
    outer.push_back(nullptr);
    return make_environment(outer.data(), wish, user, "/bin/bash");
}

auto asking(std::vector<std::pair<std::string, std::string>> variables) -> profile {
    profile out;
    out.environment = std::move(variables);
    return out;
}

TEST(Environment, WithNothingAskedItHoldsOnlyWhatGloveSets) {
    EXPECT_THAT(
        environment({}).value(),
        UnorderedElementsAre("PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
                             "HOME=/home/agent", "TMPDIR=/tmp", "USER=agent", "LOGNAME=agent",
                             "SHELL=/bin/bash", "GLOVE_SANDBOXED=1", "TERM=xterm-256color"));
}

TEST(Environment, RootIsCalledRoot) {
    const auto made = environment({}, {}, {.uid = 0, .gid = 0}).value();
    EXPECT_THAT(made, Contains("USER=root"));
    EXPECT_THAT(made, Contains("LOGNAME=root"));
    EXPECT_THAT(made, Contains("HOME=/home/agent"));
}

TEST(Environment, NothingElseOfTheCallersComesAlong) {
    const auto made =
        environment({"AWS_SECRET_ACCESS_KEY=k", "HOME=/root", "PATH=/evil", "LD_PRELOAD=x.so",
                     "SSH_AUTH_SOCK=/run/a", "GLOVE_TOKEN=t", "TERMINFO=/x", "LANGUAGE=de", "LC=1",
                     "TZDIR=/x", "NO_COLORS=1", "lang=x"})
            .value();
    EXPECT_EQ(made, environment({}).value());
}

TEST(Environment, TheLookOfTerminalAndLanguageIsInherited) {
    const auto made = environment({"TERM=vt100", "LANG=de_DE.UTF-8", "LC_ALL=C", "LC_TIME=x",
                                   "TZ=UTC", "COLORTERM=truecolor", "NO_COLOR="})
                          .value();
    for (const auto* expected : {"TERM=vt100", "LANG=de_DE.UTF-8", "LC_ALL=C", "LC_TIME=x",
                                 "TZ=UTC", "COLORTERM=truecolor", "NO_COLOR="})
        EXPECT_THAT(made, Contains(expected));
    EXPECT_THAT(made, Not(Contains("TERM=xterm-256color")));
}

TEST(Environment, AVariableThatIsAskedForIsSet) {
    const auto made = environment({}, asking({{"KEY", "value"},
                                              {"EMPTY", ""},
                                              {"EQUALS", "a=b=c"},
                                              {"LINES", "a\nb"},
                                              {"LD_LIBRARY_PATH", "/x"}}))
                          .value();
    for (const auto* expected :
         {"KEY=value", "EMPTY=", "EQUALS=a=b=c", "LINES=a\nb", "LD_LIBRARY_PATH=/x"})
        EXPECT_THAT(made, Contains(expected));
}

TEST(Environment, AnAskedOneStandsInPlaceOfAnInheritedOne) {
    const auto made =
        environment({"TERM=vt100", "LANG=C"}, asking({{"TERM", "dumb"}, {"LANG", "en"}})).value();
    EXPECT_THAT(made, Contains("TERM=dumb"));
    EXPECT_THAT(made, Contains("LANG=en"));
    EXPECT_EQ(std::ranges::count_if(made, [](const auto& v) { return v.starts_with("TERM="); }), 1);
    EXPECT_EQ(std::ranges::count_if(made, [](const auto& v) { return v.starts_with("LANG="); }), 1);
}

TEST(Environment, AManagedNameCannotBeSet) {
    for (const auto* name : {"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SHELL",
                             "GLOVE_SANDBOXED", "GLOVE_", "GLOVE_ANYTHING"}) {
        const auto refused = environment({}, asking({{name, "x"}}));
        ASSERT_FALSE(refused.has_value()) << name;
        EXPECT_EQ(refused.error().code, errc::invalid_input);
        EXPECT_EQ(refused.error().step, "environment.name");
        EXPECT_THAT(refused.error().detail, StartsWith(std::string{"--env "} + name));
        EXPECT_THAT(refused.error().remedy, Not(IsEmpty()));
    }
}

TEST(Environment, ANameThatOnlyLooksManagedIsSet) {
    for (const auto* name : {"GLOVE", "GLOVES_X", "path", "MYHOME", "HOMEX", "XGLOVE_Y"})
        EXPECT_TRUE(environment({}, asking({{name, "x"}})).has_value()) << name;
}

TEST(Environment, ANameGivenTwiceIsRefused) {
    const auto refused = environment({}, asking({{"KEY", "a"}, {"OTHER", "b"}, {"KEY", "a"}}));
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().detail, testing::HasSubstr("--env KEY"));
    EXPECT_TRUE(environment({}, asking({{"KEY", "a"}, {"key", "a"}})).has_value());
}

TEST(Environment, ANameThatIsEmptyOrHoldsNulIsRefused) {
    EXPECT_FALSE(environment({}, asking({{"", "x"}})).has_value());
    EXPECT_FALSE(environment({}, asking({{std::string{"A\0B", 3}, "x"}})).has_value());
}

} // namespace
