// What the kernel's tables tell of a process and of its place, decoded.
//
// Guarantees: nothing is guessed: a text of another form tells nothing. A number names a process
// only together with when it began.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace glove::sys {

struct process_facts {
    ::pid_t parent = 0;            // 0: none that this process could see
    std::uint64_t start_ticks = 0; // since the machine was started
    bool has_ended = false;        // with all its threads, and was not waited for
    auto operator==(const process_facts&) const -> bool = default;
};
// Of the text of a file /proc/PID/stat.
[[nodiscard]] auto process_facts_in(std::string_view stat) noexcept -> std::optional<process_facts>;
// errc::not_found: there is no such process, or it is not shown to this one.
[[nodiscard]] auto facts_of_process(::pid_t process, const std::string& proc = "/proc")
    -> result<process_facts>;

// Which start of the machine this is: 36 characters, lower case.
[[nodiscard]] auto boot_id(const std::string& proc = "/proc") -> result<std::string>;

// The path of the control group in a text of a file /proc/PID/cgroup, as the unified hierarchy has
// it ("/user.slice/..."); nothing where there is no such hierarchy.
[[nodiscard]] auto unified_group_in(std::string_view memberships) noexcept
    -> std::optional<std::string_view>;

} // namespace glove::sys
