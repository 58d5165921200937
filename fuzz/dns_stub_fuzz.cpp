// Whatever the bytes: an answer is none to another answer, has the id of the query, is read by the
// C library's parser, leaves the buffer behind it alone, and does not depend on what the query
// holds behind its question. Only host names in canonical form are looked up.
#include "net/dns_stub.hpp"
#include <algorithm>
#include <arpa/nameser.h>
#include <cstdlib>
#include <glove/net/destination.hpp>
#include <vector>

namespace {

using namespace glove::net;

void require(bool holds) {
    if (!holds) std::abort();
}

auto look_up(void* count, std::string_view name) noexcept -> std::uint32_t {
    ++*static_cast<int*>(count);
    const auto read = parse_host(name);
    require(read && read->name == name && !read->address);
    return name.size() % 2 == 0 ? 0x7f000001U : 0;
}

[[nodiscard]] auto answered(std::span<const std::uint8_t> query, int& asked)
    -> std::vector<std::uint8_t> {
    std::vector<std::uint8_t> out(longest_dns_answer + 16, 0xa5);
    const auto size =
        answer_dns(query, std::span{out}.first(longest_dns_answer), {&asked, look_up});
    require(size <= longest_dns_answer);
    require(std::all_of(out.begin() + static_cast<std::ptrdiff_t>(size), out.end(),
                        [](auto byte) { return byte == 0xa5; }));
    out.resize(size);
    return out;
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::span query{data, size};
    int asked = 0;
    const auto out = answered(query, asked);
    require(out.empty() == (size < 12 || (query[2] & 0x80U) != 0));
    require(asked <= 1);
    if (out.empty()) return 0;
    require(out.size() >= 12 && out[0] == query[0] && out[1] == query[1]);
    require((out[2] & 0x80U) != 0 && (out[2] & 0x79U) == (query[2] & 0x79U));

    ns_msg message{};
    require(::ns_initparse(out.data(), static_cast<int>(out.size()), &message) == 0);
    require(ns_msg_count(message, ns_s_ns) == 0 && ns_msg_count(message, ns_s_an) <= 1);
    require(ns_msg_count(message, ns_s_an) == 0 || asked == 1);
    for (const auto section : {ns_s_qd, ns_s_an, ns_s_ar}) {
        ns_rr record{};
        for (int i = 0; i < ns_msg_count(message, section); ++i)
            require(::ns_parserr(&message, section, i, &record) == 0);
    }
    // The rest of the query is its question, and what follows has no say.
    if (ns_msg_count(message, ns_s_qd) == 1) {
        const auto end = out.size() - (ns_msg_count(message, ns_s_an) != 0 ? 16U : 0U) -
                         (ns_msg_count(message, ns_s_ar) != 0 ? 11U : 0U);
        require(end <= size && std::equal(out.begin() + 12, out.begin() + static_cast<long>(end),
                                          query.begin() + 12));
    } else {
        require(out.size() == 12 && asked == 0);
    }
    return 0;
}
