// What this machine lets a process do of that which a perimeter is made of, tried for real.
//
// Guarantees: everything is tried in children of its own that are gone afterwards, each within a
// bounded time; nothing of the host is changed.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/launch.hpp>
#include <string_view>

namespace glove::container {

enum class ability : std::uint8_t {
    namespaces, // clone3 with the flags of a launch
    id_maps,
    new_filesystem, // fsopen, fsconfig, fsmount
    open_tree,
    mount_setattr,
    move_mount,
    proc, // a procfs of the namespace's own
    filter,
};
inline constexpr std::size_t ability_count = 8;

// 0 when it works, else the kernel's answer; `not_tried` when something before it failed.
inline constexpr int not_tried = -1;
struct abilities {
    std::array<int, ability_count> answers{};
    [[nodiscard]] auto answer(ability which) const noexcept -> int {
        return answers[static_cast<std::size_t>(which)];
    }
    [[nodiscard]] auto has(ability which) const noexcept -> bool { return answer(which) == 0; }
};

[[nodiscard]] auto probe_abilities(std::chrono::milliseconds patience) -> abilities;

// The version of Landlock's interface; 0 when the kernel has none or has it switched off.
[[nodiscard]] auto landlock_version() noexcept -> int;

// Plans and launches `true` as `glove exec -- true` would, and waits for its end. The error is the
// one that `glove exec` would tell. `has_true` is false where the perimeter stands and the system
// has no such program.
struct trial {
    bool has_true = true;
};
[[nodiscard]] auto try_perimeter(const profile& wish, argument_area arguments,
                                 std::chrono::milliseconds patience) -> result<trial>;

// A setting of the kernel below /proc/sys, without its newline; empty when there is none.
[[nodiscard]] auto kernel_setting(std::string_view path) -> std::string;
// A field of /proc/self/status; empty when there is none.
[[nodiscard]] auto own_status(std::string_view name) -> std::string;
// Whether something is mounted over a part of /proc.
[[nodiscard]] auto proc_is_covered() -> bool;

} // namespace glove::container
