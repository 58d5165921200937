// The lock is a file of its own, because the lease is replaced as a whole; whoever has it may touch
// everything that bears the lease's name.
#include <algorithm>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/supervisor/secret_leases.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/trees.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/grammar.hpp>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>

namespace glove::supervisor {

namespace {

constexpr std::string_view lease_prefix = "lease-";
constexpr std::string_view lock_prefix = "lock-";

[[nodiscard]] auto relabelled(error why, step_name step, std::string detail) {
    why.step = step.text;
    why.detail = std::move(detail);
    return std::unexpected(std::move(why));
}

[[nodiscard]] auto asked(const lease_step& before, std::string_view name) -> result<> {
    return before ? before(name) : result<>{};
}

// No component of the path may be a link.
[[nodiscard]] auto read_source(const secret_mount& what) -> result<std::string> {
    const auto told = "the source of " + what.handle + " for " + what.runtime_id;
    const auto above = sys::pin(sys::parent_of(what.source_path), sys::follow::never);
    if (!above)
        return relabelled(above.error(), "lease.source", told + ": its directory cannot be opened");
    auto found = sys::open_private_file(
        *above, what.source_path.substr(what.source_path.rfind('/') + 1), most_secret_bytes);
    if (found) return std::move(found->content);
    const auto detail = told + ": " + printable(found.error().detail);
    return relabelled(std::move(found).error(), "lease.source", detail);
}

struct named_source {
    std::string id;
    std::string content;
};
[[nodiscard]] auto name_source(const secret_mount& what) -> result<named_source> {
    GLOVE_TRY(auto content, read_source(what));
    GLOVE_TRY(const auto digest, wire::sha256_hex(content));
    GLOVE_TRY(auto id, wire::sha256_hex(what.runtime_id + ":" + what.handle + ":" + digest));
    return named_source{std::move(id), std::move(content)};
}

// None when somebody else has it. The file may be removed between its opening and the lock, and
// then the lock is of nothing.
[[nodiscard]] auto try_lock(sys::fd_ref directory, const std::string& id)
    -> result<sys::unique_fd> {
    const auto name = std::string{lock_prefix} + id;
    constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    for (int tries = 0; tries < 16; ++tries) {
        sys::unique_fd lock{::openat(directory.get(), name.c_str(), flags, 0600)};
        if (!lock) return fail_os("lease.lock", errno, name);
        while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK) return sys::unique_fd{};
            if (errno != EINTR) return fail_os("lease.lock", errno, name);
        }
        GLOVE_TRY(const auto mine, sys::inspect(lock));
        const auto now = sys::open_beneath(directory, name, O_PATH | O_NOFOLLOW);
        if (!now && now.error().os != ENOENT) return fail_os("lease.lock", now.error().os, name);
        if (!now) continue;
        GLOVE_TRY(const auto named, sys::inspect(*now));
        if (named.identity == mine.identity) return lock;
    }
    return fail(errc::conflict, "lease.lock", name + " is removed as often as it is made");
}

// Zeros over what the file holds, through to the disk. What somebody gave a second name is left
// alone: it would be overwritten there as well.
[[nodiscard]] auto overwrite(sys::fd_ref file) -> result<> {
    GLOVE_TRY(const auto facts, sys::inspect(file));
    if (facts.identity.type != S_IFREG || facts.links != 1) return {};
    constexpr std::size_t most_overwritten = 2 * most_secret_bytes;
    const std::string zeros(
        static_cast<std::size_t>(std::min<std::uint64_t>(facts.size, most_overwritten)), '\0');
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return fail_os("lease.wipe");
    for (const auto& done : {sys::write_all(file, zeros), sys::sync(file)})
        if (!done) return fail_os("lease.wipe", done.error().os);
    return {};
}

// A name that is no regular file is removed as it is.
[[nodiscard]] auto remove(sys::fd_ref directory, const std::string& name, const lease_step& before)
    -> result<> {
    GLOVE_CHECK(asked(before, "wipe"));
    constexpr int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK;
    if (const auto file = sys::open_beneath(directory, name, flags)) {
        if (auto wiped = overwrite(*file); !wiped)
            return relabelled(std::move(wiped).error(), "lease.wipe", name);
    }
    GLOVE_CHECK(asked(before, "remove"));
    if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT)
        return fail_os("lease.remove", errno, name);
    return {};
}

[[nodiscard]] auto names_of(sys::fd_ref directory) -> result<std::vector<std::string>> {
    auto names = sys::names_in(directory);
    if (!names) return relabelled(std::move(names).error(), "lease.list", leases_directory);
    return names;
}

// The ID of a lease, of its lock, or of a copy that has not got its name; empty of anything else.
[[nodiscard]] auto id_in(std::string_view name) -> std::string_view {
    constexpr std::size_t digits = 64;
    const bool hidden = name.starts_with('.');
    if (hidden) name.remove_prefix(1);
    if (name.starts_with(lease_prefix)) name.remove_prefix(lease_prefix.size());
    else if (name.starts_with(lock_prefix) && !hidden) name.remove_prefix(lock_prefix.size());
    else return {};
    const auto id = name.substr(0, digits);
    const auto rest = name.substr(id.size());
    if (!wire::conforms(wire::grammar::hex64, id)) return {};
    return (hidden ? rest.starts_with('.') : rest.empty()) ? id : std::string_view{};
}

[[nodiscard]] auto name_of_removed(const std::string& lease) -> std::string {
    return "." + lease + ".removed";
}

// Without its name first: what is half overwritten must never be lent.
[[nodiscard]] auto retire(sys::fd_ref directory, const std::string& lease, const lease_step& before)
    -> result<> {
    const auto nameless = name_of_removed(lease);
    GLOVE_CHECK(asked(before, "retire"));
    if (::renameat(directory.get(), lease.c_str(), directory.get(), nameless.c_str()) != 0)
        return fail_os("lease.remove", errno, lease);
    if (auto synced = sys::sync(directory); !synced)
        return relabelled(std::move(synced).error(), "lease.remove", lease);
    return remove(directory, nameless, before);
}

// A second name for what is to be replaced, so that it is found and overwritten whatever happens
// from here on. What an attempt that failed has left goes first.
[[nodiscard]] auto name_former(sys::fd_ref directory, const std::string& lease,
                               const lease_step& before) -> result<> {
    const auto former = name_of_removed(lease);
    GLOVE_CHECK(remove(directory, former, before));
    if (::linkat(directory.get(), lease.c_str(), directory.get(), former.c_str(), 0) != 0)
        return fail_os("lease.take", errno, lease);
    return {};
}

// What was cut short before it got its name, or after it lost it.
[[nodiscard]] auto remove_halves(sys::fd_ref directory, const std::string& id,
                                 const lease_step& before) -> result<> {
    GLOVE_TRY(const auto names, names_of(directory));
    for (const auto& name : names)
        if (name.starts_with('.') && id_in(name) == id)
            GLOVE_CHECK(remove(directory, name, before));
    return {};
}

[[nodiscard]] auto not_busy(const std::string& handle) {
    return fail(errc::conflict, "lease.busy", "another session has the lease of " + handle,
                "wait until that session is over");
}

// By descriptor, whatever the session made of the name.
[[nodiscard]] auto read_returned(sys::fd_ref directory, const std::string& name)
    -> result<std::string> {
    const auto refused = [&](errc code, std::string_view why) {
        return fail(code, "lease.returned", printable(name).append(" ").append(why));
    };
    const auto pin = sys::open_beneath(directory, name, O_PATH | O_NOFOLLOW);
    if (!pin) return relabelled(pin.error(), "lease.returned", printable(name));
    GLOVE_TRY(const auto before, sys::inspect(*pin));
    if (before.identity.type != S_IFREG)
        return refused(errc::not_permitted, "is not a regular file");
    if (before.owner != ::geteuid()) return refused(errc::not_permitted, "belongs to another user");
    if (before.links != 1) return refused(errc::not_permitted, "has more than one name");
    if (before.size == 0) return refused(errc::invalid_input, "is empty");
    if (before.size > most_secret_bytes)
        return refused(errc::limit_exceeded, "has more than 1048576 bytes");
    const auto file = sys::reopen(*pin, O_RDONLY);
    if (!file) return relabelled(file.error(), "lease.returned", printable(name));
    auto content = sys::read_all(*file, most_secret_bytes);
    if (!content) return relabelled(std::move(content).error(), "lease.returned", printable(name));
    GLOVE_TRY(const auto after, sys::inspect(*pin));
    if (!(after == before)) return refused(errc::conflict, "changed while it was read");
    return content;
}

} // namespace

auto secret_lease::give(sys::fd_ref directory, const std::string& name) const -> result<> {
    auto put = sys::create_private_file(directory, name, content_);
    if (!put) return relabelled(std::move(put).error(), "lease.give", printable(name));
    return {};
}

auto secret_lease::take_back(sys::fd_ref directory, const std::string& name) -> result<bool> {
    GLOVE_TRY(auto content, read_returned(directory, name));
    const wiped_at_end forgotten{content};
    if (content == content_) return false;
    GLOVE_CHECK(asked(before_, "take"));
    GLOVE_CHECK(name_former(directory_, name_, before_));
    auto put = sys::replace_durably(directory_, name_, content, time_.wall().count());
    if (!put) return relabelled(std::move(put).error(), "lease.take", name_);
    wipe(content_);
    content_ = content;
    GLOVE_CHECK(remove(directory_, name_of_removed(name_), before_));
    return true;
}

auto lease_store::open(sys::fd_ref root, const sys::clock& time, lease_step before)
    -> result<lease_store> {
    const std::string name{leases_directory};
    auto directory = sys::make_directory_in(root, name);
    if (!directory) return relabelled(std::move(directory).error(), "lease.directory", name);
    GLOVE_TRY(const auto facts, sys::inspect(*directory));
    if (facts.owner != ::geteuid() || (facts.permissions & 077U) != 0)
        return fail(errc::not_permitted, "lease.directory", name + " is not the service's alone",
                    "chmod 700 " + name);
    return lease_store{*std::move(directory), time, std::move(before)};
}

auto lease_store::lend(const secret_mount& what) const -> result<secret_lease> {
    GLOVE_TRY(auto source, name_source(what));
    const wiped_at_end forgotten{source.content};
    GLOVE_TRY(auto lock, try_lock(directory_, source.id));
    if (!lock) return not_busy(what.handle);
    GLOVE_CHECK(remove_halves(directory_, source.id, before_));
    auto name = std::string{lease_prefix} + source.id;
    auto known = sys::open_private_file(directory_, name, most_secret_bytes);
    if (!known && known.error().os != ENOENT) {
        const auto detail = known.error().detail;
        auto why = relabelled(std::move(known).error(), "lease.damaged", detail);
        why.error().remedy = "remove it, and log in again";
        return why;
    }
    std::string content = known ? std::move(known->content) : source.content;
    const wiped_at_end also{content};
    if (!known) {
        GLOVE_CHECK(asked(before_, "copy"));
        auto put = sys::replace_durably(directory_, name, content, time_.wall().count());
        if (!put) return relabelled(std::move(put).error(), "lease.copy", name);
    }
    GLOVE_TRY(auto mine, sys::open_beneath(directory_, "", O_RDONLY | O_DIRECTORY));
    return secret_lease{std::move(mine), std::move(lock), std::move(name), content, time_, before_};
}

auto lease_store::sweep(std::span<const secret_mount> policy) const -> result<lease_sweep> {
    std::set<std::string, std::less<>> wanted;
    for (const auto& each : policy) {
        GLOVE_TRY(auto source, name_source(each));
        wipe(source.content);
        wanted.insert(std::move(source.id));
    }
    GLOVE_TRY(const auto names, names_of(directory_));
    std::set<std::string, std::less<>> unclean; // of no policy, or with halves
    for (const auto& name : names)
        if (const auto id = id_in(name);
            !id.empty() && (name.starts_with('.') || !wanted.contains(id)))
            unclean.emplace(id);
    lease_sweep out;
    for (const auto& id : unclean) {
        const auto lease = std::string{lease_prefix} + id;
        const bool stays = wanted.contains(id);
        GLOVE_TRY(const auto lock, try_lock(directory_, id));
        if (!lock) {
            if (!stays) out.in_use.push_back(lease);
            continue;
        }
        GLOVE_CHECK(remove_halves(directory_, id, before_));
        if (stays) continue;
        const bool there = std::ranges::binary_search(names, lease);
        if (there) GLOVE_CHECK(retire(directory_, lease, before_));
        // Last, and while it is held: who waits for it sees that it is none any more.
        GLOVE_CHECK(remove(directory_, std::string{lock_prefix} + id, before_));
        if (there) out.removed.push_back(lease);
    }
    if (auto synced = sys::sync(directory_); !synced)
        return relabelled(std::move(synced).error(), "lease.remove", leases_directory);
    return out;
}

} // namespace glove::supervisor
