// Sockets that stand inside and are accepted on outside: what is planned, and what a program inside
// can do to a real one.
#include "container/listeners.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/container/launch.hpp>
#include <gmock/gmock.h>
#include <optional>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

namespace glove::container {
namespace {

using testing::Contains;
using testing::HasSubstr;
using words = std::vector<std::string>;

auto wish_for(words argv) -> profile {
    profile wish;
    wish.argv = std::move(argv);
    wish.listeners = {{.flag = "--test", .name = "test.sock", .variable = "TEST_SOCK"}};
    return wish;
}

TEST(Listeners, StandInOneDirectoryAndNamedByAVariable) {
    const auto made = make_plan(wish_for({"true"}));
    ASSERT_TRUE(made.has_value()) << made.error().detail;
    ASSERT_EQ(made->listeners.size(), 1U);
    EXPECT_EQ(made->listeners.front().path, "/run/glove/test.sock");
    EXPECT_EQ(made->listeners.front().permissions, 0600U);
    EXPECT_THAT(made->environment, Contains("TEST_SOCK=/run/glove/test.sock"));
    const auto place = std::ranges::find(made->tree, made->listener_place, &tree_entry::path);
    ASSERT_NE(place, made->tree.end());
    EXPECT_EQ(place->kind, entry_kind::directory);
}

TEST(Listeners, WithoutAWishThereIsNeitherPlaceNorVariable) {
    auto wish = wish_for({"true"});
    wish.listeners.clear();
    const auto made = make_plan(wish);
    ASSERT_TRUE(made.has_value());
    EXPECT_TRUE(made->listeners.empty());
    EXPECT_EQ(made->listener_place, "");
    EXPECT_EQ(std::ranges::count(made->tree, "/run/glove", &tree_entry::path), 0);
}

void refused(const profile& wish, std::string_view step, std::string_view words_of_it) {
    const auto made = make_plan(wish);
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().step, step);
    EXPECT_THAT(made.error().detail, HasSubstr(words_of_it));
}

TEST(Listeners, NeedATierInWhichASocketCanBeReachedByName) {
    auto wish = wish_for({"true"});
    wish.network = network_tier::sealed;
    refused(wish, "plan.listeners", "--test and --net sealed");
}

TEST(Listeners, TheirVariableCannotBeSetApart) {
    auto wish = wish_for({"true"});
    wish.environment = {{"TEST_SOCK", "/tmp/other"}};
    refused(wish, "environment.name", "TEST_SOCK: this name is set by Glove");
    wish.listeners.clear();
    EXPECT_TRUE(make_plan(wish).has_value());
}

TEST(Listeners, NoNameLeadsOutOfTheirDirectoryOrComesTwice) {
    for (const auto* const name : {"", ".", "..", "a/b", "../a", ".hidden", "A", "a b", "a\n"}) {
        auto wish = wish_for({"true"});
        wish.listeners.front().name = name;
        refused(wish, "plan.listeners", "there can be no socket");
    }
    auto wish = wish_for({"true"});
    wish.listeners.front().name = std::string(100, 'a');
    refused(wish, "plan.listeners", "there can be no socket");
    wish = wish_for({"true"});
    wish.listeners.push_back(wish.listeners.front());
    refused(wish, "plan.listeners", "there can be no socket");
}

TEST(Listeners, NothingOfAGrantSharesTheirDirectory) {
    const auto placed = [](std::string path, entry_kind kind) {
        tree_builder tree;
        tree.add({.path = "/run", .kind = entry_kind::scratch});
        tree.add({.path = std::move(path), .kind = kind, .origin = origin::asked});
        return add_listener_place(tree, "/run");
    };
    EXPECT_EQ(placed("/run/glove2", entry_kind::bind), "/run/glove");
    EXPECT_EQ(placed("/run/other", entry_kind::link), "/run/glove");
    for (const auto* const path : {"/run/glove", "/run/glove/test.sock", "/run/glove/a/b"})
        for (const auto kind : {entry_kind::bind, entry_kind::link})
            EXPECT_EQ(placed(path, kind).error().step, "grant.check") << path;
    tree_builder within;
    within.add({.path = "/srv", .kind = entry_kind::bind});
    EXPECT_EQ(add_listener_place(within, "/srv/run").error().step, "grant.check");
}

TEST(Companions, StandBesideTheSocketsAndNoOneHoldsMore) {
    auto wish = wish_for({"true"});
    wish.companions = {{.name = "bin/tool", .program = sys::read_link("/proc/self/exe").value()},
                       {.name = "words", .text = "some words", .variable = "WORDS"}};
    const auto made = make_plan(wish);
    ASSERT_TRUE(made.has_value()) << made.error().detail;
    const auto find = [&](std::string_view path) {
        const auto found = std::ranges::find(made->tree, path, &tree_entry::path);
        return found == made->tree.end() ? nullptr : &*found;
    };
    const auto* const tool = find("/run/glove/bin/tool");
    ASSERT_NE(tool, nullptr);
    EXPECT_EQ(tool->kind, entry_kind::bind);
    EXPECT_EQ(tool->mode, access::read);
    EXPECT_TRUE(tool->pin);
    const auto* const text = find("/run/glove/words");
    ASSERT_NE(text, nullptr);
    EXPECT_EQ(text->kind, entry_kind::file);
    EXPECT_EQ(text->text, "some words");
    EXPECT_THAT(made->environment, Contains("WORDS=/run/glove/words"));
    wish.companions.front().program = "/nowhere/tool";
    EXPECT_FALSE(make_plan(wish).has_value());
}

// --- a real one

class Listening : public testing::Test {
protected:
    // `script` is run by python3 inside, with the path of the socket in `path`.
    void launch_with(const std::string& script) {
        auto wish = wish_for({"python3", "-c",
                              "import os, socket, errno\n"
                              "path = os.environ['TEST_SOCK']\n"
                              "def tried(name, work):\n"
                              "    try:\n"
                              "        work()\n"
                              "    except OSError as problem:\n"
                              "        os.write(1, f'{name} {problem.errno}\\n'.encode())\n"
                              "    else:\n"
                              "        os.write(1, f'{name} worked\\n'.encode())\n" +
                                  script});
        auto made = make_plan(wish);
        ASSERT_TRUE(made.has_value()) << made.error().detail;
        plan_ = *std::move(made);
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        said_ = sys::unique_fd{ends[0]};
        sys::unique_fd output{ends[1]};
        launch_request request{
            .plan = &plan_,
            .streams = {0, output.get(), 2},
            .arguments = {.begin = arguments_.data(), .size = arguments_.size()}};
        ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &request.open_files), 0);
        auto started = launch(request);
        ASSERT_TRUE(started.has_value()) << started.error().step << " " << started.error().detail;
        agent_.emplace(*std::move(started));
        ASSERT_FALSE(agent_->take_listener().socket);
        auto news = agent_->read_news();
        ASSERT_TRUE(news.has_value()) << news.error().step << " " << news.error().detail;
        ASSERT_FALSE(news->has_value());
        auto came = agent_->take_listener();
        ASSERT_TRUE(came.socket) << "it comes first, before the agent is released";
        EXPECT_EQ(came.index, 0U);
        EXPECT_FALSE(agent_->take_listener().socket) << "it is handed out once";
        listener_ = std::move(came.socket);
        ASSERT_TRUE(agent_->release().has_value());
    }
    [[nodiscard]] auto accept() -> sys::unique_fd {
        ::pollfd ready{listener_.get(), POLLIN, 0};
        EXPECT_EQ(::poll(&ready, 1, 60'000), 1);
        return sys::unique_fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    }
    // What it said until it ended, with status 0.
    [[nodiscard]] auto finish() -> std::string {
        const auto text = sys::read_all(said_, 1UL << 20U);
        for (;;) {
            auto end = agent_->read_news();
            EXPECT_TRUE(end.has_value()) << end.error().step << " " << end.error().detail;
            if (!end) return {};
            if (!*end) continue;
            EXPECT_EQ((*end)->wait_status, 0);
            return text.value_or("unread");
        }
    }

    std::array<char, 64> arguments_{};
    plan plan_;
    sys::unique_fd said_, listener_;
    std::optional<running> agent_;
};

TEST_F(Listening, AProgramConnectsAndTheHostAnswers) {
    launch_with("s = socket.socket(socket.AF_UNIX)\n"
                "s.connect(path)\n"
                "s.sendall(b'ping')\n"
                "os.write(1, s.recv(16))\n");
    const auto peer = accept();
    ASSERT_TRUE(peer);
    std::array<char, 16> bytes{};
    EXPECT_EQ(::recv(peer.get(), bytes.data(), bytes.size(), 0), 4);
    EXPECT_STREQ(bytes.data(), "ping");
    EXPECT_EQ(::send(peer.get(), "pong", 4, MSG_NOSIGNAL), 4);
    EXPECT_EQ(finish(), "pong");
}

TEST_F(Listening, NobodyInsideUnlinksReplacesOrChangesIt) {
    launch_with("tried('unlink', lambda: os.unlink(path))\n"
                "tried('rename', lambda: os.rename(path, path + '.old'))\n"
                "tried('out', lambda: os.rename(path, '/run/other'))\n"
                "tried('over', lambda: (open('/run/new', 'w'), os.rename('/run/new', path)))\n"
                "tried('link', lambda: os.link(path, '/run/linked'))\n"
                "tried('bind', lambda: socket.socket(socket.AF_UNIX).bind('/run/glove/b'))\n"
                "tried('again', lambda: socket.socket(socket.AF_UNIX).bind(path))\n"
                "tried('create', lambda: open('/run/glove/c', 'w'))\n"
                "tried('chmod', lambda: os.chmod(path, 0o777))\n"
                "tried('chmod_dir', lambda: os.chmod('/run/glove', 0o777))\n"
                "tried('utime', lambda: os.utime(path))\n"
                "tried('setxattr', lambda: os.setxattr(path, 'user.a', b'b'))\n"
                "tried('move_dir', lambda: os.rename('/run/glove', '/run/moved'))\n"
                "tried('move_run', lambda: os.rename('/run', '/tmp/run'))\n"
                "tried('rmdir', lambda: os.rmdir('/run/glove'))\n"
                "tried('exchange', lambda: os.rename('/tmp', '/run/glove'))\n"
                "tried('neighbour', lambda: os.mkdir('/run/mine'))\n"
                "tried('own', lambda: socket.socket(socket.AF_UNIX).bind('/run/mine/s'))\n"
                "os.write(1, oct(os.stat(path).st_mode).encode() + b'\\n')\n"
                "s = socket.socket(socket.AF_UNIX)\n"
                "tried('connect', lambda: s.connect(path))\n");
    const auto peer = accept();
    const auto said = finish();
    for (const auto* const attack :
         {"unlink", "rename", "bind", "create", "chmod", "chmod_dir", "utime", "setxattr"})
        EXPECT_THAT(said, HasSubstr(std::string{attack} + " " + std::to_string(EROFS) + "\n"));
    for (const auto* const attack : {"out", "over", "link"})
        EXPECT_THAT(said, HasSubstr(std::string{attack} + " " + std::to_string(EXDEV) + "\n"));
    EXPECT_THAT(said, HasSubstr("again " + std::to_string(EADDRINUSE) + "\n"));
    for (const auto* const attack : {"move_dir", "move_run", "rmdir", "exchange"})
        EXPECT_THAT(said, testing::Not(HasSubstr(std::string{attack} + " worked")));
    EXPECT_THAT(said, HasSubstr("neighbour worked\nown worked\n0o140600\nconnect worked\n"));
}

TEST_F(Listening, TenThousandConnectionsFillTheBacklogAndNoMore) {
    launch_with("full = 0\n"
                "held = []\n"
                "for i in range(10000):\n"
                "    s = socket.socket(socket.AF_UNIX)\n"
                "    s.setblocking(False)\n"
                "    try:\n"
                "        s.connect(path)\n"
                "        held.append(s)\n"
                "    except BlockingIOError:\n"
                "        full += 1\n"
                "print(len(held), full)\n");
    const auto said = finish();
    const auto most = listener_backlog + 1; // what the kernel makes of a backlog
    EXPECT_EQ(said, std::to_string(most) + " " + std::to_string(10'000 - most) + "\n");
    int accepted = 0;
    for (;; ++accepted) {
        const sys::unique_fd peer{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
        if (!peer) break;
    }
    EXPECT_EQ(errno, EAGAIN) << "the host's side never waits";
    EXPECT_EQ(accepted, most);
}

TEST_F(Listening, TheAgentHoldsNoDescriptorOfIt) {
    launch_with("os.write(1, repr(sorted(int(n) for n in os.listdir('/proc/self/fd')\n"
                "    if os.path.exists('/proc/self/fd/' + n))).encode())\n");
    EXPECT_EQ(finish(), "[0, 1, 2]");
}

} // namespace
} // namespace glove::container
