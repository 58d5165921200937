// Takes out of a result what matches a pattern.
//
// Guarantees: patterns are applied to decoded strings, so an escape hides nothing; what cannot be
// read is replaced whole, never passed on.
#pragma once
#include "policy/matchers.hpp"
#include <span>

namespace glove::policy {

inline constexpr std::string_view redacted = "[redacted]";
// False when nothing was changed. Member names are looked at, too.
[[nodiscard]] auto redact(std::span<const pattern> patterns, std::string& json_text) -> bool;

} // namespace glove::policy
