#include <array>
#include <glove/wire/digest.hpp>

namespace glove::wire {

auto digest_encoder::big_endian(std::uint64_t value, unsigned size) -> digest_encoder& {
    if (size < 8 && value >> (8 * size) != 0) {
        too_long_ = true;
        return *this;
    }
    std::array<char, 8> atom{};
    for (unsigned i = 0; i < size; ++i)
        atom[i] = static_cast<char>(value >> 8 * (size - 1 - i) & 0xffU);
    bytes_.append(atom.data(), size);
    return *this;
}

auto digest_encoder::bytes() const -> result<std::string_view> {
    if (too_long_) return fail(errc::limit_exceeded, "digest.length");
    return bytes_;
}

auto digest_encoder::sha256_hex() const -> result<std::string> {
    GLOVE_TRY(const auto input, bytes());
    GLOVE_TRY(const auto digest, sha256(input));
    return to_hex(digest);
}

} // namespace glove::wire
