// Looks the protected names up in every place of the writable grants that has them, and follows
// what leads from one directory of a repository to another. Changes nothing; reads by descriptor
// and within a bound.
#pragma once
#include "container/git_places.hpp"
#include "container/grants.hpp"
#include "container/tree.hpp"
#include <glove/container/protected_names.hpp>
#include <glove/container/tree_walk.hpp>
#include <map>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace glove::container {

inline constexpr int most_protected_links = 8; // from one protected name to the next

// Why a path is looked at.
struct protected_cause {
    std::string alias; // the name by which the operator knows it, where a link leads elsewhere
    std::string_view reason;
    bool hooks = false; // a directory of them
};

struct protected_candidate {
    protected_cause why;
    sys::file_facts facts = {};
    sys::unique_fd pin = {};
};

class protected_search {
public:
    explicit protected_search(const std::vector<located_grant>& grants) : grants_{grants} {}

    void look(const tree_walk& seen);
    void look_into_hooks();
    [[nodiscard]] auto found() noexcept -> std::map<std::string, protected_candidate, path_order>& {
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
    void consider(const std::string& path, const protected_cause& why,
                  int links = most_protected_links);
    void look_into_hooks(const std::string& path, const protected_cause& why);
    [[nodiscard]] auto owned_closed(const std::string& path) const -> std::string;
    void follow(const std::string& link, const std::string& rest, const protected_candidate& from,
                int links);
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
    std::map<std::string, protected_candidate, path_order> found_;
    std::map<std::string, std::string> kept_; // directories of repositories, and their aliases
    std::vector<std::string> linked_, unseen_;
    std::vector<std::string> repositories_; // directories that hold a ".git", or are one
    std::map<std::string, error> problems_;
    std::size_t inner_names_ = most_inner_names;
};

// Within the grant that holds it; empty for the grant itself.
[[nodiscard]] auto path_within(const located_grant& grant, const std::string& path) -> std::string;

} // namespace glove::container
