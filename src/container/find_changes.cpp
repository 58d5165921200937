// Looks at the places that a manifest names, and walks the grants once for what is new.
#include "container/git_places.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/container/manifest.hpp>
#include <glove/container/tree_walk.hpp>
#include <set>
#include <sys/stat.h>

namespace glove::container {

namespace {

struct findings {
    std::vector<finding> all;
    std::size_t hooks = 0, repositories = 0;
};

struct open_grant {
    const watched_grant& from;
    std::size_t number;
    sys::unique_fd root;
    findings& out;
    std::size_t inner_names = most_inner_names;
    std::set<std::string> seen = {}; // git's own directories

    void tell(finding_kind kind, std::string path) {
        out.all.push_back({kind, number, std::move(path)});
    }
    // Of what has no bound but the file system's. False when it was too much.
    auto tell_new(finding_kind kind, std::string path) -> bool {
        auto& told = kind == finding_kind::hook ? out.hooks : out.repositories;
        if (told++ < most_findings) {
            tell(kind, std::move(path));
            return true;
        }
        if (told == most_findings + 1) tell(finding_kind::unsearched, "");
        return false;
    }
};

[[nodiscard]] auto is_among(const std::vector<std::string>& paths, const std::string& path)
    -> bool {
    return std::ranges::find(paths, path) != paths.end();
}

[[nodiscard]] auto is_identity(sys::fd_ref file, std::uint64_t device, std::uint64_t inode)
    -> bool {
    const auto facts = sys::inspect(file);
    return facts && facts->identity.device == device && facts->identity.inode == inode;
}

// Any other failure leaves open what is there, and is told.
[[nodiscard]] auto is_absence(const error& why) -> bool {
    return why.os == ENOENT || why.os == ENOTDIR;
}

// git makes a directory of samples, of which none runs.
[[nodiscard]] auto holds_only_samples(sys::fd_ref root, const std::string& path) -> bool {
    const auto names = sys::list_names(root, path, sys::mounts::crossed);
    return names && std::ranges::all_of(
                        *names, [](const auto& entry) { return entry.first.ends_with(".sample"); });
}

void look_at_absent(open_grant& grant, const std::string& path) {
    // A link on the way is as good as the place itself to whoever follows it.
    for (auto end = path.find('/');; end = path.find('/', end + 1)) {
        const auto part = path.substr(0, end);
        const auto pin =
            sys::open_beneath(grant.root, part, O_PATH | O_NOFOLLOW, sys::mounts::crossed);
        if (!pin && is_absence(pin.error())) return;
        const auto facts = pin ? sys::inspect(*pin) : std::unexpected(pin.error());
        if (!facts) return grant.tell(finding_kind::unsearched, part);
        const bool last = end == std::string::npos;
        if (!last && facts->identity.type != S_IFLNK) continue;
        const bool hooks = last && facts->identity.type == S_IFDIR && path.ends_with("/hooks");
        if (!hooks || !holds_only_samples(grant.root, path)) grant.tell(finding_kind::made, part);
        return;
    }
}

void look_at_hooks(open_grant& grant, const std::string& git) {
    const auto hooks = git.empty() ? "hooks" : git + "/hooks";
    const auto names = sys::list_names(grant.root, hooks, sys::mounts::crossed);
    if (!names) { // too many, or not to be read
        (void)grant.tell_new(finding_kind::hook, hooks);
        return;
    }
    for (const auto& [name, type] : *names)
        if (!name.ends_with(".sample") && !grant.tell_new(finding_kind::hook, hooks + "/" + name))
            return;
}

void look_inside_of(open_grant& grant, const std::string& git);

void look_at_new_repository(open_grant& grant, const std::string& git) {
    (void)grant.tell_new(finding_kind::new_repository, git);
    look_at_hooks(grant, git);
    look_inside_of(grant, git);
}

// Submodules and linked worktrees.
void look_inside_of(open_grant& grant, const std::string& git) {
    if (!grant.seen.insert(git).second) return;
    const auto inner = inner_repositories(
        grant.root, git, grant.inner_names,
        [&](const error&, const std::string& path) { grant.tell(finding_kind::unsearched, path); });
    for (const auto& path : inner)
        if (!is_among(grant.from.git_directories, path)) look_at_new_repository(grant, path);
}

void look_at_repository(open_grant& grant, const std::string& directory) {
    const auto inside = directory.empty() ? std::string{} : directory + "/";
    const auto inner = sys::open_beneath(grant.root, inside + ".git",
                                         O_PATH | O_NOFOLLOW | O_DIRECTORY, sys::mounts::crossed);
    if (!inner && !is_absence(inner.error())) grant.tell(finding_kind::unsearched, inside + ".git");
    look_at_new_repository(grant, inner ? inside + ".git" : directory);
}

void look_at_new(open_grant& grant) {
    const auto seen = walk_trees({grant.from.path}, writable_walk_limit);
    std::vector<std::string> all = seen.with_git;
    all.insert(all.end(), seen.bare.begin(), seen.bare.end());
    // Whatever the walk came to.
    if (!is_among(all, grant.from.path)) {
        const auto top =
            sys::open_beneath(grant.root, ".git", O_PATH | O_NOFOLLOW, sys::mounts::crossed);
        if (top) all.push_back(grant.from.path);
        else if (!is_absence(top.error())) grant.tell(finding_kind::unsearched, ".git");
    }
    for (const auto& full : all) {
        const auto path =
            full.size() > grant.from.path.size() ? full.substr(grant.from.path.size() + 1) : "";
        if (!is_among(grant.from.repositories, path)) look_at_repository(grant, path);
    }
    for (const auto& git : grant.from.git_directories) look_inside_of(grant, git);
    if (!seen.repositories_complete || seen.failed_os != 0)
        grant.tell(finding_kind::unsearched, "");
}

void look_at_known(open_grant& grant) {
    for (const auto& row : grant.from.present) {
        const auto pin =
            sys::open_beneath(grant.root, row.path, O_PATH | O_NOFOLLOW, sys::mounts::crossed);
        const bool unknown = !pin && !is_absence(pin.error()) && pin.error().os != ELOOP;
        if (unknown) grant.tell(finding_kind::unsearched, row.path);
        else if (!pin || !is_identity(*pin, row.device, row.inode))
            grant.tell(finding_kind::replaced, row.path);
    }
    for (const auto& path : grant.from.absent) look_at_absent(grant, path);
}

} // namespace

auto to_string(finding_kind kind) noexcept -> std::string_view {
    switch (kind) {
    case finding_kind::made: return "made";
    case finding_kind::hook: return "hook";
    case finding_kind::replaced: return "replaced";
    case finding_kind::new_repository: return "new_repository";
    case finding_kind::unsearched: return "unsearched";
    }
    return "made";
}

auto find_changes(const run_manifest& from) -> std::vector<finding> {
    findings out;
    std::vector<open_grant> grants;
    for (std::size_t i = 0; i < from.grants.size(); ++i) {
        const auto& grant = from.grants[i];
        auto root = sys::pin(grant.path, sys::follow::never);
        if (root && is_identity(*root, grant.device, grant.inode))
            grants.push_back({grant, i, *std::move(root), out});
        else out.all.push_back({finding_kind::unsearched, i, ""});
    }
    // Bounded by the manifest, so nothing that is new in one grant hides it.
    for (auto& grant : grants) look_at_known(grant);
    for (auto& grant : grants) {
        // Without a full look at the start, what was there could not be told from what is new.
        if (from.complete) look_at_new(grant);
        else grant.tell(finding_kind::unsearched, "");
    }
    return std::move(out.all);
}

auto is_cut_short(const std::vector<finding>& changes) noexcept -> bool {
    return std::ranges::count(changes, finding_kind::hook, &finding::kind) >=
           std::ptrdiff_t{most_findings};
}

auto full_path(const run_manifest& from, const finding& what) -> std::string {
    const auto& grant = from.grants[what.grant].path;
    return what.path.empty() ? grant : grant + "/" + what.path;
}

} // namespace glove::container
