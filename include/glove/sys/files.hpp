// Files by descriptor: pinning, bounded reading, complete writing, and owner-only files.
//
// Every descriptor made here is close-on-exec. Nothing here follows a magic link of /proc, and the
// owner-only functions never follow a link in the last component.
#pragma once
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace glove::sys {

// What a path named at one moment. Two equal identities are the same inode of the same mounted file
// system as long as somebody holds a descriptor of it.
struct file_identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    ::mode_t type = 0; // S_IFDIR, S_IFREG, ...
    auto operator==(const file_identity&) const -> bool = default;
};

struct file_facts {
    file_identity identity;
    ::mode_t permissions = 0; // the low twelve bits of st_mode
    ::uid_t owner = 0;
    ::gid_t group = 0;
    std::uint64_t links = 0;
    std::uint64_t size = 0;      // bytes
    std::int64_t written_ns = 0; // in nanoseconds since 1970; its owner can set it
    // The kernel's own note of the last change, which nobody can set.
    std::int64_t changed_ns = 0;
    auto operator==(const file_facts&) const -> bool = default;
};

enum class follow : std::uint8_t {
    never, // no component may be a link, but the last, which is pinned itself
    no,    // a link in the last component is pinned itself
    yes,
};

// O_PATH descriptor of what `path` names now: it stays this inode whatever happens to the name.
[[nodiscard]] auto pin(const std::string& path, follow last) -> result<unique_fd>;
[[nodiscard]] auto inspect(fd_ref file) -> result<file_facts>;
// What `name` of `directory` leads to now; a link is looked at itself.
[[nodiscard]] auto inspect(fd_ref directory, const std::string& name) -> result<file_facts>;
// Whether a file of this owner is the system's. In a user namespace into which root is not mapped,
// the kernel shows root's files like those of every other user who is not: by one number, which is
// that of `/` then as well.
[[nodiscard]] auto is_system(::uid_t owner) -> bool;
// `path` with the caller's working directory in front, unless it is absolute; links are kept.
[[nodiscard]] auto absolute(const std::string& path) -> result<std::string>;
enum class mounts : std::uint8_t { refused, crossed };
// Opens the relative `path` below `root`, which is "" for itself. No component may be a link, but
// with O_PATH and O_NOFOLLOW the last, which is opened itself; nothing leads out of `root`.
[[nodiscard]] auto open_beneath(fd_ref root, const std::string& path, int flags,
                                mounts across = mounts::refused) -> result<unique_fd>;
// Target of a symbolic link; EINVAL (errc::invalid_input) when `path` is something else.
[[nodiscard]] auto read_link(const std::string& path) -> result<std::string>;
// Target of a link that is pinned itself.
[[nodiscard]] auto read_link_of(fd_ref link) -> result<std::string>;
inline constexpr std::size_t most_names = 4096; // of one directory
// Names and types of a directory's entries, the type 0 where the directory does not tell; none when
// there is no such directory. More than `most_names` is errc::limit_exceeded.
[[nodiscard]] auto list_names(fd_ref root, const std::string& path, mounts across = mounts::refused)
    -> result<std::vector<std::pair<std::string, ::mode_t>>>;
// Whether something has the name: absence is ENOENT or ENOTDIR, all else is an error.
[[nodiscard]] auto is_there(const std::string& path) -> result<bool>;
// The same where a name that cannot be looked at is as good as none.
[[nodiscard]] auto exists(const std::string& path) noexcept -> bool;

// Reads to the end; more than `limit` bytes is errc::limit_exceeded.
[[nodiscard]] auto read_all(fd_ref file, std::size_t limit) -> result<std::string>;
[[nodiscard]] auto read_file(const std::string& path, std::size_t limit) -> result<std::string>;
// The content of a file that is the caller's alone: regular, mode 0600, one link, not empty, at
// most `limit` bytes, and the same after reading as before (else errc::conflict).
[[nodiscard]] auto read_private_file(const std::string& path, std::size_t limit)
    -> result<std::string>;
// The same of the file `name` of a directory, which stays open for reading.
struct private_file {
    unique_fd file;
    file_facts facts;
    std::string content;
};
[[nodiscard]] auto open_private_file(fd_ref directory, const std::string& name, std::size_t limit)
    -> result<private_file>;
// The inode that `pin` holds, opened anew: the one place that goes through a magic link, to what
// the caller has in hand already.
[[nodiscard]] auto reopen(fd_ref pin, int flags) -> result<unique_fd>;
// All bytes or an error; survives EINTR and short writes.
[[nodiscard]] auto write_all(fd_ref file, std::string_view bytes) -> result<>;
[[nodiscard]] auto sync(fd_ref file) -> result<>;

// Creates every missing directory of the absolute `path` with mode 0700, whatever the umask, and
// opens the last one.
[[nodiscard]] auto make_directory(const std::string& path) -> result<unique_fd>;
// The same, and the last one must be owned by the caller, not a link, and closed to other writers.
[[nodiscard]] auto make_private_directory(const std::string& path) -> result<unique_fd>;
// Opens the directory `name` of `directory`, which is neither a link nor a mount, and makes it with
// mode 0700 when there is none.
[[nodiscard]] auto make_directory_in(fd_ref directory, const std::string& name)
    -> result<unique_fd>;
// Opens `name` in `directory` for appending, creating it 0600. An existing file must be regular,
// owned by the caller, mode 0600 and have one link.
[[nodiscard]] auto open_private_append(fd_ref directory, const std::string& name)
    -> result<unique_fd>;
// Whether `replace_private_file` may be expected to work: the directory takes a new file, and
// `name` is free or a regular file of the caller.
[[nodiscard]] auto check_replaceable(fd_ref directory, const std::string& name) -> result<>;
// Replaces `name` in `directory` by a new 0600 file, so that a reader sees the old content or the
// whole new one. Killed, it leaves nothing of its own behind, but for two moments: a file system
// without unnamed files, and the two calls in which a second name takes the first one over.
[[nodiscard]] auto replace_private_file(fd_ref directory, const std::string& name,
                                        std::string_view content) -> result<>;
// The same, through to the disk. `written_ns` becomes the file's own.
[[nodiscard]] auto replace_durably(fd_ref directory, const std::string& name,
                                   std::string_view content, std::int64_t written_ns) -> result<>;
// A new 0600 file, whole from the moment it has its name; errc::conflict when the name is taken, by
// whatever it is.
[[nodiscard]] auto create_private_file(fd_ref directory, const std::string& name,
                                       std::string_view content) -> result<>;

// A file without a name that holds `content`, is read from its beginning and cannot be changed any
// more. `step` is for the error.
[[nodiscard]] auto sealed_file(std::string_view content, step_name step) -> result<unique_fd>;

// Lexical helpers on absolute paths; no file system access.
// "/a//b/./c/" -> "/a/b/c". Dot-dot is refused by callers, not folded: it is not lexical.
[[nodiscard]] auto is_normal_absolute(std::string_view path) noexcept -> bool;
[[nodiscard]] auto parent_of(std::string_view path) -> std::string;
// True when `path` is `root` or lies below it: "/srv/a" holds "/srv/a/x" but not "/srv/ab".
[[nodiscard]] auto holds(std::string_view root, std::string_view path) noexcept -> bool;

} // namespace glove::sys
