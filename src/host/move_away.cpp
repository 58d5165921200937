// A rename keeps everything as it is; a copy goes by descriptors and follows no link.
#include "host/move_away.hpp"
#include <cstdio>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <sys/stat.h>
#include <vector>

namespace glove::host {

namespace {

constexpr int most_depth = 64;

[[nodiscard]] auto too_large(const std::string& name) {
    return fail(errc::limit_exceeded, "quarantine.copy",
                name + ": too much to be copied to another file system",
                "move or remove it yourself");
}

[[nodiscard]] auto open_directory(sys::fd_ref in, const std::string& name)
    -> result<sys::unique_fd> {
    return sys::open_within(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

class copier {
public:
    explicit copier(copy_budget budget) : budget_{budget} {}

    [[nodiscard]] auto copy(sys::fd_ref from, const std::string& name, sys::fd_ref to, int depth)
        -> result<> {
        if (depth == 0 || budget_.entries == 0) return too_large(name);
        --budget_.entries;
        GLOVE_TRY(const auto pin, sys::open_within(from, name, O_PATH | O_NOFOLLOW));
        GLOVE_TRY(const auto facts, sys::inspect(pin));
        switch (facts.identity.type) {
        case S_IFLNK: {
            GLOVE_TRY(const auto target, sys::read_link_of(pin));
            if (::symlinkat(target.c_str(), to.get(), name.c_str()) != 0)
                return fail_os("quarantine.copy", errno, name);
            return {};
        }
        case S_IFREG: return copy_file(from, name, to, facts);
        case S_IFDIR: return copy_directory(from, name, to, depth);
        default: return {}; // holds nothing
        }
    }

private:
    [[nodiscard]] auto copy_file(sys::fd_ref from, const std::string& name, sys::fd_ref to,
                                 const sys::file_facts& facts) -> result<> {
        GLOVE_TRY(const auto in,
                  sys::open_within(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
        GLOVE_TRY(const auto now, sys::inspect(in));
        if (now.identity != facts.identity)
            return fail(errc::conflict, "quarantine.copy", name + " was replaced meanwhile");
        const sys::unique_fd out{::openat(
            to.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
        if (!out) return fail_os("quarantine.copy", errno, name);
        std::vector<char> bytes(256UL * 1024);
        for (;;) {
            const auto got = ::read(in.get(), bytes.data(), bytes.size());
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return fail_os("quarantine.copy", errno, name);
            if (got == 0) break;
            const auto size = static_cast<std::size_t>(got);
            if (size > budget_.bytes) return too_large(name);
            budget_.bytes -= size;
            GLOVE_CHECK(sys::write_all(out, {bytes.data(), size}));
        }
        if (::fchmod(out.get(), facts.permissions & 0777U) != 0)
            return fail_os("quarantine.copy", errno, name);
        return {};
    }
    [[nodiscard]] auto copy_directory(sys::fd_ref from, const std::string& name, sys::fd_ref to,
                                      int depth) -> result<> {
        if (::mkdirat(to.get(), name.c_str(), 0700) != 0)
            return fail_os("quarantine.copy", errno, name);
        GLOVE_TRY(const auto in, open_directory(from, name));
        GLOVE_TRY(const auto out, open_directory(to, name));
        GLOVE_TRY(const auto names, sys::list_names(in, ""));
        for (const auto& [inner, type] : names) GLOVE_CHECK(copy(in, inner, out, depth - 1));
        return {};
    }

    copy_budget budget_;
};

[[nodiscard]] auto remove_all(sys::fd_ref in, const std::string& name, int depth) -> result<> {
    if (::unlinkat(in.get(), name.c_str(), 0) == 0) return {};
    if (errno != EISDIR && errno != EPERM) return fail_os("quarantine.remove", errno, name);
    if (depth == 0) return too_large(name);
    {
        GLOVE_TRY(const auto directory, open_directory(in, name));
        GLOVE_TRY(const auto names, sys::list_names(directory, ""));
        for (const auto& [inner, type] : names)
            GLOVE_CHECK(remove_all(directory, inner, depth - 1));
    }
    if (::unlinkat(in.get(), name.c_str(), AT_REMOVEDIR) != 0)
        return fail_os("quarantine.remove", errno, name);
    return {};
}

// Moving a directory changes what it holds as its parent, which takes the right to write to it.
[[nodiscard]] auto open_up(sys::fd_ref in, const std::string& name) -> bool {
    const auto pin = sys::open_within(in, name, O_PATH | O_NOFOLLOW | O_DIRECTORY);
    if (!pin) return false;
    const auto own = "/proc/self/fd/" + std::to_string(pin->get());
    return ::chmod(own.c_str(), 0700) == 0;
}

} // namespace

auto copy_and_remove(sys::fd_ref from, const std::string& name, sys::fd_ref to, copy_budget budget)
    -> result<> {
    // What a copy that fails leaves is removed again, so it must be all its own.
    if (sys::open_within(to, name, O_PATH | O_NOFOLLOW))
        return fail_os("quarantine.copy", EEXIST, name);
    if (auto copied = copier{budget}.copy(from, name, to, most_depth); !copied) {
        (void)remove_all(to, name, most_depth);
        return copied;
    }
    return remove_all(from, name, most_depth);
}

auto move_away(sys::fd_ref from, const std::string& name, sys::fd_ref to, copy_budget budget)
    -> result<> {
    const auto rename = [&] {
        return ::renameat2(from.get(), name.c_str(), to.get(), name.c_str(), RENAME_NOREPLACE) == 0;
    };
    if (rename()) return {};
    if (errno == EACCES && open_up(from, name) && rename()) return {};
    if (errno == EXDEV || errno == EINVAL) return copy_and_remove(from, name, to, budget);
    return fail_os("quarantine.move", errno, name);
}

} // namespace glove::host
