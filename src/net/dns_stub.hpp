// Answers name queries from policy alone: the whole name service of a sandbox.
//
// Guarantees: no allocation, no system call, no state; an answer never holds bytes of the query but
// its id, flags and question, so it cannot carry anything out. Usable between clone and exec.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace glove::net {

// How the caller tells which names exist. `find` gets a lower-case name without a trailing dot and
// answers with its IPv4 address in host byte order, 0 for a name that policy does not know.
struct name_lookup {
    void* context = nullptr;
    auto (*find)(void* context, std::string_view name) noexcept -> std::uint32_t = nullptr;
};

inline constexpr std::size_t longest_dns_answer = 512; // what every UDP client can take

// Writes the answer to `query` into `out` (at least `longest_dns_answer`) and returns its size; 0
// when the query deserves none. A of a known name: one address; AAAA and its other types: no data;
// an unknown name, whatever the type, and what is no host name: NXDOMAIN, the latter without a
// lookup; what is no plain question: FORMERR, NOTIMP or REFUSED. `query` and `out` do not overlap.
[[nodiscard]] auto answer_dns(std::span<const std::uint8_t> query, std::span<std::uint8_t> out,
                              const name_lookup& names) noexcept -> std::size_t;

} // namespace glove::net
