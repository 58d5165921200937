// The policy's host is a name or an address and nothing else, so it is read as one before it
// becomes a rule: a rule's text can say more.
#include "control/host_egress.hpp"
#include <glove/control/launch_binding.hpp>
#include <glove/net/destination.hpp>
#include <glove/net/egress_rules.hpp>
#include <glove/sys/entropy.hpp>

namespace glove::control {

namespace {

[[nodiscard]] auto refused(const supervisor::egress_policy& policy, std::size_t index, errc code,
                           std::string why) {
    return fail(code, "prepare.egress",
                "target " + std::to_string(index) + " of the egress policy " + policy.policy_id +
                    " " + std::move(why));
}

[[nodiscard]] auto rule_of(const supervisor::egress_policy& policy, std::size_t index)
    -> result<std::string> {
    const auto& target = policy.targets[index];
    const auto host = net::parse_host(target.host);
    if (!host) return refused(policy, index, errc::invalid_input, "has a host that is none");
    auto text = net::to_string({.host = *host, .port = target.port});
    const bool is_loopback = host->name == "localhost";
    if (is_loopback && !target.allow_private)
        return refused(policy, index, errc::not_permitted,
                       "is the host's own loopback, and allow_private is not set");
    if (target.allow_private && !is_loopback) text += ",allow-private";
    if (auto rule = net::parse_rule(text); !rule)
        return refused(policy, index, rule.error().code, "can never be reached");
    return text;
}

} // namespace

auto plan_egress(const supervisor::session_plan& plan, const supervisor::session_rules& rules)
    -> result<std::optional<online_plan>> {
    if (supervisor::means_no_network(plan.egress_policy_id)) return std::nullopt;
    const auto* policy = rules.find_egress(plan.egress_policy_id);
    if (policy == nullptr)
        return fail(errc::unsupported, "prepare.egress",
                    "there is no egress policy " + plan.egress_policy_id);
    if (policy->targets.empty()) return std::nullopt;
    container::egress_wish wish;
    for (std::size_t i = 0; i < policy->targets.size(); ++i) {
        GLOVE_TRY(auto rule, rule_of(*policy, i));
        wish.allow.push_back(std::move(rule));
    }
    auto bridge = container::plan_bridge(wish, container::network_tier::egress);
    if (!bridge) {
        auto why = std::move(bridge).error();
        why.step = "prepare.egress";
        why.detail = "the egress policy " + policy->policy_id + ": " + why.detail;
        why.remedy.clear(); // is about options of a command
        return std::unexpected(std::move(why));
    }
    GLOVE_TRY(auto digest, egress_policy_digest(*policy));
    return online_plan{*std::move(*bridge), std::move(digest)};
}

auto session_records::append(const audit::event& what) -> result<> {
    const auto take = [](std::uint32_t& had, std::uint32_t most) -> result<> {
        if (had == most)
            return fail(errc::limit_exceeded, "egress.records",
                        "the session has had its " + std::to_string(most) + " records");
        ++had;
        return {};
    };
    if (what.status == audit::status::pending) GLOVE_CHECK(take(intents_, most_intents));
    if (what.status == audit::status::invalid_arguments)
        GLOVE_CHECK(take(refusals_, most_refusals));
    return file_.append(what);
}

auto record_token(audit::sink& log, const std::string& session_id,
                  const std::string& profile_digest, const std::string& token, std::int64_t now_ns)
    -> result<> {
    GLOVE_TRY(const auto digest, egress_token_digest(profile_digest, token));
    sys::system_entropy random;
    GLOVE_TRY(auto call, sys::random_id(random));
    return log.append({.action = audit::action::agent_launch,
                       .tool = {},
                       .arguments = "{\"profile_digest\":\"" + profile_digest +
                                    "\",\"egress_token_digest\":\"" + digest + "\"}",
                       .status = audit::status::ok,
                       .error = {},
                       .timestamp_ns = now_ns,
                       .latency_ns = 0,
                       .run = session_id,
                       .call = std::move(call)});
}

} // namespace glove::control
