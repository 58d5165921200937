// Requests that are forwarded: what the server sees, and what never gets through.
#include "proxy_scene.hpp"

namespace {

using namespace glove;
using namespace glove::test;

class ProxyHttp : public ::testing::Test {
protected:
    tcp_server server;
    std::string where = "localhost:" + server.text();
    proxy_scene scene{
        {.rules = {where},
         .limits = {.request = net::milliseconds{300}, .farewell = net::milliseconds{100}}}};
    [[nodiscard]] auto url(const std::string& path) const -> std::string {
        return "http://" + where + path;
    }
    // What the server gets for these bytes, to its end, when it answers nothing.
    [[nodiscard]] auto forwarded(const std::string& bytes, std::size_t expected) -> std::string {
        auto client = scene.open();
        client.send(bytes);
        const auto far = server.accept();
        auto got = far.read(expected);
        EXPECT_TRUE(far.is_quiet(30));
        return got;
    }
    void refuses(const std::string& bytes, const std::string& words = "400 Bad Request") {
        const auto answer = scene.ask(bytes);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + words)) << bytes << "\n" << answer;
        EXPECT_FALSE(server.got_connection());
    }
};

TEST_F(ProxyHttp, TheServerSeesOneRequestOfItsOwn) {
    const auto expected = "GET /path?q=1 HTTP/1.1\r\nHost: " + where +
                          "\r\nAccept: */*\r\nX-Kept: yes\r\nConnection: close\r\n\r\n";
    EXPECT_EQ(forwarded("GET " + url("/path?q=1") + " HTTP/1.1\r\nHost: " + where +
                            "\r\nAccept: */*\r\nProxy-Connection: keep-alive\r\n"
                            "Proxy-Authorization: Basic eDp5\r\nConnection: X-Drop, keep-alive\r\n"
                            "X-Drop: secret\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\n"
                            "Proxy-Secret: 1\r\nX-Kept: yes\r\n\r\n",
                        expected.size()),
              expected);
}

TEST_F(ProxyHttp, TheAnswerComesBackToItsEnd) {
    auto client = scene.open();
    client.send("GET " + url("/") + " HTTP/1.1\r\n\r\n");
    const auto far = server.accept();
    EXPECT_TRUE(far.head().starts_with("GET / HTTP/1.1\r\n"));
    far.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_EQ(client.read(40), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_TRUE(client.is_quiet(20));
    far.end_sending();
    EXPECT_EQ(client.rest(), "");
    const auto outcome = scene.outcome();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->received, 40U);
}

TEST_F(ProxyHttp, AnEmptyPathIsTheRoot) {
    const auto head = "\r\nHost: " + where + "\r\nConnection: close\r\n\r\n";
    const auto root = "GET / HTTP/1.0" + head;
    EXPECT_EQ(forwarded("GET " + url("") + " HTTP/1.0\r\n\r\n", root.size()), root);
    const auto query = "GET /?a HTTP/1.1" + head;
    EXPECT_EQ(forwarded("GET " + url("?a") + " HTTP/1.1\r\n\r\n", query.size()), query);
}

TEST_F(ProxyHttp, ExactlyTheBodyIsForwardedAndNothingBehindIt) {
    const auto expected = "POST /p HTTP/1.1\r\nHost: " + where +
                          "\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
    EXPECT_EQ(forwarded("POST " + url("/p") + " HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody" +
                            "GET " + url("/smuggled") + " HTTP/1.1\r\n\r\n",
                        expected.size()),
              expected);
}

TEST_F(ProxyHttp, ASecondRequestIsNotForwarded) {
    const auto expected = "GET /one HTTP/1.1\r\nHost: " + where + "\r\nConnection: close\r\n\r\n";
    EXPECT_EQ(forwarded("GET " + url("/one") + " HTTP/1.1\r\n\r\nGET " + url("/two") +
                            " HTTP/1.1\r\n\r\n",
                        expected.size()),
              expected);
}

TEST_F(ProxyHttp, AFieldThatConnectionNamesCannotTakeTheFramingAway) {
    const auto expected = "POST / HTTP/1.1\r\nHost: " + where +
                          "\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    EXPECT_EQ(forwarded("POST " + url("/") + " HTTP/1.1\r\nConnection: Content-Length, Host\r\n" +
                            "Content-Length: 2\r\n\r\nok",
                        expected.size()),
              expected);
}

TEST_F(ProxyHttp, ChunksAreReadAndWrittenAnew) {
    const auto expected = "POST / HTTP/1.1\r\nHost: " + where +
                          "\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                          "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
    EXPECT_EQ(forwarded("POST " + url("/") + " HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n" +
                            "0005;name=\"value\"\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n"
                            "smuggled",
                        expected.size()),
              expected);
}

TEST_F(ProxyHttp, ABodyThatIsNoneEndsTheConnection) {
    std::size_t count = 0;
    for (const std::string chunks :
         {"g\r\n", "-1\r\n", "+1\r\nx\r\n0\r\n\r\n", "0x1\r\nx\r\n", " 1\r\nx\r\n", "1 \r\nx\r\n",
          "1\nx\r\n", "1\r\nxy\r\n", "\r\n", "1000000000000000\r\n", "1;\x01\r\nx\r\n"}) {
        auto client = scene.open();
        client.send("POST " + url("/") + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
                    chunks);
        const auto far = server.accept();
        const auto got = far.rest();
        EXPECT_FALSE(got.contains("0\r\n\r\n")) << chunks;
        EXPECT_TRUE(scene.wait_for_count(egress_news::outcome, ++count)) << chunks;
        EXPECT_EQ(scene.outcome()->reason, egress_reason::malformed) << chunks;
    }
}

TEST_F(ProxyHttp, AnEarlyAnswerCutsTheBodyShort) {
    auto client = scene.open();
    client.send("POST " + url("/") + " HTTP/1.1\r\nContent-Length: 100\r\n\r\nfirst");
    auto far = server.accept();
    EXPECT_TRUE(far.head().contains("Content-Length: 100\r\n"));
    far.send("HTTP/1.1 413 No\r\n\r\n");
    far.end_sending();
    EXPECT_TRUE(client.rest().starts_with("HTTP/1.1 413 No\r\n\r\n"));
}

TEST_F(ProxyHttp, AClientMayWaitForTheWordToContinue) {
    auto client = scene.open();
    client.send("POST " + url("/") +
                " HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    const auto far = server.accept();
    EXPECT_TRUE(far.head().contains("Expect: 100-continue\r\n"));
    far.send("HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_EQ(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("body");
    EXPECT_EQ(far.read(4), "body");
}

TEST_F(ProxyHttp, WhatIsNoRequestToAProxyIsRefused) {
    refuses("GET / HTTP/1.1\r\nHost: " + where + "\r\n\r\n");
    refuses("OPTIONS * HTTP/1.1\r\nHost: " + where + "\r\n\r\n");
    refuses("GET https://" + where + "/ HTTP/1.1\r\n\r\n");
    refuses("GET ftp://" + where + "/ HTTP/1.1\r\n\r\n");
    refuses("GET http://user@" + where + "/ HTTP/1.1\r\n\r\n");
    refuses("GET http://user:pass@" + where + "/ HTTP/1.1\r\n\r\n");
    refuses("GET " + url("/#fragment") + " HTTP/1.1\r\n\r\n");
    refuses("GET http:///path HTTP/1.1\r\n\r\n");
    refuses("CONNECT localhost HTTP/1.1\r\n\r\n");
    refuses("CONNECT " + where + "/ HTTP/1.1\r\n\r\n");
    refuses("CONNECT http://" + where + " HTTP/1.1\r\n\r\n");
    refuses("CONNECT " + where + " HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
    refuses("CONNECT " + where + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    refuses("GET " + url("/") + " HTTP/2.0\r\n\r\n");
    refuses("GET " + url("/") + "\r\n\r\n");
    refuses("\r\nGET " + url("/") + " HTTP/1.1\r\n\r\n");
    refuses("\x16\x03\x01 TLS to the proxy\r\n\r\n");
    EXPECT_EQ(scene.refusal()->reason, egress_reason::malformed);
}

TEST_F(ProxyHttp, LinesThatTwoReadersCouldReadDifferentlyAreRefused) {
    const auto with = [this](const std::string& lines) {
        refuses("POST " + url("/") + " HTTP/1.1\r\n" + lines + "\r\n");
    };
    with("X: a\n");
    with("X: a\rY: b\r\n");
    with("X: a\r\n folded\r\n");
    with("X: a\r\n\tfolded\r\n");
    with(std::string{"X: a\0b\r\n", 8});
    with("X : a\r\n");
    with(" X: a\r\n");
    with("X\r\n");
    with(": a\r\n");
    with("Content-Length: 1\r\nContent-Length: 1\r\n");
    with("Content-Length: 1\r\nContent-Length: 2\r\n");
    with("Content-Length: 1, 1\r\n");
    with("Content-Length: +1\r\n");
    with("Content-Length: -1\r\n");
    with("Content-Length: 0x1\r\n");
    with("Content-Length: \r\n");
    with("Content-Length: 99999999999999999999\r\n");
    with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n");
    with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n");
    with("Transfer-Encoding: gzip, chunked\r\n");
    with("Transfer-Encoding: chunked, identity\r\n");
    with("Transfer-Encoding: \x0b"
         "chunked\r\n");
    refuses("POST " + url("/") + " HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    refuses("POST  " + url("/") + " HTTP/1.1\r\n\r\n");
    refuses("POST " + url("/ ") + " HTTP/1.1\r\n\r\n");
    refuses("POST " + url("/\xc3\xa4") + " HTTP/1.1\r\n\r\n");
}

TEST_F(ProxyHttp, HostMustBeTheTarget) {
    refuses("GET " + url("/") + " HTTP/1.1\r\nHost: other.example\r\n\r\n");
    refuses("GET " + url("/") + " HTTP/1.1\r\nHost: localhost:1\r\n\r\n");
    refuses("GET " + url("/") + " HTTP/1.1\r\nHost: " + where + "\r\nHost: " + where + "\r\n\r\n");
    refuses("CONNECT " + where + " HTTP/1.1\r\nHost: other.example\r\n\r\n");
    const auto expected = "GET / HTTP/1.1\r\nHost: " + where + "\r\nConnection: close\r\n\r\n";
    // The twin: another spelling of the same.
    EXPECT_EQ(
        forwarded("GET " + url("/") + " HTTP/1.1\r\nHost: LOCALHOST:" + server.text() + "\r\n\r\n",
                  expected.size()),
        expected);
}

TEST_F(ProxyHttp, AHeaderBlockMayBeSoLongAndNoLonger) {
    const auto head_of = [this](std::size_t size) {
        std::string out = "CONNECT " + where + " HTTP/1.1\r\nX: ";
        out.resize(size - 4, 'x');
        return out + "\r\n\r\n";
    };
    refuses(head_of(8193));
    auto client = scene.open();
    client.send(head_of(8192));
    EXPECT_TRUE(client.head().starts_with("HTTP/1.1 200 "));
}

TEST_F(ProxyHttp, AHeaderThatDoesNotEndIsGivenUp) {
    auto client = scene.open();
    client.send("CONNECT " + where + " HTTP/1.1\r\n");
    EXPECT_EQ(client.rest(), "");
    EXPECT_EQ(scene.refusal()->reason, egress_reason::malformed);
}

TEST_F(ProxyHttp, AHeaderInPiecesIsARequest) {
    auto client = scene.open();
    for (const char c : "CONNECT " + where + " HTTP/1.1\r\n\r\n") client.send({&c, 1});
    EXPECT_TRUE(client.head().starts_with("HTTP/1.1 200 "));
}

TEST_F(ProxyHttp, OlderSocksIsRefusedInItsOwnWords) {
    using namespace std::string_view_literals;
    EXPECT_EQ(scene.ask("\x04\x01\x01\xbb\x7f\0\0\x01\0"sv), "\0\x5b\0\0\0\0\0\0"sv);
}

} // namespace
