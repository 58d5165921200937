// Where a connection is meant to go, in the one form that is compared, dialled and recorded.
//
// Guarantees: a name is lower-case ASCII without a trailing dot; an address is in its canonical
// text. Whatever a resolver, a log or a second parser could read differently (NUL, control bytes,
// spaces, percent signs, user information, zone ids, odd numeric forms, non-ASCII letters) is
// refused. One function decides for every way in: rules, CONNECT, absolute URLs, SOCKS, DNS, SNI.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/base/host_name.hpp>
#include <glove/net/ip_address.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove::net {

inline constexpr std::size_t longest_name = longest_host_name;

struct host {
    std::string name;                  // a name, or the canonical text of `address`
    std::optional<ip_address> address; // when it is a literal
    auto operator==(const host&) const -> bool = default;
};

struct destination {
    net::host host;
    std::uint16_t port = 0; // never 0
    auto operator==(const destination&) const -> bool = default;
};

// A port is 1 to 65535, in digits without leading zeros.
[[nodiscard]] auto parse_port(std::string_view text) noexcept -> std::optional<std::uint16_t>;

// A name or an address; IPv6 with or without brackets.
[[nodiscard]] auto parse_host(std::string_view text) -> result<host>;

// HOST:PORT, [IPV6]:PORT, or HOST or [IPV6] alone where there is a `default_port`. Ports are
// decimal. IPv6 without brackets is refused: its last group could be read as a port.
[[nodiscard]] auto parse_destination(std::string_view text,
                                     std::optional<std::uint16_t> default_port = std::nullopt)
    -> result<destination>;

// HOST:PORT, with brackets around IPv6.
[[nodiscard]] auto to_string(const destination& where) -> std::string;

} // namespace glove::net
