// Of what the search found, takes out what the operator releases, and mounts the rest as it is.
#include "container/protect.hpp"
#include "container/control_files.hpp"
#include "container/protected_search.hpp"
#include <algorithm>
#include <fcntl.h>
#include <map>
#include <optional>
#include <set>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::size_t most_mounts = 2048; // each is a descriptor and a mount
constexpr std::size_t most_told = 12;     // protected paths in an error

// What --unprotect takes out, and whether each of its words took something.
class release {
public:
    [[nodiscard]] static auto of(const std::vector<std::string>& words, const protected_search& all)
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

auto release::of(const std::vector<std::string>& words, const protected_search& all)
    -> result<release> {
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
    keeper(tree_builder& tree, const protected_search& all) : tree_{tree}, all_{all} {}

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
            GLOVE_TRY(auto opened, sys::open_beneath(grant->pin, path_within(*grant, up),
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
    const protected_search& all_;
    std::set<std::string> made_, read_only_;
};

void note_links(const protected_search& all, plan& out) {
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
[[nodiscard]] auto fullest_place(protected_search& all) -> std::string {
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

[[nodiscard]] auto no_room(protected_search& all) -> error {
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
[[nodiscard]] auto check_problems(protected_search& all, const tree_builder& tree,
                                  release& taken_out, const std::set<std::string>& kept,
                                  bool& complete) -> result<> {
    for (auto& [path, problem] : all.problems()) {
        bool out_of_reach = tree.masked(path);
        for (auto up = path; up != "/"; up = sys::parent_of(up)) out_of_reach |= kept.contains(up);
        if (out_of_reach) continue;
        if (!taken_out.takes(path, path)) return std::unexpected(std::move(problem));
        complete = false;
    }
    return {};
}

void note_search(const protected_search& all, const tree_walk& seen, plan& out) {
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
    protected_search all{grants};
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
        GLOVE_TRY(auto pin, sys::open_beneath(grant->pin, path_within(*grant, path),
                                              O_PATH | O_NOFOLLOW, sys::mounts::crossed));
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
