// The control groups of managed sessions: siblings of the subgroup that the service runs in, below
// the parent that was delegated to it.
//
// Guarantees: the service's own subgroup and its parent are pinned by descriptor, both belong to
// the caller alone, and nobody else's process is in either; controllers are enabled only on a
// parent without a process. Every limit is read back, and what the kernel does not hold is refused.
// A group is known by device, inode and the digest of its path: one that only has the name is not
// touched. It never moves the calling process, and relies on no limit of the parent's, which
// whoever runs as the same user can change.
//
// `session_groups` is safe for use by several threads; one `session_group` is one thread's, but for
// `kill`.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/fd.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace glove::container {

struct group_identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::string path_digest; // SHA-256 in lower-case hex of the path that the kernel tells
    auto operator==(const group_identity&) const -> bool = default;
};

struct session_group_limits {
    std::uint64_t memory_bytes = 0;
    std::uint32_t processes = 0; // threads too, and those of Glove's own inside
};

// Since the group was made.
struct session_group_usage {
    std::uint64_t cpu_us = 0;
    std::uint64_t memory_peak = 0;      // bytes
    std::uint64_t out_of_memory = 0;    // processes that were killed for want of it
    std::uint64_t memory_limit_met = 0; // times that the group's own limit left no room
    std::uint32_t processes_peak = 0;
    std::uint64_t processes_refused = 0;
};

class session_group {
public:
    session_group(session_group&&) noexcept;
    auto operator=(session_group&&) -> session_group& = delete;
    // Ends what is left in the group, and removes it.
    ~session_group();

    [[nodiscard]] auto identity() const -> const group_identity&;
    // Its cgroup.procs, open for writing: whoever has it can put a process of its own into the
    // group, and nothing else.
    [[nodiscard]] auto entry() const -> sys::fd_ref;
    [[nodiscard]] auto usage() const -> result<session_group_usage>;
    [[nodiscard]] auto holds(::pid_t process) const -> result<bool>;
    [[nodiscard]] auto is_empty() const -> result<bool>;
    // Every process of the group at once. Any thread.
    [[nodiscard]] auto kill() const -> result<>;
    // Kills, waits until the group is empty, at most until the deadline on the clock's monotonic
    // time, and removes it. Steps: group.kill, group.busy (errc::timed_out), group.remove.
    [[nodiscard]] auto end(const sys::clock& time, std::chrono::nanoseconds deadline) -> result<>;

private:
    friend class session_groups;
    struct state;
    explicit session_group(std::unique_ptr<state> own);
    std::unique_ptr<state> state_;
};

class session_groups {
public:
    // Finds the caller's own group and its parent, and enables the controllers. Nothing is changed
    // when something is refused. Steps: groups.own, groups.parent, groups.busy (somebody is in the
    // parent, or somebody else in the own group), groups.controllers.
    [[nodiscard]] static auto open() -> result<session_groups>;
    session_groups(session_groups&&) noexcept;
    ~session_groups();

    // A new group "glove-session-ID", without a process, its limits read back: memory.max,
    // memory.swap.max 0, memory.oom.group 1, pids.max. Steps: group.name (errc::conflict: there is
    // one), group.limit.
    [[nodiscard]] auto make(std::string_view session_id, const session_group_limits& limits)
        -> result<session_group>;
    // The group of that name, however it came there. Nothing when there is none.
    [[nodiscard]] auto find(std::string_view session_id) -> result<std::optional<session_group>>;
    // The sessions that have a group, in the order of their names.
    [[nodiscard]] auto list() const -> result<std::vector<std::string>>;
    // How many processors a session can use at once.
    [[nodiscard]] auto processors() const -> unsigned;

private:
    struct state;
    explicit session_groups(std::unique_ptr<state> own);
    std::unique_ptr<state> state_;
};

} // namespace glove::container
