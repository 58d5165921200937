// A mount that is in no namespace cannot be cloned before Linux 6.15: it is attached for a moment,
// on top of the root of a namespace that one thread makes for itself and that nobody looks up a
// name in.
#include "container/linux/own_mounts.hpp"
#include "container/linux/mount_calls.hpp"
#include <glove/sys/threads.hpp>
#include <sys/statfs.h>

namespace glove::container {

namespace {

[[nodiscard]] auto clone_of(sys::fd_ref part) -> sys::unique_fd {
    return sys::unique_fd{
        sys::open_tree(part.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)};
}

[[nodiscard]] auto attach_and_clone(sys::fd_ref mount, sys::fd_ref part, step_name step)
    -> result<sys::unique_fd> {
    if (::unshare(CLONE_FS | CLONE_NEWNS) != 0)
        return fail_os(step, errno, "a mount namespace for one thread");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        return fail_os(step, errno, "mounts made private");
    if (sys::move_mount(mount.get(), "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return fail_os(step, errno, "move_mount");
    auto out = clone_of(part);
    if (!out) return fail_os(step, errno, "open_tree");
    return out;
}

} // namespace

auto make_mount(const char* type, std::span<const mount_option> options, std::uint64_t attributes,
                step_name step) -> result<sys::unique_fd> {
    const sys::unique_fd fs{sys::fsopen(type, FSOPEN_CLOEXEC)};
    if (!fs) return fail_os(step, errno, std::string{"fsopen "} + type);
    for (const auto& [key, value] : options) {
        const auto command = value == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;
        if (sys::fsconfig(fs.get(), command, key, value, 0) != 0)
            return fail_os(step, errno, std::string{type} + ": option " + key);
    }
    if (sys::fsconfig(fs.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
        return fail_os(step, errno, std::string{type} + ": it is not made");
    sys::unique_fd out{
        sys::fsmount(fs.get(), FSMOUNT_CLOEXEC,
                     static_cast<unsigned>(attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV))};
    if (!out) return fail_os(step, errno, std::string{type} + ": fsmount");
    return out;
}

auto second_mount(sys::fd_ref mount, sys::fd_ref part, cloning how, step_name step)
    -> result<sys::unique_fd> {
    if (how == cloning::direct) {
        if (auto out = clone_of(part)) return out;
        if (errno != EINVAL) return fail_os(step, errno, "open_tree");
    }
    result<sys::unique_fd> out = sys::unique_fd{};
    GLOVE_TRY(auto thread,
              sys::start_thread([&] { out = attach_and_clone(mount, part, step); }, step));
    thread.join();
    return out;
}

auto room_in(sys::fd_ref directory, step_name step) -> result<room> {
    struct ::statfs now{};
    if (::fstatfs(directory.get(), &now) != 0) return fail_os(step, errno, "fstatfs");
    const auto block = static_cast<std::uint64_t>(now.f_bsize);
    return room{.block = block,
                .bytes = now.f_blocks * block,
                .bytes_used = (now.f_blocks - now.f_bfree) * block,
                .bytes_left = now.f_bavail * block,
                .files = now.f_files,
                .files_left = now.f_ffree};
}

} // namespace glove::container
