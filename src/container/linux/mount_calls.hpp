// The few moves that every mount of the perimeter is made of, for the files that build it between
// clone and exec: system calls only.
#pragma once
#include "container/linux/steps.hpp"
#include "sys/syscalls.hpp"
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

namespace glove::container {

// A descriptor of the child. The kernel frees what a failing step leaves open.
class scoped {
public:
    explicit scoped(int fd) noexcept : fd_{fd} {}
    scoped(const scoped&) = delete;
    auto operator=(const scoped&) -> scoped& = delete;
    ~scoped() {
        if (fd_ >= 0)
            (void)sys::close_range(static_cast<unsigned>(fd_), static_cast<unsigned>(fd_), 0);
    }
    [[nodiscard]] auto get() const noexcept -> int { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }

private:
    int fd_;
};

[[nodiscard]] inline auto broken(call where) noexcept -> failure {
    return {.os = errno, .where = where};
}

[[nodiscard]] inline auto type_of(const struct ::statx& found) noexcept -> ::mode_t {
    return static_cast<::mode_t>(found.stx_mode & S_IFMT);
}

[[nodiscard]] inline auto open_without_links(int directory, const char* path) noexcept -> int {
    ::open_how how{};
    how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    if (directory != AT_FDCWD) how.resolve |= RESOLVE_BENEATH;
    return sys::openat2(directory, path, how);
}

// A place to mount on: the last component in an open directory, or the directory itself.
struct mount_place {
    int directory;
    const char* name; // empty: `directory` itself; never a link
};

// Restricts the detached clone, all submounts included, and puts it on its place.
[[nodiscard]] inline auto attach(int tree, mount_place place, std::uint64_t attributes) noexcept
    -> failure {
    ::mount_attr wanted{};
    wanted.attr_set = attributes | MOUNT_ATTR_NOSUID;
    wanted.propagation = MS_PRIVATE;
    if (sys::mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, wanted) != 0)
        return broken(call::mount_setattr);
    const unsigned to_itself = *place.name == '\0' ? MOVE_MOUNT_T_EMPTY_PATH : 0U;
    if (sys::move_mount(tree, "", place.directory, place.name,
                        MOVE_MOUNT_F_EMPTY_PATH | to_itself) != 0)
        return broken(call::move_mount);
    return {};
}

// Clones what `name` in `directory` is, submounts included; an empty name is `directory` itself.
[[nodiscard]] inline auto clone_tree(int directory, const char* name) noexcept -> int {
    return sys::open_tree(directory, name,
                          AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_RECURSIVE | OPEN_TREE_CLONE |
                              OPEN_TREE_CLOEXEC);
}

[[nodiscard]] inline auto clone_and_attach(mount_place source, mount_place place,
                                           std::uint64_t attributes) noexcept -> failure {
    const scoped tree{clone_tree(source.directory, source.name)};
    if (!tree) return broken(call::open_tree);
    return attach(tree.get(), place, attributes);
}

struct directory_record { // linux_dirent64, which glibc keeps to itself
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t size;
    std::uint8_t type;
    char name[1];
};

// Every name of an open directory with its type (DT_*), until `body` fails.
template<class Body> [[nodiscard]] auto each_name(int listing, Body body) noexcept -> failure {
    alignas(directory_record) char buffer[8192];
    for (;;) {
        const auto got = ::syscall(SYS_getdents64, listing, buffer, sizeof buffer);
        if (got < 0) return broken(call::getdents64);
        if (got == 0) return {};
        for (long at = 0; at < got;) {
            const auto* const record = reinterpret_cast<const directory_record*>(buffer + at);
            at += record->size;
            if (const auto bad = body(record->name, record->type); bad.os != 0) return bad;
        }
    }
}

[[nodiscard]] inline auto set_option(int fs, const char* key, const char* value) noexcept -> bool {
    return sys::fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) == 0;
}

struct option {
    const char* key;
    const char* value;
};

// A new file system as a detached mount; -1 with `bad` set when the kernel refuses.
[[nodiscard]] inline auto new_filesystem(const char* type, const option* options, std::size_t count,
                                         unsigned attributes, failure& bad) noexcept -> int {
    const scoped fs{sys::fsopen(type, FSOPEN_CLOEXEC)};
    if (!fs) return bad = broken(call::fsopen), -1;
    for (std::size_t i = 0; i < count; ++i)
        if (!set_option(fs.get(), options[i].key, options[i].value))
            return bad = broken(call::fsconfig), -1;
    if (sys::fsconfig(fs.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
        return bad = broken(call::fsconfig), -1;
    const int mount = sys::fsmount(fs.get(), FSMOUNT_CLOEXEC, attributes | MOUNT_ATTR_NOSUID);
    if (mount < 0) bad = broken(call::fsmount);
    return mount;
}

// The stand-ins for masked paths; unlinked before the agent starts, which leaves them empty for
// good.
inline constexpr const char* mask_directory = "mask.d";
inline constexpr const char* mask_file = "mask.f";

[[nodiscard]] inline auto put_mask(setup_state& state, mount_place target,
                                   bool over_directory) noexcept -> failure {
    return clone_and_attach({state.root, over_directory ? mask_directory : mask_file}, target,
                            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

} // namespace glove::container
