// The encoding, in the order of docs/managed-sessions.md and of the wire.
#include "control/launch_binding_rules.hpp"
#include <algorithm>
#include <glove/control/launch_binding.hpp>
#include <glove/wire/digest.hpp>
#include <glove/wire/grammar.hpp>
#include <tuple>

namespace glove::control {

namespace {

constexpr std::uint64_t version = 1;

void put(wire::digest_encoder& out, const bound_executable& of) {
    out.u64(of.device).u64(of.inode).u32(of.mode).u64(of.size);
    for (const auto& time : {of.modified, of.changed}) out.u64(time.seconds).u32(time.nanoseconds);
    out.str(of.sha256);
}

void put(wire::digest_encoder& out, const supervisor::resource_limits& of) {
    out.u64(of.cpu_time_ms).u64(of.memory_bytes).u32(of.pids);
    out.u64(of.wall_time_ms).u64(of.disk_bytes).u64(of.terminal_output_bytes);
}

void put(wire::digest_encoder& out, const bound_mount& of) {
    out.str(of.alias).str(of.target).str(of.quota_partition).u64(of.quota_bytes);
    out.boolean(of.writable).boolean(of.directory).boolean(of.source.has_value());
    if (of.source) out.u64(of.source->device).u64(of.source->inode).u32(of.source->mode);
    out.boolean(of.projection.has_value());
    if (const auto& p = of.projection)
        out.str(p->content_digest).str(p->projection_id).str(p->destination_alias);
    out.boolean(of.runtime.has_value());
    if (of.runtime) out.str(of.runtime->adapter_id).str(of.runtime->projection_digest);
    out.boolean(of.adoption.has_value());
    if (of.adoption) out.str(of.adoption->manifest_digest).str(of.adoption->snapshot_digest);
    if (of.secret)
        out.str("glove.managed-launch-secret").str(of.secret->handle).str(of.secret->runtime_id);
    if (of.service_manifest_digest)
        out.str("glove.managed-launch-local-service").str(*of.service_manifest_digest);
}

void put(wire::digest_encoder& out, const std::vector<bound_mount>& list) {
    std::vector<const bound_mount*> order;
    for (const auto& one : list) order.push_back(&one);
    std::ranges::sort(order, {}, [](const bound_mount* of) {
        return std::tuple<std::string_view, std::string_view>{of->alias, of->target};
    });
    out.count(order.size());
    for (const auto* one : order) put(out, *one);
}

void put(wire::digest_encoder& out, const bound_stream& of) {
    out.str(of.alias).u32(of.child_descriptor);
    for (const auto& end : {of.socket, of.peer})
        out.u64(end.device).u64(end.inode).u32(end.owner).u32(end.mode).u64(end.links);
    out.str(of.manifest_digest);
}

} // namespace

auto profile_digest(const launch_binding& of) -> result<std::string> {
    GLOVE_CHECK(check(of));
    wire::digest_encoder out;
    out.str("glove.managed-launch-profile").u8(version).str(of.controller_plan_digest);
    put(out, of.executable);
    put(out, of.limits);
    auto environment = of.environment;
    std::ranges::sort(environment);
    out.list(environment).count(of.read_only_paths.size());
    for (const auto& path : of.read_only_paths) out.str(path).boolean(false);
    out.boolean(of.has_home);
    if (of.has_home) out.str("/home/agent");
    if (of.work_directory) out.str("glove.managed-launch-work-dir").str(*of.work_directory);
    out.list(of.arguments);
    put(out, of.mounts);
    if (!of.streams.empty()) {
        out.str("glove.managed-launch-inherited-stream").str("inherited-stream-v1");
        out.count(of.streams.size());
        for (const auto& one : of.streams) put(out, one);
    }
    if (of.egress_policy_digest)
        out.str("glove.managed-launch-egress-policy").u8(version).str(*of.egress_policy_digest);
    return out.sha256_hex();
}

auto egress_policy_digest(const supervisor::egress_policy& of) -> result<std::string> {
    auto targets = of.targets;
    std::ranges::sort(targets, {}, [](const supervisor::egress_target& t) {
        return std::tuple<std::string_view, std::uint16_t, bool>{t.host, t.port, t.allow_private};
    });
    wire::digest_encoder out;
    out.str("glove.egress-policy").u8(version).str(of.policy_id).count(targets.size());
    for (const auto& t : targets) out.str(t.host).u32(t.port).boolean(t.allow_private);
    return out.sha256_hex();
}

auto egress_token_digest(std::string_view profile_digest, std::string_view token)
    -> result<std::string> {
    if (!wire::conforms(wire::grammar::hex64, profile_digest) || token.size() < 16 ||
        token.size() > 256)
        return fail(errc::invalid_input, "binding.token",
                    "a token has 16 to 256 bytes, and is of a launch");
    wire::digest_encoder out;
    out.str("glove.managed-launch-egress-token").u8(version).str(profile_digest).str(token);
    return out.sha256_hex();
}

} // namespace glove::control
