// The names, addresses and listeners that rules lead to, and what is refused about them.
#include <algorithm>
#include <glove/container/plan.hpp>
#include <gmock/gmock.h>
#include <set>

namespace glove::container {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

auto wish(std::vector<std::string> allow, std::vector<std::uint16_t> publish = {}) -> egress_wish {
    return {.allow = std::move(allow), .publish = std::move(publish)};
}

auto planned(std::vector<std::string> allow, std::vector<std::uint16_t> publish = {})
    -> bridge_plan {
    auto made = plan_bridge(wish(std::move(allow), std::move(publish)), network_tier::egress);
    EXPECT_TRUE(made.has_value()) << made.error().detail;
    EXPECT_TRUE(made->has_value());
    return **std::move(made);
}

auto refusal(const egress_wish& asked, network_tier tier = network_tier::egress) -> std::string {
    const auto made = plan_bridge(asked, tier);
    if (made) return {};
    return made.error().detail + " " + made.error().remedy;
}

auto ports_of(const bridge_plan& plan, std::string_view name) -> std::vector<std::uint16_t> {
    std::vector<std::uint16_t> out;
    for (const auto& one : plan.listeners)
        if (one.name == name) out.push_back(one.port);
    return out;
}

TEST(BridgePlan, NothingAskedForIsNoBridge) {
    for (const auto tier : {network_tier::offline, network_tier::local, network_tier::sealed}) {
        const auto made = plan_bridge({}, tier);
        ASSERT_TRUE(made.has_value());
        EXPECT_FALSE(made->has_value());
    }
}

TEST(BridgePlan, TheTierEgressNeedsADestination) {
    EXPECT_THAT(refusal({}), HasSubstr("--egress-allow api.example.com"));
}

TEST(BridgePlan, DestinationsGoWithNoOtherTier) {
    for (const auto tier : {network_tier::offline, network_tier::local, network_tier::sealed})
        EXPECT_THAT(refusal(wish({"a.example"}), tier), HasSubstr(std::string{to_string(tier)}));
    EXPECT_EQ(refusal(wish({"a.example"})), "");
}

TEST(BridgePlan, APublishedPortNeedsALoopback) {
    for (const auto tier : {network_tier::offline, network_tier::sealed})
        EXPECT_THAT(refusal(wish({}, {3000}), tier), HasSubstr("--publish"));
    EXPECT_EQ(refusal(wish({}, {3000}), network_tier::local), "");
}

TEST(BridgePlan, AnExactNameHasOneAddressAndListensAtItsPorts) {
    const auto plan = planned({"api.example.com", "api.example.com:22", "db.example.com:5432"});
    ASSERT_EQ(plan.names.size(), 2U);
    EXPECT_EQ(plan.names[0].name, "api.example.com");
    EXPECT_EQ(plan.names[0].address, 0x7f400001U);
    EXPECT_NE(plan.names[0].address, plan.names[1].address);
    EXPECT_THAT(ports_of(plan, "api.example.com"), testing::UnorderedElementsAre(443, 22));
    EXPECT_THAT(ports_of(plan, "db.example.com"), testing::ElementsAre(5432));
}

TEST(BridgePlan, ANameOfADomainListensAtThePortsOfTheDomainAsWell) {
    const auto plan = planned({"git.example.com:22", ".example.com"});
    EXPECT_THAT(ports_of(plan, "git.example.com"), testing::UnorderedElementsAre(22, 443));
    EXPECT_THAT(ports_of(plan, "example.com"), testing::ElementsAre(443));
}

TEST(BridgePlan, EveryListenerIsOnTheLoopbackAndNoTwoMeet) {
    const auto plan = planned({"a.example", ".b.example", "localhost:3000", "93.184.216.34"});
    std::set<std::pair<std::uint32_t, std::uint16_t>> places;
    for (const auto& one : plan.listeners) {
        EXPECT_TRUE(one.address == 0 || one.address >> 24U == 127) << one.address;
        EXPECT_TRUE(places.emplace(one.address, one.port).second) << one.name;
    }
    EXPECT_TRUE(places.contains({inner_loopback, proxy_port}));
    EXPECT_TRUE(places.contains({inner_loopback, 3000}));
    EXPECT_TRUE(places.contains({0, 3000}));
}

TEST(BridgePlan, AnAddressIsReachedThroughTheProxyAlone) {
    const auto plan = planned({"93.184.216.34:8080", "93.184.217.0/24"});
    EXPECT_THAT(plan.names, IsEmpty());
    ASSERT_EQ(plan.listeners.size(), 1U);
    EXPECT_EQ(plan.listeners[0].port, proxy_port);
}

TEST(BridgePlan, OnlyPublishedPortsNeedNeitherProxyNorNames) {
    const auto made = plan_bridge(wish({}, {3000, 3001}), network_tier::local);
    ASSERT_TRUE(made.has_value() && made->has_value());
    EXPECT_THAT((*made)->listeners, IsEmpty());
    EXPECT_THAT((*made)->published, testing::ElementsAre(3000, 3001));
}

TEST(BridgePlan, APortOfTheLoopbackIsOneThingOnly) {
    EXPECT_THAT(refusal(wish({"localhost:61080"})), HasSubstr("the proxy's"));
    EXPECT_EQ(refusal(wish({"localhost:61081"})), "");
    EXPECT_THAT(refusal(wish({"a.example"}, {61080})), HasSubstr("the proxy's"));
    EXPECT_THAT(refusal(wish({"a.example"}, {3000, 3000})), HasSubstr("more than once"));
    EXPECT_THAT(refusal(wish({"localhost:3000"}, {3000})), HasSubstr("both directions"));
    EXPECT_EQ(refusal(wish({"localhost:3000"}, {3001})), "");
    EXPECT_THAT(refusal(wish({"a.example"}, {0})), HasSubstr("no port"));
}

TEST(BridgePlan, ConnectionsAreBounded) {
    auto asked = wish({"a.example"});
    for (const unsigned good : {1U, 256U, 65'536U}) {
        asked.connections = good;
        EXPECT_EQ(refusal(asked), "");
    }
    for (const unsigned bad : {0U, 65'537U}) {
        asked.connections = bad;
        EXPECT_THAT(refusal(asked), HasSubstr("--egress-connections"));
    }
}

TEST(BridgePlan, ARefusedRuleIsNamed) {
    EXPECT_THAT(refusal(wish({"https://a.example/"})), HasSubstr("https://a.example/"));
}

// What the agent is told of it
// ----------------------------

auto file(const bridge_plan* bridge, std::string_view path) -> std::string {
    for (auto& entry : identity_files({.uid = 1000, .gid = 1000}, "/bin/sh", bridge))
        if (entry.path == path) return entry.text;
    return "no such file";
}

TEST(BridgeNames, HostsHoldsEveryAllowedNameAndNothingElse) {
    const auto plan = planned({"api.example.com", ".example.org", "93.184.216.34"});
    const auto with = file(&plan, "/etc/hosts");
    EXPECT_THAT(with, HasSubstr("\n127.64.0.1\tapi.example.com\n127.64.0.2\texample.org\n"));
    EXPECT_THAT(with, Not(HasSubstr("93.")));
    EXPECT_EQ(with.substr(0, file(nullptr, "/etc/hosts").size()), file(nullptr, "/etc/hosts"));
    EXPECT_THAT(file(nullptr, "/etc/hosts"), Not(HasSubstr("example")));
}

TEST(BridgeNames, TheNameServerIsNamedWhereThereIsOne) {
    const auto plan = planned({"api.example.com"});
    EXPECT_THAT(file(&plan, "/etc/resolv.conf"), HasSubstr("\nnameserver 127.0.0.53\n"));
    const auto published = plan_bridge(wish({}, {3000}), network_tier::local);
    EXPECT_THAT(file(&**published, "/etc/resolv.conf"), Not(HasSubstr("\nnameserver")));
    EXPECT_THAT(file(nullptr, "/etc/resolv.conf"), Not(HasSubstr("nameserver")));
}

auto environment(const profile& asked) -> result<std::vector<std::string>> {
    const char* const nothing = nullptr;
    return make_environment(&nothing, asked, {.uid = 1000, .gid = 1000}, "/bin/sh");
}

TEST(BridgeEnvironment, TheProxyIsNamedInBothCases) {
    profile asked;
    asked.egress.allow = {"api.example.com"};
    const auto got = environment(asked).value();
    for (const auto* name :
         {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"})
        EXPECT_THAT(got, Contains(std::string{name} + "=http://127.0.0.1:61080"));
    for (const auto* name : {"NO_PROXY", "no_proxy"})
        EXPECT_THAT(got, Contains(std::string{name} + "=localhost,127.0.0.1,::1"));
    EXPECT_THAT(got, Contains("NODE_USE_ENV_PROXY=1"));
    EXPECT_THAT(got, Contains(HasSubstr("-Dhttps.proxyPort=61080")));
}

TEST(BridgeEnvironment, WithoutDestinationsThereIsNoProxyToName) {
    profile asked;
    asked.egress.publish = {3000};
    const auto got = environment(asked).value();
    for (const auto& variable : got)
        EXPECT_THAT(variable, Not(testing::ContainsRegex("[Pp][Rr][Oo][Xx][Yy]")));
}

TEST(BridgeEnvironment, ItsNamesAreGlovesOwnOnlyWhereThereIsAProxy) {
    profile asked;
    for (const auto* name : {"HTTP_PROXY", "https_proxy", "ALL_PROXY", "no_proxy"}) {
        asked.environment = {{name, "http://elsewhere.example"}};
        asked.egress.allow = {};
        EXPECT_TRUE(environment(asked).has_value()) << name;
        asked.egress.allow = {"api.example.com"};
        ASSERT_FALSE(environment(asked).has_value()) << name;
        EXPECT_THAT(environment(asked).error().detail, HasSubstr(name));
    }
}

TEST(BridgeEnvironment, AHintGivesWayToTheOperators) {
    profile asked;
    asked.egress.allow = {"api.example.com"};
    asked.environment = {{"JAVA_TOOL_OPTIONS", "-Xmx1g"}};
    const auto got = environment(asked).value();
    EXPECT_THAT(got, Contains("JAVA_TOOL_OPTIONS=-Xmx1g"));
    EXPECT_EQ(std::ranges::count_if(
                  got, [](const auto& one) { return one.starts_with("JAVA_TOOL_OPTIONS="); }),
              1);
}

} // namespace
} // namespace glove::container
