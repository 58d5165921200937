// The address that was judged is the address that is dialled: nothing is looked up twice.
#include "net/proxy/core.hpp"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace glove::net::proxy {

namespace {

constexpr std::ptrdiff_t most_addresses = 16; // of one name

struct socket_address {
    ::sockaddr_storage storage{};
    ::socklen_t size = 0;
};

[[nodiscard]] auto to_socket_address(const ip_address& address, std::uint16_t port)
    -> socket_address {
    socket_address out;
    const auto bytes = address.bytes();
    if (address.is_v4()) {
        ::sockaddr_in v4{};
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        std::memcpy(&v4.sin_addr, bytes.data(), bytes.size());
        std::memcpy(&out.storage, &v4, sizeof v4);
        out.size = sizeof v4;
    } else {
        ::sockaddr_in6 v6{};
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(port);
        std::memcpy(&v6.sin6_addr, bytes.data(), bytes.size());
        std::memcpy(&out.storage, &v6, sizeof v6);
        out.size = sizeof v6;
    }
    return out;
}

// Empty when they cannot be listed: then nothing can be judged.
[[nodiscard]] auto own_addresses() -> std::optional<std::vector<ip_address>> {
    std::vector<ip_address> out;
    ::ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return std::nullopt;
    for (const auto* each = first; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr) continue;
        if (each->ifa_addr->sa_family == AF_INET) {
            ::sockaddr_in v4{};
            std::memcpy(&v4, each->ifa_addr, sizeof v4);
            ip_address::v4_bytes bytes;
            std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
            out.emplace_back(bytes);
        } else if (each->ifa_addr->sa_family == AF_INET6) {
            ::sockaddr_in6 v6{};
            std::memcpy(&v6, each->ifa_addr, sizeof v6);
            ip_address::v6_bytes bytes;
            std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
            out.emplace_back(bytes);
        }
    }
    ::freeifaddrs(first);
    return out;
}

[[nodiscard]] auto host_loopback() -> std::vector<ip_address> {
    ip_address::v6_bytes v6{};
    v6.back() = 1;
    return {ip_address{ip_address::v4_bytes{127, 0, 0, 1}}, ip_address{v6}};
}

void set_options(int socket) {
    const int on = 1;
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

// Shared with the timer, which may outlive the attempt.
struct attempt {
    attempt(asio::io_context& io, sys::unique_fd socket)
        : connection{io, std::move(socket)}, timer{io} {}
    stream connection;
    deadline timer;
    bool late = false;
};

// What the attempts of one dial share. The first connection wins.
struct race {
    explicit race(asio::io_context& io) : changed{io}, next_is_due{io} {}
    bell changed;
    deadline next_is_due;
    std::vector<std::shared_ptr<attempt>> attempts;
    std::optional<dial_answer> won;
    dial_answer lost; // the latest that failed
    unsigned running = 0;
    bool due = true; // for the next address
};

[[nodiscard]] auto dial_one(core& in, std::shared_ptr<race> shared, socket_address to,
                            milliseconds patience) -> awaitable<dial_answer> {
    dial_answer out;
    out.reason = egress_reason::dial_failed;
    sys::unique_fd socket{
        ::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)};
    if (!socket) {
        out.os = errno;
        co_return out;
    }
    set_options(socket.get());
    int os = 0;
    const int number = socket.get();
    if (::connect(number, reinterpret_cast<const ::sockaddr*>(&to.storage), to.size) != 0)
        os = errno;
    const auto made = std::make_shared<attempt>(in.io, std::move(socket));
    shared->attempts.push_back(made);
    if (os == EINPROGRESS) {
        made->timer.start(patience, [made] {
            made->late = true;
            made->connection.cancel();
        });
        const bool ready = co_await made->connection.writable();
        made->timer.stop();
        ::socklen_t size = sizeof os;
        if (ready && ::getsockopt(number, SOL_SOCKET, SO_ERROR, &os, &size) != 0) os = errno;
        if (made->late) out.reason = egress_reason::dial_timed_out;
    }
    out.os = made->late ? 0 : os;
    if (os == 0 && !made->late) {
        out.reason = egress_reason::none;
        made->connection.forget_writable();
        out.connection.emplace(std::move(made->connection));
    }
    co_return out;
}

[[nodiscard]] auto take_part(core& in, std::shared_ptr<race> shared, socket_address to,
                             milliseconds patience) -> awaitable<void> {
    auto made = co_await dial_one(in, shared, to, patience);
    --shared->running;
    if (!made.connection) {
        shared->lost = std::move(made);
        shared->due = true;
    } else if (!shared->won) shared->won = std::move(made);
    shared->changed.ring();
}

// The next address is tried when one fails and when one is slow (RFC 8305): a host whose IPv6 leads
// nowhere does not make every connection wait.
[[nodiscard]] auto dial_any(core& in, std::vector<ip_address> candidates, std::uint16_t port)
    -> awaitable<dial_answer> {
    const auto shared = std::make_shared<race>(in.io);
    shared->lost.reason = egress_reason::dial_timed_out;
    const auto give_up_at = std::chrono::steady_clock::now() + in.limits.dial;
    for (auto next = candidates.begin(); !shared->won;) {
        const auto left =
            std::chrono::duration_cast<milliseconds>(give_up_at - std::chrono::steady_clock::now());
        if (shared->due && next != candidates.end() && left.count() > 0) {
            shared->due = false;
            ++shared->running;
            const auto to = to_socket_address(*next++, port);
            asio::co_spawn(in.io, take_part(in, shared, to, left), asio::detached);
            shared->next_is_due.start(in.limits.dial_next, [shared] {
                shared->due = true;
                shared->changed.ring();
            });
            continue; // it may have failed already
        }
        if (shared->running == 0) break;
        co_await shared->changed.next();
    }
    shared->next_is_due.stop();
    for (const auto& each : shared->attempts) each->connection.cancel();
    co_return shared->won ? *std::move(shared->won) : std::move(shared->lost);
}

} // namespace

auto dial(core& in, const egress_rule& rule, destination where) -> awaitable<dial_answer> {
    dial_answer out;
    std::vector<ip_address> candidates;
    if (rule.kind == rule_kind::host_loopback) candidates = host_loopback();
    else if (where.host.address) candidates.push_back(*where.host.address);
    else {
        auto found = co_await look_up(in, where.host.name);
        out.reason = found.reason;
        out.detail = found.detail;
        candidates = std::move(found.addresses);
    }
    // Asked for only where it decides: the kernel goes through every interface for it.
    const bool own_is_refused = rule.kind != rule_kind::host_loopback && !rule.allow_private;
    std::optional<std::vector<ip_address>> own{std::in_place};
    if (own_is_refused && !candidates.empty()) own = own_addresses();
    if (!own) {
        out.reason = egress_reason::dial_failed;
        out.os = errno;
        co_return out;
    }
    std::erase_if(candidates, [&](const ip_address& address) {
        const auto kind = refused_address(rule, address, *own);
        if (kind.empty()) return false;
        out.reason = egress_reason::address_refused;
        out.detail = kind;
        return true;
    });
    if (candidates.size() > most_addresses)
        candidates.erase(candidates.begin() + most_addresses, candidates.end());
    if (!candidates.empty()) out = co_await dial_any(in, std::move(candidates), where.port);
    co_return out;
}

} // namespace glove::net::proxy
