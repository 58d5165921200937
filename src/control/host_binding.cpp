// One function for each kind of mount; the rules and the order are those of the binding itself.
#include "control/host_binding.hpp"
#include "supervisor/paths.hpp"
#include <algorithm>

namespace glove::control {

namespace {

constexpr std::string_view workspace = "/workspace";

[[nodiscard]] auto source_of(const sys::file_facts& facts) -> bound_source {
    return {facts.identity.device, facts.identity.inode, facts.identity.type | facts.permissions};
}

[[nodiscard]] auto scratch_mount(std::string alias, std::string_view target, std::uint64_t bytes)
    -> bound_mount {
    return {.alias = std::move(alias),
            .target = std::string{target},
            .quota_partition = std::string{scratch_partition},
            .quota_bytes = bytes,
            .writable = true,
            .directory = true};
}

[[nodiscard]] auto mount_of(const granted_path& grant) -> bound_mount {
    bound_mount out{.alias = grant.alias,
                    .target = grant.target,
                    .quota_partition = {},
                    .directory = grant.is_directory(),
                    .source = source_of(grant.facts)};
    if (!grant.is_written()) return out;
    out.quota_partition = grant.alias;
    out.quota_bytes = grant.max_bytes;
    out.writable = true;
    return out;
}

[[nodiscard]] auto mount_of(const supervisor::resolved_bundle& bundle) -> bound_mount {
    const auto& what = bundle.projection;
    return {.alias = "library:" + what.projection_id,
            .target = bundle.target_path,
            .quota_partition = {},
            .source = source_of(bundle.object.facts),
            .projection =
                bound_projection{what.content_digest, what.projection_id, what.destination_alias}};
}

[[nodiscard]] auto mount_of(const session_secret& secret, std::uint64_t bytes) -> bound_mount {
    const auto& what = *secret.what;
    auto out = scratch_mount("secret:" + what.handle, what.target_path, bytes);
    out.directory = false;
    out.source = secret.source;
    out.secret = bound_secret{what.handle, what.runtime_id};
    return out;
}

} // namespace

auto work_directory(const std::vector<granted_path>& grants) -> std::string {
    const auto stands = [](const granted_path& grant) {
        return grant.target == workspace ? grant.is_directory()
                                         : sys::holds(workspace, grant.target);
    };
    return std::string{std::ranges::any_of(grants, stands) ? workspace : supervisor::agent_home};
}

auto arguments_of(const session_program& program, const supervisor::launch_template& launch)
    -> std::vector<std::string> {
    std::vector<std::string> out{program.name};
    out.insert(out.end(), launch.arguments.begin(), launch.arguments.end());
    return out;
}

auto bind(const bound_parts& of) -> launch_binding {
    const auto bytes = of.scratch_bytes;
    launch_binding out{.controller_plan_digest = of.plan.digests.controller,
                       .executable = of.executable,
                       .limits = of.plan.plan.limits,
                       .environment = of.launch.environment,
                       .read_only_paths = of.launch.read_only_paths,
                       .has_home = true,
                       .work_directory = work_directory(of.grants),
                       .arguments = arguments_of(of.program, of.launch),
                       .mounts = {},
                       .streams = {},
                       .egress_policy_digest = {}};
    if (of.online != nullptr) out.egress_policy_digest = of.online->policy_digest;
    out.mounts.push_back(scratch_mount("__scratch_tmp", "/tmp", bytes));
    out.mounts.push_back(scratch_mount("__scratch_var_tmp", "/var/tmp", bytes));
    out.mounts.push_back(
        scratch_mount("__runtime_home_" + of.plan.plan.runtime_id, supervisor::agent_home, bytes));
    for (const auto& grant : of.grants) out.mounts.push_back(mount_of(grant));
    for (const auto& bundle : of.bundles) out.mounts.push_back(mount_of(bundle));
    for (const auto& secret : of.secrets) out.mounts.push_back(mount_of(secret, bytes));
    return out;
}

} // namespace glove::control
