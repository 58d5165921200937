// Not recursive: what is mounted below a directory is somebody else's, and was not looked at. What
// is the kernel's own (/proc, /sys and their like) is never handed on.
#include "container/mount_table.hpp"
#include "sys/syscalls.hpp"
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/container/session_plan.hpp>
#include <sys/mount.h>

namespace glove::container {

namespace {

constexpr std::size_t most_mount_bytes = 16UL << 20;

[[nodiscard]] auto place_of(sys::fd_ref file) -> std::string {
    return sys::read_link("/proc/self/fd/" + std::to_string(file.get())).value_or("");
}

// The number of the mount that the descriptor leads into, followed by a space.
[[nodiscard]] auto mount_of(sys::fd_ref file) -> std::string {
    const auto facts =
        sys::read_file("/proc/self/fdinfo/" + std::to_string(file.get()), 4096).value_or("");
    constexpr std::string_view label = "mnt_id:\t";
    const auto at = facts.find(label);
    if (at == std::string::npos) return {};
    return facts.substr(at + label.size(), facts.find('\n', at) - at - label.size()) + " ";
}

// Empty when this process does not see the mount.
[[nodiscard]] auto filesystem_of(const std::string& mount, std::string_view table) -> std::string {
    while (!table.empty()) {
        const auto line = table.substr(0, table.find('\n'));
        table.remove_prefix(std::min(line.size() + 1, table.size()));
        const auto type = line.find(" - ");
        if (mount.empty() || !line.starts_with(mount) || type == std::string_view::npos) continue;
        return std::string{line.substr(type + 3, line.find(' ', type + 3) - type - 3)};
    }
    return {};
}

[[nodiscard]] auto check_filesystem(sys::fd_ref of) -> result<> {
    GLOVE_TRY(const auto table, sys::read_file("/proc/self/mountinfo", most_mount_bytes));
    const auto type = filesystem_of(mount_of(of), table);
    if (type.empty())
        return fail(errc::not_permitted, "mount.clone",
                    printable(place_of(of)) + " is in no mount that this process sees");
    if (is_kernel_filesystem(type))
        return fail(errc::not_permitted, "mount.clone",
                    printable(place_of(of)) + " is of the kernel's " + type,
                    "grant files that are on a disk or in memory");
    return {};
}

// In a user namespace the kernel shows nothing that a mount covers, which it says with EINVAL.
[[nodiscard]] auto refusal(sys::fd_ref of, int os) -> std::unexpected<error> {
    const auto path = place_of(of);
    if (os == EINVAL)
        if (const auto mounts = mount_table::read(); mounts && sys::is_normal_absolute(path))
            if (const auto below = mounts->below(path); !below.empty())
                return fail(errc::not_permitted, "mount.clone",
                            printable(path) + " has a mount below it, at " +
                                printable(below.front().path),
                            "unmount that, or grant the directories beside it");
    return fail_os("mount.clone", os, printable(path));
}

} // namespace

auto detached_mount(sys::fd_ref of, access mode) -> result<sys::unique_fd> {
    GLOVE_CHECK(check_filesystem(of));
    sys::unique_fd out{
        sys::open_tree(of.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)};
    if (!out) return refusal(of, errno);
    ::mount_attr wanted{};
    wanted.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                      (mode == access::read ? std::uint64_t{MOUNT_ATTR_RDONLY} : 0U);
    wanted.propagation = MS_PRIVATE;
    if (sys::mount_setattr(out.get(), "", AT_EMPTY_PATH, wanted) != 0)
        return fail_os("mount.restrict", errno, printable(place_of(of)));
    return out;
}

} // namespace glove::container
