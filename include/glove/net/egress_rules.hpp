// The destinations an operator allows: --egress-allow, one rule each.
//
//   HOST[:PORT][,OPTION...]      one name, or one address ([IPV6] in brackets when a port follows)
//   .DOMAIN[:PORT][,OPTION...]   the domain and every name below it
//   NETWORK/BITS[:PORT][,OPTION...]
//   localhost:PORT[,OPTION...]   the host's own loopback, which no other name and no address
//   reaches
//
// The port is 443 when none is given. Options: `allow-private` dials private and reserved addresses
// too; `any-server-name` leaves the name in a TLS greeting unchecked; `max-bytes=SIZE` ends the
// rule's use after so many bytes in both directions together.
//
// Guarantees: nothing is allowed that no rule names; an empty list allows nothing. A rule that
// could never be used is an error, not a rule: one for addresses that are all private, without
// `allow-private`, or to which no connection can be made. A network that is only partly private is
// one: each address is judged when it is dialled.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/net/destination.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace glove::net {

inline constexpr std::uint16_t default_port = 443;
inline constexpr std::size_t most_rules = 1024;

enum class rule_kind : std::uint8_t { name, domain, address, network, host_loopback };

struct egress_rule {
    rule_kind kind = rule_kind::name;
    std::string name; // of `name` and `domain`, without the leading dot; empty for the others
    std::optional<ip_network> network; // of `address` (all bits) and `network`
    std::uint16_t port = default_port;
    bool allow_private = false;
    bool any_server_name = false;
    std::optional<std::uint64_t> max_bytes = {};
    std::string text; // canonical and shortest; parses to the same rule
    auto operator==(const egress_rule&) const -> bool = default;
};

[[nodiscard]] auto parse_rule(std::string_view text) -> result<egress_rule>;

class egress_rules {
public:
    egress_rules() = default; // allows nothing
    // Refuses repeated and contradicting rules. Errors name the rule and the mend.
    [[nodiscard]] static auto parse(std::span<const std::string> texts) -> result<egress_rules>;

    // The rule that allows it: the most specific one (name before domain, longer before shorter);
    // null when none does. A rule for addresses never allows a name, nor the other way round; only
    // the name "localhost" is the host's loopback. Valid as long as this object.
    [[nodiscard]] auto match(const destination& where) const noexcept -> const egress_rule*;
    [[nodiscard]] auto all() const noexcept -> std::span<const egress_rule> { return rules_; }
    [[nodiscard]] auto empty() const noexcept -> bool { return rules_.empty(); }

private:
    std::vector<egress_rule> rules_;
};

// Whether a destination that `rule` allows may be dialled at `address`: empty, or why not
// ("private", "loopback", ...). `own` are the host's own interface addresses.
[[nodiscard]] auto refused_address(const egress_rule& rule, const ip_address& address,
                                   std::span<const ip_address> own) noexcept -> std::string_view;

// The words after "--egress-allow " that would have allowed it; for a form of the host's loopback
// that no rule allows, those for the form that one does. Empty where no connection can be made.
[[nodiscard]] auto rule_for(const destination& where) -> std::string;

} // namespace glove::net
