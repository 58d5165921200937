// A session policy that is good and uses every member, for tests to break.
#pragma once
#include "plan_scene.hpp"
#include <glove/supervisor/session_policy.hpp>

namespace glove::test {

inline auto usual_launch() -> supervisor::launch_template {
    supervisor::launch_template out;
    out.executable_path = "/usr/bin/true";
    out.arguments = {"--version"};
    out.environment = {"PATH=/usr/bin:/bin", "TERM=xterm-256color"};
    return out;
}

inline void set_launch(supervisor::runtime_template& of, supervisor::launch_template launch) {
    of.adapter_command_digest = supervisor::launch_template_digest(launch).value();
    of.launch = std::move(launch);
}

inline auto usual_template(std::string id = "codex-safe") -> supervisor::runtime_template {
    supervisor::runtime_template out;
    out.runtime_template_id = std::move(id);
    out.runtime_id = "codex";
    out.allowed_path_aliases = {"workspace"};
    out.allowed_projection_destinations = {"libraries"};
    set_launch(out, usual_launch());
    return out;
}

inline auto read_by_bind() -> supervisor::alias_access {
    using namespace supervisor;
    return {access_kind::read, materialization_kind::bind, creation_kind::never,
            cleanup_kind::retain, 0};
}
inline auto written_as_copy() -> supervisor::alias_access {
    using namespace supervisor;
    return {access_kind::ephemeral_write, materialization_kind::copy,
            creation_kind::empty_directory, cleanup_kind::remove, mib};
}

// Has whatever a policy may have, apart from a second way of finding a program.
inline auto usual_rules(std::string host_path = "/srv/project") -> supervisor::session_rules {
    using namespace supervisor;
    session_rules out;
    out.revision = 7;
    out.max_plan_ttl_ms = 600'000;
    out.path_aliases = {{"workspace",
                         std::move(host_path),
                         "/workspace",
                         86'400,
                         {read_by_bind(), written_as_copy()}}};
    out.library_projection_destinations = {{"libraries", "/opt/sage/library-bundles"},
                                           {"fixtures", "/opt/sage/fixtures"}};
    out.resource_profiles = {{"tiny", 1000, 64 * mib, 16, 2000, 2 * mib, mib},
                             {"small", 60'000, 1024 * mib, 256, 120'000, 2048 * mib, 16 * mib}};
    out.egress_policy_ids = {"no-network", "model-only"};
    out.tool_policy_ids = {"sage-readonly"};
    out.secret_handles = {"codex-token"};
    out.egress_policies = {{"model-only", {{"api.example.com", 443, false}}}};
    out.secret_mounts = {
        {"codex-token", "codex", "/etc/glove/codex-token", "/home/agent/.codex/auth.json"}};
    auto adopting = usual_template("pi-safe");
    adopting.runtime_id = "pi";
    adopting.adoption = {"/etc/glove/adopted", digits('5'), digits('6')};
    auto discovering = usual_template("codex-found");
    launch_template found;
    found.runtime_discovery = "codex";
    found.executable_search_paths = {"/opt/harness/bin"};
    found.arguments = {"--version"};
    found.environment = {"PATH=/usr/bin:/bin"};
    found.read_only_paths = {"/opt/harness/lib"};
    set_launch(discovering, found);
    out.runtime_templates = {usual_template(), adopting, discovering};
    return out;
}

// Where a runtime is looked for in `usual_rules`.
inline void look_in(supervisor::session_rules& rules, std::string directory) {
    auto launch = *rules.runtime_templates[2].launch;
    launch.executable_search_paths = {std::move(directory)};
    set_launch(rules.runtime_templates[2], launch);
}

// For a plan of `usual_plan`, whose command digest stands for nothing.
inline auto accepting_rules() -> supervisor::session_rules {
    auto out = usual_rules();
    for (auto& t : out.runtime_templates) {
        t.launch.reset();
        t.adapter_command_digest = digits('a');
    }
    return out;
}

} // namespace glove::test
