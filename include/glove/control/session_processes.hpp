// What has become of the processes of sessions that were alive when the last service ended, by
// their control groups; and the groups that nobody needs any more.
//
// Guarantees: only a group is ended that has the name of the session's and, by device, inode and
// path, is the one on record, and then all of it at once; no process is ever signalled by its
// number. A group of the name that is another one, or a process that may be the session's and is
// not in its group, is left alone, and the session is unknown. So is what cannot be looked at.
// Every wait has an end.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/container/session_groups.hpp>
#include <glove/control/recorded_processes.hpp>
#include <glove/control/session_record.hpp>
#include <glove/control/session_registry.hpp>
#include <glove/sys/clock.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

// How a process stands on record. Steps: process.identity, process.boot_id.
[[nodiscard]] auto process_identity_of(std::uint32_t pid, std::uint64_t start_time_ticks,
                                       const container::group_identity& group,
                                       const std::string& proc = "/proc")
    -> result<process_identity>;

// A group that was found. Tests put their own here.
class left_group {
public:
    virtual ~left_group() = default;
    [[nodiscard]] virtual auto identity() const -> container::group_identity = 0;
    [[nodiscard]] virtual auto holds(::pid_t process) const -> result<bool> = 0;
    [[nodiscard]] virtual auto is_empty() const -> result<bool> = 0;
    // Kills every process of it and removes it, by the deadline on the monotonic clock.
    [[nodiscard]] virtual auto end(const sys::clock& time, std::chrono::nanoseconds deadline)
        -> result<> = 0;
};
class group_finder {
public:
    virtual ~group_finder() = default;
    // Null when the session has none.
    [[nodiscard]] virtual auto find(std::string_view session_id)
        -> result<std::unique_ptr<left_group>> = 0;
    [[nodiscard]] virtual auto list() -> result<std::vector<std::string>> = 0;
};

class session_group_finder final : public group_finder {
public:
    explicit session_group_finder(container::session_groups& groups) : groups_{&groups} {}
    [[nodiscard]] auto find(std::string_view session_id)
        -> result<std::unique_ptr<left_group>> override;
    [[nodiscard]] auto list() -> result<std::vector<std::string>> override;

private:
    container::session_groups* groups_;
};

class session_processes final : public process_observer {
public:
    struct wish {
        group_finder* groups = nullptr; // these two outlive it
        const sys::clock* clock = nullptr;
        std::chrono::milliseconds patience{10'000}; // for the end of one group
        // Why a session is unknown.
        std::function<void(std::string_view session_id, const error& why)> tell = {};
        std::string proc = "/proc"; // another one, or another kernel, is for tests
        recorded_processes::number_is_free is_free = recorded_processes::kernel_says_free;
    };
    explicit session_processes(wish with);
    [[nodiscard]] auto observe(const session_record& of) -> observed_process override;

private:
    [[nodiscard]] auto look(const session_record& of) -> result<observed_process>;
    [[nodiscard]] auto end(const session_record& of, left_group& group) -> result<observed_process>;

    wish with_;
    recorded_processes recorded_;
};

struct group_sweep {
    struct trouble {
        std::string session_id;
        error why;
    };
    std::vector<std::string> removed; // sessions whose group is gone now
    std::vector<trouble> troubles;
};
// Ends the groups of all sessions but those that are to keep theirs. After the deadline, each of
// the rest is still killed, but not waited for.
[[nodiscard]] auto sweep_groups(group_finder& groups,
                                const std::function<bool(std::string_view session_id)>& keep,
                                const sys::clock& time, std::chrono::nanoseconds deadline)
    -> result<group_sweep>;

} // namespace glove::control
