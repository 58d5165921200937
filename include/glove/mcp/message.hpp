// JSON-RPC 2.0 messages of MCP: strict reading, and the texts Glove writes itself.
//
// Guarantees: what is read was validated whole (json_outline.hpp). Ids are kept as the token that
// stood in the message, so 1 and "1" differ and 2^53+1 stays what it is; an id is a string or an
// integer. A batch, a `null` or fractional id, params that are no object or array, and a message
// that is both result and error are refused. Member names are compared exactly, in case too; what a
// message has beside its own members counts nothing.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/wire/json_outline.hpp>
#include <string>
#include <string_view>

namespace glove::mcp {

enum class message_kind : std::uint8_t { request, notification, answer, failure };

// Slices of the line it was read from.
struct message {
    message_kind kind{};
    std::string_view id;                       // raw token, of all but notifications
    std::string method;                        // decoded
    const wire::json::slice* params = nullptr; // null: absent
    const wire::json::slice* result = nullptr; // of an answer
    const wire::json::slice* error = nullptr;  // of a failure
};

// Codes of JSON-RPC, and Glove's own, which are outside of the reserved range so that they cannot
// be taken for the peer's.
enum class code : int {
    parse_error = -32700,
    invalid_request = -32600,
    method_not_found = -32601,
    invalid_params = -32602,
    internal_error = -32603,
    // Glove's own
    upstream_gone = -31001,
    timed_out = -31002,
    too_large = -31003,
    refused_answer = -31004, // the upstream's answer was not one
    too_many_calls = -31005,
};

// What is wrong with a line, for the answer to whoever sent it.
struct refusal {
    code number{};
    std::string words;       // for the sender; never holds a name or value of the message
    std::string id = "null"; // the token, where it could be made out
};

class message_reader {
public:
    message_reader() : message_reader{false} {}
    // Of servers, whose messages may be nested more deeply.
    [[nodiscard]] static auto of_servers() -> message_reader { return message_reader{true}; }
    // The message lives until the next call and as long as `line`.
    [[nodiscard]] auto read(std::string_view line) -> std::expected<message, refusal>;
    [[nodiscard]] auto outline() const noexcept -> const wire::json::outline& { return outline_; }
    // A member of params, result or error; null when it is absent.
    [[nodiscard]] auto member(const wire::json::slice* object, std::string_view name) const noexcept
        -> const wire::json::slice*;

private:
    explicit message_reader(bool of_servers);
    wire::json::outline outline_;
    const wire::json::limits& bounds_;
};

// The id of a message that is refused: the one of its outermost object, when there is exactly one
// and it is an id. `line` may be cut and is looked at as far as it goes; "null" when there is none.
[[nodiscard]] auto made_out_id(std::string_view line) -> std::string;
// The same of a message of which only the beginning and the end are there: at the end, the id is
// found in the last member, or before a last member `jsonrpc`.
[[nodiscard]] auto made_out_id(std::string_view head, std::string_view tail) -> std::string;

// The bounds of every message.
[[nodiscard]] auto message_limits() noexcept -> const wire::json::limits&;
// Of those of servers: a definition that is nested too deeply for agents must not take the list
// along that it stands in.
[[nodiscard]] auto server_message_limits() noexcept -> const wire::json::limits&;

// Texts of whole messages. `id` is a raw token; `params`, `result` and `data` are JSON texts.
[[nodiscard]] auto request_text(std::string_view id, std::string_view method,
                                std::string_view params) -> std::string; // empty params: left out
[[nodiscard]] auto notification_text(std::string_view method, std::string_view params)
    -> std::string;
[[nodiscard]] auto answer_text(std::string_view id, std::string_view result) -> std::string;
[[nodiscard]] auto failure_text(std::string_view id, code number, std::string_view words)
    -> std::string;
// A failure of the upstream passed on as it is, under another id.
[[nodiscard]] auto failure_text(std::string_view id, std::string_view error) -> std::string;
// The result of a tools/call that Glove refused: isError and one text.
[[nodiscard]] auto tool_error_text(std::string_view id, std::string_view words) -> std::string;

} // namespace glove::mcp
