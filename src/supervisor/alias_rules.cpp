// Path aliases: which ways of access go together with which materialization, and which paths are
// never handed out or covered.
#include "supervisor/paths.hpp"
#include "supervisor/refusal.hpp"
#include "supervisor/session_rules.hpp"

namespace glove::supervisor {

namespace {

using wire::place;

struct legal_access {
    access_kind access;
    bool binds;
    bool has_bytes; // what it may write is bounded, and not nothing
    std::optional<cleanup_kind> cleanup;
    std::optional<creation_kind> creation;
};

// A materialization that is in no row with its access is refused.
constexpr legal_access legal[] = {
    {access_kind::read, true, false, cleanup_kind::retain, creation_kind::never},
    {access_kind::read, false, false, {}, {}},
    {access_kind::ephemeral_write, false, true, cleanup_kind::remove, {}},
    {access_kind::retained_write, false, true, cleanup_kind::retain, {}},
    {access_kind::direct_write, true, false, cleanup_kind::retain, creation_kind::never},
};

[[nodiscard]] auto check_access(const alias_access& what, const place& at) -> result<> {
    const bool binds = what.materialization == materialization_kind::bind;
    const auto no = [&](std::string_view member, std::string_view why) {
        return refuse(errc::invalid_input, "policy.access", member_of(at, member), why);
    };
    const auto* rule = std::find_if(std::begin(legal), std::end(legal), [&](const auto& r) {
        return r.access == what.access && r.binds == binds;
    });
    if (rule == std::end(legal))
        return no("materialization",
                  binds ? "cannot be bind with this access" : "must be bind with this access");
    if (rule->has_bytes != (what.max_bytes > 0))
        return no("max_bytes", rule->has_bytes ? "is 0, and this access writes"
                                               : "is not 0, and this access has no quota");
    if (rule->cleanup && *rule->cleanup != what.cleanup_policy)
        return no("cleanup_policy", "does not go with this access");
    if (rule->creation && *rule->creation != what.create_policy)
        return no("create_policy", "does not go with this materialization");
    if ((what.materialization == materialization_kind::git_worktree) !=
        (what.create_policy == creation_kind::git_worktree))
        return no("create_policy", "and materialization must both be git_worktree, or neither");
    return {};
}

[[nodiscard]] auto check_paths(const path_alias& what, const place& at) -> result<> {
    const auto host = member_of(at, "host_path");
    if (const auto fault = fault_of_host_path(what.host_path); !fault.empty())
        return refuse(errc::not_permitted, "policy.host_path", host, fault);
    if (is_whole_home(what.host_path))
        return refuse(errc::not_permitted, "policy.host_path", host, "is the whole home of a user");
    const auto target = member_of(at, "target_path");
    if (inside_any(system_targets, what.target_path))
        return refuse(errc::not_permitted, "policy.target_path", target,
                      "is inside of the sandbox's own system");
    if (overlaps_any(scratch_targets, what.target_path))
        return refuse(errc::not_permitted, "policy.target_path", target,
                      "overlaps /proc, /tmp or /var/tmp");
    return {};
}

[[nodiscard]] auto check_alias(const path_alias& what, const place& at) -> result<> {
    GLOVE_CHECK(check_paths(what, at));
    const auto list = member_of(at, "access");
    for (std::size_t i = 0; i < what.access.size(); ++i)
        GLOVE_CHECK(check_access(what.access[i], element_of(list, i)));
    if (const auto i = first_repeated(what.access, [](const alias_access& a) { return a.access; });
        i < what.access.size())
        return refuse(errc::invalid_input, "policy.unique", element_of(list, i),
                      "is of an access that an earlier entry is of");
    return {};
}

[[nodiscard]] auto check_apart(const std::vector<path_alias>& all, std::size_t one,
                               std::size_t other, const place& at) -> result<> {
    const auto here = element_of(at, one);
    const auto there = element_of(at, other);
    if (overlap(all[one].host_path, all[other].host_path))
        return refuse(errc::invalid_input, "policy.overlap", member_of(here, "host_path"),
                      "overlaps " + wire::to_string(member_of(there, "host_path")));
    if (overlap(all[one].target_path, all[other].target_path))
        return refuse(errc::invalid_input, "policy.overlap", member_of(here, "target_path"),
                      "overlaps " + wire::to_string(member_of(there, "target_path")));
    return {};
}

} // namespace

auto check_aliases(const std::vector<path_alias>& all, const place& at) -> result<> {
    for (std::size_t i = 0; i < all.size(); ++i)
        GLOVE_CHECK(check_alias(all[i], element_of(at, i)));
    if (const auto i =
            first_repeated(all, [](const path_alias& a) -> std::string_view { return a.alias; });
        i < all.size()) {
        const auto here = element_of(at, i);
        return refuse(errc::invalid_input, "policy.unique", member_of(here, "alias"),
                      "appears twice");
    }
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) GLOVE_CHECK(check_apart(all, i, j, at));
    return {};
}

} // namespace glove::supervisor
