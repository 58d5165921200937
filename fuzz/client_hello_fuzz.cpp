// Whatever the bytes: only a complete greeting has a name, which stands in the bytes; a verdict is
// final, so that bytes which come one by one are judged like those that come together; and cutting
// the message into records of another size changes nothing.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <glove/net/client_hello.hpp>
#include <vector>

namespace {

using namespace glove::net;
using view = std::span<const std::uint8_t>;

void require(bool holds) {
    if (!holds) std::abort();
}

[[nodiscard]] auto is_same(const client_hello& a, const client_hello& b) -> bool {
    return a.state == b.state && a.server_name == b.server_name &&
           a.has_encrypted_hello == b.has_encrypted_hello;
}

void check_prefixes(view bytes, const client_hello& whole) {
    // Every prefix of a short input, and some of a long one.
    const auto step = std::max<std::size_t>(1, bytes.size() / 64);
    auto before = hello_state::incomplete;
    for (std::size_t size = 0; size < bytes.size(); size += step) {
        const auto out = read_client_hello(bytes.first(size));
        const bool is_final = before == hello_state::not_tls || before == hello_state::malformed;
        require(!is_final || out.state == before);
        // What was complete stays so, or has something behind it that may not follow.
        require(before != hello_state::complete || out.state == hello_state::complete ||
                out.state == hello_state::malformed);
        before = out.state;
    }
    require(whole.state != hello_state::incomplete || before == hello_state::incomplete);
}

void check_records(view message, std::size_t size) {
    std::vector<std::uint8_t> one{22, 3, 1, static_cast<std::uint8_t>(message.size() >> 8U),
                                  static_cast<std::uint8_t>(message.size())};
    one.insert(one.end(), message.begin(), message.end());
    std::vector<std::uint8_t> many;
    for (auto rest = message; !rest.empty(); rest = rest.subspan(std::min(size, rest.size()))) {
        const auto part = rest.first(std::min(size, rest.size()));
        many.insert(many.end(), {22, 3, 3, static_cast<std::uint8_t>(part.size() >> 8U),
                                 static_cast<std::uint8_t>(part.size())});
        many.insert(many.end(), part.begin(), part.end());
    }
    require(is_same(read_client_hello(one), read_client_hello(many)));
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const view bytes{data, size};
    const auto out = read_client_hello(bytes);
    if (out.state != hello_state::complete)
        require(out.server_name.empty() && !out.has_encrypted_hello);
    check_prefixes(bytes, out);
    if (size > 1 && size < 4096) check_records(bytes.subspan(1), 1U + bytes[0]);
    return 0;
}
