// What Sage's guests may leave: the one schema that the Sage harness needs. The only place that
// knows its name.
//
// Nothing here signs, reads or keeps anything.
#pragma once
#include <array>
#include <glove/adapters/guest_channel.hpp>
#include <string_view>

namespace glove::adapters::sage {

inline constexpr std::string_view adapter_id = "sage-observation";
// Which guests it is for.
inline constexpr std::array<std::string_view, 1> runtime_ids{"pi"};

// Admits every body whose members obey their grammars and whose schema is this one.
[[nodiscard]] auto observation_channel() -> channel_descriptor;

} // namespace glove::adapters::sage
