// Lists directories by descriptor until a bound is reached.
#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <glove/base/ascii.hpp>
#include <glove/container/tree_walk.hpp>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::size_t inner_limit = 1024; // entries inside of repositories
// Of a path that calls of the kernel take, with room for what stands before and below it.
constexpr std::size_t longest_path = PATH_MAX - 512;

// What is gone, and what the invoker may not look at, is as closed to the agent; what is too deep
// for a path is not said to be searched.
[[nodiscard]] auto is_out_of_reach(int os) noexcept -> bool {
    return os == ENOENT || os == ENOTDIR || os == EACCES || os == ELOOP || os == ENAMETOOLONG;
}

struct waiting {
    std::size_t root;
    std::string path; // relative to the root
};

class walker {
public:
    walker(const std::vector<std::string>& roots, std::size_t limit)
        : roots_{roots}, budget_{limit} {}

    [[nodiscard]] auto run() -> tree_walk {
        for (const auto& root : roots_) {
            auto pin = sys::pin(root, sys::follow::never);
            if (!pin) note_failure(pin.error().os, root);
            pins_.push_back(pin ? *std::move(pin) : sys::unique_fd{});
            if (pins_.back()) queue_.push_back({pins_.size() - 1, ""});
        }
        if (!drain(queue_, false)) out_.within_limit = out_.repositories_complete = false;
        budget_ = std::min(budget_, inner_limit);
        (void)drain(later_, true);
        return std::move(out_);
    }

private:
    void note_failure(int os, const std::string& path) {
        if (is_out_of_reach(os) || out_.failed_os != 0) return;
        out_.failed_os = os;
        out_.failed_path = path;
    }
    [[nodiscard]] auto full(const waiting& at) const -> std::string {
        return at.path.empty() ? roots_[at.root] : roots_[at.root] + "/" + at.path;
    }

    void note_closed(const waiting& at, bool inside_git) {
        out_.complete = out_.repositories_complete = false;
        if (!inside_git) out_.closed.push_back(full(at));
    }

    // False when the budget ran out on the way.
    [[nodiscard]] auto drain(std::vector<waiting>& from, bool inside_git) -> bool {
        for (std::size_t next = 0; next < from.size(); ++next) {
            const auto here = from[next]; // a copy: scanning grows the queue
            if (!scan(here, inside_git)) return out_.complete = false;
        }
        return true;
    }

    // What one directory told besides its subdirectories.
    struct signs {
        bool git = false, head = false, objects = false, refs = false;
    };

    [[nodiscard]] auto type_of(int directory, const ::dirent64& entry, const waiting& at)
        -> ::mode_t {
        if (entry.d_type != DT_UNKNOWN) return static_cast<::mode_t>(DTTOIF(entry.d_type));
        struct ::stat found{};
        if (::fstatat(directory, entry.d_name, &found, AT_SYMLINK_NOFOLLOW) == 0)
            return found.st_mode & S_IFMT;
        note_failure(errno, full(at) + "/" + entry.d_name);
        return 0;
    }

    void take(int directory, const ::dirent64& entry, const waiting& at, signs& seen) {
        const std::string_view name{entry.d_name};
        if (roots_[at.root].size() + at.path.size() + name.size() > longest_path) {
            out_.complete = out_.repositories_complete = false;
            return;
        }
        const auto type = type_of(directory, entry, at);
        if (type == S_IFIFO || type == S_IFSOCK)
            out_.found.push_back({full(at) + "/" + std::string{name}, type == S_IFSOCK});
        seen.head |= name == "HEAD";
        seen.objects |= name == "objects" && type != S_IFREG;
        seen.refs |= name == "refs" && type != S_IFREG;
        const bool git = may_mean_git(name);
        seen.git |= git;
        if (type != S_IFDIR) return;
        waiting inner{at.root,
                      at.path.empty() ? std::string{name} : at.path + "/" + std::string{name}};
        if (git) later_.push_back(std::move(inner));
        else below_.push_back(std::move(inner));
    }

    // Only now is it known whether the directory is a repository, the insides of which can wait.
    void settle(int directory, const waiting& at, signs seen, bool inside_git) {
        const bool bare = seen.head && seen.objects && seen.refs;
        if (!inside_git && seen.git) {
            if (::faccessat(directory, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                out_.with_git.push_back(full(at));
            else if (errno == EACCES) note_closed(at, inside_git);
        }
        if (!inside_git && bare) out_.bare.push_back(full(at));
        auto& into = inside_git || bare ? later_ : queue_;
        into.insert(into.end(), std::make_move_iterator(below_.begin()),
                    std::make_move_iterator(below_.end()));
        below_.clear();
    }

    // False when the budget ran out in this directory.
    [[nodiscard]] auto scan(const waiting& at, bool inside_git) -> bool {
        auto opened = sys::open_beneath(pins_[at.root], at.path,
                                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK,
                                        sys::mounts::crossed);
        if (!opened) {
            // One that cannot be listed may still be passed through.
            if (opened.error().os == EACCES) note_closed(at, inside_git);
            if (opened.error().os == ENAMETOOLONG)
                out_.complete = out_.repositories_complete = false;
            note_failure(opened.error().os, full(at));
            return true;
        }
        signs seen;
        for (;;) {
            const auto got = ::getdents64(opened->get(), bytes_.data(), bytes_.size());
            if (got < 0) note_failure(errno, full(at));
            if (got <= 0) break;
            for (std::size_t next = 0; next < static_cast<std::size_t>(got);) {
                const auto& entry = *reinterpret_cast<const ::dirent64*>(bytes_.data() + next);
                next += entry.d_reclen;
                const std::string_view name{entry.d_name};
                if (name == "." || name == "..") continue;
                if (budget_ == 0) {
                    settle(opened->get(), at, seen, inside_git);
                    return false;
                }
                --budget_;
                take(opened->get(), entry, at, seen);
            }
        }
        settle(opened->get(), at, seen, inside_git);
        return true;
    }

    const std::vector<std::string>& roots_;
    std::size_t budget_;
    std::vector<sys::unique_fd> pins_;
    std::vector<waiting> queue_, later_, below_;
    alignas(::dirent64) std::array<char, 32UL * 1024> bytes_{};
    tree_walk out_;
};

} // namespace

auto may_mean_git(std::string_view name) noexcept -> bool {
    constexpr std::string_view wanted = ".git";
    if (name == "git~1") return true; // the short name of FAT and NTFS
    std::size_t at = 0;
    for (const char c : name) {
        if ((static_cast<unsigned char>(c) & 0x80U) != 0) continue;
        if (at == wanted.size() || to_lower(c) != wanted[at]) return false;
        ++at;
    }
    return at == wanted.size();
}

auto walk_trees(const std::vector<std::string>& roots, std::size_t entry_limit) -> tree_walk {
    return walker{roots, entry_limit}.run();
}

} // namespace glove::container
