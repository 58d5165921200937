// The digest of FIPS 180-4, a block at a time. For names of public keys only: it hides nothing from
// whoever measures its time, and need not.
#include "ssh/fingerprint.hpp"
#include <bit>

namespace glove::ssh {

namespace {

constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
constexpr std::size_t block_bytes = 64;

using words8 = std::array<std::uint32_t, 8>;

void mix(words8& state, std::string_view block) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < block_bytes; ++i)
        w[i / 4] = w[i / 4] << 8U | static_cast<unsigned char>(block[i]);
    for (std::size_t i = 16; i < 64; ++i) {
        const auto a = w[i - 15];
        const auto b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3U) +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10U);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
        const auto first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        const auto second =
            (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const words8 added{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state[i] += added[i];
}

} // namespace

auto sha256_of(std::string_view bytes) -> std::array<std::uint8_t, 32> {
    words8 state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const auto bits = std::uint64_t{bytes.size()} * 8;
    for (; bytes.size() >= block_bytes; bytes.remove_prefix(block_bytes))
        mix(state, bytes.substr(0, block_bytes));
    std::string last{bytes};
    last += '\x80';
    while (last.size() % block_bytes != block_bytes - 8) last += '\0';
    for (const auto shift : {56U, 48U, 40U, 32U, 24U, 16U, 8U, 0U})
        last += static_cast<char>(bits >> shift);
    for (std::size_t at = 0; at < last.size(); at += block_bytes)
        mix(state, std::string_view{last}.substr(at, block_bytes));
    std::array<std::uint8_t, 32> out{};
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<std::uint8_t>(state[i / 4] >> (24U - 8U * (i % 4)));
    return out;
}

auto fingerprint_of(std::string_view key) -> std::string {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out{"SHA256:"};
    std::uint32_t bits = 0;
    unsigned count = 0;
    for (const auto byte : sha256_of(key)) {
        bits = bits << 8U | byte;
        for (count += 8; count >= 6; count -= 6) out += digits[bits >> (count - 6) & 63U];
    }
    if (count > 0) out += digits[bits << (6 - count) & 63U];
    return out;
}

} // namespace glove::ssh
