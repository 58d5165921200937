// Rules from text, and which of them allows what. What a rule means is decided here once: its text
// is made from its parts again, so two texts for one destination cannot pass for two rules.
#include "net/host_name.hpp"
#include <algorithm>
#include <array>
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/net/egress_rules.hpp>
#include <map>

namespace glove::net {

namespace {

constexpr std::string_view localhost = "localhost";

[[nodiscard]] auto refuse(std::string_view rule, std::string_view what, std::string remedy = {}) {
    return fail(errc::invalid_input, "egress.rule", in_quotes(rule).append(" ").append(what),
                std::move(remedy));
}

[[nodiscard]] auto of_rule(std::string_view rule, error problem) -> std::unexpected<error> {
    return refuse(rule, "is no rule: " + problem.detail, std::move(problem.remedy));
}

[[nodiscard]] auto with_port(std::string text, std::uint16_t port) -> std::string {
    return text.append(":").append(std::to_string(port));
}

// Without the port where it is the usual one.
[[nodiscard]] auto target_text(const egress_rule& rule) -> std::string {
    auto out = rule.kind == rule_kind::domain ? "." + rule.name : rule.name;
    const bool is_address = rule.kind == rule_kind::address;
    const bool is_localhost = rule.kind == rule_kind::host_loopback;
    if (rule.network) out = is_address ? rule.network->base.to_string() : rule.network->to_string();
    if (is_localhost) out = localhost;
    if (rule.port == default_port && !is_localhost) return out;
    if (is_address && out.find(':') != std::string::npos) out = "[" + out + "]";
    return with_port(std::move(out), rule.port);
}

[[nodiscard]] auto text_of(const egress_rule& rule) -> std::string {
    auto out = target_text(rule);
    if (rule.allow_private) out += ",allow-private";
    if (rule.any_server_name) out += ",any-server-name";
    if (rule.max_bytes) out.append(",max-bytes=").append(size_text(*rule.max_bytes));
    return out;
}

[[nodiscard]] auto is_loopback(const ip_address& address) noexcept -> bool {
    return reserved_use(address) == "loopback";
}

[[nodiscard]] auto whole(const ip_address& address) noexcept -> ip_network {
    return ip_network::around(address, 128);
}

// HOST of a text such as https://user@HOST:8443/path, with the port if one is given or implied.
[[nodiscard]] auto host_in_url(std::string_view url) -> std::string {
    const auto scheme = url.find("://");
    const std::uint16_t implied = url.starts_with("http://") ? 80 : default_port;
    if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
    url = url.substr(0, url.find_first_of("/?#\\"));
    if (const auto at = url.rfind('@'); at != std::string_view::npos) url.remove_prefix(at + 1);
    const auto where = parse_destination(url, implied);
    return where ? rule_for(*where) : std::string{};
}

// Options, behind the first comma.
[[nodiscard]] auto read_option(std::string_view text, std::string_view option, egress_rule& rule)
    -> result<> {
    constexpr std::string_view size_option = "max-bytes=";
    const auto set = [&](bool& flag) -> result<> {
        if (flag) return refuse(text, "has the option " + in_quotes(option) + " twice");
        flag = true;
        return {};
    };
    if (option == "allow-private") return set(rule.allow_private);
    if (option == "any-server-name") return set(rule.any_server_name);
    if (!option.starts_with(size_option))
        return refuse(text, "has an unknown option: " + in_quotes(option),
                      "options are allow-private, any-server-name and max-bytes=SIZE");
    if (rule.max_bytes) return refuse(text, "has the option 'max-bytes' twice");
    rule.max_bytes = parse_size(option.substr(size_option.size()));
    if (!rule.max_bytes || *rule.max_bytes == 0)
        return refuse(text, "allows no number of bytes", "give a size, as in max-bytes=10M");
    return {};
}

// A star, a URL, a path: what people write who know another tool.
[[nodiscard]] auto check_form(std::string_view text, std::string_view target) -> result<> {
    if (target.find("://") != std::string_view::npos)
        return refuse(text, "is a URL", host_in_url(target));
    const auto star = target.find('*');
    if (star == std::string_view::npos) return {};
    const bool is_domain = target.starts_with("*.") && target.find('*', 1) == target.npos;
    return refuse(text, "holds a '*'",
                  is_domain ? std::string{target.substr(1)}
                            : std::string{"write .example.com for a domain and all below it"});
}

[[nodiscard]] auto read_network(std::string_view text, std::string_view target, egress_rule& rule)
    -> result<> {
    const auto slash = target.find('/');
    const auto colon = target.find(':', slash);
    const auto network = target.substr(0, colon);
    const auto base = ip_address::parse(target.substr(0, slash));
    if (!base) {
        auto remedy = target.starts_with('[') ? std::string{} : host_in_url(target);
        if (remedy.empty()) remedy = "write a network as ADDRESS/BITS, as in 192.0.2.0/24";
        return refuse(text, "is no network", std::move(remedy));
    }
    const auto size = base->bytes().size() * 8;
    const auto bits = parse_decimal(network.substr(slash + 1), size);
    if (!bits) return refuse(text, "has a number of bits that is not 0 to " + std::to_string(size));
    rule.network = ip_network::around(*base, static_cast<unsigned>(*bits));
    if (rule.network->base != *base)
        return refuse(
            text, "has an address inside the network, not its first one",
            rule.network->to_string().append(target.substr(std::min(colon, target.size()))));
    rule.kind = rule.network->is_single() ? rule_kind::address : rule_kind::network;
    if (colon == std::string_view::npos) return {};
    const auto port = parse_port(target.substr(colon + 1));
    if (!port) return refuse(text, "has a port that is not 1 to 65535");
    rule.port = *port;
    return {};
}

[[nodiscard]] auto read_host(std::string_view text, std::string_view target, egress_rule& rule)
    -> result<> {
    const bool is_domain = target.starts_with('.');
    if (is_domain) target.remove_prefix(1);
    auto where = parse_destination(target, default_port);
    // Only a rule takes IPv6 without brackets: a port behind it would be part of the address.
    if (const auto address = ip_address::parse(target))
        where = destination{{address->to_string(), address}, default_port};
    if (!where) return of_rule(text, std::move(where).error());
    rule.port = where->port;
    if (const auto& literal = where->host.address) {
        if (is_domain) return refuse(text, "is no domain", rule_for(*where));
        rule.kind = rule_kind::address;
        rule.network = whole(*literal);
        return {};
    }
    rule.name = std::move(where->host.name);
    rule.kind = is_domain ? rule_kind::domain : rule_kind::name;
    const bool is_localhost = rule.name == localhost;
    if (!is_localhost && !is_below(rule.name, localhost)) return {};
    if (is_domain || !is_localhost)
        return refuse(text, "is below localhost, which stands for itself only", "localhost:PORT");
    if (target.find(':') == std::string_view::npos)
        return refuse(text, "needs a port", "localhost:PORT");
    rule.name.clear();
    rule.kind = rule_kind::host_loopback;
    return {};
}

// Whether anything could ever be dialled under the rule.
[[nodiscard]] auto check_use(std::string_view text, const egress_rule& rule) -> result<> {
    if (rule.kind == rule_kind::host_loopback) {
        if (rule.allow_private)
            return refuse(text, "needs no allow-private: localhost is the host itself",
                          with_port(std::string{localhost}, rule.port));
        return {};
    }
    if (!rule.network) return {};
    const auto use = std::string{reserved_use(*rule.network)};
    if (!can_be_dialled(*rule.network)) {
        const bool is_mapped = use == "IPv4-mapped";
        return refuse(text, "can never be dialled: " + use,
                      is_mapped ? "give the IPv4 address or network itself" : "");
    }
    if (use == "loopback")
        return refuse(text, "is the host's loopback, which goes by its name",
                      with_port(std::string{localhost}, rule.port));
    if (use.empty() || rule.allow_private) return {};
    auto mended = rule;
    mended.allow_private = true;
    return refuse(text, "is not public: " + use, text_of(mended));
}

// How closely the rule names the destination; nothing when it does not.
[[nodiscard]] auto closeness(const egress_rule& rule, const destination& where) noexcept
    -> std::optional<std::size_t> {
    if (rule.port != where.port) return std::nullopt;
    const auto& address = where.host.address;
    const std::string_view name = where.host.name;
    switch (rule.kind) {
    case rule_kind::host_loopback:
        if (!address && name == localhost) return 0;
        break;
    case rule_kind::name:
        if (!address && name == rule.name) return longest_name + 1;
        break;
    case rule_kind::domain:
        if (!address && (name == rule.name || is_below(name, rule.name))) return rule.name.size();
        break;
    case rule_kind::address:
    case rule_kind::network:
        if (address && !is_loopback(*address) && rule.network && rule.network->contains(*address))
            return rule.network->prefix;
        break;
    }
    return std::nullopt;
}

} // namespace

auto parse_rule(std::string_view text) -> result<egress_rule> {
    const auto comma = std::min(text.find(','), text.size());
    const auto target = text.substr(0, comma);
    egress_rule out;
    GLOVE_CHECK(check_form(text, target));
    GLOVE_CHECK(target.find('/') == std::string_view::npos ? read_host(text, target, out)
                                                           : read_network(text, target, out));
    for (auto rest = text.substr(comma); !rest.empty();) {
        rest.remove_prefix(1);
        const auto option = rest.substr(0, rest.find(','));
        GLOVE_CHECK(read_option(text, option, out));
        rest.remove_prefix(option.size());
    }
    GLOVE_CHECK(check_use(text, out));
    out.text = text_of(out);
    return out;
}

auto egress_rules::parse(std::span<const std::string> texts) -> result<egress_rules> {
    if (texts.size() > most_rules)
        return fail(errc::limit_exceeded, "egress.rule",
                    "there are " + std::to_string(texts.size()) + " rules, more than " +
                        std::to_string(most_rules),
                    "one rule for a domain stands for all names below it");
    egress_rules out;
    std::map<std::string, std::string_view> seen; // text of a target, and the rule for it
    for (const auto& text : texts) {
        GLOVE_TRY(auto rule, parse_rule(text));
        const auto [at, is_new] = seen.emplace(target_text(rule), text);
        if (!is_new)
            return refuse(text,
                          "is for the same host and port as the rule " + in_quotes(at->second),
                          "give one rule for it, with all the options");
        out.rules_.push_back(std::move(rule));
    }
    return out;
}

auto egress_rules::match(const destination& where) const noexcept -> const egress_rule* {
    const egress_rule* out = nullptr;
    std::size_t closest = 0;
    for (const auto& rule : rules_) {
        const auto close = closeness(rule, where);
        if (!close || (out != nullptr && *close <= closest)) continue;
        out = &rule;
        closest = *close;
    }
    return out;
}

auto refused_address(const egress_rule& rule, const ip_address& address,
                     std::span<const ip_address> own) noexcept -> std::string_view {
    const auto use = reserved_use(address);
    if (!can_be_dialled(address)) return use;
    if (rule.kind == rule_kind::host_loopback) {
        constexpr ip_address v4{ip_address::v4_bytes{127, 0, 0, 1}};
        constexpr ip_address v6{
            ip_address::v6_bytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
        return address == v4 || address == v6 ? "" : "not the host's loopback";
    }
    if (rule.network && !rule.network->contains(address)) return "outside of the rule's network";
    if (rule.allow_private) return {};
    if (!use.empty()) return use;
    return std::ranges::count(own, address) != 0 ? "own address of the host" : "";
}

auto rule_for(const destination& where) -> std::string {
    egress_rule rule;
    rule.port = where.port;
    rule.name = where.host.name;
    const auto& address = where.host.address;
    if (address) {
        if (!can_be_dialled(*address)) return {};
        rule.kind = rule_kind::address;
        rule.network = whole(*address);
        rule.allow_private = !reserved_use(*address).empty();
    }
    const bool is_local =
        address ? is_loopback(*address) : rule.name == localhost || is_below(rule.name, localhost);
    if (is_local) return with_port(std::string{localhost}, rule.port);
    return text_of(rule);
}

} // namespace glove::net
