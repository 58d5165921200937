// The places that every sandbox has, and what covers those that none has.
#include "container/plan_parts.hpp"

namespace glove::container {

namespace {

constexpr std::array device_nodes{"/dev/null",   "/dev/zero",    "/dev/full",
                                  "/dev/random", "/dev/urandom", "/dev/tty"};
struct fixed_link {
    const char* path;
    const char* target;
};
constexpr std::array device_links{
    fixed_link{"/dev/fd", "/proc/self/fd"},
    fixed_link{"/dev/stdin", "/proc/self/fd/0"},
    fixed_link{"/dev/stdout", "/proc/self/fd/1"},
    fixed_link{"/dev/stderr", "/proc/self/fd/2"},
    fixed_link{"/dev/ptmx", "pts/ptmx"},
    fixed_link{"/etc/mtab", "/proc/self/mounts"},
    fixed_link{"/var/run", "/run"},
};
// Directories the kernel's own file systems are mounted on.
constexpr std::array mount_points{"/proc", "/dev/pts"};

[[nodiscard]] auto add_devices(tree_builder& tree) -> result<> {
    for (const auto* const node : device_nodes) {
        GLOVE_TRY(auto pin, sys::pin(node, sys::follow::no));
        GLOVE_TRY(const auto facts, sys::inspect(pin));
        tree.add({.path = node,
                  .kind = entry_kind::device,
                  .text = node,
                  .identity = facts.identity,
                  .pin = std::move(pin)});
    }
    for (const auto& link : device_links)
        tree.add({.path = link.path, .kind = entry_kind::link, .text = link.target});
    return {};
}

} // namespace

auto guard_over(std::string path) -> result<tree_entry> {
    GLOVE_TRY(auto pin, sys::pin(path, sys::follow::never));
    GLOVE_TRY(const auto facts, sys::inspect(pin));
    return tree_entry{.path = std::move(path),
                      .kind = entry_kind::mask,
                      .origin = origin::guarded,
                      .identity = facts.identity,
                      .pin = std::move(pin)};
}

auto behind_links(const tree_builder& tree, const std::string& path) -> result<std::string> {
    for (auto up = path; up != "/"; up = sys::parent_of(up)) {
        if (!tree.is_link(up)) continue;
        GLOVE_TRY(const auto target, resolve(up));
        return target.real + path.substr(up.size());
    }
    return path;
}

auto add_own_places(tree_builder& tree, const plan& of) -> result<> {
    GLOVE_CHECK(add_devices(tree));
    for (const auto* const point : mount_points) tree.add({.path = point});
    for (auto& file : identity_files(of.user, login_shell(), of.bridge ? &*of.bridge : nullptr))
        tree.add(std::move(file));
    return {};
}

auto cover_kernel_mounts(tree_builder& tree, const std::vector<tree_entry>& system,
                         const mount_table& mounts) -> result<> {
    for (const auto& entry : system) {
        if (entry.kind != entry_kind::bind) continue;
        for (const auto& mount : mounts.below(entry.path)) {
            if (!is_kernel_filesystem(mount.type)) continue;
            GLOVE_TRY(auto mask, guard_over(mount.path));
            tree.add(std::move(mask));
        }
    }
    return {};
}

auto login_shell() -> std::string_view {
    return sys::exists("/bin/bash") ? "/bin/bash" : "/bin/sh";
}

} // namespace glove::container
