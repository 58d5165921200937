// A real `glove-egress` with a test for a supervisor and a test for a bridge, and servers for it to
// reach.
//
// Guarantees: a read that gets nothing fails after seconds instead of hanging; the process is
// reaped.
#pragma once
#include "net/bridge_protocol.hpp"
#include "net/egress_protocol.hpp"
#include <algorithm>
#include <arpa/inet.h>
#include <condition_variable>
#include <cstring>
#include <fcntl.h>
#include <glove/sys/spawn.hpp>
#include <gtest/gtest.h>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

namespace glove::test {

using net::egress_news;
using net::egress_reason;

constexpr int patience_ms = 30'000; // of a busy machine

inline void need(bool good, const char* what) {
    if (!good) throw std::runtime_error(std::string{what} + ": " + std::strerror(errno));
}

// One end of a TCP connection, read with patience.
class wire_end {
public:
    wire_end() = default;
    explicit wire_end(sys::unique_fd fd) : fd_{std::move(fd)} {
        const ::timeval patience{patience_ms / 1000, 0};
        (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    }
    void send(std::string_view bytes) const {
        while (!bytes.empty()) {
            const auto put = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (put <= 0) return; // what comes back tells why
            bytes.remove_prefix(static_cast<std::size_t>(put));
        }
    }
    // Exactly so many bytes, or what came before the end; "<reset>" and "<nothing>" for errors.
    [[nodiscard]] auto read(std::size_t size) const -> std::string {
        std::string out(size, '\0');
        std::size_t have = 0;
        while (have < size) {
            const auto got = ::recv(fd_.get(), out.data() + have, size - have, 0);
            if (got < 0) {
                out.resize(have);
                return out + (errno == ECONNRESET ? "<reset>" : "<nothing>");
            }
            if (got == 0) break;
            have += static_cast<std::size_t>(got);
        }
        out.resize(have);
        return out;
    }
    [[nodiscard]] auto rest() const -> std::string {
        std::string out;
        for (;;) {
            const auto part = read(4096);
            out += part;
            if (part.size() != 4096 || part.ends_with("<nothing>")) return out;
        }
    }
    [[nodiscard]] auto head() const -> std::string {
        std::string out;
        while (!out.ends_with("\r\n\r\n")) {
            const auto part = read(1);
            out += part;
            if (part.size() != 1) break;
        }
        return out;
    }
    [[nodiscard]] auto is_quiet(int milliseconds) const -> bool {
        ::pollfd source{fd_.get(), POLLIN, 0};
        return ::poll(&source, 1, milliseconds) == 0;
    }
    void end_sending() const { (void)::shutdown(fd_.get(), SHUT_WR); }
    void reset() {
        const ::linger now{1, 0};
        (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
        fd_ = {};
    }
    void close() { fd_ = {}; }
    [[nodiscard]] auto fd() const -> int { return fd_.get(); }

private:
    sys::unique_fd fd_;
};

class tcp_server {
public:
    explicit tcp_server(std::uint16_t port = 0, std::uint32_t address = INADDR_LOOPBACK)
        : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        const int on = 1;
        (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        ::sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(port);
        at.sin_addr.s_addr = htonl(address);
        need(::bind(fd_.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at) == 0, "bind");
        need(::listen(fd_.get(), 1024) == 0, "listen");
        ::socklen_t size = sizeof at;
        need(::getsockname(fd_.get(), reinterpret_cast<::sockaddr*>(&at), &size) == 0, "name");
        port_ = ntohs(at.sin_port);
    }
    [[nodiscard]] auto port() const -> std::uint16_t { return port_; }
    [[nodiscard]] auto text() const -> std::string { return std::to_string(port_); }
    [[nodiscard]] auto accept() const -> wire_end {
        ::pollfd source{fd_.get(), POLLIN, 0};
        need(::poll(&source, 1, patience_ms) == 1, "no connection came");
        return wire_end{sys::unique_fd{::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)}};
    }
    [[nodiscard]] auto got_connection(int milliseconds = 0) const -> bool {
        ::pollfd source{fd_.get(), POLLIN, 0};
        return ::poll(&source, 1, milliseconds) == 1;
    }
    [[nodiscard]] auto release() -> sys::unique_fd { return std::move(fd_); }

private:
    sys::unique_fd fd_;
    std::uint16_t port_ = 0;
};

[[nodiscard]] inline auto connect_to(std::uint16_t port, std::uint32_t address = INADDR_LOOPBACK)
    -> wire_end {
    sys::unique_fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(address);
    need(::connect(fd.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at) == 0, "connect");
    return wire_end{std::move(fd)};
}

struct tcp_pair {
    wire_end client, accepted;
};
[[nodiscard]] inline auto connected_pair() -> tcp_pair {
    const tcp_server server;
    auto client = connect_to(server.port());
    return {std::move(client), server.accept()};
}

// Passes any descriptors with any message.
inline auto pass(int channel, const net::bridge_message& message, const std::vector<int>& numbers)
    -> bool {
    ::iovec part{const_cast<net::bridge_message*>(&message), sizeof message};
    std::vector<char> control(CMSG_SPACE(sizeof(int) * std::max<std::size_t>(numbers.size(), 1)));
    ::msghdr head{};
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    if (!numbers.empty()) {
        head.msg_control = control.data();
        head.msg_controllen = control.size();
        auto* const first = CMSG_FIRSTHDR(&head);
        first->cmsg_level = SOL_SOCKET;
        first->cmsg_type = SCM_RIGHTS;
        first->cmsg_len = CMSG_LEN(sizeof(int) * numbers.size());
        std::memcpy(CMSG_DATA(first), numbers.data(), sizeof(int) * numbers.size());
    }
    return ::sendmsg(channel, &head, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message);
}

struct scene_options {
    std::vector<std::string> rules = {};
    net::proxy_limits limits = {};
    std::vector<std::uint16_t> published = {};
    bool with_listener = false;
    bool records = true; // answers every intent with "recorded"
};

class proxy_scene {
public:
    explicit proxy_scene(scene_options options) : records_{options.records} {
        int control[2];
        int bridge[2];
        need(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0, "socketpair");
        need(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, bridge) == 0, "socketpair");
        control_ = sys::unique_fd{control[0]};
        bridge_ = sys::unique_fd{bridge[0]};
        const sys::unique_fd their_control{control[1]};
        const sys::unique_fd their_bridge{bridge[1]};
        int errors[2];
        need(::pipe2(errors, O_CLOEXEC | O_NONBLOCK) == 0, "pipe");
        errors_ = sys::unique_fd{errors[0]};
        const sys::unique_fd their_errors{errors[1]};
        auto sealed = net::seal({.rules = options.rules,
                                 .published = options.published,
                                 .token = std::string{token},
                                 .limits = options.limits});
        need(sealed.has_value(), "seal");
        sys::spawn_request request{.program = GLOVE_EGRESS,
                                   .arguments = {"glove-egress"},
                                   .environment = {},
                                   .descriptors = {{2, their_errors},
                                                   {net::egress_control, their_control},
                                                   {net::egress_settings, *sealed},
                                                   {net::egress_bridge, their_bridge}}};
        sys::unique_fd listener;
        if (options.with_listener) {
            tcp_server door;
            door_port_ = door.port();
            listener = door.release();
            request.descriptors.push_back({net::egress_listener, listener});
        }
        auto child = sys::spawn(request);
        need(child.has_value(), "spawn");
        process_.emplace(std::move(*child));
        reader_ = std::thread{[this] { read(); }};
        const auto told = wait_for([](const auto& r) {
            return r.what == egress_news::ready || r.what == egress_news::failed;
        });
        if (told) return;
        end_reading();
        need(false, "not ready");
    }
    proxy_scene(const proxy_scene&) = delete;
    auto operator=(const proxy_scene&) -> proxy_scene& = delete;
    ~proxy_scene() { end_reading(); }

    static constexpr std::string_view token =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    // A new connection to the proxy, as a program inside makes it.
    [[nodiscard]] auto open() -> wire_end {
        auto pair = connected_pair();
        net::bridge_message message{};
        message.what = net::bridge_news::proxy;
        need(pass(bridge_.get(), message, {pair.accepted.fd()}), "pass");
        return std::move(pair.client);
    }
    [[nodiscard]] auto open_named(std::string_view name, std::uint16_t port) -> wire_end {
        auto pair = connected_pair();
        net::bridge_message message{};
        message.what = net::bridge_news::named;
        message.port = port;
        message.name_size = static_cast<std::uint8_t>(name.size());
        std::ranges::copy(name, message.name.begin());
        need(pass(bridge_.get(), message, {pair.accepted.fd()}), "pass");
        return std::move(pair.client);
    }
    [[nodiscard]] auto open_listener() const -> wire_end { return connect_to(door_port_); }
    // A connection through CONNECT, past the answer.
    [[nodiscard]] auto tunnel(const std::string& where) -> wire_end {
        auto client = open();
        client.send("CONNECT " + where + " HTTP/1.1\r\nHost: " + where + "\r\n\r\n");
        const auto answer = client.head();
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
        return client;
    }
    // What the proxy answers to these bytes, to its end.
    [[nodiscard]] auto ask(std::string_view bytes) -> std::string {
        auto client = open();
        client.send(bytes);
        return client.rest();
    }

    template<class Test> auto wait_for(Test test) -> std::optional<net::egress_report> {
        std::unique_lock lock{mutex_};
        std::optional<net::egress_report> found;
        changed_.wait_for(lock, std::chrono::milliseconds{patience_ms}, [&] {
            for (const auto& each : reports_)
                if (test(each)) found = each;
            return found.has_value() || ended_;
        });
        return found;
    }
    [[nodiscard]] auto outcome() -> std::optional<net::egress_report> {
        return wait_for([](const auto& r) { return r.what == egress_news::outcome; });
    }
    [[nodiscard]] auto refusal() -> std::optional<net::egress_report> {
        return wait_for([](const auto& r) { return r.what == egress_news::refused; });
    }
    [[nodiscard]] auto count(egress_news what) -> std::size_t {
        const std::scoped_lock lock{mutex_};
        return static_cast<std::size_t>(
            std::ranges::count(reports_, what, &net::egress_report::what));
    }
    [[nodiscard]] auto wait_for_count(egress_news what, std::size_t wanted) -> bool {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, std::chrono::milliseconds{patience_ms}, [&] {
            return static_cast<std::size_t>(
                       std::ranges::count(reports_, what, &net::egress_report::what)) >= wanted;
        });
    }
    [[nodiscard]] auto said() const -> std::string {
        char text[4096];
        const auto got = ::read(errors_.get(), text, sizeof text);
        return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
    }
    [[nodiscard]] auto bridge() const -> int { return bridge_.get(); }
    [[nodiscard]] auto control() const -> int { return control_.get(); }
    [[nodiscard]] auto process() -> sys::child_process& { return *process_; }
    // Its number in /proc.
    [[nodiscard]] auto number() const -> std::string {
        const auto info = "/proc/self/fdinfo/" + std::to_string(process_->descriptor().get());
        const auto text = sys_text(info);
        const auto at = text.find("Pid:\t") + 5;
        return text.substr(at, text.find('\n', at) - at);
    }
    [[nodiscard]] static auto sys_text(const std::string& path) -> std::string {
        const sys::unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
        char text[16384];
        const auto got = ::read(file.get(), text, sizeof text);
        return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
    }

private:
    void end_reading() {
        (void)::shutdown(control_.get(), SHUT_RDWR);
        reader_.join();
    }

    void read() {
        for (;;) {
            std::array<std::byte, sizeof(net::egress_message) + 1> bytes{};
            const auto got = ::recv(control_.get(), bytes.data(), bytes.size(), 0);
            const std::scoped_lock lock{mutex_};
            if (got <= 0) {
                ended_ = true;
                changed_.notify_all();
                return;
            }
            auto news = net::read_news(std::span{bytes}.first(static_cast<std::size_t>(got)));
            if (!news) {
                ADD_FAILURE() << "a message that the supervisor refuses";
                continue;
            }
            if (news->what == egress_news::intent) {
                const net::egress_order order{
                    records_ ? net::egress_word::recorded : net::egress_word::refused, news->id};
                (void)::send(control_.get(), &order, sizeof order, MSG_NOSIGNAL);
            }
            reports_.push_back(*std::move(news));
            changed_.notify_all();
        }
    }

    sys::unique_fd control_, bridge_, errors_;
    std::optional<sys::child_process> process_;
    std::thread reader_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<net::egress_report> reports_;
    bool ended_ = false;
    bool records_;
    std::uint16_t door_port_ = 0;
};

} // namespace glove::test
