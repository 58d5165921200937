// What is given as a stream: a socket that reaches further than its peer, a disk and the host's own
// null device do not come inside with it.
#include "agents/scene.hpp"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

namespace glove::test {
namespace {

class Given : public Scene {
protected:
    ~Given() override {
        for (const int fd : opened_) ::close(fd);
    }
    [[nodiscard]] auto keep(int fd) -> int {
        EXPECT_GE(fd, 0);
        opened_.push_back(fd);
        return fd;
    }
    [[nodiscard]] auto socket(int domain, int type) -> int {
        return keep(::socket(domain, type | SOCK_CLOEXEC, 0));
    }
    [[nodiscard]] auto pair(int type) -> std::array<int, 2> {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()), 0);
        return {keep(ends[0]), keep(ends[1])};
    }
    // A service of the host on the loopback; its port.
    [[nodiscard]] auto serve(int type) -> std::string {
        ::sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof at;
        const int server = socket(AF_INET, type);
        auto* const address = reinterpret_cast<::sockaddr*>(&at);
        EXPECT_EQ(::bind(server, address, size), 0);
        if (type == SOCK_STREAM) {
            EXPECT_EQ(::listen(server, 4), 0);
        }
        EXPECT_EQ(::getsockname(server, address, &size), 0);
        return std::to_string(ntohs(at.sin_port));
    }
    // The same with a name.
    [[nodiscard]] auto serve_unix(const std::string& name, int type) -> int {
        ::sockaddr_un at{};
        at.sun_family = AF_UNIX;
        name.copy(at.sun_path, sizeof at.sun_path - 1);
        const int server = socket(AF_UNIX, type);
        EXPECT_EQ(::bind(server, reinterpret_cast<const ::sockaddr*>(&at), sizeof at), 0);
        if (type == SOCK_STREAM) {
            EXPECT_EQ(::listen(server, 4), 0);
        }
        return server;
    }
    // As each of the three streams, and nothing ran.
    void expect_refused(int given, const std::string& what) const {
        constexpr std::array names{"standard input", "standard output", "standard error"};
        for (const int stream : {0, 1, 2}) {
            auto asked = inside_command({"create", workspace + "/ran"});
            asked.before_exec = [given, stream] { (void)::dup2(given, stream); };
            const auto seen = run(asked);
            if (stream == 2) { // the words went there, and may have found no reader
                EXPECT_TRUE(seen.status() == 125 || seen.status() == 128 + SIGPIPE) << what << seen;
                continue;
            }
            EXPECT_EQ(seen.status(), 125) << what << seen;
            const auto words =
                "exec.streams: " + std::string{names.at(static_cast<std::size_t>(stream))};
            EXPECT_NE(seen.errors.find(words), std::string::npos) << what << seen;
        }
        EXPECT_FALSE(std::filesystem::exists(workspace + "/ran")) << what;
    }
    [[nodiscard]] auto bare_with(int given, const words& attack) const -> outcome {
        return judged(run({.argv = words{hostile_binary} + attack,
                           .environment = environment_in(home),
                           .standard_input = given,
                           .directory = workspace}));
    }

private:
    std::vector<int> opened_;
};

TEST_F(Given, sockets_that_reach_further_than_their_peer_are_refused) {
    const auto name = elsewhere + "/service.sock";
    const auto post = elsewhere + "/post.sock";
    const int service = serve_unix(name, SOCK_STREAM);
    (void)serve_unix(post, SOCK_DGRAM);
    const auto tcp = serve(SOCK_STREAM);
    const auto udp = serve(SOCK_DGRAM);
    for (const auto& [given, attack] : std::vector<std::pair<int, words>>{
             {socket(AF_INET, SOCK_STREAM), {"connect_by_stream", "127.0.0.1", tcp}},
             {socket(AF_INET, SOCK_DGRAM), {"send_by_stream", "127.0.0.1", udp}},
             {pair(SOCK_DGRAM)[0], {"send_by_stream_unix", post}},
             {socket(AF_UNIX, SOCK_STREAM), {"connect_by_stream_unix", name}}}) {
        expect_refused(given, attack[0]);
        EXPECT_TRUE(worked(bare_with(given, attack))) << attack[0];
    }
    expect_refused(socket(AF_INET6, SOCK_STREAM), "IPv6");
    expect_refused(service, "a socket that listens");
    expect_refused(pair(SOCK_SEQPACKET)[0], "a pair of another type");
}

TEST_F(Given, a_connected_tcp_socket_is_refused_too) {
    const auto port = serve(SOCK_STREAM);
    const int connected = socket(AF_INET, SOCK_STREAM);
    ::sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
    ASSERT_EQ(::connect(connected, reinterpret_cast<const ::sockaddr*>(&to), sizeof to), 0);
    expect_refused(connected, "a connection");
}

TEST_F(Given, a_connected_pair_works_in_both_directions) {
    const auto ends = pair(SOCK_STREAM);
    ASSERT_EQ(::write(ends[1], "words\n", 6), 6);
    auto asked = glove_exec(home, {}, {"sh", "-c", "read -r line; echo \"got $line\""});
    asked.before_exec = [&] {
        for (const int stream : {0, 1}) (void)::dup2(ends[0], stream);
    };
    EXPECT_EQ(run(asked).status(), 0);
    std::array<char, 64> answer{};
    const auto got = ::recv(ends[1], answer.data(), answer.size(), MSG_DONTWAIT);
    EXPECT_EQ(std::string(answer.data(), static_cast<std::size_t>(std::max<::ssize_t>(got, 0))),
              "got words\n");
}

// Opened for reading and never read. Only root may, and only where there is one.
TEST_F(Given, a_disk_is_refused) {
    for (const auto& node : std::filesystem::directory_iterator{"/dev"}) {
        std::error_code ignored;
        if (!node.is_block_file(ignored)) continue;
        const int disk = ::open(node.path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (disk < 0) continue;
        expect_refused(keep(disk), node.path());
        return;
    }
    std::cout << "there is no disk that this user may open\n";
}

// A node of the test's own: the same device, so that an attack that works changes no other.
TEST_F(Given, the_null_device_of_the_host_is_not_the_one_inside) {
    if (!is_root()) return; // nobody else owns a device, or may change it
    const auto node = elsewhere + "/null";
    ASSERT_EQ(::mknod(node.c_str(), S_IFCHR | 0600, ::makedev(1, 3)), 0);
    const auto look = [&] {
        struct ::stat found{};
        EXPECT_EQ(::stat(node.c_str(), &found), 0);
        return found;
    };
    for (const int how : {O_RDONLY, O_RDWR}) {
        const int given = keep(::open(node.c_str(), how | O_CLOEXEC));
        const auto before = look();
        auto asked = inside_command({"change_mode_of_stream", "0644"});
        asked.standard_input = given;
        EXPECT_TRUE(denied(judged(run(asked)), "EROFS"));
        const auto after = look();
        EXPECT_EQ(after.st_mode, before.st_mode);
        EXPECT_EQ(after.st_ctim.tv_sec, before.st_ctim.tv_sec);
        EXPECT_EQ(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
        EXPECT_TRUE(worked(bare_with(given, {"change_mode_of_stream", "0644"})));
        EXPECT_NE(look().st_mode, before.st_mode);
        ASSERT_EQ(::chmod(node.c_str(), 0600), 0);
    }
    auto asked = glove_exec(home, {}, {"sh", "-c", "cat; echo read"});
    asked.standard_input = keep(::open(node.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(run(asked).output, "read\n");
}

} // namespace
} // namespace glove::test
