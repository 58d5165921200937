// SOCKS5 (RFC 1928, 1929): every length is looked at before what it measures.
#include "net/proxy/request.hpp"
#include <algorithm>

namespace glove::net::proxy {

namespace {

[[nodiscard]] auto byte_at(std::string_view bytes, std::size_t at) -> std::uint8_t {
    return static_cast<std::uint8_t>(bytes[at]);
}

} // namespace

auto parse_socks_greeting(std::string_view bytes) -> socks_greeting {
    if (bytes.size() < 2) return {};
    const std::size_t count = byte_at(bytes, 1);
    if (byte_at(bytes, 0) != 5 || count == 0) return {.state = parsed::bad};
    if (bytes.size() < 2 + count) return {};
    socks_greeting out{.state = parsed::complete, .consumed = 2 + count};
    for (std::size_t i = 0; i < count; ++i) {
        if (byte_at(bytes, 2 + i) == socks_none) out.offers_none = true;
        if (byte_at(bytes, 2 + i) == socks_password) out.offers_password = true;
    }
    return out;
}

auto parse_socks_credential(std::string_view bytes) -> socks_credential {
    if (bytes.empty()) return {};
    if (byte_at(bytes, 0) != 1) return {.state = parsed::bad};
    if (bytes.size() < 2) return {};
    const std::size_t user = byte_at(bytes, 1);
    if (bytes.size() < 3 + user) return {};
    const std::size_t password = byte_at(bytes, 2 + user);
    if (bytes.size() < 3 + user + password) return {};
    return {.state = parsed::complete,
            .consumed = 3 + user + password,
            .user = std::string{bytes.substr(2, user)},
            .password = std::string{bytes.substr(3 + user, password)}};
}

auto parse_socks_request(std::string_view bytes) -> socks_request {
    constexpr std::uint8_t general = 0x01;
    constexpr std::uint8_t no_command = 0x07;
    constexpr std::uint8_t no_address_type = 0x08;
    const auto bad_request = [](std::uint8_t reply, std::string_view problem) {
        return socks_request{.state = parsed::bad, .reply = reply, .problem = problem};
    };
    if (bytes.size() < 5) return {};
    if (byte_at(bytes, 0) != 5 || byte_at(bytes, 2) != 0)
        return bad_request(general, "no SOCKS5 request");
    if (byte_at(bytes, 1) != 1) return bad_request(no_command, "a SOCKS5 command but CONNECT");
    const auto type = byte_at(bytes, 3);
    if (type != 1 && type != 3 && type != 4)
        return bad_request(no_address_type, "an unknown type of SOCKS5 address");
    const std::size_t begin = type == 3 ? 5 : 4;
    const std::size_t size = type == 1 ? 4 : type == 4 ? 16 : byte_at(bytes, 4);
    if (bytes.size() < begin + size + 2) return {};
    const auto raw = bytes.substr(begin, size);
    std::string name{raw};
    if (type == 1) {
        ip_address::v4_bytes address;
        std::ranges::copy(raw, address.begin());
        name = ip_address{address}.to_string();
    } else if (type == 4) {
        ip_address::v6_bytes address;
        std::ranges::copy(raw, address.begin());
        name = ip_address{address}.to_string();
    }
    auto host = parse_host(name);
    const auto port = static_cast<std::uint16_t>(byte_at(bytes, begin + size) << 8U |
                                                 byte_at(bytes, begin + size + 1));
    if (!host || port == 0) return bad_request(general, "a SOCKS5 target that is no HOST:PORT");
    return {
        .state = parsed::complete, .consumed = begin + size + 2, .where = {*std::move(host), port}};
}

auto to_base64(std::string_view bytes) -> std::string {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const auto left = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; ++k)
            group = group << 8U | (k < left ? byte_at(bytes, i + k) : 0U);
        for (std::size_t k = 0; k < 4; ++k)
            out += k <= left ? digits[group >> (18 - 6 * k) & 63U] : '=';
    }
    return out;
}

auto equal_in_constant_time(std::string_view a, std::string_view b) noexcept -> bool {
    if (a.size() != b.size()) return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const volatile unsigned char left = static_cast<unsigned char>(a[i]);
        difference |= left ^ static_cast<unsigned char>(b[i]);
    }
    return difference == 0;
}

} // namespace glove::net::proxy
