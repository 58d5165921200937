// Sessions that a launcher starts, in a service as it really is.
#include "container/launcher_scene.hpp"
#include "container/linux/cgroup.hpp"
#include "net/bridge_protocol.hpp"
#include <algorithm>
#include <dirent.h>
#include <glove/sys/process_facts.hpp>
#include <glove/sys/sockets.hpp>
#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <thread>

namespace {

using namespace glove;
using namespace glove::container;
using namespace glove::container::scene;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Why the session of a plan that is not to be started was not.
auto first_failure(launcher& by, const plan& of) -> std::string {
    auto launched = by.launch({.plan = &of});
    if (!launched) return text_of(launched);
    for (;;) {
        const auto news = launched->process.read_news();
        if (!news) return text_of(news);
        if (*news) return "an end";
        if (launched->process.take_terminal()) return "all of it was built";
    }
}

// --- what a session sees and may do

TEST(Launcher, ASessionRunsAsTheAgentAndItsStatusComesBack) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  session one{by, shell_wish("id -u; id -g; id -un; pwd; exit 7")};
                  return one.run();
              }),
              "1000\n1000\nagent\n/home/agent\n=1792");
}

// Two counts that the kernel keeps for all sessions of a user together, and what one session can
// take of them.
constexpr const char* greedy = R"(python3 -c '
import array, os, socket
ptys = []
try:
    while len(ptys) < 4096: ptys.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError as e: print(len(ptys), e.errno, flush=True)
for one in ptys: os.close(one)
kept, null = [], os.open("/dev/null", os.O_RDONLY)
try:
    while len(kept) < 40:
        kept.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM))
        for i in range(8):
            one = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 100))
            kept[-1][0].sendmsg([b"x"], [one], socket.MSG_DONTWAIT)
except OSError as e: print("full", e.errno, flush=True)
input()
')";

TEST(Launcher, NoSessionTakesTheDescriptorsOnTheirWayOrTheTerminalsFromAnother) {
    EXPECT_EQ(as_service([] {
                  const ::rlimit usual{300, 600};
                  prepared(::setrlimit(RLIMIT_NOFILE, &usual) == 0, "setrlimit");
                  auto by = good(launcher::start());
                  (void)good(raise_open_files()); // as gloved does
                  session hostile{by, shell_wish(greedy)};
                  hostile.release();
                  hostile.await_word("full 109"); // ETOOMANYREFS
                  session next{by, shell_wish("ulimit -Sn; ulimit -Hn")};
                  const auto said = next.run();
                  hostile.type("\n");
                  return said + " " + hostile.run();
              }),
              "300\n300\n=0 127 28\nfull 109\n\n=0");
}

TEST(Launcher, OneLauncherStartsMany) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  std::string out;
                  for (int i = 0; i < 3; ++i)
                      out += session{by, shell_wish("exit " + std::to_string(i))}.run();
                  return out;
              }),
              "=0=256=512");
}

TEST(Launcher, ThreadsOfTheServiceStartSessionsAtTheSameTime) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  std::array<std::string, 4> said;
                  {
                      std::vector<std::jthread> threads;
                      for (auto& one : said)
                          threads.emplace_back(
                              [&] { one = session{by, shell_wish("echo here")}.run(); });
                  }
                  return said[0] + said[1] + said[2] + said[3];
              }),
              "here\n=0here\n=0here\n=0here\n=0");
}

// Prints each of its words that can be written to.
constexpr std::string_view try_places =
    "try() { (echo x > \"$1/probe\") 2>/dev/null && echo \"$1\"; }; for place in ";
constexpr std::string_view all_places =
    "/ /bin /usr /usr/lib /etc /dev /dev/pts /dev/shm /run /var /var/tmp /tmp /home /home/agent "
    "/proc /proc/sys/kernel /.glove /workspace /read /deep/inner /workspace/sub; do try $place; "
    "done; true";

struct grants {
    test::folder outside;
    sys::unique_fd partition = new_tmpfs("1m");
    std::string read_place;

    grants() {
        read_place = outside.directory("source");
        outside.file("source/note", "of the host\n");
        // Mapped root is not the owner's number, but the owner.
        prepared(::mkdirat(partition.get(), "sub", 0755) == 0, "sub");
        put_file(partition, "kept", "in the partition\n");
    }
    [[nodiscard]] auto wish(std::string script) const -> session_wish {
        auto out = shell_wish(std::move(script));
        const auto source = open_directory(read_place);
        out.mounts.push_back({.target = "/read",
                              .mount = good(detached_mount(source, access::read)),
                              .directory = true,
                              .source = read_place});
        return out;
    }
};

TEST(Launcher, EveryPlaceThatIsToBeWritableIsAndNoOther) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  grants with;
                  auto wish = with.wish(std::string{try_places} + std::string{all_places});
                  wish.mounts.push_back({.target = "/workspace",
                                         .mount = std::move(with.partition),
                                         .mode = access::write,
                                         .directory = true});
                  return session{by, std::move(wish)}.run();
              }),
              "/dev/shm\n/run\n/var/tmp\n/tmp\n/home/agent\n/workspace\n/workspace/sub\n=0");
}

TEST(Launcher, WhatIsMountedIsWhatWasGiven) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  grants with;
                  auto wish = with.wish("cat /read/note /deep/workspace/kept; cd /deep; ls -A; "
                                        "echo new > workspace/sub/made; echo x >> /read/note");
                  const auto look = sys::unique_fd{
                      ::openat(with.partition.get(), "sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
                  wish.mounts.push_back({.target = "/deep/workspace",
                                         .mount = std::move(with.partition),
                                         .mode = access::write,
                                         .directory = true});
                  auto out = session{by, std::move(wish)}.run();
                  return out + content_in(look, "made") +
                         test::content_of(with.read_place + "/note");
              }),
              "of the host\nin the partition\nworkspace\n"
              "sh: 1: cannot create /read/note: Read-only file system\n=512new\nof the host\n");
}

TEST(Launcher, WhatIsToBeReadIsReadOnlyWhateverItsMountWas) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  grants with;
                  auto wish = shell_wish("cat /only/kept; echo x > /only/kept; echo x > /only/new");
                  wish.mounts.push_back(
                      {.target = "/only", .mount = std::move(with.partition), .directory = true});
                  return session{by, std::move(wish)}.run();
              }),
              "in the partition\nsh: 1: cannot create /only/kept: Read-only file system\n"
              "sh: 1: cannot create /only/new: Read-only file system\n=512");
}

// The whole of one tree, with a part of another on top of it.
TEST(Launcher, AMountCanStandOnTopOfAnother) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  grants with;
                  auto wish = shell_wish("ls -A1 /workspace /workspace/sub; cat /workspace/kept;"
                                         "echo x > /workspace/kept");
                  const auto note = sys::unique_fd{
                      ::open((with.read_place + "/note").c_str(), O_RDONLY | O_CLOEXEC)};
                  const auto source = open_directory(with.read_place);
                  // In an order that is not the one of mounting.
                  wish.mounts.push_back({.target = "/workspace/kept",
                                         .mount = good(detached_mount(note, access::read))});
                  wish.mounts.push_back({.target = "/workspace/sub",
                                         .mount = good(detached_mount(source, access::read)),
                                         .directory = true});
                  wish.mounts.push_back({.target = "/workspace",
                                         .mount = std::move(with.partition),
                                         .mode = access::write,
                                         .directory = true});
                  return session{by, std::move(wish)}.run();
              }),
              "/workspace:\nkept\nsub\n\n/workspace/sub:\nnote\nof the host\n"
              "sh: 1: cannot create /workspace/kept: Read-only file system\n=512");
}

TEST(Launcher, AMountDoesNotStandOnALinkThatCameMeanwhile) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  grants with;
                  auto wish = shell_wish("true");
                  const auto note = sys::unique_fd{
                      ::open((with.read_place + "/note").c_str(), O_RDONLY | O_CLOEXEC)};
                  const sys::unique_fd content{
                      ::openat(with.partition.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
                  wish.mounts.push_back({.target = "/workspace/kept",
                                         .mount = good(detached_mount(note, access::read))});
                  wish.mounts.push_back({.target = "/workspace",
                                         .mount = std::move(with.partition),
                                         .mode = access::write,
                                         .directory = true});
                  auto plan = good(make_session_plan(std::move(wish)));
                  prepared(::unlinkat(content.get(), "kept", 0) == 0 &&
                               ::symlinkat("/usr/bin/id", content.get(), "kept") == 0,
                           "replace");
                  return first_failure(by, plan);
              }),
              "mount.tree: statx for /workspace/kept [" + std::to_string(ENOTDIR) + "] ");
}

// Two mounts of the one scratch file system that no name leads from one to the other.
TEST(Launcher, WhatIsLentComesToItsPlaceAndTheServiceHasItBackAfterwards) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  auto wish = shell_wish("cat .config/token; echo renewed > .config/token;"
                                         "ls -A /.glove; ls -A .config; cat /run/agent-token 2>&1;"
                                         "echo kept > /tmp/kept; mv .config/token .config/other");
                  const sys::unique_fd content{
                      ::openat(wish.scratch.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
                  prepared(::mkdirat(content.get(), ".glove", 0700) == 0, "mkdir");
                  put_file(content, ".glove/first", "secret\n");
                  put_file(content, ".glove/second", "another\n");
                  wish.mounts.push_back({.target = "/home/agent/.config/token",
                                         .mount = {},
                                         .mode = access::write,
                                         .lent = "first"});
                  auto plan = good(make_session_plan(std::move(wish)));
                  std::string out;
                  {
                      session one{by, std::move(plan)};
                      one.await_terminal();
                      put_file(content, ".glove/third", "put there meanwhile");
                      out = one.run();
                      out += content_in(content, ".glove/first");
                  }
                  put_file(content, ".glove/fourth", "and afterwards");
                  return out + content_in(content, ".glove/second") +
                         content_in(content, "tmp/kept") + content_in(content, ".glove/third") +
                         content_in(content, ".glove/fourth");
              }),
              "secret\nls: cannot open directory '/.glove': Permission denied\ntoken\n"
              "cat: /run/agent-token: No such file or directory\n"
              "mv: cannot move '.config/token' to '.config/other': Device or resource busy\n=256"
              "renewed\nanother\nkept\nput there meanwhileand afterwards");
}

TEST(Launcher, WhatWasLentIsReadOnlyWhereItIsNotToBeChanged) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  auto wish = shell_wish("cat /token; echo x > /token");
                  prepared(::mkdirat(wish.scratch.get(), ".glove", 0700) == 0, "mkdir");
                  put_file(wish.scratch, ".glove/first", "secret\n");
                  wish.mounts.push_back({.target = "/token", .mount = {}, .lent = "first"});
                  return session{by, std::move(wish)}.run();
              }),
              "secret\nsh: 1: cannot create /token: Read-only file system\n=512");
}

TEST(Launcher, TheFilesAreThoseOfTheOneUserWhoeverTheServiceIs) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  grants with;
                  auto wish = with.wish("stat -c '%u %g' /home/agent /tmp /read/note / /workspace;"
                                        "touch mine; stat -c '%u %g %a' mine");
                  wish.mounts.push_back({.target = "/workspace",
                                         .mount = std::move(with.partition),
                                         .mode = access::write,
                                         .directory = true});
                  return session{by, std::move(wish)}.run();
              }),
              "1000 1000\n1000 1000\n1000 1000\n1000 1000\n1000 1000\n1000 1000 644\n=0");
}

TEST(Launcher, TheEnvironmentIsWhatWasWishedAndGlovesOwn) {
    EXPECT_EQ(as_service([] {
                  ::setenv("GLOVE_TEST_OF_THE_SERVICE", "1", 1);
                  auto by = good(launcher::start());
                  auto wish = shell_wish("env | grep -v -e ^PWD= -e ^_= | sort");
                  wish.environment = {"TERM=dumb", "MODE=test of it"};
                  return session{by, std::move(wish)}.run();
              }),
              "GLOVE_SANDBOXED=1\nHOME=/home/agent\nLOGNAME=agent\nMODE=test of it\n"
              "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin\n"
              "SHELL=/bin/bash\nTERM=dumb\nTMPDIR=/tmp\nUSER=agent\n=0");
}

TEST(Launcher, TheTerminalHasTheSizeThatWasAskedForAndIsAllThreeStreams) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  return session{by,
                                 shell_wish("stty size; tty; test -t 0 && test -t 1 && test -t 2")}
                      .run();
              }),
              "24 80\n/dev/pts/0\n=0");
}

// --- what an agent tries

TEST(Launcher, NothingOfTheServiceIsToBeSeenInProc) {
    const auto said = as_service([] {
        ::setenv("GLOVE_TEST_OF_THE_SERVICE", "1", 1);
        auto by = good(launcher::start());
        auto wish = shell_wish(
            "set -- /proc/[0-9]*; echo $#; tr -d '\\0' < /proc/1/cmdline; cat /proc/1/comm;"
            "cat /proc/1/environ; cat /proc/1/fd/3; readlink /proc/1/root || echo closed;"
            "grep ^0: /proc/1/cgroup; cat /proc/1/uid_map; echo 1 > /proc/sys/kernel/printk");
        wish.environment = {"TOKEN=of-the-proxy"};
        return session{by, std::move(wish)}.run();
    });
    EXPECT_THAT(said, StartsWith("2\nglove-initglove-init\n"));
    EXPECT_THAT(said, AllOf(Not(HasSubstr("of-the-proxy")), Not(HasSubstr("GLOVE_TEST"))));
    EXPECT_THAT(said, HasSubstr("cat: /proc/1/environ: Permission denied"));
    EXPECT_THAT(said, HasSubstr("cat: /proc/1/fd/3: Permission denied\nclosed\n"));
    EXPECT_THAT(said, HasSubstr("0::/\n"));
    EXPECT_THAT(said, HasSubstr("cannot create /proc/sys/kernel/printk: Read-only file system"));
}

TEST(Launcher, NoMountCanBeChangedMadeOrTakenAway) {
    const auto said = as_service([] {
        auto by = good(launcher::start());
        grants with;
        auto wish = with.wish(
            "python3 -c 'import ctypes, os, errno\n"
            "c = ctypes.CDLL(None, use_errno=True)\n"
            "def told(name, got): print(name, errno.errorcode.get(ctypes.get_errno(), 0) "
            "if got < 0 else got)\n"
            "told(\"remount\", c.mount(None, b\"/read\", None, 0x1020, None))\n"
            "told(\"bind\", c.mount(b\"/tmp\", b\"/read\", None, 0x1000, None))\n"
            "told(\"tmpfs\", c.mount(b\"t\", b\"/tmp\", b\"tmpfs\", 0, None))\n"
            "told(\"umount\", c.umount2(b\"/read\", 2))\n"
            "told(\"userns\", c.unshare(0x10000000))\n"
            "told(\"mountns\", c.unshare(0x20000))\n"
            "told(\"open_tree\", c.syscall(428, -100, b\"/read\", 1))\n"
            "told(\"mount_setattr\", c.syscall(442, -100, b\"/read\", 0, bytes(32), 32))\n"
            "print(*[l.split()[5] for l in open(\"/proc/self/mountinfo\") "
            "if l.split()[4] == \"/read\"])'");
        return session{by, std::move(wish)}.run();
    });
    for (const auto* call :
         {"remount", "bind", "tmpfs", "umount", "userns", "mountns", "open_tree", "mount_setattr"})
        EXPECT_THAT(said, testing::ContainsRegex(std::string{call} + " (EPERM|ENOSYS|ENOSPC)\n"));
    EXPECT_THAT(said, HasSubstr("\nro,nosuid,nodev"));
}

TEST(Launcher, WhatWaitsInAGrantOfTheHostIsCovered) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  grants with;
                  const auto socket = test::bound_socket(with.read_place + "/agent.sock");
                  const auto fifo = with.outside.fifo("source/pipe");
                  auto wish = with.wish("cat /read/note; cat /read/pipe; test -S /read/agent.sock");
                  return session{by, std::move(wish)}.run();
              }),
              "of the host\ncat: /read/pipe: Permission denied\n=256");
}

TEST(Launcher, ATargetBehindALinkOfTheSystemIsWhereItLeads) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  grants with;
                  auto wish = shell_wish("cat /usr/bin/head");
                  const auto note = sys::unique_fd{
                      ::open((with.read_place + "/note").c_str(), O_RDONLY | O_CLOEXEC)};
                  wish.mounts.push_back(
                      {.target = "/bin/head", .mount = good(detached_mount(note, access::read))});
                  return session{by, std::move(wish)}.run();
              }),
              "of the host\n=0");
}

// Answers the connection that the bridge passes on.
auto answer_one(sys::fd_ref relay) -> std::string {
    ::pollfd source{relay.get(), POLLIN, 0};
    if (::poll(&source, 1, 20'000 * slowness()) != 1) return "nothing came ";
    std::array<char, sizeof(net::bridge_message)> room;
    const auto came = good(sys::receive_message(relay, room, "test.bridge"));
    if (came.descriptors.size() != 1) return "no connection ";
    test::say(came.descriptors[0], "pong\n");
    return "passed on ";
}

auto with_bridge(bool online) -> std::string {
    return as_service([=] {
        auto by = good(launcher::start());
        auto wish = shell_wish("echo \"$HTTPS_PROXY\"; exec 3<>/dev/tcp/127.0.0.1/61080;"
                               "read -r answer <&3 && echo $answer");
        wish.program = "/bin/bash";
        auto ends = good(sys::message_channel("test.bridge"));
        if (online)
            wish.bridge =
                good(plan_bridge({.allow = {"api.example.com", ".example.org"}, .publish = {}},
                                 network_tier::egress));
        session one{by, std::move(wish), online ? &ends[1] : nullptr};
        std::string out{online == !ends[1] ? "" : "an end is left "};
        one.release();
        if (online) out += answer_one(ends[0]);
        return out + one.run();
    });
}

TEST(Launcher, AnOnlineSessionHasABridge) {
    EXPECT_EQ(with_bridge(true), "passed on http://127.0.0.1:61080\npong\n=0");
}
TEST(Launcher, AnOfflineOneHasNone) {
    EXPECT_THAT(with_bridge(false),
                AllOf(StartsWith("\n"), HasSubstr("/dev/tcp/127.0.0.1/61080: ")));
}

// --- the processes

auto status_line(std::uint32_t pid, std::string_view name) -> std::string {
    const auto text = "\n" + test::content_of("/proc/" + std::to_string(pid) + "/status");
    const auto at = text.find("\n" + std::string{name} + ":\t");
    if (at == std::string::npos) return {};
    const auto begin = at + name.size() + 3;
    return text.substr(begin, text.find('\n', begin) - begin);
}
auto parent_of(std::uint32_t pid) -> std::uint32_t {
    const auto facts = sys::facts_of_process(static_cast<::pid_t>(pid)); // it may just have ended
    return facts ? static_cast<std::uint32_t>(facts->parent) : 0;
}
auto children_of(std::uint32_t pid) -> std::vector<std::uint32_t> {
    std::vector<std::uint32_t> out;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
        const auto name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const auto number = static_cast<std::uint32_t>(std::stoul(name));
        if (parent_of(number) == pid) out.push_back(number);
    }
    return out;
}
// "closed" when this process may not look.
auto descriptors_of(std::uint32_t pid) -> std::string {
    std::vector<std::string> out;
    std::error_code refused;
    const auto place = "/proc/" + std::to_string(pid) + "/fd";
    for (const auto& entry : std::filesystem::directory_iterator{place, refused}) {
        const auto to = std::filesystem::read_symlink(entry.path()).string();
        out.push_back(entry.path().filename().string() + ":" + to.substr(0, to.find('[')));
    }
    if (refused) return "closed";
    std::ranges::sort(out);
    std::string all;
    for (const auto& one : out) all += one + " ";
    return all;
}
auto await_no_child_of(std::uint32_t pid) -> std::size_t {
    for (int i = 0; i < 500 && !children_of(pid).empty(); ++i) ::usleep(10'000);
    return children_of(pid).size();
}
auto own() -> std::uint32_t { return static_cast<std::uint32_t>(::getpid()); }

auto gone(sys::fd_ref pidfd) -> bool {
    ::pollfd end{pidfd.get(), POLLIN, 0};
    return ::poll(&end, 1, 20'000 * slowness()) == 1;
}
auto hold(std::uint32_t pid) -> sys::unique_fd {
    return sys::unique_fd{
        static_cast<int>(::syscall(SYS_pidfd_open, static_cast<::pid_t>(pid), 0))};
}

// Root can look at a process that is not dumpable; its owner cannot.
TEST(Launcher, LauncherAndKeeperHaveNoDescriptorThatTheyDoNotNeed) {
    const auto said = as_service([] {
        const sys::unique_fd secret{::open("/etc/hostname", O_RDONLY)}; // not closed on exec
        auto by = good(launcher::start());
        const auto launcher_number = children_of(own()).at(0);
        session one{by, shell_wish("sleep 100")};
        one.release();
        const auto keeper = parent_of(one.init().pid);
        std::string out = status_line(launcher_number, "Name") + " " +
                          status_line(launcher_number, "Threads") + " " +
                          status_line(keeper, "Name") + " ";
        return out + descriptors_of(launcher_number) + "; " + descriptors_of(keeper);
    });
    EXPECT_THAT(said, StartsWith("glove-launcher 1 glove-keeper "));
    if (::geteuid() == 0)
        EXPECT_THAT(said, testing::MatchesRegex(
                              "glove-launcher 1 glove-keeper 0:/dev/null 1:/dev/null 2:/dev/null "
                              "3:socket: ; 0:/dev/null 1:/dev/null 2:/dev/null "
                              "[0-9]+:anon_inode: "));
    else EXPECT_THAT(said, testing::EndsWith(" closed; closed"));
}

TEST(Launcher, NeitherShowsWhatTheServiceWasStartedWith) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  const auto launcher_number = children_of(own()).at(0);
                  session one{by, shell_wish("sleep 100")};
                  const auto keeper = parent_of(one.init().pid);
                  std::string out;
                  for (const auto pid : {launcher_number, keeper}) {
                      auto line = test::content_of("/proc/" + std::to_string(pid) + "/cmdline");
                      std::erase(line, '\0');
                      out += line + " ";
                  }
                  return out;
              }),
              "glove-launcher glove-keeper ");
}

TEST(Launcher, WhoInitIsIsTold) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  session one{by, shell_wish("sleep 100")};
                  one.await_terminal();
                  auto stat = test::content_of("/proc/" + std::to_string(one.init().pid) + "/stat");
                  const auto ticks = " " + std::to_string(one.init().start_time_ticks) + " ";
                  return stat.substr(stat.find('('), stat.find(')') - stat.find('(') + 1) +
                         (stat.contains(ticks) ? " since then" : " since another time");
              }),
              "(glove-init) since then");
}

TEST(Launcher, TheKeeperIsGoneAfterTheEnd) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  const auto launcher_number = children_of(own()).at(0);
                  session one{by, shell_wish("true")};
                  const auto keeper = hold(parent_of(one.init().pid));
                  const auto said = one.run();
                  return said + (gone(keeper) ? " gone" : " there") +
                         // and reaped
                         std::to_string(await_no_child_of(launcher_number));
              }),
              "=0 gone0");
}

TEST(Launcher, DroppingASessionEndsItAndItsKeeper) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  sys::unique_fd keeper, init;
                  {
                      session one{by, shell_wish("sleep 100")};
                      one.release();
                      keeper = hold(parent_of(one.init().pid));
                      init = hold(one.init().pid);
                  }
                  return std::string{gone(init) && gone(keeper) ? "gone" : "there"};
              }),
              "gone");
}

TEST(Launcher, AKillEndsTheSessionAndIsTold) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  session one{by, shell_wish("sleep 100")};
                  one.release();
                  good(one.process().kill());
                  return std::to_string(good(one.last_news())->wait_status);
              }),
              "9");
}

// What is killed, and all that must be gone then: "launcher keeper init agent" as numbers.
struct family {
    sys::unique_fd launcher, keeper, init, agent;
};
auto family_of(launcher&, session& one) -> family {
    const auto init = one.init().pid;
    const auto agents = children_of(init);
    const auto keeper = parent_of(init);
    return {hold(children_of(own()).at(0)), hold(keeper), hold(init), hold(agents.at(0))};
}

TEST(Launcher, AKilledLauncherEndsNoSessionAndNoneCanBeStarted) {
    const auto said = as_service([] {
        auto by = good(launcher::start());
        session one{by, shell_wish("echo up; read line; echo down")};
        one.release();
        one.await_word("up");
        const auto all = family_of(by, one);
        std::string out = by.is_alive() ? "alive " : "dead ";
        prepared(::syscall(SYS_pidfd_send_signal, all.launcher.get(), SIGKILL, nullptr, 0) == 0,
                 "kill");
        out += gone(all.launcher) ? "gone " : "there ";
        out += by.is_alive() ? "alive " : "dead ";
        auto plan = good(make_session_plan(shell_wish("true")));
        const auto more = by.launch({.plan = &plan});
        out += more ? "launched " : std::string{more.error().step} + " ";
        ::pollfd still{all.init.get(), POLLIN, 0};
        out += ::poll(&still, 1, 100) == 0 ? "goes on " : "ended ";
        good(one.process().kill());
        return out + std::to_string(good(one.last_news())->wait_status) +
               (gone(all.keeper) ? " gone" : " there");
    });
    EXPECT_EQ(said, "alive gone dead launcher.send goes on 9 gone");
}

TEST(Launcher, AKilledKeeperEndsItsSessionWhichIsToldAsAnEndThatNobodyKnows) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  session one{by, shell_wish("echo up; sleep 100")};
                  one.release();
                  one.await_word("up");
                  const auto all = family_of(by, one);
                  prepared(
                      ::syscall(SYS_pidfd_send_signal, all.keeper.get(), SIGKILL, nullptr, 0) == 0,
                      "kill");
                  const auto news = one.last_news();
                  return std::string{news ? "an end" : news.error().step} +
                         (gone(all.init) && gone(all.agent) ? " gone" : " there") +
                         (by.is_alive() ? " alive" : " dead");
              }),
              "launch.init gone alive");
}

TEST(Launcher, AKilledInitEndsItsSession) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  session one{by, shell_wish("echo up; sleep 100")};
                  one.release();
                  one.await_word("up");
                  const auto all = family_of(by, one);
                  prepared(::syscall(SYS_pidfd_send_signal, all.init.get(), SIGKILL, nullptr, 0) ==
                               0,
                           "kill");
                  const auto news = one.last_news();
                  return std::string{news ? "an end" : news.error().step} +
                         (gone(all.keeper) && gone(all.agent) ? " gone" : " there");
              }),
              "launch.init gone");
}

// The service is a child of the test, which looks at what is left of it.
auto left_of_killed_service(bool released) -> std::string {
    test::pipe_ends told;
    const auto service = ::fork();
    prepared(service >= 0, "fork");
    if (service == 0) {
        told.read = {};
        become_service();
        auto by = good(launcher::start());
        session one{by, shell_wish("sleep 100 & sleep 100 & echo up; wait")};
        one.await_terminal();
        if (released) {
            one.release();
            one.await_word("up");
        }
        std::string numbers = std::to_string(children_of(own()).at(0)) + " " +
                              std::to_string(parent_of(one.init().pid)) + " " +
                              std::to_string(one.init().pid) + " ";
        for (const auto pid : children_of(one.init().pid)) {
            numbers += std::to_string(pid) + " ";
            for (const auto inner : children_of(pid)) numbers += std::to_string(inner) + " ";
        }
        test::say(told.write, numbers + "\n");
        for (;;) ::pause();
    }
    told.write = {};
    std::string line;
    for (char c = 0; ::read(told.read.get(), &c, 1) == 1 && c != '\n';) line += c;
    std::vector<sys::unique_fd> all;
    std::istringstream numbers{line};
    for (std::uint32_t pid = 0; numbers >> pid;) all.push_back(hold(pid));
    ::kill(service, SIGKILL);
    ::waitpid(service, nullptr, 0);
    const auto left = std::ranges::count_if(all, [](const auto& one) { return !gone(one); });
    return std::to_string(left) + " of " + std::to_string(all.size());
}

TEST(Launcher, OfAKilledServiceNothingIsLeft) {
    EXPECT_EQ(left_of_killed_service(true), "0 of 6");
    EXPECT_EQ(left_of_killed_service(false), "0 of 3");
}

TEST(Launcher, DroppingTheLauncherEndsItAndNoSession) {
    EXPECT_EQ(as_service([] {
                  auto by = std::make_optional(good(launcher::start()));
                  session one{*by, shell_wish("true")};
                  const auto number = hold(children_of(own()).at(0));
                  by.reset();
                  return one.run() + (gone(number) ? " gone" : " there") +
                         std::to_string(children_of(own()).size());
              }),
              "=0 gone0");
}

TEST(Launcher, ItIsMadeBeforeTheSecondThread) {
#ifndef GLOVE_SANITIZED
    EXPECT_EQ(as_service([] {
                  std::atomic<bool> done = false;
                  const std::jthread other{[&] { done.wait(false); }};
                  const auto started = launcher::start();
                  done = true;
                  done.notify_all();
                  return std::string{started ? "started" : started.error().step};
              }),
              "launcher.threads");
#endif
}

TEST(Launcher, SignalsThatEndAServiceEndNeitherLauncherNorKeeper) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  session one{by, shell_wish("echo up; read line; exit 3")};
                  one.release();
                  one.await_word("up");
                  const auto all = family_of(by, one);
                  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE})
                      for (const auto* one_of : {&all.launcher, &all.keeper, &all.init})
                          prepared(::syscall(SYS_pidfd_send_signal, one_of->get(), number, nullptr,
                                             0) == 0,
                                   "signal");
                  one.type("go on\n");
                  return one.run() + (by.is_alive() ? " alive" : " dead");
              }),
              "up\ngo on\n=768 alive");
}

// --- the control group

TEST(Launcher, InitIsWrittenIntoItsGroup) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  auto plan = good(make_session_plan(shell_wish("true")));
                  const test::pipe_ends group;
                  auto launched = good(by.launch({.plan = &plan, .entry = group.write}));
                  char number[32] = {};
                  const auto got = ::read(group.read.get(), number, sizeof number - 1);
                  return std::string{
                      got > 0 && std::to_string(launched.init.pid) == number ? "init" : number};
              }),
              "init");
}

// In the guest, which has a unified hierarchy; there root has a place for a group.
TEST(Launcher, AllOfASessionIsInItsGroup) {
    if (::geteuid() != 0 || std::getenv("GLOVE_SLOWNESS") == nullptr) return;
    EXPECT_EQ(as_service([] {
                  const auto parent = good(cgroup::open_own(good(cgroup::path_of(::getpid()))));
                  const auto name = "glove-launcher-test-" + std::to_string(::getpid());
                  const auto group = good(cgroup::make(parent, name));
                  const sys::unique_fd entry{
                      ::openat(group.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC)};
                  auto by = good(launcher::start());
                  auto plan = good(make_session_plan(shell_wish("sleep 100 & wait")));
                  std::string out;
                  {
                      auto launched = good(by.launch({.plan = &plan, .entry = entry}));
                      good(launched.process.release());
                      const auto is_in = [&](std::uint32_t pid) {
                          return cgroup::path_of(static_cast<::pid_t>(pid))
                              .value_or("")
                              .ends_with("/" + name);
                      };
                      const auto keeper = parent_of(launched.init.pid);
                      std::vector<std::uint32_t> agents;
                      for (int i = 0; i < 500 && agents.empty(); ++i) {
                          ::usleep(10'000);
                          agents = children_of(launched.init.pid);
                      }
                      out = is_in(launched.init.pid) && is_in(agents.at(0)) ? "in" : "not in";
                      out += is_in(keeper) ? ", and its keeper" : ", without its keeper";
                  }
                  for (int i = 0; i < 500 && !cgroup::remove(parent, name); ++i) ::usleep(10'000);
                  return out;
              }),
              "in, without its keeper");
}

TEST(Launcher, WhereTheGroupCannotBeEnteredNothingIsStarted) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  const auto launcher_number = children_of(own()).at(0);
                  auto plan = good(make_session_plan(shell_wish("true")));
                  const test::pipe_ends group;
                  const auto launched = by.launch({.plan = &plan, .entry = group.read});
                  std::string out = launched ? "launched"
                                             : std::string{launched.error().step} + " " +
                                                   std::to_string(launched.error().os);
                  return out + " " + std::to_string(await_no_child_of(launcher_number));
              }),
              "launch.group " + std::to_string(EBADF) + " 0");
}

// --- errors

TEST(Launcher, AProgramThatIsNotThereIsNamed) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  auto wish = shell_wish("");
                  wish.program = "/no/such/program";
                  session one{by, std::move(wish)};
                  good(one.process().release());
                  const auto news = one.last_news();
                  return news ? "an end"
                              : std::string{news.error().step} + " " + news.error().detail;
              }),
              "agent.exec /no/such/program");
}

TEST(Launcher, AStepThatIsRefusedIsNamedWithItsPlace) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  auto plan = good(make_session_plan(shell_wish("true")));
                  // Its parent is not in the tree.
                  plan.tree.push_back({.path = "/zz/missing/parent"});
                  return first_failure(by, plan);
              }),
              "mount.tree: openat2 for /zz/missing/parent [2] ");
}

TEST(Launcher, AScratchFileSystemThatHasGotSomethingMeanwhileIsRefused) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  auto wish = shell_wish("true");
                  const sys::unique_fd content{
                      ::openat(wish.scratch.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
                  auto plan = good(make_session_plan(std::move(wish)));
                  put_file(content, "etc", "");
                  return first_failure(by, plan);
              }),
              "mount.root: getdents64 [" + std::to_string(ENOTEMPTY) + "] ");
}

TEST(Launcher, APlanOfARunIsNoSessions) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  profile wish;
                  wish.argv = {"true"};
                  const auto plan = good(make_plan(wish));
                  const auto launched = by.launch({.plan = &plan});
                  return std::string{launched ? "launched" : launched.error().step};
              }),
              "launcher.plan");
}

TEST(Launcher, OneArgumentCanBeAsLongAsTheKernelTakesAndNoLonger) {
    const auto with = [](std::size_t size) {
        return as_service([=] {
            auto by = good(launcher::start());
            auto wish = shell_wish("echo ${#1} ${#LONG}");
            wish.arguments.emplace_back("sh");
            wish.arguments.emplace_back(size, 'x');
            wish.environment = {"LONG=" + std::string(size - 5, 'y')};
            auto plan = make_session_plan(std::move(wish));
            if (!plan) return std::string{plan.error().step};
            return session{by, *std::move(plan)}.run();
        });
    };
    EXPECT_EQ(with(131071), "131071 131066\n=0");
    EXPECT_EQ(with(131072), "session.command");
}

TEST(Launcher, MoreArgumentsThanTheKernelTakesAreAnErrorOfTheProgram) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  auto wish = shell_wish("true");
                  for (int i = 0; i < 30; ++i) wish.arguments.emplace_back(131000, 'x');
                  session one{by, std::move(wish)};
                  good(one.process().release());
                  const auto news = one.last_news();
                  return news ? "an end"
                              : std::string{news.error().step} + " " +
                                    std::to_string(news.error().os);
              }),
              "agent.exec " + std::to_string(E2BIG));
}

// As many as take more than one message.
TEST(Launcher, ManyMountsArriveInTheirPlaces) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  test::folder outside;
                  auto wish = shell_wish("cat /many/*");
                  std::string expected;
                  for (int i = 100; i < 250; ++i) {
                      const auto name = std::to_string(i);
                      const auto path = outside.file(name, name + "\n");
                      const sys::unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
                      wish.mounts.push_back({.target = "/many/" + name,
                                             .mount = good(detached_mount(file, access::read))});
                      expected += name + "\n";
                  }
                  const auto said = session{by, std::move(wish)}.run();
                  return std::string{said == expected + "=0" ? "all" : said};
              }),
              "all");
}

} // namespace
