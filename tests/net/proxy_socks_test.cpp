// SOCKS5, and the credential of the second door in both protocols.
#include "net/proxy/request.hpp"
#include "own_host.hpp"
#include "proxy_scene.hpp"

namespace {

using namespace glove;
using namespace glove::test;
using namespace std::string_literals;

auto with_port(std::string bytes, std::uint16_t port) -> std::string {
    bytes += static_cast<char>(port >> 8);
    bytes += static_cast<char>(port & 255);
    return bytes;
}
auto to_name(const std::string& name, std::uint16_t port) -> std::string {
    return with_port("\5\1\0\3"s + static_cast<char>(name.size()) + name, port);
}
const auto granted = "\5\0\0\1\0\0\0\0\0\0"s;

TEST(ProxySocks, ANameAndBothKindsOfAddressesAreReached) {
    const tcp_server server;
    proxy_scene scene{
        {.rules = {"localhost:" + server.text(),
                   std::string{private_address} + ":" + server.text() + ",allow-private"}}};
    auto client = scene.open();
    client.send("\5\1\0"s);
    EXPECT_EQ(client.read(2), "\5\0"s);
    client.send(to_name("LocalHost.", server.port()) + "early");
    EXPECT_EQ(client.read(10), granted);
    const auto far = server.accept();
    EXPECT_EQ(far.read(5), "early");

    const tcp_server second{server.port(), private_number};
    auto literal = scene.open();
    literal.send("\5\2\0\2"s + with_port("\5\1\0\1\x0a\x09\x08\x07"s, server.port()));
    EXPECT_EQ(literal.read(12), "\5\0"s + granted);
    (void)second.accept();
}

TEST(ProxySocks, RefusalsHaveTheirReplyCodes) {
    const auto free_port = tcp_server{}.port();
    proxy_scene scene{{.rules = {"localhost:" + std::to_string(free_port)}}};
    const auto reply = [&](const std::string& request) {
        return scene.ask("\5\1\0"s + request).substr(2, 2);
    };
    EXPECT_EQ(reply(to_name("other.example", 443)), "\5\2"s);
    EXPECT_EQ(reply(to_name("localhost", free_port)), "\5\5"s);
    EXPECT_EQ(reply(with_port("\5\2\0\1\x7f\0\0\1"s, 80)), "\5\7"s); // BIND
    EXPECT_EQ(reply(with_port("\5\3\0\1\x7f\0\0\1"s, 80)), "\5\7"s); // UDP
    EXPECT_EQ(reply(with_port("\5\1\0\2\x7f\0\0\1"s, 80)), "\5\x8"s);
    EXPECT_EQ(reply(to_name("localhost", 0)), "\5\1"s);
    EXPECT_EQ(reply(to_name("a b", 443)), "\5\1"s);
    EXPECT_EQ(reply(to_name("a\0b"s, 443)), "\5\1"s);
    EXPECT_EQ(reply(to_name("", 443)), "\5\1"s);
    EXPECT_EQ(scene.ask("\5\1\1"s), "\5\xff"s); // GSSAPI alone
    EXPECT_EQ(scene.ask("\5\0"s), "\5\xff"s);
}

class SecondDoor : public ::testing::Test {
protected:
    tcp_server server;
    std::string where = "localhost:" + server.text();
    proxy_scene scene{
        {.rules = {where}, .limits = {.farewell = net::milliseconds{100}}, .with_listener = true}};
    std::string right{proxy_scene::token};
    std::string wrong = std::string{proxy_scene::token.substr(0, 63)} + "0";

    [[nodiscard]] auto connect_with(const std::string& field) const -> std::string {
        const auto client = scene.open_listener();
        client.send("CONNECT " + where + " HTTP/1.1\r\n" + field + "\r\n");
        return client.head();
    }
    [[nodiscard]] static auto basic(const std::string& user, const std::string& password)
        -> std::string {
        return "Proxy-Authorization: Basic " + net::proxy::to_base64(user + ":" + password) +
               "\r\n";
    }
    [[nodiscard]] auto socks_with(const std::string& user, const std::string& password) const
        -> std::string {
        const auto client = scene.open_listener();
        client.send("\5\1\2\1"s + static_cast<char>(user.size()) + user +
                    static_cast<char>(password.size()) + password +
                    to_name("localhost", server.port()));
        return client.read(14);
    }
};

TEST_F(SecondDoor, HttpNeedsTheToken) {
    EXPECT_TRUE(connect_with(basic("glove", right)).starts_with("HTTP/1.1 200 "));
    (void)server.accept();
    for (const auto& field :
         {""s, basic("glove", wrong), basic("glove", ""), basic("other", right),
          basic("glove", right + "0"), "Proxy-Authorization: Bearer " + right + "\r\n",
          "Authorization: Basic " + net::proxy::to_base64("glove:" + right) + "\r\n"}) {
        const auto answer = connect_with(field);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 407 ")) << field;
        EXPECT_TRUE(answer.contains("\r\nProxy-Authenticate: Basic ")) << answer;
    }
    EXPECT_FALSE(server.got_connection());
}

TEST_F(SecondDoor, SocksNeedsTheToken) {
    EXPECT_EQ(socks_with("glove", right), "\5\2\1\0"s + granted);
    (void)server.accept();
    EXPECT_EQ(socks_with("glove", wrong), "\5\2\1\1"s);
    EXPECT_EQ(socks_with("glove", ""), "\5\2\1\1"s);
    EXPECT_EQ(socks_with("", right), "\5\2\1\1"s);
    const auto none = scene.open_listener();
    none.send("\5\1\0"s);
    EXPECT_EQ(none.rest(), "\5\xff"s);
    EXPECT_FALSE(server.got_connection());
}

TEST_F(SecondDoor, TheBridgesSessionsNeedNone) {
    auto client = scene.tunnel(where);
    (void)server.accept();
}

TEST(ProxyToken, TheComparisonIsOfAllBytes) {
    using net::proxy::equal_in_constant_time;
    EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
    EXPECT_TRUE(equal_in_constant_time("", ""));
    EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
    EXPECT_FALSE(equal_in_constant_time("abc", "xbc"));
    EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
    EXPECT_EQ(net::proxy::to_base64("f"), "Zg==");
    EXPECT_EQ(net::proxy::to_base64("fo"), "Zm8=");
    EXPECT_EQ(net::proxy::to_base64("foo"), "Zm9v");
    EXPECT_EQ(net::proxy::to_base64("\xff\xfe\xfd"), "//79");
}

} // namespace
