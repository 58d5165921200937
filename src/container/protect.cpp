// Looks the protected names up in every place that has them, follows what leads from one directory
// of a repository to another, and takes out what the operator releases.
#include "container/protect.hpp"
#include "container/control_files.hpp"
#include "container/git_places.hpp"
#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <glove/container/protected_names.hpp>
#include <map>
#include <optional>
#include <set>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::size_t most_mounts = 512; // each is a descriptor and a mount
constexpr int most_links = 8;            // from one protected name to the next
constexpr std::size_t most_told = 12;    // protected paths in an error

struct candidate {
    std::string alias; // the name by which the operator knows it, where a link leads elsewhere
    std::string_view reason;
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
    [[nodiscard]] auto problem() noexcept -> std::optional<error>& { return problem_; }
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
    void consider(const std::string& path, const std::string& alias, std::string_view reason,
                  int links = most_links);
    void follow(const std::string& link, const std::string& rest, const candidate& from, int links);
    void keep_links(const resolved_path& way, const std::string& alias);
    [[nodiscard]] auto facts_of(const std::string& path) -> sys::file_facts;
    void top(const std::string& directory, const std::string& alias, protected_in place);
    void git_entry(const std::string& directory);
    void git_file(const std::string& path, const std::string& alias);
    void repository(const std::string& directory, const std::string& alias);
    void repositories_below(const std::string& directory, const std::string& alias, int depth);
    void homes();
    void note_failure(const error& what, const std::string& path);

    const std::vector<located_grant>& grants_;
    std::map<std::string, candidate, path_order> found_;
    std::map<std::string, std::string> kept_; // directories of repositories, and their aliases
    std::vector<std::string> linked_, unseen_;
    std::optional<error> problem_;
};

[[nodiscard]] auto below(const located_grant& grant, const std::string& path) -> std::string {
    return path.size() == grant.where.real.size() ? std::string{}
                                                  : path.substr(grant.where.real.size() + 1);
}

void search::note_failure(const error& what, const std::string& path) {
    if (what.os == ENOENT || what.os == ENOTDIR || what.os == ELOOP) return;
    if (what.os == EACCES) return unseen_.push_back(path);
    if (!problem_) problem_ = fail_os("source.protect", what.os, path).error();
}

// What is there, or the place where nothing is. A link is kept, and so is what it leads to.
void search::consider(const std::string& path, const std::string& alias, std::string_view reason,
                      int links) {
    const auto* const grant = holder(path);
    // What was granted by its own name may be changed by that name.
    if (grant == nullptr || grant->where.real == path || found_.contains(path)) return;
    auto pin = sys::open_within(grant->pin, below(*grant, path), O_PATH | O_NOFOLLOW);
    if (pin) {
        const auto facts = sys::inspect(*pin);
        if (!facts) return note_failure(facts.error(), path);
        const auto& entry =
            found_.emplace(path, candidate{alias, reason, *facts, *std::move(pin)}).first->second;
        if (facts->identity.type == S_IFLNK) follow(path, "", entry, links);
        return;
    }
    if (pin.error().os == ENOENT || pin.error().os == ENOTDIR) {
        found_.emplace(path, candidate{alias, reason});
        return;
    }
    if (pin.error().os != ELOOP) return note_failure(pin.error(), path);
    for (auto at = grant->where.real.size(); at != std::string::npos; at = path.find('/', at + 1)) {
        const auto part = path.substr(0, at);
        auto link = sys::open_within(grant->pin, below(*grant, part), O_PATH | O_NOFOLLOW);
        if (!link) return note_failure(link.error(), part);
        const auto facts = sys::inspect(*link);
        if (!facts || facts->identity.type != S_IFLNK) continue;
        const candidate entry{alias, reason, *facts, *std::move(link)};
        follow(part, path.substr(at), entry, links);
        consider(part, alias, reason, 0);
        return;
    }
}

void search::keep_links(const resolved_path& way, const std::string& alias) {
    for (const auto& [name, target] : way.links)
        consider(name, alias, "leads to a protected place", 0);
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
    const std::string alias = from.alias;
    const auto reason = from.reason;
    keep_links(*way, alias);
    consider(way->real + missing, alias, reason, links - 1);
}

// Type 0 when it is not there, or not in a writable grant.
auto search::facts_of(const std::string& path) -> sys::file_facts {
    const auto* const grant = holder(path);
    if (grant == nullptr) return {};
    const auto pin = sys::open_within(grant->pin, below(*grant, path), O_PATH | O_NOFOLLOW);
    const auto facts = pin ? sys::inspect(*pin) : std::unexpected(pin.error());
    if (facts) return *facts;
    note_failure(facts.error(), path);
    return {};
}

void search::top(const std::string& directory, const std::string& alias, protected_in place) {
    for (const auto& row : protected_names) {
        if (row.place != place) continue;
        const auto name = "/" + std::string{row.path};
        consider(directory + name, alias + name, row.reason);
    }
}

void search::git_entry(const std::string& directory) {
    constexpr std::string_view reason = "leads git to the repository's hooks and settings";
    const auto path = directory + "/.git";
    if (facts_of(path).identity.type == S_IFDIR) return repository(path, path);
    const auto way = resolve(path);
    if (!way) return consider(path, path, reason); // leads nowhere yet
    consider(path, path, reason, 0); // what it leads to may be changed but for some of it
    keep_links(*way, path);
    if (facts_of(way->real).identity.type == S_IFDIR) return repository(way->real, path);
    consider(way->real, path, reason);
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
    if (!way) return consider(full, alias, "leads git to the repository's hooks and settings", 0);
    keep_links(*way, alias);
    repository(way->real, alias);
}

void search::repository(const std::string& directory, const std::string& alias) {
    const auto* const grant = holder(directory);
    if (grant == nullptr || kept_.size() >= most_mounts ||
        !kept_.try_emplace(directory, alias).second)
        return;
    top(directory, alias, protected_in::worktree);
    const auto common = read_pointer(grant->pin, below(*grant, directory + "/commondir"), "");
    if (!common) note_failure(common.error(), directory + "/commondir");
    if (common && !common->empty()) { // its own hooks and settings count for nothing
        const auto way = resolve(common->starts_with('/') ? *common : directory + "/" + *common);
        if (!way) return;
        keep_links(*way, alias);
        repository(way->real, alias);
    } else top(directory, alias, protected_in::repository);
    repositories_below(directory + "/worktrees", alias + "/worktrees", 1);
    repositories_below(directory + "/modules", alias + "/modules", most_links);
}

// Submodules may have names with slashes, so a directory may be one or hold some.
void search::repositories_below(const std::string& directory, const std::string& alias, int depth) {
    const auto* const grant = holder(directory);
    if (grant == nullptr || depth == 0) return;
    const auto names = sys::list_names(grant->pin, below(*grant, directory));
    if (!names) return note_failure(names.error(), directory);
    for (const auto& [name, type] : *names) {
        if (type != S_IFDIR) continue;
        const auto inner = directory + "/" + name;
        if (sys::open_within(grant->pin, below(*grant, inner + "/HEAD"), O_PATH | O_NOFOLLOW))
            repository(inner, alias + "/" + name);
        else repositories_below(inner, alias + "/" + name, depth - 1);
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
        const auto common = sys::open_within(g.pin, "commondir", O_PATH | O_NOFOLLOW);
        const auto head = sys::open_within(g.pin, "HEAD", O_PATH | O_NOFOLLOW);
        if (common && head) repository(g.where.real, g.where.real); // of a linked worktree
        else
            for (const auto what : {protected_in::project, protected_in::grant})
                top(g.where.real, g.where.real, what);
    }
    for (const auto& directory : seen.with_git) {
        if (holder(directory) == nullptr) continue;
        top(directory, directory, protected_in::project);
        git_entry(directory);
    }
    for (const auto& directory : seen.bare) repository(directory, directory);
}

// A hook is often a link to a script of the working tree, which git then runs, and a file with two
// names can be changed through the other one.
void search::look_into_hooks() {
    constexpr std::string_view places[] = {"/hooks", "/.githooks", "/.husky"};
    std::vector<std::pair<std::string, std::string>> directories;
    for (const auto& [path, entry] : found_) {
        if (entry.facts.identity.type == S_IFREG && entry.facts.links > 1) linked_.push_back(path);
        if (entry.facts.identity.type == S_IFDIR &&
            std::ranges::any_of(places, [&](auto end) { return path.ends_with(end); }))
            directories.emplace_back(path, entry.alias);
    }
    for (const auto& [path, alias] : directories) {
        const auto* const grant = holder(path);
        const auto names = sys::list_names(grant->pin, below(*grant, path));
        if (!names) {
            unseen_.push_back(path);
            continue;
        }
        for (const auto& [name, type] : *names) {
            const auto inner = path + "/" + name;
            const auto facts = facts_of(inner);
            if (facts.identity.type == S_IFREG && facts.links > 1) linked_.push_back(inner);
            if (facts.identity.type != S_IFLNK) continue;
            const auto way = resolve(inner);
            if (!way) continue;
            for (const auto& [link, target] : way->links)
                if (link != inner) consider(link, alias, "a hook leads to it", 0);
            if (facts_of(way->real).identity.type == S_IFREG)
                consider(way->real, alias, "a hook leads to it");
        }
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
            GLOVE_TRY(auto opened,
                      sys::open_within(grant->pin, below(*grant, up), O_PATH | O_NOFOLLOW));
            GLOVE_CHECK(mount(up, access::write, std::move(opened)));
        }
        if (!made_.contains(path)) GLOVE_CHECK(mount(path, mode, std::move(pin)));
        if (mode == access::read) read_only_.insert(path);
        return true;
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

} // namespace

auto add_protected(tree_builder& tree, const std::vector<located_grant>& grants,
                   const tree_walk& seen, const std::vector<std::string>& released, plan& out)
    -> result<> {
    search all{grants};
    all.look(seen);
    all.look_into_hooks();
    if (all.problem()) return std::unexpected(*std::move(all.problem()));
    GLOVE_TRY(auto taken_out, release::of(released, all));
    out.protected_search_complete = seen.repositories_complete && all.unseen().empty();
    keeper mounts{tree, all};
    bool room = true;
    for (auto& [path, entry] : all.found()) {
        if (tree.masked(path)) continue;
        if (taken_out.takes(path, entry.alias)) {
            out.released.push_back(path);
            continue;
        }
        if (entry.facts.identity.type != 0) {
            GLOVE_TRY(room, mounts.keep(path, access::read, std::move(entry.pin)));
            if (!room) break;
        }
        out.protected_paths.push_back({path, entry.reason, entry.facts.identity});
    }
    for (const auto& [path, alias] : all.kept()) {
        const auto* const grant = all.holder(path);
        if (!room || grant->where.real == path || tree.masked(path)) continue;
        if (taken_out.takes(path, alias)) continue;
        GLOVE_TRY(auto pin,
                  sys::open_within(grant->pin, below(*grant, path), O_PATH | O_NOFOLLOW));
        GLOVE_TRY(room, mounts.keep(path, access::write, std::move(pin)));
    }
    if (!room) out.protected_search_complete = false;
    note_links(all, out);
    for (const auto* list : {&seen.with_git, &seen.bare})
        for (const auto& path : *list)
            if (all.holder(path) != nullptr) out.repositories.push_back(path);
    std::ranges::sort(out.repositories);
    if (const auto* const word = taken_out.unused())
        return refuse(errc::invalid_input, "--unprotect", *word,
                      "is not protected, nor above what is", tell_protected(out));
    return {};
}

} // namespace glove::container
