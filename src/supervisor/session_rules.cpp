// The rules of a session policy that join two members. What the field tables say is checked before;
// nothing here looks at the file system.
#include "supervisor/session_rules.hpp"
#include "supervisor/paths.hpp"
#include "supervisor/refusal.hpp"
#include "supervisor/session_policy_fields.hpp"
#include <glove/base/ascii.hpp>
#include <tuple>

namespace glove::supervisor {

namespace {

using wire::place;
using view = std::string_view;

constexpr std::uint64_t ttl_headroom_ms = 1000;

// The member, when not empty, is what must be unique; else the element itself.
template<class T, class Key> [[nodiscard]] auto check_unique(const std::vector<T>& list, view name,
                                                             view member, Key key) -> result<> {
    const auto i = first_repeated(list, key);
    if (i == list.size()) return {};
    const place root;
    const auto whole = member_of(root, name);
    const auto item = element_of(whole, i);
    return refuse(errc::invalid_input, "policy.unique",
                  member.empty() ? item : member_of(item, member),
                  "is what an earlier entry has, too");
}
[[nodiscard]] auto check_unique(const std::vector<std::string>& list, view name) -> result<> {
    return check_unique(list, name, {}, [](const std::string& s) -> view { return s; });
}

[[nodiscard]] auto has(const std::vector<std::string>& list, view name) -> bool {
    return std::find(list.begin(), list.end(), name) != list.end();
}

[[nodiscard]] auto check_templates(const session_rules& all) -> result<> {
    const place root;
    const auto list = member_of(root, "runtime_templates");
    GLOVE_CHECK(check_unique(all.runtime_templates, list.name, "runtime_template_id",
                             [](const auto& t) -> view { return t.runtime_template_id; }));
    for (std::size_t i = 0; i < all.runtime_templates.size(); ++i)
        GLOVE_CHECK(check_template(all.runtime_templates[i], all, element_of(list, i)));
    return {};
}

[[nodiscard]] auto check_destinations(const std::vector<projection_destination>& all) -> result<> {
    const place root;
    const auto list = member_of(root, "library_projection_destinations");
    GLOVE_CHECK(
        check_unique(all, list.name, "alias", [](const auto& d) -> view { return d.alias; }));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto item = element_of(list, i);
        const auto here = member_of(item, "target_path");
        if (overlaps_any(reserved_targets, all[i].target_path))
            return refuse(errc::not_permitted, "policy.target_path", here,
                          "overlaps /dev, /proc, /run, /sys, /tmp or /var/tmp");
        for (std::size_t j = 0; j < i; ++j) {
            const auto other = element_of(list, j);
            if (overlap(all[i].target_path, all[j].target_path))
                return refuse(errc::invalid_input, "policy.overlap", here,
                              "overlaps " + wire::to_string(member_of(other, "target_path")));
        }
    }
    return {};
}

[[nodiscard]] auto check_profiles(const session_rules& all) -> result<> {
    const auto& list = all.resource_profiles;
    GLOVE_CHECK(check_unique(list, "resource_profiles", "profile_id",
                             [](const auto& p) -> view { return p.profile_id; }));
    GLOVE_CHECK(check_unique(list, "resource_profiles", {}, [](const resource_profile& p) {
        return std::tuple{p.cpu_time_ms,  p.memory_bytes, p.pids,
                          p.wall_time_ms, p.disk_bytes,   p.terminal_output_bytes};
    }));
    const place root;
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (all.max_plan_ttl_ms >= ttl_headroom_ms &&
            all.max_plan_ttl_ms - ttl_headroom_ms >= list[i].wall_time_ms)
            continue;
        const auto whole = member_of(root, "resource_profiles");
        const auto item = element_of(whole, i);
        return refuse(
            errc::invalid_input, "policy.plan_ttl", member_of(item, "wall_time_ms"),
            "is more than max_plan_ttl_ms less 1000: its sessions would outlive their plan");
    }
    return {};
}

[[nodiscard]] auto folded(view host) -> std::string {
    std::string out{host};
    std::transform(out.begin(), out.end(), out.begin(), to_lower);
    return out;
}

[[nodiscard]] auto check_targets(const egress_policy& what, const place& at) -> result<> {
    const auto list = member_of(at, "targets");
    for (std::size_t i = 0; i < what.targets.size(); ++i) {
        const auto item = element_of(list, i);
        if (what.targets[i].host.find(' ') != view::npos)
            return refuse(errc::invalid_input, "policy.egress", member_of(item, "host"),
                          "holds a space");
    }
    // Names of hosts are the same in either case, so two rules for one would contradict each other.
    const auto i = first_repeated(
        what.targets, [](const egress_target& t) { return std::pair{folded(t.host), t.port}; });
    if (i < what.targets.size())
        return refuse(errc::invalid_input, "policy.unique", element_of(list, i),
                      "is the host and port of an earlier entry");
    return {};
}

[[nodiscard]] auto check_egress(const session_rules& all) -> result<> {
    GLOVE_CHECK(check_unique(all.egress_policy_ids, "egress_policy_ids"));
    const place root;
    const auto list = member_of(root, "egress_policies");
    GLOVE_CHECK(check_unique(all.egress_policies, list.name, "policy_id",
                             [](const auto& p) -> view { return p.policy_id; }));
    for (std::size_t i = 0; i < all.egress_policies.size(); ++i) {
        const auto item = element_of(list, i);
        if (!has(all.egress_policy_ids, all.egress_policies[i].policy_id))
            return refuse(errc::invalid_input, "policy.reference", member_of(item, "policy_id"),
                          "is not in egress_policy_ids");
        GLOVE_CHECK(check_targets(all.egress_policies[i], item));
    }
    return {};
}

[[nodiscard]] auto check_secret_mount(const session_rules& all, std::size_t index, const place& at)
    -> result<> {
    const auto& what = all.secret_mounts[index];
    if (!has(all.secret_handles, what.handle))
        return refuse(errc::invalid_input, "policy.reference", member_of(at, "handle"),
                      "is not in secret_handles");
    if (std::none_of(all.runtime_templates.begin(), all.runtime_templates.end(),
                     [&](const auto& t) { return t.runtime_id == what.runtime_id; }))
        return refuse(errc::invalid_input, "policy.reference", member_of(at, "runtime_id"),
                      "is the runtime of no template");
    if (what.target_path == agent_home || !sys::holds(agent_home, what.target_path))
        return refuse(errc::not_permitted, "policy.target_path", member_of(at, "target_path"),
                      "is not below /home/agent");
    for (std::size_t j = 0; j < index; ++j)
        if (all.secret_mounts[j].runtime_id == what.runtime_id &&
            overlap(all.secret_mounts[j].target_path, what.target_path))
            return refuse(errc::invalid_input, "policy.overlap", member_of(at, "target_path"),
                          "overlaps that of an earlier entry of the runtime");
    return {};
}

[[nodiscard]] auto check_secrets(const session_rules& all) -> result<> {
    GLOVE_CHECK(check_unique(all.secret_handles, "secret_handles"));
    GLOVE_CHECK(check_unique(all.secret_mounts, "secret_mounts", "handle",
                             [](const auto& m) -> view { return m.handle; }));
    const place root;
    const auto list = member_of(root, "secret_mounts");
    for (std::size_t i = 0; i < all.secret_mounts.size(); ++i)
        GLOVE_CHECK(check_secret_mount(all, i, element_of(list, i)));
    return {};
}

[[nodiscard]] auto check_rules(const session_rules& all) -> result<> {
    const place root;
    GLOVE_CHECK(check_aliases(all.path_aliases, member_of(root, "path_aliases")));
    GLOVE_CHECK(check_destinations(all.library_projection_destinations));
    GLOVE_CHECK(check_templates(all));
    GLOVE_CHECK(check_profiles(all));
    GLOVE_CHECK(check_egress(all));
    GLOVE_CHECK(check_unique(all.tool_policy_ids, "tool_policy_ids"));
    return check_secrets(all);
}

template<class T, class Test> [[nodiscard]] auto find_in(const std::vector<T>& list, Test test)
    -> const T* {
    const auto found = std::find_if(list.begin(), list.end(), test);
    return found == list.end() ? nullptr : &*found;
}

} // namespace

auto path_alias::find(access_kind kind) const -> const alias_access* {
    return find_in(access, [&](const auto& a) { return a.access == kind; });
}
auto session_rules::find_template(view id) const -> const runtime_template* {
    return find_in(runtime_templates, [&](const auto& t) { return t.runtime_template_id == id; });
}
auto session_rules::find_alias(view name) const -> const path_alias* {
    return find_in(path_aliases, [&](const auto& a) { return a.alias == name; });
}
auto session_rules::find_destination(view name) const -> const projection_destination* {
    return find_in(library_projection_destinations, [&](const auto& d) { return d.alias == name; });
}
auto session_rules::find_profile(const resource_limits& limits) const -> const resource_profile* {
    return find_in(resource_profiles, [&](const auto& p) { return p.limits() == limits; });
}
auto session_rules::find_egress(view id) const -> const egress_policy* {
    return find_in(egress_policies, [&](const auto& p) { return p.policy_id == id; });
}

auto parse_session_rules(view text) -> result<session_rules> {
    GLOVE_TRY(auto out, wire::decode_text(text, session_rules_fields, {.bytes = policy_bytes}));
    GLOVE_CHECK(check_rules(out));
    return out;
}

auto session_rules_text(const session_rules& rules) -> result<std::string> {
    GLOVE_TRY(auto out, wire::encode(rules, session_rules_fields));
    GLOVE_CHECK(check_rules(rules));
    return out;
}

} // namespace glove::supervisor
