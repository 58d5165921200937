// Reaches for the network and for the services of the host.
#include "attack.hpp"
#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace hostile {
namespace {

struct family {
    std::string_view name;
    int number;
};
constexpr std::array families{
    family{"unix", AF_UNIX},
    family{"inet", AF_INET},
    family{"inet6", AF_INET6},
    family{"netlink", AF_NETLINK},
    family{"vsock", AF_VSOCK},
    family{"packet", AF_PACKET},
    family{"bluetooth", AF_BLUETOOTH},
    family{"alg", AF_ALG},
    family{"tipc", AF_TIPC},
    family{"xdp", AF_XDP},
    family{"can", AF_CAN},
    family{"key", AF_KEY},
    family{"smc", AF_SMC},
    family{"rds", AF_RDS},
};
struct type {
    std::string_view name;
    int number;
};
constexpr std::array types{type{"stream", SOCK_STREAM}, type{"dgram", SOCK_DGRAM},
                           type{"raw", SOCK_RAW}, type{"seqpacket", SOCK_SEQPACKET}};

auto open_socket(arguments with) -> result {
    const auto* const of = std::ranges::find(families, std::string_view{with[0]}, &family::name);
    const auto* const as = std::ranges::find(types, std::string_view{with[1]}, &type::name);
    if (of == families.end() || as == types.end()) return untried("no such family or type");
    return judge(::socket(of->number, as->number | SOCK_CLOEXEC, std::atoi(with[2])));
}

auto unix_address(std::string_view name, ::socklen_t& size) -> ::sockaddr_un {
    ::sockaddr_un out{};
    out.sun_family = AF_UNIX;
    const auto length = std::min(name.size(), sizeof out.sun_path - 1);
    std::ranges::copy(name.substr(0, length), out.sun_path);
    const bool abstract = name.starts_with('@');
    if (abstract) out.sun_path[0] = '\0';
    size =
        static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + length + (abstract ? 0 : 1));
    return out;
}

// To a name in the file system, or after '@' to an abstract one; as a stream and as a datagram.
auto connect_unix(arguments with) -> result {
    ::socklen_t size = 0;
    const auto name = unix_address(with[0], size);
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
        const int s = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
        if (s < 0) return denied();
        if (::connect(s, reinterpret_cast<const ::sockaddr*>(&name), size) == 0) return worked();
        if (errno != EPROTOTYPE) return denied();
    }
    return denied();
}

// A datagram that names its target needs no connection.
auto send_unix(arguments with) -> result {
    ::socklen_t size = 0;
    const auto name = unix_address(with[0], size);
    const int s = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) return denied();
    return judge(::sendto(s, "x", 1, 0, reinterpret_cast<const ::sockaddr*>(&name), size));
}

auto own_unix(arguments with) -> result {
    ::socklen_t size = 0;
    const auto name = unix_address(with[0], size);
    const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0) return denied();
    if (::bind(server, reinterpret_cast<const ::sockaddr*>(&name), size) != 0) return denied();
    if (::listen(server, 1) != 0) return denied();
    return connect_unix(with);
}

// The host's side of a test: listens until it is killed.
auto serve_unix(arguments with) -> result {
    ::socklen_t size = 0;
    const auto name = unix_address(with[0], size);
    const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(server, reinterpret_cast<const ::sockaddr*>(&name), size) != 0) return denied();
    if (::listen(server, 8) != 0) return denied();
    for (;;) (void)::pause();
}

auto pair(arguments) -> result {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return denied();
    return judge(::send(ends[0], "x", 1, MSG_NOSIGNAL));
}

struct address {
    ::sockaddr_storage bytes{};
    ::socklen_t size = 0;
    [[nodiscard]] auto get() const { return reinterpret_cast<const ::sockaddr*>(&bytes); }
    [[nodiscard]] auto family() const -> int { return bytes.ss_family; }
};

auto parse(const char* text, const char* port) -> address {
    address out;
    const auto number = htons(static_cast<std::uint16_t>(std::atoi(port)));
    ::sockaddr_in four{};
    ::sockaddr_in6 six{};
    if (::inet_pton(AF_INET, text, &four.sin_addr) == 1) {
        four.sin_family = AF_INET;
        four.sin_port = number;
        out.size = sizeof four;
        std::memcpy(&out.bytes, &four, sizeof four);
    } else if (::inet_pton(AF_INET6, text, &six.sin6_addr) == 1) {
        six.sin6_family = AF_INET6;
        six.sin6_port = number;
        out.size = sizeof six;
        std::memcpy(&out.bytes, &six, sizeof six);
    }
    return out;
}

auto connect_internet(arguments with) -> result {
    const auto to = parse(with[0], with[1]);
    if (to.size == 0) return untried("address");
    const int s = ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0) return denied();
    if (::connect(s, to.get(), to.size) == 0) return worked();
    if (errno != EINPROGRESS) return denied();
    ::pollfd ready{s, POLLOUT, 0};
    if (::poll(&ready, 1, 2000) != 1) return denied(ETIMEDOUT);
    int error = 0;
    ::socklen_t size = sizeof error;
    if (::getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return untried("getsockopt");
    return error == 0 ? worked() : denied(error);
}

auto send_internet(arguments with) -> result {
    const auto to = parse(with[0], with[1]);
    if (to.size == 0) return untried("address");
    const int s = ::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) return denied();
    return judge(::sendto(s, "x", 1, 0, to.get(), to.size));
}

// The same by a socket that was given as standard input, which keeps the network it was made in.
auto connect_by_stream(arguments with) -> result {
    const auto to = parse(with[0], with[1]);
    return judge(::connect(0, to.get(), to.size));
}

auto send_by_stream(arguments with) -> result {
    const auto to = parse(with[0], with[1]);
    return judge(::sendto(0, "x", 1, 0, to.get(), to.size));
}

auto connect_by_stream_unix(arguments with) -> result {
    ::socklen_t size = 0;
    const auto name = unix_address(with[0], size);
    return judge(::connect(0, reinterpret_cast<const ::sockaddr*>(&name), size));
}

auto send_by_stream_unix(arguments with) -> result {
    ::socklen_t size = 0;
    const auto name = unix_address(with[0], size);
    return judge(::sendto(0, "x", 1, 0, reinterpret_cast<const ::sockaddr*>(&name), size));
}

auto own_server(arguments with) -> result {
    auto at = parse(with[0], "0");
    if (at.size == 0) return untried("address");
    const int server = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0) return denied();
    if (::bind(server, at.get(), at.size) != 0 || ::listen(server, 1) != 0) return denied();
    if (::getsockname(server, reinterpret_cast<::sockaddr*>(&at.bytes), &at.size) != 0)
        return denied();
    const int s = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0) return denied();
    return judge(::connect(s, at.get(), at.size));
}

auto routes(arguments) -> result {
    std::ifstream four{"/proc/net/route"};
    std::ifstream six{"/proc/net/ipv6_route"};
    std::string line;
    (void)std::getline(four, line); // the heading
    while (std::getline(four, line)) return worked(line);
    while (std::getline(six, line))
        if (!line.ends_with(" lo")) return worked(line);
    return denied("none");
}

// Every interface but lo.
auto interfaces(arguments) -> result {
    std::ifstream devices{"/proc/net/dev"};
    std::string line;
    (void)std::getline(devices, line);
    (void)std::getline(devices, line);
    int seen = 0;
    for (; std::getline(devices, line); ++seen)
        if (line.find(" lo:") == std::string::npos) return worked(line);
    return denied(std::to_string(seen));
}

constexpr std::array attacks{
    attack{"socket FAMILY TYPE PROTOCOL", "make a socket", open_socket},
    attack{"connect_unix NAME", "reach a service of the host", connect_unix},
    attack{"send_unix NAME", "reach it without a connection", send_unix},
    attack{"own_unix NAME", "listen and connect to oneself", own_unix},
    attack{"serve_unix NAME", "be a service", serve_unix},
    attack{"pair", "a connected pair", pair},
    attack{"connect ADDRESS PORT", "open a connection", connect_internet},
    attack{"send ADDRESS PORT", "send a datagram", send_internet},
    attack{"connect_by_stream ADDRESS PORT", "connect standard input", connect_by_stream},
    attack{"send_by_stream ADDRESS PORT", "send from standard input", send_by_stream},
    attack{"connect_by_stream_unix NAME", "connect it to a service", connect_by_stream_unix},
    attack{"send_by_stream_unix NAME", "send from it to a service", send_by_stream_unix},
    attack{"own_server ADDRESS", "listen and connect to oneself", own_server},
    attack{"routes", "find a way out", routes},
    attack{"interfaces", "find an interface besides the loopback", interfaces},
};

} // namespace

auto socket_attacks() -> std::span<const attack> { return attacks; }

} // namespace hostile
