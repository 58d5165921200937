// Files that others may have prepared: opened without following links, checked on the open
// descriptor, replaced whole: complete before they get their name. Never decides on a path what it
// can ask of a descriptor.
#include "sys/syscalls.hpp"
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <glove/sys/entropy.hpp>
#include <glove/sys/files.hpp>
#include <memory>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace glove::sys {

namespace {

constexpr ::mode_t permission_bits = 07777;

[[nodiscard]] auto open_plain(int dir, const char* name, int flags, ::mode_t mode = 0)
    -> unique_fd {
    return unique_fd{::openat(dir, name, flags | O_CLOEXEC, mode)};
}

[[nodiscard]] auto require_private_file(fd_ref file, const std::string& name) -> result<> {
    GLOVE_TRY(const auto facts, inspect(file));
    const char* defect = nullptr;
    if (facts.identity.type != S_IFREG) defect = "is not a regular file";
    else if (facts.owner != ::geteuid()) defect = "belongs to another user";
    else if (facts.links != 1) defect = "has more than one link";
    else if (facts.permissions != 0600) defect = "does not have mode 0600";
    if (defect == nullptr) return {};
    const bool mode_alone = facts.identity.type == S_IFREG && facts.owner == ::geteuid() &&
                            facts.links == 1 && name.starts_with('/');
    return fail(errc::not_permitted, "file.private", name + " " + defect,
                mode_alone ? "chmod 600 " + name : "");
}

} // namespace

auto pin(const std::string& path, follow last) -> result<unique_fd> {
    ::open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    if (last != follow::yes) how.flags |= O_NOFOLLOW;
    how.resolve = RESOLVE_NO_MAGICLINKS;
    if (last == follow::never) how.resolve |= RESOLVE_NO_SYMLINKS;
    unique_fd fd{openat2(AT_FDCWD, path.c_str(), how)};
    if (!fd) return fail_os("file.pin", errno, path);
    return fd;
}

namespace {

[[nodiscard]] auto facts_at(fd_ref at, const char* name, int flags) -> result<file_facts> {
    struct ::statx found{};
    if (::statx(at.get(), name, flags | AT_STATX_SYNC_AS_STAT, STATX_BASIC_STATS, &found) != 0)
        return fail_os("file.inspect", errno, name);
    return file_facts{
        .identity = {.device = ::makedev(found.stx_dev_major, found.stx_dev_minor),
                     .inode = found.stx_ino,
                     .type = static_cast<::mode_t>(found.stx_mode & S_IFMT)},
        .permissions = static_cast<::mode_t>(found.stx_mode & permission_bits),
        .owner = found.stx_uid,
        .group = found.stx_gid,
        .links = found.stx_nlink,
        .size = found.stx_size,
        .written_ns = found.stx_mtime.tv_sec * 1'000'000'000LL + found.stx_mtime.tv_nsec,
        .changed_ns = found.stx_ctime.tv_sec * 1'000'000'000LL + found.stx_ctime.tv_nsec,
    };
}

} // namespace

auto inspect(fd_ref file) -> result<file_facts> { return facts_at(file, "", AT_EMPTY_PATH); }

auto inspect(fd_ref directory, const std::string& name) -> result<file_facts> {
    return facts_at(directory, name.c_str(), AT_SYMLINK_NOFOLLOW);
}

auto is_system(::uid_t owner) -> bool {
    constexpr ::uid_t unmapped = 65534;
    if (owner == 0 || owner != unmapped) return owner == 0;
    struct ::stat root{};
    return ::stat("/", &root) == 0 && root.st_uid == unmapped;
}

auto absolute(const std::string& path) -> result<std::string> {
    if (path.starts_with('/')) return path;
    const std::unique_ptr<char, decltype(&::free)> here{::get_current_dir_name(), ::free};
    if (here == nullptr) return fail_os("file.working_directory");
    return (std::string{here.get()} += '/') += path;
}

auto open_beneath(fd_ref root, const std::string& path, int flags, mounts across)
    -> result<unique_fd> {
    ::open_how how{};
    how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
    if ((flags & O_PATH) == 0) how.flags |= O_NOCTTY;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    if (across == mounts::refused) how.resolve |= RESOLVE_NO_XDEV;
    const char* const name = path.empty() ? "." : path.c_str();
    unique_fd fd{openat2(root.get(), name, how)};
    // EAGAIN: a rename elsewhere kept the kernel from being sure; it is never an answer.
    for (int again = 0; !fd && errno == EAGAIN && again < 32; ++again)
        fd = unique_fd{openat2(root.get(), name, how)};
    if (!fd) return fail_os("file.open_beneath", errno, path);
    return fd;
}

auto read_link(const std::string& path) -> result<std::string> {
    std::string target(PATH_MAX, '\0');
    const auto got = ::readlink(path.c_str(), target.data(), target.size());
    if (got < 0) return fail_os("file.read_link", errno, path);
    if (static_cast<std::size_t>(got) == target.size())
        return fail_os("file.read_link", ENAMETOOLONG, path);
    target.resize(static_cast<std::size_t>(got));
    return target;
}

auto read_link_of(fd_ref link) -> result<std::string> {
    std::string target(PATH_MAX, '\0');
    const auto got = ::readlinkat(link.get(), "", target.data(), target.size());
    if (got < 0) return fail_os("file.read_link");
    target.resize(static_cast<std::size_t>(got));
    return target;
}

auto list_names(fd_ref root, const std::string& path, mounts across)
    -> result<std::vector<std::pair<std::string, ::mode_t>>> {
    std::vector<std::pair<std::string, ::mode_t>> out;
    auto opened =
        open_beneath(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, across);
    if (!opened) {
        if (const int os = opened.error().os; os == ENOENT || os == ENOTDIR || os == ELOOP)
            return out;
        return std::unexpected(std::move(opened).error());
    }
    struct closer {
        void operator()(::DIR* open) const noexcept { (void)::closedir(open); }
    };
    const std::unique_ptr<::DIR, closer> directory{::fdopendir(opened->get())};
    if (directory == nullptr) return fail_os("file.list", errno, path);
    (void)opened->release(); // the stream has it now
    for (;;) {
        errno = 0;
        const auto* const entry = ::readdir(directory.get());
        if (entry == nullptr && errno != 0) return fail_os("file.list", errno, path);
        if (entry == nullptr) return out;
        const std::string_view name{entry->d_name};
        if (name == "." || name == "..") continue;
        if (out.size() == most_names) return fail(errc::limit_exceeded, "file.list", path);
        out.emplace_back(name, entry->d_type == DT_UNKNOWN
                                   ? ::mode_t{0}
                                   : static_cast<::mode_t>(DTTOIF(entry->d_type)));
    }
}

auto is_there(const std::string& path) -> result<bool> {
    if (exists(path)) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return fail_os("file.look", errno, path);
}

auto exists(const std::string& path) noexcept -> bool {
    return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

auto read_all(fd_ref file, std::size_t limit) -> result<std::string> {
    constexpr std::size_t first = 4096, most = 64UL * 1024;
    std::string out;
    for (auto piece = first;; piece = std::min(2 * piece, most)) {
        const auto have = out.size();
        if (have > limit) return fail(errc::limit_exceeded, "file.read");
        ::ssize_t got = 0;
        // One byte past the limit tells "exactly full" from "too long". What is read into is not
        // filled with zeros before: most files are small, and some are read all the time.
        out.resize_and_overwrite(have + std::min(limit - have, piece - 1) + 1,
                                 [&](char* to, std::size_t size) {
                                     got = ::read(file.get(), to + have, size - have);
                                     return have + static_cast<std::size_t>(std::max(got, 0L));
                                 });
        if (got < 0 && errno != EINTR) return fail_os("file.read");
        if (got == 0) return out;
    }
}

auto read_file(const std::string& path, std::size_t limit) -> result<std::string> {
    const auto fd = open_plain(AT_FDCWD, path.c_str(), O_RDONLY | O_NOCTTY);
    if (!fd) return fail_os("file.open", errno, path);
    return read_all(fd, limit);
}

namespace {

[[nodiscard]] auto read_private(unique_fd file, const std::string& shown, std::size_t limit)
    -> result<private_file> {
    GLOVE_CHECK(require_private_file(file, shown));
    GLOVE_TRY(const auto before, inspect(file));
    if (before.size == 0) return fail(errc::invalid_input, "file.private", shown + " is empty");
    if (before.size > limit)
        return fail(errc::limit_exceeded, "file.private",
                    shown + " has more than " + std::to_string(limit) + " bytes");
    GLOVE_TRY(auto content, read_all(file, limit));
    GLOVE_TRY(const auto after, inspect(file));
    if (!(after == before) || content.size() != before.size)
        return fail(errc::conflict, "file.changed", shown + " changed while it was read",
                    "replace the file as a whole, by renaming a new one over it");
    return private_file{std::move(file), before, std::move(content)};
}

} // namespace

auto read_private_file(const std::string& path, std::size_t limit) -> result<std::string> {
    auto fd = open_plain(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!fd) return fail_os("file.open", errno, path);
    GLOVE_TRY(auto read, read_private(std::move(fd), path, limit));
    return std::move(read.content);
}

auto open_private_file(fd_ref directory, const std::string& name, std::size_t limit)
    -> result<private_file> {
    auto fd = open_beneath(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!fd) return fail_os("file.open", fd.error().os, name);
    return read_private(*std::move(fd), name, limit);
}

auto reopen(fd_ref pin, int flags) -> result<unique_fd> {
    const auto by_descriptor = "/proc/self/fd/" + std::to_string(pin.get());
    auto file = open_plain(AT_FDCWD, by_descriptor.c_str(), flags | O_NOCTTY);
    if (!file) return fail_os("file.reopen");
    return file;
}

auto write_all(fd_ref file, std::string_view bytes) -> result<> {
    while (!bytes.empty()) {
        const auto put = ::write(file.get(), bytes.data(), bytes.size());
        if (put < 0) {
            if (errno == EINTR) continue;
            return fail_os("file.write");
        }
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

auto sync(fd_ref file) -> result<> {
    if (::fsync(file.get()) != 0) return fail_os("file.sync");
    return {};
}

namespace {

// A caller's umask may take a new directory away from its owner, too.
class umask_for_owner {
public:
    umask_for_owner() noexcept = default;
    umask_for_owner(const umask_for_owner&) = delete;
    auto operator=(const umask_for_owner&) -> umask_for_owner& = delete;
    ~umask_for_owner() { (void)::umask(before_); }

private:
    ::mode_t before_ = ::umask(0077);
};

[[nodiscard]] auto make_missing(const std::string& path) -> result<> {
    const umask_for_owner private_modes;
    if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {}; // the common case first
    if (errno != ENOENT) return fail_os("file.make_directory", errno, path);
    for (auto at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
        const auto part = path.substr(0, at);
        if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
            return fail_os("file.make_directory", errno, part);
    }
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
        return fail_os("file.make_directory", errno, path);
    return {};
}

} // namespace

auto make_directory(const std::string& path) -> result<unique_fd> {
    GLOVE_CHECK(make_missing(path));
    auto directory = open_plain(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
    if (!directory) return fail_os("file.open_directory", errno, path);
    return directory;
}

auto make_private_directory(const std::string& path) -> result<unique_fd> {
    GLOVE_CHECK(make_missing(path));
    auto directory = open_plain(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!directory) return fail_os("file.open_directory", errno, path);
    GLOVE_TRY(const auto facts, inspect(directory));
    if (facts.owner != ::geteuid())
        return fail(errc::not_permitted, "file.private_directory",
                    path + " belongs to another user");
    if ((facts.permissions & 022U) != 0)
        return fail(errc::not_permitted, "file.private_directory",
                    path + " can be written by others");
    return directory;
}

auto make_directory_in(fd_ref directory, const std::string& name) -> result<unique_fd> {
    {
        const umask_for_owner private_modes;
        if (::mkdirat(directory.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
            return fail_os("file.make_directory", errno, name);
    }
    return open_beneath(directory, name, O_RDONLY | O_DIRECTORY);
}

auto open_private_append(fd_ref directory, const std::string& name) -> result<unique_fd> {
    constexpr int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    auto file = open_plain(directory.get(), name.c_str(), flags | O_CREAT | O_EXCL, 0600);
    // Whatever the caller's umask took away is given back to a file that is new.
    if (file && ::fchmod(file.get(), 0600) != 0) return fail_os("file.open_append", errno, name);
    if (!file && errno == EEXIST) file = open_plain(directory.get(), name.c_str(), flags);
    if (!file) return fail_os("file.open_append", errno, name);
    GLOVE_CHECK(require_private_file(file, name));
    return file;
}

namespace {

struct new_file {
    unique_fd file;
    std::string name;
};

[[nodiscard]] auto name_beside(const std::string& name) -> result<std::string> {
    system_entropy random;
    GLOVE_TRY(const auto suffix, random_id(random));
    return "." + name + "." + suffix;
}

// A file that becomes `name` when it is complete.
[[nodiscard]] auto make_beside(fd_ref directory, const std::string& name) -> result<new_file> {
    GLOVE_TRY(auto other, name_beside(name));
    const umask_for_owner private_modes;
    auto file =
        open_plain(directory.get(), other.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (!file) return fail_os("file.create", errno, name);
    return new_file{std::move(file), std::move(other)};
}

// A file without a name, which ends with the process; not every file system has them.
[[nodiscard]] auto make_unnamed(fd_ref directory) -> unique_fd {
    const umask_for_owner private_modes;
    return open_plain(directory.get(), ".", O_WRONLY | O_TMPFILE, 0600);
}

[[nodiscard]] auto give_name(fd_ref file, fd_ref directory, const std::string& name) -> bool {
    const auto from = "/proc/self/fd/" + std::to_string(file.get());
    return ::linkat(AT_FDCWD, from.c_str(), directory.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

[[nodiscard]] auto move_over(fd_ref directory, const std::string& from, const std::string& name,
                             unsigned flags) -> result<> {
    if (::renameat2(directory.get(), from.c_str(), directory.get(), name.c_str(), flags) == 0)
        return {};
    auto refused = fail_os("file.rename", errno, name);
    (void)::unlinkat(directory.get(), from.c_str(), 0);
    return refused;
}

} // namespace

auto check_replaceable(fd_ref directory, const std::string& name) -> result<> {
    if (name.empty()) return fail(errc::invalid_input, "file.replace", "a file name is missing");
    struct ::stat found{};
    if (::fstatat(directory.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISREG(found.st_mode))
            return fail(errc::conflict, "file.replace", name + " exists and is not a regular file");
        if (found.st_uid != ::geteuid())
            return fail(errc::not_permitted, "file.replace", name + " belongs to another user");
    } else if (errno != ENOENT) return fail_os("file.replace", errno, name);
    // Permission is not enough: /proc and /sys let root write and take no file.
    if (make_unnamed(directory)) return {};
    GLOVE_TRY(const auto trial, make_beside(directory, name));
    if (::unlinkat(directory.get(), trial.name.c_str(), 0) != 0)
        return fail_os("file.replace", errno, name);
    return {};
}

namespace {

[[nodiscard]] auto through_to_disk(fd_ref file, std::int64_t written_ns) -> result<> {
    constexpr std::int64_t second = 1'000'000'000;
    const ::timespec when{.tv_sec = written_ns / second, .tv_nsec = written_ns % second};
    const std::array times{when, when};
    if (::futimens(file.get(), times.data()) != 0) return fail_os("file.times");
    return sync(file);
}

// `flags` are of renameat2; with `written_ns` the content is on the disk before it has the name.
[[nodiscard]] auto put_file(fd_ref directory, const std::string& name, std::string_view content,
                            std::optional<std::int64_t> written_ns, unsigned flags) -> result<> {
    const auto fill = [&](fd_ref file) -> result<> {
        GLOVE_CHECK(write_all(file, content));
        return written_ns ? through_to_disk(file, *written_ns) : result<>{};
    };
    if (const auto file = make_unnamed(directory); file) {
        GLOVE_CHECK(fill(file));
        if (give_name(file, directory, name)) return {};
        // A name that is taken can only be taken over by another name.
        GLOVE_TRY(const auto other, name_beside(name));
        if (give_name(file, directory, other)) return move_over(directory, other, name, flags);
    }
    GLOVE_TRY(const auto made, make_beside(directory, name));
    if (auto filled = fill(made.file); !filled) {
        (void)::unlinkat(directory.get(), made.name.c_str(), 0);
        return filled;
    }
    return move_over(directory, made.name, name, flags);
}

} // namespace

auto replace_private_file(fd_ref directory, const std::string& name, std::string_view content)
    -> result<> {
    return put_file(directory, name, content, std::nullopt, 0);
}

auto replace_durably(fd_ref directory, const std::string& name, std::string_view content,
                     std::int64_t written_ns) -> result<> {
    GLOVE_CHECK(put_file(directory, name, content, written_ns, 0));
    return sync(directory);
}

auto create_private_file(fd_ref directory, const std::string& name, std::string_view content)
    -> result<> {
    return put_file(directory, name, content, std::nullopt, RENAME_NOREPLACE);
}

auto sealed_file(std::string_view content, step_name step) -> result<unique_fd> {
    unique_fd file{::memfd_create("glove", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (!file) return fail_os(step);
    GLOVE_CHECK(write_all(file, content));
    if (::lseek(file.get(), 0, SEEK_SET) != 0 ||
        ::fcntl(file.get(), F_ADD_SEALS,
                F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
        return fail_os(step);
    return file;
}

auto is_normal_absolute(std::string_view path) noexcept -> bool {
    if (path.empty() || path.front() != '/') return false;
    if (path.size() == 1) return true;
    for (std::size_t at = 1; at <= path.size();) {
        const auto end = std::min(path.find('/', at), path.size());
        const auto part = path.substr(at, end - at);
        if (part.empty() || part == "." || part == "..") return false;
        at = end + 1;
    }
    return path.find('\0') == std::string_view::npos;
}

auto parent_of(std::string_view path) -> std::string {
    const auto slash = path.rfind('/');
    return std::string{slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash)};
}

auto holds(std::string_view root, std::string_view path) noexcept -> bool {
    if (root == "/") return true;
    return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

} // namespace glove::sys
