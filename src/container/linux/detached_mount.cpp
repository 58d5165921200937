// Not recursive: what is mounted below a directory is somebody else's, and was not looked at.
#include "container/mount_table.hpp"
#include "sys/syscalls.hpp"
#include <cerrno>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/container/session_plan.hpp>
#include <sys/mount.h>

namespace glove::container {

namespace {

[[nodiscard]] auto place_of(sys::fd_ref file) -> std::string {
    return sys::read_link("/proc/self/fd/" + std::to_string(file.get())).value_or("");
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
