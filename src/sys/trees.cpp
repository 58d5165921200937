// Deleting goes breadth first with two directories open: what lies in a directory of the top is
// moved up to the top, so that the depth of the tree never shows. Every directory is moved once at
// most.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <glove/sys/trees.hpp>
#include <memory>
#include <sys/stat.h>

namespace glove::sys {

namespace {

struct directory_closer {
    void operator()(::DIR* directory) const noexcept { (void)::closedir(directory); }
};

class remover {
public:
    remover(fd_ref top, const std::string& path, const go_on& ask)
        : top_{top}, path_{path}, ask_{ask} {}

    [[nodiscard]] auto empty() -> result<> {
        for (;;) {
            GLOVE_TRY(const auto names, names_in(top_));
            if (names.empty()) return {};
            for (const auto& name : names) {
                if (ask_) GLOVE_CHECK(ask_());
                GLOVE_CHECK(remove_entry(name));
            }
        }
    }

private:
    [[nodiscard]] auto problem(const std::string& name, const error& from) const
        -> std::unexpected<error> {
        const bool held = from.os == EPERM;
        const bool mounted = from.os == EBUSY || from.os == EXDEV;
        const auto where = path_ + "/" + name;
        return std::unexpected(error{.code = from.code,
                                     .step = "tree.remove",
                                     .os = from.os,
                                     .detail = where,
                                     .remedy = held ? "if it is immutable: chattr -R -i -a " + path_
                                               : mounted ? "unmount what is mounted there"
                                                         : std::string{}});
    }
    [[nodiscard]] auto problem(const std::string& name, int os) const -> std::unexpected<error> {
        return problem(name,
                       error{.code = classify(os), .step = "tree.remove", .os = os, .detail = {}});
    }

    // Something that is no directory, or an empty one.
    [[nodiscard]] static auto unlink_one(fd_ref directory, const std::string& name) -> int {
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

    [[nodiscard]] auto move_up(fd_ref from, const std::string& above, const std::string& name)
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

    fd_ref top_;
    const std::string& path_;
    const go_on& ask_;
    std::uint64_t moved_ = 0;
};

} // namespace

auto each_name(fd_ref directory, const std::function<bool(const std::string&)>& take) -> result<> {
    unique_fd again{::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!again) return fail_os("tree.list");
    const std::unique_ptr<::DIR, directory_closer> opened{::fdopendir(again.get())};
    if (!opened) return fail_os("tree.list");
    (void)again.release(); // the stream closes it
    for (;;) {
        errno = 0;
        const auto* const entry = ::readdir(opened.get());
        if (entry == nullptr && errno != 0) return fail_os("tree.list");
        if (entry == nullptr) return {};
        const std::string name{entry->d_name};
        if (name != "." && name != ".." && !take(name)) return {};
    }
}

auto names_in(fd_ref directory, std::size_t most) -> result<std::vector<std::string>> {
    std::vector<std::string> out;
    GLOVE_CHECK(each_name(directory, [&](const std::string& name) {
        out.push_back(name);
        return out.size() < most;
    }));
    std::ranges::sort(out);
    return out;
}

auto open_with_own_rights(fd_ref directory, const std::string& name) -> result<unique_fd> {
    constexpr ::mode_t own = 0700;
    GLOVE_TRY(const auto pin, open_beneath(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    GLOVE_TRY(const auto facts, inspect(pin));
    const auto by_descriptor = "/proc/self/fd/" + std::to_string(pin.get());
    if ((facts.permissions & own) != own && ::chmod(by_descriptor.c_str(), own) != 0)
        return fail_os("tree.rights", errno, name);
    return open_beneath(pin, ".", O_RDONLY | O_DIRECTORY);
}

auto empty_directory(fd_ref top, const std::string& path, const go_on& ask) -> result<> {
    return remover{top, path, ask}.empty();
}

} // namespace glove::sys
