// HMAC, apart from the hash: it brings most of libcrypto with it.
#include <climits>
#include <glove/wire/crypto.hpp>
#include <glove/wire/digest.hpp>
#include <openssl/hmac.h>

namespace glove::wire {

auto hmac_sha256(std::string_view key, std::string_view bytes) -> result<digest256> {
    if (key.size() > INT_MAX) return fail(errc::limit_exceeded, "crypto.hmac");
    digest256 out{};
    unsigned size = 0;
    const auto* const input = reinterpret_cast<const unsigned char*>(bytes.data());
    if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), input, bytes.size(),
             out.data(), &size) == nullptr ||
        size != out.size())
        return fail(errc::io, "crypto.hmac");
    return out;
}

auto digest_encoder::hmac_hex(std::string_view key) const -> result<std::string> {
    GLOVE_TRY(const auto input, bytes());
    GLOVE_TRY(const auto digest, hmac_sha256(key, input));
    return to_hex(digest);
}

} // namespace glove::wire
