// What the bridge process needs, as plain values in memory that the parent has finished writing.
// The bridge changes its own copy of the two tables, which have room for names it meets later.
#pragma once
#include <cstdint>

namespace glove::container {

// Names below an allowed domain that programs asked for, at most; each may listen on a few ports.
inline constexpr std::uint32_t most_met_names = 512;
inline constexpr std::uint32_t most_met_sockets = 1024;

struct bridge_known {
    std::uint32_t address; // host byte order
    std::uint8_t size;
    char name[255];
};
struct bridge_socket {
    static constexpr std::uint32_t for_proxy = ~0U;
    std::uint32_t address; // host byte order; 0: the IPv6 loopback
    std::uint16_t port;
    std::uint32_t known; // the name that connections are for, or `for_proxy`
    int fd;
};
struct bridge_domain {
    const char* name;
    std::uint32_t size;
    std::uint16_t port;
};

struct bridge_setup {
    int channel = -1; // to the relay; becomes descriptor 4. -1: there is no bridge
    bool serves_names = false;
    bridge_known* known = nullptr;
    std::uint32_t known_count = 0, known_capacity = 0;
    bridge_socket* sockets = nullptr;
    std::uint32_t socket_count = 0, socket_capacity = 0;
    const bridge_domain* domains = nullptr;
    std::uint32_t domain_count = 0;
};

} // namespace glove::container
