// Whatever the bytes: a host or a destination that is accepted is in a canonical form that reads as
// the same again, holds no byte that another reader could take differently, and is the same from
// every way in. A rule that is accepted reads as itself, allows what `rule_for` says it does, and
// never a private address without being told to.
#include <algorithm>
#include <arpa/inet.h>
#include <cstdint>
#include <cstdlib>
#include <glove/net/egress_rules.hpp>

namespace {

using namespace glove::net;

void require(bool holds) {
    if (!holds) std::abort();
}

[[nodiscard]] auto is_canonical(char c) -> bool {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

void check_error(const glove::error& problem) {
    require(!problem.step.empty() && !problem.detail.empty());
    require(std::ranges::all_of(problem.detail, [](char c) { return c >= ' ' && c <= '~'; }));
}

void check_address(std::string_view text) {
    const auto address = ip_address::parse(text);
    const std::string given{text};
    ip_address::v6_bytes six{};
    ip_address::v4_bytes four{};
    const bool is_text = text.find('\0') == std::string_view::npos;
    const bool is_six = is_text && ::inet_pton(AF_INET6, given.c_str(), six.data()) == 1;
    const bool is_four = is_text && ::inet_pton(AF_INET, given.c_str(), four.data()) == 1;
    require(address.has_value() == (is_six || is_four));
    if (!address) return;
    require(*address == (is_four ? ip_address{four} : ip_address{six}));
    require(ip_address::parse(address->to_string()) == address);
    require(can_be_dialled(*address) || !reserved_use(*address).empty());
}

void check_host(std::string_view text) {
    const auto read = parse_host(text);
    if (!read) return check_error(read.error());
    require(!read->name.empty() && read->name.size() <= longest_name);
    require(parse_host(read->name) == *read);
    require(read->address == ip_address::parse(read->name));
    if (read->address) require(read->address->to_string() == read->name);
    else require(std::ranges::all_of(read->name, is_canonical));
}

void check_destination(std::string_view text) {
    const auto read = parse_destination(text);
    const auto lenient = parse_destination(text, 443);
    require(!read || (lenient && *lenient == *read));
    if (!lenient) return check_error(lenient.error());
    require(lenient->port != 0);
    require(parse_destination(to_string(*lenient)) == *lenient);
    require(parse_host(lenient->host.name) == lenient->host);

    const auto wish = rule_for(*lenient);
    if (wish.empty()) {
        require(lenient->host.address && !can_be_dialled(*lenient->host.address));
        return;
    }
    const std::string texts[] = {wish};
    const auto rules = egress_rules::parse(texts);
    require(rules && rules->all().front().text == wish);
    const bool is_local = rules->all().front().kind == rule_kind::host_loopback;
    require((rules->match(*lenient) != nullptr) ==
            (!is_local || lenient->host.name == "localhost"));
}

void check_rule(std::string_view text) {
    const auto read = parse_rule(text);
    if (!read) return check_error(read.error());
    require(parse_rule(read->text) == *read);
    require(read->port != 0 && read->max_bytes != 0);
    require(read->network.has_value() ==
            (read->kind == rule_kind::address || read->kind == rule_kind::network));
    if (!read->network) return;
    const auto& base = read->network->base;
    require(read->allow_private || !refused_address(*read, base, {}).empty() ||
            reserved_use(base).empty());
    require(!refused_address(*read, base, {&base, 1}).empty() || read->allow_private);
    const std::string texts[] = {read->text};
    const auto rules = egress_rules::parse(texts);
    require(rules.has_value());
    const bool allowed = rules->match({{base.to_string(), base}, read->port}) != nullptr;
    require(allowed == (reserved_use(base) != "loopback"));
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    check_address(text);
    check_host(text);
    check_destination(text);
    check_rule(text);
    return 0;
}
