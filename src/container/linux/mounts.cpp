// Builds the root file system inside the new mount namespace.
//
// Guarantees: one tmpfs of bounded size and inode count holds everything private; every source is
// the inode that the parent pinned, reached without following a link and compared by device, inode
// and type on the descriptor that is then mounted; every name that is made is the last component in
// a directory that was opened beneath the new root without following a link, so nothing is ever
// made in the host's tree; all clones are private, so that later mounts of the host do not appear
// inside.
//
// Runs between clone and exec: system calls only.
#include "container/linux/steps.hpp"
#include "sys/syscalls.hpp"
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace glove::container {

namespace {

// The stand-ins for masked paths; unlinked before the agent starts, which leaves them empty for
// good.
constexpr const char* mask_directory = "mask.d";
constexpr const char* mask_file = "mask.f";

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

[[nodiscard]] auto broken(call where) noexcept -> failure { return {.os = errno, .where = where}; }

[[nodiscard]] auto type_of(const struct ::statx& found) noexcept -> ::mode_t {
    return static_cast<::mode_t>(found.stx_mode & S_IFMT);
}

// ESTALE tells a swap apart from everything the kernel itself reports here.
[[nodiscard]] auto require_identity(int fd, const sys::file_identity& pinned) noexcept -> failure {
    struct ::statx now{};
    if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_SYNC_AS_STAT, STATX_TYPE | STATX_INO, &now) != 0)
        return broken(call::statx);
    const sys::file_identity found{.device = ::makedev(now.stx_dev_major, now.stx_dev_minor),
                                   .inode = now.stx_ino,
                                   .type = type_of(now)};
    return {.os = found == pinned ? 0 : ESTALE, .where = call::statx};
}

[[nodiscard]] auto open_without_links(int directory, const char* path) noexcept -> int {
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
[[nodiscard]] auto attach(int tree, mount_place place, std::uint64_t attributes) noexcept
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
[[nodiscard]] auto clone_tree(int directory, const char* name) noexcept -> int {
    return sys::open_tree(directory, name,
                          AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_RECURSIVE | OPEN_TREE_CLONE |
                              OPEN_TREE_CLOEXEC);
}

[[nodiscard]] auto clone_and_attach(mount_place source, mount_place place,
                                    std::uint64_t attributes) noexcept -> failure {
    const scoped tree{clone_tree(source.directory, source.name)};
    if (!tree) return broken(call::open_tree);
    return attach(tree.get(), place, attributes);
}

[[nodiscard]] auto make_file(mount_place place, ::mode_t permissions, const char* text,
                             std::size_t size) noexcept -> failure {
    const scoped file{::openat(place.directory, place.name,
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, permissions)};
    if (!file) return broken(call::openat);
    if (size > 0) {
        const auto put = ::write(file.get(), text, size);
        if (put < 0) return broken(call::write);
        if (static_cast<std::size_t>(put) != size) return {.os = ENOSPC, .where = call::write};
    }
    return {};
}

[[nodiscard]] auto make_directory(mount_place place, ::mode_t permissions) noexcept -> failure {
    if (::mkdirat(place.directory, place.name, permissions) != 0) return broken(call::mkdirat);
    return {};
}

// Neighbours in the tree share their parent, which is therefore opened once for all of them.
class parents {
public:
    explicit parents(int root) noexcept : root_{root} {}
    parents(const parents&) = delete;
    auto operator=(const parents&) -> parents& = delete;
    ~parents() { forget(); }

    // The place that `path` names, relative to the root. The directory is below the root and every
    // component of it was opened without following a link.
    [[nodiscard]] auto place(const char* path, mount_place& out) noexcept -> failure {
        const char* const slash = std::strrchr(path, '/');
        if (slash == nullptr) {
            out = {root_, path};
            return {};
        }
        const auto size = static_cast<std::size_t>(slash - path);
        if (opened_ < 0 || size != size_ || std::memcmp(path, name_, size) != 0) {
            if (size >= sizeof name_) return {.os = ENAMETOOLONG, .where = call::openat2};
            forget();
            std::memcpy(name_, path, size);
            name_[size] = '\0';
            size_ = size;
            opened_ = open_without_links(root_, name_);
            if (opened_ < 0) return broken(call::openat2);
        }
        out = {opened_, slash + 1};
        return {};
    }
    // A mount on a directory hides what a descriptor of it leads to.
    void forget() noexcept {
        if (opened_ < 0) return;
        const auto number = static_cast<unsigned>(opened_);
        (void)sys::close_range(number, number, 0);
        opened_ = -1;
    }

private:
    int root_;
    int opened_ = -1;
    std::size_t size_ = 0;
    char name_[4096] = {};
};

auto add_directory(setup_state&, const tree_operation& op, mount_place place) noexcept -> failure {
    return make_directory(place, op.permissions);
}

auto add_link(setup_state&, const tree_operation& op, mount_place place) noexcept -> failure {
    if (::symlinkat(op.text, place.directory, place.name) != 0) return broken(call::symlinkat);
    return {};
}

auto add_file(setup_state&, const tree_operation& op, mount_place place) noexcept -> failure {
    return make_file(place, op.permissions, op.text, op.text_size);
}

[[nodiscard]] auto make_point(const tree_operation& op, mount_place place) noexcept -> failure {
    return op.is_directory ? make_directory(place, op.permissions)
                           : make_file(place, 0444, nullptr, 0);
}

// The one look at the source: the descriptor that is compared is the one that is cloned.
[[nodiscard]] auto add_pinned(setup_state& state, const tree_operation& op, mount_place place,
                              std::uint64_t attributes) noexcept -> failure {
    const scoped source{open_without_links(AT_FDCWD, op.text)};
    if (!source) return broken(call::openat2);
    if (const auto bad = require_identity(source.get(), op.identity); bad.os != 0) return bad;
    if (op.make_point) {
        if (const auto bad = make_point(op, place); bad.os != 0) return bad;
        return clone_and_attach({source.get(), ""}, place, attributes);
    }
    // Inside something of the host, where a name could turn into a link.
    const scoped target{open_without_links(state.root, op.path)};
    if (!target) return broken(call::openat2);
    return clone_and_attach({source.get(), ""}, {target.get(), ""}, attributes);
}

auto add_bind(setup_state& state, const tree_operation& op, mount_place place) noexcept -> failure {
    return add_pinned(state, op, place, MOUNT_ATTR_NODEV | (op.writable ? 0U : MOUNT_ATTR_RDONLY));
}

// Read-only still lets a device be written to; it stops chmod and chown of the host's node.
auto add_device(setup_state& state, const tree_operation& op, mount_place place) noexcept
    -> failure {
    return add_pinned(state, op, place, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
}

auto add_scratch(setup_state&, const tree_operation& op, mount_place place) noexcept -> failure {
    if (const auto bad = make_directory(place, op.permissions); bad.os != 0) return bad;
    return clone_and_attach(place, place, MOUNT_ATTR_NODEV);
}

[[nodiscard]] auto put_mask(setup_state& state, mount_place target, bool over_directory) noexcept
    -> failure {
    return clone_and_attach({state.root, over_directory ? mask_directory : mask_file}, target,
                            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

// What the operator hides must still be what was looked at. A socket or FIFO is covered whatever it
// has become, and needs no mask once it is gone.
auto add_mask(setup_state& state, const tree_operation& op, mount_place) noexcept -> failure {
    const scoped target{open_without_links(state.root, op.path)};
    if (!target) {
        if (errno == ENOENT && op.may_vanish) return {};
        return broken(call::openat2);
    }
    if (!op.may_vanish)
        if (const auto bad = require_identity(target.get(), op.identity); bad.os != 0) return bad;
    struct ::statx now{};
    if (::statx(target.get(), "", AT_EMPTY_PATH, STATX_TYPE, &now) != 0) return broken(call::statx);
    if (type_of(now) == S_IFLNK) return {.os = ESTALE, .where = call::statx};
    return put_mask(state, {target.get(), ""}, type_of(now) == S_IFDIR);
}

using add_fn = failure (*)(setup_state&, const tree_operation&, mount_place) noexcept;
constexpr add_fn add_by_kind[] = {add_directory, add_link,    add_file, add_bind,
                                  add_device,    add_scratch, add_mask};
static_assert(std::size(add_by_kind) == static_cast<std::size_t>(entry_kind::mask) + 1);

[[nodiscard]] auto set_option(int fs, const char* key, const char* value) noexcept -> bool {
    return sys::fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) == 0;
}

struct option {
    const char* key;
    const char* value;
};

// A new file system as a detached mount; -1 with `bad` set when the kernel refuses.
[[nodiscard]] auto new_filesystem(const char* type, const option* options, std::size_t count,
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

enum class guard : std::uint8_t { read_only, masked };
enum class against : std::uint8_t { everybody, host_root };
struct proc_guard {
    const char* name;
    guard how;
    against whom = against::everybody;
};
// What of /proc reaches beyond the namespace: settings of the kernel, and views of its memory,
// keys, timers and hardware. A name that this kernel does not have is skipped; a row for root is
// about a file that nobody else can open.
constexpr proc_guard proc_guards[] = {
    {"acpi", guard::masked},
    {"asound", guard::masked},
    {"bus", guard::read_only},
    {"fs", guard::read_only},
    {"irq", guard::read_only},
    {"kcore", guard::masked},
    {"key-users", guard::masked},
    {"keys", guard::masked},
    {"kmsg", guard::masked},
    {"kpagecgroup", guard::masked, against::host_root},
    {"kpagecount", guard::masked, against::host_root},
    {"kpageflags", guard::masked, against::host_root},
    {"latency_stats", guard::masked},
    {"pagetypeinfo", guard::masked, against::host_root},
    {"pressure", guard::read_only},
    {"sched_debug", guard::masked},
    {"scsi", guard::masked},
    {"slabinfo", guard::masked, against::host_root},
    {"sys", guard::read_only},
    {"sysrq-trigger", guard::read_only},
    {"sysvipc", guard::read_only},
    {"timer_list", guard::masked},
    {"timer_stats", guard::masked},
    {"vmallocinfo", guard::masked, against::host_root},
};

[[nodiscard]] auto guard_entry(setup_state& state, const char* name, guard how) noexcept
    -> failure {
    const mount_place place{state.proc, name}; // names of procfs are the kernel's own
    if (how == guard::read_only) {
        const auto bad = clone_and_attach(place, place, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
        return bad.where == call::open_tree && bad.os == ENOENT ? failure{} : bad;
    }
    // Not by a clone: one that is dropped again costs a grace period of the kernel.
    struct ::statx found{};
    if (::statx(state.proc, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &found) != 0)
        return errno == ENOENT ? failure{} : broken(call::statx);
    return put_mask(state, place, type_of(found) == S_IFDIR);
}

[[nodiscard]] auto listed(const char* name) noexcept -> bool {
    for (const auto& row : proc_guards)
        if (std::strcmp(row.name, name) == 0) return true;
    return false;
}

struct directory_record { // linux_dirent64, which glibc keeps to itself
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t size;
    std::uint8_t type;
    char name[1];
};

// Root of the host owns every file of /proc that is not a process's and could chmod it for the
// whole machine, so for root whatever the table does not name is read-only as well.
[[nodiscard]] auto guard_unlisted(setup_state& state) noexcept -> failure {
    const scoped listing{::openat(state.proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!listing) return broken(call::openat);
    alignas(directory_record) char buffer[8192];
    for (;;) {
        const auto got = ::syscall(SYS_getdents64, listing.get(), buffer, sizeof buffer);
        if (got < 0) return broken(call::getdents64);
        if (got == 0) return {};
        for (long at = 0; at < got;) {
            const auto* const record = reinterpret_cast<const directory_record*>(buffer + at);
            at += record->size;
            const char first = record->name[0];
            if (record->type == DT_LNK || first == '.' || (first >= '0' && first <= '9') ||
                listed(record->name))
                continue;
            if (const auto bad = guard_entry(state, record->name, guard::read_only); bad.os != 0)
                return bad;
        }
    }
}

} // namespace

failure mount_root(setup_state& state) noexcept {
    const option options[] = {{"size", state.plan->scratch_bytes},
                              {"nr_inodes", state.plan->scratch_inodes},
                              {"mode", "0755"}};
    failure bad;
    state.root = new_filesystem("tmpfs", options, std::size(options), MOUNT_ATTR_NODEV, bad);
    if (state.root < 0) return bad;
    // On top of the old root: it always exists, and absolute paths still lead to the old tree.
    if (sys::move_mount(state.root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return broken(call::move_mount);
    bad = make_directory({state.root, mask_directory}, 0);
    if (bad.os != 0) return bad;
    return make_file({state.root, mask_file}, 0, nullptr, 0);
}

failure mount_tree(setup_state& state) noexcept {
    parents dirs{state.root};
    for (std::uint32_t i = 0; i < state.plan->tree_size; ++i) {
        const auto& op = state.plan->tree[i];
        mount_place place{};
        auto bad = op.make_point ? dirs.place(op.path, place) : failure{};
        if (bad.os == 0) bad = add_by_kind[static_cast<std::size_t>(op.kind)](state, op, place);
        if (bad.os == 0) continue;
        bad.index = i;
        return bad;
    }
    return {};
}

failure mount_proc(setup_state& state) noexcept {
    failure bad;
    state.proc = new_filesystem("proc", nullptr, 0, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, bad);
    if (state.proc < 0) return bad;
    if (sys::move_mount(state.proc, "", state.root, "proc", MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return broken(call::move_mount);
    return {};
}

failure forbid_user_namespaces(setup_state& state) noexcept {
    const scoped setting{
        ::openat(state.proc, "sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (!setting) return broken(call::openat);
    if (::write(setting.get(), "0", 1) != 1) return broken(call::write);
    return {};
}

failure guard_proc(setup_state& state) noexcept {
    for (const auto& row : proc_guards) {
        if (row.whom == against::host_root && !state.plan->host_root) continue;
        if (const auto bad = guard_entry(state, row.name, row.how); bad.os != 0) return bad;
    }
    if (!state.plan->host_root) return {};
    return guard_unlisted(state);
}

failure mount_terminals(setup_state& state) noexcept {
    const option options[] = {{"mode", "0620"}, {"ptmxmode", "0666"}};
    failure bad;
    const scoped terminals{
        new_filesystem("devpts", options, std::size(options), MOUNT_ATTR_NOEXEC, bad)};
    if (!terminals) return bad;
    if (sys::move_mount(terminals.get(), "", state.root, "dev/pts", MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return broken(call::move_mount);
    return {};
}

failure enter_root(setup_state& state) noexcept {
    if (::unlinkat(state.root, mask_directory, AT_REMOVEDIR) != 0) return broken(call::unlinkat);
    if (::unlinkat(state.root, mask_file, 0) != 0) return broken(call::unlinkat);
    ::mount_attr sealed{};
    sealed.attr_set = MOUNT_ATTR_RDONLY;
    sealed.propagation = MS_PRIVATE;
    if (sys::mount_setattr(state.root, "", AT_EMPTY_PATH, sealed) != 0)
        return broken(call::mount_setattr);
    if (::fchdir(state.root) != 0) return broken(call::fchdir);
    // Both names are the new root: the old one ends up on top of it and is detached from there.
    if (sys::pivot_root(".", ".") != 0) return broken(call::pivot_root);
    if (::umount2(".", MNT_DETACH) != 0) return broken(call::umount2);
    if (::chdir(state.plan->work_directory) != 0) return broken(call::chdir);
    // The two mount descriptors have served; init keeps nothing that leads anywhere.
    if (sys::close_range(control_descriptor + 1, ~0U, 0) != 0) return broken(call::close_range);
    return {};
}

} // namespace glove::container
