// What comes through the doors that must not, and what happens at the limits.
#include "own_host.hpp"
#include "proxy_scene.hpp"
#include <csignal>
#include <sys/resource.h>

namespace {

using namespace glove;
using namespace glove::test;

class ProxyDoor : public ::testing::Test {
protected:
    tcp_server server;
    std::string where = "localhost:" + server.text();
    proxy_scene scene{{.rules = {where}}};

    static auto of(net::bridge_news what) -> net::bridge_message {
        net::bridge_message message{};
        message.what = what;
        return message;
    }
    [[nodiscard]] auto pass_only(const net::bridge_message& message,
                                 const std::vector<int>& numbers) const -> bool {
        return pass(scene.bridge(), message, numbers);
    }
    void still_works() {
        auto client = scene.tunnel(where);
        (void)server.accept();
    }
    // The channel is at its end, from both sides.
    void ended() const {
        ::pollfd source{scene.bridge(), POLLIN, 0};
        ASSERT_EQ(::poll(&source, 1, patience_ms), 1);
        char byte = 0;
        EXPECT_LE(::recv(scene.bridge(), &byte, 1, MSG_DONTWAIT), 0);
        EXPECT_TRUE(scene.said().contains("said what it must not"));
    }
};

TEST_F(ProxyDoor, AMessageWithoutItsDescriptorEndsTheChannel) {
    still_works();
    EXPECT_TRUE(pass_only(of(net::bridge_news::proxy), {}));
    ended();
}

TEST_F(ProxyDoor, TwoDescriptorsEndTheChannelAndAreClosed) {
    auto first = connected_pair();
    auto second = connected_pair();
    EXPECT_TRUE(
        pass_only(of(net::bridge_news::proxy), {first.accepted.fd(), second.accepted.fd()}));
    first.accepted.close();
    second.accepted.close();
    EXPECT_EQ(first.client.rest(), "");
    EXPECT_EQ(second.client.rest(), "");
    ended();
}

TEST_F(ProxyDoor, ADescriptorWhereNoneBelongsEndsTheChannel) {
    auto pair = connected_pair();
    EXPECT_TRUE(pass_only(of(net::bridge_news::unreached), {pair.accepted.fd()}));
    pair.accepted.close();
    EXPECT_EQ(pair.client.rest(), "");
    ended();
}

TEST_F(ProxyDoor, AMessageOfAnotherKindOrSizeEndsTheChannel) {
    auto message = of(net::bridge_news::proxy);
    message.what = static_cast<net::bridge_news>(200);
    const auto pair = connected_pair();
    EXPECT_TRUE(pass_only(message, {pair.accepted.fd()}));
    ended();
}

TEST_F(ProxyDoor, AShortMessageEndsTheChannel) {
    EXPECT_EQ(::send(scene.bridge(), "short", 5, MSG_NOSIGNAL), 5);
    ended();
}

TEST_F(ProxyDoor, ANameThatIsNoneEndsTheChannel) {
    for (const std::string_view name : {"UPPER case", ""}) {
        proxy_scene own{{.rules = {where}}};
        const auto client = own.open_named(name, 443);
        EXPECT_EQ(client.rest(), "");
        EXPECT_EQ(own.count(egress_news::refused), 0U);
    }
}

TEST_F(ProxyDoor, OnlyConnectedTcpBetweenLoopbackAddressesIsServed) {
    std::vector<sys::unique_fd> odd;
    odd.emplace_back(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(server.port());
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(odd.back().get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
    odd.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); // not connected
    odd.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC));
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    odd.emplace_back(pipe[0]);
    const sys::unique_fd other_end{pipe[1]};
    for (const auto& each : odd) EXPECT_TRUE(pass_only(of(net::bridge_news::proxy), {each.get()}));

    int local[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, local), 0);
    const wire_end unix_client{sys::unique_fd{local[0]}};
    {
        const sys::unique_fd theirs{local[1]};
        EXPECT_TRUE(pass_only(of(net::bridge_news::proxy), {theirs.get()}));
    }
    unix_client.send("CONNECT " + where + " HTTP/1.1\r\n\r\n");
    EXPECT_FALSE(unix_client.rest().contains("200"));

    const tcp_server outer{0, private_number};
    auto client = connect_to(outer.port(), private_number);
    {
        const auto accepted = outer.accept();
        EXPECT_TRUE(pass_only(of(net::bridge_news::proxy), {accepted.fd()}));
    }
    client.send("CONNECT " + where + " HTTP/1.1\r\n\r\n");
    EXPECT_FALSE(client.rest().contains("200"));
    EXPECT_FALSE(server.got_connection());
    still_works();
}

TEST_F(ProxyDoor, ASocketThatWouldBlockBlocksNobody) {
    auto first = connected_pair();
    EXPECT_TRUE(pass_only(of(net::bridge_news::proxy), {first.accepted.fd()}));
    first.client.send("CONNECT " + where + " HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(first.client.head().starts_with("HTTP/1.1 200 "));
    const auto far = server.accept();
    // The bridge holds the same open file and takes the flag away.
    ASSERT_EQ(::fcntl(first.accepted.fd(), F_SETFL, 0), 0);
    first.client.send("x");
    EXPECT_EQ(far.read(1), "x");
    still_works();
}

TEST(ProxyLimits, ConnectionsBeyondTheLimitWait) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene scene{{.rules = {where}, .limits = {.connections = 2}}};
    auto first = scene.tunnel(where);
    auto second = scene.tunnel(where);
    (void)server.accept();
    auto third = scene.open();
    third.send("CONNECT " + where + " HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(third.is_quiet(50));
    first.reset();
    EXPECT_TRUE(third.head().starts_with("HTTP/1.1 200 "));
    const auto said = scene.said();
    EXPECT_EQ(said, "glove: 2 connections are open: further ones wait\n");
}

// A sanitizer looks at memory through pipes, which are what is missing here.
#ifndef GLOVE_SANITIZED
TEST(ProxyLimits, WithoutDescriptorsTheDoorsPauseAndGoOn) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene scene{
        {.rules = {where}, .limits = {.pause = net::milliseconds{10}}, .with_listener = true}};
    {
        auto warm = scene.tunnel(where);
        (void)server.accept();
    }
    ASSERT_TRUE(scene.wait_for_count(egress_news::outcome, 1));
    const auto number = static_cast<::pid_t>(std::stol(scene.number()));
    ::rlimit before{};
    ::rlimit low{};
    ASSERT_EQ(::prlimit(number, RLIMIT_NOFILE, nullptr, &before), 0);
    low = before;
    low.rlim_cur = 4; // below what it holds: nothing more can be opened
    ASSERT_EQ(::prlimit(number, RLIMIT_NOFILE, &low, nullptr), 0);
    const auto waiting = scene.open_listener();
    auto lost = scene.open();
    EXPECT_NE(lost.read(1), "H");
    EXPECT_TRUE(waiting.is_quiet(50));
    ASSERT_EQ(::prlimit(number, RLIMIT_NOFILE, &before, nullptr), 0);
    waiting.send("GET / HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(waiting.rest().starts_with("HTTP/1.1 4"));
    auto client = scene.tunnel(where);
    EXPECT_EQ(scene.said(), "");
}
#endif

// A port that is free now.
auto free_port() -> std::uint16_t { return tcp_server{}.port(); }

class Published : public ::testing::Test {
protected:
    std::uint16_t port = free_port();
    proxy_scene scene{{.limits = {.inward = net::milliseconds{150}}, .published = {port}}};

    [[nodiscard]] auto order() const -> net::bridge_order {
        net::bridge_order order{};
        ::pollfd source{scene.bridge(), POLLIN, 0};
        need(::poll(&source, 1, patience_ms) == 1, "no order");
        need(::recv(scene.bridge(), &order, sizeof order, 0) == sizeof order, "recv");
        return order;
    }
    void answer(const net::bridge_order& order, net::bridge_news what, int os,
                const std::vector<int>& numbers) const {
        net::bridge_message message{};
        message.what = what;
        message.id = order.id;
        message.os = os;
        need(pass(scene.bridge(), message, numbers), "pass");
    }
};

TEST_F(Published, AConnectionIsCarriedInwards) {
    const auto caller = connect_to(port);
    const auto wanted = order();
    EXPECT_EQ(wanted.port, port);
    auto inside = connected_pair();
    answer(wanted, net::bridge_news::dialled, 0, {inside.accepted.fd()});
    inside.accepted.close();
    caller.send("hello");
    EXPECT_EQ(inside.client.read(5), "hello");
    inside.client.send("hi");
    inside.client.close();
    EXPECT_EQ(caller.rest(), "hi");
    caller.end_sending();
    const auto intent = scene.wait_for([](const auto& r) { return r.what == egress_news::intent; });
    ASSERT_TRUE(intent);
    EXPECT_TRUE(intent->inward);
    EXPECT_EQ(intent->port, port);
    const auto outcome = scene.outcome();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->sent, 2U); // by the agent
    EXPECT_EQ(outcome->received, 5U);
}

TEST_F(Published, NobodyInsideIsAReset) {
    const auto caller = connect_to(port);
    answer(order(), net::bridge_news::unreached, ECONNREFUSED, {});
    EXPECT_EQ(caller.rest(), "<reset>");
    const auto outcome = scene.outcome();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->reason, egress_reason::unreached);
    EXPECT_EQ(outcome->os, ECONNREFUSED);
}

TEST_F(Published, ABridgeThatDoesNotAnswerIsGivenUp) {
    const auto caller = connect_to(port);
    const auto wanted = order();
    EXPECT_EQ(caller.rest(), "<reset>");
    EXPECT_EQ(scene.outcome()->os, ETIMEDOUT);
    // Its late answer is closed and harms nobody.
    auto inside = connected_pair();
    answer(wanted, net::bridge_news::dialled, 0, {inside.accepted.fd()});
    inside.accepted.close();
    EXPECT_EQ(inside.client.rest(), "");
}

TEST_F(Published, WhatIsDialledInsideIsCheckedToo) {
    const auto caller = connect_to(port);
    int local[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, local), 0);
    const sys::unique_fd a{local[0]};
    const sys::unique_fd b{local[1]};
    answer(order(), net::bridge_news::dialled, 0, {a.get()});
    EXPECT_EQ(caller.rest(), "<reset>");
}

TEST(PublishedAtLimit, AnAnswerIsHeardWhileConnectionsWait) {
    const auto port = free_port();
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene scene{{.rules = {where}, .limits = {.connections = 2}, .published = {port}}};
    auto first = scene.tunnel(where);
    const auto caller = connect_to(port);
    net::bridge_order order{};
    ::pollfd source{scene.bridge(), POLLIN, 0};
    ASSERT_EQ(::poll(&source, 1, patience_ms), 1);
    ASSERT_EQ(::recv(scene.bridge(), &order, sizeof order, 0), ssize_t{sizeof order});
    auto waiting = scene.open(); // comes before the answer
    waiting.send("CONNECT " + where + " HTTP/1.1\r\n\r\n");
    auto inside = connected_pair();
    net::bridge_message message{};
    message.what = net::bridge_news::dialled;
    message.id = order.id;
    ASSERT_TRUE(pass(scene.bridge(), message, {inside.accepted.fd()}));
    caller.send("x");
    EXPECT_EQ(inside.client.read(1), "x");
    EXPECT_TRUE(waiting.is_quiet(30));
    first.reset();
    EXPECT_TRUE(waiting.head().starts_with("HTTP/1.1 200 "));
}

TEST(ProxyLifetime, TheEndOfTheSupervisorIsItsEnd) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene scene{{.rules = {where}}};
    auto client = scene.tunnel(where);
    const auto far = server.accept();
    ASSERT_EQ(::shutdown(scene.control(), SHUT_RDWR), 0);
    EXPECT_NE(client.read(1), "<nothing>");
    ::pollfd source{scene.process().descriptor().get(), POLLIN, 0};
    EXPECT_EQ(::poll(&source, 1, patience_ms), 1);
}

TEST(ProxyLifetime, AtTheWordToFinishTheLastBytesStillGoOutAndAreCounted) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene scene{{.rules = {where}}};
    auto client = scene.tunnel(where);
    const auto far = server.accept();
    client.send("last words");
    client.end_sending();
    const net::egress_order finish{net::egress_word::finish, 0};
    ASSERT_EQ(::send(scene.control(), &finish, sizeof finish, MSG_NOSIGNAL),
              ssize_t{sizeof finish});
    EXPECT_EQ(far.read(10), "last words");
    const auto outcome = scene.outcome();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->sent, 10U);
    EXPECT_EQ(outcome->reason, egress_reason::none);
}

// What the process may do, as the kernel says it.
TEST(ProxyConfinement, IsInForceBeforeTheFirstByte) {
    proxy_scene scene{{.rules = {"allowed.example"}}};
    const auto status = proxy_scene::sys_text("/proc/" + scene.number() + "/status");
    EXPECT_TRUE(status.contains("NoNewPrivs:\t1\n"));
    EXPECT_TRUE(status.contains("Seccomp:\t2\n"));
    EXPECT_TRUE(status.contains("CapEff:\t0000000000000000\n"));
    EXPECT_TRUE(status.contains("CapPrm:\t0000000000000000\n"));
    EXPECT_TRUE(status.contains("Threads:\t1\n"));
}

} // namespace
