// How much of the network an agent may name, as an operator writes it.
//
// Guarantees: one row per tier; the words parsed and the words printed are the same. It never
// decides what a tier does: the system call table and the network plan each have a column for it.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace glove::container {

enum class network_tier : std::uint8_t { offline, local, egress, sealed };

struct network_tier_row {
    network_tier tier;
    std::string_view name;
    std::string_view meaning;
};

inline constexpr auto network_tiers = std::to_array<network_tier_row>({
    {network_tier::offline, "offline", "Unix sockets only; no internet socket can be made"},
    {network_tier::local, "local", "Unix sockets, and TCP and UDP on the private loopback"},
    {network_tier::egress, "egress", "as local, with a proxy on the loopback for permitted hosts"},
    {network_tier::sealed, "sealed", "no socket by name at all; only the descriptors handed over"},
});

[[nodiscard]] constexpr auto to_string(network_tier tier) noexcept -> std::string_view {
    for (const auto& row : network_tiers)
        if (row.tier == tier) return row.name;
    return "sealed";
}

[[nodiscard]] constexpr auto parse_network_tier(std::string_view word) noexcept
    -> std::optional<network_tier> {
    for (const auto& row : network_tiers)
        if (row.name == word) return row.tier;
    return std::nullopt;
}

} // namespace glove::container
