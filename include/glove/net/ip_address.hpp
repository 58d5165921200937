// IPv4 and IPv6 addresses as values, and which of them lie outside of the public internet.
//
// Guarantees: one text form in, one text form out; the odd forms that old resolvers take (octal,
// decimal, short, zone ids) are refused, never guessed at. It never asks the host.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace glove::net {

class ip_address {
public:
    using v4_bytes = std::array<std::uint8_t, 4>;
    using v6_bytes = std::array<std::uint8_t, 16>;

    constexpr explicit ip_address(const v4_bytes& network_order) noexcept;
    constexpr explicit ip_address(const v6_bytes& network_order) noexcept;

    // Four decimal parts without leading zeros, or RFC 4291 text without brackets or a zone.
    [[nodiscard]] static auto parse(std::string_view text) noexcept -> std::optional<ip_address>;

    [[nodiscard]] constexpr auto is_v4() const noexcept -> bool { return size_ == 4; }
    [[nodiscard]] constexpr auto bytes() const noexcept -> std::span<const std::uint8_t> {
        return {bytes_.data(), size_};
    }
    // Dotted decimal, or RFC 5952 text without brackets.
    [[nodiscard]] auto to_string() const -> std::string;
    auto operator<=>(const ip_address&) const = default;

private:
    std::uint8_t size_;
    v6_bytes bytes_{};
};

constexpr ip_address::ip_address(const v4_bytes& network_order) noexcept : size_{4} {
    for (std::size_t i = 0; i < network_order.size(); ++i) bytes_[i] = network_order[i];
}
constexpr ip_address::ip_address(const v6_bytes& network_order) noexcept
    : size_{16}, bytes_{network_order} {}

struct ip_network {
    ip_address base;
    unsigned prefix = 0; // bits
    // ADDRESS/BITS; bits of the address past the prefix must be zero.
    [[nodiscard]] static auto parse(std::string_view text) noexcept -> std::optional<ip_network>;
    // The network of that size that the address is in; its own network when `bits` are too many.
    [[nodiscard]] static auto around(const ip_address& address, unsigned bits) noexcept
        -> ip_network;
    // Holds the address or the whole network. Addresses of the other family are in none.
    [[nodiscard]] auto contains(const ip_address& address) const noexcept -> bool;
    [[nodiscard]] auto contains(const ip_network& other) const noexcept -> bool;
    [[nodiscard]] auto is_single() const noexcept -> bool {
        return prefix == base.bytes().size() * 8;
    }
    [[nodiscard]] auto to_string() const -> std::string;
    auto operator==(const ip_network&) const -> bool = default;
};

// What kind of place an address is when it is no public unicast address ("loopback", "private",
// "link-local", ...); empty for a public one. Addresses that carry an IPv4 address inside (mapped,
// compatible, NAT64, 6to4, Teredo) are never public. The services that hand a cloud machine its
// credentials are "metadata", also the one that lies in public space.
[[nodiscard]] auto reserved_use(const ip_address& address) noexcept -> std::string_view;
// The same for a network of which no part is public; empty when one is.
[[nodiscard]] auto reserved_use(const ip_network& network) noexcept -> std::string_view;

// Whether the address, or any of the network, can be one end of a connection at all. Not so:
// unspecified, multicast and broadcast addresses, 240/4, and IPv4-mapped ones, which the kernel
// would take to an IPv4 address that was judged as something else.
[[nodiscard]] auto can_be_dialled(const ip_address& address) noexcept -> bool;
[[nodiscard]] auto can_be_dialled(const ip_network& network) noexcept -> bool;

} // namespace glove::net
