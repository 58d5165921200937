// What is not there is remembered like what is, so that it cannot be made later. A link that the
// command could turn elsewhere is kept as it is, with what it leads to.
#include "container/protected_search.hpp"
#include "container/control_files.hpp"
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace glove::container {

namespace {

constexpr std::string_view hook_places[] = {"hooks", ".githooks", ".husky"};

} // namespace

auto path_within(const located_grant& grant, const std::string& path) -> std::string {
    return path.size() == grant.where.real.size() ? std::string{}
                                                  : path.substr(grant.where.real.size() + 1);
}

// The nearest directory on the way, or the path itself, that the invoker has closed to itself: so
// the command, which is the same user, can open it again. Empty when it is somebody else's.
auto protected_search::owned_closed(const std::string& path) const -> std::string {
    const auto* const grant = holder(path);
    if (grant == nullptr) return {};
    for (auto at = path;; at = sys::parent_of(at)) {
        const auto pin = sys::open_beneath(grant->pin, path_within(*grant, at), O_PATH | O_NOFOLLOW,
                                           sys::mounts::crossed);
        if (const auto facts = pin ? sys::inspect(*pin) : std::unexpected(pin.error()))
            return facts->owner == ::geteuid() ? at : std::string{};
        if (at == grant->where.real) return {};
    }
}

void protected_search::note_failure(const error& what, const std::string& path) {
    if (what.os == ENOENT || what.os == ENOTDIR || what.os == ELOOP) return;
    if (what.os == ENAMETOOLONG) return unseen_.push_back(path);
    if (what.os == EACCES) {
        const auto closed = owned_closed(path);
        if (closed.empty()) return unseen_.push_back(path);
        auto problem = fail_os("source.protect", EACCES, closed).error();
        problem.remedy = "the command could open it, so look at it and do chmod u+rwx " + closed +
                         ", or release it with --unprotect " + closed;
        problems_.try_emplace(closed, std::move(problem));
        return;
    }
    const auto remedy = "remove it, or release it with --unprotect " + path;
    if (what.os != 0) {
        auto problem = fail_os("source.protect", what.os, path).error();
        problem.remedy = remedy;
        problems_.try_emplace(path, std::move(problem));
    } else
        problems_.try_emplace(path, fail(errc::limit_exceeded, "source.protect",
                                         path + " holds more names than are looked at", remedy)
                                        .error());
}

// What is there, or the place where nothing is. A link is kept, and so is what it leads to.
void protected_search::consider(const std::string& path, const protected_cause& why, int links) {
    const auto* const grant = holder(path);
    // What was granted by its own name may be changed by that name.
    if (grant == nullptr || grant->where.real == path) return;
    if (const auto known = found_.find(path); known != found_.end()) {
        known->second.why.hooks |= why.hooks;
        return;
    }
    if (path.size() >= PATH_MAX) return unseen_.push_back(path);
    auto pin = sys::open_beneath(grant->pin, path_within(*grant, path), O_PATH | O_NOFOLLOW,
                                 sys::mounts::crossed);
    if (pin) {
        const auto facts = sys::inspect(*pin);
        if (!facts) return note_failure(facts.error(), path);
        const auto& entry =
            found_.emplace(path, protected_candidate{why, *facts, *std::move(pin)}).first->second;
        if (facts->identity.type == S_IFLNK) follow(path, "", entry, links);
        return;
    }
    if (pin.error().os == ENOENT || pin.error().os == ENOTDIR) {
        found_.emplace(path, protected_candidate{why});
        return;
    }
    if (pin.error().os != ELOOP) return note_failure(pin.error(), path);
    for (auto at = grant->where.real.size(); at != std::string::npos; at = path.find('/', at + 1)) {
        const auto part = path.substr(0, at);
        auto link = sys::open_beneath(grant->pin, path_within(*grant, part), O_PATH | O_NOFOLLOW,
                                      sys::mounts::crossed);
        if (!link) return note_failure(link.error(), part);
        const auto facts = sys::inspect(*link);
        if (!facts || facts->identity.type != S_IFLNK) continue;
        const protected_candidate entry{why, *facts, *std::move(link)};
        follow(part, path.substr(at), entry, links);
        consider(part, {.alias = why.alias, .reason = why.reason}, 0);
        return;
    }
}

void protected_search::keep_links(const resolved_path& way, const std::string& alias) {
    for (const auto& [name, target] : way.links)
        consider(name, {.alias = alias, .reason = "leads to a protected place"}, 0);
}

void protected_search::follow(const std::string& link, const std::string& rest,
                              const protected_candidate& from, int links) {
    if (links == 0) return;
    const auto target = sys::read_link_of(from.pin);
    if (!target) return note_failure(target.error(), link);
    auto existing =
        (target->starts_with('/') ? *target : sys::parent_of(link) + "/" + *target) + rest;
    std::string missing;
    auto way = resolve(existing);
    while (!way && way.error().code == errc::not_found && existing.size() > 1) {
        missing.insert(0, existing.substr(existing.rfind('/')));
        existing = sys::parent_of(existing);
        way = resolve(existing);
    }
    if (!way || missing.find("/..") != std::string::npos) return;
    const auto why = from.why;
    keep_links(*way, why.alias);
    consider(way->real + missing, why, links - 1);
}

// Type 0 when it is not there, or not in a writable grant.
auto protected_search::facts_of(const std::string& path) -> sys::file_facts {
    const auto* const grant = holder(path);
    if (grant == nullptr) return {};
    const auto pin = sys::open_beneath(grant->pin, path_within(*grant, path), O_PATH | O_NOFOLLOW,
                                       sys::mounts::crossed);
    const auto facts = pin ? sys::inspect(*pin) : std::unexpected(pin.error());
    if (facts) return *facts;
    note_failure(facts.error(), path);
    return {};
}

void protected_search::top(const std::string& directory, const std::string& alias,
                           protected_in place) {
    for (const auto& row : protected_names) {
        if (row.place != place) continue;
        const auto name = "/" + std::string{row.path};
        consider(directory + name, {.alias = alias + name,
                                    .reason = row.reason,
                                    .hooks = std::ranges::find(hook_places, row.path) !=
                                             std::ranges::end(hook_places)});
    }
}

void protected_search::git_entry(const std::string& directory) {
    constexpr std::string_view reason = "leads git to the repository's hooks and settings";
    const auto path = directory + "/.git";
    if (facts_of(path).identity.type == S_IFDIR) return repository(path, path);
    const auto way = resolve(path);
    const protected_cause why{.alias = path, .reason = reason};
    if (!way) return consider(path, why); // leads nowhere yet
    consider(path, why, 0);               // what it leads to may be changed but for some of it
    keep_links(*way, path);
    if (facts_of(way->real).identity.type == S_IFDIR) return repository(way->real, path);
    consider(way->real, why);
    git_file(way->real, path);
}

void protected_search::git_file(const std::string& path, const std::string& alias) {
    const auto* const grant = holder(path);
    if (grant == nullptr) return;
    const auto target = read_pointer(grant->pin, path_within(*grant, path), "gitdir: ");
    if (!target) return note_failure(target.error(), path);
    if (target->empty()) return;
    const auto full = target->starts_with('/') ? *target : sys::parent_of(path) + "/" + *target;
    const auto way = resolve(full);
    if (!way)
        return consider(
            full, {.alias = alias, .reason = "leads git to the repository's hooks and settings"},
            0);
    keep_links(*way, alias);
    repository(way->real, alias);
}

void protected_search::repository(const std::string& directory, const std::string& alias) {
    const auto* const grant = holder(directory);
    if (grant == nullptr || !kept_.try_emplace(directory, alias).second) return;
    top(directory, alias, protected_in::worktree);
    const auto common = read_pointer(grant->pin, path_within(*grant, directory + "/commondir"), "");
    if (!common) note_failure(common.error(), directory + "/commondir");
    if (common && !common->empty()) { // its own hooks and settings count for nothing
        const auto way = resolve(common->starts_with('/') ? *common : directory + "/" + *common);
        if (!way) return;
        keep_links(*way, alias);
        repository(way->real, alias);
    } else top(directory, alias, protected_in::repository);
    inner(*grant, directory, alias);
}

void protected_search::inner(const located_grant& grant, const std::string& directory,
                             const std::string& alias) {
    const auto found = inner_repositories(grant.pin, path_within(grant, directory), inner_names_,
                                          [&](const error& what, const std::string& path) {
                                              note_failure(what, grant.where.real + "/" + path);
                                          });
    for (const auto& path : found) {
        const auto full = grant.where.real + "/" + path;
        repository(full, alias + full.substr(directory.size()));
    }
}

void protected_search::homes() {
    const char* const home = std::getenv("HOME");
    if (home == nullptr || *home != '/') return;
    const auto way = resolve(home);
    if (!way || holder(way->real) == nullptr) return;
    for (const auto what : {protected_in::project, protected_in::grant, protected_in::home})
        top(way->real, way->real, what);
}

void protected_search::look(const tree_walk& seen) {
    homes();
    const auto is_bare = [&](const std::string& path) {
        return std::ranges::find(seen.bare, path) != seen.bare.end();
    };
    for (const auto& g : grants_) {
        if (holder(g.where.real) != &g || is_bare(g.where.real)) continue;
        const auto common =
            sys::open_beneath(g.pin, "commondir", O_PATH | O_NOFOLLOW, sys::mounts::crossed);
        const auto head =
            sys::open_beneath(g.pin, "HEAD", O_PATH | O_NOFOLLOW, sys::mounts::crossed);
        if (common && head) repository(g.where.real, g.where.real); // of a linked worktree
        else
            for (const auto what : {protected_in::project, protected_in::grant})
                top(g.where.real, g.where.real, what);
        // Whatever the walk came to.
        if (facts_of(g.where.real + "/.git").identity.type != 0) project(g.where.real);
    }
    for (const auto& directory : seen.with_git)
        if (holder(directory) != nullptr) project(directory);
    for (const auto& directory : seen.bare)
        if (holder(directory) != nullptr) {
            repositories_.push_back(directory);
            repository(directory, directory);
        }
    for (const auto& directory : seen.closed)
        note_failure(fail_os("source.protect", EACCES, directory).error(), directory);
}

void protected_search::project(const std::string& directory) {
    repositories_.push_back(directory);
    top(directory, directory, protected_in::project);
    git_entry(directory);
}

// A hook is often a link to a script of the working tree, which git then runs, and a file with two
// names can be changed through the other one.
void protected_search::look_into_hooks() {
    std::vector<std::pair<std::string, protected_cause>> directories;
    for (const auto& [path, entry] : found_) {
        if (entry.facts.identity.type == S_IFREG && entry.facts.links > 1) linked_.push_back(path);
        if (entry.facts.identity.type == S_IFDIR && entry.why.hooks)
            directories.emplace_back(path, entry.why);
    }
    for (const auto& [path, why] : directories)
        look_into_hooks(path, {.alias = why.alias, .reason = "a hook leads to it"});
}

void protected_search::look_into_hooks(const std::string& path, const protected_cause& why) {
    const auto* const grant = holder(path);
    const auto names = sys::list_names(grant->pin, path_within(*grant, path), sys::mounts::crossed);
    if (!names) return unseen_.push_back(path);
    for (const auto& [name, type] : *names) {
        const auto inner = path + "/" + name;
        auto pin = sys::open_beneath(grant->pin, path_within(*grant, inner), O_PATH | O_NOFOLLOW,
                                     sys::mounts::crossed);
        const auto facts = pin ? sys::inspect(*pin) : std::unexpected(pin.error());
        if (!facts) {
            note_failure(facts.error(), inner);
            continue;
        }
        if (facts->identity.type == S_IFREG && facts->links > 1) linked_.push_back(inner);
        if (facts->identity.type != S_IFLNK) continue;
        const auto way = resolve(inner);
        if (!way) { // to what is not there yet
            follow(inner, "", {why, *facts, *std::move(pin)}, most_protected_links);
            continue;
        }
        for (const auto& [link, target] : way->links)
            if (link != inner) consider(link, why, 0);
        const auto target = facts_of(way->real);
        if (target.identity.type != S_IFREG) continue;
        consider(way->real, why);
        if (target.links > 1) linked_.push_back(way->real);
    }
}

} // namespace glove::container
