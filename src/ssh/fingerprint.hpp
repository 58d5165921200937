// The name of a key, as ssh-add prints it.
//
// A SHA-256 of its own: the library behind wire/crypto.hpp would more than double what every start
// of `glove` has to relocate. tests/ssh holds the two against each other.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace glove::ssh {

[[nodiscard]] auto sha256_of(std::string_view bytes) -> std::array<std::uint8_t, 32>;
// "SHA256:" and base64 without padding.
[[nodiscard]] auto fingerprint_of(std::string_view key) -> std::string;

} // namespace glove::ssh
