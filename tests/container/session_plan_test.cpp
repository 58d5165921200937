// The plan of a managed session, and the mounts that go into one.
#include "container/launcher_scene.hpp"
#include <algorithm>
#include <gmock/gmock.h>
#include <sys/statvfs.h>

namespace {

using namespace glove;
using namespace glove::container;
using namespace glove::container::scene;
using testing::HasSubstr;
using testing::StartsWith;

auto entry_of(const plan& of, std::string_view path) -> const tree_entry* {
    const auto at = std::ranges::find(of.tree, path, &tree_entry::path);
    return at == of.tree.end() ? nullptr : &*at;
}

// What becomes of a plan with one more mount, at `target`.
auto plan_with(const std::string& target, bool directory = true) -> result<plan> {
    auto wish = shell_wish("true");
    sys::unique_fd mount = new_tmpfs();
    if (!directory) {
        put_file(mount, "file", "");
        mount = sys::unique_fd{::openat(mount.get(), "file", O_PATH | O_CLOEXEC)};
    }
    wish.mounts.push_back({.target = target, .mount = std::move(mount), .directory = directory});
    return make_session_plan(std::move(wish));
}

auto told(const result<plan>& made) -> std::string {
    return made ? "made" : std::string{made.error().step} + ": " + made.error().detail;
}

TEST(SessionPlan, ItIsThatOfTheAgentWithTheServicesOwnNumbersOutside) {
    EXPECT_EQ(as_service([] {
                  const auto made = good(make_session_plan(shell_wish("true")));
                  std::string out;
                  for (const auto id :
                       {made.user.uid, made.user.gid, made.user.outer_uid(), made.user.outer_gid()})
                      out += std::to_string(id) + " ";
                  out += std::string{made.user.name()} + " " +
                         std::string{to_string(made.network)} + " " + made.programs.at(0) + " ";
                  for (const auto* place : {"/home/agent", "/tmp", "/var/tmp", "/dev/shm", "/run"})
                      out += entry_of(made, place)->kind == entry_kind::scratch ? "s" : "-";
                  return out + (made.scratch_mount ? " given " : " new ") +
                         entry_of(made, "/etc/passwd")->text;
              }),
              "1000 1000 0 0 agent sealed /bin/sh sssss given "
              "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
              "agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
              "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
}

TEST(SessionPlan, AnOnlineOneIsOfTheEgressTier) {
    EXPECT_EQ(
        as_service([] {
            auto wish = shell_wish("true");
            wish.bridge = good(
                plan_bridge({.allow = {"api.example.com"}, .publish = {}}, network_tier::egress));
            const auto made = good(make_session_plan(std::move(wish)));
            return std::string{to_string(made.network)} +
                   (std::ranges::count(made.environment, "HTTPS_PROXY=http://127.0.0.1:61080") == 1
                        ? " with a proxy"
                        : " without one");
        }),
        "egress with a proxy");
}

TEST(SessionPlan, GlovesOwnPlacesAreNobodysTarget) {
    const auto said = as_service([] {
        std::string out;
        for (const auto* target : {"/proc",   "/proc/x", "/dev",        "/dev/shm/x", "/run",
                                   "/run/x",  "/etc",    "/etc/passwd", "/tmp",       "/var/tmp",
                                   "/var",    "/home",   "/home/agent", "/",          "relative",
                                   "/a/../b", "/a/",     "/.glove",     "/.glove/x",  ""})
            if (const auto made = plan_with(target); made || made.error().step != "session.target")
                out += std::string{target} + " " + told(made) + "\n";
        return out;
    });
    EXPECT_EQ(said, "");
}

TEST(SessionPlan, WhatTheSystemDoesNotHaveCannotBeStoodOn) {
    const auto said = as_service([] {
        std::string out;
        for (const auto* target : {"/usr/share/there-is-none", "/usr/share/there/is-none"})
            if (const auto made = plan_with(target); !told(made).contains("lies in /usr of the"))
                out += std::string{target} + " " + told(made) + "\n";
        if (const auto made = plan_with("/usr/share", false); made) out += "a file on /usr/share\n";
        // What is installed beside it is not the system: it is seen when it was wished.
        for (const auto* target : {"/opt/there/is-none", "/opt", "/snap/x"})
            if (const auto made = plan_with(target); !made || entry_of(*made, target) == nullptr)
                out += std::string{target} + " " + told(made) + "\n";
        if (const auto made = plan_with("/srv"); !made || entry_of(*made, "/opt") != nullptr)
            out += "/opt is seen\n";
        return out;
    });
    EXPECT_EQ(said, "");
}

TEST(SessionPlan, PlacesBesideAndInsideThemAre) {
    const auto said = as_service([] {
        std::string out;
        for (const auto* target :
             {"/processes", "/workspace", "/home/agent/project", "/tmp/x", "/home/other",
              "/var/lib/x", "/etcetera", "/usr/share", "/srv"}) {
            const auto made = plan_with(target);
            const auto* const entry = made ? entry_of(*made, target) : nullptr;
            if (entry == nullptr || entry->kind != entry_kind::mounted || !entry->pin)
                out += std::string{target} + " " + told(made) + "\n";
        }
        return out;
    });
    EXPECT_EQ(said, "");
}

TEST(SessionPlan, AParentComesBeforeWhatItHoldsAndIsMade) {
    EXPECT_EQ(as_service([] {
                  const auto made = good(plan_with("/deep/er/place"));
                  std::string out;
                  for (const auto& entry : made.tree)
                      if (entry.path.starts_with("/deep"))
                          out += entry.path +
                                 (entry.kind == entry_kind::directory ? " made " : " mounted ");
                  return out;
              }),
              "/deep made /deep/er made /deep/er/place mounted ");
}

TEST(SessionPlan, NoTargetHasTwoMounts) {
    EXPECT_THAT(as_service([] {
                    auto wish = shell_wish("true");
                    for (int i = 0; i < 2; ++i)
                        wish.mounts.push_back(
                            {.target = "/same", .mount = new_tmpfs(), .directory = true});
                    return told(make_session_plan(std::move(wish)));
                }),
                StartsWith("session.target: /same is the target of two mounts"));
}

TEST(SessionPlan, WhatStandsOnAMountNeedsAPlaceOfItsTypeThere) {
    const auto inner = [](const std::string& target, bool directory) {
        return as_service([&] {
            auto wish = shell_wish("true");
            auto outer = new_tmpfs();
            prepared(::mkdirat(outer.get(), "there", 0755) == 0, "mkdir");
            prepared(::symlinkat("there", outer.get(), "link") == 0, "symlink");
            put_file(outer, "file", "");
            wish.mounts.push_back(
                {.target = "/outer", .mount = std::move(outer), .directory = true});
            auto mount = new_tmpfs();
            if (!directory) {
                put_file(mount, "file", "");
                mount = sys::unique_fd{::openat(mount.get(), "file", O_PATH | O_CLOEXEC)};
            }
            wish.mounts.push_back(
                {.target = target, .mount = std::move(mount), .directory = directory});
            return told(make_session_plan(std::move(wish)));
        });
    };
    EXPECT_EQ(inner("/outer/there", true), "made");
    EXPECT_EQ(inner("/outer/file", false), "made");
    EXPECT_THAT(inner("/outer/absent", true), HasSubstr("stands on nothing"));
    EXPECT_THAT(inner("/outer/absent/deep", true), HasSubstr("stands on nothing"));
    EXPECT_THAT(inner("/outer/there", false), HasSubstr("another type"));
    EXPECT_THAT(inner("/outer/file", true), HasSubstr("another type"));
    EXPECT_THAT(inner("/outer/link", true), HasSubstr("another type"));
    EXPECT_THAT(inner("/outer/link/x", true), HasSubstr("stands on nothing"));
}

TEST(SessionPlan, NothingStandsInAFile) {
    EXPECT_THAT(
        as_service([] {
            auto wish = shell_wish("true");
            auto holder = new_tmpfs();
            put_file(holder, "file", "");
            wish.mounts.push_back(
                {.target = "/file",
                 .mount = sys::unique_fd{::openat(holder.get(), "file", O_PATH | O_CLOEXEC)}});
            wish.mounts.push_back({.target = "/file/x", .mount = new_tmpfs(), .directory = true});
            return told(make_session_plan(std::move(wish)));
        }),
        HasSubstr("/file/x lies inside of /file, which is a file"));
}

TEST(SessionPlan, AMountIsWhatItIsSaidToBe) {
    EXPECT_EQ(as_service([] {
                  auto wish = shell_wish("true");
                  wish.mounts.push_back({.target = "/x", .mount = new_tmpfs()});
                  return told(make_session_plan(std::move(wish)));
              }),
              "session.mount: /x is to be a regular file, and its mount is none");
    EXPECT_EQ(as_service([] {
                  auto wish = shell_wish("true");
                  wish.mounts.push_back({.target = "/x", .mount = {}, .directory = true});
                  return told(make_session_plan(std::move(wish)));
              }),
              "session.mount: /x has no mount");
}

TEST(SessionPlan, WhatIsLentIsAFileOfThatDirectoryByAPlainName) {
    const auto lent = [](const std::string& name) {
        return as_service([&] {
            auto wish = shell_wish("true");
            prepared(::mkdirat(wish.scratch.get(), ".glove", 0700) == 0, "mkdir");
            prepared(::symlinkat("token", wish.scratch.get(), ".glove/link") == 0, "symlink");
            prepared(::mkdirat(wish.scratch.get(), ".glove/inner", 0700) == 0, "mkdir");
            put_file(wish.scratch, ".glove/token", "");
            put_file(wish.scratch, ".glove/inner/token", "");
            wish.mounts.push_back({.target = "/token", .mount = {}, .lent = name});
            return told(make_session_plan(std::move(wish)));
        });
    };
    EXPECT_EQ(lent("token"), "made");
    for (const auto* name : {"absent", "inner/token", "..", ".", "link", "inner", "../x"})
        EXPECT_THAT(lent(name), StartsWith("session.mount: ")) << name;
}

TEST(SessionPlan, TheScratchFileSystemIsAnEmptyTmpfs) {
    EXPECT_EQ(as_service([] {
                  auto wish = shell_wish("true");
                  put_file(wish.scratch, "something", "");
                  return told(make_session_plan(std::move(wish)));
              }),
              "session.scratch: something is in it, and it is to be empty");
    EXPECT_EQ(as_service([] {
                  auto wish = shell_wish("true");
                  put_file(wish.scratch, ".glove", "");
                  return told(make_session_plan(std::move(wish)));
              }),
              "session.scratch: .glove is in it, and it is to be empty");
    EXPECT_EQ(as_service([] {
                  auto wish = shell_wish("true");
                  wish.scratch = open_directory("/proc");
                  return told(make_session_plan(std::move(wish)));
              }),
              "session.scratch: it is no tmpfs");
    EXPECT_EQ(as_service([] {
                  auto wish = shell_wish("true");
                  wish.scratch = {};
                  return told(make_session_plan(std::move(wish)));
              }),
              "session.scratch: there is no scratch file system");
}

TEST(SessionPlan, TheCommandIsWholeAndAbsolute) {
    const auto with = [](auto change) {
        return as_service([&] {
            auto wish = shell_wish("true");
            change(wish);
            return told(make_session_plan(std::move(wish))).substr(0, 16);
        });
    };
    EXPECT_EQ(with([](auto&) {}), "made");
    EXPECT_EQ(with([](auto& w) { w.program = "sh"; }), "session.command:");
    EXPECT_EQ(with([](auto& w) { w.program = "/bin/../sh"; }), "session.command:");
    EXPECT_EQ(with([](auto& w) { w.work_directory = "tmp"; }), "session.command:");
    EXPECT_EQ(with([](auto& w) { w.arguments = {}; }), "session.command:");
    EXPECT_EQ(with([](auto& w) { w.arguments.emplace_back("a\0b", 3); }), "session.command:");
}

// --- the environment

auto environment(std::vector<std::string> wished, bool online = false) -> std::string {
    const auto made = session_environment(wished, online);
    if (!made) return std::string{made.error().step} + ": " + made.error().detail;
    std::string out;
    for (const auto& one : *made) out += one + "\n";
    return out;
}

TEST(SessionEnvironment, GlovesOwnComeFirstAndDefaultsWhereNothingWasWished) {
    EXPECT_THAT(
        environment({}),
        StartsWith("HOME=/home/agent\nTMPDIR=/tmp\nGLOVE_SANDBOXED=1\nPATH=/usr/local/bin:"));
    EXPECT_THAT(environment({"PATH=/mine", "TERM=vt100", "USER=me", "LOGNAME=me", "SHELL=/bin/sh"}),
                testing::EndsWith("GLOVE_SANDBOXED=1\nPATH=/mine\nTERM=vt100\nUSER=me\n"
                                  "LOGNAME=me\nSHELL=/bin/sh\n"));
}

TEST(SessionEnvironment, GlovesOwnAreNobodyElses) {
    for (const auto* name : {"HOME", "TMPDIR", "GLOVE_SANDBOXED", "HTTP_PROXY", "HTTPS_PROXY",
                             "ALL_PROXY", "home", "Https_Proxy", "all_proxy"})
        for (const bool online : {false, true})
            EXPECT_EQ(environment({std::string{name} + "=x"}, online),
                      "session.environment: " + std::string{name} + ": this name is set by Glove");
    EXPECT_THAT(environment({"HOMES=x", "MY_HOME=x"}), HasSubstr("HOMES=x\nMY_HOME=x\n"));
}

TEST(SessionEnvironment, AnEntryHasANameAndAValueOnce) {
    for (const auto& entry :
         {std::string{"NAME"}, std::string{"=x"}, std::string{}, std::string{"A=b\0c", 5}})
        EXPECT_THAT(environment({entry}), StartsWith("session.environment: ")) << entry;
    EXPECT_EQ(environment({"A=1", "B=", "A=2"}), "session.environment: A is given more than once");
    EXPECT_THAT(environment({"A=", "B=x=y"}), HasSubstr("A=\nB=x=y\n"));
}

TEST(SessionEnvironment, OneIsAsLongAsTheKernelTakesAndNoLonger) {
    EXPECT_THAT(environment({"A=" + std::string(longest_argument - 3, 'x')}), HasSubstr("A=xxx"));
    EXPECT_THAT(environment({"A=" + std::string(longest_argument - 2, 'x')}),
                HasSubstr("more than 131071 bytes"));
}

TEST(SessionEnvironment, TheProxyIsNamedOnlineAndTheNamesItLeavesOutCanBeWished) {
    EXPECT_THAT(environment({}, true), HasSubstr("https_proxy=http://127.0.0.1:61080\n"));
    EXPECT_THAT(environment({}, false), testing::Not(HasSubstr("proxy")));
    const auto wished = environment({"NO_PROXY=a"}, true);
    EXPECT_THAT(wished, HasSubstr("NO_PROXY=a\n"));
    EXPECT_THAT(wished, testing::Not(HasSubstr("NO_PROXY=localhost")));
}

// --- detached mounts

struct tree_below {
    test::folder outside;
    std::string top;
    tree_below() {
        top = outside.directory("top");
        outside.file("top/file", "content");
        outside.directory("top/below");
        outside.file("top/beside/file", "content");
    }
};

auto flags_of(sys::fd_ref mount) -> unsigned long {
    struct ::statvfs found{};
    prepared(::fstatvfs(mount.get(), &found) == 0, "statvfs");
    return found.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV);
}

TEST(DetachedMount, OneToReadCannotBeWrittenAndOneToWriteCan) {
    EXPECT_EQ(as_service([] {
                  const tree_below all;
                  const auto source = open_directory(all.top);
                  const auto read = good(detached_mount(source, access::read));
                  const auto write = good(detached_mount(source, access::write));
                  const bool closed = ::mkdirat(read.get(), "new", 0755) != 0 && errno == EROFS &&
                                      flags_of(read) == (ST_RDONLY | ST_NOSUID | ST_NODEV);
                  const bool open = ::mkdirat(write.get(), "new", 0755) == 0 &&
                                    flags_of(write) == (ST_NOSUID | ST_NODEV);
                  return std::string{closed ? "closed " : "open "} + (open ? "open" : "closed");
              }),
              "closed open");
}

TEST(DetachedMount, OfWhatIsTheKernelsOwnIsRefused) {
    EXPECT_EQ(as_service([] {
                  std::string out;
                  for (const auto* place : {"/proc", "/proc/sys", "/sys", "/sys/kernel"}) {
                      const auto source = open_directory(place);
                      const auto made = detached_mount(source, access::read);
                      out += made ? "cloned " : std::string{to_string(made.error().code)} + " ";
                  }
                  const auto twin = open_directory("/usr");
                  return out + (detached_mount(twin, access::read) ? "cloned" : "refused");
              }),
              "not_permitted not_permitted not_permitted not_permitted cloned");
}

// As it would be by kernels before 6.15.
TEST(DetachedMount, OfWhatStandsNowhereIsRefusedByEveryKernel) {
    EXPECT_EQ(as_service([] {
                  const auto nowhere = new_tmpfs();
                  prepared(::mkdirat(nowhere.get(), "inner", 0755) == 0, "mkdir");
                  const sys::unique_fd inner{
                      ::openat(nowhere.get(), "inner", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
                  const auto made = detached_mount(inner, access::write);
                  return made ? std::string{"cloned"} : made.error().detail;
              }),
              "/inner is in no mount that this process sees");
}

TEST(DetachedMount, OfAFileIsThatFile) {
    EXPECT_EQ(as_service([] {
                  const tree_below all;
                  const auto source = good(sys::pin(all.top + "/file", sys::follow::never));
                  const auto mount = good(detached_mount(source, access::read));
                  return good(sys::inspect(mount)).identity == good(sys::inspect(source)).identity
                             ? "the same"
                             : "another";
              }),
              "the same");
}

// Which the service mounted itself, so that the kernel lets it look below.
TEST(DetachedMount, ASubmountIsNotInIt) {
    EXPECT_EQ(as_service([] {
                  const tree_below all;
                  prepared(::mount("none", (all.top + "/below").c_str(), "tmpfs", 0, nullptr) == 0,
                           "mount");
                  test::prepared(::mkdir((all.top + "/below/hidden").c_str(), 0755) == 0, "mkdir");
                  const auto source = open_directory(all.top);
                  const auto mount = good(detached_mount(source, access::read));
                  const bool seen = ::faccessat(mount.get(), "below/hidden", F_OK, 0) == 0;
                  prepared(::umount((all.top + "/below").c_str()) == 0, "umount");
                  return seen ? "in it" : "not in it";
              }),
              "not in it");
}

// One of the host, as a service in a user namespace sees it.
TEST(DetachedMount, OfADirectoryWithAMountOfTheHostBelowItIsRefusedByName) {
    const auto said = as_service([] {
        const tree_below all;
        const auto below = all.top + "/below";
        prepared(::mount("none", below.c_str(), "tmpfs", 0, nullptr) == 0, "mount");
        auto inner = test::said_by([&] {
            prepared(::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "unshare");
            const auto top = open_directory(all.top);
            const auto other = open_directory(all.top + "/beside");
            const auto refused = detached_mount(top, access::read);
            const auto beside = detached_mount(other, access::read);
            std::string out = refused ? "cloned"
                                      : std::string{refused.error().step} + " " +
                                            std::string{to_string(refused.error().code)};
            if (!refused &&
                refused.error().detail == all.top + " has a mount below it, at " + below)
                out += " by name";
            return out + (beside ? ", beside it cloned" : ", beside it refused");
        });
        prepared(::umount(below.c_str()) == 0, "umount");
        return inner;
    });
    EXPECT_EQ(said, "mount.clone not_permitted by name, beside it cloned");
}

TEST(DetachedMount, WithoutAMountNamespaceOfItsOwnThereIsNone) {
    const auto made = test::said_by([] {
        if (::geteuid() == 0) prepared(::unshare(CLONE_NEWUSER) == 0, "unshare");
        const auto place = open_directory("/usr");
        const auto refused = detached_mount(place, access::read);
        if (refused) return std::string{"cloned"};
        return std::string{refused.error().step} + " " + std::to_string(refused.error().os);
    });
    EXPECT_EQ(made, "mount.clone " + std::to_string(EPERM));
}

} // namespace
