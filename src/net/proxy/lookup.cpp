// One name, one resolver: it reads the host's settings anew, so a change of them counts at once,
// and its query ids and ports are new.
//
// It asks the name service that the host's resolv.conf names, and /etc/hosts first.
#include "net/proxy/core.hpp"
#include <algorithm>
#include <ares.h>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>

namespace glove::net::proxy {

namespace {

constexpr int first_patience_ms = 1200; // for one server; doubles
constexpr int attempts = 3;
constexpr std::size_t most_addresses = 32;

class lookup : public std::enable_shared_from_this<lookup> {
public:
    explicit lookup(core& in) : in_{in}, bell_{in.io}, timer_{in.io} {}
    lookup(const lookup&) = delete;
    auto operator=(const lookup&) -> lookup& = delete;
    ~lookup() {
        if (channel_ != nullptr) ::ares_destroy(channel_);
    }

    [[nodiscard]] auto run(std::string name) -> awaitable<lookup_answer> {
        const auto self = shared_from_this();
        if (!open(name)) {
            done_ = true;
            answer_ = {.addresses = {},
                       .reason = egress_reason::lookup_failed,
                       .detail = "the resolver could not start"};
        } else {
            ::ares_addrinfo_hints hints{};
            hints.ai_family = AF_UNSPEC;
            hints.ai_socktype = SOCK_STREAM;
            give_up_at_ = std::chrono::steady_clock::now() + in_.limits.lookup;
            ::ares_getaddrinfo(channel_, name.c_str(), nullptr, &hints, &lookup::on_answer, this);
            arm();
        }
        while (!done_) co_await bell_.next();
        over_ = true;
        timer_.cancel();
        if (channel_ != nullptr) ::ares_destroy(std::exchange(channel_, nullptr));
        for (auto& [number, socket] : sockets_) release(*socket);
        sockets_.clear();
        co_return std::move(answer_);
    }

private:
    struct watched {
        watched(asio::io_context& io, int number) : waiter{io, number} {}
        asio::posix::stream_descriptor waiter;
        bool reads = false, writes = false;    // wanted
        bool reading = false, writing = false; // waited for
    };
    using watched_ptr = std::shared_ptr<watched>;

    [[nodiscard]] auto open(const std::string& name) -> bool {
        ::ares_options options{};
        // Search domains are for short names: a full one must not become another.
        int given = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
        if (name.contains('.')) given |= ARES_OPT_DOMAINS; // none
        options.timeout = first_patience_ms;
        options.tries = attempts;
        options.sock_state_cb = &lookup::on_socket;
        options.sock_state_cb_data = this;
        if (::ares_init_options(&channel_, &options, given) == ARES_SUCCESS) return true;
        channel_ = nullptr;
        return false;
    }

    static void on_socket(void* data, ares_socket_t number, int reads, int writes) {
        static_cast<lookup*>(data)->watch(number, reads != 0, writes != 0);
    }
    static void on_answer(void* data, int status, int /*timeouts*/, ::ares_addrinfo* found) {
        static_cast<lookup*>(data)->take(status, found);
    }

    void watch(int number, bool reads, bool writes) {
        const auto at = sockets_.find(number);
        if (!reads && !writes) { // it is being closed, by its owner
            if (at != sockets_.end()) {
                release(*at->second);
                sockets_.erase(at);
            }
            return;
        }
        auto socket = at != sockets_.end() ? at->second : std::make_shared<watched>(in_.io, number);
        sockets_[number] = socket;
        socket->reads = reads;
        socket->writes = writes;
        wait(socket);
    }

    static void release(watched& socket) {
        socket.reads = socket.writes = false;
        (void)socket.waiter.release();
    }

    void wait(const watched_ptr& socket) {
        const auto self = shared_from_this();
        using type = asio::posix::descriptor_base::wait_type;
        if (socket->reads && !socket->reading) {
            socket->reading = true;
            socket->waiter.async_wait(type::wait_read,
                                      [self, socket](boost::system::error_code problem) {
                                          socket->reading = false;
                                          if (!problem) self->process(socket, true);
                                      });
        }
        if (socket->writes && !socket->writing) {
            socket->writing = true;
            socket->waiter.async_wait(type::wait_write,
                                      [self, socket](boost::system::error_code problem) {
                                          socket->writing = false;
                                          if (!problem) self->process(socket, false);
                                      });
        }
    }

    void process(const watched_ptr& socket, bool reads) {
        if (over_ || !(reads ? socket->reads : socket->writes)) return;
        const auto number = socket->waiter.native_handle();
        ::ares_process_fd(channel_, reads ? number : ARES_SOCKET_BAD,
                          reads ? ARES_SOCKET_BAD : number);
        if (over_ || done_) return;
        wait(socket);
        arm();
    }

    void arm() {
        if (done_) return;
        const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
            give_up_at_ - std::chrono::steady_clock::now());
        ::timeval most{.tv_sec = left.count() / 1'000'000, .tv_usec = left.count() % 1'000'000};
        ::timeval next{};
        const auto* const wait = ::ares_timeout(channel_, &most, &next);
        timer_.expires_after(std::chrono::seconds{wait->tv_sec} +
                             std::chrono::microseconds{wait->tv_usec});
        timer_.async_wait([self = shared_from_this()](boost::system::error_code problem) {
            if (!problem && !self->over_ && !self->done_) self->on_time();
        });
    }

    void on_time() {
        if (std::chrono::steady_clock::now() >= give_up_at_) {
            finish({.addresses = {}, .reason = egress_reason::lookup_timed_out, .detail = {}});
            return;
        }
        ::ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
        arm();
    }

    void take(int status, ::ares_addrinfo* found) {
        lookup_answer out;
        for (auto* node = found == nullptr ? nullptr : found->nodes;
             node != nullptr && out.addresses.size() < most_addresses; node = node->ai_next)
            add(out.addresses, *node);
        if (found != nullptr) ::ares_freeaddrinfo(found);
        if (out.addresses.empty()) {
            out.reason = status == ARES_ETIMEOUT || status == ARES_ECONNREFUSED
                             ? egress_reason::lookup_timed_out
                             : egress_reason::lookup_failed;
            out.detail = status == ARES_SUCCESS ? "no address" : ::ares_strerror(status);
        }
        finish(std::move(out));
    }

    static void add(std::vector<ip_address>& to, const ::ares_addrinfo_node& node) {
        if (node.ai_family == AF_INET) {
            ::sockaddr_in from{};
            std::memcpy(&from, node.ai_addr, sizeof from);
            ip_address::v4_bytes bytes;
            std::memcpy(bytes.data(), &from.sin_addr, bytes.size());
            to.emplace_back(bytes);
        } else if (node.ai_family == AF_INET6) {
            ::sockaddr_in6 from{};
            std::memcpy(&from, node.ai_addr, sizeof from);
            ip_address::v6_bytes bytes;
            std::memcpy(bytes.data(), &from.sin6_addr, bytes.size());
            to.emplace_back(bytes);
        }
    }

    // The first answer counts: destroying the resolver gives another.
    void finish(lookup_answer answer) {
        if (done_) return;
        answer_ = std::move(answer);
        done_ = true;
        bell_.ring();
    }

    core& in_;
    bell bell_;
    asio::steady_timer timer_;
    ::ares_channel channel_ = nullptr;
    std::map<int, watched_ptr> sockets_;
    std::chrono::steady_clock::time_point give_up_at_;
    lookup_answer answer_;
    bool done_ = false, over_ = false;
};

} // namespace

auto look_up(core& in, std::string name) -> awaitable<lookup_answer> {
    const auto made = std::make_shared<lookup>(in);
    auto answer = co_await made->run(std::move(name));
    co_return answer;
}

} // namespace glove::net::proxy
