// Whatever a client of the proxy sends, the readers answer without a fault. What is taken is taken
// from its own bytes alone, however they arrive; a forwarded header block ends once; a body decodes
// to the same bytes in whatever pieces it comes.
#include "net/proxy/request.hpp"
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace glove::net::proxy;

constexpr std::size_t longest = 8192;

void require(bool holds) {
    if (!holds) std::abort();
}

// The payload of what the filter wrote for a chunked body.
auto decoded(std::string_view chunks) -> std::string {
    std::string out;
    while (!chunks.empty()) {
        std::size_t size = 0;
        const auto end = std::from_chars(chunks.data(), chunks.data() + chunks.size(), size, 16);
        require(end.ec == std::errc{});
        chunks.remove_prefix(static_cast<std::size_t>(end.ptr - chunks.data()));
        require(chunks.starts_with("\r\n"));
        chunks.remove_prefix(2);
        require(chunks.size() >= size + 2);
        out.append(chunks.substr(0, size));
        chunks.remove_prefix(size);
        require(chunks.starts_with("\r\n"));
        chunks.remove_prefix(2);
        if (size == 0) require(chunks.empty());
    }
    return out;
}

struct fed {
    bool good = true, done = false;
    std::string out;
};
auto feed(const http_request& request, std::string_view bytes, std::size_t step) -> fed {
    fed result;
    body_filter filter{request};
    while (result.good && !bytes.empty()) {
        const auto part = bytes.substr(0, step);
        result.good = filter.feed(part, result.out);
        bytes.remove_prefix(part.size());
    }
    result.done = filter.done();
    return result;
}

void check_body(const http_request& request, std::string_view bytes) {
    const auto whole = feed(request, bytes, bytes.size() + 1);
    const auto pieces = feed(request, bytes, 1);
    require(whole.good == pieces.good && whole.done == pieces.done);
    if (request.body == body_kind::chunked && whole.good)
        require(decoded(whole.out) == decoded(pieces.out));
    if (request.body != body_kind::chunked) {
        require(whole.good && whole.out == pieces.out);
        require(whole.out.size() <= request.length && bytes.starts_with(whole.out));
    }
}

void check_http(std::string_view text) {
    const auto request = parse_http(text, longest);
    if (request.state != parsed::complete) {
        require(request.state == parsed::incomplete || !request.problem.empty());
        return;
    }
    require(request.consumed <= text.size() && request.consumed <= longest);
    require(request.where.port != 0 && !request.where.host.name.empty());
    const auto own = parse_http(text.substr(0, request.consumed), longest);
    require(own.state == parsed::complete && own.head == request.head &&
            own.where == request.where);
    require(parse_http(text.substr(0, request.consumed - 1), longest).state == parsed::incomplete);
    if (request.tunnel) return;
    require(request.head.find("\r\n\r\n") == request.head.size() - 4);
    require(std::ranges::count(request.head, '\n') == std::ranges::count(request.head, '\r'));
    check_body(request, text.substr(request.consumed));
}

template<class Parse> void check_prefixes(std::string_view text, Parse parse) {
    const auto whole = parse(text);
    if (whole.state != parsed::complete) return;
    require(whole.consumed <= text.size());
    require(parse(text.substr(0, whole.consumed)).state == parsed::complete);
    for (std::size_t size = 0; size < whole.consumed; ++size)
        require(parse(text.substr(0, size)).state == parsed::incomplete);
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    check_http(text);
    check_prefixes(text, parse_socks_greeting);
    check_prefixes(text, parse_socks_credential);
    check_prefixes(text, parse_socks_request);
    for (const auto kind : {body_kind::sized, body_kind::chunked})
        check_body({.body = kind, .length = size / 2}, text);
    return 0;
}
