// What the plan of a run and that of a managed session have in common.
#pragma once
#include "container/mount_table.hpp"
#include "container/tree.hpp"
#include <array>
#include <glove/container/plan.hpp>

namespace glove::container {

struct scratch_place {
    std::string_view path;
    ::mode_t permissions;
};
// Private and writable in every sandbox.
inline constexpr std::array scratch_places{
    scratch_place{home_directory, 0700}, scratch_place{"/tmp", 01777},
    scratch_place{"/var/tmp", 01777},    scratch_place{"/run", 0755},
    scratch_place{"/dev/shm", 01777},
};

// Covers whatever stands at the path when it is mounted; pinned so that it is known what was seen.
[[nodiscard]] auto guard_over(std::string path) -> result<tree_entry>;

// Where /home or /tmp is a link of the host that a grant brought in, the private place goes to
// where the link leads: nothing is ever made through a link, which could lead out of the new root.
[[nodiscard]] auto behind_links(const tree_builder& tree, const std::string& path)
    -> result<std::string>;

// Devices, mount points of the kernel's own file systems, and the files that say who the agent is.
[[nodiscard]] auto add_own_places(tree_builder& tree, const plan& of) -> result<>;

// A /proc or /sys that somebody mounted below a system place, for a chroot perhaps, is not the
// system's.
[[nodiscard]] auto cover_kernel_mounts(tree_builder& tree, const std::vector<tree_entry>& system,
                                       const mount_table& mounts) -> result<>;

[[nodiscard]] auto login_shell() -> std::string_view;

} // namespace glove::container
