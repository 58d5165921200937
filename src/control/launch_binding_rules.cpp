// Each rule is a function over one member; none quotes a value, because some are secrets.
#include "control/launch_binding_rules.hpp"
#include "supervisor/paths.hpp"
#include "supervisor/refusal.hpp"
#include "supervisor/variables.hpp"
#include <glove/wire/grammar.hpp>
#include <limits>
#include <map>
#include <sys/stat.h>

namespace glove::control {

using supervisor::agent_home;
using supervisor::element_of;
using supervisor::member_of;
using supervisor::refuse;
using wire::conforms;
using wire::grammar;
using wire::place;

namespace {

constexpr std::size_t most_text_bytes = 65'536; // of an argument or a variable
constexpr std::size_t most_path_bytes = 4096;
constexpr std::size_t most_paths = 512;
constexpr std::size_t most_streams = 64;
constexpr std::uint32_t first_stream = 3;

[[nodiscard]] auto is_hex(std::string_view text) -> bool { return conforms(grammar::hex64, text); }
[[nodiscard]] auto is_path(std::string_view text) -> bool {
    return text.size() <= most_path_bytes && conforms(grammar::path, text);
}
[[nodiscard]] auto is_name(grammar of, std::string_view text, std::size_t most = 128) -> bool {
    return !text.empty() && text.size() <= most && conforms(of, text);
}

[[nodiscard]] auto check_executable(const bound_executable& of, const place& at) -> result<> {
    if (!S_ISREG(of.mode) || of.size == 0 || of.size > most_executable_bytes)
        return refuse(errc::invalid_input, "binding.executable", at,
                      "is no regular file of 1 byte to 512 MiB");
    for (const auto& time : {of.modified, of.changed})
        if (time.nanoseconds >= 1'000'000'000)
            return refuse(errc::invalid_input, "binding.executable", at, "has a time that is none");
    if (!is_hex(of.sha256))
        return refuse(errc::invalid_input, "binding.executable", member_of(at, "sha256"),
                      "is no digest");
    return {};
}

[[nodiscard]] auto check_limits(const supervisor::resource_limits& of, const place& at)
    -> result<> {
    if (of.cpu_time_ms == 0 || of.memory_bytes == 0 || of.pids == 0 || of.wall_time_ms == 0 ||
        of.disk_bytes == 0 || of.terminal_output_bytes == 0)
        return refuse(errc::invalid_input, "binding.limits", at, "leaves a limit open");
    return {};
}

[[nodiscard]] auto check_texts(const std::vector<std::string>& list, std::size_t most,
                               step_name step, const place& at) -> result<> {
    if (list.size() > most)
        return refuse(errc::limit_exceeded, step, at,
                      "has more than " + std::to_string(most) + " entries");
    for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].empty() || list[i].size() > most_text_bytes ||
            list[i].find('\0') != std::string::npos)
            return refuse(errc::invalid_input, step, element_of(at, i),
                          "is empty, too long, or holds a NUL");
    return {};
}

[[nodiscard]] auto check_environment(const std::vector<std::string>& list, const place& at)
    -> result<> {
    GLOVE_CHECK(check_texts(list, most_variables, "binding.environment", at));
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto name = supervisor::variable_name(list[i]);
        if (name.size() == list[i].size() || !supervisor::is_variable_name(name))
            return refuse(errc::invalid_input, "binding.environment", element_of(at, i),
                          "is not NAME=VALUE with a name of letters, digits and _");
        if (supervisor::is_own_variable(name))
            return refuse(errc::not_permitted, "binding.environment", element_of(at, i),
                          "is a variable that glove sets itself, and may be new at each launch");
    }
    const auto name = [](const std::string& entry) { return supervisor::variable_name(entry); };
    if (const auto i = supervisor::first_repeated(list, name); i < list.size())
        return refuse(errc::invalid_input, "binding.environment", element_of(at, i),
                      "sets a variable that an earlier entry sets");
    return {};
}

[[nodiscard]] auto check_paths(const std::vector<std::string>& list, const place& at) -> result<> {
    if (list.size() > most_paths)
        return refuse(errc::limit_exceeded, "binding.paths", at,
                      "has more than " + std::to_string(most_paths) + " entries");
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (!is_path(list[i]))
            return refuse(errc::invalid_input, "binding.paths", element_of(at, i),
                          "is not an absolute path in its shortest form");
        for (std::size_t j = 0; j < i; ++j)
            if (supervisor::overlap(list[i], list[j]))
                return refuse(errc::invalid_input, "binding.paths", element_of(at, i),
                              "overlaps " + wire::to_string(element_of(at, j)));
    }
    return {};
}

[[nodiscard]] auto check_directory(const launch_binding& of, const place& at) -> result<> {
    if (!of.work_directory || *of.work_directory == "/workspace") return {};
    if (*of.work_directory == agent_home && of.has_home) return {};
    return refuse(errc::invalid_input, "binding.directory", at,
                  "is neither /workspace nor the /home/agent of a session with a home");
}

// What a mount is of, and that its name says so.
[[nodiscard]] auto check_origin(const bound_mount& of, const place& at) -> result<> {
    const auto wrong = [&](std::string_view member) {
        return refuse(errc::invalid_input, "binding.mounts", member_of(at, member),
                      "is not of the right form, or not what the alias says");
    };
    if (of.source && (of.directory ? !S_ISDIR(of.source->mode) : !S_ISREG(of.source->mode)))
        return wrong("source");
    if (of.alias.starts_with("library:") != of.projection.has_value()) return wrong("projection");
    if (const auto& p = of.projection;
        p && (of.alias != "library:" + p->projection_id || of.writable || of.directory ||
              !is_name(grammar::ident, p->projection_id) ||
              !is_name(grammar::ident, p->destination_alias) || !is_hex(p->content_digest) ||
              !of.target.ends_with("/" + p->content_digest + ".json")))
        return wrong("projection");
    if (of.alias.starts_with("secret:") != of.secret.has_value()) return wrong("secret");
    if (const auto& s = of.secret;
        s && (of.alias != "secret:" + s->handle || of.directory ||
              !is_name(grammar::ident, s->handle) || !is_name(grammar::ident, s->runtime_id)))
        return wrong("secret");
    if (const auto& r = of.runtime;
        r && (!is_name(grammar::ident, r->adapter_id) || !is_hex(r->projection_digest)))
        return wrong("runtime");
    if (const auto& a = of.adoption;
        a && (!is_hex(a->manifest_digest) || !is_hex(a->snapshot_digest)))
        return wrong("adoption");
    if (of.service_manifest_digest && !is_hex(*of.service_manifest_digest))
        return wrong("service_manifest_digest");
    return {};
}

[[nodiscard]] auto check_mount(const bound_mount& of, const place& at) -> result<> {
    // The prefix of the domains, which stand between mounts without a mark of their own.
    if (!is_name(grammar::ident, of.alias, 256) || of.alias.starts_with("glove."))
        return refuse(errc::invalid_input, "binding.mounts", member_of(at, "alias"),
                      "is no name of a mount");
    if (!is_path(of.target))
        return refuse(errc::invalid_input, "binding.mounts", member_of(at, "target"),
                      "is not an absolute path in its shortest form");
    const auto quota = member_of(at, "quota_partition");
    if (of.quota_partition.empty() != (of.quota_bytes == 0))
        return refuse(errc::invalid_input, "binding.quota", quota, "goes with a quota");
    if (!of.quota_partition.empty() && !is_name(grammar::ident, of.quota_partition))
        return refuse(errc::invalid_input, "binding.quota", quota, "is no name of a partition");
    if (of.writable && of.quota_partition.empty())
        return refuse(errc::invalid_input, "binding.quota", quota,
                      "is missing, and the mount is writable");
    return check_origin(of, at);
}

// A secret's place is in the home, which is a mount itself.
[[nodiscard]] auto may_hold(const bound_mount& outer, const bound_mount& inner) -> bool {
    return outer.target == agent_home && !outer.secret && inner.secret &&
           inner.target != agent_home;
}

[[nodiscard]] auto check_targets(const launch_binding& of, const place& at) -> result<> {
    bool home = false;
    for (std::size_t i = 0; i < of.mounts.size(); ++i) {
        const auto& one = of.mounts[i];
        home = home || (one.target == agent_home && one.directory && one.writable);
        for (std::size_t j = 0; j < i; ++j) {
            const auto& other = of.mounts[j];
            if (supervisor::overlap(one.target, other.target) && !may_hold(one, other) &&
                !may_hold(other, one))
                return refuse(errc::invalid_input, "binding.targets",
                              member_of(element_of(at, i), "target"),
                              "overlaps that of " + wire::to_string(element_of(at, j)));
        }
    }
    if (home != of.has_home)
        return refuse(errc::invalid_input, "binding.targets", at,
                      of.has_home ? "has no writable directory at /home/agent"
                                  : "has a home, and the session has none");
    return {};
}

[[nodiscard]] auto check_quota(const launch_binding& of, const place& at) -> result<> {
    std::map<std::string_view, std::uint64_t> partitions;
    for (std::size_t i = 0; i < of.mounts.size(); ++i) {
        const auto& one = of.mounts[i];
        if (one.quota_partition.empty()) continue;
        const auto [known, added] = partitions.try_emplace(one.quota_partition, one.quota_bytes);
        if (!added && known->second != one.quota_bytes)
            return refuse(errc::invalid_input, "binding.quota",
                          member_of(element_of(at, i), "quota_bytes"),
                          "is not that of the partition's other mounts");
    }
    auto left = of.limits.disk_bytes;
    for (const auto& [name, bytes] : partitions) {
        if (bytes > left)
            return refuse(errc::limit_exceeded, "binding.quota", at,
                          "has partitions of more bytes than the limit of the disk");
        left -= bytes;
    }
    if (left != 0)
        return refuse(errc::invalid_input, "binding.quota", at,
                      "has partitions that do not add up to the limit of the disk");
    return {};
}

[[nodiscard]] auto check_mounts(const launch_binding& of, const place& at) -> result<> {
    if (of.mounts.size() < fewest_mounts || of.mounts.size() > most_mounts)
        return refuse(errc::limit_exceeded, "binding.mounts", at,
                      "has " + std::to_string(of.mounts.size()) + " entries, and not " +
                          std::to_string(fewest_mounts) + " to " + std::to_string(most_mounts));
    for (std::size_t i = 0; i < of.mounts.size(); ++i)
        GLOVE_CHECK(check_mount(of.mounts[i], element_of(at, i)));
    GLOVE_CHECK(check_targets(of, at));
    return check_quota(of, at);
}

[[nodiscard]] auto check_streams(const std::vector<bound_stream>& list, const place& at)
    -> result<> {
    if (list.size() > most_streams)
        return refuse(errc::limit_exceeded, "binding.streams", at,
                      "has more than " + std::to_string(most_streams) + " entries");
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto& one = list[i];
        if (one.child_descriptor != first_stream + i || !S_ISSOCK(one.socket.mode) ||
            !S_ISSOCK(one.peer.mode) || !is_name(grammar::svc_alias, one.alias, 64) ||
            !is_hex(one.manifest_digest))
            return refuse(errc::invalid_input, "binding.streams", element_of(at, i),
                          "is no pair of sockets at the next descriptor from 3 on");
    }
    const auto name = [](const bound_stream& of) -> std::string_view { return of.alias; };
    if (const auto i = supervisor::first_repeated(list, name); i < list.size())
        return refuse(errc::invalid_input, "binding.streams", element_of(at, i),
                      "has the alias of an earlier one");
    return {};
}

} // namespace

auto check(const launch_binding& of) -> result<> {
    const place root;
    if (!is_hex(of.controller_plan_digest))
        return refuse(errc::invalid_input, "binding.form",
                      member_of(root, "controller_plan_digest"), "is no digest");
    GLOVE_CHECK(check_executable(of.executable, member_of(root, "executable")));
    GLOVE_CHECK(check_limits(of.limits, member_of(root, "limits")));
    GLOVE_CHECK(check_environment(of.environment, member_of(root, "environment")));
    GLOVE_CHECK(check_paths(of.read_only_paths, member_of(root, "read_only_paths")));
    GLOVE_CHECK(check_directory(of, member_of(root, "work_directory")));
    const auto arguments = member_of(root, "arguments");
    GLOVE_CHECK(check_texts(of.arguments, most_arguments, "binding.arguments", arguments));
    if (of.arguments.empty())
        return refuse(errc::invalid_input, "binding.arguments", arguments, "names no program");
    GLOVE_CHECK(check_mounts(of, member_of(root, "mounts")));
    GLOVE_CHECK(check_streams(of.streams, member_of(root, "streams")));
    if (of.egress_policy_digest && !is_hex(*of.egress_policy_digest))
        return refuse(errc::invalid_input, "binding.egress",
                      member_of(root, "egress_policy_digest"), "is no digest");
    return {};
}

} // namespace glove::control
