// Attacks the mount tree: makes read-only places writable, uncovers what is masked, leaves the
// root.
#include "attack.hpp"
#include <algorithm>
#include <array>
#include <fcntl.h>
#include <fstream>
#include <linux/mount.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// glibc's <sys/mount.h> and the kernel's <linux/mount.h> cannot meet in one file.
extern "C" int mount(const char*, const char*, const char*, unsigned long, const void*);
extern "C" int umount2(const char*, int);

namespace hostile {
namespace {

constexpr int detach = 2; // MNT_DETACH

auto remount(arguments with) -> result {
    return judge(::mount(nullptr, with[0], nullptr, MS_REMOUNT | MS_BIND, nullptr));
}

auto remount_all(arguments with) -> result {
    return judge(::mount(nullptr, with[0], nullptr, MS_REMOUNT, nullptr));
}

auto clear_read_only(arguments with) -> result {
    ::mount_attr writable{};
    writable.attr_clr = MOUNT_ATTR_RDONLY;
    return judge(::syscall(SYS_mount_setattr, AT_FDCWD, with[0], 0, &writable, sizeof writable));
}

auto reconfigure(arguments with) -> result {
    const auto fs = ::syscall(SYS_fspick, AT_FDCWD, with[0], 0);
    if (fs < 0) return denied();
    if (::syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "rw", nullptr, 0) != 0) return denied();
    return judge(::syscall(SYS_fsconfig, fs, FSCONFIG_CMD_RECONFIGURE, nullptr, nullptr, 0));
}

auto mount_tmpfs(arguments with) -> result {
    return judge(::mount("none", with[0], "tmpfs", 0, nullptr));
}

auto mount_bind(arguments with) -> result {
    return judge(::mount(with[0], with[1], nullptr, MS_BIND | MS_REC, nullptr));
}

auto mount_proc(arguments with) -> result {
    return judge(::mount("none", with[0], "proc", 0, nullptr));
}

auto unmount(arguments with) -> result { return judge(::umount2(with[0], detach)); }

auto clone_tree(arguments with) -> result {
    const auto tree = ::syscall(SYS_open_tree, AT_FDCWD, with[0], OPEN_TREE_CLONE | AT_RECURSIVE);
    if (tree < 0) return denied();
    ::mount_attr writable{};
    writable.attr_clr = MOUNT_ATTR_RDONLY;
    return judge(::syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &writable, sizeof writable));
}

auto new_filesystem(arguments) -> result {
    const auto fs = ::syscall(SYS_fsopen, "tmpfs", 0);
    if (fs < 0) return denied();
    if (::syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return denied();
    return judge(::syscall(SYS_fsmount, fs, 0, 0));
}

auto change_root(arguments with) -> result { return judge(::chroot(with[0])); }

auto pivot(arguments with) -> result {
    if (::chdir(with[0]) != 0) return untried("chdir");
    return judge(::syscall(SYS_pivot_root, ".", "."));
}

struct seen_mount {
    std::string place, options, type;
};

template<class Visit> void each_mount(Visit&& visit) {
    std::ifstream mounts{"/proc/self/mountinfo"};
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream columns{line};
        std::string skip;
        seen_mount m;
        columns >> skip >> skip >> skip >> skip >> m.place >> m.options;
        while (columns >> skip && skip != "-") continue;
        columns >> m.type;
        m.options = "," + m.options + ",";
        visit(m);
    }
}

// A mount that honours set-id bits or, terminals and the six nodes apart, device nodes.
auto loose_mounts(arguments) -> result {
    std::string loose;
    each_mount([&](const seen_mount& m) {
        const bool of_devices = m.place.starts_with("/dev/") && m.place != "/dev/shm";
        if (m.options.find(",nosuid,") == std::string::npos) loose += m.place + "(suid) ";
        if (m.options.find(",nodev,") == std::string::npos && !of_devices)
            loose += m.place + "(dev) ";
    });
    return loose.empty() ? denied("none") : worked(loose);
}

auto writable_mounts(arguments with) -> result {
    std::string found;
    each_mount([&](const seen_mount& m) {
        if (m.options.starts_with(",rw,") && std::ranges::find(with, m.place) == with.end())
            found += m.place + " ";
    });
    return found.empty() ? denied("none") : worked(found);
}

auto shared_mounts(arguments) -> result {
    std::ifstream mounts{"/proc/self/mountinfo"};
    for (std::string line; std::getline(mounts, line);)
        if (line.find(" shared:") != std::string::npos ||
            line.find(" master:") != std::string::npos)
            return worked(line);
    return denied("none");
}

// More than one root of more than one file system: an old root somebody forgot.
auto old_root(arguments) -> result {
    for (const char* const way : {"/..", "/proc/self/root/..", "/proc/self/cwd/../../../../.."}) {
        struct ::statx here{}, there{};
        if (::statx(AT_FDCWD, "/", 0, STATX_INO, &here) != 0) return untried("statx");
        if (::statx(AT_FDCWD, way, 0, STATX_INO, &there) != 0) return untried(way);
        if (here.stx_ino != there.stx_ino || here.stx_dev_minor != there.stx_dev_minor)
            return worked(way);
    }
    return denied("the same root");
}

constexpr std::array attacks{
    attack{"remount DIR", "make a read-only mount writable", remount},
    attack{"remount_all DIR", "make its file system writable", remount_all},
    attack{"clear_read_only DIR", "the same by mount_setattr", clear_read_only},
    attack{"reconfigure DIR", "the same by fspick", reconfigure},
    attack{"clone_tree DIR", "take a writable copy of a mount", clone_tree},
    attack{"mount_tmpfs DIR", "mount something new", mount_tmpfs},
    attack{"mount_bind FROM TO", "mount something under another name", mount_bind},
    attack{"mount_proc DIR", "mount an unmasked /proc", mount_proc},
    attack{"new_filesystem", "make a file system by fsopen", new_filesystem},
    attack{"unmount DIR", "uncover what lies under a mount", unmount},
    attack{"change_root DIR", "chroot", change_root},
    attack{"pivot DIR", "pivot_root", pivot},
    attack{"loose_mounts", "find a mount with set-id bits or devices", loose_mounts},
    attack{"writable_mounts EXPECTED...", "find a writable mount that is not expected",
           writable_mounts},
    attack{"shared_mounts", "find a mount that is still tied to the host's", shared_mounts},
    attack{"old_root", "walk up and out of the root", old_root},
};

} // namespace

auto mount_attacks() -> std::span<const attack> { return attacks; }

} // namespace hostile
