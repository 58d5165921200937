// Deleting goes breadth first with two directories open: what lies in a directory of the top is
// moved up to the top, so that the depth of the tree never shows. Every directory is moved once at
// most.
#include "host/hostile_tree.hpp"
#include "host/home_places.hpp"
#include <fcntl.h>
#include <sys/stat.h>
#include <vector>

namespace glove::host {

namespace {

constexpr std::size_t deepest_counted = 64; // one descriptor each

class remover {
public:
    remover(sys::fd_ref top, const std::string& path) : top_{top}, path_{path} {}

    [[nodiscard]] auto empty() -> result<> {
        for (;;) {
            GLOVE_TRY(const auto names, names_in(top_));
            if (names.empty()) return {};
            for (const auto& name : names) GLOVE_CHECK(remove_entry(name));
        }
    }

private:
    [[nodiscard]] auto problem(const std::string& name, const error& from) const
        -> std::unexpected<error> {
        const bool held = from.os == EPERM;
        const bool mounted = from.os == EBUSY || from.os == EXDEV;
        const auto where = path_ + "/" + name;
        return std::unexpected(error{.code = from.code,
                                     .step = "home.remove",
                                     .os = from.os,
                                     .detail = where,
                                     .remedy = held ? "if it is immutable: chattr -R -i -a " + path_
                                               : mounted ? "unmount what is mounted there"
                                                         : std::string{}});
    }
    [[nodiscard]] auto problem(const std::string& name, int os) const -> std::unexpected<error> {
        return problem(name,
                       error{.code = classify(os), .step = "home.remove", .os = os, .detail = {}});
    }

    // Something that is no directory, or an empty one.
    [[nodiscard]] static auto unlink_one(sys::fd_ref directory, const std::string& name) -> int {
        if (::unlinkat(directory.get(), name.c_str(), 0) == 0 || errno == ENOENT) return 0;
        if (errno != EISDIR && errno != EPERM) return errno;
        const int first = errno; // EPERM is also what some file systems say of a directory
        if (::unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        return errno == ENOTDIR ? first : errno;
    }

    [[nodiscard]] auto remove_entry(const std::string& name) -> result<> {
        const int refused = unlink_one(top_, name);
        if (refused == 0) return {};
        if (refused != ENOTEMPTY && refused != EEXIST) return problem(name, refused);
        const auto inner = open_with_own_rights(top_, name);
        if (!inner) return problem(name, inner.error());
        GLOVE_TRY(const auto names, names_in(*inner));
        for (const auto& each : names) {
            const int left = unlink_one(*inner, each);
            if (left == 0) continue;
            if (left != ENOTEMPTY && left != EEXIST) return problem(name + "/" + each, left);
            GLOVE_CHECK(move_up(*inner, name, each));
        }
        const int still = unlink_one(top_, name);
        // More than was read at once, or somebody still writes: the next round goes on.
        if (still == 0 || still == ENOTEMPTY || still == EEXIST) return {};
        return problem(name, still);
    }

    [[nodiscard]] auto move_up(sys::fd_ref from, const std::string& above, const std::string& name)
        -> result<> {
        // Moving a directory writes to its "..", so it must be writable itself.
        const auto opened = open_with_own_rights(from, name);
        if (!opened) return problem(above + "/" + name, opened.error());
        for (;;) {
            const auto fresh = ".moved-" + std::to_string(++moved_);
            if (::renameat2(from.get(), name.c_str(), top_.get(), fresh.c_str(),
                            RENAME_NOREPLACE) == 0)
                return {};
            if (errno != EEXIST) return problem(above + "/" + name, errno);
        }
    }

    sys::fd_ref top_;
    const std::string& path_;
    std::uint64_t moved_ = 0;
};

class counter {
public:
    explicit counter(std::uint64_t limit) : limit_{limit} {}

    void count(sys::fd_ref directory, std::size_t depth) {
        const auto all = each_name(directory, [&](const std::string& name) {
            if (out_.entries == limit_) {
                out_.counted_all = false;
                return false;
            }
            count_one(directory, name, depth);
            return true;
        });
        if (!all) out_.counted_all = false;
    }
    [[nodiscard]] auto result_of() const -> tree_size { return out_; }

private:
    void count_one(sys::fd_ref directory, const std::string& name, std::size_t depth) {
        ++out_.entries;
        struct ::stat found{};
        if (::fstatat(directory.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
            return; // gone since, or not to be looked at
        out_.bytes += static_cast<std::uint64_t>(found.st_blocks) * 512;
        if (!S_ISDIR(found.st_mode)) return;
        const auto inner = sys::open_beneath(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (inner && depth < deepest_counted) count(*inner, depth + 1);
        else out_.counted_all = false;
    }

    std::uint64_t limit_;
    tree_size out_;
};

} // namespace

auto measure_tree(sys::fd_ref top, std::uint64_t entry_limit) -> result<tree_size> {
    counter all{entry_limit};
    all.count(top, 0);
    return all.result_of();
}

auto remove_tree(sys::fd_ref holder, const std::string& name, const std::string& path) -> result<> {
    GLOVE_TRY(const auto top, sys::open_beneath(holder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    remover rest{top, path};
    GLOVE_CHECK(rest.empty());
    if (::unlinkat(holder.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
        return fail_os("home.remove", errno, path);
    return {};
}

} // namespace glove::host
