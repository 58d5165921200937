// Turns what was made ready for a session into its tree. Looks at the host for the system's own
// places only.
#include "container/plan_parts.hpp"
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/container/session_plan.hpp>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace glove::container {

namespace {

// Of which no part is anybody else's.
constexpr std::array<std::string_view, 4> closed_places{"/proc", "/dev", "/run", "/etc"};

// FIFOs below everything of the host's that the session sees, as directory entries looked at.
constexpr std::size_t guard_walk_limit = 4096;

[[nodiscard]] auto refuse_target(const std::string& target, std::string why,
                                 std::string remedy = {}) -> std::unexpected<error> {
    return fail(errc::invalid_input, "session.target", printable(target) + " " + std::move(why),
                std::move(remedy));
}

[[nodiscard]] auto check_target(const std::string& target) -> result<> {
    if (!sys::is_normal_absolute(target) || target == "/" || target.contains('\0'))
        return refuse_target(target, "is no absolute path in its shortest form");
    for (const auto place : closed_places)
        if (sys::holds(place, target) || sys::holds(target, place))
            return refuse_target(target, "overlaps " + std::string{place} +
                                             ", which Glove provides itself");
    for (const auto& place : scratch_places)
        if (sys::holds(target, place.path))
            return refuse_target(target, "is or holds " + std::string{place.path} +
                                             ", which Glove provides itself");
    const auto lent = "/" + std::string{lent_directory};
    if (sys::holds(lent, target)) return refuse_target(target, "is Glove's own");
    return {};
}

[[nodiscard]] auto lent_file(const session_wish& wish, const session_mount& one)
    -> result<sys::unique_fd> {
    if (one.mount || one.directory || one.lent.contains('/') || one.lent == "." || one.lent == "..")
        return fail(errc::invalid_input, "session.mount",
                    printable(one.target) + " is lent, and so a file by a plain name");
    auto found = sys::open_beneath(wish.scratch, std::string{lent_directory} + "/" + one.lent,
                                   O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (!found)
        return fail_os("session.mount", found.error().os,
                       printable(one.target) + ": what is lent is not there");
    return found;
}

[[nodiscard]] auto check_type(sys::fd_ref source, const session_mount& one) -> result<> {
    GLOVE_TRY(const auto facts, sys::inspect(source));
    const ::mode_t wanted = one.directory ? S_IFDIR : S_IFREG;
    if (facts.identity.type == wanted) return {};
    return fail(errc::invalid_input, "session.mount",
                printable(one.target) + (one.directory
                                             ? " is to be a directory, and its mount is none"
                                             : " is to be a regular file, and its mount is none"));
}

// Where a name of the system's view is a link, what it leads to is meant.
[[nodiscard]] auto settle_targets(session_wish& wish, const std::vector<tree_entry>& system)
    -> result<> {
    tree_builder links;
    for (const auto& entry : system)
        if (entry.kind == entry_kind::link) links.add({entry.path, entry_kind::link});
    for (auto& one : wish.mounts) {
        GLOVE_CHECK(check_target(one.target));
        GLOVE_TRY(one.target, behind_links(links, one.target));
        GLOVE_CHECK(check_target(one.target));
    }
    std::ranges::sort(wish.mounts, path_order{}, &session_mount::target);
    const auto twice = std::ranges::adjacent_find(wish.mounts, {}, &session_mount::target);
    if (twice != wish.mounts.end())
        return refuse_target(twice->target, "is the target of two mounts");
    return {};
}

// What stands on top of another mount needs a place there: none is made in what is not Glove's.
[[nodiscard]] auto check_place(const session_mount& outer, const session_mount& inner) -> result<> {
    if (!outer.directory)
        return refuse_target(inner.target, "lies inside of " + outer.target + ", which is a file");
    const auto place = sys::open_beneath(outer.mount, inner.target.substr(outer.target.size() + 1),
                                         O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (!place)
        return refuse_target(inner.target, "stands on nothing in what is mounted at " +
                                               outer.target + ": " +
                                               std::string{::strerrordesc_np(place.error().os)});
    GLOVE_TRY(const auto facts, sys::inspect(*place));
    if (facts.identity.type == (inner.directory ? S_IFDIR : S_IFREG)) return {};
    return refuse_target(
        inner.target, "stands on something of another type in what is mounted at " + outer.target);
}

// Sorted, so that the last one that holds it is the nearest.
[[nodiscard]] auto holder_of(const std::vector<session_mount>& mounts, std::size_t of)
    -> const session_mount* {
    for (auto at = of; at-- > 0;)
        if (sys::holds(mounts[at].target, mounts[of].target)) return &mounts[at];
    return nullptr;
}

[[nodiscard]] auto check_mounts(const session_wish& wish) -> result<> {
    for (std::size_t i = 0; i < wish.mounts.size(); ++i) {
        const auto& one = wish.mounts[i];
        if (one.lent.empty()) {
            if (!one.mount)
                return fail(errc::invalid_input, "session.mount",
                            printable(one.target) + " has no mount");
            GLOVE_CHECK(check_type(one.mount, one));
        } else {
            GLOVE_TRY(const auto file, lent_file(wish, one));
            GLOVE_CHECK(check_type(file, one));
        }
        if (const auto* const outer = holder_of(wish.mounts, i))
            GLOVE_CHECK(check_place(*outer, one));
    }
    return {};
}

[[nodiscard]] auto check_scratch(sys::fd_ref scratch) -> result<> {
    struct ::statfs found{};
    if (scratch.get() < 0)
        return fail(errc::invalid_input, "session.scratch", "there is no scratch file system");
    if (::fstatfs(scratch.get(), &found) != 0) return fail_os("session.scratch");
    if (found.f_type != TMPFS_MAGIC)
        return fail(errc::invalid_input, "session.scratch", "it is no tmpfs");
    GLOVE_TRY(const auto names, sys::list_names(scratch, ""));
    for (const auto& [name, type] : names)
        if (name != lent_directory || type != S_IFDIR)
            return fail(errc::invalid_input, "session.scratch",
                        printable(name) + " is in it, and it is to be empty");
    return {};
}

[[nodiscard]] auto check_command(const session_wish& wish) -> result<> {
    const auto refuse = [](std::string why) {
        return fail(errc::invalid_input, "session.command", std::move(why));
    };
    if (!sys::is_normal_absolute(wish.program) || wish.program.contains('\0'))
        return refuse(printable(wish.program) + ": the program is no absolute path");
    if (!sys::is_normal_absolute(wish.work_directory) || wish.work_directory.contains('\0'))
        return refuse(printable(wish.work_directory) +
                      ": the working directory is no absolute path");
    if (wish.arguments.empty() || wish.arguments.front().empty())
        return refuse("the program has no name as its first argument");
    for (const auto& argument : wish.arguments) {
        if (argument.contains('\0')) return refuse("an argument holds a zero byte");
        if (argument.size() >= longest_argument)
            return fail(errc::limit_exceeded, "session.command",
                        "an argument has more than " + std::to_string(longest_argument - 1) +
                            " bytes",
                        "put it into a file that is granted");
    }
    return {};
}

[[nodiscard]] auto guarded(std::string path) -> tree_entry {
    return {.path = std::move(path), .kind = entry_kind::mask, .origin = origin::guarded};
}

// As in a run: read-only does not stop connect(2), so sockets count wherever something of the host
// is seen, and FIFOs where its other programs may wait at one.
[[nodiscard]] auto add_guards(tree_builder& tree, const session_wish& wish,
                              const std::vector<tree_entry>& system) -> result<bool> {
    std::vector<std::string> granted, bound;
    for (const auto& one : wish.mounts)
        if (one.directory && !one.source.empty()) granted.push_back(one.source);
    for (const auto& entry : system)
        if (entry.kind == entry_kind::bind && entry.identity.type == S_IFDIR)
            bound.push_back(entry.path);
    const auto search = find_rendezvous(granted, guard_walk_limit, bound);
    if (search.failed_os != 0) return fail_os("source.guard", search.failed_os, search.failed_path);
    for (const auto& found : search.found) {
        for (const auto& one : wish.mounts)
            if (one.directory && !one.source.empty() && sys::holds(one.source, found.path))
                tree.add(guarded(one.target + found.path.substr(one.source.size())));
        for (const auto& place : bound)
            if (sys::holds(place, found.path)) tree.add(guarded(found.path));
    }
    return search.complete;
}

// Nothing is made in what is bound of the host, so something must be there to stand on.
[[nodiscard]] auto check_system_places(const session_wish& wish,
                                       const std::vector<tree_entry>& system) -> result<> {
    for (std::size_t i = 0; i < wish.mounts.size(); ++i) {
        const auto& one = wish.mounts[i];
        if (holder_of(wish.mounts, i) != nullptr) continue;
        for (const auto& place : system) {
            if (place.kind != entry_kind::bind || place.path == one.target ||
                !sys::holds(place.path, one.target))
                continue;
            struct ::stat there{};
            const bool same = ::lstat(one.target.c_str(), &there) == 0 &&
                              (there.st_mode & S_IFMT) == (one.directory ? S_IFDIR : S_IFREG);
            if (!same)
                return refuse_target(one.target,
                                     "lies in " + place.path +
                                         " of the system, where nothing of its type stands",
                                     "name a target outside of the system's places");
        }
    }
    return {};
}

// What is installed beside the system: a session is given what it needs of it by name, and other
// things may stand there instead.
[[nodiscard]] auto is_beside_the_system(const tree_entry& entry) -> bool {
    return sys::holds("/opt", entry.path) || sys::holds("/snap", entry.path);
}

[[nodiscard]] auto make_tree(session_wish& wish, const plan& of, bool& guarded_all)
    -> result<std::vector<tree_entry>> {
    GLOVE_TRY(const auto mounts, mount_table::read());
    GLOVE_TRY(auto system, discover_system(""));
    std::erase_if(system, is_beside_the_system);
    GLOVE_CHECK(settle_targets(wish, system));
    GLOVE_CHECK(check_mounts(wish));
    GLOVE_CHECK(check_system_places(wish, system));
    tree_builder tree;
    GLOVE_TRY(guarded_all, add_guards(tree, wish, system));
    GLOVE_CHECK(cover_kernel_mounts(tree, system, mounts));
    for (auto& one : wish.mounts)
        tree.add({.path = one.target,
                  .kind = entry_kind::mounted,
                  .origin = origin::asked,
                  .mode = one.mode,
                  .text = std::move(one.lent),
                  .identity = {.type = one.directory ? ::mode_t{S_IFDIR} : ::mode_t{S_IFREG}},
                  .pin = std::move(one.mount)});
    for (const auto& place : scratch_places)
        tree.add({.path = std::string{place.path},
                  .kind = entry_kind::scratch,
                  .mode = access::write,
                  .permissions = place.permissions});
    GLOVE_CHECK(add_own_places(tree, of));
    for (auto& entry : system) tree.add(std::move(entry));
    if (!tree.covered(of.work_directory)) tree.add({.path = of.work_directory});
    return std::move(tree).finish();
}

} // namespace

auto make_session_plan(session_wish wish) -> result<plan> {
    GLOVE_CHECK(check_command(wish));
    GLOVE_CHECK(check_scratch(wish.scratch));
    plan out;
    out.user = {.uid = session_user,
                .gid = session_user_group,
                .outside_uid = ::geteuid(),
                .outside_gid = ::getegid()};
    out.programs = {wish.program};
    out.work_directory = wish.work_directory;
    out.network = wish.bridge ? network_tier::egress : network_tier::sealed;
    GLOVE_TRY(out.environment, session_environment(wish.environment, wish.bridge.has_value()));
    out.bridge = std::move(wish.bridge);
    GLOVE_TRY(out.tree, make_tree(wish, out, out.guard_search_complete));
    out.argv = std::move(wish.arguments);
    out.scratch_mount = std::move(wish.scratch);
    return out;
}

} // namespace glove::container
