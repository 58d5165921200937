// What `glove-egress` and the supervisor say to each other over one SOCK_SEQPACKET pair. Both are
// built together. The first three descriptors of `glove-egress` are the standard ones; these
// follow.
//
// `glove-egress` reads what the agent sends, so what it says is not trusted: `read_news` takes a
// message only when every field holds, and a name only in its checked form.
#pragma once
#include "net/proxy_limits.hpp"
#include <array>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/net/destination.hpp>
#include <glove/net/egress_rules.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glove::net {

inline constexpr int egress_control = 3;  // the supervisor
inline constexpr int egress_settings = 4; // a sealed file with the `egress_configuration`
inline constexpr int egress_bridge = 5;   // the sandbox's bridge; closed when there is none
inline constexpr int egress_listener = 6; // the second door; closed when there is none

// Why a connection was not made, or did not end well.
enum class egress_reason : std::uint8_t {
    none,
    not_allowed,     // no rule names it
    bytes_spent,     // the rule's max-bytes are used up
    malformed,       // no request that can be judged; `detail` says what is wrong
    not_recorded,    // the intent could not be put on record
    address_refused, // `detail` is the kind of address
    lookup_failed,   // `detail` is the resolver's reason
    lookup_timed_out,
    dial_failed, // `os`
    dial_timed_out,
    wrong_server_name, // `detail` is the name in the greeting
    no_server_name,
    hidden_server_name, // an encrypted greeting
    not_tls,            // on a port of TLS
    malformed_hello,
    hello_timed_out,
    unreached, // published: the port inside answered `os`
    reset,     // by the destination
    broken,    // between the two, `os`
    idle,
    too_long,
    run_ended,
    no_credential,
};

enum class egress_news : std::uint8_t {
    ready,   // confined and listening
    failed,  // cannot start: `port` could not be listened on (`os`), or `detail`
    intent,  // `id` wants to go to `name:port`; nothing is dialled before the answer
    refused, // `name:port` (or nothing, when it was no request) was refused for `reason`
    outcome, // of `id`
};

struct egress_message {
    egress_news what{};
    egress_reason reason{};
    std::uint8_t inward = 0; // of intent: a published port, without a name
    std::uint8_t name_size = 0;
    std::uint8_t detail_size = 0;
    std::uint8_t unused = 0;
    std::uint16_t port = 0;
    std::int32_t os = 0;
    std::uint32_t unused_too = 0;
    std::uint64_t id = 0;
    std::uint64_t sent = 0, received = 0; // bytes, as the agent sees them
    std::array<char, 256> name{};
    std::array<char, 256> detail{};
};

enum class egress_word : std::uint8_t { recorded, refused, finish };
struct egress_order {
    egress_word what{};
    std::uint64_t id = 0;
};

// A message that was checked.
struct egress_report {
    egress_news what{};
    egress_reason reason{};
    bool inward = false;
    std::uint16_t port = 0;
    int os = 0;
    std::uint64_t id = 0, sent = 0, received = 0;
    std::optional<destination> where;
    std::string detail; // printable
};

// Too long texts are cut.
void put_name(egress_message& into, std::string_view name);
void put_detail(egress_message& into, std::string_view detail);
// Empty when anything about it is wrong.
[[nodiscard]] auto read_news(std::span<const std::byte> bytes) -> std::optional<egress_report>;

// One sentence for the operator and the agent; `where` is HOST:PORT.
[[nodiscard]] auto explain(egress_reason reason, std::string_view where, std::string_view detail,
                           int os) -> std::string;

// "; --egress-allow RULE would allow it", or nothing where no rule would.
[[nodiscard]] auto how_to_allow(const destination& where) -> std::string;

struct egress_configuration {
    std::vector<std::string> rules;
    std::vector<std::uint16_t> published;
    std::string token; // what a session of the second door must show; never empty
    proxy_limits limits;
};
// A file in memory that nobody can change any more.
[[nodiscard]] auto seal(const egress_configuration& what) -> result<sys::unique_fd>;
[[nodiscard]] auto unseal(sys::fd_ref file) -> result<egress_configuration>;

} // namespace glove::net
