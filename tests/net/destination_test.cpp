#include <glove/net/destination.hpp>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using namespace glove::net;
using testing::HasSubstr;

auto label(std::size_t size) -> std::string { return std::string(size, 'a'); }

struct text_row {
    const char* given;
    const char* canonical;
};

TEST(Host, ANameIsLowerCaseWithoutTheRootsDot) {
    for (const auto& [given, canonical] :
         {text_row{"example.com", "example.com"}, text_row{"EXAMPLE.Com", "example.com"},
          text_row{"example.com.", "example.com"}, text_row{"A.", "a"}, text_row{"host", "host"},
          text_row{"_dmarc.a_b.example", "_dmarc.a_b.example"}, text_row{"a-b.c--d", "a-b.c--d"},
          text_row{"XN--MNCHEN-3YA.de", "xn--mnchen-3ya.de"}, text_row{"3com.com", "3com.com"},
          text_row{"1.2.3.4a", "1.2.3.4a"}, text_row{"1.2.3.com", "1.2.3.com"},
          text_row{"0x7f.com", "0x7f.com"}, text_row{"0xg", "0xg"}, text_row{"x1", "x1"},
          text_row{"localhost", "localhost"}, text_row{"localhost.", "localhost"},
          text_row{"a.LOCALHOST", "a.localhost"}}) {
        const auto read = parse_host(given);
        ASSERT_TRUE(read) << given;
        EXPECT_EQ(read->name, canonical);
        EXPECT_FALSE(read->address);
        EXPECT_EQ(parse_host(canonical).value(), *read);
    }
}

TEST(Host, AnAddressIsInItsCanonicalText) {
    for (const auto& [given, canonical] :
         {text_row{"1.2.3.4", "1.2.3.4"}, text_row{"::1", "::1"}, text_row{"[::1]", "::1"},
          text_row{"2001:DB8:0::1", "2001:db8::1"}, text_row{"[2001:db8::0:1]", "2001:db8::1"},
          text_row{"::ffff:127.0.0.1", "::ffff:127.0.0.1"},
          text_row{"[::ffff:7f00:1]", "::ffff:127.0.0.1"}}) {
        const auto read = parse_host(given);
        ASSERT_TRUE(read) << given;
        EXPECT_EQ(read->name, canonical);
        EXPECT_EQ(read->address, ip_address::parse(canonical));
        EXPECT_EQ(parse_host(canonical).value(), *read);
    }
}

TEST(Host, ALabelIsOneToSixtyThreeCharacters) {
    EXPECT_TRUE(parse_host(label(63) + ".com"));
    EXPECT_FALSE(parse_host(label(64) + ".com"));
    EXPECT_TRUE(parse_host("com." + label(63)));
    EXPECT_FALSE(parse_host("com." + label(64)));
    for (const auto* text : {"a..b", ".a", "a..", "..", "."})
        EXPECT_FALSE(parse_host(text)) << text;
}

TEST(Host, ANameIsAtMost253Characters) {
    const auto longest = label(63) + "." + label(63) + "." + label(63) + "." + label(61);
    ASSERT_EQ(longest.size(), longest_name);
    EXPECT_TRUE(parse_host(longest));
    EXPECT_TRUE(parse_host(longest + "."));
    EXPECT_FALSE(parse_host(longest + "a"));
    EXPECT_FALSE(parse_host(longest + "a."));
    EXPECT_FALSE(parse_host(longest + ".."));
}

TEST(Host, ALabelDoesNotStartOrEndWithADash) {
    for (const auto* text : {"-a", "a-", "a.-b", "a-.b", "-", "a.-", "a-."})
        EXPECT_FALSE(parse_host(text)) << text;
    EXPECT_TRUE(parse_host("a-b"));
}

TEST(Host, WhatAnOldResolverWouldTakeForAnAddressIsRefused) {
    for (const auto* text : {"127.1", "127.0.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1",
                             "1.2.3.04", "1.2.3.4.", "1.2.3.4.5", "256.1.1.1", "1.2.3.256", "0x",
                             "0X7F", "a.0x", "a.1", "a.1.", "example.com.0x1f", "0"}) {
        const auto read = parse_host(text);
        ASSERT_FALSE(read) << text;
        EXPECT_THAT(read.error().remedy, HasSubstr("in full")) << text;
    }
}

TEST(Host, WhatAnotherReaderCouldTakeDifferentlyIsRefused) {
    for (int byte = 0; byte < 256; ++byte) {
        const auto c = static_cast<char>(byte);
        const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
        EXPECT_EQ(parse_host(std::string{"a"} + c + "b").has_value(), good) << byte;
        if (good) continue;
        EXPECT_FALSE(parse_host(std::string{c} + "a.com")) << byte;
        EXPECT_FALSE(parse_host(std::string{"a.com"} + c)) << byte;
    }
    for (const auto* text :
         {"", "user@example.com", "example.com/x", "example.com\\x", "http://example.com",
          "example.com#x", "example.com?x", "example%2ecom", "example.com:443", "*.example.com"})
        EXPECT_FALSE(parse_host(text)) << text;
}

TEST(Host, BracketsHoldAnIpv6AddressAndNothingElse) {
    for (const auto* text : {"[::1", "::1]", "[]", "[1.2.3.4]", "[a.com]", "[[::1]]", "[::1] ",
                             "[::1].", "[::1]x", "[fe80::1%eth0]", "fe80::1%eth0", "[", "]"})
        EXPECT_FALSE(parse_host(text)) << text;
}

TEST(Host, ANameBeyondAsciiIsAskedForInItsOtherForm) {
    const auto read = parse_host("m\xc3\xbcnchen.de");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().step, "egress.destination");
    EXPECT_EQ(read.error().code, errc::invalid_input);
    EXPECT_THAT(read.error().remedy, HasSubstr("xn--"));
    // Letters that look like a dot or a slash to a reader that folds them.
    EXPECT_FALSE(parse_host("example\xe3\x80\x82"
                            "com"));
    EXPECT_FALSE(parse_host("example.com\xef\xbc\x8f"));
}

TEST(Host, ARefusalShowsTheTextHarmlessly) {
    const auto read = parse_host("a\x1b[2J\xff\n");
    ASSERT_FALSE(read);
    for (const char c : read.error().detail) EXPECT_TRUE(c >= ' ' && c <= '~');
    const auto endless = parse_host(std::string(100'000, 'a'));
    ASSERT_FALSE(endless);
    EXPECT_LT(endless.error().detail.size(), 400U);
}

TEST(Destination, AHostHasAPort) {
    for (const auto& [given, canonical] :
         {text_row{"example.com:443", "example.com:443"},
          text_row{"Example.com.:1", "example.com:1"}, text_row{"1.2.3.4:65535", "1.2.3.4:65535"},
          text_row{"[::1]:80", "[::1]:80"}, text_row{"[2001:DB8::0]:80", "[2001:db8::]:80"}}) {
        const auto read = parse_destination(given);
        ASSERT_TRUE(read) << given;
        EXPECT_EQ(to_string(*read), canonical);
        EXPECT_EQ(parse_destination(canonical).value(), *read);
        EXPECT_EQ(parse_destination(given, 7).value(), *read);
    }
}

TEST(Destination, WithoutAPortItHasTheDefaultOrIsRefused) {
    for (const auto& [given, canonical] :
         {text_row{"example.com", "example.com:80"}, text_row{"1.2.3.4", "1.2.3.4:80"},
          text_row{"[::1]", "[::1]:80"}}) {
        EXPECT_EQ(to_string(parse_destination(given, 80).value()), canonical);
        EXPECT_FALSE(parse_destination(given)) << given;
        EXPECT_FALSE(parse_destination(given, 0)) << given;
    }
}

TEST(Destination, APortIsOneTo65535InPlainDigits) {
    for (const auto* port : {"1", "443", "65535"})
        EXPECT_EQ(std::to_string(parse_destination(std::string{"a:"} + port)->port), port);
    for (const auto* port : {"", "0", "00", "01", "0443", "65536", "99999999999999999999", "+1",
                             "-1", " 1", "1 ", "1/", "0x50", "http", "1.0", "80,81", "80-90", "*"})
        for (const auto* host : {"a:", "1.2.3.4:", "[::1]:"})
            EXPECT_FALSE(parse_destination(std::string{host} + port, 80)) << host << port;
}

TEST(Destination, Ipv6WithoutBracketsIsRefusedWithTheMend) {
    const auto whole = parse_destination("2001:db8::1", 443);
    ASSERT_FALSE(whole);
    EXPECT_EQ(whole.error().remedy, "[2001:db8::1]:PORT");
    const auto longest = parse_destination("1:2:3:4:5:6:7:8:443");
    ASSERT_FALSE(longest);
    EXPECT_EQ(longest.error().remedy, "[1:2:3:4:5:6:7:8]:443");
    EXPECT_TRUE(parse_destination("[1:2:3:4:5:6:7:8]:443"));
}

TEST(Destination, WhatIsNoneIsRefused) {
    for (const auto* text : {"",
                             ":",
                             ":80",
                             "a:b:80",
                             "a::80",
                             "[::1]80",
                             "[::1]::80",
                             "[::1",
                             "[::1:80",
                             "::1]:80",
                             "[a]:80",
                             "u@a:80",
                             "a:80/",
                             "a b:80",
                             "[]:80",
                             "[1.2.3.4]:80",
                             "127.1:80",
                             "http://a:80",
                             "[fe80::1%1]:80",
                             "a:80:"})
        EXPECT_FALSE(parse_destination(text, 443)) << text;
}

} // namespace
