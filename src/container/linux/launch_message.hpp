// What the service and a session's keeper say to each other, as bytes: what is to be launched, and
// what became of it.
//
// Guarantees: reading is strict and bounded; every value is checked, nothing may follow the last
// one, and what was read encodes to the same bytes.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/plan.hpp>
#include <string>
#include <string_view>

namespace glove::container {

// Everything in a plan that init needs, of a session. Descriptors travel beside it, in this order:
// the mount of the scratch file system, those of the tree's entries, and the bridge's channel.
struct launch_message {
    container::plan plan; // without descriptors; `has_mount` tells which entries have one
    std::vector<bool> has_mount;
    std::uint16_t rows = 0, columns = 0;
};

inline constexpr std::size_t longest_launch_message = 4UL << 20;
inline constexpr std::size_t most_launch_descriptors = 1024;

// Step: launcher.plan (errc::limit_exceeded, or a plan that no session has).
[[nodiscard]] auto encode_launch(const plan& of, std::uint16_t rows, std::uint16_t columns)
    -> result<std::string>;
[[nodiscard]] auto decode_launch(std::string_view bytes) -> result<launch_message>;

inline constexpr std::size_t longest_refusal = 16UL << 10;
// Cut to fit, if need be.
[[nodiscard]] auto encode_refusal(const error& problem) -> std::string;
// The step is one that is known to happen in a launch, else `launcher.keeper`.
[[nodiscard]] auto decode_refusal(std::string_view bytes) -> error;

} // namespace glove::container
