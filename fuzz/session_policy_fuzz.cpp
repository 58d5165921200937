// Whatever the bytes: a session policy that is accepted has a text that reads as itself, each of
// its launches has the digest that stands beside it, and what it hands out is apart.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <glove/supervisor/session_policy.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;

void require(bool holds) {
    if (!holds) std::abort();
}

void check_rules(const session_rules& rules) {
    for (const auto& chosen : rules.runtime_templates) {
        require(rules.find_template(chosen.runtime_template_id) == &chosen);
        for (const auto& name : chosen.allowed_path_aliases)
            require(rules.find_alias(name) != nullptr);
        for (const auto& name : chosen.allowed_projection_destinations)
            require(rules.find_destination(name) != nullptr);
        if (!chosen.launch) continue;
        require(launch_template_digest(*chosen.launch).value() == chosen.adapter_command_digest);
        require(chosen.launch->executable_path.empty() ==
                !chosen.launch->runtime_discovery.empty());
        for (const auto& entry : chosen.launch->environment)
            require(entry.find('=') != entry.npos && !entry.starts_with("HOME="));
    }
    for (const auto& profile : rules.resource_profiles) {
        require(rules.find_profile(profile.limits()) == &profile);
        require(profile.wall_time_ms < rules.max_plan_ttl_ms);
    }
    for (std::size_t i = 0; i < rules.path_aliases.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            require(
                !sys::holds(rules.path_aliases[i].host_path, rules.path_aliases[j].host_path) &&
                !sys::holds(rules.path_aliases[j].target_path, rules.path_aliases[i].target_path));
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const auto rules = parse_session_rules({reinterpret_cast<const char*>(data), size});
    if (!rules) {
        const auto& detail = rules.error().detail;
        require(!rules.error().step.empty() && !detail.empty());
        require(
            std::all_of(detail.begin(), detail.end(), [](char c) { return c >= ' ' && c <= '~'; }));
        return 0;
    }
    check_rules(*rules);
    const auto text = session_rules_text(*rules);
    require(text.has_value() && parse_session_rules(*text).value() == *rules);
    return 0;
}
