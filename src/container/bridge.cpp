// Rules to names, addresses and listeners. Looks nothing up.
#include <algorithm>
#include <glove/container/bridge.hpp>

namespace glove::container {

namespace {

using net::rule_kind;

constexpr unsigned most_connections = 65'536;

[[nodiscard]] auto refuse(errc code, std::string detail, std::string remedy = {}) {
    return fail(code, "plan.egress", std::move(detail), std::move(remedy));
}

[[nodiscard]] auto check_tier(const egress_wish& wish, network_tier tier) -> result<> {
    if (!wish.allow.empty() && tier != network_tier::egress)
        return refuse(errc::conflict,
                      "--egress-allow cannot go with the network tier " +
                          std::string{to_string(tier)},
                      "leave --net out: --egress-allow chooses the tier egress itself");
    if (wish.allow.empty() && tier == network_tier::egress)
        return refuse(errc::invalid_input, "the tier egress without a destination",
                      "name one, as in: --egress-allow api.example.com");
    const bool loopback = tier == network_tier::local || tier == network_tier::egress;
    if (!wish.publish.empty() && !loopback)
        return refuse(errc::conflict,
                      "--publish needs a loopback, which the network tier " +
                          std::string{to_string(tier)} + " does not have",
                      "leave --net out, or give --net local");
    if (wish.connections == 0 || wish.connections > most_connections)
        return refuse(errc::invalid_input,
                      "--egress-connections " + std::to_string(wish.connections) +
                          " is not between 1 and " + std::to_string(most_connections));
    return {};
}

[[nodiscard]] auto is_loopback_port(const net::egress_rules& rules, std::uint16_t port) -> bool {
    return std::ranges::any_of(rules.all(), [&](const net::egress_rule& rule) {
        return rule.kind == rule_kind::host_loopback && rule.port == port;
    });
}

// Inside, each of these ports of the loopback can be one thing only.
[[nodiscard]] auto check_ports(const net::egress_rules& rules,
                               const std::vector<std::uint16_t>& published) -> result<> {
    if (is_loopback_port(rules, proxy_port))
        return refuse(errc::conflict,
                      "--egress-allow localhost:" + std::to_string(proxy_port) +
                          ": inside, this port is the proxy's",
                      "let the service on the host listen on another port");
    for (auto at = published.begin(); at != published.end(); ++at) {
        const auto flag = "--publish " + std::to_string(*at);
        if (*at == 0) return refuse(errc::invalid_input, flag + " is no port");
        if (std::find(published.begin(), at, *at) != at)
            return refuse(errc::conflict, flag + " is given more than once");
        if (*at == proxy_port)
            return refuse(errc::conflict, flag + ": inside, this port is the proxy's");
        if (is_loopback_port(rules, *at))
            return refuse(errc::conflict,
                          flag + " and --egress-allow localhost:" + std::to_string(*at) +
                              " are about the same port in both directions");
    }
    return {};
}

// The name that a rule gives an address inside; empty for the others. A domain is a name as well.
[[nodiscard]] auto name_of(const net::egress_rule& rule) -> std::string_view {
    const bool named = rule.kind == rule_kind::name || rule.kind == rule_kind::domain;
    return named ? std::string_view{rule.name} : std::string_view{};
}

void add_names(bridge_plan& out) {
    for (const auto& rule : out.rules.all()) {
        const auto name = name_of(rule);
        if (name.empty() || std::ranges::count(out.names, name, &bridge_name::name) != 0) continue;
        const auto number = static_cast<std::uint32_t>(out.names.size());
        out.names.push_back({std::string{name}, first_name_address + number});
    }
}

[[nodiscard]] auto ports_of(const net::egress_rules& rules) -> std::vector<std::uint16_t> {
    std::vector<std::uint16_t> out;
    for (const auto& rule : rules.all()) out.push_back(rule.port);
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
}

// A name listens wherever some rule lets it be reached: `.example.com` gives api.example.com a port
// although it has a rule of its own for another one.
void add_name_listeners(bridge_plan& out, const bridge_name& name,
                        const std::vector<std::uint16_t>& ports) {
    for (const auto port : ports)
        if (out.rules.match({.host = {.name = name.name, .address = {}}, .port = port}) != nullptr)
            out.listeners.push_back({name.address, port, name.name});
}

void add_listeners(bridge_plan& out) {
    if (out.rules.empty()) return;
    out.listeners.push_back({inner_loopback, proxy_port, {}});
    for (const auto& rule : out.rules.all())
        if (rule.kind == rule_kind::host_loopback)
            for (const auto address : {inner_loopback, std::uint32_t{0}})
                out.listeners.push_back({address, rule.port, "localhost"});
    const auto ports = ports_of(out.rules);
    for (const auto& name : out.names) add_name_listeners(out, name, ports);
}

} // namespace

auto plan_bridge(const egress_wish& wish, network_tier tier) -> result<std::optional<bridge_plan>> {
    GLOVE_CHECK(check_tier(wish, tier));
    if (wish.allow.empty() && wish.publish.empty()) return std::nullopt;
    bridge_plan out;
    GLOVE_TRY(out.rules, net::egress_rules::parse(wish.allow));
    out.published = wish.publish;
    out.connections = wish.connections;
    GLOVE_CHECK(check_ports(out.rules, out.published));
    add_names(out);
    add_listeners(out);
    return out;
}

} // namespace glove::container
