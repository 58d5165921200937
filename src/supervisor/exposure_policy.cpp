// The operator's roots. A source is opened from its parent directory, which is opened from the
// root's descriptor, so that what is put on record of both belongs together.
#include <glove/supervisor/exposure_policy.hpp>

#include "supervisor/exposure_fields.hpp"
#include "supervisor/host_source.hpp"
#include "supervisor/in_file.hpp"
#include "supervisor/paths.hpp"
#include <sys/stat.h>

namespace glove::supervisor {

namespace {

using wire::place;

constexpr std::size_t policy_bytes = 1U << 20U;

[[nodiscard]] auto check_root(exposure_root& root, const place& at) -> result<> {
    if (const auto fault = fault_of_host_path(root.host_root); !fault.empty())
        return refuse(errc::not_permitted, "exposure.host_root", member_of(at, "host_root"), fault);
    GLOVE_CHECK(sort_modes(root.allowed_modes, member_of(at, "allowed_modes")));
    return sort_names(root.allowed_runtime_template_ids,
                      member_of(at, "allowed_runtime_template_ids"));
}

// Sorts the lists inside of each root on the way.
[[nodiscard]] auto check_rules(exposure_rules& rules) -> result<> {
    const place top;
    const auto list = member_of(top, "roots");
    auto& roots = rules.roots;
    for (std::size_t i = 0; i < roots.size(); ++i) {
        const auto here = element_of(list, i);
        GLOVE_CHECK(check_root(roots[i], here));
        for (std::size_t j = 0; j < i; ++j) {
            const auto there = element_of(list, j);
            if (roots[i].root_id == roots[j].root_id)
                return refuse(errc::invalid_input, "exposure.unique", member_of(here, "root_id"),
                              "appears twice");
            if (overlap(roots[i].host_root, roots[j].host_root))
                return refuse(errc::invalid_input, "exposure.overlap", member_of(here, "host_root"),
                              "overlaps " + wire::to_string(member_of(there, "host_root")));
        }
    }
    return {};
}

template<class T> [[nodiscard]] auto check_lists(const exposure_root& root, const T& what)
    -> result<> {
    const place top;
    const auto modes = member_of(top, "allowed_modes");
    for (std::size_t i = 0; i < what.allowed_modes.size(); ++i)
        if (std::none_of(root.allowed_modes.begin(), root.allowed_modes.end(),
                         [&](const auto& m) { return within(what.allowed_modes[i], m); }))
            return refuse(errc::not_permitted, "exposure.mode", element_of(modes, i),
                          "is more than the root allows");
    const auto& allowed = root.allowed_runtime_template_ids;
    const auto names = member_of(top, "allowed_runtime_template_ids");
    for (std::size_t i = 0; i < what.allowed_runtime_template_ids.size(); ++i)
        if (!std::binary_search(allowed.begin(), allowed.end(),
                                what.allowed_runtime_template_ids[i]))
            return refuse(errc::not_permitted, "exposure.template", element_of(names, i),
                          "is not a template of the root");
    return {};
}

[[nodiscard]] auto unknown_root() {
    return fail(errc::not_permitted, "exposure.root", "$.root_id is not a root of the policy");
}

} // namespace

auto exposure_rules::find_root(std::string_view id) const -> const exposure_root* {
    const auto found = std::find_if(roots.begin(), roots.end(),
                                    [&](const auto& root) { return root.root_id == id; });
    return found == roots.end() ? nullptr : &*found;
}

auto parse_exposure_rules(std::string_view text) -> result<exposure_rules> {
    GLOVE_TRY(auto out, wire::decode_text(text, exposure_rules_fields, {.bytes = policy_bytes}));
    GLOVE_CHECK(check_rules(out));
    return out;
}

auto exposure_rules_text(exposure_rules rules) -> result<std::string> {
    GLOVE_CHECK(wire::check_object(rules, exposure_rules_fields, place{}));
    GLOVE_CHECK(check_rules(rules));
    return wire::encode(rules, exposure_rules_fields);
}

auto check_allowed(const exposure_rules& rules, const create_exposure& what) -> result<> {
    const auto* root = rules.find_root(what.root_id);
    if (root == nullptr) return unknown_root();
    if (what.ttl_secs > root->max_ttl_secs)
        return fail(errc::not_permitted, "exposure.ttl",
                    "$.ttl_secs is more than the root allows, which is " +
                        std::to_string(root->max_ttl_secs));
    return check_lists(*root, what);
}

auto check_allowed(const exposure_rules& rules, const exposure_descriptor& what) -> result<> {
    const auto* root = rules.find_root(what.root_id);
    if (root == nullptr) return unknown_root();
    return check_lists(*root, what);
}

auto exposure_policy::freeze(exposure_rules rules) -> result<exposure_policy> {
    GLOVE_CHECK(wire::check_object(rules, exposure_rules_fields, place{}));
    GLOVE_CHECK(check_rules(rules));
    std::vector<sys::unique_fd> roots;
    std::vector<sys::file_identity> seen;
    for (std::size_t i = 0; i < rules.roots.size(); ++i) {
        const auto at = "$.roots[" + std::to_string(i) + "].host_root";
        GLOVE_TRY(auto found, in_file(at, open_host_source(rules.roots[i].host_root)));
        if (found.facts.identity.type != S_IFDIR)
            return fail(errc::invalid_input, "exposure.host_root", at + " is not a directory");
        if (std::find(seen.begin(), seen.end(), found.facts.identity) != seen.end())
            return fail(errc::invalid_input, "exposure.overlap",
                        at + " is the same directory as that of an earlier root");
        seen.push_back(found.facts.identity);
        roots.push_back(std::move(found.pin));
    }
    return exposure_policy{std::move(rules), std::move(roots)};
}

auto exposure_policy::load(const std::string& path) -> result<exposure_policy> {
    GLOVE_TRY(const auto text, sys::read_private_file(path, policy_bytes));
    GLOVE_TRY(auto rules, in_file(path, parse_exposure_rules(text)));
    return in_file(path, freeze(std::move(rules)));
}

auto exposure_policy::open(std::string_view root_id, const std::string& host_path) const
    -> result<exposed_source> {
    const auto* root = rules_.find_root(root_id);
    if (root == nullptr) return unknown_root();
    if (!wire::conforms(wire::grammar::path, host_path) || host_path == root->host_root ||
        !sys::holds(root->host_root, host_path))
        return fail(errc::not_permitted, "exposure.path", "$.host_path is not below the root");
    const auto below = host_path.substr(root->host_root.size() + 1);
    if (names_secret_directory(below))
        return fail(errc::not_permitted, "exposure.path",
                    "$.host_path is in a directory that holds credentials");
    const auto& top = roots_[static_cast<std::size_t>(root - rules_.roots.data())];
    const auto slash = below.rfind('/');
    const auto above = slash == below.npos ? std::string{} : below.substr(0, slash);
    GLOVE_TRY(const auto parent, open_host_source_beneath(top, above));
    GLOVE_TRY(auto found, open_host_source_beneath(
                              parent.pin, slash == below.npos ? below : below.substr(slash + 1)));
    return exposed_source{std::move(found.pin), found.facts, parent.facts};
}

} // namespace glove::supervisor
