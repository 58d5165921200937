// Tunnels: who gets one, and that what passes through is what was sent.
#include "proxy_scene.hpp"

namespace {

using namespace glove;
using namespace glove::test;

TEST(ProxyTunnel, AnAllowedDestinationIsReachedBothWays) {
    const tcp_server server;
    proxy_scene scene{{.rules = {"localhost:" + server.text()}}};
    auto client = scene.tunnel("localhost:" + server.text());
    const auto far = server.accept();
    client.send("to the server");
    EXPECT_EQ(far.read(13), "to the server");
    far.send("and back");
    EXPECT_EQ(client.read(8), "and back");
    client.end_sending();
    EXPECT_EQ(far.rest(), "");
    far.send("after the half-close");
    EXPECT_EQ(client.read(20), "after the half-close");
    far.end_sending();
    EXPECT_EQ(client.rest(), "");
    const auto outcome = scene.outcome();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->reason, egress_reason::none);
    EXPECT_EQ(outcome->sent, 13U);
    EXPECT_EQ(outcome->received, 28U);
}

TEST(ProxyTunnel, WhatNoRuleNamesIsRefusedAndNotDialled) {
    const tcp_server server;
    const tcp_server other;
    proxy_scene scene{{.rules = {"localhost:" + server.text()}}};
    const auto where = "localhost:" + other.text();
    const auto answer = scene.ask("CONNECT " + where + " HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 Forbidden (glove: " + where + " is not allowed; "))
        << answer;
    EXPECT_TRUE(
        answer.contains("\r\nX-Glove-Reason: " + where + " is not allowed; --egress-allow "));
    EXPECT_TRUE(answer.ends_with("glove: " + where + " is not allowed; --egress-allow " + where +
                                 " would allow it\n"))
        << answer;
    const auto refusal = scene.refusal();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->reason, egress_reason::not_allowed);
    EXPECT_EQ(net::to_string(*refusal->where), where);
    EXPECT_FALSE(other.got_connection());
    EXPECT_EQ(scene.count(egress_news::intent), 0U);
}

TEST(ProxyTunnel, WhatIsNotOnRecordIsNotDialled) {
    const tcp_server server;
    proxy_scene scene{{.rules = {"localhost:" + server.text()}, .records = false}};
    const auto answer = scene.ask("CONNECT localhost:" + server.text() + " HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
    EXPECT_FALSE(server.got_connection(50));
}

TEST(ProxyTunnel, TheHalfThatTheServerEndsFirstLeavesTheOtherOpen) {
    const tcp_server server;
    proxy_scene scene{{.rules = {"localhost:" + server.text()}}};
    auto client = scene.tunnel("localhost:" + server.text());
    const auto far = server.accept();
    far.send("bye");
    far.end_sending();
    EXPECT_EQ(client.rest(), "bye");
    client.send("still here");
    client.end_sending();
    EXPECT_EQ(far.rest(), "still here");
}

TEST(ProxyTunnel, TheServerMaySpeakFirst) {
    const tcp_server server;
    proxy_scene scene{{.rules = {"localhost:" + server.text()}}};
    auto client = scene.tunnel("localhost:" + server.text());
    const auto far = server.accept();
    far.send("220 ready");
    EXPECT_EQ(client.read(9), "220 ready");
}

TEST(ProxyTunnel, BytesBehindTheRequestBelongToTheTunnel) {
    const tcp_server server;
    proxy_scene scene{{.rules = {"localhost:" + server.text()}}};
    auto client = scene.open();
    client.send("CONNECT localhost:" + server.text() + " HTTP/1.1\r\n\r\nearly");
    const auto far = server.accept();
    EXPECT_EQ(far.read(5), "early");
}

TEST(ProxyTunnel, ManyBytesArriveUnchanged) {
    const tcp_server server;
    proxy_scene scene{{.rules = {"localhost:" + server.text()}}};
    auto client = scene.tunnel("localhost:" + server.text());
    const auto far = server.accept();
    std::string sent(8UL * 1024 * 1024, '\0');
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 251);
    std::string got;
    std::thread writer{[&] {
        client.send(sent);
        client.end_sending();
    }};
    got = far.rest();
    writer.join();
    EXPECT_TRUE(got == sent) << got.size();
}

TEST(ProxyTunnel, AResetOfEitherSideIsAResetOnTheOther) {
    const tcp_server server;
    proxy_scene scene{{.rules = {"localhost:" + server.text()}}};
    {
        auto client = scene.tunnel("localhost:" + server.text());
        const auto far = server.accept();
        client.reset();
        EXPECT_EQ(far.rest(), "<reset>");
        ASSERT_TRUE(scene.wait_for_count(egress_news::outcome, 1));
        EXPECT_EQ(scene.outcome()->reason, egress_reason::none);
    }
    auto client = scene.tunnel("localhost:" + server.text());
    auto far = server.accept();
    far.reset();
    EXPECT_EQ(client.rest(), "<reset>");
    ASSERT_TRUE(scene.wait_for_count(egress_news::outcome, 2));
    EXPECT_EQ(scene.outcome()->reason, egress_reason::reset);
}

TEST(ProxyTunnel, NobodyListensIsToldAsSuch) {
    const auto port = tcp_server{}.text();
    proxy_scene scene{{.rules = {"localhost:" + port}}};
    const auto answer = scene.ask("CONNECT localhost:" + port + " HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
    EXPECT_TRUE(answer.contains("Connection refused")) << answer;
    const auto outcome = scene.outcome();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->reason, egress_reason::dial_failed);
    EXPECT_EQ(outcome->os, ECONNREFUSED);
}

TEST(ProxyTunnel, ExactlyTheRulesBytesPassInBothDirectionsTogether) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene scene{{.rules = {where + ",max-bytes=10"}}};
    {
        auto client = scene.tunnel(where);
        const auto far = server.accept();
        client.send("1234");
        EXPECT_EQ(far.read(4), "1234");
        far.send("abcdef");
        far.end_sending();
        EXPECT_EQ(client.rest(), "abcdef");
        client.end_sending();
        EXPECT_EQ(far.rest(), "");
        ASSERT_TRUE(scene.wait_for_count(egress_news::outcome, 1));
        EXPECT_EQ(scene.outcome()->reason, egress_reason::none);
    }
    const auto answer = scene.ask("CONNECT " + where + " HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << answer;
    EXPECT_TRUE(answer.contains("max-bytes")) << answer;
    EXPECT_EQ(scene.refusal()->reason, egress_reason::bytes_spent);
}

TEST(ProxyTunnel, OneByteMoreThanTheRulesEndsTheConnection) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene scene{{.rules = {where + ",max-bytes=10"}}};
    auto client = scene.tunnel(where);
    const auto far = server.accept();
    client.send("1234");
    EXPECT_EQ(far.read(4), "1234");
    far.send("abcdefX");
    EXPECT_EQ(client.rest(), "abcdef<reset>");
    EXPECT_EQ(far.rest(), "<reset>");
    const auto outcome = scene.outcome();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->reason, egress_reason::bytes_spent);
    EXPECT_EQ(outcome->sent + outcome->received, 10U);
}

TEST(ProxyTunnel, AConnectionOnWhichNothingMovesEnds) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene scene{{.rules = {where}, .limits = {.idle = net::milliseconds{1000}}}};
    auto client = scene.tunnel(where);
    const auto far = server.accept();
    for (int i = 0; i < 4; ++i) { // longer than the limit, but never idle for so long
        std::this_thread::sleep_for(std::chrono::milliseconds{300});
        client.send("x");
        EXPECT_EQ(far.read(1), "x");
    }
    EXPECT_EQ(client.rest(), "");
    EXPECT_EQ(scene.outcome()->reason, egress_reason::idle);
}

TEST(ProxyTunnel, NoConnectionOutlastsTheWholeLimit) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene scene{{.rules = {where}, .limits = {.whole = net::milliseconds{100}}}};
    auto client = scene.tunnel(where);
    const auto far = server.accept();
    EXPECT_EQ(client.rest(), "");
    EXPECT_EQ(scene.outcome()->reason, egress_reason::too_long);
}

TEST(ProxyTunnel, ANameOfTheBridgeIsJudgedLikeAnyOther) {
    const tcp_server server;
    proxy_scene scene{{.rules = {"localhost:" + server.text()}}};
    const auto client = scene.open_named("localhost", server.port());
    const auto far = server.accept();
    client.send("no proxy protocol");
    EXPECT_EQ(far.read(17), "no proxy protocol");
    const auto refused = scene.open_named("api.other.org", 443);
    EXPECT_EQ(refused.rest(), "<reset>");
    EXPECT_EQ(net::to_string(*scene.refusal()->where), "api.other.org:443");
}

TEST(ProxyTunnel, AThousandConnectionsLeaveNoDescriptor) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene scene{{.rules = {where}}};
    const auto once = [&] {
        auto client = scene.tunnel(where);
        const auto far = server.accept();
        client.send("x");
        EXPECT_EQ(far.read(1), "x");
    };
    const auto descriptors = [&] {
        // The size of the table, which grows with the highest number in use.
        const auto text = proxy_scene::sys_text("/proc/" + scene.number() + "/status");
        const auto at = text.find("FDSize:");
        return text.substr(at, text.find('\n', at) - at);
    };
    for (int i = 0; i < 20; ++i) once();
    ASSERT_TRUE(scene.wait_for_count(egress_news::outcome, 20));
    const auto before = descriptors();
    for (int i = 0; i < 980; ++i) once();
    ASSERT_TRUE(scene.wait_for_count(egress_news::outcome, 1000));
    EXPECT_EQ(descriptors(), before);
}

} // namespace
