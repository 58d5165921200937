// A real bridge in a real namespace, with the test in the place of the relay.
#include "net/bridge_protocol.hpp"
#include <arpa/inet.h>
#include <cstring>
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

using net::bridge_message;
using net::bridge_news;
using testing::StartsWith;

struct passed {
    bridge_message message{};
    std::vector<sys::unique_fd> descriptors;
};

class scene {
public:
    // `script` is run by bash inside.
    scene(std::vector<std::string> allow, std::vector<std::uint16_t> publish, std::string script)
        : plan_{make(std::move(allow), std::move(publish), std::move(script))} {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        relay_ = sys::unique_fd{ends[0]};
        sys::unique_fd bridge{ends[1]};
        launch_request request{
            .plan = &plan_,
            .bridge = &bridge,
            .arguments = {.begin = arguments_.data(), .size = arguments_.size()}};
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &request.open_files), 0);
        auto started = launch(request);
        EXPECT_TRUE(started.has_value()) << started.error().step << " " << started.error().detail;
        EXPECT_FALSE(bridge) << "a copy of the bridge's end would hide the end of the bridge";
        agent_.emplace(*std::move(started));
        EXPECT_TRUE(agent_->release().has_value());
    }

    // Empty when the bridge has gone, or says nothing for ten seconds.
    [[nodiscard]] auto receive() -> std::optional<passed> {
        ::pollfd ready{relay_.get(), POLLIN, 0};
        if (::poll(&ready, 1, 10'000) != 1) return std::nullopt;
        passed out;
        ::iovec bytes{&out.message, sizeof out.message};
        alignas(::cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
        ::msghdr header{};
        header.msg_iov = &bytes;
        header.msg_iovlen = 1;
        header.msg_control = control;
        header.msg_controllen = sizeof control;
        if (::recvmsg(relay_.get(), &header, MSG_CMSG_CLOEXEC) !=
            static_cast<ssize_t>(sizeof out.message))
            return std::nullopt;
        for (auto* part = CMSG_FIRSTHDR(&header); part != nullptr;
             part = CMSG_NXTHDR(&header, part)) {
            const auto count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < count; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
                out.descriptors.emplace_back(fd);
            }
        }
        return out;
    }

    void order(std::uint32_t id, std::uint16_t port) {
        const net::bridge_order message{.id = id, .port = port};
        EXPECT_EQ(::send(relay_.get(), &message, sizeof message, MSG_NOSIGNAL),
                  static_cast<ssize_t>(sizeof message));
    }

    [[nodiscard]] auto status() -> int {
        for (;;) {
            auto end = agent_->read_news();
            EXPECT_TRUE(end.has_value()) << end.error().step << " " << end.error().detail;
            if (!end) return -1;
            if (*end) return (*end)->wait_status;
        }
    }
    [[nodiscard]] auto agent() -> running& { return *agent_; }
    void drop_relay() { relay_ = {}; }

private:
    static auto make(std::vector<std::string> allow, std::vector<std::uint16_t> publish,
                     std::string script) -> plan {
        profile wish;
        wish.argv = {"bash", "-c", std::move(script)};
        wish.network = allow.empty() ? network_tier::local : network_tier::egress;
        wish.egress.allow = std::move(allow);
        wish.egress.publish = std::move(publish);
        auto made = make_plan(wish);
        EXPECT_TRUE(made.has_value()) << made.error().step << " " << made.error().detail;
        return *std::move(made);
    }

    std::array<char, 64> arguments_{};
    plan plan_;
    sys::unique_fd relay_;
    std::optional<running> agent_;
};

auto name_in(const bridge_message& message) -> std::string {
    return {message.name.data(), message.name_size};
}

auto address(int fd, decltype(::getsockname) ask) -> std::string {
    ::sockaddr_in at{};
    ::socklen_t size = sizeof at;
    EXPECT_EQ(ask(fd, reinterpret_cast<::sockaddr*>(&at), &size), 0);
    char text[INET_ADDRSTRLEN] = {};
    (void)::inet_ntop(at.sin_family, &at.sin_addr, text, sizeof text);
    return text;
}

auto option(int fd, int name) -> int {
    int value = -1;
    ::socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(fd, SOL_SOCKET, name, &value, &size), 0);
    return value;
}

void say(int fd, std::string_view text) {
    EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
}

auto hear(int fd, std::size_t count) -> std::string {
    std::string out(count, '\0');
    const auto got = ::recv(fd, out.data(), count, MSG_WAITALL);
    out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return out;
}

// The two ends are blocking here; the relay's are not.
void block(int fd) { EXPECT_EQ(::fcntl(fd, F_SETFL, 0), 0); }

TEST(Bridge, AConnectionToTheProxysPortIsPassedOnWithItsBytesUntouched) {
    scene here{{"api.example.com"},
               {},
               "exec 3<>/dev/tcp/127.0.0.1/61080; echo ping >&3; read -r answer <&3;"
               "[ \"$answer\" = pong ] && exit 7"};
    const auto got = here.receive();
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->message.what, bridge_news::proxy);
    EXPECT_EQ(got->message.name_size, 0);
    ASSERT_EQ(got->descriptors.size(), 1U);
    const int fd = got->descriptors.front().get();
    EXPECT_EQ(option(fd, SO_DOMAIN), AF_INET);
    EXPECT_EQ(option(fd, SO_TYPE), SOCK_STREAM);
    EXPECT_EQ(option(fd, SO_PROTOCOL), IPPROTO_TCP);
    EXPECT_THAT(address(fd, ::getsockname), StartsWith("127."));
    EXPECT_THAT(address(fd, ::getpeername), StartsWith("127."));
    block(fd);
    EXPECT_EQ(hear(fd, 5), "ping\n");
    say(fd, "pong\n");
    EXPECT_EQ(WEXITSTATUS(here.status()), 7);
    for (const auto& layer : here.agent().layers()) EXPECT_TRUE(layer.armed) << layer.name;
}

TEST(Bridge, AnAllowedNameIsReachedUnderItsOwnNameAndPort) {
    scene here{{"api.example.com", "db.example.com:5432"},
               {},
               "exec 3<>/dev/tcp/db.example.com/5432; exec 4<>/dev/tcp/api.example.com/443;"
               "read -r answer <&4"};
    const auto first = here.receive();
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->message.what, bridge_news::named);
    EXPECT_EQ(name_in(first->message), "db.example.com");
    EXPECT_EQ(first->message.port, 5432);
    const auto second = here.receive();
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(name_in(second->message), "api.example.com");
    EXPECT_EQ(second->message.port, 443);
}

TEST(Bridge, ANameBelowAnAllowedDomainIsFoundAndReached) {
    scene here{{".example.org"},
               {},
               "getent hosts unknown.example.com && exit 1; getent hosts badexample.org && exit 2;"
               "exec 3<>/dev/tcp/deep.sub.Example.ORG/443; read -r answer <&3; exit 9"};
    const auto got = here.receive();
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->message.what, bridge_news::named);
    EXPECT_EQ(name_in(got->message), "deep.sub.example.org");
    EXPECT_EQ(got->message.port, 443);
    block(got->descriptors.front().get());
    say(got->descriptors.front().get(), "done\n");
    EXPECT_EQ(WEXITSTATUS(here.status()), 9);
}

TEST(Bridge, MoreNamesThanItCanRememberAreUnknown) {
    scene here{{".example.org"},
               {},
               "for i in $(seq 512); do getent hosts n$i.example.org >/dev/null || exit 1; done;"
               "getent hosts one-more.example.org && exit 2;"
               "getent hosts n7.example.org >/dev/null && getent hosts example.org && exit 9"};
    EXPECT_EQ(WEXITSTATUS(here.status()), 9);
}

TEST(Bridge, NothingListensWhereNoRuleSaysSo) {
    scene here{{"api.example.com:22"},
               {},
               "(exec 3<>/dev/tcp/api.example.com/443) 2>/dev/null && exit 1;"
               "(exec 3<>/dev/tcp/127.0.0.1/443) 2>/dev/null && exit 2;"
               "(exec 3<>/dev/tcp/127.0.0.1/22) 2>/dev/null && exit 3; exit 9"};
    EXPECT_EQ(WEXITSTATUS(here.status()), 9);
}

TEST(Bridge, APortOfTheHostsLoopbackIsReachedOnBothOfItsAddresses) {
    scene here{{"localhost:3000"},
               {},
               "exec 3<>/dev/tcp/127.0.0.1/3000; exec 4<>/dev/tcp/::1/3000; read -r x <&4"};
    for (int i = 0; i < 2; ++i) {
        const auto got = here.receive();
        ASSERT_TRUE(got.has_value());
        EXPECT_EQ(name_in(got->message), "localhost");
        EXPECT_EQ(got->message.port, 3000);
    }
}

// A program that serves at the port of an allowed name, at a low one too.
TEST(Bridge, TheAgentCanServeAtTheSamePortOnTheLoopback) {
    scene here{{"api.example.com"},
               {},
               "python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 443));"
               "s.listen(); c = socket.create_connection((\"127.0.0.1\", 443)); s.accept();"
               "raise SystemExit(9)'"};
    EXPECT_EQ(WEXITSTATUS(here.status()), 9);
}

constexpr const char* serve_once = "python3 -c 'import socket; s = socket.socket(socket.AF_INET6 "
                                   "if \":\" in \"%s\" else socket.AF_INET);"
                                   "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1);"
                                   "s.bind((\"%s\", 3000)); s.listen(); print(flush=True);"
                                   "c, _ = s.accept(); c.sendall(c.recv(5)); c.recv(1);"
                                   "raise SystemExit(9)'";

auto served_at(std::string_view at) -> std::string {
    std::string out{serve_once};
    for (auto place = out.find("%s"); place != std::string::npos; place = out.find("%s"))
        out.replace(place, 2, at);
    return out;
}

TEST(Bridge, APublishedPortIsReachedFromOutsideOnEitherLoopbackAddress) {
    for (const auto* at : {"127.0.0.1", "::1"}) {
        scene here{{}, {3000}, served_at(at)};
        std::optional<passed> got;
        std::uint32_t id = 0;
        for (; id < 200; ++id) { // the server inside may not listen yet
            here.order(id, 3000);
            got = here.receive();
            ASSERT_TRUE(got.has_value());
            ASSERT_EQ(got->message.id, id);
            if (got->message.what == bridge_news::dialled) break;
            EXPECT_EQ(got->message.what, bridge_news::unreached);
            EXPECT_EQ(got->message.os, ECONNREFUSED);
            EXPECT_TRUE(got->descriptors.empty());
            ::usleep(20'000);
        }
        ASSERT_EQ(got->descriptors.size(), 1U) << at;
        const int fd = got->descriptors.front().get();
        block(fd);
        say(fd, "hello");
        EXPECT_EQ(hear(fd, 5), "hello");
        got.reset();
        EXPECT_EQ(WEXITSTATUS(here.status()), 9);
    }
}

// Nothing inside can take the channel, read the bridge, or change what it does but by ending it.
TEST(Bridge, ItsDescriptorsAndMemoryAreOutOfReach) {
    scene here{{"api.example.com"},
               {},
               "p=$(pgrep -x glove-bridge) || exit 1;"
               "for fd in $(seq 0 16); do"
               "  readlink /proc/$p/fd/$fd && exit 2; (: < /proc/$p/fd/$fd) 2>/dev/null && exit 2;"
               "done; readlink /proc/$$/fd/0 >/dev/null || exit 2;"
               "(: < /proc/$p/mem) 2>/dev/null && exit 3;"
               "grep -q '^Seccomp:.2' /proc/$p/status || exit 4;"
               "grep -q '^CapEff:.0000000000000000' /proc/$p/status || exit 5;"
               "grep -q '^NoNewPrivs:.1' /proc/$p/status || exit 6;"
               "python3 - $p <<'END' || exit 7\n"
               "import ctypes, os, sys\n"
               "libc = ctypes.CDLL(None, use_errno=True)\n"
               "pid = int(sys.argv[1])\n"
               "pidfd = os.pidfd_open(pid)\n"
               "for fd in range(16):\n"
               "    if libc.syscall(438, pidfd, fd, 0) >= 0: sys.exit(1)\n"
               "if libc.ptrace(16, pid, 0, 0) == 0: sys.exit(1)\n"
               "END\n"
               "exit 9"};
    EXPECT_EQ(WEXITSTATUS(here.status()), 9);
}

TEST(Bridge, EndingItEndsTheNetworkAndNothingElse) {
    scene here{{"api.example.com"},
               {},
               "pkill -9 -x glove-bridge; sleep 0.2;"
               "(exec 3<>/dev/tcp/127.0.0.1/61080) 2>/dev/null && exit 1; exit 9"};
    const auto got = here.receive();
    EXPECT_FALSE(got.has_value());
    EXPECT_EQ(WEXITSTATUS(here.status()), 9);
}

TEST(Bridge, ItEndsWithTheRelay) {
    scene here{{"api.example.com"},
               {},
               "for i in $(seq 100); do pgrep -x glove-bridge >/dev/null || exit 9; sleep 0.05;"
               " done; exit 1"};
    here.drop_relay();
    EXPECT_EQ(WEXITSTATUS(here.status()), 9);
}

// Connections that nobody takes wait; names are answered meanwhile, and none is lost.
TEST(Bridge, AFullChannelHoldsConnectionsBackAndNamesAreStillAnswered) {
    scene here{{".example.org"},
               {},
               "exec python3 -c '\n"
               "import socket\n"
               "held = [socket.create_connection((\"127.0.0.1\", 61080)) for _ in range(600)]\n"
               "print(socket.gethostbyname(\"late.example.org\"))\n"
               "for one in held: one.recv(1)\n"
               "raise SystemExit(9)'"};
    ::sleep(1);
    for (int i = 0; i < 600; ++i) {
        const auto got = here.receive();
        ASSERT_TRUE(got.has_value()) << i;
        ASSERT_EQ(got->descriptors.size(), 1U);
        say(got->descriptors.front().get(), "x");
    }
    EXPECT_EQ(WEXITSTATUS(here.status()), 9);
}

} // namespace
} // namespace glove::container
