// Turns a profile into a plan: the grants, what Glove provides itself, the system view, and masks
// over what must not be reached.
#include "container/grants.hpp"
#include "container/listeners.hpp"
#include "container/plan_parts.hpp"
#include "container/protect.hpp"
#include <algorithm>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

namespace glove::container {

namespace {

constexpr std::size_t guard_walk_limit = 1024; // directory entries, all read-only grants together

[[nodiscard]] auto holder_of(const std::vector<located_grant>& grants, std::string_view path)
    -> const located_grant* {
    const auto found = std::ranges::find_if(
        grants, [&](const auto& g) { return !g.is_shown && sys::holds(g.where.real, path); });
    return found == grants.end() ? nullptr : &*found;
}

[[nodiscard]] auto add_hidden(tree_builder& tree, const std::vector<located_grant>& grants,
                              const std::vector<std::string>& hidden, plan& out) -> result<> {
    for (const auto& given : hidden) {
        GLOVE_TRY(auto found, locate("--hide", given, access::read));
        const auto* const holder = holder_of(grants, found.where.real);
        if (holder == nullptr)
            return refuse(errc::invalid_input, "--hide", given, "is not inside a granted path",
                          "--hide takes a path inside of --workspace, --read or --write");
        if (holder->where.real == found.where.real)
            return refuse(errc::conflict, "--hide", given,
                          "hides the whole of " + std::string{holder->flag} + " " + holder->given);
        GLOVE_TRY(const auto facts, sys::inspect(found.pin));
        if (facts.identity.type != S_IFDIR && facts.links > 1)
            out.notes.push_back("--hide " + given + ": the file has " +
                                std::to_string(facts.links) +
                                " names, and only this one is hidden");
        // The very inode that was judged, not a second look at its name.
        tree.add({.path = std::move(found.where.real),
                  .kind = entry_kind::mask,
                  .origin = origin::hidden,
                  .identity = found.identity,
                  .pin = std::move(found.pin)});
    }
    return {};
}

// Read-only does not stop connect(2), so sockets count wherever something of the host is bound.
// FIFOs matter where the operator's other programs may wait at one: in the grants.
[[nodiscard]] auto add_guards(tree_builder& tree, const std::vector<located_grant>& grants,
                              const std::vector<tree_entry>& system, tree_walk& writable)
    -> result<bool> {
    std::vector<std::string> changing, reading, bound;
    for (const auto& g : grants)
        if (!g.is_shown && g.identity.type == S_IFDIR && !sys::holds("/sys", g.where.real))
            (g.for_program             ? bound
             : g.mode == access::write ? changing
                                       : reading)
                .push_back(g.where.real);
    for (const auto& entry : system)
        if (entry.kind == entry_kind::bind && entry.identity.type == S_IFDIR)
            bound.push_back(entry.path);
    bound.insert(bound.end(), changing.begin(), changing.end());
    auto search = find_rendezvous(reading, guard_walk_limit, bound);
    if (search.failed_os != 0) return fail_os("source.guard", search.failed_os, search.failed_path);
    writable = walk_trees(changing, writable_walk_limit);
    if (writable.failed_os != 0)
        return fail_os("source.guard", writable.failed_os, writable.failed_path);
    std::ranges::move(writable.found, std::back_inserter(search.found));
    for (auto& found : search.found) {
        auto entry = guard_over(std::move(found.path));
        if (!entry && entry.error().code == errc::not_found) continue; // vanished: needs no mask
        if (!entry) return std::unexpected(std::move(entry).error());
        tree.add(*std::move(entry));
    }
    return search.complete && writable.complete;
}

void add_grants(tree_builder& tree, std::vector<located_grant>& grants) {
    for (auto& g : grants)
        if (!g.is_shown)
            tree.add({.path = g.where.real,
                      .kind = entry_kind::bind,
                      .origin = g.for_program ? origin::program : origin::asked,
                      .mode = g.mode,
                      .text = g.where.real,
                      .identity = g.identity,
                      .pin = std::move(g.pin)});
    for (auto& g : grants)
        for (auto& [path, target] : g.where.links)
            // A link inside something mounted is there already.
            if (!tree.covered(path) && !(g.for_program && is_system_place(path)))
                tree.add({.path = path,
                          .kind = entry_kind::link,
                          .origin = g.for_program ? origin::program : origin::asked,
                          .text = target});
}

// In the place of the private home.
[[nodiscard]] auto kept_home_entry(const kept_home& home, std::string path) -> result<tree_entry> {
    tree_entry out{.path = std::move(path),
                   .kind = entry_kind::bind,
                   .mode = access::write,
                   .permissions = 0700,
                   .text = home.path,
                   .identity = home.identity};
    if (home.identity.type == 0) { // is yet to be made: this plan is for reading only
        out.identity.type = S_IFDIR;
        return out;
    }
    GLOVE_TRY(out.pin, sys::pin(home.path, sys::follow::never));
    GLOVE_TRY(const auto facts, sys::inspect(out.pin));
    if (facts.identity != home.identity) return fail_os("home.replaced", ESTALE, home.path);
    return out;
}

[[nodiscard]] auto add_scratch(tree_builder& tree, const std::optional<kept_home>& home)
    -> result<> {
    for (const auto& place : scratch_places) {
        GLOVE_TRY(auto path, behind_links(tree, std::string{place.path}));
        // `check_place` refused a grant of the place itself; this one holds it by another name.
        if (tree.covered(path))
            return fail(errc::not_permitted, "grant.check",
                        "a grant contains " + path + ", which Glove provides itself as " +
                            std::string{place.path},
                        "name the paths below it that the agent needs");
        if (home && place.path == home_directory) {
            // Its mount point would have to be made in a directory that stays.
            if (const auto* const inner = tree.first_below(path))
                return fail(errc::not_permitted, "grant.check",
                            inner->path + " lies inside of " + path +
                                ", which is the home that is kept",
                            "use --home none, or a project in another place");
            GLOVE_TRY(auto entry, kept_home_entry(*home, std::move(path)));
            tree.add(std::move(entry));
            continue;
        }
        tree.add({.path = std::move(path),
                  .kind = entry_kind::scratch,
                  .mode = access::write,
                  .permissions = place.permissions});
    }
    return {};
}

// A name with a slash is taken as it is; another is looked for along the agent's own PATH.
[[nodiscard]] auto candidates(const std::string& program, const std::vector<std::string>& first)
    -> std::vector<std::string> {
    if (program.find('/') != std::string::npos) return {program};
    std::vector<std::string> out;
    for (const auto& directory : first) out.push_back(directory + "/" + program);
    for (auto rest = search_path; !rest.empty();) {
        const auto directory = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(directory.size() + 1, rest.size()));
        out.push_back(std::string{directory} + "/" + program);
    }
    return out;
}

// The kernel rounds sizes of file systems up to its pages, which this is a multiple of.
constexpr std::uint64_t largest_page = 64UL * 1024;

[[nodiscard]] auto ram_bytes() -> std::uint64_t {
    struct ::sysinfo info{};
    return ::sysinfo(&info) == 0 ? std::uint64_t{info.totalram} * info.mem_unit : 0;
}

[[nodiscard]] auto check_least(std::string flag, std::optional<std::uint64_t> bytes) -> result<> {
    constexpr std::uint64_t least = 1UL << 20U;
    if (bytes.value_or(least) >= least) return {};
    return fail(errc::invalid_input, "plan.limits",
                flag + " " + std::to_string(*bytes) + ": no program starts with less than 1 MiB",
                "give a size such as 64M, or leave " + flag + " out");
}

// Only Glove's own file system has a size that Glove sets.
[[nodiscard]] auto check_disk(const std::vector<tree_entry>& tree) -> result<> {
    for (const auto& entry : tree)
        if (entry.kind == entry_kind::bind && entry.mode == access::write)
            return fail(errc::unsupported, "plan.disk",
                        "--disk: " + entry.path +
                            " may be changed, and its file system has no quota for this run",
                        "grant it with --read and let the command write to /tmp, or leave --disk "
                        "out");
    return {};
}

[[nodiscard]] auto make_tree(const profile& wish, plan& out) -> result<std::vector<tree_entry>> {
    GLOVE_TRY(const auto mounts, mount_table::read());
    GLOVE_TRY(auto grants, locate_grants(wish, mounts));
    GLOVE_TRY(auto system, discover_system(""));
    tree_builder tree;
    GLOVE_CHECK(add_hidden(tree, grants, wish.hidden, out));
    tree_walk writable;
    GLOVE_TRY(out.guard_search_complete, add_guards(tree, grants, system, writable));
    GLOVE_CHECK(add_protected(tree, grants, writable, wish.unprotected, out));
    GLOVE_CHECK(cover_kernel_mounts(tree, system, mounts));
    if (wish.workspace)
        out.work_directory =
            std::ranges::find(grants, std::string_view{"--workspace"}, &located_grant::flag)
                ->where.real;
    else out.work_directory = home_directory;
    add_grants(tree, grants);
    GLOVE_CHECK(add_scratch(tree, wish.home));
    GLOVE_CHECK(add_own_places(tree, out));
    for (auto& entry : system) tree.add(std::move(entry));
    if (!out.listeners.empty()) {
        GLOVE_TRY(const auto run, behind_links(tree, "/run"));
        GLOVE_TRY(out.listener_place, add_listener_place(tree, run));
        GLOVE_CHECK(add_companions(tree, out.listener_place, wish.companions));
    }
    return std::move(tree).finish();
}

} // namespace

auto default_scratch(std::uint64_t ram_bytes) noexcept -> scratch_budget {
    // What `size` does not count: an inode of tmpfs and the longest name it can have.
    constexpr std::uint64_t inode_bytes = 1536;
    const auto budget = std::max<std::uint64_t>(ram_bytes / 4, 64UL * 1024 * 1024);
    return {.bytes = budget / 4 * 3 / largest_page * largest_page,
            .inodes = budget / 4 / inode_bytes};
}

auto make_plan(const profile& given) -> result<plan> {
    const auto wish = with_listeners(given);
    if (wish.argv.empty() || wish.argv.front().empty())
        return fail(errc::invalid_input, "plan.command", "no command was given",
                    "put the command after --, as in: glove exec --workspace . -- bash");
    plan out;
    out.notes = wish.notes;
    out.user = {.uid = ::geteuid(), .gid = ::getegid()};
    out.argv = wish.argv;
    out.programs = candidates(wish.argv.front(), wish.path_directories);
    out.network = wish.network;
    GLOVE_TRY(out.bridge, plan_bridge(wish.egress, wish.network));
    GLOVE_TRY(out.listeners, plan_listeners(wish.listeners, wish.network));
    out.limits = wish.limits;
    out.scratch = default_scratch(ram_bytes());
    GLOVE_CHECK(check_least("--memory", wish.limits.memory_bytes));
    GLOVE_CHECK(check_least("--disk", wish.limits.disk_bytes));
    if (wish.limits.scratch_bytes == 0) // which the kernel takes for no limit
        return fail(errc::invalid_input, "plan.scratch", "no room at all for private files",
                    "leave --scratch-bytes out, or give a size such as 64MB");
    if (wish.limits.scratch_bytes) out.scratch.bytes = *wish.limits.scratch_bytes;
    if (wish.limits.disk_bytes)
        out.scratch.bytes =
            std::min(out.scratch.bytes, *wish.limits.disk_bytes / largest_page * largest_page);
    out.has_workspace = wish.workspace.has_value();
    if (wish.home) out.home = wish.home->name;
    GLOVE_TRY(out.environment, make_environment(::environ, wish, out.user, login_shell()));
    GLOVE_TRY(out.tree, make_tree(wish, out));
    if (wish.limits.disk_bytes) GLOVE_CHECK(check_disk(out.tree));
    GLOVE_TRY(out.ssh_agent, plan_ssh_agent(wish, out));
    return out;
}

} // namespace glove::container
