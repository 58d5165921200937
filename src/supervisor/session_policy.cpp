// Loading and freezing a session policy. A descriptor for each alias is kept, so that its inode
// cannot become another file's.
#include <glove/supervisor/session_policy.hpp>

#include "supervisor/host_source.hpp"
#include "supervisor/in_file.hpp"
#include "supervisor/refusal.hpp"
#include "supervisor/session_policy_fields.hpp"

namespace glove::supervisor {

namespace {

[[nodiscard]] auto place_of_alias(std::size_t index) -> std::string {
    return "$.path_aliases[" + std::to_string(index) + "].host_path";
}

// Two paths may lead to one object: by a bind mount, or by a link of a file.
[[nodiscard]] auto check_distinct(const std::vector<session_policy::source>& sources) -> result<> {
    for (std::size_t i = 0; i < sources.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (sources[i].facts.identity == sources[j].facts.identity)
                return fail(errc::invalid_input, "policy.overlap",
                            place_of_alias(i) + " is the same object as " + place_of_alias(j));
    return {};
}

} // namespace

auto session_policy::freeze(session_rules rules) -> result<session_policy> {
    GLOVE_CHECK(session_rules_text(rules));
    std::vector<source> sources;
    for (std::size_t i = 0; i < rules.path_aliases.size(); ++i) {
        auto found = open_host_source(rules.path_aliases[i].host_path);
        if (!found) {
            auto& why = found.error();
            why.detail = place_of_alias(i) + ": " + why.detail;
            return std::unexpected(std::move(why));
        }
        sources.push_back({std::move(found->pin), found->facts});
    }
    GLOVE_CHECK(check_distinct(sources));
    for (std::size_t i = 0; i < rules.runtime_templates.size(); ++i)
        if (const auto& launch = rules.runtime_templates[i].launch)
            GLOVE_CHECK(in_file("$.runtime_templates[" + std::to_string(i) + "].launch",
                                check_search_paths(*launch)));
    return session_policy{std::move(rules), std::move(sources)};
}

auto session_policy::load(const std::string& path) -> result<session_policy> {
    GLOVE_TRY(const auto text, sys::read_private_file(path, policy_bytes));
    GLOVE_TRY(auto rules, in_file(path, parse_session_rules(text)));
    return in_file(path, freeze(std::move(rules)));
}

auto session_policy::open_alias(std::string_view name) const -> result<source> {
    const auto* alias = rules_.find_alias(name);
    if (alias == nullptr)
        return fail(errc::not_found, "policy.alias", "the policy has no such alias");
    const auto& known = sources_[static_cast<std::size_t>(alias - rules_.path_aliases.data())];
    auto found = open_host_source(alias->host_path);
    if (!found || !(found->facts.identity == known.facts.identity))
        return fail(errc::conflict, "policy.alias",
                    "alias " + alias->alias + " no longer names what it named at the start",
                    "put it back, or restart with a policy that names the new place");
    return source{std::move(found->pin), found->facts};
}

} // namespace glove::supervisor
