// Loading a session policy: whose file it may be, and what the names of the host in it really are.
#include "policy_scene.hpp"
#include "supervisor/host_source.hpp"
#include <agents/racer.hpp>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <support/folder.hpp>
#include <support/forked.hpp>
#include <sys/mount.h>
#include <thread>

namespace {

using namespace glove;
using namespace glove::supervisor;
using test::folder;

class SessionPolicy : public testing::Test {
protected:
    SessionPolicy() {
        place.directory("project");
        place.directory("bin");
    }
    [[nodiscard]] auto rules() const -> session_rules {
        auto out = test::usual_rules(place / "project");
        test::look_in(out, place / "bin");
        return out;
    }
    auto written(const session_rules& what, ::mode_t mode = 0600) const -> std::string {
        return place.file("policy.json", session_rules_text(what).value(), mode);
    }
    // "" when the file loads.
    [[nodiscard]] static auto said(const std::string& path) -> std::string {
        const auto out = session_policy::load(path);
        return out ? "" : std::string{out.error().step} + " " + out.error().detail;
    }
    // Of an alias for this path.
    [[nodiscard]] auto judged(const std::string& path) const -> std::string {
        auto what = rules();
        what.path_aliases[0].host_path = path;
        return said(written(what));
    }
    folder place;
};

TEST_F(SessionPolicy, AFileOfTheOwnerAloneIsLoadedAndFrozen) {
    const auto path = written(rules());
    const auto policy = session_policy::load(path);
    ASSERT_TRUE(policy) << policy.error().detail;
    place.file("policy.json", "{}", 0600);
    EXPECT_EQ(policy->rules(), rules());
}

TEST_F(SessionPolicy, AFileThatOthersMayTouchIsRefused) {
    for (const ::mode_t mode : {0400U, 0604U, 0620U, 0640U, 0644U, 0660U, 0700U, 0666U, 04600U}) {
        const auto path = written(rules(), mode);
        EXPECT_EQ(said(path), "file.private " + path + " does not have mode 0600") << mode;
    }
    EXPECT_EQ(said(written(rules())), "");
    ASSERT_EQ(::link((place / "policy.json").c_str(), (place / "second").c_str()), 0);
    EXPECT_EQ(said(place / "policy.json"),
              "file.private " + (place / "policy.json") + " has more than one link");
    ASSERT_EQ(::unlink((place / "second").c_str()), 0);
    EXPECT_EQ(said(place / "policy.json"), "");
}

TEST_F(SessionPolicy, WhatIsNoRegularFileIsRefusedAtOnce) {
    written(rules());
    EXPECT_TRUE(said(place.link("link", place / "policy.json")).starts_with("file.open "));
    const auto pipe = place.fifo("pipe"); // nobody writes, and nothing waits
    EXPECT_EQ(said(pipe), "file.private " + pipe + " is not a regular file");
    EXPECT_TRUE(said(place.path()).starts_with("file.private "));
    EXPECT_TRUE(said("/dev/null").starts_with("file.private "));
    EXPECT_TRUE(said(place / "none").starts_with("file.open "));
}

TEST_F(SessionPolicy, AFileOfAnotherUserIsRefused) {
    if (::geteuid() != 0) { // who is not root cannot give a file away, and finds one of root's
        EXPECT_EQ(said("/etc/passwd"), "file.private /etc/passwd belongs to another user");
        return;
    }
    const auto path = written(rules());
    ASSERT_EQ(::chown(path.c_str(), 1, 1), 0);
    EXPECT_EQ(said(path), "file.private " + path + " belongs to another user");
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
    EXPECT_EQ(said(path), "");
}

TEST_F(SessionPolicy, AFileHasAtLeastOneByteAndAtMostAMebibyte) {
    auto text = session_rules_text(rules()).value();
    const auto of_size = [&](std::size_t size) {
        text.resize(size, ' ');
        return said(place.file("policy.json", text, 0600));
    };
    EXPECT_EQ(of_size(1U << 20U), "");
    EXPECT_EQ(of_size((1U << 20U) + 1),
              "file.private " + (place / "policy.json") + " has more than 1048576 bytes");
    EXPECT_EQ(of_size(0), "file.private " + (place / "policy.json") + " is empty");
}

TEST_F(SessionPolicy, AFileThatChangesWhileItIsReadIsRefused) {
    const std::string text(200'000, ' ');
    const auto path = place.file("changing", text, 0600);
    std::atomic<bool> done = false;
    std::thread writer{[&] {
        const sys::unique_fd file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
        while (!done && ::pwrite(file.get(), "x", 1, 0) == 1) {
        }
    }};
    bool noticed = false;
    for (int i = 0; i < 100'000 && !noticed; ++i) {
        const auto out = sys::read_private_file(path, text.size());
        noticed = !out && out.error().step == "file.changed";
        if (!out) {
            EXPECT_EQ(out.error().step, "file.changed");
        }
    }
    done = true;
    writer.join();
    EXPECT_TRUE(noticed);
    EXPECT_EQ(sys::read_private_file(path, text.size())->size(), text.size());
}

TEST_F(SessionPolicy, AComplaintNamesTheFileAndTheMember) {
    auto text = session_rules_text(rules()).value();
    text.replace(text.find("\"revision\":7"), 12, "\"revision\":0");
    const auto path = place.file("policy.json", text, 0600);
    EXPECT_EQ(said(path),
              "wire.range " + path + ": $.revision is outside 1 to 18446744073709551615");
}

// --- what the aliases name ---

TEST_F(SessionPolicy, AnAliasNamesADirectoryOrAFileWithoutALinkOnTheWay) {
    EXPECT_EQ(judged(place.directory("some/directory")), "");
    EXPECT_EQ(judged(place.file("some/file")), "");
    const auto at = place / "policy.json: $.path_aliases[0].host_path: ";
    EXPECT_EQ(judged(place / "none"), "source.open " + at + "it does not exist");
    EXPECT_EQ(judged(place / "some/file/x"),
              "source.open " + at + "a component of it is not a directory");
    place.link("way", place / "some");
    EXPECT_EQ(judged(place / "way/directory"),
              "source.open " + at + "it or a component of it is a symbolic link");
    EXPECT_EQ(judged(place.link("last", place / "some/file")),
              "source.open " + at + "it or a component of it is a symbolic link");
    place.link("magic", "/proc/self/root");
    EXPECT_EQ(judged(place / "magic/etc"),
              "source.open " + at + "it or a component of it is a symbolic link");
    EXPECT_EQ(judged(place.fifo("pipe")),
              "source.type " + at + "it is neither a regular file nor a directory");
    const auto listening = test::bound_socket(place / "socket");
    EXPECT_EQ(judged(place / "socket").substr(0, 11), "source.type");
}

TEST_F(SessionPolicy, TwoAliasesAreNotOneObject) {
    auto what = rules();
    what.path_aliases[0].host_path = place.file("a", "text");
    ASSERT_EQ(::link((place / "a").c_str(), (place / "b").c_str()), 0);
    what.path_aliases.push_back({"b", place / "b", "/b", 1, {test::read_by_bind()}});
    EXPECT_EQ(
        said(written(what)),
        "policy.overlap " + (place / "policy.json") +
            ": $.path_aliases[1].host_path is the same object as $.path_aliases[0].host_path");
    what.path_aliases[1].host_path = place.file("c");
    EXPECT_EQ(said(written(what)), "");
}

TEST_F(SessionPolicy, AnAliasThatNamesSomethingElseNowIsNotOpened) {
    const auto path = place.directory("project/inner");
    auto what = rules();
    what.path_aliases[0].host_path = path;
    const auto policy = session_policy::freeze(what);
    ASSERT_TRUE(policy) << policy.error().detail;
    EXPECT_TRUE(policy->open_alias("workspace"));
    EXPECT_EQ(policy->open_alias("other").error().code, errc::not_found);
    ASSERT_EQ(::chmod(path.c_str(), 0700), 0); // still the same directory
    EXPECT_TRUE(policy->open_alias("workspace"));

    std::filesystem::rename(path, path + ".old");
    EXPECT_EQ(policy->open_alias("workspace").error().code, errc::conflict);
    place.directory("project/inner"); // the kept descriptor keeps its number taken
    EXPECT_EQ(policy->open_alias("workspace").error().code, errc::conflict);
    std::filesystem::remove(path);
    place.link("project/inner", path + ".old");
    EXPECT_EQ(policy->open_alias("workspace").error().code, errc::conflict);
    std::filesystem::remove(path);
    std::filesystem::rename(path + ".old", path);
    EXPECT_TRUE(policy->open_alias("workspace"));
}

TEST_F(SessionPolicy, ASwappedLinkNeverLeadsAnAliasElsewhere) {
    const auto good = place.directory("project/inner");
    const auto secret = place.directory("secret");
    auto what = rules();
    what.path_aliases[0].host_path = good;
    const auto policy = session_policy::freeze(what);
    const auto link = place.link("bait", secret);
    int opened = 0;
    int refused = 0;
    struct ::stat wanted{};
    ASSERT_EQ(::stat(good.c_str(), &wanted), 0);
    const test::racer swapping{good, link};
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while ((opened < 20 || refused < 20) && std::chrono::steady_clock::now() < until) {
        const auto got = policy->open_alias("workspace");
        got ? ++opened : ++refused;
        if (got) {
            ASSERT_EQ(got->facts.identity.inode, wanted.st_ino);
        }
    }
    EXPECT_GE(opened, 20);
    EXPECT_GE(refused, 20);
}

// --- where programs are looked for ---

TEST_F(SessionPolicy, AProgramIsLookedForOnlyWhereNobodyElseCouldPutOne) {
    const auto looking = [&](const std::string& path) {
        auto what = rules();
        test::look_in(what, path);
        const auto out = session_policy::freeze(what);
        return out ? "" : std::string{out.error().step} + " " + out.error().detail;
    };
    const std::string at = "$.runtime_templates[2].launch: executable_search_paths[0]: ";
    const auto safe = place.directory("safe/bin");
    EXPECT_EQ(looking(safe), "");
    EXPECT_EQ(looking("/usr/bin"), "");
    EXPECT_EQ(looking(place / "none"), "source.open " + at + "it does not exist");
    EXPECT_EQ(looking(place.link("link", safe)),
              "source.open " + at + "it or a component of it is a symbolic link");
    EXPECT_EQ(looking(place.file("file")),
              "policy.search_path " + at + "it, or a directory above it, is not a directory");
    for (const ::mode_t mode : {0775U, 0757U, 01777U}) {
        ASSERT_EQ(::chmod(safe.c_str(), mode), 0);
        EXPECT_EQ(looking(safe), "policy.search_path " + at + "it can be written by others");
    }
    ASSERT_EQ(::chmod(safe.c_str(), 0755), 0);
    const auto above = place / "safe";
    for (const ::mode_t mode : {0775U, 0757U}) {
        ASSERT_EQ(::chmod(above.c_str(), mode), 0);
        EXPECT_EQ(looking(safe), "policy.search_path " + at +
                                     "it, or a directory above it, can be written by others");
    }
    // As with /tmp: others may add to it, and not replace what is there.
    ASSERT_EQ(::chmod(above.c_str(), 01777), 0);
    EXPECT_EQ(looking(safe).empty(), ::geteuid() == 0);
    ASSERT_EQ(::chmod(above.c_str(), 0755), 0);
    EXPECT_EQ(looking(safe), "");
    if (::geteuid() != 0) return; // only root can give a directory away
    ASSERT_EQ(::chown(above.c_str(), 1, 1), 0);
    EXPECT_EQ(looking(safe),
              "policy.search_path " + at + "it, or a directory above it, belongs to another user");
}

// Runs `body` in a mount namespace of its own; "" when it was content.
template<class Body> auto with_own_mounts(Body body) -> std::string {
    return test::said_by([&]() -> std::string {
        if (::geteuid() != 0) test::enter_root("/"); // takes a user namespace
        test::prepared(::unshare(CLONE_NEWNS) == 0, "unshare");
        test::prepared(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "mount");
        return body();
    });
}

TEST_F(SessionPolicy, AFileSystemOfTheKernelIsRefusedWhereverItIsMounted) {
    const auto path = place.directory("project");
    const auto what = rules();
    EXPECT_EQ(with_own_mounts([&]() -> std::string {
                  if (!session_policy::freeze(what)) return "the plain directory was refused";
                  const auto mounted = [&](const char* type, const char* from, unsigned long how) {
                      test::prepared(::mount(from, path.c_str(), type, how, nullptr) == 0, from);
                      const auto out = session_policy::freeze(what);
                      test::prepared(::umount2(path.c_str(), MNT_DETACH) == 0, "umount");
                      return out ? std::string{"accepted"} : std::string{out.error().step};
                  };
                  for (const auto* from : {"/proc", "/sys"})
                      if (const auto step = mounted(nullptr, from, MS_BIND | MS_REC);
                          step != "source.file_system")
                          return std::string{from} + ": " + step;
                  // A volume of its own is where projects often are.
                  const auto step = mounted("tmpfs", "tmpfs", 0);
                  return step == "accepted" ? "" : "tmpfs: " + step;
              }),
              "");
}

} // namespace
