// The bridge: a process of the namespace that passes connections made on the private loopback to
// the relay on the host, answers name queries from policy, and connects inwards to published ports.
//
// Guarantees: it holds its listening sockets and the one channel, nothing else; no capability, not
// dumpable, a filter of a dozen calls; it reads no byte of a connection and sends none to the host
// but the names and ports of its own tables. It allocates nothing. When the relay has gone it ends.
// It decides nothing: what it passes on is judged by the proxy.
#include "container/linux/bridge.hpp"
#include "container/linux/seccomp_bpf.hpp"
#include "container/linux/steps.hpp"
#include "net/bridge_protocol.hpp"
#include "net/dns_stub.hpp"
#include "net/host_name.hpp"
#include "sys/syscalls.hpp"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <glove/container/bridge.hpp>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

namespace glove::container {

namespace {

constexpr int backlog = 4096;
constexpr std::uint16_t dns_port = 53;

// What an event is about; the index is of a socket, a dial or a stream.
enum class source : std::uint32_t {
    producers,
    channel_out,
    order,
    listener,
    dial,
    dns_datagram,
    dns_listener,
    dns_stream
};

void close_one(int fd) noexcept {
    (void)sys::close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0);
}

union any_address {
    ::sockaddr generic;
    ::sockaddr_in v4;
    ::sockaddr_in6 v6;
};
struct endpoint {
    any_address where{};
    ::socklen_t size = 0;
    int family = 0;
};
// Address 0 is the IPv6 loopback.
[[nodiscard]] auto endpoint_of(std::uint32_t address, std::uint16_t port) noexcept -> endpoint {
    endpoint out;
    if (address == 0) {
        out.where.v6 = {};
        out.where.v6.sin6_family = AF_INET6;
        out.where.v6.sin6_port = htons(port);
        out.where.v6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
        out.size = sizeof out.where.v6;
        out.family = AF_INET6;
    } else {
        out.where.v4 = {};
        out.where.v4.sin_family = AF_INET;
        out.where.v4.sin_port = htons(port);
        out.where.v4.sin_addr.s_addr = htonl(address);
        out.size = sizeof out.where.v4;
        out.family = AF_INET;
    }
    return out;
}

[[nodiscard]] auto broken(call where, std::uint32_t index = failure::no_index) noexcept -> failure {
    return {.os = errno, .where = where, .index = index};
}

// A socket that listens, or for datagrams is bound; `bad` tells why there is none.
[[nodiscard]] auto bound_socket(std::uint32_t address, std::uint16_t port, int type,
                                failure& bad) noexcept -> int {
    const auto at = endpoint_of(address, port);
    const int fd = ::socket(at.family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        bad = broken(call::socket);
        return -1;
    }
    if (::bind(fd, &at.where.generic, at.size) != 0) bad = broken(call::bind);
    else if (type == SOCK_STREAM && ::listen(fd, backlog) != 0) bad = broken(call::listen);
    else return fd;
    close_one(fd);
    return -1;
}

[[nodiscard]] auto same(const bridge_known& known, std::string_view name) noexcept -> bool {
    return std::string_view{known.name, known.size} == name;
}

[[nodiscard]] auto below(std::string_view name, const bridge_domain& domain) noexcept -> bool {
    return net::is_below(name, {domain.name, domain.size});
}

class bridge {
public:
    explicit bridge(const bridge_setup& setup) noexcept : setup_{setup} {}

    // Everything that can be refused; afterwards nothing but the filter's calls is needed.
    [[nodiscard]] auto open() noexcept -> failure {
        main_ = ::epoll_create1(EPOLL_CLOEXEC);
        producers_ = ::epoll_create1(EPOLL_CLOEXEC);
        if (main_ < 0 || producers_ < 0) return broken(call::epoll_create1);
        if (!add(main_, producers_, source::producers)) return broken(call::epoll_ctl);
        if (!add(producers_, bridge_descriptor, source::order)) return broken(call::epoll_ctl);
        for (std::uint32_t i = 0; i < setup_.socket_count; ++i)
            if (const auto bad = open_listener(i); bad.os != 0) return bad;
        return setup_.serves_names ? open_name_service() : failure{};
    }

    [[noreturn]] void run() noexcept {
        for (;;) {
            ::epoll_event ready[32];
            const int count = ::epoll_wait(main_, ready, std::size(ready), -1);
            if (count < 0 && errno != EINTR) ::_exit(1);
            for (int i = 0; i < count; ++i) handle(ready[i]);
        }
    }

private:
    struct dial {
        int fd = -1;
        std::uint32_t id = 0;
        std::uint16_t port = 0;
        bool second = false; // of the two loopback addresses
    };
    struct stream {
        int fd = -1;
        std::uint32_t got = 0;
        std::uint8_t bytes[2 + net::longest_dns_answer];
    };

    static auto add(int epoll, int fd, source what, std::uint32_t index = 0,
                    std::uint32_t events = EPOLLIN) noexcept -> bool {
        ::epoll_event event{};
        event.events = events;
        event.data.u64 = std::uint64_t{static_cast<std::uint32_t>(what)} << 32U | index;
        return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
    }

    [[nodiscard]] auto open_listener(std::uint32_t index) noexcept -> failure {
        auto& socket = setup_.sockets[index];
        failure bad;
        socket.fd = bound_socket(socket.address, socket.port, SOCK_STREAM, bad);
        // A kernel without IPv6 has no IPv6 loopback to listen on.
        const bool no_v6 =
            socket.address == 0 && (bad.os == EAFNOSUPPORT || bad.os == EADDRNOTAVAIL);
        if (socket.fd < 0) return no_v6 ? failure{} : bad;
        if (!add(producers_, socket.fd, source::listener, index)) return broken(call::epoll_ctl);
        return {};
    }

    [[nodiscard]] auto open_name_service() noexcept -> failure {
        failure bad;
        datagrams_ = bound_socket(inner_name_server, dns_port, SOCK_DGRAM, bad);
        if (datagrams_ < 0) return bad;
        streams_ = bound_socket(inner_name_server, dns_port, SOCK_STREAM, bad);
        if (streams_ < 0) return bad;
        if (!add(main_, datagrams_, source::dns_datagram) ||
            !add(main_, streams_, source::dns_listener))
            return broken(call::epoll_ctl);
        return {};
    }

    void handle(const ::epoll_event& event) noexcept {
        const auto index = static_cast<std::uint32_t>(event.data.u64);
        switch (static_cast<source>(event.data.u64 >> 32U)) {
        case source::producers: return produce();
        case source::channel_out: return resume();
        case source::order: return take_order();
        case source::listener: return accept_connection(setup_.sockets[index]);
        case source::dial: return finish_dial(index);
        case source::dns_datagram: return answer_datagram();
        case source::dns_listener: return accept_stream();
        case source::dns_stream: return read_stream(names_[index]);
        }
    }

    // One event at a time: the channel may be full after any of them.
    void produce() noexcept {
        ::epoll_event ready{};
        if (::epoll_wait(producers_, &ready, 1, 0) == 1) handle(ready);
    }

    // Passes `fd` on and closes it. When the channel is full the message is held back, and nothing
    // more is accepted until it has gone; names are answered all the same.
    void send(const net::bridge_message& message, int fd) noexcept {
        held_ = message;
        held_fd_ = fd;
        if (send_held()) return;
        if (::epoll_ctl(main_, EPOLL_CTL_DEL, producers_, nullptr) != 0 ||
            !add(main_, bridge_descriptor, source::channel_out, 0, EPOLLOUT))
            ::_exit(1);
    }

    [[nodiscard]] auto send_held() noexcept -> bool {
        ::iovec bytes{&held_, sizeof held_};
        alignas(::cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        ::msghdr header{};
        header.msg_iov = &bytes;
        header.msg_iovlen = 1;
        if (held_fd_ >= 0) {
            header.msg_control = control;
            header.msg_controllen = sizeof control;
            auto* const rights = CMSG_FIRSTHDR(&header);
            rights->cmsg_level = SOL_SOCKET;
            rights->cmsg_type = SCM_RIGHTS;
            rights->cmsg_len = CMSG_LEN(sizeof(int));
            std::memcpy(CMSG_DATA(rights), &held_fd_, sizeof(int));
        }
        if (::sendmsg(bridge_descriptor, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
            // ETOOMANYREFS: the host's user has too many descriptors in flight.
            if (errno == EAGAIN || errno == EINTR || errno == ETOOMANYREFS || errno == ENOBUFS)
                return false;
            ::_exit(0);
        }
        if (held_fd_ >= 0) close_one(held_fd_);
        held_fd_ = -1;
        return true;
    }

    void resume() noexcept {
        if (!send_held()) return;
        if (::epoll_ctl(main_, EPOLL_CTL_DEL, bridge_descriptor, nullptr) != 0 ||
            !add(main_, producers_, source::producers))
            ::_exit(1);
    }

    void accept_connection(const bridge_socket& listener) noexcept {
        const int fd = ::accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) return;
        net::bridge_message message{};
        message.what = net::bridge_news::proxy;
        message.port = listener.port;
        if (listener.known != bridge_socket::for_proxy) {
            const auto& known = setup_.known[listener.known];
            message.what = net::bridge_news::named;
            message.name_size = known.size;
            std::memcpy(message.name.data(), known.name, known.size);
        }
        send(message, fd);
    }

    // Published ports
    // ---------------

    void take_order() noexcept {
        net::bridge_order order{};
        const auto got = ::recv(bridge_descriptor, &order, sizeof order, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got != sizeof order) ::_exit(0); // the relay has gone
        const auto place = std::ranges::find(dials_, -1, &dial::fd);
        if (place == std::end(dials_)) return answer(order.id, EAGAIN);
        *place = {.fd = -1, .id = order.id, .port = order.port, .second = false};
        start_dial(*place, inner_loopback);
    }

    void start_dial(dial& going, std::uint32_t address) noexcept {
        const auto at = endpoint_of(address, going.port);
        const int fd = ::socket(at.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) return answer(going.id, errno);
        going.fd = fd;
        const auto index = static_cast<std::uint32_t>(&going - dials_);
        if (::connect(fd, &at.where.generic, at.size) == 0) return send_dialled(going);
        if (errno == EINPROGRESS && add(producers_, fd, source::dial, index, EPOLLOUT)) return;
        fail_dial(going, errno);
    }

    void finish_dial(std::uint32_t index) noexcept {
        auto& going = dials_[index];
        int os = 0;
        ::socklen_t size = sizeof os;
        if (::getsockopt(going.fd, SOL_SOCKET, SO_ERROR, &os, &size) != 0) os = errno;
        if (os != 0) return fail_dial(going, os);
        (void)::epoll_ctl(producers_, EPOLL_CTL_DEL, going.fd, nullptr);
        send_dialled(going);
    }

    void send_dialled(dial& done) noexcept {
        net::bridge_message message{};
        message.what = net::bridge_news::dialled;
        message.port = done.port;
        message.id = done.id;
        const int fd = done.fd;
        done.fd = -1;
        send(message, fd);
    }

    // Development servers listen on either of the two addresses of localhost.
    void fail_dial(dial& failed, int os) noexcept {
        close_one(failed.fd);
        failed.fd = -1;
        if (failed.second) return answer(failed.id, os);
        failed.second = true;
        start_dial(failed, 0);
    }

    void answer(std::uint32_t id, int os) noexcept {
        net::bridge_message message{};
        message.what = net::bridge_news::unreached;
        message.id = id;
        message.os = os;
        send(message, -1);
    }

    // Names
    // -----

    [[nodiscard]] static auto find(void* self, std::string_view name) noexcept -> std::uint32_t {
        return static_cast<bridge*>(self)->address_of(name);
    }

    [[nodiscard]] auto address_of(std::string_view name) noexcept -> std::uint32_t {
        const std::span known{setup_.known, setup_.known_count};
        for (const auto& row : known)
            if (same(row, name)) return row.address;
        const std::span domains{setup_.domains, setup_.domain_count};
        const bool allowed =
            std::ranges::any_of(domains, [&](const auto& domain) { return below(name, domain); });
        return allowed ? meet(name) : 0;
    }

    // Gives a name that it meets for the first time an address, and listens there.
    [[nodiscard]] auto meet(std::string_view name) noexcept -> std::uint32_t {
        if (setup_.known_count == setup_.known_capacity || name.size() > sizeof bridge_known::name)
            return 0;
        const auto index = setup_.known_count;
        auto& known = setup_.known[index];
        known.address = first_name_address + index;
        known.size = static_cast<std::uint8_t>(name.size());
        std::memcpy(known.name, name.data(), name.size());
        const std::span domains{setup_.domains, setup_.domain_count};
        for (const auto& domain : domains) {
            if (!below(name, domain) || listens(known.address, domain.port)) continue;
            if (setup_.socket_count == setup_.socket_capacity) return 0;
            auto& socket = setup_.sockets[setup_.socket_count];
            socket = {.address = known.address, .port = domain.port, .known = index, .fd = -1};
            if (open_listener(setup_.socket_count).os != 0) return 0;
            ++setup_.socket_count;
        }
        ++setup_.known_count;
        return known.address;
    }

    [[nodiscard]] auto listens(std::uint32_t address, std::uint16_t port) const noexcept -> bool {
        return std::ranges::any_of(
            std::span{setup_.sockets, setup_.socket_count},
            [&](const auto& one) { return one.address == address && one.port == port; });
    }

    [[nodiscard]] auto answer_query(std::span<const std::uint8_t> query,
                                    std::span<std::uint8_t> out) noexcept -> std::size_t {
        return net::answer_dns(query, out, {.context = this, .find = find});
    }

    void answer_datagram() noexcept {
        std::uint8_t query[net::longest_dns_answer];
        std::uint8_t reply[net::longest_dns_answer];
        any_address from{};
        ::socklen_t size = sizeof from;
        const auto got =
            ::recvfrom(datagrams_, query, sizeof query, MSG_DONTWAIT, &from.generic, &size);
        if (got <= 0) return;
        const auto bytes = answer_query({query, static_cast<std::size_t>(got)}, reply);
        if (bytes != 0)
            (void)!::sendto(datagrams_, reply, bytes, MSG_DONTWAIT, &from.generic, size);
    }

    // The oldest of the few streams makes room for a new one.
    void accept_stream() noexcept {
        const int fd = ::accept4(streams_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) return;
        auto& place = names_[next_stream_];
        if (place.fd >= 0) close_one(place.fd);
        place.fd = fd;
        place.got = 0;
        if (!add(main_, fd, source::dns_stream, next_stream_)) close_stream(place);
        next_stream_ = (next_stream_ + 1) % static_cast<std::uint32_t>(std::size(names_));
    }

    static void close_stream(stream& one) noexcept {
        close_one(one.fd);
        one.fd = -1;
    }

    void read_stream(stream& one) noexcept {
        if (one.fd < 0) return;
        const auto got = ::recv(one.fd, one.bytes + one.got, sizeof one.bytes - one.got, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) return close_stream(one);
        one.got += static_cast<std::uint32_t>(got);
        if (one.got < 2) return;
        const auto wanted = static_cast<std::uint32_t>(one.bytes[0] << 8U | one.bytes[1]);
        if (wanted > net::longest_dns_answer) return close_stream(one);
        if (one.got < 2 + wanted) return;
        std::uint8_t reply[2 + net::longest_dns_answer];
        const auto bytes = answer_query({one.bytes + 2, wanted}, std::span{reply}.subspan(2));
        reply[0] = static_cast<std::uint8_t>(bytes >> 8U);
        reply[1] = static_cast<std::uint8_t>(bytes);
        if (bytes == 0 || ::send(one.fd, reply, 2 + bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            return close_stream(one);
        one.got -= 2 + wanted; // queries may follow each other
        std::memmove(one.bytes, one.bytes + 2 + wanted, one.got);
    }

    bridge_setup setup_;
    int main_ = -1, producers_ = -1;
    int datagrams_ = -1, streams_ = -1;
    net::bridge_message held_{};
    int held_fd_ = -1;
    dial dials_[64];
    stream names_[8] = {};
    std::uint32_t next_stream_ = 0;
};

// Runs in the new process; tells init over `report` how the start went.
[[noreturn]] void bridge_main(const setup_plan& plan, int report) noexcept {
    constexpr char title[] = "glove-bridge";
    std::memcpy(plan.arguments, title, std::min(sizeof title, plan.arguments_size));
    bridge self{plan.bridge};
    failure outcome{};
    const int last = std::max(report, bridge_descriptor);
    const int first = std::min(report, bridge_descriptor);
    if (sys::close_range(0, static_cast<unsigned>(first - 1), 0) != 0 ||
        (last - first > 1 && sys::close_range(static_cast<unsigned>(first + 1),
                                              static_cast<unsigned>(last - 1), 0) != 0) ||
        sys::close_range(static_cast<unsigned>(last + 1), ~0U, 0) != 0)
        outcome = broken(call::close_range);
    else if (::prctl(PR_SET_NAME, title) != 0) outcome = broken(call::prctl);
    else outcome = self.open();
    if (outcome.os == 0)
        outcome = {.os = seccomp::install(seccomp::bridge_filter()), .where = call::seccomp};
    (void)!::send(report, &outcome, sizeof outcome, MSG_NOSIGNAL);
    close_one(report);
    if (outcome.os != 0) ::_exit(1);
    self.run();
}

} // namespace

failure start_bridge(setup_state& state) noexcept {
    if (state.plan->bridge.channel < 0) return {};
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return broken(call::socket);
    ::clone_args request{};
    request.exit_signal = SIGCHLD;
    const auto pid = ::syscall(SYS_clone3, &request, sizeof request);
    if (pid < 0) return broken(call::clone);
    if (pid == 0) bridge_main(*state.plan, ends[1]);
    close_one(ends[1]);
    close_one(bridge_descriptor);
    failure outcome{};
    const auto got = ::recv(ends[0], &outcome, sizeof outcome, 0);
    close_one(ends[0]);
    if (got == sizeof outcome) return outcome;
    return {.os = got < 0 ? errno : EPROTO, .where = call::recv};
}

} // namespace glove::container
