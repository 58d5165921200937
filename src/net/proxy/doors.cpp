// What comes through a door is looked at before anything is done with it.
#include "net/proxy/doors.hpp"
#include "net/proxy/session.hpp"
#include <array>
#include <cstring>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <netinet/in.h>
#include <sys/socket.h>

namespace glove::net::proxy {

namespace {

constexpr int backlog = 128;
constexpr std::string_view hostile_words = "the sandbox's bridge said what it must not";

[[nodiscard]] auto option(int socket, int name) -> int {
    int value = -1;
    ::socklen_t size = sizeof value;
    return ::getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

enum class end_of { us, them };
// 4 or 6 for an address of the loopback, else 0.
[[nodiscard]] auto loopback_family(int socket, end_of which) -> int {
    ::sockaddr_storage storage{};
    ::socklen_t size = sizeof storage;
    auto* const address = reinterpret_cast<::sockaddr*>(&storage);
    const int status = which == end_of::us ? ::getsockname(socket, address, &size)
                                           : ::getpeername(socket, address, &size);
    if (status != 0) return 0;
    if (storage.ss_family == AF_INET && size == sizeof(::sockaddr_in)) {
        ::sockaddr_in v4{};
        std::memcpy(&v4, &storage, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24U == 127 ? 4 : 0;
    }
    if (storage.ss_family == AF_INET6 && size == sizeof(::sockaddr_in6)) {
        ::sockaddr_in6 v6{};
        std::memcpy(&v6, &storage, sizeof v6);
        return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ? 6 : 0;
    }
    return 0;
}

[[nodiscard]] auto wants_descriptor(bridge_news what) -> bool {
    return what != bridge_news::unreached;
}

[[nodiscard]] auto accept_on(stream& listener) -> sys::unique_fd {
    return sys::unique_fd{::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
}

[[nodiscard]] auto is_shortage(int os) -> bool {
    return os == EMFILE || os == ENFILE || os == ENOBUFS || os == ENOMEM;
}

// The next connection; empty at the listener's end.
[[nodiscard]] auto accept_next(core& in, stream& listener) -> awaitable<sys::unique_fd> {
    for (;;) {
        while (!in.has_room()) co_await in.room.next();
        const bool ready = co_await listener.readable();
        if (!ready) co_return sys::unique_fd{};
        if (!in.has_room()) continue;
        auto made = accept_on(listener);
        if (made) co_return made;
        const int os = errno;
        if (is_shortage(os)) co_await pause(in.io, in.limits.pause);
    }
}

// Room for one descriptor, suitably aligned. `CMSG_SPACE` would let in two.
union control_buffer {
    ::cmsghdr head;
    char bytes[CMSG_LEN(sizeof(int))];
};

} // namespace

auto is_loopback_connection(sys::fd_ref socket) -> bool {
    const int number = socket.get();
    const int domain = option(number, SO_DOMAIN);
    if (domain != AF_INET && domain != AF_INET6) return false;
    if (option(number, SO_TYPE) != SOCK_STREAM || option(number, SO_PROTOCOL) != IPPROTO_TCP)
        return false;
    const int own = loopback_family(number, end_of::us);
    if (own == 0 || own != loopback_family(number, end_of::them)) return false;
    // Sets what is wanted and clears everything else, O_ASYNC with it.
    return ::fcntl(number, F_SETFL, O_NONBLOCK) == 0;
}

bridge_door::bridge_door(core& in, sys::unique_fd channel)
    : in_{in}, channel_{in.io, std::move(channel)} {}

void bridge_door::open() {
    shut_ = !channel_.is_open();
    if (shut_) return;
    asio::co_spawn(in_.io, read(), asio::detached);
    asio::co_spawn(in_.io, admit_parked(), asio::detached);
}

void bridge_door::shut(std::string_view why) {
    if (shut_) return;
    shut_ = true;
    if (!why.empty())
        (void)sys::write_all(sys::fd_ref::standard_error(),
                             "glove: " + std::string{why} +
                                 ": the command has no further connections\n");
    channel_.close();
    parked_.clear();
    for (auto& [id, order] : orders_) {
        order->answered = true;
        order->answer.os = ECONNREFUSED;
        order->bell.ring();
    }
    orders_.clear();
}

auto bridge_door::receive(handed_over& into) -> taken {
    ::iovec part{.iov_base = &into.what, .iov_len = sizeof into.what};
    control_buffer control{};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_LEN(sizeof(int));
    const auto got = ::recvmsg(channel_.fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return taken::nothing;
    if (got < 0 && is_shortage(errno)) return taken::short_of_descriptors;
    if (got <= 0) return taken::end;
    std::vector<sys::unique_fd> descriptors;
    for (auto* part_of = CMSG_FIRSTHDR(&message); part_of != nullptr;
         part_of = CMSG_NXTHDR(&message, part_of)) {
        if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
        const auto bytes = part_of->cmsg_len - CMSG_LEN(0);
        for (std::size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(part_of) + at, sizeof number);
            descriptors.emplace_back(number);
        }
    }
    const bool cut = (message.msg_flags & MSG_CTRUNC) != 0;
    const bool whole = got == sizeof into.what && (message.msg_flags & MSG_TRUNC) == 0;
    if (!whole || into.what.what > bridge_news::unreached) return taken::hostile;
    // The kernel could not place the one that came: this process is out of descriptors.
    if (cut && descriptors.empty() && wants_descriptor(into.what.what))
        return taken::short_of_descriptors;
    const std::size_t wanted = wants_descriptor(into.what.what) ? 1 : 0;
    if (cut || descriptors.size() != wanted) return taken::hostile;
    if (wanted == 1) into.socket = std::move(descriptors.front());
    return taken::message;
}

auto bridge_door::admit_parked() -> awaitable<void> {
    for (;;) {
        co_await in_.room.next();
        while (!parked_.empty() && in_.has_room()) {
            auto next = std::move(parked_.front());
            parked_.pop_front();
            if (!admit(next)) shut(hostile_words);
        }
    }
}

auto bridge_door::read() -> awaitable<void> {
    for (;;) {
        // Answers to orders come the same way: while one is out, some connections are kept waiting.
        const bool full = !in_.has_room();
        if (full && (orders_.empty() || parked_.size() >= in_.limits.waiting)) {
            co_await in_.room.next();
            continue;
        }
        const bool ready = co_await channel_.readable();
        if (!ready) co_return shut({});
        if (full && orders_.empty()) continue;
        handed_over message;
        const auto how = receive(message);
        if (how == taken::end) co_return shut({});
        if (how == taken::hostile) co_return shut(hostile_words);
        if (how == taken::short_of_descriptors) co_await pause(in_.io, in_.limits.pause);
        if (how == taken::message && !dispatch(std::move(message))) co_return shut(hostile_words);
    }
}

// False when the channel is to be ended.
auto bridge_door::dispatch(handed_over message) -> bool {
    const auto what = message.what.what;
    if (what == bridge_news::proxy || what == bridge_news::named) {
        if (in_.has_room()) return admit(message);
        parked_.push_back(std::move(message));
        return true;
    }
    const auto at = orders_.find(message.what.id);
    if (at == orders_.end()) return true; // it came too late
    if (what == bridge_news::unreached) at->second->answer.os = message.what.os;
    else if (is_loopback_connection(message.socket))
        at->second->answer.connection = std::move(message.socket);
    else at->second->answer.os = EPROTO;
    at->second->answered = true;
    at->second->bell.ring();
    orders_.erase(at);
    return true;
}

auto bridge_door::admit(handed_over& message) -> bool {
    // A socket whose peer is gone already has no peer's address; it is dropped like any other.
    if (!is_loopback_connection(message.socket)) return true;
    if (message.what.what == bridge_news::proxy) {
        session::start(in_, std::move(message.socket), door::proxy);
        return true;
    }
    const std::string_view name{message.what.name.data(), message.what.name_size};
    auto host = parse_host(name);
    if (!host || message.what.port == 0) return false;
    session::start(in_, std::move(message.socket), door::named,
                   {*std::move(host), message.what.port});
    return true;
}

auto bridge_door::ask_inwards(std::uint16_t port) -> awaitable<inward> {
    inward nothing;
    nothing.os = ECONNREFUSED;
    if (shut_) co_return nothing;
    const auto order = std::make_shared<waiting_order>(in_.io);
    const bridge_order words{.id = ++last_order_, .port = port};
    orders_.emplace(words.id, order);
    order->clock.start(in_.limits.inward, [this, order, id = words.id] {
        if (order->answered) return;
        order->answered = true;
        order->answer.os = ETIMEDOUT;
        order->bell.ring();
        orders_.erase(id);
    });
    in_.room.ring(); // the channel is read again while an order is out
    while (!order->answered &&
           ::send(channel_.fd(), &words, sizeof words, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if (errno != EAGAIN) {
            orders_.erase(words.id);
            co_return nothing;
        }
        co_await pause(in_.io, in_.limits.pause); // the clock goes on meanwhile
    }
    while (!order->answered) co_await order->bell.next();
    order->clock.stop();
    co_return std::move(order->answer);
}

auto listen_on(std::uint16_t port) -> result<sys::unique_fd> {
    sys::unique_fd out{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!out) return fail_os("egress.publish");
    const int on = 1;
    (void)::setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(out.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(out.get(), backlog) != 0)
        return fail_os("egress.publish");
    return out;
}

namespace {

// One connection from the host to a port inside.
class inward_session final : public live_session {
public:
    inward_session(core& in, std::uint16_t port)
        : in_{in}, place_{in}, port_{port}, id_{in.link.new_id()} {
        in_.live.emplace(this, this);
    }
    inward_session(const inward_session&) = delete;
    auto operator=(const inward_session&) -> inward_session& = delete;
    ~inward_session() override { in_.live.erase(this); }

    [[nodiscard]] auto run(bridge_door& bridge, sys::unique_fd caller) -> awaitable<void> {
        stream client{in_.io, std::move(caller)};
        egress_message intent;
        intent.what = egress_news::intent;
        intent.inward = 1;
        intent.port = port_;
        intent.id = id_;
        recorded_ = co_await in_.link.ask(intent);
        if (!recorded_) {
            client.reset();
            co_return;
        }
        auto inside = co_await bridge.ask_inwards(port_);
        relay_ending how{.reason = egress_reason::unreached, .os = inside.os, .detail = {}};
        if (inside.connection) {
            stream server{in_.io, std::move(inside.connection)};
            relay_ =
                std::make_shared<relay>(in_, std::move(client), std::move(server), relay_order{});
            how = co_await relay_->run();
        } else client.reset();
        const auto news = outcome(how);
        recorded_ = false;
        co_await in_.link.tell(news);
    }
    [[nodiscard]] auto last_word() -> std::optional<egress_message> override {
        if (!recorded_) return std::nullopt;
        return outcome({.reason = egress_reason::run_ended, .detail = {}});
    }
    [[nodiscard]] auto has_bytes_to_send() const -> bool override { return false; }

private:
    [[nodiscard]] auto outcome(const relay_ending& how) const -> egress_message {
        egress_message news;
        news.what = egress_news::outcome;
        news.id = id_;
        news.reason = how.reason;
        news.os = how.os;
        put_detail(news, how.detail);
        if (relay_) { // what came in is what the agent received
            news.sent = relay_->received();
            news.received = relay_->sent();
        }
        return news;
    }

    core& in_;
    place place_;
    std::uint16_t port_;
    std::uint64_t id_;
    bool recorded_ = false;
    std::shared_ptr<relay> relay_;
};

[[nodiscard]] auto carry_inwards(core& in, bridge_door& bridge, sys::unique_fd caller,
                                 std::uint16_t port) -> awaitable<void> {
    const auto made = std::make_shared<inward_session>(in, port);
    co_await made->run(bridge, std::move(caller));
}

[[nodiscard]] auto serve_published(core& in, bridge_door& bridge, sys::unique_fd listener,
                                   std::uint16_t port) -> awaitable<void> {
    stream waiter{in.io, std::move(listener)};
    for (;;) {
        auto made = co_await accept_next(in, waiter);
        if (!made) co_return;
        asio::co_spawn(in.io, carry_inwards(in, bridge, std::move(made), port), asio::detached);
    }
}

} // namespace

void publish(core& in, bridge_door& bridge, sys::unique_fd listener, std::uint16_t port) {
    asio::co_spawn(in.io, serve_published(in, bridge, std::move(listener), port), asio::detached);
}

void open_listener(core& in, sys::unique_fd listener) {
    asio::co_spawn(
        in.io,
        [](core& shared, sys::unique_fd own) -> awaitable<void> {
            stream waiter{shared.io, std::move(own)};
            for (;;) {
                auto made = co_await accept_next(shared, waiter);
                if (!made) co_return;
                if (is_loopback_connection(made))
                    session::start(shared, std::move(made), door::listener);
            }
        }(in, std::move(listener)),
        asio::detached);
}

} // namespace glove::net::proxy
