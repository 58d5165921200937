// Everything that a launched session was started with, as one digest: `profile_digest`. Records,
// receipts and guests' intents name it.
//
// Guarantees: the same launch gives the same digest, on every machine where its files are the same
// ones, and on every day: nothing random goes in. What is bound obeys the rules below; anything
// else is refused, by the name of the member and never with its value.
//
// An online session binds what the operator allows it to reach, and not how it gets there: the
// address and the token of its proxy are new at each launch. `egress_token_digest` ties the token
// to the launch, for the audit of the session's connections.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <glove/supervisor/vocabulary.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

struct file_time {
    std::uint64_t seconds = 0;     // since 1970
    std::uint32_t nanoseconds = 0; // below a thousand million
};
// The program, by what its pinned descriptor says and its content.
struct bound_executable {
    std::uint64_t device = 0, inode = 0;
    std::uint32_t mode = 0; // with the type: a regular file
    std::uint64_t size = 0; // 1 to most_executable_bytes
    file_time modified, changed;
    std::string sha256;
};

struct bound_source {
    std::uint64_t device = 0, inode = 0;
    std::uint32_t mode = 0; // with the type
};
struct bound_projection {
    std::string content_digest;
    std::string projection_id;
    std::string destination_alias;
};
struct bound_runtime {
    std::string adapter_id;
    std::string projection_digest;
};
struct bound_adoption {
    std::string manifest_digest;
    std::string snapshot_digest;
};
struct bound_secret {
    std::string handle;
    std::string runtime_id;
};
struct bound_mount {
    std::string alias;
    std::string target;
    // Mounts of one partition share its quota, and say the same number of bytes. Both are empty for
    // what takes no room of the session's.
    std::string quota_partition;
    std::uint64_t quota_bytes = 0;
    bool writable = false; // needs a partition
    bool directory = false;
    std::optional<bound_source> source{};
    std::optional<bound_projection> projection{};
    std::optional<bound_runtime> runtime{};
    std::optional<bound_adoption> adoption{};
    std::optional<bound_secret> secret{};
    std::optional<std::string> service_manifest_digest{};
};

struct bound_socket {
    std::uint64_t device = 0, inode = 0;
    std::uint32_t owner = 0, mode = 0;
    std::uint64_t links = 0;
};
// A stream that the child inherits.
struct bound_stream {
    std::string alias;
    std::uint32_t child_descriptor = 0; // 3 and on, one after the other
    bound_socket socket, peer;
    std::string manifest_digest;
};

struct launch_binding {
    std::string controller_plan_digest;
    bound_executable executable;
    supervisor::resource_limits limits;
    std::vector<std::string> environment; // NAME=VALUE, in any order; none that glove sets itself
    std::vector<std::string> read_only_paths; // of the runtime, apart, as the policy orders them
    bool has_home = false;
    std::optional<std::string> work_directory; // /workspace, or /home/agent with a home
    std::vector<std::string> arguments;        // the program first
    std::vector<bound_mount> mounts;           // in any order
    std::vector<bound_stream> streams;
    std::optional<std::string> egress_policy_digest; // of an online session
};

inline constexpr std::uint64_t most_executable_bytes = 512UL << 20;
inline constexpr std::size_t fewest_mounts = 2, most_mounts = 291;
inline constexpr std::size_t most_arguments = 512, most_variables = 512;

// Lower-case hex. Steps: binding.form, binding.executable, binding.limits, binding.environment,
// binding.arguments, binding.paths, binding.directory, binding.mounts, binding.targets,
// binding.quota, binding.streams, binding.egress.
[[nodiscard]] auto profile_digest(const launch_binding& of) -> result<std::string>;

// What an operator allows a session to reach, whatever order it is written in.
[[nodiscard]] auto egress_policy_digest(const supervisor::egress_policy& of) -> result<std::string>;

// Of the random token of one launch's proxy, 16 to 256 bytes, and the launch that it is of. It is
// no part of `profile_digest`. Step: binding.token.
[[nodiscard]] auto egress_token_digest(std::string_view profile_digest, std::string_view token)
    -> result<std::string>;

} // namespace glove::control
