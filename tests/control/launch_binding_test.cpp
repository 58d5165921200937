// The digest of a launch: that of an encoder that shares nothing with it, and what is refused.
// tests/peers/launch_binding.py has the same bindings, and writes the file of their digests.
#include <algorithm>
#include <functional>
#include <glove/control/launch_binding.hpp>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <supervisor/plan_scene.hpp>
#include <support/folder.hpp>

namespace {

using namespace glove;
using namespace control;
using test::digits;
using test::mib;

auto kept(std::string_view name) -> std::string {
    std::istringstream lines{
        test::content_of(std::string{GLOVE_SOURCE} + "/tests/control/golden/launch_binding.txt")};
    for (std::string found, digest; lines >> found >> digest;)
        if (found == name) return digest;
    return "none";
}

auto scratch(std::string alias, std::string target, std::uint64_t quota) -> bound_mount {
    return {std::move(alias), std::move(target), "__scratch", quota, true, true};
}
auto small() -> launch_binding {
    launch_binding out;
    out.controller_plan_digest = digits('a');
    out.executable = {1, 2, 0100755, 3, {4, 5}, {6, 7}, digits('b')};
    out.limits = {1000, 64 * mib, 16, 2000, 2 * mib, mib};
    out.arguments = {"/usr/bin/true"};
    out.mounts = {scratch("__scratch_tmp", "/tmp", 2 * mib),
                  scratch("__scratch_var_tmp", "/var/tmp", 2 * mib)};
    return out;
}
auto egress() -> supervisor::egress_policy {
    return {"models",
            {{"a.example", 8443, true}, {"a.example", 443, false}, {"b.example", 443, false}}};
}
auto full() -> launch_binding {
    auto out = small();
    out.environment = {"PATH=/usr/bin:/bin", "TERM=xterm-256color",
                       "CODEX_HOME=/home/agent/.codex"};
    out.read_only_paths = {"/opt/runtime/codex", "/opt/runtime/base"};
    out.has_home = true;
    out.work_directory = "/workspace";
    out.arguments = {"/opt/runtime/codex/bin/codex", "--quiet", "caf\u00e9"};
    for (auto& one : out.mounts) one.quota_bytes = mib;
    auto home = scratch("__runtime_home_codex", "/home/agent", mib);
    home.runtime = bound_runtime{"codex", digits('c')};
    home.adoption = bound_adoption{digits('d'), digits('e')};
    bound_mount secret{
        "secret:codex-token", "/home/agent/.codex/auth.json", "__scratch", mib, true, false};
    secret.source = bound_source{8, 10, 0100600};
    secret.secret = bound_secret{"codex-token", "codex"};
    bound_mount library{
        "library:sage-core", "/opt/sage/libraries/" + digits('f') + ".json", "", 0, false, false};
    library.source = bound_source{8, 11, 0100600};
    library.projection = bound_projection{digits('f'), "sage-core", "libraries"};
    bound_mount service{"sage-observe", "/run/glove/services", "", 0, false, true};
    service.service_manifest_digest = digits('1');
    bound_mount workspace{"workspace", "/workspace", "workspace", mib, true, true};
    workspace.source = bound_source{8, 9, 040755};
    for (auto& one : {home, secret, library, service, workspace}) out.mounts.push_back(one);
    out.streams = {
        {"sage-observe", 3, {9, 20, 1000, 0140600, 1}, {9, 21, 1000, 0140600, 1}, digits('2')}};
    out.egress_policy_digest = egress_policy_digest(egress()).value();
    return out;
}
auto mount(launch_binding& of, std::string_view alias) -> bound_mount& {
    for (auto& one : of.mounts)
        if (one.alias == alias) return one;
    throw std::out_of_range{std::string{alias}};
}

TEST(LaunchBinding, IsThatOfAnotherEncoder) {
    EXPECT_EQ(profile_digest(small()).value(), kept("small"));
    EXPECT_EQ(profile_digest(full()).value(), kept("full"));
    EXPECT_EQ(egress_policy_digest(egress()).value(), kept("egress"));
    EXPECT_EQ(egress_token_digest(digits('a'), "0123456789abcdef").value(), kept("token"));
}

TEST(LaunchBinding, OrderThatMeansNothingChangesNothing) {
    auto other = full();
    std::ranges::reverse(other.mounts);
    std::ranges::reverse(other.environment);
    EXPECT_EQ(profile_digest(other).value(), profile_digest(full()).value());
    auto policy = egress();
    std::ranges::reverse(policy.targets);
    EXPECT_EQ(egress_policy_digest(policy).value(), egress_policy_digest(egress()).value());
    // The order of arguments means something.
    std::ranges::reverse(other.arguments);
    EXPECT_NE(profile_digest(other).value(), profile_digest(full()).value());
}

using change = std::function<void(launch_binding&)>;

TEST(LaunchBinding, EveryMemberIsBound) {
    const std::vector<change> changes{
        [](auto& b) { b.controller_plan_digest[0] = 'b'; },
        [](auto& b) { ++b.executable.device; },
        [](auto& b) { ++b.executable.inode; },
        [](auto& b) { b.executable.mode = 0100750; },
        [](auto& b) { ++b.executable.size; },
        [](auto& b) { ++b.executable.modified.seconds; },
        [](auto& b) { ++b.executable.modified.nanoseconds; },
        [](auto& b) { ++b.executable.changed.seconds; },
        [](auto& b) { ++b.executable.changed.nanoseconds; },
        [](auto& b) { b.executable.sha256[0] = 'c'; },
        [](auto& b) { ++b.limits.cpu_time_ms; },
        [](auto& b) { ++b.limits.memory_bytes; },
        [](auto& b) { ++b.limits.pids; },
        [](auto& b) { ++b.limits.wall_time_ms; },
        [](auto& b) { ++b.limits.terminal_output_bytes; },
        [](auto& b) { b.environment[0] += ":/sbin"; },
        [](auto& b) { b.read_only_paths.pop_back(); },
        [](auto& b) { b.work_directory = "/home/agent"; },
        [](auto& b) { b.work_directory.reset(); },
        [](auto& b) { b.arguments.emplace_back("--more"); },
        [](auto& b) { mount(b, "workspace").alias = "other"; },
        [](auto& b) { mount(b, "workspace").target = "/workspace/x"; },
        [](auto& b) { mount(b, "workspace").quota_partition = "other"; },
        [](auto& b) { mount(b, "workspace").writable = false; },
        [](auto& b) { mount(b, "workspace").source.reset(); },
        [](auto& b) { ++mount(b, "workspace").source->inode; },
        [](auto& b) { ++mount(b, "workspace").source->device; },
        [](auto& b) { mount(b, "workspace").source->mode = 040750; },
        [](auto& b) { mount(b, "library:sage-core").projection->destination_alias = "other"; },
        [](auto& b) { mount(b, "__runtime_home_codex").runtime->adapter_id = "pi"; },
        [](auto& b) { mount(b, "__runtime_home_codex").runtime->projection_digest[0] = 'd'; },
        [](auto& b) { mount(b, "__runtime_home_codex").runtime.reset(); },
        [](auto& b) { mount(b, "__runtime_home_codex").adoption->manifest_digest[0] = 'e'; },
        [](auto& b) { mount(b, "__runtime_home_codex").adoption->snapshot_digest[0] = 'f'; },
        [](auto& b) { mount(b, "secret:codex-token").secret->runtime_id = "pi"; },
        [](auto& b) { mount(b, "sage-observe").service_manifest_digest.reset(); },
        [](auto& b) { b.streams[0].alias = "other"; },
        [](auto& b) { ++b.streams[0].socket.inode; },
        [](auto& b) { ++b.streams[0].peer.links; },
        [](auto& b) { b.streams[0].manifest_digest[0] = '3'; },
        [](auto& b) { b.streams.clear(); },
        [](auto& b) { b.egress_policy_digest.reset(); },
        [](auto& b) { b.egress_policy_digest = digits('0'); },
    };
    std::set<std::string> seen{profile_digest(full()).value()};
    for (std::size_t i = 0; i < changes.size(); ++i) {
        auto other = full();
        changes[i](other);
        const auto digest = profile_digest(other);
        ASSERT_TRUE(digest) << i << ": " << digest.error().step << " " << digest.error().detail;
        EXPECT_TRUE(seen.insert(*digest).second) << i;
    }
}

auto step_of(const change& what, launch_binding from = full()) -> std::string {
    what(from);
    const auto digest = profile_digest(from);
    return digest ? "" : std::string{digest.error().step};
}

TEST(LaunchBinding, ProgramsAndLimitsAreOfTheirForm) {
    EXPECT_EQ(step_of([](auto& b) { b.controller_plan_digest = "A"; }), "binding.form");
    EXPECT_EQ(step_of([](auto& b) { b.executable.size = most_executable_bytes; }), "");
    EXPECT_EQ(step_of([](auto& b) { b.executable.size = most_executable_bytes + 1; }),
              "binding.executable");
    EXPECT_EQ(step_of([](auto& b) { b.executable.size = 0; }), "binding.executable");
    EXPECT_EQ(step_of([](auto& b) { b.executable.mode = 0120777; }), "binding.executable");
    EXPECT_EQ(step_of([](auto& b) { b.executable.modified.nanoseconds = 999'999'999; }), "");
    EXPECT_EQ(step_of([](auto& b) { b.executable.modified.nanoseconds = 1'000'000'000; }),
              "binding.executable");
    EXPECT_EQ(step_of([](auto& b) { b.executable.sha256 = digits('B'); }), "binding.executable");
    EXPECT_EQ(step_of([](auto& b) { b.limits.pids = 0; }), "binding.limits");
    EXPECT_EQ(step_of([](auto& b) { b.limits.wall_time_ms = 0; }), "binding.limits");
}

TEST(LaunchBinding, NothingRandomGoesIn) {
    for (const auto* name : {"HTTPS_PROXY=http://glove:secret@127.0.0.1:1", "all_proxy=x",
                             "HOME=/home/agent", "GLOVE_LOCAL_SERVICE_FDS_V1=x"}) {
        auto with = full();
        with.environment.emplace_back(name);
        const auto digest = profile_digest(with);
        ASSERT_FALSE(digest) << name;
        EXPECT_EQ(digest.error().step, "binding.environment");
        EXPECT_EQ(digest.error().code, errc::not_permitted);
        EXPECT_EQ(digest.error().detail.find("secret"), std::string::npos);
    }
    EXPECT_EQ(step_of([](auto& b) { b.environment.emplace_back("HTTPS_PROXYZ=x"); }), "");
    // Two launches with two tokens are one profile; the tokens tell them apart.
    const auto token = [](char profile, char fill) {
        return egress_token_digest(digits(profile), std::string(16, fill)).value();
    };
    EXPECT_NE(token('a', 'x'), token('a', 'y'));
    EXPECT_NE(token('a', 'x'), token('b', 'x'));
    EXPECT_FALSE(egress_token_digest(digits('a'), std::string(15, 'x')));
    EXPECT_TRUE(egress_token_digest(digits('a'), std::string(256, 'x')));
    EXPECT_FALSE(egress_token_digest(digits('a'), std::string(257, 'x')));
    EXPECT_FALSE(egress_token_digest("x", std::string(16, 'x')));
}

TEST(LaunchBinding, TextsAreBounded) {
    EXPECT_EQ(step_of([](auto& b) { b.environment.emplace_back("1X=y"); }), "binding.environment");
    EXPECT_EQ(step_of([](auto& b) { b.environment.emplace_back("X"); }), "binding.environment");
    EXPECT_EQ(step_of([](auto& b) { b.environment.emplace_back("PATH=/else"); }),
              "binding.environment");
    EXPECT_EQ(step_of([](auto& b) { b.arguments.clear(); }), "binding.arguments");
    EXPECT_EQ(step_of([](auto& b) { b.arguments.emplace_back(); }), "binding.arguments");
    EXPECT_EQ(step_of([](auto& b) { b.arguments.emplace_back(std::string("a\0b", 3)); }),
              "binding.arguments");
    EXPECT_EQ(step_of([](auto& b) { b.arguments.emplace_back(65'536, 'x'); }), "");
    EXPECT_EQ(step_of([](auto& b) { b.arguments.emplace_back(65'537, 'x'); }), "binding.arguments");
    EXPECT_EQ(step_of([](auto& b) { b.arguments.resize(most_arguments, "x"); }), "");
    EXPECT_EQ(step_of([](auto& b) { b.arguments.resize(most_arguments + 1, "x"); }),
              "binding.arguments");
    EXPECT_EQ(step_of([](auto& b) { b.read_only_paths[1] = "/opt/runtime/codex/bin"; }),
              "binding.paths");
    EXPECT_EQ(step_of([](auto& b) { b.read_only_paths[1] = "/opt/runtime/codexx"; }), "");
    EXPECT_EQ(step_of([](auto& b) { b.read_only_paths[1] = "/opt/../etc"; }), "binding.paths");
}

TEST(LaunchBinding, TheWorkDirectoryIsOneOfTwo) {
    EXPECT_EQ(step_of([](auto& b) { b.work_directory = "/tmp"; }), "binding.directory");
    EXPECT_EQ(step_of([](auto& b) { b.work_directory = "/workspace/"; }), "binding.directory");
    EXPECT_EQ(step_of([](auto& b) { b.work_directory = "/home/agent"; }), "");
    EXPECT_EQ(step_of([](auto& b) { b.work_directory = "/home/agent"; }, small()),
              "binding.directory");
}

TEST(LaunchBinding, MountsAreCounted) {
    EXPECT_EQ(step_of([](auto& b) { b.mounts.pop_back(); }, small()), "binding.mounts");
    EXPECT_EQ(step_of([](auto&) {}, small()), "");
    const auto with = [](std::size_t count) {
        auto out = small();
        while (out.mounts.size() < count) {
            const auto name = "m" + std::to_string(out.mounts.size());
            out.mounts.push_back({name, "/srv/" + name, "", 0, false, true});
        }
        return out;
    };
    EXPECT_TRUE(profile_digest(with(most_mounts)));
    EXPECT_EQ(step_of([](auto&) {}, with(most_mounts + 1)), "binding.mounts");
}

TEST(LaunchBinding, PartitionsAddUpToTheLimitOfTheDisk) {
    EXPECT_EQ(step_of([](auto& b) { ++b.limits.disk_bytes; }), "binding.quota");
    EXPECT_EQ(step_of([](auto& b) { --b.limits.disk_bytes; }), "binding.quota");
    EXPECT_EQ(step_of([](auto& b) { b.limits.disk_bytes *= 2; }), "binding.quota");
    EXPECT_EQ(step_of([](auto& b) { ++mount(b, "workspace").quota_bytes; }), "binding.quota");
    EXPECT_EQ(step_of([](auto& b) { ++mount(b, "workspace").quota_bytes, ++b.limits.disk_bytes; }),
              "");
    // Mounts of one partition share its bytes, and agree on how many.
    EXPECT_EQ(step_of([](auto& b) { ++mount(b, "__scratch_tmp").quota_bytes; }), "binding.quota");
    // Sums that would wrap around.
    EXPECT_EQ(step_of([](auto& b) {
                  mount(b, "workspace").quota_bytes = ~0ULL - mib + 1;
                  b.limits.disk_bytes = mib;
              }),
              "binding.quota");
    EXPECT_EQ(step_of([](auto& b) { mount(b, "workspace").quota_partition.clear(); }),
              "binding.quota");
    EXPECT_EQ(step_of([](auto& b) { mount(b, "workspace").quota_bytes = 0; }), "binding.quota");
    EXPECT_EQ(step_of([](auto& b) { mount(b, "workspace").quota_partition = "a/b"; }),
              "binding.quota");
    // What can be written to takes room.
    EXPECT_EQ(step_of([](auto& b) { mount(b, "sage-observe").writable = true; }), "binding.quota");
}

TEST(LaunchBinding, TargetsDoNotOverlapButSecretsInTheHome) {
    const auto at = [](std::string_view alias, std::string target) {
        return step_of([&](auto& b) { mount(b, alias).target = target; });
    };
    EXPECT_EQ(at("workspace", "/tmp"), "binding.targets");
    EXPECT_EQ(at("workspace", "/tmp/x"), "binding.targets");
    EXPECT_EQ(at("workspace", "/var"), "binding.targets");
    EXPECT_EQ(at("workspace", "/tmpx"), "");
    EXPECT_EQ(at("workspace", "/home/agent/work"), "binding.targets");
    EXPECT_EQ(at("secret:codex-token", "/home/agent/x"), "");
    EXPECT_EQ(at("secret:codex-token", "/home/agent"), "binding.targets");
    EXPECT_EQ(at("secret:codex-token", "/workspace/x"), "binding.targets");
    EXPECT_EQ(step_of([](auto& b) {
                  auto other = mount(b, "secret:codex-token");
                  other.alias = "secret:other";
                  other.secret->handle = "other";
                  b.mounts.push_back(other);
              }),
              "binding.targets");
    // A home is a writable directory, and is said.
    EXPECT_EQ(step_of([](auto& b) { b.has_home = false; }), "binding.targets");
    EXPECT_EQ(step_of([](auto& b) { b.has_home = true; }, small()), "binding.targets");
    EXPECT_EQ(step_of([](auto& b) { mount(b, "__runtime_home_codex").writable = false; }),
              "binding.targets");
}

TEST(LaunchBinding, MountsAreWhatTheirNamesSay) {
    const auto wrong = [](std::string_view alias, auto what) {
        return step_of([&](auto& b) { what(mount(b, alias)); });
    };
    const std::string mounts = "binding.mounts";
    EXPECT_EQ(wrong("workspace", [](auto& m) { m.alias = "glove.managed-launch-secret"; }), mounts);
    EXPECT_EQ(wrong("workspace", [](auto& m) { m.alias = "a/b"; }), mounts);
    EXPECT_EQ(wrong("workspace", [](auto& m) { m.alias = std::string(257, 'a'); }), mounts);
    EXPECT_EQ(wrong("workspace", [](auto& m) { m.alias = std::string(256, 'a'); }), "");
    EXPECT_EQ(wrong("workspace", [](auto& m) { m.alias = "library:x"; }), mounts);
    EXPECT_EQ(wrong("workspace", [](auto& m) { m.alias = "secret:x"; }), mounts);
    EXPECT_EQ(wrong("workspace", [](auto& m) { m.target = "workspace"; }), mounts);
    EXPECT_EQ(wrong("workspace", [](auto& m) { m.source->mode = 0100644; }), mounts);
    EXPECT_EQ(wrong("library:sage-core", [](auto& m) { m.projection.reset(); }), mounts);
    EXPECT_EQ(wrong("library:sage-core", [](auto& m) { m.projection->projection_id = "x"; }),
              mounts);
    EXPECT_EQ(
        wrong("library:sage-core", [](auto& m) { m.target = "/opt/" + digits('e') + ".json"; }),
        mounts);
    EXPECT_EQ(wrong("library:sage-core",
                    [](auto& m) {
                        m.writable = true, m.quota_partition = "workspace", m.quota_bytes = mib;
                    }),
              mounts);
    EXPECT_EQ(wrong("secret:codex-token", [](auto& m) { m.secret->handle = "x"; }), mounts);
    EXPECT_EQ(wrong("__runtime_home_codex", [](auto& m) { m.runtime->projection_digest = "x"; }),
              mounts);
    EXPECT_EQ(wrong("__runtime_home_codex", [](auto& m) { m.adoption->snapshot_digest = "x"; }),
              mounts);
    EXPECT_EQ(wrong("sage-observe", [](auto& m) { m.service_manifest_digest = "x"; }), mounts);
}

TEST(LaunchBinding, StreamsFollowEachOther) {
    EXPECT_EQ(step_of([](auto& b) { b.streams[0].child_descriptor = 4; }), "binding.streams");
    EXPECT_EQ(step_of([](auto& b) { b.streams[0].socket.mode = 0100600; }), "binding.streams");
    EXPECT_EQ(step_of([](auto& b) { b.streams.push_back(b.streams[0]); }), "binding.streams");
    const auto with = [](std::size_t count) {
        auto out = full();
        while (out.streams.size() < count) {
            auto next = out.streams[0];
            next.alias += std::to_string(out.streams.size());
            next.child_descriptor += static_cast<std::uint32_t>(out.streams.size());
            out.streams.push_back(next);
        }
        return out;
    };
    EXPECT_TRUE(profile_digest(with(64)));
    EXPECT_EQ(step_of([](auto&) {}, with(65)), "binding.streams");
    EXPECT_EQ(step_of([](auto& b) { b.egress_policy_digest = "x"; }), "binding.egress");
}

} // namespace
