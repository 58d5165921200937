// What is not known is refused, whether or not this build has the backend.
#include "control/backend_rules.hpp"
#include "ssh/fingerprint.hpp"
#include <algorithm>
#include <glove/base/ascii.hpp>
#include <optional>

namespace glove::control {

namespace {

constexpr std::string_view key_type = "ssh-ed25519 ";
constexpr std::size_t key_bytes = 51; // type and key, each with its length

[[nodiscard]] auto wrong(std::string_view member, std::string_view rule) {
    return fail(errc::invalid_input, "config.backend",
                "$." + std::string{member} + " " + std::string{rule});
}

[[nodiscard]] auto value_of(char c) -> std::optional<unsigned> {
    constexpr std::string_view alphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto at = alphabet.find(c);
    if (at == alphabet.npos) return std::nullopt;
    return static_cast<unsigned>(at);
}

// Of a multiple of three bytes, so there is no padding; empty when the text is none.
[[nodiscard]] auto from_base64(std::string_view text) -> std::string {
    std::string out;
    unsigned bits = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto value = value_of(text[i]);
        if (!value) return {};
        bits = bits << 6U | *value;
        if (i % 4 != 3) continue;
        for (const auto shift : {16U, 8U, 0U}) out += static_cast<char>(bits >> shift & 0xffU);
        bits = 0;
    }
    return text.size() % 4 == 0 ? out : std::string{};
}

[[nodiscard]] auto check_host_key(const remote_backend_config& what) -> result<> {
    const std::string_view key{what.host_public_key};
    if (!key.starts_with(key_type))
        return wrong("remote_backend.host_public_key", "is not of the type ssh-ed25519");
    const auto blob = from_base64(key.substr(key_type.size()));
    constexpr std::string_view head{"\0\0\0\x0bssh-ed25519\0\0\0\x20", 19};
    if (blob.size() != key_bytes || !blob.starts_with(head))
        return wrong("remote_backend.host_public_key", "is not one key without a comment");
    if (what.host_key_fingerprint != ssh::fingerprint_of(blob))
        return wrong("remote_backend.host_key_fingerprint", "is not that of host_public_key");
    return {};
}

// name@sha256:..., without a tag.
[[nodiscard]] auto check_image(const remote_backend_config& what) -> result<> {
    const std::string_view image{what.container_image};
    const auto at = image.find('@');
    const auto name = image.substr(0, at);
    const auto last = name.substr(name.rfind('/') == name.npos ? 0 : name.rfind('/') + 1);
    if (at == image.npos || last.empty() || name.find(' ') != name.npos)
        return wrong("remote_backend.container_image", "is not name@sha256:digest");
    if (last.find(':') != last.npos) return wrong("remote_backend.container_image", "has a tag");
    if (image.substr(at + 1) != what.container_image_digest)
        return wrong("remote_backend.container_image_digest", "is not that of container_image");
    return {};
}

} // namespace

auto check_apple(const apple_container_config& what) -> result<> {
    if (!what.sage_guest) return {};
    if (!std::ranges::all_of(what.sage_guest->source_revision,
                             [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }))
        return wrong("apple_container.sage_guest.source_revision",
                     "is not 40 lower-case hexadecimal digits");
    return {};
}

auto check_remote(const remote_backend_config& what) -> result<> {
    if (what.host.starts_with('-') || what.host.find('_') != std::string::npos)
        return wrong("remote_backend.host", "is not a host");
    const auto& user = what.user;
    const auto legal = [](char c) { return is_lower(c) || is_digit(c) || c == '_' || c == '-'; };
    if (!(is_lower(user.front()) || user.front() == '_') || !std::ranges::all_of(user, legal))
        return wrong("remote_backend.user", "is not a user");
    GLOVE_CHECK(check_host_key(what));
    return check_image(what);
}

} // namespace glove::control
