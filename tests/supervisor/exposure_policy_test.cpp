// The operator's roots: the rules of the file, and that nothing leads out of one.
#include "exposure_scene.hpp"
#include "supervisor/exposure_fields.hpp"
#include <agents/racer.hpp>
#include <chrono>
#include <gtest/gtest.h>
#include <optional>
#include <support/folder.hpp>
#include <support/forked.hpp>
#include <support/malformed.hpp>
#include <sys/mount.h>
#include <sys/stat.h>

namespace {

using namespace glove;
using namespace glove::supervisor;
using test::folder;
using test::mib;
using wire::json::value;

auto judge(const std::string& text) -> std::optional<error> {
    const auto out = parse_exposure_rules(text);
    if (out) return std::nullopt;
    return out.error();
}
auto after(const std::function<void(exposure_rules&)>& edit) -> std::string {
    auto rules = test::usual_exposure_rules();
    edit(rules);
    const auto out = exposure_rules_text(rules);
    return out ? "" : std::string{out.error().step} + " " + out.error().detail;
}
auto root_with(const std::function<void(exposure_root&)>& edit) -> std::string {
    return after([&](auto& rules) { edit(rules.roots[0]); });
}

// --- the rules ---

TEST(ExposureRules, WhatIsWrittenReadsAsTheSame) {
    const auto text = exposure_rules_text(test::usual_exposure_rules()).value();
    EXPECT_EQ(parse_exposure_rules(text).value(), test::usual_exposure_rules());
    auto members = *wire::json::read(text)->as_object();
    std::reverse(members.begin(), members.end());
    EXPECT_EQ(parse_exposure_rules(wire::json::to_text(members)).value(),
              test::usual_exposure_rules());
}

TEST(ExposureRules, EachRowIsEnforced) {
    const auto whole = *wire::json::read(exposure_rules_text(test::usual_exposure_rules()).value());
    test::expect_each_to_be_refused(exposure_rules_fields, whole, "", judge);
    test::expect_each_to_be_refused(root_fields, whole, "roots/0", judge);
    test::expect_each_to_be_refused(mode_fields, whole, "roots/0/allowed_modes/1", judge);
}

TEST(ExposureRules, ListsMayComeInAnyOrder) {
    auto rules = test::usual_exposure_rules();
    std::reverse(rules.roots[0].allowed_modes.begin(), rules.roots[0].allowed_modes.end());
    std::reverse(rules.roots[0].allowed_runtime_template_ids.begin(),
                 rules.roots[0].allowed_runtime_template_ids.end());
    const auto text = wire::encode(rules, exposure_rules_fields).value();
    EXPECT_EQ(parse_exposure_rules(text).value(), test::usual_exposure_rules());
    EXPECT_EQ(root_with([](auto& r) { r.allowed_modes.push_back(test::read_mode()); }),
              "exposure.unique $.roots[0].allowed_modes[2] appears twice");
    EXPECT_EQ(root_with([](auto& r) { r.allowed_runtime_template_ids.emplace_back("pi-safe"); }),
              "exposure.unique $.roots[0].allowed_runtime_template_ids[2] appears twice");
}

TEST(ExposureRules, ThereIsRoomForAsMuchAsMayBe) {
    for (const std::size_t over : {0U, 1U}) {
        const auto expect = [&](const std::string& said) {
            EXPECT_EQ(said.substr(0, 11), over == 0 ? "" : "wire.length");
        };
        expect(after([&](auto& rules) {
            while (rules.roots.size() < 64 + over) {
                const auto name = "r" + std::to_string(rules.roots.size());
                rules.roots.push_back(test::usual_root("/mnt/" + name));
                rules.roots.back().root_id = name;
            }
        }));
        expect(root_with([&](auto& r) {
            r.allowed_modes.clear();
            for (std::uint64_t i = 0; i < 8 + over; ++i)
                r.allowed_modes.push_back(test::ephemeral_mode(i + 1));
        }));
        expect(root_with([&](auto& r) {
            r.allowed_runtime_template_ids.clear();
            for (std::size_t i = 0; i < 64 + over; ++i)
                r.allowed_runtime_template_ids.push_back("t" + std::to_string(i));
        }));
        auto text = exposure_rules_text(test::usual_exposure_rules()).value();
        text.resize((1U << 20U) + over, ' ');
        EXPECT_EQ(judge(text).has_value(), over != 0);
    }
}

TEST(ExposureRules, RootsAreApartAndNeverHoldWhatIsNotHandedOut) {
    const std::string at = "exposure.host_root $.roots[0].host_root ";
    for (const auto* path : {"/dev", "/proc/self", "/run", "/run/x", "/sys"})
        EXPECT_EQ(root_with([&](auto& r) { r.host_root = path; }),
                  at + "is inside of /dev, /proc, /run or /sys");
    for (const auto* path : {"/home/you/.ssh", "/a/.aws/b", "/.gnupg"})
        EXPECT_EQ(root_with([&](auto& r) { r.host_root = path; }),
                  at + "is in a directory that holds credentials");
    for (const auto* path : {"/home/you", "/home", "/srv", "/running"})
        EXPECT_EQ(root_with([&](auto& r) { r.host_root = path; }), "");
    const auto second = [](std::string id, std::string path) {
        return after([&](auto& rules) {
            rules.roots.push_back(test::usual_root(path));
            rules.roots.back().root_id = id;
        });
    };
    EXPECT_EQ(second("projects", "/mnt"), "exposure.unique $.roots[1].root_id appears twice");
    EXPECT_EQ(second("other", test::usual_root().host_root + "/x"),
              "exposure.overlap $.roots[1].host_root overlaps $.roots[0].host_root");
    EXPECT_EQ(second("other", "/srv").substr(0, 16), "exposure.overlap");
    EXPECT_EQ(second("other", "/srv/works"), "");
}

TEST(ExposureRules, AModeMustBeOneThatThereIs) {
    EXPECT_EQ(root_with([](auto& r) { r.allowed_modes[1].max_bytes = 0; }),
              "exposure.mode $.roots[0].allowed_modes[1] is not ephemeral_write, copy, a quota and "
              "remove");
    EXPECT_EQ(root_with([](auto& r) {
                  r.allowed_modes = {test::retained_mode(32 * mib - 1)};
              }).substr(0, 13),
              "exposure.mode");
    EXPECT_EQ(root_with([](auto& r) { r.allowed_modes = {test::retained_mode()}; }), "");
}

TEST(ExposureRules, ARequestStaysWithinTheRoot) {
    const auto rules = test::usual_exposure_rules();
    const auto said = [&](const std::function<void(create_exposure&)>& edit) {
        auto what = test::usual_create();
        edit(what);
        const auto out = check_allowed(rules, what);
        return out ? "" : std::string{out.error().step} + " " + out.error().detail;
    };
    EXPECT_EQ(said([](auto&) {}), "");
    EXPECT_EQ(said([](auto& w) { w.root_id = "x"; }),
              "exposure.root $.root_id is not a root of the policy");
    EXPECT_EQ(said([](auto& w) { w.ttl_secs = 86'400; }), "");
    EXPECT_EQ(said([](auto& w) { w.ttl_secs = 86'401; }),
              "exposure.ttl $.ttl_secs is more than the root allows, which is 86400");
    EXPECT_EQ(said([](auto& w) { w.allowed_modes = {test::ephemeral_mode(64 * mib)}; }), "");
    EXPECT_EQ(said([](auto& w) { w.allowed_modes = {test::ephemeral_mode(64 * mib + 1)}; }),
              "exposure.mode $.allowed_modes[0] is more than the root allows");
    EXPECT_EQ(said([](auto& w) { w.allowed_modes.push_back(test::retained_mode()); }),
              "exposure.mode $.allowed_modes[1] is more than the root allows");
    EXPECT_EQ(said([](auto& w) { w.allowed_runtime_template_ids = {"pi-safe"}; }), "");
    EXPECT_EQ(said([](auto& w) { w.allowed_runtime_template_ids = {"codex-safe", "x"}; }),
              "exposure.template $.allowed_runtime_template_ids[1] is not a template of the root");
}

// --- the file system ---

class ExposurePolicy : public testing::Test {
protected:
    ExposurePolicy() {
        place.directory("root/proj/inner");
        place.file("root/proj/file", "text");
        place.directory("outside/secret");
        root = place / "root";
    }
    [[nodiscard]] auto policy() const -> exposure_policy {
        return exposure_policy::freeze(test::usual_exposure_rules(root)).value();
    }
    // "" when it is opened.
    [[nodiscard]] auto refusal(const std::string& path) const -> std::string {
        const auto out = policy().open("projects", path);
        return out ? "" : std::string{out.error().step} + " " + out.error().detail;
    }
    static auto inode_of(const std::string& path) -> std::uint64_t {
        struct ::stat found{};
        test::prepared(::lstat(path.c_str(), &found) == 0, path);
        return found.st_ino;
    }
    folder place;
    std::string root;
};

TEST_F(ExposurePolicy, AFileOfTheOwnerAloneIsLoaded) {
    const auto text = exposure_rules_text(test::usual_exposure_rules(root)).value();
    const auto path = place.file("exposures.json", text, 0600);
    EXPECT_EQ(exposure_policy::load(path)->rules(), test::usual_exposure_rules(root));
    ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
    EXPECT_EQ(exposure_policy::load(path).error().step, "file.private");
    EXPECT_EQ(exposure_policy::load(path).error().remedy, "chmod 600 " + path);
    const auto bad = place.file("bad.json", text.substr(1), 0600);
    EXPECT_TRUE(exposure_policy::load(bad).error().detail.starts_with(bad + ": "));
}

TEST_F(ExposurePolicy, ARootIsADirectoryWithoutALinkOnTheWay) {
    const auto said = [](const std::string& path) {
        const auto out = exposure_policy::freeze(test::usual_exposure_rules(path));
        return out ? "" : std::string{out.error().step} + " " + out.error().detail;
    };
    const std::string at = "$.roots[0].host_root";
    EXPECT_EQ(said(root), "");
    EXPECT_EQ(said(place / "none"), "source.open " + at + ": it does not exist");
    EXPECT_EQ(said(root + "/proj/file"), "exposure.host_root " + at + " is not a directory");
    EXPECT_EQ(said(place.link("link", root)),
              "source.open " + at + ": it or a component of it is a symbolic link");
    EXPECT_EQ(said(place / "link/proj"),
              "source.open " + at + ": it or a component of it is a symbolic link");
}

TEST_F(ExposurePolicy, ASourceIsStrictlyBelowItsRoot) {
    EXPECT_EQ(refusal(root + "/proj"), "");
    EXPECT_EQ(refusal(root + "/proj/inner"), "");
    EXPECT_EQ(refusal(root + "/proj/file"), "");
    const std::string outside = "exposure.path $.host_path is not below the root";
    for (const auto& path :
         {root, place.path(), place / "outside/secret", root + "2", root + "/../outside/secret",
          root + "/proj/../../outside/secret", root + "/./proj", root + "//proj", root + "/proj/",
          std::string{"proj"}, std::string{}, root + std::string{"/proj\0x", 7}})
        EXPECT_EQ(refusal(path), outside) << path;
    EXPECT_EQ(refusal(root + "/none"), "source.open it does not exist");
    EXPECT_EQ(policy().open("other", root + "/proj").error().step, "exposure.root");
}

TEST_F(ExposurePolicy, ASourceSaysInWhichDirectoryItIs) {
    const auto out = policy().open("projects", root + "/proj/inner");
    EXPECT_EQ(out->facts.identity.inode, inode_of(root + "/proj/inner"));
    EXPECT_EQ(out->parent.identity.inode, inode_of(root + "/proj"));
    EXPECT_EQ(policy().open("projects", root + "/proj")->parent.identity.inode, inode_of(root));
}

TEST_F(ExposurePolicy, NoLinkIsFollowed) {
    place.link("root/last", place / "outside/secret");
    place.link("root/way", place / "outside");
    place.link("root/inner", "proj");
    place.link("root/magic", "/proc/self/root");
    const std::string step = "source.open ";
    EXPECT_EQ(refusal(root + "/last"), step + "it or a component of it is a symbolic link");
    EXPECT_EQ(refusal(root + "/inner"), step + "it or a component of it is a symbolic link");
    for (const auto* path : {"/way/secret", "/inner/file", "/inner/inner", "/magic/etc"})
        EXPECT_EQ(refusal(root + path), step + "it or a component of it is a symbolic link")
            << path;
}

TEST_F(ExposurePolicy, OnlyFilesAndDirectoriesAreSources) {
    const auto pipe = place.fifo("root/pipe");
    EXPECT_EQ(refusal(pipe), "source.type it is neither a regular file nor a directory");
    const auto listening = test::bound_socket(root + "/socket");
    EXPECT_EQ(refusal(root + "/socket").substr(0, 11), "source.type");
}

TEST_F(ExposurePolicy, CredentialsBelowARootAreNotExposed) {
    for (const std::string name : {".ssh", ".aws", ".gnupg", ".azure", ".kube", ".sage"}) {
        place.directory("root/" + name + "/x");
        for (const auto& path : {root + "/" + name, root + "/" + name + "/x"})
            EXPECT_EQ(refusal(path),
                      "exposure.path $.host_path is in a directory that holds credentials");
    }
    place.directory("root/.config");
    EXPECT_EQ(refusal(root + "/.config"), "");
}

TEST_F(ExposurePolicy, ARootStaysTheDirectoryThatItWas) {
    const auto frozen = policy();
    std::filesystem::rename(root, root + ".old");
    place.directory("root/proj");
    const auto out = frozen.open("projects", root + "/proj");
    EXPECT_EQ(out->facts.identity.inode, inode_of(root + ".old/proj"));
}

// Of a link itself.
auto link_inode_of(const std::string& path) -> std::uint64_t {
    struct ::stat found{};
    return ::lstat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

TEST_F(ExposurePolicy, ASwappedComponentNeverLeadsOut) {
    const auto frozen = policy();
    const std::uint64_t good[] = {inode_of(root + "/proj/inner"), inode_of(root + "/proj")};
    const auto attack = [&](const std::string& one, const std::string& other,
                            const std::string& path, std::uint64_t wanted) {
        int opened = 0;
        int refused = 0;
        const auto before = link_inode_of(one);
        std::optional<test::racer> swapping{std::in_place, one, other};
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
        while ((opened < 20 || refused < 20) && std::chrono::steady_clock::now() < until) {
            const auto got = frozen.open("projects", path);
            got ? ++opened : ++refused;
            if (got && got->facts.identity.inode != wanted) return std::string{"led elsewhere"};
        }
        swapping.reset();
        if (link_inode_of(one) != before) // the next attack begins where this one did
            (void)::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
        return opened >= 20 && refused >= 20 ? std::string{} : std::string{"nothing raced"};
    };
    // The last component, one on the way, and a directory that is moved out and in again.
    EXPECT_EQ(attack(root + "/proj/inner", place.link("a", place / "outside/secret"),
                     root + "/proj/inner", good[0]),
              "");
    place.directory("outside/inner");
    EXPECT_EQ(
        attack(root + "/proj", place.link("b", place / "outside"), root + "/proj/inner", good[0]),
        "");
    place.file("plain");
    EXPECT_EQ(attack(root + "/proj", place / "plain", root + "/proj/inner", good[0]), "");
}

template<class Body> auto with_own_mounts(Body body) -> std::string {
    return test::said_by([&]() -> std::string {
        if (::geteuid() != 0) test::enter_root("/"); // takes a user namespace
        test::prepared(::unshare(CLONE_NEWNS) == 0, "unshare");
        test::prepared(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "mount");
        return body();
    });
}

TEST_F(ExposurePolicy, NoMountIsCrossedBelowARoot) {
    const auto at = root + "/proj/inner";
    const auto target = place / "outside/secret";
    place.directory("outside/secret/deep");
    place.directory("root/proj/inner/deep");
    EXPECT_EQ(with_own_mounts([&]() -> std::string {
                  const auto frozen = policy();
                  const auto open = [&](const std::string& path) {
                      const auto out = frozen.open("projects", path);
                      return out ? std::string{} : out.error().detail;
                  };
                  const auto crossing = [&](const char* type, const char* from, unsigned long how) {
                      test::prepared(::mount(from, at.c_str(), type, how, nullptr) == 0, "mount");
                      if (!open(at).starts_with("it leads out of its root or into another mount"))
                          return std::string{"entered "} + from;
                      if (open(at + "/deep").empty()) return std::string{"went beyond "} + from;
                      if (!open(root + "/proj").empty()) return std::string{"refused its parent"};
                      test::prepared(::umount2(at.c_str(), MNT_DETACH) == 0, "umount");
                      return open(at) + open(at + "/deep");
                  };
                  // Another directory of the same file system, and other file systems.
                  if (const auto said = crossing(nullptr, target.c_str(), MS_BIND); !said.empty())
                      return said;
                  if (const auto said = crossing("tmpfs", "tmpfs", 0); !said.empty()) return said;
                  return crossing(nullptr, "/proc", MS_BIND | MS_REC);
              }),
              "");
}

TEST_F(ExposurePolicy, ARootOfTheKernelsOwnIsRefusedWhereverItIsMounted) {
    EXPECT_EQ(with_own_mounts([&]() -> std::string {
                  if (!exposure_policy::freeze(test::usual_exposure_rules(root)))
                      return "the plain directory was refused";
                  test::prepared(
                      ::mount("/proc", root.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0,
                      "mount");
                  const auto out = exposure_policy::freeze(test::usual_exposure_rules(root));
                  return out                                        ? "accepted"
                         : out.error().step == "source.file_system" ? ""
                                                                    : out.error().detail;
              }),
              "");
}

TEST_F(ExposurePolicy, TwoRootsAreNotOneDirectory) {
    place.directory("other");
    EXPECT_EQ(with_own_mounts([&]() -> std::string {
                  auto rules = test::usual_exposure_rules(root);
                  rules.roots.push_back(test::usual_root(place / "other"));
                  rules.roots[1].root_id = "other";
                  if (!exposure_policy::freeze(rules)) return "two directories were refused";
                  test::prepared(::mount(root.c_str(), (place / "other").c_str(), nullptr, MS_BIND,
                                         nullptr) == 0,
                                 "mount");
                  const auto out = exposure_policy::freeze(rules);
                  return out ? "accepted" : out.error().step == "exposure.overlap" ? "" : "other";
              }),
              "");
}

} // namespace
