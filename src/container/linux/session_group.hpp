// One control group of a session: what `session_group` and `session_groups` share, and what is read
// out of texts of the kernel's.
#pragma once
#include <cstdint>
#include <glove/container/session_groups.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glove::container {

// A file of the group, and what the kernel must say that it holds.
using held_value = std::pair<const char*, std::string>;

// The most that was seen, for kernels that do not tell.
struct seen_peaks {
    std::uint64_t memory = 0, processes = 0;
};
// Of the files of a group that may have so many processes; not known of one that was found.
[[nodiscard]] auto usage_of(sys::fd_ref group, std::optional<std::uint32_t> processes,
                            seen_peaks& seen) -> result<session_group_usage>;
// "0-3,5" has five; nothing of any other form.
[[nodiscard]] auto count_processors(std::string_view list) -> std::optional<unsigned>;

// Whether what the group swaps out has a limit to be set. Without swap in the kernel nothing can be
// swapped out; with it, what is not counted is not held, which is an error.
[[nodiscard]] auto check_swap(sys::fd_ref group) -> result<bool>;

struct session_group::state {
    std::shared_ptr<const sys::unique_fd> parent;
    std::string name; // in the parent
    std::string path; // as /proc/PID/cgroup has it
    sys::unique_fd group, entry, killing, events;
    group_identity identity;
    std::vector<held_value> held;           // empty: it was found
    std::optional<std::uint32_t> processes; // that it may have
    bool made = false, gone = false;
    mutable seen_peaks seen;

    // Opens what is needed of `group`, so that its end takes no new descriptor.
    [[nodiscard]] auto open_files() -> result<>;
    [[nodiscard]] auto check_held() const -> result<>;
    [[nodiscard]] auto populated() const -> result<bool>;
    [[nodiscard]] auto kill() const -> result<>;
    [[nodiscard]] auto end(const sys::clock& time, std::chrono::nanoseconds deadline) -> result<>;

private:
    [[nodiscard]] auto await_empty(const sys::clock& time, std::chrono::nanoseconds deadline) const
        -> result<>;
    [[nodiscard]] auto remove(const sys::clock& time, std::chrono::nanoseconds deadline) const
        -> result<>;
    [[nodiscard]] auto is_still_named() const -> result<bool>;
};

} // namespace glove::container
