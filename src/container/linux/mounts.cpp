// Builds the root file system inside the new mount namespace.
//
// Guarantees: one tmpfs of bounded size and inode count holds everything private; what comes as a
// mount is put in place as it is, by descriptor; every other source is the inode that the parent
// pinned, reached without following a link and compared by device, inode
// and type on the descriptor that is then mounted; every name that is made is the last component in
// a directory that was opened beneath the new root without following a link, so nothing is ever
// made in the host's tree; all clones are private, so that later mounts of the host do not appear
// inside.
//
// Runs between clone and exec: system calls only.
#include "container/linux/mount_calls.hpp"
#include <cstring>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

namespace glove::container {

namespace {

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

// A mount that stood nowhere, or a file that was lent in the root file system. Where it is to stand
// is of the same type, and no link.
auto add_mounted(setup_state& state, const tree_operation& op, mount_place place) noexcept
    -> failure {
    const scoped tree{op.mount >= 0 ? op.mount : clone_tree(state.lent, op.text)};
    if (!tree) return broken(call::open_tree);
    struct ::statx source{};
    if (::statx(tree.get(), "", AT_EMPTY_PATH, STATX_TYPE, &source) != 0)
        return broken(call::statx);
    if (type_of(source) != (op.is_directory ? S_IFDIR : S_IFREG))
        return {.os = ESTALE, .where = call::statx};
    const auto attributes = MOUNT_ATTR_NODEV | (op.writable ? 0U : MOUNT_ATTR_RDONLY);
    if (op.make_point) {
        if (const auto bad = make_point(op, place); bad.os != 0) return bad;
        return attach(tree.get(), place, attributes);
    }
    const scoped target{open_without_links(state.root, op.path)};
    if (!target) return broken(call::openat2);
    struct ::statx now{};
    if (::statx(target.get(), "", AT_EMPTY_PATH, STATX_TYPE, &now) != 0) return broken(call::statx);
    if (type_of(now) != type_of(source)) return {.os = ENOTDIR, .where = call::statx};
    return attach(tree.get(), {target.get(), ""}, attributes);
}

using add_fn = failure (*)(setup_state&, const tree_operation&, mount_place) noexcept;
constexpr add_fn add_by_kind[] = {add_directory, add_link,    add_file, add_bind,
                                  add_device,    add_scratch, add_mask, add_mounted};
static_assert(std::size(add_by_kind) == static_cast<std::size_t>(entry_kind::mounted) + 1);

// A size that the kernel does not hold is no limit.
auto check_size(const setup_state& state) noexcept -> failure {
    struct ::statfs now{};
    if (::fstatfs(state.root, &now) != 0) return broken(call::fstatfs);
    const auto page = static_cast<std::uint64_t>(now.f_bsize), size = state.plan->scratch_size;
    if (now.f_blocks == size / page + (size % page == 0 ? 0 : 1)) return {};
    return {.os = ERANGE, .where = call::fstatfs};
}

// A root that somebody else wrote to would be more than Glove's own.
[[nodiscard]] auto holds_only_what_is_lent(int root) noexcept -> failure {
    const scoped listing{::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!listing) return broken(call::openat);
    return each_name(listing.get(), [](const char* name, unsigned char) noexcept -> failure {
        const bool known =
            std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0 || lent_directory == name;
        return known ? failure{} : failure{.os = ENOTEMPTY, .where = call::getdents64};
    });
}

// Both are on top of the old root: it always exists, and absolute paths still lead to the old tree.
[[nodiscard]] auto put_over_root(int mount) noexcept -> failure {
    return outcome(sys::move_mount(mount, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) == 0,
                   call::move_mount);
}

// The mount itself stays as it is for whoever else has its descriptor, and goes with the old root;
// that which becomes read-only is one of the sandbox's own. Only what stands somewhere can be
// mounted once more, by kernels before 6.15.
[[nodiscard]] auto adopt_root(setup_state& state) noexcept -> failure {
    struct ::statfs type{};
    if (::fstatfs(state.plan->root, &type) != 0) return broken(call::fstatfs);
    if (type.f_type != TMPFS_MAGIC) return {.os = EINVAL, .where = call::fstatfs};
    if (const auto bad = put_over_root(state.plan->root); bad.os != 0) return bad;
    state.root =
        sys::open_tree(state.plan->root, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (state.root < 0) return broken(call::open_tree);
    ::mount_attr wanted{};
    wanted.attr_set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
    wanted.propagation = MS_PRIVATE;
    if (sys::mount_setattr(state.root, "", AT_EMPTY_PATH, wanted) != 0)
        return broken(call::mount_setattr);
    if (const auto bad = put_over_root(state.root); bad.os != 0) return bad;
    if (const auto bad = holds_only_what_is_lent(state.root); bad.os != 0) return bad;
    state.lent = open_without_links(state.root, lent_directory.data());
    if (state.lent < 0 && errno != ENOENT) return broken(call::openat2);
    return {};
}

[[nodiscard]] auto make_root(setup_state& state) noexcept -> failure {
    const option options[] = {{"size", state.plan->scratch_bytes},
                              {"nr_inodes", state.plan->scratch_inodes},
                              {"mode", "0755"}};
    failure bad;
    state.root = new_filesystem("tmpfs", options, std::size(options), MOUNT_ATTR_NODEV, bad);
    if (state.root < 0) return bad;
    if (bad = check_size(state); bad.os != 0) return bad;
    return put_over_root(state.root);
}

} // namespace

failure mount_root(setup_state& state) noexcept {
    auto bad = state.plan->root >= 0 ? adopt_root(state) : make_root(state);
    if (bad.os != 0) return bad;
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
    return state.lent < 0 ? failure{} : put_mask(state, {state.lent, ""}, true);
}

failure mount_terminals(setup_state& state) noexcept {
    // The machine has so many for all namespaces together: a few thousand.
    const option options[] = {{"mode", "0620"}, {"ptmxmode", "0666"}, {"max", "128"}};
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
    if (!close_but_channels(*state.plan)) return broken(call::close_range);
    return {};
}

} // namespace glove::container
