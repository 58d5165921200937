// The control groups of managed sessions: siblings of the subgroup that the service runs in, below
// the parent that was delegated to it.
//
// Guarantees: the service's own subgroup and its parent are pinned by descriptor, both belong to
// the caller alone, and nobody else's process is in either; controllers are enabled only on a
// parent without a process. Every limit is read back, when the group is made and with each look at
// its use, and what the kernel does not hold is refused. A group is known by device, inode and the
// digest of its path: one that only has the name is not touched. It never moves the calling
// process, and relies on no limit of the parent's, which whoever runs as the same user can change.
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
    // SHA-256 in lower-case hex of "glove.linux-cgroup-path:" and the path as /proc/PID/cgroup has
    // it.
    std::string path_digest;
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
    std::uint64_t processes_refused = 0; // for want of the group's own
};

class session_group {
public:
    session_group(session_group&&) noexcept;
    auto operator=(session_group&&) -> session_group& = delete;
    // Of a group that was made here: ends what is left in it, and removes it, for at most two
    // seconds. One that was found is left as it is; only `end` takes it away.
    ~session_group();

    [[nodiscard]] auto identity() const -> const group_identity&;
    // Its cgroup.procs, open for writing: whoever has it can put processes into the group which it
    // has a number for, and nothing else.
    [[nodiscard]] auto entry() const -> sys::fd_ref;
    // Of all its processes, the ended ones too, in microseconds.
    [[nodiscard]] auto cpu_us() const -> result<std::uint64_t>;
    // Until it was ended. Steps: group.usage; group.limit, when a limit is not held any more.
    [[nodiscard]] auto usage() const -> result<session_group_usage>;
    // A process that is not there is in no group.
    [[nodiscard]] auto holds(::pid_t process) const -> result<bool>;
    // Of a group that is gone, it is true.
    [[nodiscard]] auto is_empty() const -> result<bool>;
    // Every process of the group at once. Any thread. Of a group that is gone, there are none.
    [[nodiscard]] auto kill() const -> result<>;
    // Kills, waits until the group is empty, at most until the deadline on the clock's monotonic
    // time, and removes it. After an error it can be tried again. Steps: group.kill, group.busy
    // (errc::timed_out), group.remove.
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
    // when something is refused. In the own group there may be the caller and its descendants, and
    // nobody else. Steps: groups.own, groups.parent (also one that was not delegated), groups.busy
    // (somebody is in the parent, or somebody else in the own group), groups.controllers (also of a
    // kernel without cgroup.kill), groups.huge_pages (memory that counts to no group).
    [[nodiscard]] static auto open() -> result<session_groups>;
    session_groups(session_groups&&) noexcept;
    ~session_groups();

    // A new group "glove-session-ID", without a process and with no groups below, its limits read
    // back: memory.max, which is whole pages, memory.swap.max 0, memory.oom.group 1, pids.max. An
    // id has at most 64 characters A-Z a-z 0-9 - _ . Steps: group.name (errc::conflict: there is
    // one), group.limit.
    [[nodiscard]] auto make(std::string_view session_id, const session_group_limits& limits)
        -> result<session_group>;
    // The group of that name, however it came there. Nothing when there is none.
    [[nodiscard]] auto find(std::string_view session_id) -> result<std::optional<session_group>>;
    // The sessions that have a group, in the order of their names.
    [[nodiscard]] auto list() const -> result<std::vector<std::string>>;
    // How many processors a session can use at once, whatever it asks the scheduler for.
    [[nodiscard]] auto processors() const -> unsigned;

private:
    struct state;
    explicit session_groups(std::unique_ptr<state> own);
    std::unique_ptr<state> state_;
};

} // namespace glove::container
