// Looks the protected names up in every place that has them, follows what leads from one directory
// of a repository to another, and takes out what the operator releases.
#include "container/protect.hpp"
#include "container/control_files.hpp"
#include "container/git_places.hpp"
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <glove/container/protected_names.hpp>
#include <map>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::container {

namespace {

constexpr std::size_t most_mounts = 2048; // each is a descriptor and a mount
constexpr int most_links = 8;             // from one protected name to the next
constexpr std::size_t most_told = 12;     // protected paths in an error
constexpr std::string_view hook_places[] = {"hooks", ".githooks", ".husky"};

// Why a path is looked at.
struct cause {
    std::string alias; // the name by which the operator knows it, where a link leads elsewhere
    std::string_view reason;
    bool hooks = false; // a directory of them
};

struct candidate {
    cause why;
    sys::file_facts facts = {};
    sys::unique_fd pin = {};
};

class search {
public:
    explicit search(const std::vector<located_grant>& grants) : grants_{grants} {}

    void look(const tree_walk& seen);
    void look_into_hooks();
    [[nodiscard]] auto found() noexcept -> std::map<std::string, candidate, path_order>& {
        return found_;
    }
    [[nodiscard]] auto kept() const noexcept -> const std::map<std::string, std::string>& {
        return kept_;
    }
    // What could not be looked at although the command may come to it.
    [[nodiscard]] auto problems() noexcept -> std::map<std::string, error>& { return problems_; }
    [[nodiscard]] auto repositories() const noexcept -> const std::vector<std::string>& {
        return repositories_;
    }
    // Protected files with several names.
    [[nodiscard]] auto linked() const noexcept -> const std::vector<std::string>& {
        return linked_;
    }
    [[nodiscard]] auto unseen() const noexcept -> const std::vector<std::string>& {
        return unseen_;
    }
    [[nodiscard]] auto holder(std::string_view path) const -> const located_grant* {
        const auto at = std::ranges::find_if(grants_, [&](const located_grant& g) {
            return g.mode == access::write && g.identity.type == S_IFDIR &&
                   sys::holds(g.where.real, path);
        });
        return at == grants_.end() ? nullptr : &*at;
    }

private:
    void consider(const std::string& path, const cause& why, int links = most_links);
    void look_into_hooks(const std::string& path, const cause& why);
    [[nodiscard]] auto owned_closed(const std::string& path) const -> std::string;
    void follow(const std::string& link, const std::string& rest, const candidate& from, int links);
    void keep_links(const resolved_path& way, const std::string& alias);
    [[nodiscard]] auto facts_of(const std::string& path) -> sys::file_facts;
    void top(const std::string& directory, const std::string& alias, protected_in place);
    void project(const std::string& directory);
    void git_entry(const std::string& directory);
    void git_file(const std::string& path, const std::string& alias);
    void repository(const std::string& directory, const std::string& alias);
    void inner(const located_grant& grant, const std::string& directory, const std::string& alias);
    void homes();
    void note_failure(const error& what, const std::string& path);

    const std::vector<located_grant>& grants_;
    std::map<std::string, candidate, path_order> found_;
    std::map<std::string, std::string> kept_; // directories of repositories, and their aliases
    std::vector<std::string> linked_, unseen_;
    std::vector<std::string> repositories_; // directories that hold a ".git", or are one
    std::map<std::string, error> problems_;
    std::size_t inner_names_ = most_inner_names;
};

[[nodiscard]] auto below(const located_grant& grant, const std::string& path) -> std::string {
    return path.size() == grant.where.real.size() ? std::string{}
                                                  : path.substr(grant.where.real.size() + 1);
}

// The nearest directory on the way, or the path itself, that the invoker has closed to itself: so
// the command, which is the same user, can open it again. Empty when it is somebody else's.
auto search::owned_closed(const std::string& path) const -> std::string {
    const auto* const grant = holder(path);
    if (grant == nullptr) return {};
    for (auto at = path;; at = sys::parent_of(at)) {
        const auto pin = sys::open_beneath(grant->pin, below(*grant, at), O_PATH | O_NOFOLLOW,
                                           sys::mounts::crossed);
        if (const auto facts = pin ? sys::inspect(*pin) : std::unexpected(pin.error()))
            return facts->owner == ::geteuid() ? at : std::string{};
        if (at == grant->where.real) return {};
    }
}

void search::note_failure(const error& what, const std::string& path) {
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
void search::consider(const std::string& path, const cause& why, int links) {
    const auto* const grant = holder(path);
    // What was granted by its own name may be changed by that name.
    if (grant == nullptr || grant->where.real == path) return;
    if (const auto known = found_.find(path); known != found_.end()) {
        known->second.why.hooks |= why.hooks;
        return;
    }
    if (path.size() >= PATH_MAX) return unseen_.push_back(path);
    auto pin = sys::open_beneath(grant->pin, below(*grant, path), O_PATH | O_NOFOLLOW,
                                 sys::mounts::crossed);
    if (pin) {
        const auto facts = sys::inspect(*pin);
        if (!facts) return note_failure(facts.error(), path);
        const auto& entry =
            found_.emplace(path, candidate{why, *facts, *std::move(pin)}).first->second;
        if (facts->identity.type == S_IFLNK) follow(path, "", entry, links);
        return;
    }
    if (pin.error().os == ENOENT || pin.error().os == ENOTDIR) {
        found_.emplace(path, candidate{why});
        return;
    }
    if (pin.error().os != ELOOP) return note_failure(pin.error(), path);
    for (auto at = grant->where.real.size(); at != std::string::npos; at = path.find('/', at + 1)) {
        const auto part = path.substr(0, at);
        auto link = sys::open_beneath(grant->pin, below(*grant, part), O_PATH | O_NOFOLLOW,
                                      sys::mounts::crossed);
        if (!link) return note_failure(link.error(), part);
        const auto facts = sys::inspect(*link);
        if (!facts || facts->identity.type != S_IFLNK) continue;
        const candidate entry{why, *facts, *std::move(link)};
        follow(part, path.substr(at), entry, links);
        consider(part, {.alias = why.alias, .reason = why.reason}, 0);
        return;
    }
}

void search::keep_links(const resolved_path& way, const std::string& alias) {
    for (const auto& [name, target] : way.links)
        consider(name, {.alias = alias, .reason = "leads to a protected place"}, 0);
}

void search::follow(const std::string& link, const std::string& rest, const candidate& from,
                    int links) {
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
auto search::facts_of(const std::string& path) -> sys::file_facts {
    const auto* const grant = holder(path);
    if (grant == nullptr) return {};
    const auto pin = sys::open_beneath(grant->pin, below(*grant, path), O_PATH | O_NOFOLLOW,
                                       sys::mounts::crossed);
    const auto facts = pin ? sys::inspect(*pin) : std::unexpected(pin.error());
    if (facts) return *facts;
    note_failure(facts.error(), path);
    return {};
}

void search::top(const std::string& directory, const std::string& alias, protected_in place) {
    for (const auto& row : protected_names) {
        if (row.place != place) continue;
        const auto name = "/" + std::string{row.path};
        consider(directory + name, {.alias = alias + name,
                                    .reason = row.reason,
                                    .hooks = std::ranges::find(hook_places, row.path) !=
                                             std::ranges::end(hook_places)});
    }
}

void search::git_entry(const std::string& directory) {
    constexpr std::string_view reason = "leads git to the repository's hooks and settings";
    const auto path = directory + "/.git";
    if (facts_of(path).identity.type == S_IFDIR) return repository(path, path);
    const auto way = resolve(path);
    const cause why{.alias = path, .reason = reason};
    if (!way) return consider(path, why); // leads nowhere yet
    consider(path, why, 0);               // what it leads to may be changed but for some of it
    keep_links(*way, path);
    if (facts_of(way->real).identity.type == S_IFDIR) return repository(way->real, path);
    consider(way->real, why);
    git_file(way->real, path);
}

void search::git_file(const std::string& path, const std::string& alias) {
    const auto* const grant = holder(path);
    if (grant == nullptr) return;
    const auto target = read_pointer(grant->pin, below(*grant, path), "gitdir: ");
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

void search::repository(const std::string& directory, const std::string& alias) {
    const auto* const grant = holder(directory);
    if (grant == nullptr || !kept_.try_emplace(directory, alias).second) return;
    top(directory, alias, protected_in::worktree);
    const auto common = read_pointer(grant->pin, below(*grant, directory + "/commondir"), "");
    if (!common) note_failure(common.error(), directory + "/commondir");
    if (common && !common->empty()) { // its own hooks and settings count for nothing
        const auto way = resolve(common->starts_with('/') ? *common : directory + "/" + *common);
        if (!way) return;
        keep_links(*way, alias);
        repository(way->real, alias);
    } else top(directory, alias, protected_in::repository);
    inner(*grant, directory, alias);
}

void search::inner(const located_grant& grant, const std::string& directory,
                   const std::string& alias) {
    const auto found = inner_repositories(grant.pin, below(grant, directory), inner_names_,
                                          [&](const error& what, const std::string& path) {
                                              note_failure(what, grant.where.real + "/" + path);
                                          });
    for (const auto& path : found) {
        const auto full = grant.where.real + "/" + path;
        repository(full, alias + full.substr(directory.size()));
    }
}

void search::homes() {
    const char* const home = std::getenv("HOME");
    if (home == nullptr || *home != '/') return;
    const auto way = resolve(home);
    if (!way || holder(way->real) == nullptr) return;
    for (const auto what : {protected_in::project, protected_in::grant, protected_in::home})
        top(way->real, way->real, what);
}

void search::look(const tree_walk& seen) {
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

void search::project(const std::string& directory) {
    repositories_.push_back(directory);
    top(directory, directory, protected_in::project);
    git_entry(directory);
}

// A hook is often a link to a script of the working tree, which git then runs, and a file with two
// names can be changed through the other one.
void search::look_into_hooks() {
    std::vector<std::pair<std::string, cause>> directories;
    for (const auto& [path, entry] : found_) {
        if (entry.facts.identity.type == S_IFREG && entry.facts.links > 1) linked_.push_back(path);
        if (entry.facts.identity.type == S_IFDIR && entry.why.hooks)
            directories.emplace_back(path, entry.why);
    }
    for (const auto& [path, why] : directories)
        look_into_hooks(path, {.alias = why.alias, .reason = "a hook leads to it"});
}

void search::look_into_hooks(const std::string& path, const cause& why) {
    const auto* const grant = holder(path);
    const auto names = sys::list_names(grant->pin, below(*grant, path), sys::mounts::crossed);
    if (!names) return unseen_.push_back(path);
    for (const auto& [name, type] : *names) {
        const auto inner = path + "/" + name;
        auto pin = sys::open_beneath(grant->pin, below(*grant, inner), O_PATH | O_NOFOLLOW,
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
            follow(inner, "", {why, *facts, *std::move(pin)}, most_links);
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

// What --unprotect takes out, and whether each of its words took something.
class release {
public:
    [[nodiscard]] static auto of(const std::vector<std::string>& words, const search& all)
        -> result<release>;
    [[nodiscard]] auto takes(const std::string& path, const std::string& alias) -> bool {
        bool out = false;
        for (auto& w : words_)
            for (const auto& name : w.names)
                if (sys::holds(name, path) || sys::holds(name, alias)) out = w.used = true;
        return out;
    }
    [[nodiscard]] auto unused() const -> const std::string* {
        const auto at = std::ranges::find(words_, false, &word::used);
        return at == words_.end() ? nullptr : &at->given;
    }

private:
    struct word {
        std::string given;
        std::vector<std::string> names; // with a link at its end, and behind it
        bool used = false;
    };
    std::vector<word> words_;
};

auto release::of(const std::vector<std::string>& words, const search& all) -> result<release> {
    release out;
    for (const auto& given : words) {
        word row{.given = given, .names = {}, .used = false};
        if (given.empty()) return refuse(errc::invalid_input, "--unprotect", given, "is no path");
        auto full = given;
        if (!full.starts_with('/')) {
            GLOVE_TRY(const auto here, resolve("."));
            full = here.real + "/" + given;
        }
        while (full.size() > 1 && full.ends_with('/')) full.pop_back();
        std::string existing;
        if (auto settled = settle(full, existing)) row.names.push_back(*std::move(settled));
        if (const auto parent = resolve(sys::parent_of(full)))
            row.names.push_back(parent->real + full.substr(full.rfind('/')));
        std::erase_if(row.names, [&](const auto& name) { return all.holder(name) == nullptr; });
        out.words_.push_back(std::move(row));
    }
    return out;
}

[[nodiscard]] auto tell_protected(const plan& out) -> std::string {
    std::string text = "protected are";
    std::size_t told = 0;
    for (const bool there : {true, false})
        for (const auto& each : out.protected_paths) {
            if (each.is_there() != there) continue;
            if (told == most_told) return text + " and others: see --explain";
            text += (told++ == 0 ? " " : ", ") + each.path;
        }
    return told == 0 ? "nothing is protected in this run" : text;
}

// Mounts what is there, and first, writable, each directory on the way to it.
class keeper {
public:
    keeper(tree_builder& tree, const search& all) : tree_{tree}, all_{all} {}

    // False when there is no room for more.
    [[nodiscard]] auto keep(const std::string& path, access mode, sys::unique_fd pin)
        -> result<bool> {
        const auto* const grant = all_.holder(path);
        for (auto up = path; up != grant->where.real; up = sys::parent_of(up))
            if (read_only_.contains(up)) return true; // with all that it holds
        std::vector<std::string> way;
        for (auto up = sys::parent_of(path); up != grant->where.real; up = sys::parent_of(up))
            if (!made_.contains(up)) way.push_back(up);
        if (made_.size() + way.size() >= most_mounts) return false;
        for (const auto& up : way) {
            GLOVE_TRY(auto opened, sys::open_beneath(grant->pin, below(*grant, up),
                                                     O_PATH | O_NOFOLLOW, sys::mounts::crossed));
            GLOVE_CHECK(mount(up, access::write, std::move(opened)));
        }
        if (!made_.contains(path)) GLOVE_CHECK(mount(path, mode, std::move(pin)));
        if (mode == access::read) read_only_.insert(path);
        return true;
    }
    [[nodiscard]] auto read_only() const noexcept -> const std::set<std::string>& {
        return read_only_;
    }

private:
    [[nodiscard]] auto mount(const std::string& path, access mode, sys::unique_fd pin) -> result<> {
        GLOVE_TRY(const auto facts, sys::inspect(pin));
        made_.insert(path);
        tree_.add({.path = path,
                   .kind = entry_kind::bind,
                   .origin = origin::kept,
                   .mode = mode,
                   .text = path,
                   .identity = facts.identity,
                   .pin = std::move(pin)});
        return {};
    }

    tree_builder& tree_;
    const search& all_;
    std::set<std::string> made_, read_only_;
};

void note_links(const search& all, plan& out) {
    for (const auto& path : all.linked())
        if (std::ranges::any_of(out.protected_paths, [&](const protected_path& kept) {
                return sys::holds(kept.path, path);
            }))
            out.notes.push_back(path + " is one of several names of a file, so the command can "
                                       "change it through another one that it may write");
    for (const auto& path : all.unseen())
        out.notes.push_back(path + " cannot be looked at, so it was not searched for what is "
                                   "to be protected");
}

// The directory at the top of a grant below which the most is kept, for the operator to decide on.
[[nodiscard]] auto fullest_place(search& all) -> std::string {
    std::map<std::string, std::size_t> counted;
    std::string out;
    std::size_t most = 0;
    for (const auto& [path, entry] : all.found()) {
        if (entry.facts.identity.type == 0) continue;
        const auto end = path.find('/', all.holder(path)->where.real.size() + 1);
        const auto top = path.substr(0, end);
        if (++counted[top] <= most) continue;
        most = counted[top];
        out = top;
    }
    return out;
}

[[nodiscard]] auto no_room(search& all) -> error {
    const auto fullest = fullest_place(all);
    return fail(errc::limit_exceeded, "source.protect",
                "more than " + std::to_string(most_mounts) +
                    " mounts are needed to keep what is protected, the most of them below " +
                    fullest,
                "grant a smaller directory, or release some with --unprotect, such as " + fullest)
        .error();
}

// What could not be looked at is a reason to refuse but where the command cannot come to it, or
// where the operator has released it.
[[nodiscard]] auto check_problems(search& all, const tree_builder& tree, release& taken_out,
                                  const std::set<std::string>& kept, bool& complete) -> result<> {
    for (auto& [path, problem] : all.problems()) {
        bool out_of_reach = tree.masked(path);
        for (auto up = path; up != "/"; up = sys::parent_of(up)) out_of_reach |= kept.contains(up);
        if (out_of_reach) continue;
        if (!taken_out.takes(path, path)) return std::unexpected(std::move(problem));
        complete = false;
    }
    return {};
}

void note_search(const search& all, const tree_walk& seen, plan& out) {
    out.protected_search_complete &= seen.repositories_complete && all.unseen().empty();
    out.repositories_known &= seen.within_limit;
    if (!out.protected_search_complete)
        out.notes.emplace_back("not every directory was searched for repositories: one that was "
                               "not found is not protected");
    out.repositories = all.repositories();
    std::ranges::sort(out.repositories);
    const auto repeated = std::ranges::unique(out.repositories);
    out.repositories.erase(repeated.begin(), repeated.end());
    for (const auto& [path, alias] : all.kept()) out.git_directories.push_back(path);
}

} // namespace

auto add_protected(tree_builder& tree, const std::vector<located_grant>& grants,
                   const tree_walk& seen, const std::vector<std::string>& released, plan& out)
    -> result<> {
    search all{grants};
    all.look(seen);
    all.look_into_hooks();
    GLOVE_TRY(auto taken_out, release::of(released, all));
    keeper mounts{tree, all};
    for (auto& [path, entry] : all.found()) {
        if (tree.masked(path)) continue;
        if (taken_out.takes(path, entry.why.alias)) {
            out.released.push_back(path);
            continue;
        }
        if (entry.facts.identity.type != 0) {
            GLOVE_TRY(const auto room, mounts.keep(path, access::read, std::move(entry.pin)));
            if (!room) return std::unexpected(no_room(all));
        }
        out.protected_paths.push_back({path, entry.why.reason, entry.facts.identity});
    }
    for (const auto& [path, alias] : all.kept()) {
        const auto* const grant = all.holder(path);
        if (grant->where.real == path || tree.masked(path)) continue;
        if (taken_out.takes(path, alias)) continue;
        GLOVE_TRY(auto pin, sys::open_beneath(grant->pin, below(*grant, path), O_PATH | O_NOFOLLOW,
                                              sys::mounts::crossed));
        GLOVE_TRY(const auto room, mounts.keep(path, access::write, std::move(pin)));
        if (!room) return std::unexpected(no_room(all));
    }
    bool looked_at_all = true;
    GLOVE_CHECK(check_problems(all, tree, taken_out, mounts.read_only(), looked_at_all));
    out.protected_search_complete = out.repositories_known = looked_at_all;
    note_links(all, out);
    note_search(all, seen, out);
    if (const auto* const word = taken_out.unused())
        return refuse(errc::invalid_input, "--unprotect", *word,
                      "is not protected, nor above what is", tell_protected(out));
    return {};
}

} // namespace glove::container
