// SHA-256 by the library's plain functions: a program that links these alone stays small and loads
// no provider when it starts. HMAC, which needs the rest of the library, is in hmac.cpp.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <glove/wire/crypto.hpp>
#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace glove::wire {

struct sha256_stream::state {
    SHA256_CTX context{};
};

void sha256_stream::drop::operator()(state* owned) const noexcept { delete owned; }

auto sha256_stream::start() -> result<sha256_stream> {
    sha256_stream out{new state};
    if (SHA256_Init(&out.state_->context) != 1) return fail(errc::io, "crypto.sha256");
    return out;
}

auto sha256_stream::update(std::string_view bytes) -> result<> {
    if (SHA256_Update(&state_->context, bytes.data(), bytes.size()) != 1)
        return fail(errc::io, "crypto.sha256");
    return {};
}

auto sha256_stream::finish() && -> result<digest256> {
    digest256 out{};
    if (SHA256_Final(out.data(), &state_->context) != 1) return fail(errc::io, "crypto.sha256");
    return out;
}

auto sha256(std::string_view bytes) -> result<digest256> {
    digest256 out{};
    SHA256_CTX context; // no memory is taken for what is hashed at once
    if (SHA256_Init(&context) != 1 || SHA256_Update(&context, bytes.data(), bytes.size()) != 1 ||
        SHA256_Final(out.data(), &context) != 1)
        return fail(errc::io, "crypto.sha256");
    return out;
}

auto to_hex(const digest256& digest) -> std::string {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out(2 * digest.size(), '\0');
    for (std::size_t i = 0; i < digest.size(); ++i) {
        out[2 * i] = digits[digest[i] >> 4U];
        out[2 * i + 1] = digits[digest[i] & 0xfU];
    }
    return out;
}

auto sha256_hex(std::string_view bytes) -> result<std::string> {
    GLOVE_TRY(const auto digest, sha256(bytes));
    return to_hex(digest);
}

auto equal_in_constant_time(std::string_view a, std::string_view b) noexcept -> bool {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace glove::wire
