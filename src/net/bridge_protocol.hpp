// What the namespace's bridge and the relay on the host say to each other over one SOCK_SEQPACKET
// pair that the bridge inherits. Its end of file, on either side, ends the other.
//
// The bridge is inside and is not trusted: what it says is a wish, judged like that of any program
// there. A message carries exactly the descriptors its row names.
#pragma once
#include <array>
#include <cstdint>

namespace glove::net {

enum class bridge_news : std::uint8_t {
    proxy,    // one descriptor: a connection to the proxy's own port
    named,    // one descriptor: a connection to the address of `name`, to be taken to `name:port`
    dialled,  // one descriptor: the connection inwards that order `id` asked for
    unreached // none: order `id` met `os`
};

// Bridge to relay.
struct bridge_message {
    bridge_news what;
    std::uint8_t name_size;
    std::uint16_t port;
    std::uint32_t id;
    std::int32_t os;
    std::array<char, 256> name;
};

// Relay to bridge: connect to 127.0.0.1:port inside, and answer under `id`.
struct bridge_order {
    std::uint32_t id;
    std::uint16_t port;
};

} // namespace glove::net
