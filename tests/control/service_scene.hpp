// A server that runs, and clients that behave or do not.
#pragma once
#include <arpa/inet.h>
#include <chrono>
#include <cstring>
#include <functional>
#include <glove/control/runtime_directory.hpp>
#include <glove/control/server.hpp>
#include <gtest/gtest.h>
#include <mutex>
#include <poll.h>
#include <string>
#include <string_view>
#include <support/folder.hpp>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <vector>

namespace glove::test {

using namespace std::chrono_literals;

inline void expect_ok(const auto& outcome) {
    if (!outcome)
        ADD_FAILURE() << outcome.error().step << ": " << outcome.error().detail << " ("
                      << outcome.error().os << ")";
}

class kept_log final : public control::service_log {
public:
    void write(const control::log_event& event) override {
        const std::lock_guard held{lock_};
        text_ += control::line_of(event, 0);
    }
    [[nodiscard]] auto text() -> std::string {
        const std::lock_guard held{lock_};
        return text_;
    }

private:
    std::mutex lock_;
    std::string text_;
};

// A descriptor that a client has, from the path of a socket.
inline auto connected(const std::string& path) -> sys::unique_fd {
    sys::unique_fd out{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(out.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address) != 0)
        return {};
    return out;
}
inline auto framed(std::string_view body) -> std::string {
    const auto size = ::htonl(static_cast<std::uint32_t>(body.size()));
    std::string out(reinterpret_cast<const char*>(&size), sizeof size);
    return out.append(body);
}
// How many bytes went out.
inline auto put(sys::fd_ref to, std::string_view bytes) -> std::size_t {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
        const auto n = ::send(to.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
    }
    return sent;
}
// To the end, or for as long as it may take.
inline auto all_of(sys::fd_ref from, std::chrono::milliseconds most = 10s) -> std::string {
    std::string out;
    char part[65536];
    const auto until = std::chrono::steady_clock::now() + most;
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            until - std::chrono::steady_clock::now());
        ::pollfd one{.fd = from.get(), .events = POLLIN, .revents = 0};
        if (left <= 0ms || ::poll(&one, 1, static_cast<int>(left.count())) <= 0)
            return out + "[still open]";
        const auto got = ::recv(from.get(), part, sizeof part, 0);
        if (got <= 0) return out;
        out.append(part, static_cast<std::size_t>(got));
    }
}
// The body of the one answer, or what there was instead.
inline auto answer_on(sys::fd_ref from, std::chrono::milliseconds most = 10s) -> std::string {
    auto bytes = all_of(from, most);
    if (bytes.size() < 4) return "[no answer]" + bytes;
    std::uint32_t size = 0;
    bytes.copy(reinterpret_cast<char*>(&size), 4);
    bytes.erase(0, 4);
    return bytes.size() == ::ntohl(size) ? bytes : "[bad frame]" + bytes;
}

class running_server {
public:
    explicit running_server(control::answerer& by, control::server_settings how = {})
        : directory_{*control::runtime_directory::open(folder_.path())} {
        auto listener = directory_.listen();
        expect_ok(listener);
        auto made = control::server::open(*std::move(listener), how, by, clock_, log_);
        expect_ok(made);
        server_ = *std::move(made);
        stop_ = sys::unique_fd{::eventfd(0, EFD_CLOEXEC)};
        thread_ = std::thread{[this] { ended_ = server_->run(stop_); }};
    }
    ~running_server() {
        if (thread_.joinable()) (void)stop();
    }
    auto stop() -> result<control::ending> {
        const std::uint64_t once = 1;
        EXPECT_EQ(::write(stop_.get(), &once, sizeof once), 8);
        thread_.join();
        server_.reset();
        return ended_;
    }
    [[nodiscard]] auto socket() const -> std::string { return folder_.path() + "/gloved.sock"; }
    [[nodiscard]] auto client() const -> sys::unique_fd {
        auto out = connected(socket());
        EXPECT_TRUE(out) << std::strerror(errno);
        return out;
    }
    [[nodiscard]] auto ask(std::string_view body) const -> std::string {
        const auto one = client();
        EXPECT_EQ(put(one, framed(body)), body.size() + 4);
        return answer_on(one);
    }
    [[nodiscard]] auto log() -> std::string { return log_.text(); }
    [[nodiscard]] auto directory() const -> const std::string& { return folder_.path(); }

private:
    folder folder_;
    control::runtime_directory directory_;
    kept_log log_;
    sys::system_clock clock_;
    std::unique_ptr<control::server> server_;
    sys::unique_fd stop_;
    std::thread thread_;
    result<control::ending> ended_;
};

// Until `so`, or for ten seconds.
inline auto becomes(const std::function<bool()>& so) -> bool {
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (!so()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(5ms);
    }
    return true;
}

} // namespace glove::test
