// Opens with O_PATH, so that looking at a FIFO, a device or a file on a dead server waits for
// nothing; judges the descriptor, never the name.
#include "supervisor/host_source.hpp"
#include <algorithm>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace glove::supervisor {

namespace {

// A bind mount can put one of these anywhere, so the path does not tell.
constexpr std::uint32_t made_up[] = {
    PROC_SUPER_MAGIC, SYSFS_MAGIC,      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,
    TRACEFS_MAGIC,    SECURITYFS_MAGIC, DEVPTS_SUPER_MAGIC, BPF_FS_MAGIC,        EFIVARFS_MAGIC,
    PSTOREFS_MAGIC,   NSFS_MAGIC,       BINFMTFS_MAGIC,     SELINUX_MAGIC,
};

[[nodiscard]] auto judge(sys::unique_fd pin) -> result<host_source> {
    GLOVE_TRY(const auto facts, sys::inspect(pin));
    if (facts.identity.type == S_IFLNK)
        return fail_os("source.open", ELOOP, "it or a component of it is a symbolic link");
    if (facts.identity.type != S_IFREG && facts.identity.type != S_IFDIR)
        return fail(errc::not_permitted, "source.type",
                    "it is neither a regular file nor a directory");
    struct ::statfs system{};
    if (::fstatfs(pin.get(), &system) != 0) return fail_os("source.file_system");
    if (std::find(std::begin(made_up), std::end(made_up),
                  static_cast<std::uint32_t>(system.f_type)) != std::end(made_up))
        return fail(errc::not_permitted, "source.file_system",
                    "it is of a file system that the kernel makes up");
    return host_source{std::move(pin), facts};
}

[[nodiscard]] auto reason(const error& why) -> std::string_view {
    switch (why.os) {
    case ELOOP: return "it or a component of it is a symbolic link";
    case EXDEV: return "it leads out of its root or into another mount";
    case ENOENT: return "it does not exist";
    case ENOTDIR: return "a component of it is not a directory";
    default: return "it cannot be opened";
    }
}

[[nodiscard]] auto opened(result<sys::unique_fd> pin) -> result<host_source> {
    if (!pin) return fail_os("source.open", pin.error().os, std::string{reason(pin.error())});
    return judge(*std::move(pin));
}

} // namespace

auto open_host_source(const std::string& path) -> result<host_source> {
    return opened(sys::pin(path, sys::follow::never));
}

auto open_host_source_beneath(sys::fd_ref root, const std::string& path) -> result<host_source> {
    return opened(sys::open_beneath(root, path, O_PATH | O_NOFOLLOW));
}

} // namespace glove::supervisor
