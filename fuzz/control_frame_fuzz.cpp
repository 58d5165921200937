// Whatever the bytes: a header is a size or a refusal, and a body is a request or a refusal. What
// is taken for a request is written again and read as the same, with the payload as it came; what
// is refused never has its text in the reason.
#include <cstdint>
#include <cstdlib>
#include <glove/control/protocol.hpp>
#include <string_view>

namespace {

using namespace glove::control;

void require(bool holds) {
    if (!holds) std::abort();
}

void check_header(std::string_view bytes) {
    const auto size = frame_body_bytes(bytes.substr(0, frame_header_bytes));
    if (!size) return;
    const auto again = frame_header(*size);
    require(again && bytes.starts_with(std::string_view{again->data(), again->size()}));
}

void check_request(std::string_view body) {
    const auto first = decode_request(body);
    if (!first) {
        require(first.error().why.code == error_code::invalid_request);
        require(!first.error().why.why.step.empty());
        // An answer can be written whatever was asked.
        require(encode(response{first.error().id, error_code::invalid_request}).has_value());
        return;
    }
    const auto text = encode(*first);
    if (!text) return; // a payload that fits as it came may not fit in canonical company
    const auto second = decode_request(*text);
    require(second && second->id == first->id && second->method == first->method);
    require(second->schema_version == first->schema_version);
    require(second->bootstrap_secret == first->bootstrap_secret);
    require(second->deadline_ms == first->deadline_ms);
    require(second->idempotency_key == first->idempotency_key);
    require(second->payload == first->payload && body.find(first->payload) != body.npos);
    require(encode(*second) == *text);
}

void check_reply(std::string_view body) {
    const auto read = decode_reply(body);
    if (!read || !read->outcome) return;
    const auto text = encode(response{read->id, *read->outcome});
    if (!text) return;
    const auto again = decode_reply(*text);
    require(again && again->id == read->id && again->outcome && *again->outcome == *read->outcome);
}

} // namespace

// A frame with its header; the rest is tried as a request and as a reply.
extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    if (size < frame_header_bytes) return 0;
    check_header(bytes);
    check_request(bytes.substr(frame_header_bytes));
    check_reply(bytes.substr(frame_header_bytes));
    return 0;
}
