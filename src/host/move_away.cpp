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
    return sys::open_beneath(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, sys::mounts::crossed);
}

// Gives the owner, who may be this process only, the rights to what he closed himself.
void open_up(sys::fd_ref pin) {
    const auto facts = sys::inspect(pin);
    const ::mode_t wanted = facts && facts->identity.type == S_IFDIR ? 0700U : 0400U;
    if (!facts || facts->owner != ::geteuid() || (facts->permissions & wanted) == wanted) return;
    const auto own = "/proc/self/fd/" + std::to_string(pin.get());
    (void)::chmod(own.c_str(), facts->permissions | wanted);
}
// Of a directory, which no other name has.
void open_up_directory(sys::fd_ref in, const std::string& name) {
    const auto pin =
        sys::open_beneath(in, name, O_PATH | O_NOFOLLOW | O_DIRECTORY, sys::mounts::crossed);
    if (pin) open_up(*pin);
}

class copier {
public:
    explicit copier(copy_budget budget) : budget_{budget} {}

    [[nodiscard]] auto copy(sys::fd_ref from, const std::string& name, sys::fd_ref to, int depth)
        -> result<> {
        if (depth == 0 || budget_.entries == 0) return too_large(name);
        --budget_.entries;
        GLOVE_TRY(const auto pin,
                  sys::open_beneath(from, name, O_PATH | O_NOFOLLOW, sys::mounts::crossed));
        GLOVE_TRY(const auto facts, sys::inspect(pin));
        switch (facts.identity.type) {
        case S_IFLNK: {
            GLOVE_TRY(const auto target, sys::read_link_of(pin));
            if (::symlinkat(target.c_str(), to.get(), name.c_str()) != 0)
                return fail_os("quarantine.copy", errno, name);
            return {};
        }
        case S_IFREG: open_up(pin); return copy_file(from, name, to, facts);
        case S_IFDIR: open_up(pin); return copy_directory(from, name, to, depth);
        default: return {}; // holds nothing
        }
    }

private:
    [[nodiscard]] auto copy_file(sys::fd_ref from, const std::string& name, sys::fd_ref to,
                                 const sys::file_facts& facts) -> result<> {
        GLOVE_TRY(const auto in,
                  sys::open_beneath(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                                    sys::mounts::crossed));
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
    open_up_directory(in, name);
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

} // namespace

auto copy_and_remove(sys::fd_ref from, const std::string& name, sys::fd_ref to, copy_budget budget)
    -> result<> {
    // What a copy that fails leaves is removed again, so it must be all its own.
    if (sys::open_beneath(to, name, O_PATH | O_NOFOLLOW))
        return fail_os("quarantine.copy", EEXIST, name);
    open_up(from);
    if (auto copied = copier{budget}.copy(from, name, to, most_depth); !copied) {
        (void)remove_all(to, name, most_depth);
        return copied;
    }
    return remove_all(from, name, most_depth);
}

auto move_away(sys::fd_ref from, const std::string& name, sys::fd_ref to, copy_budget budget)
    -> result<> {
    const auto rename = [&] {
        const bool done =
            ::renameat2(from.get(), name.c_str(), to.get(), name.c_str(), RENAME_NOREPLACE) == 0;
        return done ? 0 : errno;
    };
    int os = rename();
    if (os == EACCES) { // a directory that moves is written to, as its parent changes
        open_up(from);
        open_up_directory(from, name);
        os = rename();
    }
    if (os == 0) return {};
    if (os == EXDEV || os == EINVAL) return copy_and_remove(from, name, to, budget);
    return fail_os("quarantine.move", os, name);
}

} // namespace glove::host
