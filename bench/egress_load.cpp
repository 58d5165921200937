// A server and a client that load a path of TCP connections, and a relay to compare with.
//
//   egress_load serve                   prints its port; serves until it is ended
//   egress_load client PORT [TARGET]    to 127.0.0.1:PORT; with TARGET that is an HTTP proxy, which
//                                       is asked for TARGET
//   egress_load relay PORT              prints its port; leads to 127.0.0.1:PORT by splice
//
// The client takes commands from its standard input, a line each, and answers with a line of JSON:
//
//   up STREAMS SECONDS       bytes a second that arrive at the server
//   down STREAMS SECONDS     bytes a second that arrive at the client
//   fresh AT-ONCE COUNT      connections, each with one request of 64 bytes and its answer
//   kept COUNT               such requests on one connection
//   hold COUNT, release      connections that are open and on which nothing moves
//
// Everything ends with its starter. A connection that fails ends the client with a message: a
// figure of something that failed is no figure.
#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

constexpr std::size_t chunk_bytes = 128UL * 1024;
constexpr std::size_t request_bytes = 64;
constexpr double warm_up_seconds = 0.3;

// The first byte of a connection says what it is for.
constexpr char for_echo = 'e', for_sink = 's', for_source = 'd', for_count = 'q';

// What the server has received for `for_sink`, and when that was read.
struct reading {
    std::uint64_t bytes = 0;
    std::int64_t nanoseconds = 0;
};

[[noreturn]] void die(const std::string& what) {
    (void)std::fprintf(stderr, "egress_load: %s: %s\n", what.c_str(), std::strerror(errno));
    std::_Exit(1);
}

[[nodiscard]] auto now() -> std::int64_t {
    return std::chrono::nanoseconds(clock_type::now().time_since_epoch()).count();
}

[[nodiscard]] auto loopback(std::uint16_t port) -> ::sockaddr_in {
    ::sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(port);
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return out;
}

void set_no_delay(int fd) {
    const int on = 1;
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Listens on a free port and prints it.
[[nodiscard]] auto listen_and_tell() -> int {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    auto where = loopback(0);
    ::socklen_t size = sizeof where;
    auto* const generic = reinterpret_cast<::sockaddr*>(&where);
    if (fd < 0 || ::bind(fd, generic, size) != 0 || ::listen(fd, 4096) != 0 ||
        ::getsockname(fd, generic, &size) != 0)
        die("listening");
    (void)std::printf("%d\n", ntohs(where.sin_port));
    (void)std::fflush(stdout);
    return fd;
}

[[nodiscard]] auto connect_to(std::uint16_t port, int flags = 0) -> int {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto where = loopback(port);
    if (fd < 0 || ::connect(fd, reinterpret_cast<const ::sockaddr*>(&where), sizeof where) != 0)
        die("connecting to port " + std::to_string(port));
    set_no_delay(fd);
    if (flags != 0) (void)::fcntl(fd, F_SETFL, flags);
    return fd;
}

void watch(int epoll, int fd, std::uint32_t events, void* about) {
    ::epoll_event event{};
    event.events = events;
    event.data.ptr = about;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
}

void send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (put <= 0) die("sending");
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
}

void receive_all(int fd, std::span<char> into) {
    while (!into.empty()) {
        const auto got = ::recv(fd, into.data(), into.size(), 0);
        if (got == 0) errno = ECONNRESET;
        if (got <= 0) die("receiving");
        into = into.subspan(static_cast<std::size_t>(got));
    }
}

// The server
// ----------

class server {
public:
    [[noreturn]] void run() {
        const int listener = listen_and_tell();
        watch(epoll_, listener, EPOLLIN, nullptr);
        for (;;) {
            std::array<::epoll_event, 64> ready{};
            const int count = ::epoll_wait(epoll_, ready.data(), ready.size(), -1);
            for (int i = 0; i < count; ++i) {
                auto* const one =
                    static_cast<connection*>(ready[static_cast<unsigned>(i)].data.ptr);
                if (one == nullptr) accept_all(listener);
                else if (!serve(*one)) end(one);
            }
        }
    }

private:
    struct connection {
        int fd = -1;
        char what = 0;
    };

    void accept_all(int listener) {
        for (;;) {
            const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (fd < 0) return;
            set_no_delay(fd);
            watch(epoll_, fd, EPOLLIN, new connection{.fd = fd});
        }
    }

    static void end(connection* one) {
        (void)::close(one->fd);
        delete one;
    }

    // False when it is over.
    [[nodiscard]] auto serve(connection& one) -> bool {
        if (one.what == for_source) {
            const auto put = ::send(one.fd, chunk_.data(), chunk_.size(), MSG_NOSIGNAL);
            return put > 0 || (put < 0 && errno == EAGAIN);
        }
        const auto got = ::recv(one.fd, chunk_.data(), chunk_.size(), 0);
        if (got < 0) return errno == EAGAIN;
        if (got == 0) return false;
        std::string_view bytes{chunk_.data(), static_cast<std::size_t>(got)};
        if (one.what == 0) {
            one.what = bytes.front();
            bytes.remove_prefix(1);
            if (one.what == for_source) {
                ::epoll_event event{};
                event.events = EPOLLOUT;
                event.data.ptr = &one;
                return ::epoll_ctl(epoll_, EPOLL_CTL_MOD, one.fd, &event) == 0;
            }
        }
        if (one.what == for_sink) sunk_ += bytes.size();
        if (one.what == for_count && !bytes.empty()) {
            const reading said{.bytes = sunk_, .nanoseconds = now()};
            return ::send(one.fd, &said, sizeof said, MSG_NOSIGNAL) == sizeof said;
        }
        if (one.what == for_echo && !bytes.empty())
            return ::send(one.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0;
        return true;
    }

    int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    std::vector<char> chunk_ = std::vector<char>(chunk_bytes);
    std::uint64_t sunk_ = 0;
};

// The relay
// ---------

// Two sockets and a pipe for each direction, moved by one thread: what a relay in the middle costs
// that does nothing else.
class splicer {
public:
    explicit splicer(std::uint16_t port) : port_{port} {}

    [[noreturn]] void run() {
        const int listener = listen_and_tell();
        watch(epoll_, listener, EPOLLIN, nullptr);
        for (;;) {
            std::array<::epoll_event, 64> ready{};
            const int count = ::epoll_wait(epoll_, ready.data(), ready.size(), -1);
            for (int i = 0; i < count; ++i) {
                const auto& event = ready[static_cast<unsigned>(i)];
                auto* const one = static_cast<side*>(event.data.ptr);
                if (one == nullptr) accept_all(listener);
                else if (!one->both->over) advance(*one->both);
            }
            std::erase_if(pairs_, [](const auto& each) { return each->over; });
        }
    }

private:
    struct pair;
    struct side {
        pair* both = nullptr;
        int fd = -1;
        std::array<int, 2> pipe{-1, -1}; // of what it sends
        std::size_t held = 0;
        bool ended = false;
    };
    struct pair {
        std::array<side, 2> sides{};
        bool over = false;
        pair() = default;
        pair(const pair&) = delete;
        auto operator=(const pair&) -> pair& = delete;
        ~pair() {
            for (const auto& each : sides)
                for (const int fd : {each.fd, each.pipe[0], each.pipe[1]}) (void)::close(fd);
        }
    };

    void accept_all(int listener) {
        for (;;) {
            const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (fd < 0) return;
            set_no_delay(fd);
            auto both = std::make_unique<pair>();
            both->sides[0].fd = fd;
            both->sides[1].fd = connect_to(port_, O_NONBLOCK);
            for (auto& each : both->sides) {
                each.both = both.get();
                if (::pipe2(each.pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) die("pipe2");
                (void)::fcntl(each.pipe[1], F_SETPIPE_SZ, 256 * 1024);
                watch(epoll_, each.fd, EPOLLIN | EPOLLOUT | EPOLLET, &each);
            }
            pairs_.push_back(std::move(both));
        }
    }

    static void advance(pair& both) {
        move(both, both.sides[0], both.sides[1]);
        if (!both.over) move(both, both.sides[1], both.sides[0]);
        both.over = both.over || (both.sides[0].ended && both.sides[1].ended);
    }

    static void move(pair& both, side& from, const side& to) {
        constexpr unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
        while (!from.ended) {
            if (from.held == 0) {
                const auto got =
                    ::splice(from.fd, nullptr, from.pipe[1], nullptr, 1024UL * 1024, flags);
                if (got < 0 && errno == EAGAIN) return;
                if (got < 0) both.over = true;
                if (got == 0) (void)::shutdown(to.fd, SHUT_WR);
                if (got <= 0) from.ended = true;
                else from.held = static_cast<std::size_t>(got);
                continue;
            }
            const auto put = ::splice(from.pipe[0], nullptr, to.fd, nullptr, from.held, flags);
            if (put < 0 && errno == EAGAIN) return;
            if (put < 0) both.over = from.ended = true;
            else from.held -= static_cast<std::size_t>(put);
        }
    }

    std::uint16_t port_;
    int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    std::vector<std::unique_ptr<pair>> pairs_{};
};

// The client
// ----------

[[nodiscard]] auto percentile(std::vector<double>& values, double share) -> double {
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

class client {
public:
    client(std::uint16_t port, std::string target) : port_{port}, target_{std::move(target)} {}

    void run() {
        for (std::string line; std::getline(std::cin, line);) {
            std::istringstream words{line};
            std::string what;
            double first = 0, second = 0;
            words >> what >> first >> second;
            if (what == "up" || what == "down")
                measure_streams(what == "up", static_cast<unsigned>(first), second);
            else if (what == "fresh")
                measure_fresh(static_cast<unsigned>(first), static_cast<unsigned>(second));
            else if (what == "kept") measure_kept(static_cast<unsigned>(first));
            else if (what == "hold") hold(static_cast<unsigned>(first));
            else if (what == "release") release();
            else die("what is " + line + "?");
            (void)std::fflush(stdout);
        }
    }

private:
    [[nodiscard]] auto open() const -> int {
        const int fd = connect_to(port_);
        if (target_.empty()) return fd;
        send_all(fd, "CONNECT " + target_ + " HTTP/1.1\r\nHost: " + target_ + "\r\n\r\n");
        std::string answer;
        while (!answer.ends_with("\r\n\r\n")) {
            std::array<char, 1> byte{};
            std::array<char, 512> some{};
            const auto seen = ::recv(fd, some.data(), some.size(), MSG_PEEK);
            if (seen <= 0) receive_all(fd, byte);
            // What follows the header is the server's.
            const std::string_view bytes{some.data(), static_cast<std::size_t>(seen)};
            const auto end = bytes.find("\r\n\r\n");
            const auto take = end == std::string_view::npos ? bytes.size() : end + 4;
            receive_all(fd, std::span{some}.first(take));
            answer.append(some.data(), take);
        }
        if (answer.find(" 200 ") == std::string::npos) die(answer);
        return fd;
    }

    void measure_streams(bool up, unsigned count, double seconds) {
        const int counter = up ? open() : -1;
        if (up) send_all(counter, std::string_view{&for_count, 1});
        std::vector<int> fds;
        for (unsigned i = 0; i < count; ++i) {
            const int fd = open();
            send_all(fd, std::string_view{up ? &for_sink : &for_source, 1});
            fds.push_back(fd);
        }
        std::atomic<std::uint64_t> received = 0;
        std::jthread mover{[&](const std::stop_token& stop) { move(stop, up, fds, received); }};
        const auto read = [&] {
            reading out{.bytes = received.load(), .nanoseconds = now()};
            if (up) {
                send_all(counter, "?");
                receive_all(counter, {reinterpret_cast<char*>(&out), sizeof out});
            }
            return out;
        };
        std::this_thread::sleep_for(std::chrono::duration<double>(warm_up_seconds));
        const auto begin = read();
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        const auto end = read();
        mover.request_stop();
        mover.join();
        for (const int fd : fds) (void)::close(fd);
        if (up) (void)::close(counter);
        (void)std::printf("{\"bytes_a_second\":%.0f}\n",
                          static_cast<double>(end.bytes - begin.bytes) * 1e9 /
                              static_cast<double>(end.nanoseconds - begin.nanoseconds));
    }

    static void move(const std::stop_token& stop, bool up, const std::vector<int>& fds,
                     std::atomic<std::uint64_t>& received) {
        const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
        std::vector<char> chunk(chunk_bytes);
        for (const int& fd : fds) {
            (void)::fcntl(fd, F_SETFL, O_NONBLOCK);
            watch(epoll, fd, up ? EPOLLOUT : EPOLLIN, const_cast<int*>(&fd));
        }
        while (!stop.stop_requested()) {
            std::array<::epoll_event, 64> ready{};
            const int count = ::epoll_wait(epoll, ready.data(), ready.size(), 50);
            for (int i = 0; i < count; ++i) {
                const int fd = *static_cast<int*>(ready[static_cast<unsigned>(i)].data.ptr);
                const auto moved = up ? ::send(fd, chunk.data(), chunk.size(), MSG_NOSIGNAL)
                                      : ::recv(fd, chunk.data(), chunk.size(), 0);
                if (moved > 0 && !up) received += static_cast<std::uint64_t>(moved);
                if (moved == 0) errno = ECONNRESET;
                if (moved == 0 || (moved < 0 && errno != EAGAIN)) die("a stream");
            }
        }
        (void)::close(epoll);
    }

    // A request on a new connection begins with what it is for, which is not echoed.
    static void ask(int fd, std::string_view request) {
        std::array<char, request_bytes> answer{};
        const auto echoed = request.size() - (request.front() == for_echo ? 1 : 0);
        send_all(fd, request);
        receive_all(fd, std::span{answer}.first(echoed));
    }

    void measure_fresh(unsigned at_once, unsigned count) const {
        const std::string request(request_bytes, for_echo);
        std::mutex lock;
        std::vector<double> took;
        std::atomic<unsigned> begun = 0;
        const auto begin = now();
        {
            std::vector<std::jthread> threads;
            for (unsigned i = 0; i < at_once; ++i)
                threads.emplace_back([&] {
                    std::vector<double> mine;
                    while (begun++ < count) {
                        const auto start = now();
                        const int fd = open();
                        ask(fd, request);
                        mine.push_back(static_cast<double>(now() - start) / 1000);
                        (void)::close(fd);
                    }
                    const std::scoped_lock held{lock};
                    took.insert(took.end(), mine.begin(), mine.end());
                });
        }
        tell_times(took, static_cast<double>(now() - begin) / 1e9);
    }

    void measure_kept(unsigned count) const {
        const int fd = open();
        ask(fd, std::string(request_bytes, for_echo));
        const std::string request(request_bytes, 'x');
        std::vector<double> took;
        const auto begin = now();
        for (unsigned i = 0; i < count; ++i) {
            const auto start = now();
            ask(fd, request);
            took.push_back(static_cast<double>(now() - start) / 1000);
        }
        (void)::close(fd);
        tell_times(took, static_cast<double>(now() - begin) / 1e9);
    }

    static void tell_times(std::vector<double>& took, double seconds) {
        (void)std::printf("{\"a_second\":%.1f,\"p50\":%.1f,\"p90\":%.1f}\n",
                          static_cast<double>(took.size()) / seconds, percentile(took, 0.5),
                          percentile(took, 0.9));
    }

    void hold(unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            held_.push_back(open());
            ask(held_.back(), std::string(request_bytes, for_echo));
        }
        (void)std::printf("{\"held\":%zu}\n", held_.size());
    }

    void release() {
        for (const int fd : held_) (void)::close(fd);
        held_.clear();
        (void)std::printf("{\"held\":0}\n");
    }

    std::uint16_t port_;
    std::string target_;
    std::vector<int> held_{};
};

void raise_descriptor_limit() {
    ::rlimit limit{};
    (void)::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

} // namespace

auto main(int argc, char** argv) -> int {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)::signal(SIGPIPE, SIG_IGN); // splice raises it
    raise_descriptor_limit();
    const std::vector<std::string_view> words{argv + 1, argv + argc};
    const auto port = [&](std::size_t at) {
        return static_cast<std::uint16_t>(std::stoul(std::string{words[at]}));
    };
    if (words.size() == 1 && words[0] == "serve") server{}.run();
    if (words.size() == 2 && words[0] == "relay") splicer{port(1)}.run();
    if (words.size() < 2 || words.size() > 3 || words[0] != "client") {
        errno = EINVAL;
        die("serve, client PORT [TARGET] or relay PORT");
    }
    client{port(1), words.size() == 3 ? std::string{words[2]} : std::string{}}.run();
    return 0;
}
