// Takes out of a result what matches a pattern.
//
// Guarantees: patterns are applied to decoded strings, so an escape hides nothing; what cannot be
// read is replaced whole, never passed on. What a text would become is known before it is made.
#pragma once
#include "policy/matchers.hpp"
#include <span>

namespace glove::policy {

inline constexpr std::string_view redacted = "[redacted]";
// False when nothing was changed. Member names are looked at, too. Empty when it would grow by more
// than `most_growth` bytes.
[[nodiscard]] auto redact(std::span<const pattern> patterns, std::string& json_text,
                          std::size_t most_growth) -> bool;

} // namespace glove::policy
