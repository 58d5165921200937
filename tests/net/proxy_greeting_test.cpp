// The name in the TLS greeting against the host that was asked for.
#include "own_host.hpp"
#include "proxy_scene.hpp"

namespace {

using namespace glove;
using namespace glove::test;
using namespace std::string_literals;

const auto alert = "\x15\x03\x03\0\2\2\x70"s;

auto number(std::size_t value, int bytes) -> std::string {
    std::string out;
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
        out += static_cast<char>(value >> shift & 255);
    return out;
}
auto sized(const std::string& text, int bytes) -> std::string {
    return number(text.size(), bytes) + text;
}

// A greeting of TLS 1.2; `more` are further extensions.
auto handshake(const std::string& name, const std::string& more = "") -> std::string {
    auto extensions = more;
    if (!name.empty()) extensions = "\0\0"s + sized(sized("\0"s + sized(name, 2), 2), 2) + more;
    auto body = "\3\3"s + std::string(32, 'r') + sized("", 1) + sized("\x13\1"s, 2) +
                sized("\0"s, 1) + sized(extensions, 2);
    return "\1"s + sized(body, 3);
}
auto record(const std::string& part) -> std::string { return "\x16\3\1"s + sized(part, 2); }
auto hello(const std::string& name, const std::string& more = "") -> std::string {
    return record(handshake(name, more));
}

// The server's answer, by its random.
auto answer_with(const std::string& random) -> std::string {
    const auto body = "\3\3"s + random + sized("", 1) + "\x13\1\0"s + sized("", 2);
    return record("\2"s + sized(body, 3));
}
const auto usual = answer_with(std::string(32, 's'));
const auto once_more =
    answer_with("\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
                "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"s);
const auto change = "\x14\3\3\0\1\1"s;

// A name with a server on the TLS port 8443 and on another.
class ProxyGreeting : public ::testing::Test {
protected:
    void SetUp() override {
        own_host::names(std::string{private_address} + " api.example other.example\n");
    }
    tcp_server secure{8443, private_number};
    tcp_server plain{0, private_number};
    std::string plain_place = "api.example:" + plain.text();
    proxy_scene scene{{.rules = {"api.example:8443,allow-private", plain_place + ",allow-private",
                                 std::string{private_address} + ":8443,allow-private",
                                 "other.example:8443,allow-private,any-server-name"},
                       .limits = {.hello = net::milliseconds{200}}}};

    void passes(const std::string& where, const tcp_server& server, const std::string& bytes) {
        const auto before = scene.count(egress_news::outcome);
        auto client = scene.tunnel(where);
        auto far = server.accept();
        client.send(bytes);
        EXPECT_EQ(far.read(bytes.size()), bytes);
        far.send(usual);
        EXPECT_EQ(client.read(usual.size()), usual);
        client.send("more");
        EXPECT_EQ(far.read(4), "more");
        client.close();
        far.close();
        EXPECT_TRUE(scene.wait_for_count(egress_news::outcome, before + 1));
    }
    void refuses(const std::string& where, const tcp_server& server, const std::string& bytes,
                 egress_reason why) {
        const auto before = scene.count(egress_news::outcome);
        auto client = scene.tunnel(where);
        const auto far = server.accept();
        client.send(bytes);
        EXPECT_EQ(client.rest(), alert);
        EXPECT_EQ(far.rest(), "");
        ASSERT_TRUE(scene.wait_for_count(egress_news::outcome, before + 1));
        EXPECT_EQ(scene.outcome()->reason, why);
    }
};

TEST_F(ProxyGreeting, TheRequestedNamePassesInAnySpelling) {
    passes("api.example:8443", secure, hello("api.example"));
    passes("API.example.:8443", secure, hello("Api.Example"));
    passes(plain_place, plain, hello("api.example"));
}

TEST_F(ProxyGreeting, AnotherNameIsRefused) {
    refuses("api.example:8443", secure, hello("other.example"), egress_reason::wrong_server_name);
    refuses("api.example:8443", secure, hello("api.example.evil.org"),
            egress_reason::wrong_server_name);
    refuses(plain_place, plain, hello("other.example"), egress_reason::wrong_server_name);
    EXPECT_EQ(scene.outcome()->detail, "other.example");
}

TEST_F(ProxyGreeting, NoNameIsRefusedForAHostAndPassesForAnAddress) {
    refuses("api.example:8443", secure, hello(""), egress_reason::no_server_name);
    const auto literal = std::string{private_address} + ":8443";
    passes(literal, secure, hello(""));
    refuses(literal, secure, hello("api.example"), egress_reason::wrong_server_name);
}

TEST_F(ProxyGreeting, AHiddenNameIsRefused) {
    refuses("api.example:8443", secure, hello("api.example", "\xfe\x0d\0\4test"s),
            egress_reason::hidden_server_name);
}

TEST_F(ProxyGreeting, ASecondGreetingThatTheServerAsksForIsJudgedAsWell) {
    for (const auto* where : {"api.example:8443", plain_place.c_str()}) {
        const auto& server = where == plain_place ? plain : secure;
        for (const auto& front : {""s, change}) {
            auto client = scene.tunnel(where);
            const auto far = server.accept();
            const auto first = hello("api.example");
            client.send(first);
            EXPECT_EQ(far.read(first.size()), first);
            far.send(once_more);
            EXPECT_EQ(client.read(once_more.size()), once_more);
            client.send(front + hello("other.example"));
            EXPECT_EQ(client.rest(), alert);
            EXPECT_EQ(far.rest(), "");
        }
        auto client = scene.tunnel(where);
        const auto far = server.accept();
        const auto first = hello("api.example");
        client.send(first);
        EXPECT_EQ(far.read(first.size()), first);
        for (const char c : once_more) far.send({&c, 1});
        EXPECT_EQ(client.read(once_more.size()), once_more);
        const auto second = change + hello("api.example") + "\x17\3\3\0\1x"s;
        for (const char c : second) client.send({&c, 1});
        EXPECT_EQ(far.read(second.size()), second);
        far.send("end");
        EXPECT_EQ(client.read(3), "end");
    }
}

TEST_F(ProxyGreeting, NothingFollowsAGreetingBeforeTheServersAnswer) {
    auto client = scene.tunnel("api.example:8443");
    const auto far = secure.accept();
    const auto first = hello("api.example");
    client.send(first);
    EXPECT_EQ(far.read(first.size()), first);
    client.send(hello("other.example"));
    far.send(once_more);
    EXPECT_EQ(client.read(once_more.size()), once_more);
    EXPECT_EQ(client.rest(), alert);
    EXPECT_EQ(far.rest(), "");
}

TEST_F(ProxyGreeting, AGreetingInPiecesIsJudgedWhole) {
    const auto bytes = handshake("api.example");
    passes("api.example:8443", secure,
           record(bytes.substr(0, 10)) + record(bytes.substr(10, 30)) + record(bytes.substr(40)));
    auto client = scene.tunnel("api.example:8443");
    const auto far = secure.accept();
    for (const char c : hello("other.example")) client.send({&c, 1});
    EXPECT_EQ(client.rest(), alert);
    EXPECT_EQ(far.rest(), "");
}

TEST_F(ProxyGreeting, NothingGoesOutBeforeTheGreetingIsWhole) {
    auto client = scene.tunnel("api.example:8443");
    const auto far = secure.accept();
    const auto bytes = hello("api.example");
    client.send(bytes.substr(0, 40));
    EXPECT_TRUE(far.is_quiet(50));
    client.send(bytes.substr(40));
    EXPECT_EQ(far.read(bytes.size()), bytes);
}

TEST_F(ProxyGreeting, OnATlsPortNothingElseIsSpoken) {
    refuses("api.example:8443", secure, "GET / HTTP/1.1\r\n\r\n", egress_reason::not_tls);
    passes(plain_place, plain, "GET / HTTP/1.1\r\n\r\n");
}

// A server that skips a record of another type would take the hidden greeting behind it.
TEST_F(ProxyGreeting, NoOtherRecordHidesAGreetingOnAnyPort) {
    for (const auto& record : {"\x14\3\3\0\1\1"s, "\x15\3\1\0\2\1\0"s, "\x17\3\3\0\1x"s})
        for (const auto* place : {"api.example:8443", plain_place.c_str()})
            refuses(place, place == plain_place ? plain : secure, record + hello("other.example"),
                    egress_reason::not_tls);
    for (const auto& other : {"\x15\2hello"s, "\x13\3hello"s, "\x18\3hello"s})
        passes(plain_place, plain, other);
}

TEST_F(ProxyGreeting, HalfAGreetingIsNone) {
    auto client = scene.tunnel("api.example:8443");
    const auto far = secure.accept();
    client.send(hello("api.example").substr(0, 40));
    client.end_sending();
    EXPECT_EQ(client.rest(), alert);
    EXPECT_EQ(far.rest(), "");
    EXPECT_EQ(scene.outcome()->reason, egress_reason::malformed_hello);
}

TEST_F(ProxyGreeting, ASlowGreetingIsGivenUpFromItsFirstByte) {
    auto client = scene.tunnel("api.example:8443");
    const auto far = secure.accept();
    EXPECT_TRUE(client.is_quiet(300)); // no byte, no limit
    client.send("\x16");
    EXPECT_EQ(client.rest(), "");
    EXPECT_EQ(scene.outcome()->reason, egress_reason::hello_timed_out);
}

TEST_F(ProxyGreeting, TheServerMaySpeakFirstMeanwhile) {
    auto client = scene.tunnel(plain_place);
    const auto far = plain.accept();
    far.send("server first");
    EXPECT_EQ(client.read(12), "server first");
    client.send("client next");
    EXPECT_EQ(far.read(11), "client next");
}

TEST_F(ProxyGreeting, ARuleMayLeaveItUnchecked) {
    passes("other.example:8443", secure, hello("anything.example"));
    passes("other.example:8443", secure, "no TLS at all");
}

TEST_F(ProxyGreeting, NamesOfTheBridgeAndSocksAreJudgedAlike) {
    const auto named = scene.open_named("api.example", 8443);
    const auto far = secure.accept();
    named.send(hello("other.example"));
    EXPECT_EQ(named.rest(), alert);
    EXPECT_EQ(far.rest(), "");
}

} // namespace
