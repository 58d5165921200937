// The control protocol: one framed request and one framed response on a connection of its own.
//
// Guarantees: frames are 1 to 1,048,576 bytes of UTF-8 JSON behind a big-endian length; requests
// and responses are decoded strictly; what a method takes is kept as the literal text that came.
// Errors of decoding never quote a value, because one of them is the secret. Nothing here keeps a
// second copy of the secret.
//
// Error steps of the form are those of the JSON reader and of the field tables, whose paths begin
// at the frame's body: "$.params.deadline_ms is missing".
#pragma once
#include <array>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/control/answer.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace glove::control {

inline constexpr std::size_t most_frame_bytes = 1UL << 20;
inline constexpr std::size_t frame_header_bytes = 4;
inline constexpr std::string_view socket_name = "gloved.sock";
inline constexpr std::string_view secret_name = "bootstrap-secret";
inline constexpr std::string_view lock_name = "gloved.lock";

// Step: frame.size; frame.header when `header` is not one of four bytes.
[[nodiscard]] auto frame_header(std::size_t body_bytes) -> result<std::array<char, 4>>;
[[nodiscard]] auto frame_body_bytes(std::string_view header) -> result<std::size_t>;

struct request {
    std::string id = {};
    std::string method = {};
    std::uint8_t schema_version = 1; // judged after the secret, which decoding does not know
    std::string bootstrap_secret = {};
    std::uint64_t deadline_ms = 0; // wall clock, since 1970
    std::optional<std::string> idempotency_key = {};
    std::string payload = "null"; // JSON, as it stands
};
// Also frame.size: the text does not fit into a frame.
[[nodiscard]] auto encode(const request& what) -> result<std::string>;

// What could be made out of a request; `id` is empty when that is all there is.
struct rejected_request {
    std::string id;
    refusal why;
};
// Everything but the secret, the version, the deadline, the method and its key, in the order of the
// wire: the envelope, its words, the members of params.
[[nodiscard]] auto decode_request(std::string_view text)
    -> std::expected<request, rejected_request>;

struct response {
    std::string id;
    std::variant<std::string, error_code> outcome; // a result as JSON text, or what went wrong
};
// frame.size: the result does not fit into a frame.
[[nodiscard]] auto encode(const response& what) -> result<std::string>;

struct remote_error {
    std::string code;
    std::string message;
};
struct reply {
    std::string id;
    std::expected<std::string, remote_error> outcome; // a result as JSON text
};
[[nodiscard]] auto decode_reply(std::string_view text) -> result<reply>;

} // namespace glove::control
