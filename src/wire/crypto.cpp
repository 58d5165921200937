// The only user of libcrypto.
#include <climits>
#include <glove/wire/crypto.hpp>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace glove::wire {

namespace {

[[nodiscard]] auto as_bytes(std::string_view text) noexcept -> const unsigned char* {
    return reinterpret_cast<const unsigned char*>(text.data());
}

[[nodiscard]] auto as_context(void* state) noexcept -> EVP_MD_CTX* {
    return static_cast<EVP_MD_CTX*>(state);
}

} // namespace

auto sha256(std::string_view bytes) -> result<digest256> {
    digest256 out{};
    unsigned size = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), out.data(), &size, EVP_sha256(), nullptr) != 1 ||
        size != out.size())
        return fail(errc::io, "crypto.sha256");
    return out;
}

auto hmac_sha256(std::string_view key, std::string_view bytes) -> result<digest256> {
    if (key.size() > INT_MAX) return fail(errc::limit_exceeded, "crypto.hmac");
    digest256 out{};
    unsigned size = 0;
    if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), as_bytes(bytes), bytes.size(),
             out.data(), &size) == nullptr ||
        size != out.size())
        return fail(errc::io, "crypto.hmac");
    return out;
}

void sha256_stream::drop::operator()(state* owned) const noexcept {
    EVP_MD_CTX_free(as_context(owned));
}

auto sha256_stream::start() -> result<sha256_stream> {
    // `state` is never defined: it is the library's context under a name of our own.
    sha256_stream out{reinterpret_cast<state*>(EVP_MD_CTX_new())};
    if (!out.state_ || EVP_DigestInit_ex(as_context(out.state_.get()), EVP_sha256(), nullptr) != 1)
        return fail(errc::io, "crypto.sha256");
    return out;
}

auto sha256_stream::update(std::string_view bytes) -> result<> {
    if (EVP_DigestUpdate(as_context(state_.get()), bytes.data(), bytes.size()) != 1)
        return fail(errc::io, "crypto.sha256");
    return {};
}

auto sha256_stream::finish() && -> result<digest256> {
    digest256 out{};
    unsigned size = 0;
    if (EVP_DigestFinal_ex(as_context(state_.get()), out.data(), &size) != 1 || size != out.size())
        return fail(errc::io, "crypto.sha256");
    return out;
}

auto to_hex(const digest256& digest) -> std::string {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    out.reserve(2 * digest.size());
    for (const auto byte : digest) {
        out += digits[byte >> 4U];
        out += digits[byte & 0xfU];
    }
    return out;
}

auto equal_in_constant_time(std::string_view a, std::string_view b) noexcept -> bool {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace glove::wire
