#include <algorithm>
#include <glove/adapters/agent.hpp>
#include <glove/net/egress_rules.hpp>
#include <gmock/gmock.h>
#include <set>
#include <string>

namespace {

using namespace glove;
using adapters::agent_description;

TEST(Agents, AreSixWithNamesOfTheirOwn) {
    std::set<std::string_view> names;
    for (const auto* const agent : adapters::agents()) {
        names.insert(agent->name);
        EXPECT_EQ(adapters::find_agent(agent->name), agent);
    }
    EXPECT_THAT(names,
                testing::ElementsAre("claude", "codex", "copilot", "gemini", "opencode", "pi"));
    EXPECT_EQ(adapters::find_agent("bash"), nullptr);
    EXPECT_EQ(adapters::find_agent(""), nullptr);
}

TEST(Agents, SayHowTheyAreStartedAndInstalled) {
    for (const auto* const agent : adapters::agents()) {
        SCOPED_TRACE(agent->name);
        ASSERT_FALSE(agent->command.empty());
        EXPECT_EQ(agent->command.front().find('/'), std::string_view::npos);
        EXPECT_FALSE(agent->title.empty());
        EXPECT_TRUE(agent->install.starts_with("npm install -g "));
    }
}

TEST(Agents, NameDestinationsThatCanBeUsedEachWithAReason) {
    for (const auto* const agent : adapters::agents()) {
        SCOPED_TRACE(agent->name);
        EXPECT_FALSE(agent->destinations.empty());
        std::vector<std::string> rules;
        for (const auto& destination : agent->destinations) {
            EXPECT_FALSE(destination.reason.empty()) << destination.rule;
            rules.emplace_back(destination.rule);
            const auto rule = net::parse_rule(rules.back());
            ASSERT_TRUE(rule.has_value()) << rule.error().detail;
            EXPECT_FALSE(rule->allow_private);
            EXPECT_EQ(rule->port, net::default_port);
            EXPECT_EQ(rule->text, rules.back());
        }
        EXPECT_TRUE(net::egress_rules::parse(rules).has_value());
    }
}

void expect_inside_of_a_home(std::string_view path) {
    EXPECT_FALSE(path.empty());
    EXPECT_FALSE(path.starts_with('/')) << path;
    EXPECT_EQ(("/" + std::string{path} + "/").find("/../"), std::string::npos) << path;
}

TEST(Agents, NameFilesOfTheHomeOnly) {
    for (const auto* const agent : adapters::agents()) {
        SCOPED_TRACE(agent->name);
        for (const auto path : agent->own_places) expect_inside_of_a_home(path);
        for (const auto path : agent->credentials) expect_inside_of_a_home(path);
        for (const auto& seed : agent->seeds) {
            expect_inside_of_a_home(seed.path);
            EXPECT_TRUE(seed.content.ends_with('\n'));
        }
        for (const auto& file : agent->tools.home_files) {
            expect_inside_of_a_home(file.path);
            EXPECT_TRUE(file.content.ends_with('\n'));
        }
        EXPECT_FALSE(agent->credentials.empty());
    }
}

// What may do more than the agent needs is passed on only by who asks for it.
TEST(Agents, AreNotGivenTokensOfMoreThanTheirService) {
    for (const auto* const agent : adapters::agents())
        for (const auto name : agent->passed_environment)
            EXPECT_TRUE(name != "GH_TOKEN" && name != "GITHUB_TOKEN") << agent->name;
}

TEST(Agents, FindThePolicyOfTheMachineBelowEtc) {
    std::set<std::string_view> places;
    for (const auto* const agent : adapters::agents())
        places.insert(agent->policy_places.begin(), agent->policy_places.end());
    EXPECT_THAT(places, testing::ElementsAre("/etc/claude-code", "/etc/codex", "/etc/gemini-cli",
                                             "/etc/opencode"));
}

TEST(Agents, KeepTheTokensOfTheirServersWithTheirLogins) {
    const auto keeps = [](std::string_view agent, std::string_view file) {
        const auto files = adapters::find_agent(agent)->credentials;
        return std::find(files.begin(), files.end(), file) != files.end();
    };
    EXPECT_TRUE(keeps("gemini", ".gemini/mcp-oauth-tokens.json"));
    EXPECT_TRUE(keeps("opencode", ".local/share/opencode/mcp-auth.json"));
}

TEST(Agents, PassNamesAndSetValues) {
    for (const auto* const agent : adapters::agents()) {
        SCOPED_TRACE(agent->name);
        for (const auto name : agent->passed_environment)
            EXPECT_EQ(name.find('='), std::string_view::npos);
        for (const auto variable : agent->set_environment)
            EXPECT_NE(variable.find('='), std::string_view::npos);
    }
}

// What they ask before they act is the user's to switch off.
TEST(Agents, KeepTheirOwnApprovals) {
    for (const auto* const agent : adapters::agents())
        for (const auto word : agent->command)
            for (const auto* switch_off :
                 {"bypass", "skip-permissions", "yolo", "allow-all", "never"})
                EXPECT_EQ(word.find(switch_off), std::string_view::npos) << word;
}

} // namespace
