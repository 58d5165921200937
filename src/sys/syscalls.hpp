// System calls that glibc 2.36 has no usable wrapper for. Thin, errno-style, async-signal-safe:
// they may be used between clone and exec.
#pragma once
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct clone_args;

namespace glove::sys {

inline auto openat2(int dir, const char* path, const ::open_how& how) noexcept -> int {
    return static_cast<int>(::syscall(SYS_openat2, dir, path, &how, sizeof how));
}
inline auto open_tree(int dir, const char* path, unsigned flags) noexcept -> int {
    return static_cast<int>(::syscall(SYS_open_tree, dir, path, flags));
}
inline auto move_mount(int from_dir, const char* from, int to_dir, const char* to,
                       unsigned flags) noexcept -> int {
    return static_cast<int>(::syscall(SYS_move_mount, from_dir, from, to_dir, to, flags));
}
inline auto mount_setattr(int dir, const char* path, unsigned flags,
                          const ::mount_attr& attributes) noexcept -> int {
    return static_cast<int>(
        ::syscall(SYS_mount_setattr, dir, path, flags, &attributes, sizeof attributes));
}
inline auto fsopen(const char* type, unsigned flags) noexcept -> int {
    return static_cast<int>(::syscall(SYS_fsopen, type, flags));
}
inline auto fsconfig(int fs, unsigned command, const char* key, const void* value, int aux) noexcept
    -> int {
    return static_cast<int>(::syscall(SYS_fsconfig, fs, command, key, value, aux));
}
inline auto fsmount(int fs, unsigned flags, unsigned attributes) noexcept -> int {
    return static_cast<int>(::syscall(SYS_fsmount, fs, flags, attributes));
}
inline auto pivot_root(const char* new_root, const char* put_old) noexcept -> int {
    return static_cast<int>(::syscall(SYS_pivot_root, new_root, put_old));
}
inline auto close_range(unsigned first, unsigned last, unsigned flags) noexcept -> int {
    return static_cast<int>(::syscall(SYS_close_range, first, last, flags));
}
inline auto execveat(int dir, const char* path, char* const* arguments, char* const* environment,
                     int flags) noexcept -> int {
    return static_cast<int>(::syscall(SYS_execveat, dir, path, arguments, environment, flags));
}
inline auto landlock_create_ruleset(const ::landlock_ruleset_attr* what, std::size_t size,
                                    unsigned flags) noexcept -> int {
    return static_cast<int>(::syscall(SYS_landlock_create_ruleset, what, size, flags));
}
inline auto landlock_add_path(int ruleset, const ::landlock_path_beneath_attr& what) noexcept
    -> int {
    return static_cast<int>(
        ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &what, 0));
}
inline auto landlock_restrict_self(int ruleset) noexcept -> int {
    return static_cast<int>(::syscall(SYS_landlock_restrict_self, ruleset, 0));
}
// Every capability of the calling thread, for good.
inline auto drop_capabilities() noexcept -> int {
    const ::__user_cap_header_struct self{_LINUX_CAPABILITY_VERSION_3, 0};
    const ::__user_cap_data_struct none[2]{};
    return static_cast<int>(::syscall(SYS_capset, &self, none));
}
inline auto pidfd_send_signal(int pidfd, int number) noexcept -> int {
    return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0));
}

} // namespace glove::sys
