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
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 Forbidden\r\n")) << answer;
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

} // namespace
