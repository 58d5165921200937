// What `glove-ssh-agent` and the supervisor say to each other over one SOCK_SEQPACKET pair. Both
// are built together. A message is a head and the bytes that its sizes announce, no more.
//
// `glove-ssh-agent` reads what the agent sends, so what it says is not trusted: `read_news` takes a
// message only when every field holds. It never says which key: there is one.
#pragma once
#include "ssh/agent_message.hpp"

namespace glove::ssh {

inline constexpr int broker_control = 3; // its one descriptor beside the standard ones
inline constexpr unsigned most_connections = 16;

enum class broker_news : std::uint8_t {
    ready,  // confined
    failed, // cannot start: `os`
    sign,   // `id` wants `data` signed; one answer follows
};
struct broker_message {
    broker_news what{};
    std::uint8_t unused[3]{};
    std::int32_t os = 0;
    std::uint32_t flags = 0;
    std::uint32_t data_size = 0;
    std::uint64_t id = 0;
};
inline constexpr std::size_t longest_news = sizeof(broker_message) + longest_message;

struct broker_report {
    broker_news what{};
    int os = 0;
    std::uint32_t flags = 0;
    std::uint64_t id = 0;
    std::string_view data; // stands in the message
};
[[nodiscard]] auto read_news(std::string_view bytes) -> std::optional<broker_report>;
[[nodiscard]] auto sign_news(std::uint64_t id, std::string_view data, std::uint32_t flags)
    -> std::string;
[[nodiscard]] auto plain_news(broker_news what, int os) -> std::string;

enum class broker_word : std::uint8_t {
    identity,  // first: the key (`size`) and its comment (the rest)
    listener,  // comes with the listening socket
    signature, // of `id`
    refused,   // `id` gets none
};
struct broker_order {
    broker_word what{};
    std::uint8_t unused[3]{};
    std::uint32_t size = 0;
    std::uint64_t id = 0;
};
inline constexpr std::size_t longest_order =
    sizeof(broker_order) + longest_key + longest_comment + longest_signature;
[[nodiscard]] auto identity_order(const identity& key) -> std::string;
[[nodiscard]] auto plain_order(broker_word what, std::uint64_t id, std::string_view bytes = {})
    -> std::string;

} // namespace glove::ssh
