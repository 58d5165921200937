// Takes a URL apart by hand: a library that mends what it reads would accept what others read
// differently.
#include "policy/url_host.hpp"
#include <algorithm>
#include <array>
#include <glove/base/host_name.hpp>
#include <glove/base/numbers.hpp>

namespace glove::policy {

namespace {

constexpr std::size_t longest_url = 8192;

struct known_scheme {
    std::string_view name;
    std::uint16_t port;
};
constexpr std::array known_schemes{
    known_scheme{"http", 80},
    known_scheme{"https", 443},
    known_scheme{"ws", 80},
    known_scheme{"wss", 443},
};

[[nodiscard]] auto lowered(std::string_view text) -> std::string {
    std::string out{text};
    std::ranges::transform(out, out.begin(), to_lower);
    return out;
}

[[nodiscard]] auto is_scheme(std::string_view text) -> bool {
    return !text.empty() && is_lower(text.front()) && std::ranges::all_of(text, [](char c) {
        return is_lower(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
    });
}

// "192.0.2.1" and no other way to write it.
[[nodiscard]] auto is_plain_v4(std::string_view text) -> bool {
    for (int i = 0; i < 4; ++i) {
        const auto part = text.substr(0, text.find('.'));
        if (!parse_decimal(part, 255)) return false;
        text.remove_prefix(part.size());
        if (i == 3) return text.empty();
        if (text.empty()) return false;
        text.remove_prefix(1);
    }
    return false;
}

[[nodiscard]] auto is_plain_v6(std::string_view text) -> bool {
    return text.size() > 3 && text.front() == '[' && text.back() == ']' &&
           std::ranges::all_of(text.substr(1, text.size() - 2),
                               [](char c) { return hex_value(c) >= 0 || c == ':'; });
}

// In lower case.
[[nodiscard]] auto is_host(std::string_view text) -> bool {
    return flaw_of(text) == name_flaw::none || is_plain_v4(text) || is_plain_v6(text);
}

struct host_and_port {
    std::string host;
    std::optional<std::uint16_t> port;
};
[[nodiscard]] auto split_port(std::string_view text) -> std::optional<host_and_port> {
    const auto bracket = text.rfind(']');
    const auto colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
    host_and_port out{lowered(text.substr(0, colon)), std::nullopt};
    if (!is_host(out.host)) return std::nullopt;
    if (colon == std::string_view::npos) return out;
    const auto port = parse_decimal(text.substr(colon + 1), 65'535);
    if (!port || *port == 0) return std::nullopt;
    out.port = static_cast<std::uint16_t>(*port);
    return out;
}

} // namespace

auto parse_url(std::string_view url) -> std::optional<url_place> {
    if (url.size() > longest_url) return std::nullopt;
    if (!std::ranges::all_of(url, [](char c) { return c > ' ' && c <= '~' && c != '\\'; }))
        return std::nullopt;
    const auto colon = url.find("://");
    if (colon == std::string_view::npos) return std::nullopt;
    url_place out{.scheme = lowered(url.substr(0, colon)), .host = {}};
    if (!is_scheme(out.scheme)) return std::nullopt;
    const auto rest = url.substr(colon + 3);
    const auto place = split_port(rest.substr(0, rest.find_first_of("/?#")));
    if (!place) return std::nullopt;
    out.host = place->host;
    const auto* const known = std::ranges::find(known_schemes, out.scheme, &known_scheme::name);
    const std::uint16_t own = known == known_schemes.end() ? std::uint16_t{0} : known->port;
    out.port = place->port.value_or(own);
    out.port_is_default = out.port == own;
    return out;
}

auto host_list::add(std::string_view text) -> std::string_view {
    if (text.find('/') != std::string_view::npos || text.find('@') != std::string_view::npos)
        return "is a URL or part of one, not a host such as a.example or .a.example";
    if (text.find('*') != std::string_view::npos)
        return "has a '*': .a.example stands for a.example and all names below it";
    entry out;
    out.below = text.starts_with('.');
    if (out.below) text.remove_prefix(1);
    auto place = split_port(text);
    if (!place) return "is not a host such as a.example, .a.example or a.example:8443";
    if (out.below && flaw_of(place->host) != name_flaw::none)
        return "is an address: nothing is below it";
    out.host = std::move(place->host);
    out.port = place->port.value_or(std::uint16_t{0});
    entries_.push_back(std::move(out));
    return {};
}

auto host_list::holds(const url_place& where) const -> bool {
    return std::ranges::any_of(entries_, [&](const entry& e) {
        if (where.host != e.host && !(e.below && is_below(where.host, e.host))) return false;
        return e.port == 0 ? where.port_is_default : where.port == e.port;
    });
}

} // namespace glove::policy
