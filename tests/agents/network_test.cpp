// Per tier: which sockets can be made, and that none of them leads to the host or beyond.
#include "agents/scene.hpp"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace glove::test {
namespace {

class Network : public Scene {};

struct socket_case {
    std::string_view family, type, protocol;
    std::string_view offline, local, sealed; // a refusal, or "" for permitted
};

TEST_F(Network, each_tier_permits_its_sockets_and_no_other) {
    for (const auto& c : std::vector<socket_case>{
             {"unix", "stream", "0", "", "", "EACCES"},
             {"unix", "dgram", "0", "", "", "EACCES"},
             {"unix", "seqpacket", "0", "", "", "EACCES"},
             {"inet", "stream", "0", "EACCES", "", "EACCES"},
             {"inet", "dgram", "0", "EACCES", "", "EACCES"},
             {"inet6", "stream", "0", "EACCES", "", "EACCES"},
             {"inet6", "dgram", "0", "EACCES", "", "EACCES"},
             {"inet", "raw", "1", "EACCES", "EPERM", "EACCES"},
             {"inet6", "raw", "58", "EACCES", "EPERM", "EACCES"},
             {"inet", "dgram", "1", "EACCES", "EPROTONOSUPPORT", "EACCES"},
             {"inet", "stream", "132", "EACCES", "EPROTONOSUPPORT", "EACCES"},
             {"inet", "stream", "262", "EACCES", "EPROTONOSUPPORT", "EACCES"},
             {"netlink", "raw", "0", "EAFNOSUPPORT", "", "EACCES"},
             {"netlink", "raw", "4", "EAFNOSUPPORT", "EPROTONOSUPPORT", "EACCES"},
             {"netlink", "raw", "12", "EAFNOSUPPORT", "EPROTONOSUPPORT", "EACCES"},
             {"netlink", "raw", "15", "EAFNOSUPPORT", "EPROTONOSUPPORT", "EACCES"},
             {"vsock", "stream", "0", "EAFNOSUPPORT", "EAFNOSUPPORT", "EACCES"},
             {"packet", "raw", "3", "EAFNOSUPPORT", "EAFNOSUPPORT", "EACCES"},
             {"packet", "dgram", "3", "EAFNOSUPPORT", "EAFNOSUPPORT", "EACCES"},
             {"alg", "seqpacket", "0", "EAFNOSUPPORT", "EAFNOSUPPORT", "EACCES"},
             {"bluetooth", "raw", "0", "EAFNOSUPPORT", "EAFNOSUPPORT", "EACCES"},
             {"tipc", "stream", "0", "EAFNOSUPPORT", "EAFNOSUPPORT", "EACCES"},
             {"xdp", "raw", "0", "EAFNOSUPPORT", "EAFNOSUPPORT", "EACCES"},
             {"can", "raw", "1", "EAFNOSUPPORT", "EAFNOSUPPORT", "EACCES"},
             {"smc", "stream", "0", "EAFNOSUPPORT", "EAFNOSUPPORT", "EACCES"},
             {"key", "raw", "2", "EAFNOSUPPORT", "EAFNOSUPPORT", "EACCES"}}) {
        const words attack{"socket", std::string{c.family}, std::string{c.type},
                           std::string{c.protocol}};
        for (const auto& [tier, refusal] :
             {std::pair{"offline", c.offline}, {"local", c.local}, {"sealed", c.sealed}}) {
            SCOPED_TRACE(std::string{tier} + " " + attack[1] + " " + attack[2] + " " + attack[3]);
            const auto seen = inside(attack, {"--net", tier});
            EXPECT_TRUE(refusal.empty() ? worked(seen) : denied(seen, refusal));
        }
    }
    for (const words& attack : {words{"socket", "inet", "stream", "0"},
                                {"socket", "inet6", "dgram", "0"},
                                {"socket", "netlink", "raw", "0"},
                                {"socket", "unix", "stream", "0"}})
        EXPECT_TRUE(worked(bare(attack))) << attack[1];
    EXPECT_TRUE(worked(
        judged(run({.argv = {"unshare", "-Urn", hostile_binary, "socket", "inet", "raw", "1"},
                    .environment = environment_in(home)}))));
}

// A server of the host on the loopback of both families; and abstract names.
class HostLoopback : public Scene {
protected:
    HostLoopback() {
        ::sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        listen_at(tcp_, reinterpret_cast<::sockaddr*>(&at), sizeof at);
        ::socklen_t size = sizeof at;
        EXPECT_EQ(::getsockname(tcp_, reinterpret_cast<::sockaddr*>(&at), &size), 0);
        port = std::to_string(ntohs(at.sin_port));
        ::sockaddr_un name{};
        name.sun_family = AF_UNIX;
        abstract = "@glove-test-" + std::to_string(::getpid());
        abstract.copy(name.sun_path, sizeof name.sun_path - 1);
        name.sun_path[0] = '\0';
        listen_at(unix_, reinterpret_cast<::sockaddr*>(&name),
                  static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + abstract.size()));
    }
    ~HostLoopback() override {
        ::close(tcp_);
        ::close(unix_);
    }
    std::string port, abstract;

private:
    static void listen_at(int s, const ::sockaddr* at, ::socklen_t size) {
        EXPECT_EQ(::bind(s, at, size), 0);
        EXPECT_EQ(::listen(s, 8), 0);
    }
    int tcp_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int unix_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

TEST_F(HostLoopback, is_out_of_reach_and_the_private_one_works) {
    const words local{"--net", "local"};
    EXPECT_TRUE(denied(inside({"connect", "127.0.0.1", port}, local), "ECONNREFUSED"));
    EXPECT_TRUE(denied(inside({"connect", "::ffff:127.0.0.1", port}, local)));
    EXPECT_TRUE(worked(bare({"connect", "127.0.0.1", port})));
    EXPECT_TRUE(denied(inside({"connect", "127.0.0.1", port}), "EACCES"));
    EXPECT_TRUE(worked(inside({"own_server", "127.0.0.1"}, local)));
    EXPECT_TRUE(worked(inside({"own_server", "127.0.0.2"}, local)));
    EXPECT_TRUE(worked(inside({"own_server", "::1"}, local)));
}

TEST_F(HostLoopback, abstract_names_of_the_host_are_out_of_reach) {
    EXPECT_TRUE(denied(inside({"connect_unix", abstract}), "ECONNREFUSED"));
    EXPECT_TRUE(denied(inside({"connect_unix", abstract}, {"--net", "local"}), "ECONNREFUSED"));
    EXPECT_TRUE(worked(bare({"connect_unix", abstract})));
    EXPECT_TRUE(worked(inside({"own_unix", "@own"})));
    EXPECT_TRUE(denied(inside({"own_unix", "@own"}, {"--net", "sealed"}), "EACCES"));
    EXPECT_TRUE(worked(inside({"pair"}, {"--net", "sealed"})));
}

TEST_F(HostLoopback, there_is_no_way_out) {
    const words local{"--net", "local"};
    for (const std::string to :
         {"192.0.2.1", "198.51.100.1", "169.254.169.254", "10.0.0.1", "2001:db8::1", "fd00::1"}) {
        EXPECT_TRUE(denied(inside({"connect", to, "80"}, local), "ENETUNREACH")) << to;
        EXPECT_TRUE(denied(inside({"send", to, "53"}, local), "ENETUNREACH")) << to;
        EXPECT_TRUE(denied(inside({"send", to, "53"}), "EACCES")) << to;
    }
    for (const words& tier : {words{}, local}) {
        EXPECT_TRUE(denied(inside({"routes"}, tier), "none"));
        EXPECT_TRUE(denied(inside({"interfaces"}, tier), "1"));
    }
    EXPECT_TRUE(worked(inside({"send", "127.0.0.1", "53"}, local)));
    EXPECT_TRUE(worked(bare({"send", "127.0.0.1", "53"})));
}

} // namespace
} // namespace glove::test
