// Hosts and ports from text. Every refusal says what the text holds that it should not.
#include "net/host_name.hpp"
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/net/destination.hpp>

namespace glove::net {

namespace {

[[nodiscard]] auto refuse(std::string_view text, std::string_view what, std::string remedy = {}) {
    return fail(errc::invalid_input, "egress.destination", in_quotes(text).append(what),
                std::move(remedy));
}

[[nodiscard]] auto refuse_name(std::string_view text, name_flaw flaw) -> std::unexpected<error> {
    const auto is_foreign = [](char c) { return !is_name_character(c) && c != '.'; };
    switch (flaw) {
    case name_flaw::none:
    case name_flaw::empty: break;
    case name_flaw::too_long: return refuse(text, " is longer than a host name can be");
    case name_flaw::beyond_ascii:
        return refuse(text, " holds a letter beyond ASCII", "give the xn-- form of the name");
    case name_flaw::character: {
        const auto* const at = std::ranges::find_if(text, is_foreign);
        return refuse(text, " is no host: it holds " + in_quotes({at, 1}));
    }
    case name_flaw::label_size:
        return refuse(text, " is no host: the parts between its dots are not 1 to 63 characters");
    case name_flaw::dash:
        return refuse(text, " is no host: a part between its dots starts or ends with '-'");
    case name_flaw::number:
        return refuse(text, " ends in a number, but is not four decimal parts",
                      "give an IPv4 address in full, as in 192.0.2.1");
    }
    return refuse(text, " names no host");
}

[[nodiscard]] auto refuse_ipv6(std::string_view text) -> std::unexpected<error> {
    if (text.find('%') != std::string_view::npos)
        return refuse(text, " holds a zone, which means something on one machine only");
    return refuse(text, " is no IPv6 address");
}

[[nodiscard]] auto host_of(const ip_address& address) -> host {
    return {address.to_string(), address};
}

// What stands in front of a port, and the port.
struct halves {
    std::string_view host;
    std::optional<std::string_view> port;
};

[[nodiscard]] auto split(std::string_view text) -> result<halves> {
    const auto is_bracketed = text.starts_with('[');
    const auto end = is_bracketed ? text.find(']') : text.find(':');
    if (end == std::string_view::npos) {
        if (is_bracketed) return refuse(text, " has no ']'");
        return halves{text, std::nullopt};
    }
    const auto host = text.substr(0, is_bracketed ? end + 1 : end);
    const auto rest = text.substr(host.size());
    if (rest.empty()) return halves{host, std::nullopt};
    if (rest.front() != ':') return refuse(text, " has something behind ']' that is no port");
    if (is_bracketed || rest.find(':', 1) == std::string_view::npos)
        return halves{host, rest.substr(1)};
    const auto last = text.rfind(':');
    if (ip_address::parse(text))
        return refuse(text, " is IPv6 without brackets", "[" + std::string{text} + "]:PORT");
    if (ip_address::parse(text.substr(0, last)))
        return refuse(text, " is IPv6 without brackets",
                      "[" + std::string{text.substr(0, last)} + "]" +
                          std::string{text.substr(last)});
    return refuse(text, " is not HOST:PORT");
}

} // namespace

auto parse_port(std::string_view text) noexcept -> std::optional<std::uint16_t> {
    const auto number = parse_decimal(text, 65535);
    if (!number || *number == 0) return std::nullopt;
    return static_cast<std::uint16_t>(*number);
}

auto parse_host(std::string_view text) -> result<host> {
    if (text.starts_with('[')) {
        if (!text.ends_with(']')) return refuse(text, " has no ']' at its end");
        const auto address = ip_address::parse(text.substr(1, text.size() - 2));
        if (!address || address->is_v4()) return refuse_ipv6(text);
        return host_of(*address);
    }
    if (const auto address = ip_address::parse(text)) return host_of(*address);
    if (text.find(':') != std::string_view::npos) return refuse_ipv6(text);
    const auto name = text.substr(0, text.size() - (text.ends_with('.') ? 1 : 0));
    if (const auto flaw = flaw_of(name); flaw != name_flaw::none) return refuse_name(text, flaw);
    host out{std::string{name}, std::nullopt};
    std::ranges::transform(out.name, out.name.begin(), to_lower);
    return out;
}

auto parse_destination(std::string_view text, std::optional<std::uint16_t> default_port)
    -> result<destination> {
    GLOVE_TRY(const auto parts, split(text));
    GLOVE_TRY(auto host, parse_host(parts.host));
    auto port = default_port;
    if (parts.port) {
        port = parse_port(*parts.port);
        if (!port) return refuse(text, " has a port that is not 1 to 65535");
    }
    if (!port || *port == 0) return refuse(text, " has no port");
    return destination{std::move(host), *port};
}

auto to_string(const destination& where) -> std::string {
    const bool is_v6 = where.host.address && !where.host.address->is_v4();
    auto out = is_v6 ? "[" + where.host.name + "]" : where.host.name;
    return out.append(":").append(std::to_string(where.port));
}

} // namespace glove::net
