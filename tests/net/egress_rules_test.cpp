#include <glove/net/egress_rules.hpp>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using namespace glove::net;
using testing::HasSubstr;

auto rule(std::string_view text) -> egress_rule {
    auto out = parse_rule(text);
    return out ? *std::move(out) : throw std::runtime_error{out.error().detail};
}
auto where(std::string_view text) -> destination { return parse_destination(text).value(); }
auto address(std::string_view text) -> ip_address { return ip_address::parse(text).value(); }
auto rules(const std::vector<std::string>& texts) -> egress_rules {
    auto out = egress_rules::parse(texts);
    return out ? *std::move(out) : throw std::runtime_error{out.error().detail};
}
auto matched(const std::vector<std::string>& texts, std::string_view to) -> std::string {
    const auto all = rules(texts);
    const auto* found = all.match(where(to));
    return found == nullptr ? "" : found->text;
}
auto allows(const std::string& text, std::string_view to) -> bool {
    return !matched({text}, to).empty();
}

struct text_row {
    const char* given;
    const char* canonical;
};

constexpr text_row good_rules[] = {
    {"example.com", "example.com"},
    {"EXAMPLE.com.", "example.com"},
    {"example.com:443", "example.com"},
    {"example.com:80", "example.com:80"},
    {".Example.com", ".example.com"},
    {".example.com.:8443", ".example.com:8443"},
    {".com", ".com"},
    {"host", "host"},
    {"8.8.8.8", "8.8.8.8"},
    {"8.8.8.8:443", "8.8.8.8"},
    {"8.8.8.8:53", "8.8.8.8:53"},
    {"8.8.8.8/32", "8.8.8.8"},
    {"8.8.8.8/32:53", "8.8.8.8:53"},
    {"8.8.8.0/24", "8.8.8.0/24"},
    {"8.8.8.0/24:53", "8.8.8.0/24:53"},
    {"0.0.0.0/0", "0.0.0.0/0"},
    {"2606:4700:0::1111", "2606:4700::1111"},
    {"[2606:4700::1111]", "2606:4700::1111"},
    {"[2606:4700::1111]:443", "2606:4700::1111"},
    {"[2606:4700::1111]:853", "[2606:4700::1111]:853"},
    {"2606:4700::1111/128:853", "[2606:4700::1111]:853"},
    {"2606:4700::/32", "2606:4700::/32"},
    {"2606:4700::/32:853", "2606:4700::/32:853"},
    {"localhost:443", "localhost:443"},
    {"LOCALHOST.:5432", "localhost:5432"},
    {"10.0.0.1,allow-private", "10.0.0.1,allow-private"},
    {"10.0.0.0/8:22,allow-private", "10.0.0.0/8:22,allow-private"},
    {"fd00::1,allow-private", "fd00::1,allow-private"},
    {"169.254.169.254:80,allow-private", "169.254.169.254:80,allow-private"},
    {"a.b,any-server-name,allow-private", "a.b,allow-private,any-server-name"},
    {"a.b,max-bytes=1024", "a.b,max-bytes=1K"},
    {"a.b,max-bytes=1536kb", "a.b,max-bytes=1536K"},
    {"a.b,max-bytes=10MiB,any-server-name", "a.b,any-server-name,max-bytes=10M"},
    {"localhost:1,max-bytes=1,any-server-name", "localhost:1,any-server-name,max-bytes=1"},
};

TEST(EgressRule, ItsCanonicalTextIsAFixedPoint) {
    for (const auto& [given, canonical] : good_rules) {
        const auto first = rule(given);
        EXPECT_EQ(first.text, canonical) << given;
        EXPECT_EQ(rule(canonical), first) << given;
    }
}

TEST(EgressRule, ItsPartsAreWhatTheTextSays) {
    const auto plain = rule("Example.com");
    EXPECT_EQ(plain.kind, rule_kind::name);
    EXPECT_EQ(plain.name, "example.com");
    EXPECT_EQ(plain.port, 443);
    EXPECT_FALSE(plain.network || plain.allow_private || plain.any_server_name || plain.max_bytes);

    const auto full = rule(".example.com:80,allow-private,any-server-name,max-bytes=2K");
    EXPECT_EQ(full.kind, rule_kind::domain);
    EXPECT_EQ(full.name, "example.com");
    EXPECT_EQ(full.port, 80);
    EXPECT_TRUE(full.allow_private && full.any_server_name);
    EXPECT_EQ(full.max_bytes, 2048U);

    EXPECT_EQ(rule("8.8.8.8").kind, rule_kind::address);
    EXPECT_EQ(rule("8.8.8.8").network, ip_network::parse("8.8.8.8/32"));
    EXPECT_EQ(rule("8.8.8.8/32").kind, rule_kind::address);
    EXPECT_EQ(rule("8.8.8.0/24").kind, rule_kind::network);
    EXPECT_EQ(rule("8.8.8.0/24").network, ip_network::parse("8.8.8.0/24"));
    EXPECT_EQ(rule("localhost:1").kind, rule_kind::host_loopback);
    for (const auto* text : {"8.8.8.8", "8.8.8.0/24", "localhost:1"})
        EXPECT_EQ(rule(text).name, "") << text;
}

// What is refused, and what is written instead.
constexpr text_row mended_rules[] = {
    {"*.example.com", ".example.com"},
    {"*.example.com:8443,max-bytes=1K", ".example.com:8443"},
    {"https://example.com", "example.com"},
    {"https://user:pw@Example.com:8443/a,b?c#d", "example.com:8443"},
    {"http://example.com/", "example.com:80"},
    {"https://[2606:4700::1111]/x", "2606:4700::1111"},
    {"example.com/path", "example.com"},
    {"10.0.0.1", "10.0.0.1,allow-private"},
    {"10.0.0.1:22,max-bytes=1024", "10.0.0.1:22,allow-private,max-bytes=1K"},
    {"10.0.0.0/8", "10.0.0.0/8,allow-private"},
    {"10.64.0.0/10:22", "10.64.0.0/10:22,allow-private"},
    {"[fd00::1]:80", "[fd00::1]:80,allow-private"},
    {"fc00::/7", "fc00::/7,allow-private"},
    {"100.64.0.1", "100.64.0.1,allow-private"},
    {"169.254.169.254:80", "169.254.169.254:80,allow-private"},
    {"8.8.8.8/24", "8.8.8.0/24"},
    {"8.8.8.8/24:53,max-bytes=1K", "8.8.8.0/24:53"},
    {"localhost", "localhost:PORT"},
    {"LocalHost.", "localhost:PORT"},
    {"a.localhost:80", "localhost:PORT"},
    {".localhost:80", "localhost:PORT"},
    {".a.localhost", "localhost:PORT"},
    {"localhost:80,allow-private", "localhost:80"},
    {"127.0.0.1:80", "localhost:80"},
    {"127.0.0.1:80,allow-private", "localhost:80"},
    {"127.1.2.3", "localhost:443"},
    {"[::1]:80", "localhost:80"},
    {"::1", "localhost:443"},
    {"127.0.0.0/8:80,allow-private", "localhost:80"},
    {"127.0.0.0/16:80", "localhost:80"},
    {"::ffff:8.8.8.8", "give the IPv4 address or network itself"},
    {"[::ffff:127.0.0.1]:80,allow-private", "give the IPv4 address or network itself"},
    {".8.8.8.8", "8.8.8.8"},
};

TEST(EgressRule, ARefusalSaysWhatToWriteInstead) {
    for (const auto& [given, mend] : mended_rules) {
        const auto refused = parse_rule(given);
        ASSERT_FALSE(refused) << given;
        EXPECT_EQ(refused.error().code, errc::invalid_input);
        EXPECT_EQ(refused.error().step, "egress.rule");
        EXPECT_THAT(refused.error().detail, HasSubstr(std::string{"'"} + given + "'"));
        EXPECT_EQ(refused.error().remedy, mend) << given;
        const bool is_words = refused.error().remedy.find_first_of(" P") != std::string::npos;
        EXPECT_TRUE(is_words || parse_rule(mend)) << mend;
    }
}

TEST(EgressRule, WhatIsNoHostIsRefused) {
    for (const auto* text : {"",
                             ".",
                             "..",
                             "..com",
                             ",allow-private",
                             ":443",
                             "*",
                             "*:443",
                             "a.*.com",
                             "*a.com",
                             "**.com",
                             "a b",
                             "a@b",
                             "m\xc3\xbcnchen.de",
                             "127.1",
                             "0x7f.1",
                             "1.2.3.04",
                             "-a.com",
                             "a..com",
                             "[::1",
                             "[a.com]",
                             "fe80::1%eth0,allow-private",
                             "example.com\n",
                             "a;b",
                             "10.0.0.0/8/8",
                             "10.0.0.0/33",
                             "10.0.0.0/08",
                             "10.0.0.0/",
                             "/8",
                             "::/129",
                             "[2606:4700::]/32",
                             "2606:4700::/32:",
                             "localhost/8",
                             ".10.0.0.0/8"})
        EXPECT_FALSE(parse_rule(text)) << text;
    EXPECT_FALSE(parse_rule(std::string_view{"a.com\0", 6}));
}

TEST(EgressRule, APortIsOneTo65535) {
    for (const std::string host :
         {"a.com", ".a.com", "8.8.8.8", "8.8.8.0/24", "[2606::1]", "2606::/32", "localhost"}) {
        for (const auto* port : {"1", "65535"}) EXPECT_TRUE(parse_rule(host + ":" + port)) << host;
        for (const auto* port : {"0", "65536", "0443", "+443", "-1", "", " 443", "443 ", "https"})
            EXPECT_FALSE(parse_rule(host + ":" + port)) << host << port;
    }
}

TEST(EgressRule, AnOptionIsOneOfThreeAndGivenOnce) {
    for (const auto* options :
         {",", ",,allow-private", ",allow-private,", ",allow-private,allow-private",
          ",any-server-name,any-server-name", ",max-bytes=1,max-bytes=1",
          ",max-bytes=1,max-bytes=2", ",Allow-Private", ",allow-private=1", ", allow-private",
          ",allow", ",max-bytes", ",max-bytes=", ",max-bytes=0", ",max-bytes=-1", ",max-bytes=1.5K",
          ",max-bytes=1X", ",max-bytes=18446744073709551616", ",MAX-BYTES=1"})
        EXPECT_FALSE(parse_rule(std::string{"a.com"} + options)) << options;
    for (const auto* options :
         {",allow-private", ",any-server-name", ",max-bytes=1", ",max-bytes=18446744073709551615"})
        EXPECT_TRUE(parse_rule(std::string{"a.com"} + options)) << options;
}

TEST(EgressRule, WhereNoConnectionCanEndNoOptionHelps) {
    for (const auto* text :
         {"0.0.0.0", "0.0.0.0/8", "224.0.0.1", "239.0.0.0/8", "255.255.255.255", "240.0.0.0/4",
          "224.0.0.0/3", "::", "ff02::1", "ff00::/8", "::ffff:10.0.0.1", "::ffff:0:0/96"}) {
        const auto refused = parse_rule(std::string{text} + ",allow-private");
        ASSERT_FALSE(refused) << text;
        EXPECT_THAT(refused.error().detail, HasSubstr("can never be dialled"));
    }
}

TEST(EgressRule, ANetworkThatIsPartlyPrivateIsOne) {
    for (const auto* text : {"0.0.0.0/0", "10.0.0.0/7", "172.0.0.0/8", "::/0", "2001::/16"})
        EXPECT_TRUE(parse_rule(text)) << text;
    for (const auto* text : {"10.0.0.0/8", "172.16.0.0/12", "::/3", "2001:db8::/32"})
        EXPECT_FALSE(parse_rule(text)) << text;
}

TEST(EgressRules, OneDestinationHasOneRule) {
    const std::vector<std::string> same[] = {
        {"a.com", "a.com"},
        {"a.com", "A.com.:443"},
        {"a.com", "a.com,allow-private"},
        {"a.com,max-bytes=1", "a.com,max-bytes=2"},
        {".a.com:80", "b.com", ".A.com:80,any-server-name"},
        {"8.8.8.8", "8.8.8.8/32"},
        {"2606:4700::1111", "[2606:4700:0::1111]:443"},
        {"8.8.8.0/24", "8.8.8.0/24:443,max-bytes=1"},
        {"localhost:80", "LOCALHOST:80"},
    };
    for (const auto& texts : same) {
        const auto refused = egress_rules::parse(texts);
        ASSERT_FALSE(refused) << texts.front();
        EXPECT_EQ(refused.error().step, "egress.rule");
        EXPECT_THAT(refused.error().detail, HasSubstr("'" + texts.front() + "'"));
        EXPECT_THAT(refused.error().detail, HasSubstr("'" + texts.back() + "'"));
    }
    EXPECT_EQ(rules({"a.com", "a.com:80", ".a.com", "b.a.com", "8.8.8.8", "8.8.8.0/24",
                     "8.8.0.0/16", "localhost:80", "localhost:443"})
                  .all()
                  .size(),
              9U);
}

TEST(EgressRules, OneBadRuleSpoilsTheList) {
    EXPECT_FALSE(egress_rules::parse(std::vector<std::string>{"a.com", "b..com", "c.com"}));
}

TEST(EgressRules, ThereAreAtMost1024) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < most_rules; ++i) texts.push_back("h" + std::to_string(i) + ".com");
    EXPECT_EQ(rules(texts).all().size(), most_rules);
    texts.emplace_back("one.more");
    const auto refused = egress_rules::parse(texts);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::limit_exceeded);
}

TEST(Match, AnEmptyListAllowsNothing) {
    EXPECT_TRUE(egress_rules{}.empty());
    EXPECT_TRUE(rules({}).empty());
    EXPECT_FALSE(rules({"a.com"}).empty());
    for (const auto* to : {"a.com:443", "8.8.8.8:443", "localhost:443", "[::1]:443"})
        EXPECT_EQ(egress_rules{}.match(where(to)), nullptr) << to;
}

TEST(Match, ANameIsThatNameOnly) {
    EXPECT_TRUE(allows("example.com", "example.com:443"));
    EXPECT_TRUE(allows("example.com", "EXAMPLE.COM.:443"));
    for (const auto* to : {"a.example.com:443", "xexample.com:443", "example.com.evil.com:443",
                           "example.co:443", "com:443", "example-com:443"})
        EXPECT_FALSE(allows("example.com", to)) << to;
}

TEST(Match, ADomainIsItselfAndWhatIsBelow) {
    for (const auto* to : {"example.com:443", "a.example.com:443", "a.b.example.com:443"})
        EXPECT_TRUE(allows(".example.com", to)) << to;
    for (const auto* to : {"xexample.com:443", "example.com.evil.com:443", "com:443", "a.com:443",
                           "example.community:443", "x-example.com:443"})
        EXPECT_FALSE(allows(".example.com", to)) << to;
}

TEST(Match, ThePortIsTheRulesPort) {
    EXPECT_FALSE(allows("example.com", "example.com:80"));
    EXPECT_FALSE(allows("example.com:80", "example.com:443"));
    EXPECT_TRUE(allows("example.com:80", "example.com:80"));
    EXPECT_FALSE(allows("8.8.8.8:53", "8.8.8.8:443"));
    EXPECT_FALSE(allows("8.8.8.0/24:53", "8.8.8.8:443"));
    EXPECT_FALSE(allows(".example.com:80", "a.example.com:443"));
    EXPECT_TRUE(allows("8.8.8.0/24:53", "8.8.8.8:53"));
}

TEST(Match, AnAddressIsNoNameAndANameNoAddress) {
    EXPECT_FALSE(allows("0.0.0.0/0", "example.com:443"));
    EXPECT_FALSE(allows("::/0", "example.com:443"));
    EXPECT_FALSE(allows("::/0", "8.8.8.8:443"));
    EXPECT_FALSE(allows("0.0.0.0/0", "[2606::1]:443"));
    EXPECT_FALSE(allows(".com", "8.8.8.8:443"));
    EXPECT_TRUE(allows("0.0.0.0/0", "8.8.8.8:443"));
    EXPECT_TRUE(allows("::/0", "[2606::1]:443"));
    EXPECT_TRUE(allows("2606:4700::/32", "[2606:4700:ffff::]:443"));
    EXPECT_FALSE(allows("2606:4700::/32", "[2606:4701::]:443"));
}

TEST(Match, LocalhostIsThatNameOnly) {
    EXPECT_TRUE(allows("localhost:80", "localhost:80"));
    EXPECT_TRUE(allows("localhost:80", "LocalHost.:80"));
    for (const auto* to : {"localhost:81", "127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80",
                           "a.localhost:80", "localhost.com:80", "xlocalhost:80"})
        EXPECT_FALSE(allows("localhost:80", to)) << to;
    for (const auto* text :
         {"0.0.0.0/0:80,allow-private", "126.0.0.0/7:80,allow-private", "::/0:80,allow-private"})
        for (const auto* to : {"127.0.0.1:80", "127.1.2.3:80", "[::1]:80", "localhost:80"})
            EXPECT_FALSE(allows(text, to)) << text << to;
    EXPECT_TRUE(allows("0.0.0.0/0:80,allow-private", "10.0.0.1:80"));
}

TEST(Match, TheMostSpecificRuleDecides) {
    const std::vector<std::string> names{".com", ".b.com", "a.b.com", ".a.b.com", "a.b.com:80"};
    EXPECT_EQ(matched(names, "a.b.com:443"), "a.b.com");
    EXPECT_EQ(matched(names, "x.a.b.com:443"), ".a.b.com");
    EXPECT_EQ(matched(names, "b.com:443"), ".b.com");
    EXPECT_EQ(matched(names, "x.com:443"), ".com");
    EXPECT_EQ(matched(names, "a.b.com:80"), "a.b.com:80");
    EXPECT_EQ(matched(names, "x.com:80"), "");
    const std::vector<std::string> reversed{names.rbegin(), names.rend()};
    EXPECT_EQ(matched(reversed, "a.b.com:443"), "a.b.com");
    EXPECT_EQ(matched(reversed, "x.a.b.com:443"), ".a.b.com");

    const std::vector<std::string> networks{"0.0.0.0/0", "8.8.8.8", "8.8.0.0/16", "8.8.8.0/24"};
    EXPECT_EQ(matched(networks, "8.8.8.8:443"), "8.8.8.8");
    EXPECT_EQ(matched(networks, "8.8.8.9:443"), "8.8.8.0/24");
    EXPECT_EQ(matched(networks, "8.8.9.9:443"), "8.8.0.0/16");
    EXPECT_EQ(matched(networks, "9.9.9.9:443"), "0.0.0.0/0");
}

TEST(RefusedAddress, APublicAddressIsDialled) {
    for (const auto* to : {"8.8.8.8", "2606:4700::1111"})
        EXPECT_EQ(refused_address(rule("a.com"), address(to), {}), "") << to;
}

TEST(RefusedAddress, APrivateOneNeedsTheOption) {
    for (const auto& [to, why] :
         {text_row{"10.0.0.1", "private"}, text_row{"127.0.0.1", "loopback"},
          text_row{"::1", "loopback"}, text_row{"169.254.169.254", "metadata"},
          text_row{"169.254.1.1", "link-local"}, text_row{"fd00::1", "private"},
          text_row{"fe80::1", "link-local"}, text_row{"64:ff9b::a00:1", "NAT64"},
          text_row{"2002:a00:1::", "6to4"}, text_row{"2001::1", "Teredo"}}) {
        EXPECT_EQ(refused_address(rule("a.com"), address(to), {}), why) << to;
        EXPECT_EQ(refused_address(rule("a.com,allow-private"), address(to), {}), "") << to;
    }
}

TEST(RefusedAddress, SomeAreNeverDialled) {
    for (const auto& [to, why] :
         {text_row{"0.0.0.0", "unspecified"}, text_row{"0.1.2.3", "unspecified"},
          text_row{"::", "unspecified"}, text_row{"224.0.0.1", "multicast"},
          text_row{"ff02::1", "multicast"}, text_row{"255.255.255.255", "broadcast"},
          text_row{"240.0.0.1", "reserved"}, text_row{"::ffff:10.0.0.1", "IPv4-mapped"},
          text_row{"::ffff:0.0.0.0", "IPv4-mapped"}, text_row{"::ffff:8.8.8.8", "IPv4-mapped"}})
        for (const auto* text : {"a.com", "a.com,allow-private", ".com,allow-private",
                                 "localhost:80", "0.0.0.0/0,allow-private", "::/0,allow-private"})
            EXPECT_EQ(refused_address(rule(text), address(to), {}), why) << to << text;
}

TEST(RefusedAddress, TheHostsOwnAddressesNeedTheOption) {
    const ip_address own[] = {address("8.8.8.8"), address("2606::1")};
    for (const auto* to : {"8.8.8.8", "2606::1"}) {
        EXPECT_EQ(refused_address(rule("a.com"), address(to), own), "own address of the host");
        EXPECT_EQ(refused_address(rule("a.com,allow-private"), address(to), own), "");
    }
    EXPECT_EQ(refused_address(rule("8.8.0.0/16"), own[0], own), "own address of the host");
    EXPECT_EQ(refused_address(rule("a.com"), address("8.8.8.9"), own), "");
}

TEST(RefusedAddress, LocalhostIsTheTwoLoopbackAddresses) {
    const ip_address own[] = {address("127.0.0.1"), address("8.8.8.8")};
    for (const auto* to : {"127.0.0.1", "::1"})
        EXPECT_EQ(refused_address(rule("localhost:80"), address(to), own), "") << to;
    for (const auto* to : {"127.0.0.2", "127.0.0.0", "8.8.8.8", "10.0.0.1", "2606::1", "::2"})
        EXPECT_NE(refused_address(rule("localhost:80"), address(to), own), "") << to;
}

TEST(RefusedAddress, ARuleForAddressesIsNoneForOthers) {
    EXPECT_EQ(refused_address(rule("8.8.8.0/24"), address("8.8.8.8"), {}), "");
    EXPECT_NE(refused_address(rule("8.8.8.0/24"), address("8.8.9.8"), {}), "");
    EXPECT_NE(refused_address(rule("8.8.8.8"), address("2606::1"), {}), "");
    EXPECT_NE(refused_address(rule("10.0.0.0/8,allow-private"), address("192.168.0.1"), {}), "");
    EXPECT_EQ(refused_address(rule("0.0.0.0/0"), address("10.0.0.1"), {}), "private");
    EXPECT_EQ(refused_address(rule("0.0.0.0/0,allow-private"), address("10.0.0.1"), {}), "");
}

TEST(RuleFor, ItIsARuleThatAllowsTheDestination) {
    for (const auto& [to, text] :
         {text_row{"example.com:443", "example.com"}, text_row{"Example.com:80", "example.com:80"},
          text_row{"8.8.8.8:443", "8.8.8.8"}, text_row{"8.8.8.8:53", "8.8.8.8:53"},
          text_row{"[2606::1]:443", "2606::1"}, text_row{"[2606::1]:53", "[2606::1]:53"},
          text_row{"10.0.0.1:22", "10.0.0.1:22,allow-private"},
          text_row{"[fd00::1]:443", "fd00::1,allow-private"},
          text_row{"localhost:443", "localhost:443"}}) {
        EXPECT_EQ(rule_for(where(to)), text);
        EXPECT_EQ(matched({text}, to), text);
    }
}

TEST(RuleFor, OtherFormsOfTheLoopbackAreLocalhost) {
    for (const auto* to : {"127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "a.localhost:80"})
        EXPECT_EQ(rule_for(where(to)), "localhost:80") << to;
}

TEST(RuleFor, WhereNoConnectionCanEndThereIsNone) {
    for (const auto* to : {"0.0.0.0:80", "224.0.0.1:80", "[::]:80", "[::ffff:8.8.8.8]:80"})
        EXPECT_EQ(rule_for(where(to)), "") << to;
}

} // namespace
