// SHA-256, HMAC-SHA-256 and comparison in constant time. Two source files know the library
// behind it.
#pragma once
#include <array>
#include <cstdint>
#include <glove/base/error.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace glove::wire {

using digest256 = std::array<std::uint8_t, 32>;

[[nodiscard]] auto sha256(std::string_view bytes) -> result<digest256>;
[[nodiscard]] auto hmac_sha256(std::string_view key, std::string_view bytes) -> result<digest256>;

// The same digest for bytes that arrive in pieces.
class sha256_stream {
public:
    [[nodiscard]] static auto start() -> result<sha256_stream>;
    [[nodiscard]] auto update(std::string_view bytes) -> result<>;
    [[nodiscard]] auto finish() && -> result<digest256>;

private:
    struct state;
    struct drop {
        void operator()(state* owned) const noexcept;
    };
    explicit sha256_stream(state* adopted) noexcept : state_{adopted} {}
    std::unique_ptr<state, drop> state_;
};

// Lower case.
[[nodiscard]] auto to_hex(const digest256& digest) -> std::string;
[[nodiscard]] auto sha256_hex(std::string_view bytes) -> result<std::string>;

// The time depends on the lengths only; texts of different length are different at once.
[[nodiscard]] auto equal_in_constant_time(std::string_view a, std::string_view b) noexcept -> bool;

} // namespace glove::wire
