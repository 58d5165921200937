// What of approved egress stands inside the namespace: the addresses that allowed names have there
// and the ports at which the bridge listens for the relay on the host.
//
// Guarantees: every planned listener is on the private loopback; a name has one address, and no two
// names share one. Nothing here decides what may be reached: the proxy on the host does.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/profile.hpp>
#include <glove/net/egress_rules.hpp>
#include <optional>
#include <string>
#include <vector>

namespace glove::container {

// Where programs inside find the proxy (HTTP and SOCKS5), and the name service when there is one.
// The port is outside of the range from which the kernel picks ports for connections.
inline constexpr std::uint16_t proxy_port = 61080;
inline constexpr std::string_view name_server = "127.0.0.53";

// IPv4 addresses are in host byte order.
inline constexpr std::uint32_t inner_loopback = 0x7f000001;
inline constexpr std::uint32_t host_name_address = 0x7f000101; // of the sandbox's own name
inline constexpr std::uint32_t inner_name_server = 0x7f000035;
inline constexpr std::uint32_t first_name_address = 0x7f400001; // 127.64.0.1 and so on

struct bridge_name {
    std::string name;
    std::uint32_t address = 0;
};
struct bridge_listener {
    std::uint32_t address = 0; // 0: the IPv6 loopback
    std::uint16_t port = 0;
    std::string name; // connections are for this name at this port; empty: for the proxy
};

struct bridge_plan {
    net::egress_rules rules;              // empty when there is only something published
    std::vector<std::uint16_t> published; // ports of 127.0.0.1 inside, offered on the host's own
    unsigned connections = 0;             // at once; further ones wait
    std::vector<bridge_name> names;       // every allowed exact name and every allowed domain
    std::vector<bridge_listener> listeners;
};

// Empty when the profile asks for no egress and publishes nothing. Errors name the flag.
[[nodiscard]] auto plan_bridge(const egress_wish& wish, network_tier tier)
    -> result<std::optional<bridge_plan>>;

} // namespace glove::container
