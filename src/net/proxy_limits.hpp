// Every bound of the egress proxy in one place; tests shorten the times.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace glove::net {

using std::chrono::milliseconds;

struct proxy_limits {
    milliseconds request{10'000};        // from the first read to the whole request
    milliseconds lookup{5'000};          // one name, all its queries
    milliseconds dial{10'000};           // all addresses of one connection
    milliseconds dial_one{4'000};        // an address, when more follow
    milliseconds hello{10'000};          // a TLS greeting, from its first byte
    milliseconds inward{5'000};          // a published connection's way in
    milliseconds idle{3'600'000};        // a connection on which nothing moves
    milliseconds whole{24L * 3'600'000}; // any connection
    milliseconds farewell{1'000};        // for the peer to take a refusal and go
    milliseconds pause{100};             // when the process or the system is out of descriptors
    std::uint32_t connections = 256;     // at once; further ones wait
    std::uint32_t waiting = 64;          // handed over beyond that while an order is out
    std::uint32_t request_bytes = 8192;  // the header block of a request
    std::uint32_t pipe_bytes = 256U * 1024;
    std::uint32_t spare_pipes = 16; // kept for the next bytes
};

} // namespace glove::net
