// Names and what they resolve to: which address is dialled, and which is not.
#include "own_host.hpp"
#include "proxy_scene.hpp"
#include <functional>

namespace {

using namespace glove;
using namespace glove::test;

const auto* const host = ::testing::AddGlobalTestEnvironment(new own_host);

auto connect_to_name(proxy_scene& scene, const std::string& where) -> std::string {
    return scene.ask("CONNECT " + where + " HTTP/1.1\r\n\r\n");
}

TEST(ProxyAddress, APrivateAddressNeedsItsOption) {
    own_host::names(std::string{private_address} + " inner.example\n");
    const tcp_server server{0, private_number};
    const auto where = "inner.example:" + server.text();
    {
        proxy_scene scene{{.rules = {where}}};
        const auto answer = connect_to_name(scene, where);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
        EXPECT_TRUE(answer.contains("resolves to a private address; add ,allow-private")) << answer;
        const auto outcome = scene.outcome();
        ASSERT_TRUE(outcome);
        EXPECT_EQ(outcome->reason, egress_reason::address_refused);
        EXPECT_FALSE(server.got_connection());
    }
    proxy_scene scene{{.rules = {where + ",allow-private"}}};
    auto client = scene.tunnel(where);
    const auto far = server.accept();
    client.send("x");
    EXPECT_EQ(far.read(1), "x");
}

TEST(ProxyAddress, APublicAddressOfTheHostItselfIsPrivate) {
    own_host::names(std::string{public_address} + " own.example\n");
    const tcp_server server{0, public_number};
    const auto where = "own.example:" + server.text();
    proxy_scene scene{{.rules = {where}}};
    const auto answer = connect_to_name(scene, where);
    EXPECT_TRUE(answer.contains("own address of the host")) << answer;
    EXPECT_FALSE(server.got_connection());
    proxy_scene allowed{{.rules = {where + ",allow-private"}}};
    auto client = allowed.tunnel(where);
    (void)server.accept();
}

TEST(ProxyAddress, ANameOfTheLoopbackIsNotTheLoopback) {
    own_host::names("127.0.0.1 sneaky.example\n");
    const tcp_server server;
    const auto where = "sneaky.example:" + server.text();
    proxy_scene scene{{.rules = {where}}};
    const auto answer = connect_to_name(scene, where);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
    EXPECT_FALSE(server.got_connection());
}

TEST(ProxyAddress, OnlyTheAddressesThatAreAllowedAreDialled) {
    own_host::names(std::string{public_address} + " two.example\n" + private_address +
                    " two.example\n127.0.0.1 two.example\n");
    const tcp_server server{0, private_number};
    const tcp_server loopback{server.port()};
    const auto where = "two.example:" + server.text();
    proxy_scene scene{{.rules = {where}}};
    const auto answer = connect_to_name(scene, where);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
    EXPECT_FALSE(server.got_connection());
    EXPECT_FALSE(loopback.got_connection());
}

// Answers every query for an A record with one address, after `before` was called with the name.
class name_server {
public:
    using answer = std::function<std::optional<std::uint32_t>(const std::string& name)>;
    explicit name_server(answer how)
        : how_{std::move(how)}, fd_{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)} {
        ::sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(53);
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        need(::bind(fd_.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at) == 0, "bind 53");
        thread_ = std::thread{[this] { serve(); }};
    }
    name_server(const name_server&) = delete;
    auto operator=(const name_server&) -> name_server& = delete;
    ~name_server() {
        (void)::shutdown(fd_.get(), SHUT_RDWR);
        thread_.join();
    }
    [[nodiscard]] auto asked() -> std::vector<std::string> {
        const std::scoped_lock lock{mutex_};
        return asked_;
    }

private:
    void serve() {
        std::array<char, 512> query{};
        for (;;) {
            ::sockaddr_in from{};
            ::socklen_t size = sizeof from;
            const auto got = ::recvfrom(fd_.get(), query.data(), query.size(), 0,
                                        reinterpret_cast<::sockaddr*>(&from), &size);
            if (got <= 12) return;
            std::string name;
            std::size_t at = 12;
            while (query[at] != 0) {
                const auto length = static_cast<std::size_t>(query[at]);
                name += std::string{&query[at + 1], length} + ".";
                at += length + 1;
            }
            const bool v4 = query[at + 2] == 1;
            const std::string question{&query[12], at + 5 - 12};
            {
                const std::scoped_lock lock{mutex_};
                asked_.push_back(name + (v4 ? "A" : "other"));
            }
            const auto found = how_(name);
            if (!found) continue;
            std::string out{query.data(), 2};
            const bool exists = *found != 0;
            out += exists ? std::string{"\x81\x80\0\1\0", 5} : std::string{"\x81\x83\0\1\0", 5};
            out += exists && v4 ? '\1' : '\0';
            out += std::string{"\0\0\0\0", 4} + question;
            if (exists && v4) {
                out += std::string{"\xc0\x0c\0\1\0\1\0\0\0\0\0\4", 12};
                for (int shift = 24; shift >= 0; shift -= 8)
                    out += static_cast<char>(*found >> shift & 255);
            }
            (void)::sendto(fd_.get(), out.data(), out.size(), 0,
                           reinterpret_cast<::sockaddr*>(&from), size);
        }
    }
    answer how_;
    sys::unique_fd fd_;
    std::thread thread_;
    std::mutex mutex_;
    std::vector<std::string> asked_;
};

TEST(ProxyAddress, TheNameServiceIsAskedAfterTheIntentAndOnceAConnection) {
    own_host::names("");
    const tcp_server server{0, private_number};
    // Another address at the second question: the one that was judged is dialled.
    int questions = 0;
    name_server names{[&](const std::string&) {
        return std::optional{questions++ < 2 ? private_number : 0x7f000001U};
    }};
    const auto where = "Changing.example:" + server.text();
    proxy_scene scene{{.rules = {"changing.example:" + server.text() + ",allow-private"}}};
    auto client = scene.tunnel(where);
    (void)server.accept();
    const auto asked = names.asked();
    EXPECT_EQ(std::ranges::count(asked, "changing.example.A"), 1);
    EXPECT_LE(asked.size(), 2U); // and one for IPv6
}

TEST(ProxyAddress, ARefusedNameIsNotLookedUp) {
    own_host::names("");
    name_server names{[](const std::string&) { return std::optional{private_number}; }};
    proxy_scene scene{{.rules = {"allowed.example"}}};
    const auto answer = connect_to_name(scene, "secret.attacker.example:443");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 "));
    proxy_scene unrecorded{{.rules = {"allowed.example"}, .records = false}};
    EXPECT_TRUE(connect_to_name(unrecorded, "allowed.example:443").starts_with("HTTP/1.1 503 "));
    EXPECT_TRUE(names.asked().empty());
}

TEST(ProxyAddress, AFullNameIsNotLookedUpInAnotherDomain) {
    own_host::names("");
    write_text("/etc/resolv.conf", "nameserver 127.0.0.1\nsearch corp.example\noptions ndots:5\n");
    name_server names{[](const std::string&) { return std::optional{0U}; }};
    proxy_scene scene{{.rules = {"absent.example"}}};
    const auto answer = connect_to_name(scene, "absent.example:443");
    own_host::resolver("127.0.0.1");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
    EXPECT_EQ(scene.outcome()->reason, egress_reason::lookup_failed);
    for (const auto& name : names.asked()) EXPECT_TRUE(name.starts_with("absent.example."));
    for (const auto& name : names.asked()) EXPECT_FALSE(name.contains("corp"));
}

TEST(ProxyAddress, ANameServiceThatIsSilentIsGivenUp) {
    own_host::names("");
    name_server names{[](const std::string&) { return std::nullopt; }};
    proxy_scene scene{{.rules = {"slow.example"}, .limits = {.lookup = net::milliseconds{100}}}};
    const auto answer = connect_to_name(scene, "slow.example:443");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 504 ")) << answer;
    EXPECT_EQ(scene.outcome()->reason, egress_reason::lookup_timed_out);
}

TEST(ProxyAddress, ANewResolverIsNoticed) {
    own_host::names("");
    const tcp_server server{0, private_number};
    const auto where = "late.example:" + server.text();
    proxy_scene scene{{.rules = {where + ",allow-private"}}};
    {
        name_server none{[](const std::string&) { return std::optional{0U}; }};
        EXPECT_TRUE(connect_to_name(scene, where).starts_with("HTTP/1.1 502 "));
    }
    own_host::names(std::string{private_address} + " late.example\n");
    auto client = scene.tunnel(where);
    (void)server.accept();
}

TEST(ProxyAddress, AnAddressThatDoesNotAnswerIsGivenUp) {
    // A full backlog: the kernel drops what comes.
    const sys::unique_fd stuck{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(private_number);
    ::socklen_t size = sizeof at;
    ASSERT_EQ(::bind(stuck.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(::listen(stuck.get(), 0), 0);
    ASSERT_EQ(::getsockname(stuck.get(), reinterpret_cast<::sockaddr*>(&at), &size), 0);
    const auto filling = connect_to(ntohs(at.sin_port), private_number);
    const auto where = std::string{private_address} + ":" + std::to_string(ntohs(at.sin_port));
    proxy_scene scene{
        {.rules = {where + ",allow-private"}, .limits = {.dial = net::milliseconds{100}}}};
    const auto answer = connect_to_name(scene, where);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 504 ")) << answer;
    EXPECT_EQ(scene.outcome()->reason, egress_reason::dial_timed_out);
}

} // namespace
