// Depth first, one descriptor for each level, never by a path of more than one component.
#include "container/session_walk.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/sys/trees.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/utf8.hpp>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::size_t piece = 256UL << 10U; // bytes between two looks at the clock
constexpr ::mode_t seen_bits = 0777;

[[nodiscard]] auto shown(const std::string& path) -> std::string {
    return path.empty() ? std::string{"the top"} : in_quotes(path);
}

[[nodiscard]] auto refuse(errc code, step_name step, const std::string& path, std::string_view what,
                          std::string remedy = {}) {
    return fail(code, step, shown(path).append(" ").append(what), std::move(remedy));
}

[[nodiscard]] auto changed(const std::string& path) {
    return refuse(errc::conflict, "tree.changed", path, "changed while it was read",
                  "stop what writes to it, and try again");
}

[[nodiscard]] auto not_opened(const std::string& path, const error& why) -> std::unexpected<error> {
    if (why.os == EXDEV) return refuse(errc::not_permitted, "tree.mount", path, "is another mount");
    if (why.os == ENOENT || why.os == ENOTDIR || why.os == ELOOP) return changed(path);
    return fail_os("tree.read", why.os, shown(path));
}

[[nodiscard]] auto word_for(::mode_t type) -> std::string_view {
    switch (type) {
    case S_IFLNK: return "is a symbolic link";
    case S_IFSOCK: return "is a socket";
    case S_IFIFO: return "is a FIFO";
    case S_IFCHR:
    case S_IFBLK: return "is a device";
    default: return "is neither a file nor a directory";
    }
}

[[nodiscard]] auto wrong_kind(const std::string& path, ::mode_t type) {
    return refuse(errc::not_permitted, "tree.kind", path, word_for(type),
                  "only files and directories can be handed over; remove it");
}

// Changes the mode of what is open, and tells what failed by its place in the tree.
[[nodiscard]] auto give_mode(sys::fd_ref made, ::mode_t mode, const std::string& path) -> result<> {
    if (::fchmod(made.get(), mode & seen_bits) != 0)
        return fail_os("copy.mode", errno, shown(path));
    return {};
}

} // namespace

session_walk::session_walk(const tree_limits& limits, const tree_patience& patience,
                           hard_links links)
    : limits_{.bytes = limits.bytes,
              .entries = std::min(limits.entries, most_tree_entries),
              .depth = std::min(limits.depth, most_tree_depth)},
      patience_{patience}, links_{links} {
    buffer_.resize(piece);
}

auto session_walk::go_on() const -> result<> {
    if (patience_.stop.stop_requested())
        return fail(errc::wrong_state, "tree.stopped", "it was told to stop");
    if (patience_.time.monotonic() >= patience_.deadline)
        return fail(errc::timed_out, "tree.deadline", "it was not done by its deadline");
    return {};
}

auto session_walk::add(tree_row row) -> result<> {
    path_bytes_ += row.path.size();
    if (path_bytes_ > most_tree_path_bytes)
        return refuse(errc::limit_exceeded, "tree.path", row.path,
                      "makes the paths longer than 33554432 bytes together");
    out_.rows.push_back(std::move(row));
    return {};
}

// All names at once, so that the order does not depend on the file system.
auto session_walk::list(const here& at) -> result<std::vector<std::string>> {
    std::vector<std::string> names;
    bool too_many = false;
    auto listed = sys::each_name(at.from, [&](const std::string& name) {
        too_many = listed_ == limits_.entries;
        if (too_many) return false;
        ++listed_;
        names.push_back(name);
        return true;
    });
    if (!listed) return fail_os("tree.list", listed.error().os, shown(at.path));
    if (too_many)
        return refuse(errc::limit_exceeded, "tree.entries", at.path,
                      "has the entry after the last allowed one, of " +
                          std::to_string(limits_.entries));
    std::ranges::sort(names);
    return names;
}

auto session_walk::all_in(const here& at, const sys::file_facts& before) -> result<> {
    GLOVE_TRY(const auto names, list(at));
    if (!names.empty() && at.depth == limits_.depth)
        return refuse(errc::limit_exceeded, "tree.depth", at.path,
                      "is a directory at depth " + std::to_string(at.depth) + " and not empty");
    for (const auto& name : names) GLOVE_CHECK(entry(at, name));
    GLOVE_TRY(const auto after, sys::inspect(at.from));
    if (!(after == before)) return changed(at.path);
    return {};
}

auto session_walk::entry(const here& at, const std::string& name) -> result<> {
    auto path = at.path.empty() ? name : at.path + "/" + name;
    if (!wire::is_utf8(name))
        return refuse(errc::invalid_input, "tree.name", path, "has a name that is no UTF-8",
                      "rename it");
    if (path.size() > most_tree_path)
        return refuse(errc::limit_exceeded, "tree.path", path, "is a path of more than 4096 bytes");
    const auto pin = sys::open_beneath(at.from, name, O_PATH | O_NOFOLLOW);
    if (!pin) return not_opened(path, pin.error());
    GLOVE_TRY(const auto facts, sys::inspect(*pin));
    GLOVE_CHECK(go_on());
    if (facts.identity.type == S_IFDIR) return inner(at, name, std::move(path), *pin, facts);
    if (facts.identity.type != S_IFREG) return wrong_kind(path, facts.identity.type);
    const auto opened = sys::open_beneath(at.from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!opened) return not_opened(path, opened.error());
    return file(*opened, facts, std::move(path), at.to, name);
}

auto session_walk::inner(const here& at, const std::string& name, std::string path, sys::fd_ref pin,
                         const sys::file_facts& facts) -> result<> {
    const auto opened = sys::open_beneath(pin, "", O_RDONLY | O_DIRECTORY);
    if (!opened) return not_opened(path, opened.error());
    GLOVE_CHECK(add({.path = path,
                     .content_digest = {},
                     .bytes = 0,
                     .mode = facts.permissions & seen_bits,
                     .directory = true}));
    if (at.to == nullptr) return all_in({*opened, nullptr, std::move(path), at.depth + 1}, facts);
    if (::mkdirat(at.to->get(), name.c_str(), 0700) != 0)
        return fail_os("copy.make", errno, shown(path));
    // Whatever the umask took away.
    const auto made = sys::open_with_own_rights(*at.to, name);
    if (!made) return fail_os("copy.make", made.error().os, shown(path));
    GLOVE_CHECK(all_in({*opened, &*made, path, at.depth + 1}, facts));
    // Last, because nothing can be put into a directory that is closed to its owner.
    return give_mode(*made, facts.permissions, path);
}

auto session_walk::count_link(const sys::file_facts& facts, const std::string& path) -> result<> {
    if (links_ == hard_links::any || facts.links == 1) return {};
    auto& known = linked_[{facts.identity.device, facts.identity.inode}];
    if (known.seen++ == 0) known.path = path;
    known.links = facts.links;
    return {};
}

auto session_walk::content(sys::fd_ref from, std::uint64_t size, const std::string& path,
                           const sys::unique_fd* to) -> result<std::string> {
    GLOVE_TRY(auto digest, wire::sha256_stream::start());
    for (std::uint64_t done = 0;;) {
        GLOVE_CHECK(go_on());
        const auto got = ::read(from.get(), buffer_.data(), buffer_.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_os("tree.read", errno, shown(path));
        if (got == 0 && done == size) break;
        const auto count = static_cast<std::uint64_t>(got);
        if (got == 0 || count > size - done) return changed(path);
        const std::string_view part{buffer_.data(), static_cast<std::size_t>(got)};
        GLOVE_CHECK(digest.update(part));
        if (to != nullptr)
            if (const auto put = sys::write_all(*to, part); !put)
                return fail_os("copy.write", put.error().os, shown(path));
        done += count;
    }
    GLOVE_TRY(const auto whole, std::move(digest).finish());
    return wire::to_hex(whole);
}

auto session_walk::file(const sys::unique_fd& from, const sys::file_facts& pinned, std::string path,
                        const sys::unique_fd* to, const std::string& name) -> result<> {
    GLOVE_TRY(const auto before, sys::inspect(from));
    if (!(before == pinned)) return changed(path);
    GLOVE_CHECK(count_link(before, path));
    if (before.size > limits_.bytes - out_.bytes)
        return refuse(errc::limit_exceeded, "tree.bytes", path,
                      "makes more than the " + std::to_string(limits_.bytes) +
                          " bytes that are allowed");
    sys::unique_fd made;
    if (to != nullptr) {
        made = sys::unique_fd{::openat(to->get(), name.c_str(),
                                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
        if (!made) return fail_os("copy.make", errno, shown(path));
    }
    GLOVE_TRY(auto digest, content(from, before.size, path, made ? &made : nullptr));
    GLOVE_TRY(const auto after, sys::inspect(from));
    if (!(after == before)) return changed(path);
    if (made) GLOVE_CHECK(give_mode(made, before.permissions, path));
    out_.bytes += before.size;
    return add({.path = std::move(path),
                .content_digest = std::move(digest),
                .bytes = before.size,
                .mode = before.permissions & seen_bits,
                .directory = false});
}

auto session_walk::directory(sys::fd_ref from, const sys::unique_fd* to) -> result<> {
    GLOVE_CHECK(go_on());
    GLOVE_TRY(const auto facts, sys::inspect(from));
    if (facts.identity.type != S_IFDIR) return wrong_kind("", facts.identity.type);
    GLOVE_CHECK(all_in({from, to, "", 0}, facts));
    return to == nullptr ? result<>{} : give_mode(*to, facts.permissions, "");
}

auto session_walk::single(sys::fd_ref pin, const sys::unique_fd* to) -> result<> {
    GLOVE_CHECK(go_on());
    const std::string path{"."};
    GLOVE_TRY(const auto facts, sys::inspect(pin));
    if (facts.identity.type != S_IFREG) return wrong_kind(path, facts.identity.type);
    const auto opened = sys::reopen(pin, O_RDONLY | O_NONBLOCK);
    if (!opened) return not_opened(path, opened.error());
    return file(*opened, facts, path, to, std::string{single_file_name});
}

auto session_walk::finish(bool directory) && -> result<session_tree> {
    for (const auto& [identity, known] : linked_)
        if (known.seen != known.links)
            return refuse(errc::not_permitted, "tree.link", known.path,
                          "has a further name outside of what is handed over",
                          "replace it by a copy of itself");
    // Parents come before what they hold, but "a.b" before "a/b".
    std::ranges::sort(out_.rows, {}, &tree_row::path);
    out_.directory = directory;
    GLOVE_TRY(out_.digest, tree_digest(out_.rows));
    return std::move(out_);
}

} // namespace glove::container
