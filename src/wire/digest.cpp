#include <glove/wire/digest.hpp>

namespace glove::wire {

auto digest_encoder::big_endian(std::uint64_t value, unsigned size) -> digest_encoder& {
    if (size < 8 && value >> (8 * size) != 0) {
        too_long_ = true;
        return *this;
    }
    for (unsigned shift = 8 * size; shift != 0;) {
        shift -= 8;
        bytes_ += static_cast<char>(value >> shift & 0xffU);
    }
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
