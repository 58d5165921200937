#include <algorithm>
#include <arpa/inet.h>
#include <glove/net/ip_address.hpp>
#include <gmock/gmock.h>
#include <random>

namespace {

using namespace glove::net;
using testing::ElementsAre;

auto address(std::string_view text) -> ip_address { return ip_address::parse(text).value(); }
auto network(std::string_view text) -> ip_network { return ip_network::parse(text).value(); }

TEST(IpAddress, FourDecimalPartsAreOne) {
    EXPECT_THAT(address("1.2.3.4").bytes(), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(address("255.255.255.255").bytes(), ElementsAre(255, 255, 255, 255));
    EXPECT_TRUE(address("0.0.0.0").is_v4());
    EXPECT_EQ(address("10.20.30.40").to_string(), "10.20.30.40");
}

TEST(IpAddress, TheOddFormsOfOldResolversAreNone) {
    for (const auto* text :
         {"",           ".",          "1",          "127.1",    "127.0.1",  "2130706433",
          "0x7f.0.0.1", "0x7f000001", "0177.0.0.1", "1.2.3.04", "00.0.0.0", "1.2.3.256",
          "1.2.3.1000", "1.2.3",      "1.2.3.",     ".1.2.3",   "1..2.3",   "1.2.3.4.",
          "1.2.3.4.5",  "1.2.3.-4",   "1.2.3.+4",   "1.2.3.4 ", " 1.2.3.4", "1.2.3.4/32",
          "1.2.3.a",    "1,2,3,4"})
        EXPECT_FALSE(ip_address::parse(text)) << text;
    EXPECT_FALSE(ip_address::parse(std::string_view{"1.2.3.4\0", 8}));
}

struct text_row {
    const char* given;
    const char* canonical;
};

TEST(IpAddress, AnIpv6AddressHasOneCanonicalText) {
    for (const auto& [given, canonical] :
         {text_row{"::", "::"}, text_row{"::1", "::1"}, text_row{"1::", "1::"},
          text_row{"2001:DB8::A", "2001:db8::a"}, text_row{"0:0:0:0:0:0:0:1", "::1"},
          text_row{"2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"},
          text_row{"1:0:0:2:0:0:0:3", "1:0:0:2::3"}, text_row{"1:0:0:2:3:0:0:4", "1::2:3:0:0:4"},
          text_row{"1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"},
          text_row{"1::3:4:5:6:7:8", "1:0:3:4:5:6:7:8"},
          text_row{"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
          text_row{"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
          text_row{"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
          text_row{"::ffff:7f00:1", "::ffff:127.0.0.1"},
          text_row{"1:2:3:4:5:6:7.8.9.10", "1:2:3:4:5:6:708:90a"}}) {
        EXPECT_EQ(address(given).to_string(), canonical) << given;
        EXPECT_EQ(address(canonical), address(given));
        EXPECT_FALSE(address(given).is_v4());
    }
}

TEST(IpAddress, WhatIsNoIpv6AddressIsRefused) {
    for (const auto* text : {":",
                             ":::",
                             "1:",
                             ":1",
                             "1::2::3",
                             "1:::2",
                             "::1:",
                             "12345::",
                             "g::",
                             "1:2:3:4:5:6:7",
                             "1:2:3:4:5:6:7:8:9",
                             "1:2:3:4:5:6:7:8::",
                             "::1:2:3:4:5:6:7:8",
                             "1:2:3:4::5:6:7:8",
                             "[::1]",
                             "::1%eth0",
                             "::1%",
                             "fe80::1%25lo",
                             "::1/128",
                             "::1.2.3",
                             "::1.2.3.4.5",
                             "::1.2.3.04",
                             "1.2.3.4::",
                             "::1.2.3.4:5",
                             "1:2:3:4:5:6:7:1.2.3.4",
                             "::-1",
                             "::+1",
                             ":: 1",
                             "::1 ",
                             "0x1::"})
        EXPECT_FALSE(ip_address::parse(text)) << text;
    EXPECT_FALSE(ip_address::parse(std::string_view{"::1\0", 4}));
}

// The C library takes no odd forms here either, and writes RFC 5952 but for IPv4-compatible ones.
TEST(IpAddress, TheCLibraryReadsAndWritesTheSame) {
    std::mt19937 random{7};
    constexpr std::string_view letters = "0123456789abcdefABF::::...";
    std::size_t both = 0;
    for (int i = 0; i < 300'000; ++i) {
        std::string text(1 + random() % 16, ' ');
        for (char& c : text) c = letters[random() % letters.size()];
        ip_address::v6_bytes v6{};
        ip_address::v4_bytes v4{};
        const auto read = ip_address::parse(text);
        const bool is_v6 = ::inet_pton(AF_INET6, text.c_str(), v6.data()) == 1;
        const bool is_v4 = ::inet_pton(AF_INET, text.c_str(), v4.data()) == 1;
        ASSERT_EQ(read.has_value(), is_v6 || is_v4) << text;
        if (!read) continue;
        ++both;
        ASSERT_EQ(*read, is_v4 ? ip_address{v4} : ip_address{v6}) << text;
    }
    EXPECT_GT(both, 1000U);
    for (int i = 0; i < 20'000; ++i) {
        ip_address::v6_bytes v6{};
        for (auto& byte : v6) byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : 0);
        v6[0] |= 0x20; // not compatible
        std::array<char, INET6_ADDRSTRLEN> text{};
        ::inet_ntop(AF_INET6, v6.data(), text.data(), text.size());
        ASSERT_EQ(ip_address{v6}.to_string(), text.data());
        ASSERT_EQ(address(text.data()), ip_address{v6});
    }
}

TEST(IpNetwork, ItHoldsTheAddressesOfItsPrefix) {
    EXPECT_TRUE(network("10.0.0.0/8").contains(address("10.255.255.255")));
    EXPECT_FALSE(network("10.0.0.0/8").contains(address("11.0.0.0")));
    EXPECT_TRUE(network("100.64.0.0/10").contains(address("100.127.255.255")));
    EXPECT_FALSE(network("100.64.0.0/10").contains(address("100.128.0.0")));
    EXPECT_FALSE(network("100.64.0.0/10").contains(address("100.63.255.255")));
    EXPECT_TRUE(network("0.0.0.0/0").contains(address("255.1.2.3")));
    EXPECT_TRUE(network("1.2.3.4/32").contains(address("1.2.3.4")));
    EXPECT_FALSE(network("1.2.3.4/32").contains(address("1.2.3.5")));
    EXPECT_TRUE(network("2001:db8::/33").contains(address("2001:db8:7fff::1")));
    EXPECT_FALSE(network("2001:db8::/33").contains(address("2001:db8:8000::")));
    EXPECT_TRUE(network("::1/128").contains(address("::1")));
}

TEST(IpNetwork, AnAddressOfTheOtherFamilyIsInNone) {
    EXPECT_FALSE(network("::/0").contains(address("1.2.3.4")));
    EXPECT_FALSE(network("0.0.0.0/0").contains(address("::1.2.3.4")));
    EXPECT_FALSE(network("0.0.0.0/0").contains(network("::/0")));
}

TEST(IpNetwork, OneNetworkHoldsASmallerOne) {
    EXPECT_TRUE(network("10.0.0.0/8").contains(network("10.0.0.0/8")));
    EXPECT_TRUE(network("10.0.0.0/8").contains(network("10.1.0.0/16")));
    EXPECT_FALSE(network("10.0.0.0/8").contains(network("10.0.0.0/7")));
    EXPECT_FALSE(network("10.0.0.0/8").contains(network("11.0.0.0/16")));
}

TEST(IpNetwork, BitsPastThePrefixAreZero) {
    for (const auto* text : {"10.0.0.1/8", "10.0.0.0/3", "::1/127", "2001:db8::/20", "128.0.0.0/0"})
        EXPECT_FALSE(ip_network::parse(text)) << text;
    for (const auto* text : {"10.0.0.0/8", "10.0.0.0/7", "::2/127", "2001:db8::/29", "128.0.0.0/1"})
        EXPECT_EQ(network(text).to_string(), text);
}

TEST(IpNetwork, WhatIsNoNetworkIsRefused) {
    for (const auto* text : {"", "/", "10.0.0.0", "10.0.0.0/", "/8", "10.0.0.0/33", "::/129",
                             "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/-1", "10.0.0.0/8 ",
                             "10.0.0.0//8", "10/8", "10.0.0.0/255.0.0.0", "[::]/0"})
        EXPECT_FALSE(ip_network::parse(text)) << text;
    EXPECT_TRUE(ip_network::parse("10.0.0.0/32"));
    EXPECT_TRUE(ip_network::parse("::/128"));
}

TEST(IpNetwork, ItIsMadeAroundAnAddress) {
    EXPECT_EQ(ip_network::around(address("10.1.2.3"), 8).to_string(), "10.0.0.0/8");
    EXPECT_EQ(ip_network::around(address("10.1.2.3"), 31).to_string(), "10.1.2.2/31");
    EXPECT_EQ(ip_network::around(address("10.1.2.3"), 0).to_string(), "0.0.0.0/0");
    EXPECT_EQ(ip_network::around(address("10.1.2.3"), 33).to_string(), "10.1.2.3/32");
    EXPECT_EQ(ip_network::around(address("2001:db8:ffff::"), 33).to_string(), "2001:db8:8000::/33");
    EXPECT_TRUE(ip_network::around(address("::1"), 128).is_single());
    EXPECT_FALSE(ip_network::around(address("::1"), 127).is_single());
    EXPECT_TRUE(network("1.2.3.4/32").is_single());
}

struct use_row {
    const char* use;
    const char* first;
    const char* last;
};

// Their first and last addresses are not public, whatever stands before and after them.
constexpr use_row not_public[] = {
    {"unspecified", "0.0.0.0", "0.255.255.255"},
    {"private", "10.0.0.0", "10.255.255.255"},
    {"shared", "100.64.0.0", "100.127.255.255"},
    {"loopback", "127.0.0.0", "127.255.255.255"},
    {"link-local", "169.254.0.0", "169.254.255.255"},
    {"private", "172.16.0.0", "172.31.255.255"},
    {"protocol assignments", "192.0.0.0", "192.0.0.255"},
    {"documentation", "192.0.2.0", "192.0.2.255"},
    {"6to4 relay", "192.88.99.0", "192.88.99.255"},
    {"private", "192.168.0.0", "192.168.255.255"},
    {"benchmarking", "198.18.0.0", "198.19.255.255"},
    {"documentation", "198.51.100.0", "198.51.100.255"},
    {"documentation", "203.0.113.0", "203.0.113.255"},
    {"multicast", "224.0.0.0", "239.255.255.255"},
    {"reserved", "240.0.0.0", "255.255.255.254"},
    {"broadcast", "255.255.255.255", "255.255.255.255"},
    {"unspecified", "::", "::"},
    {"loopback", "::1", "::1"},
    {"IPv4-compatible", "::2", "::ffff:ffff"},
    {"IPv4-mapped", "::ffff:0.0.0.0", "::ffff:255.255.255.255"},
    {"NAT64", "64:ff9b::", "64:ff9b::ffff:ffff"},
    {"NAT64", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"},
    {"discard", "100::", "100::ffff:ffff:ffff:ffff"},
    {"reserved", "100:0:0:1::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"Teredo", "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"protocol assignments", "2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"documentation", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"6to4", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"documentation", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"reserved", "4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"segment routing", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"reserved", "8000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"private", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"link-local", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"site-local", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"multicast", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"metadata", "169.254.169.254", "169.254.169.254"},
    {"metadata", "169.254.170.2", "169.254.170.2"},
    {"metadata", "100.100.100.200", "100.100.100.200"},
    {"metadata", "168.63.129.16", "168.63.129.16"},
    {"metadata", "fd00:ec2::254", "fd00:ec2::254"},
    {"metadata", "fd20:ce::254", "fd20:ce::254"},
};

TEST(ReservedUse, ARangeIsNotPublicFromItsFirstToItsLastAddress) {
    for (const auto& [use, first, last] : not_public) {
        EXPECT_EQ(reserved_use(address(first)), use) << first;
        EXPECT_EQ(reserved_use(address(last)), use) << last;
    }
}

// The neighbours of the ranges above, and well-known servers.
TEST(ReservedUse, APublicAddressHasNone) {
    for (const auto* text : {"1.0.0.0",
                             "9.255.255.255",
                             "11.0.0.0",
                             "100.63.255.255",
                             "100.128.0.0",
                             "126.255.255.255",
                             "128.0.0.0",
                             "169.253.255.255",
                             "169.255.0.0",
                             "172.15.255.255",
                             "172.32.0.0",
                             "191.255.255.255",
                             "192.0.1.0",
                             "192.0.1.255",
                             "192.0.3.0",
                             "192.88.98.255",
                             "192.88.100.0",
                             "192.167.255.255",
                             "192.169.0.0",
                             "198.17.255.255",
                             "198.20.0.0",
                             "198.51.99.255",
                             "198.51.101.0",
                             "203.0.112.255",
                             "203.0.114.0",
                             "223.255.255.255",
                             "8.8.8.8",
                             "168.63.129.15",
                             "168.63.129.17",
                             "2000::",
                             "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                             "2001:200::",
                             "2001:db7:ffff::",
                             "2001:db9::",
                             "2001:ffff:ffff:ffff::",
                             "2003::",
                             "2606:4700:4700::1111",
                             "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                             "3fff:1000::",
                             "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"})
        EXPECT_EQ(reserved_use(address(text)), "") << text;
}

TEST(ReservedUse, ANetworkHasOneWhenNoPartOfItIsPublic) {
    for (const auto& [text, use] :
         {text_row{"10.0.0.0/8", "private"}, text_row{"10.1.0.0/16", "private"},
          text_row{"127.0.0.0/8", "loopback"}, text_row{"169.254.0.0/16", "link-local"},
          text_row{"169.254.169.254/32", "metadata"}, text_row{"224.0.0.0/3", "reserved"},
          text_row{"fc00::/7", "private"}, text_row{"::/3", "reserved"},
          text_row{"8000::/1", "reserved"}, text_row{"2001::/23", "protocol assignments"},
          text_row{"::/0", ""}, text_row{"0.0.0.0/0", ""}, text_row{"10.0.0.0/7", ""},
          text_row{"172.0.0.0/11", ""}, text_row{"192.0.0.0/23", ""}, text_row{"168.63.0.0/16", ""},
          text_row{"2000::/3", ""}, text_row{"2001::/22", ""}, text_row{"8.8.8.0/24", ""}})
        EXPECT_EQ(reserved_use(network(text)), use) << text;
}

TEST(CanBeDialled, NotSoWhereNoConnectionCanEnd) {
    for (const auto* text : {"0.0.0.0", "0.255.255.255", "224.0.0.0", "239.255.255.255",
                             "240.0.0.0", "255.255.255.255", "::", "ff00::", "ff02::1",
                             "ffff::", "::ffff:0.0.0.0", "::ffff:8.8.8.8", "::ffff:127.0.0.1"})
        EXPECT_FALSE(can_be_dialled(address(text))) << text;
    for (const auto* text : {"1.0.0.0", "10.0.0.1", "127.0.0.1", "169.254.169.254",
                             "223.255.255.255", "::1", "::1.2.3.4", "fe80::1", "fc00::1", "feff::",
                             "64:ff9b::1", "::fffe:0:0", "8.8.8.8", "2606:4700:4700::1111"})
        EXPECT_TRUE(can_be_dialled(address(text))) << text;
}

TEST(CanBeDialled, ANetworkCanWhenAnyOfItCan) {
    for (const auto* text : {"0.0.0.0/8", "0.0.0.0/32", "224.0.0.0/3", "240.0.0.0/5", "ff00::/8",
                             "ff02::/16", "::/128", "::ffff:0.0.0.0/96"})
        EXPECT_FALSE(can_be_dialled(network(text))) << text;
    for (const auto* text : {"0.0.0.0/7", "0.0.0.0/0", "192.0.0.0/2", "fe00::/7", "::/127", "::/0",
                             "::/95", "::fffe:0:0/95"})
        EXPECT_TRUE(can_be_dialled(network(text))) << text;
}

} // namespace
