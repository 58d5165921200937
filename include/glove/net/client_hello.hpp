// The server name in the first bytes of a TLS connection.
//
// Guarantees: reads no byte past what it is given, allocates nothing but the name, and calls a
// greeting complete only when every length in it agrees and nothing is said twice, so that no
// server behind can read another name out of it. `not_tls` and `malformed` are final: more bytes do
// not change them. It never judges the name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace glove::net {

// A greeting that is longer, its record headers included, is taken for malformed.
inline constexpr std::size_t longest_client_hello = 32UL * 1024;

enum class hello_state : std::uint8_t {
    incomplete, // a prefix of a greeting: more bytes are needed
    not_tls,    // the first bytes are no TLS handshake record
    malformed,
    complete,
};

struct client_hello {
    hello_state state = hello_state::incomplete;
    std::string server_name;          // as sent; empty when there is none
    bool has_encrypted_hello = false; // its true server name may be another (ECH)
};

// What a server's first bytes say about a second greeting, which it can ask for (RFC 8446, 4.1.4).
enum class server_answer : std::uint8_t { incomplete, asks_again, other };
[[nodiscard]] auto read_server_answer(std::span<const std::uint8_t> bytes) noexcept
    -> server_answer;

// `bytes` are the first of the connection; a greeting may span several records. Behind it only
// early data and a change of ciphers may stand: a client says nothing else before it is answered.
// Some browsers send an encrypted hello of random bytes to every server, and nobody can tell it
// apart.
[[nodiscard]] auto read_client_hello(std::span<const std::uint8_t> bytes) -> client_hello;

} // namespace glove::net
