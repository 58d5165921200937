// The key of the chain of receipts. Its digits and bytes are only ever in memory that is wiped.
#include <algorithm>
#include <glove/base/wipe.hpp>
#include <glove/control/receipt.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/digest.hpp>
#include <glove/wire/grammar.hpp>

namespace glove::control {

namespace {

constexpr std::size_t key_bytes = 32;
constexpr std::size_t least_file = 2 * key_bytes, most_file = 128;

[[nodiscard]] auto trimmed(std::string_view text) -> std::string_view {
    constexpr std::string_view space = " \t\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
    return text.substr(0, text.find_last_not_of(space) + 1);
}

[[nodiscard]] auto nibble(char digit) -> unsigned {
    return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

// In pieces, so that no buffer but the hash's own ever holds the key.
[[nodiscard]] auto id_of(std::string_view key) -> result<std::string> {
    wire::digest_encoder head;
    head.str("glove.audit-key-id").u8(1).u32(key.size());
    GLOVE_TRY(const auto first, head.bytes());
    GLOVE_TRY(auto hash, wire::sha256_stream::start());
    GLOVE_CHECK(hash.update(first));
    GLOVE_CHECK(hash.update(key));
    GLOVE_TRY(const auto digest, std::move(hash).finish());
    return wire::to_hex(digest);
}

} // namespace

auto audit_key::parse(std::string_view text) -> result<audit_key> {
    const auto digits = trimmed(text);
    if (text.size() < least_file || text.size() > most_file ||
        !wire::conforms(wire::grammar::hex64, digits))
        return fail(errc::invalid_input, "audit.key",
                    "the key is not 64 lower hexadecimal digits with nothing but white space "
                    "around, 128 bytes at most");
    GLOVE_TRY(auto bytes, sys::secret_memory::make(key_bytes));
    for (std::size_t i = 0; i < key_bytes; ++i)
        bytes.bytes()[i] =
            static_cast<char>(nibble(digits[2 * i]) << 4U | nibble(digits[2 * i + 1]));
    GLOVE_TRY(auto id, id_of(bytes.view()));
    return audit_key{std::move(bytes), std::move(id)};
}

auto audit_key::load(const std::string& path) -> result<audit_key> {
    GLOVE_TRY(auto text, sys::read_private_file(path, most_file));
    auto out = parse(text);
    wipe(text);
    if (!out) out.error().detail = path + ": " + out.error().detail;
    return out;
}

auto audit_key::authenticate(std::string_view bytes) const -> result<std::string> {
    if (bytes_.view().size() != key_bytes)
        return fail(errc::wrong_state, "audit.key", "the key is somewhere else now");
    GLOVE_TRY(const auto digest, wire::hmac_sha256(bytes_.view(), bytes));
    return wire::to_hex(digest);
}

} // namespace glove::control
