// Made-up hosts. Those with absolute links become the root directory of a child, so that their
// links lead where they would lead on such a host.
#include <algorithm>
#include <glove/container/plan.hpp>
#include <gmock/gmock.h>
#include <support/folder.hpp>
#include <support/forked.hpp>

namespace {

using namespace glove;
using namespace glove::container;
using test::folder;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

auto kind_of(const tree_entry& entry) -> std::string_view {
    return entry.kind == entry_kind::bind   ? "bind"
           : entry.kind == entry_kind::link ? "link"
                                            : "other";
}

// "link /bin usr/bin" or "bind /usr /usr", sorted; sources without the root they were found under.
auto listing(const std::string& root) -> std::string {
    const auto tree = discover_system(root);
    if (!tree) return std::string{tree.error().step} + " " + tree.error().detail;
    std::vector<std::string> lines;
    for (const auto& entry : *tree) {
        auto text = entry.text;
        if (entry.kind == entry_kind::bind) text.erase(0, root.size());
        lines.push_back(std::string{kind_of(entry)} + " " + entry.path + " " + text + "\n");
        if (entry.origin != origin::system || entry.mode != access::read) lines.back() += "!";
    }
    std::ranges::sort(lines);
    std::string out;
    for (const auto& line : lines) out += line;
    return out;
}

auto listing_as_host(const folder& host) -> std::string {
    return test::said_by([&] {
        test::enter_root(host.path());
        return listing("");
    });
}

TEST(SystemView, MergedDirectoriesStayLinks) {
    const folder host;
    host.directory("usr/bin");
    host.directory("usr/lib");
    host.link("bin", "usr/bin");
    host.link("lib", "usr/lib");
    host.link("lib64", "/usr/lib64");
    EXPECT_EQ(listing(host.path()), "bind /usr /usr\n"
                                    "link /bin usr/bin\n"
                                    "link /lib usr/lib\n"
                                    "link /lib64 /usr/lib64\n");
}

TEST(SystemView, SeparateDirectoriesAreBoundEachAlone) {
    const folder host;
    for (const auto* name : {"usr", "bin", "sbin", "lib", "lib32", "opt", "snap"})
        host.directory(name);
    EXPECT_EQ(listing(host.path()), "bind /bin /bin\nbind /lib /lib\nbind /lib32 /lib32\n"
                                    "bind /opt /opt\nbind /sbin /sbin\nbind /snap /snap\n"
                                    "bind /usr /usr\n");
}

TEST(SystemView, WhatTheHostDoesNotHaveIsLeftOut) {
    const folder host;
    EXPECT_EQ(listing(host.path()), "");
    host.directory("usr");
    host.file("etc/ld.so.cache");
    EXPECT_EQ(listing(host.path()), "bind /etc/ld.so.cache /etc/ld.so.cache\nbind /usr /usr\n");
}

TEST(SystemView, PrivateKeysAndTheRestOfTheHostAreNotExposed) {
    const folder host;
    for (const auto* file :
         {"etc/ssl/private/key.pem", "etc/ssl/certs/ca.pem", "etc/pki/tls/private/key.pem",
          "etc/pki/tls/certs/ca.pem", "etc/shadow", "etc/passwd", "etc/hosts", "etc/machine-id",
          "etc/ssh/ssh_host_key", "etc/sudoers", "etc/letsencrypt/key", "etc/profile",
          "root/.ssh/id", "home/user/x", "var/lib/x", "run/x", "sys/x", "boot/x", "srv/x"})
        host.file(file);
    EXPECT_EQ(listing(host.path()), "bind /etc/pki/tls/certs /etc/pki/tls/certs\n"
                                    "bind /etc/profile /etc/profile\n"
                                    "bind /etc/ssl/certs /etc/ssl/certs\n");
}

TEST(SystemView, AFileInPlaceOfADirectoryIsNotASystemPlace) {
    const folder host;
    host.file("usr");
    host.directory("bin");
    EXPECT_EQ(listing(host.path()), "bind /bin /bin\n");
}

TEST(SystemView, ASocketOrFifoIsNoConfiguration) {
    const folder host;
    host.fifo("etc/profile");
    host.file("etc/inputrc");
    EXPECT_EQ(listing(host.path()), "bind /etc/inputrc /etc/inputrc\n");
}

TEST(SystemView, AConfigurationLinkIntoWhatIsVisibleStaysALink) {
    const folder host;
    host.file("usr/share/zoneinfo/UTC");
    host.link("etc/localtime", "../usr/share/zoneinfo/UTC");
    EXPECT_EQ(listing(host.path()),
              "bind /usr /usr\nlink /etc/localtime /usr/share/zoneinfo/UTC\n");
}

TEST(SystemView, AConfigurationLinkIntoWhatIsHiddenIsShownUnderItsOwnName) {
    const folder host;
    host.file("var/lib/tz/UTC");
    host.link("etc/localtime", "../var/lib/tz/UTC");
    EXPECT_EQ(listing(host.path()), "bind /etc/localtime /var/lib/tz/UTC\n");
}

TEST(SystemView, ADanglingLinkIsLeftOut) {
    const folder host;
    host.link("etc/localtime", "nowhere");
    host.link("etc/profile", "profile");
    host.file("etc/inputrc");
    EXPECT_EQ(listing(host.path()), "bind /etc/inputrc /etc/inputrc\n");
}

TEST(SystemView, ALinkThatLeavesAMadeUpRootIsLeftOut) {
    const folder host;
    host.link("etc/profile", "/etc");
    EXPECT_EQ(listing(host.path()), "");
}

TEST(SystemView, AStarStandsForEveryVersion) {
    const folder host;
    for (const auto* name : {"etc/java-17-openjdk", "etc/java", "etc/python3", "etc/python3.11",
                             "etc/python2.7", "etc/javelin"})
        host.directory(name);
    EXPECT_EQ(listing(host.path()), "bind /etc/java /etc/java\n"
                                    "bind /etc/java-17-openjdk /etc/java-17-openjdk\n"
                                    "bind /etc/python3 /etc/python3\n"
                                    "bind /etc/python3.11 /etc/python3.11\n");
}

TEST(SystemView, AHostThatKeepsEverythingInItsStoreWorks) {
    const folder host;
    host.file("nix/store/abc-etc/profile");
    host.file("nix/store/abc-etc/ssl/certs/ca.crt");
    host.file("nix/store/def-bash/bin/sh");
    host.link("etc/static", "/nix/store/abc-etc");
    host.link("etc/profile", "/etc/static/profile");
    host.directory("etc/ssl/certs");
    host.link("etc/ssl/certs/ca.crt", "/etc/static/ssl/certs/ca.crt");
    host.link("bin/sh", "/nix/store/def-bash/bin/sh");
    host.link("run/current-system", "/nix/store/def-bash");
    EXPECT_EQ(listing_as_host(host), "bind /bin /bin\n"
                                     "bind /etc/ssl/certs /etc/ssl/certs\n"
                                     "bind /nix/store /nix/store\n"
                                     "link /etc/profile /nix/store/abc-etc/profile\n"
                                     "link /etc/static /nix/store/abc-etc\n"
                                     "link /run/current-system /nix/store/def-bash\n");
}

TEST(SystemView, AHostWithAbsoluteLinksWorks) {
    const folder host;
    host.file("usr/etc/profile");
    host.file("srv/inputrc");
    host.link("etc/profile", "/usr/etc/profile");
    host.link("etc/inputrc", "/srv/inputrc");
    host.link("etc/zshrc", "/nowhere");
    EXPECT_EQ(listing_as_host(host), "bind /etc/inputrc /srv/inputrc\n"
                                     "bind /usr /usr\n"
                                     "link /etc/profile /usr/etc/profile\n");
}

TEST(SystemView, EverySourceIsPinnedAndItsIdentityKnown) {
    const folder host;
    host.directory("usr");
    host.file("srv/inputrc");
    host.link("etc/inputrc", "../srv/inputrc");
    const auto tree = discover_system(host.path());
    ASSERT_TRUE(tree.has_value());
    ASSERT_EQ(tree->size(), 2U);
    for (const auto& entry : *tree) {
        EXPECT_EQ(sys::inspect(entry.pin).value().identity, entry.identity) << entry.path;
        const auto again = sys::pin(entry.text, sys::follow::no);
        EXPECT_EQ(sys::inspect(*again).value().identity, entry.identity) << entry.path;
    }
}

TEST(SystemView, ThisHostHasOne) {
    const auto found = listing("");
    EXPECT_THAT(found, HasSubstr("bind /usr /usr\n"));
    for (const auto* closed : {" /root", " /home", " /var", " /sys", " /etc/shadow", "private"})
        EXPECT_THAT(found, Not(HasSubstr(closed)));
}

} // namespace
