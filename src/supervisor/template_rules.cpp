// Templates: how a runtime is found and started. What could never start is refused here, because a
// launch is too late to tell the operator.
#include "supervisor/paths.hpp"
#include "supervisor/refusal.hpp"
#include "supervisor/session_rules.hpp"
#include "supervisor/variables.hpp"
#include <glove/wire/digest.hpp>

namespace glove::supervisor {

namespace {

using wire::place;
using strings = std::vector<std::string>;

constexpr std::array<std::string_view, 5> discoverable{"codex", "claude-code", "pi", "copilot",
                                                       "opencode"};
[[nodiscard]] auto check_apart(const strings& paths, const place& at) -> result<> {
    for (std::size_t i = 0; i < paths.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (overlap(paths[i], paths[j]))
                return refuse(errc::invalid_input, "policy.overlap", element_of(at, i),
                              "overlaps " + wire::to_string(element_of(at, j)));
    return {};
}

[[nodiscard]] auto check_variable(std::string_view entry, const place& at) -> result<> {
    const auto name = variable_name(entry);
    if (name.size() == entry.size() || !is_variable_name(name))
        return refuse(errc::invalid_input, "policy.environment", at,
                      "is not NAME=VALUE with a name of letters, digits and _");
    if (is_own_variable(name))
        return refuse(errc::not_permitted, "policy.environment", at,
                      "sets a variable that glove sets itself");
    return {};
}

[[nodiscard]] auto check_environment(const strings& entries, const place& at) -> result<> {
    for (std::size_t i = 0; i < entries.size(); ++i)
        GLOVE_CHECK(check_variable(entries[i], element_of(at, i)));
    const auto name = [](const std::string& entry) { return variable_name(entry); };
    if (const auto i = first_repeated(entries, name); i < entries.size())
        return refuse(errc::invalid_input, "policy.unique", element_of(at, i),
                      "sets a variable that an earlier entry sets");
    const auto whole = [](const std::string& entry) -> std::string_view { return entry; };
    if (const auto i = first_out_of_order(entries, whole); i < entries.size())
        return refuse(errc::invalid_input, "policy.order", element_of(at, i),
                      "does not come after the one before it", "sort the entries by their bytes");
    return {};
}

[[nodiscard]] auto check_pinned(const launch_template& launch, const place& at) -> result<> {
    if (!wire::conforms(wire::grammar::path, launch.executable_path))
        return refuse(errc::invalid_input, "policy.launch", member_of(at, "executable_path"),
                      "is not an absolute path in its shortest form",
                      "name the program, or set runtime_discovery");
    if (!launch.executable_search_paths.empty())
        return refuse(errc::invalid_input, "policy.launch",
                      member_of(at, "executable_search_paths"),
                      "is for templates with runtime_discovery only");
    return {};
}

[[nodiscard]] auto check_discovery(const launch_template& launch, std::string_view runtime,
                                   const place& at) -> result<> {
    const auto here = member_of(at, "runtime_discovery");
    if (std::find(discoverable.begin(), discoverable.end(), launch.runtime_discovery) ==
        discoverable.end())
        return refuse(errc::invalid_input, "policy.launch", here,
                      "is none of codex, claude-code, pi, copilot and opencode");
    if (launch.runtime_discovery != runtime)
        return refuse(errc::invalid_input, "policy.launch", here,
                      "is not the template's runtime_id");
    if (!launch.executable_path.empty())
        return refuse(errc::invalid_input, "policy.launch", member_of(at, "executable_path"),
                      "is for templates without runtime_discovery only");
    if (launch.executable_search_paths.empty())
        return refuse(errc::invalid_input, "policy.launch",
                      member_of(at, "executable_search_paths"), "is empty",
                      "list the directories to look in: PATH is never used");
    return check_apart(launch.executable_search_paths, member_of(at, "executable_search_paths"));
}

[[nodiscard]] auto check_launch(const launch_template& launch, const runtime_template& of,
                                const place& at) -> result<> {
    const bool pinned = launch.runtime_discovery.empty();
    GLOVE_CHECK(pinned ? check_pinned(launch, at) : check_discovery(launch, of.runtime_id, at));
    GLOVE_CHECK(check_environment(launch.environment, member_of(at, "environment")));
    return check_apart(launch.read_only_paths, member_of(at, "read_only_paths"));
}

template<class Find> [[nodiscard]] auto check_names(const strings& names, std::string_view what,
                                                    Find find, const place& at) -> result<> {
    if (const auto i =
            first_repeated(names, [](const std::string& s) -> std::string_view { return s; });
        i < names.size())
        return refuse(errc::invalid_input, "policy.unique", element_of(at, i), "appears twice");
    for (std::size_t i = 0; i < names.size(); ++i)
        if (find(names[i]) == nullptr)
            return refuse(errc::invalid_input, "policy.reference", element_of(at, i),
                          std::string{"is not in "}.append(what));
    return {};
}

} // namespace

auto launch_template_digest(const launch_template& launch) -> result<std::string> {
    wire::digest_encoder out;
    out.str("glove.runtime-launch-template");
    if (launch.runtime_discovery.empty()) out.u8(1);
    else out.u8(2).str(launch.runtime_discovery).list(launch.executable_search_paths);
    out.str(launch.executable_path).list(launch.arguments).list(launch.environment);
    return out.list(launch.read_only_paths).sha256_hex();
}

auto check_template(const runtime_template& what, const session_rules& all, const place& at)
    -> result<> {
    GLOVE_CHECK(check_names(
        what.allowed_path_aliases, "path_aliases",
        [&](const auto& name) { return all.find_alias(name); },
        member_of(at, "allowed_path_aliases")));
    GLOVE_CHECK(check_names(
        what.allowed_projection_destinations, "library_projection_destinations",
        [&](const auto& name) { return all.find_destination(name); },
        member_of(at, "allowed_projection_destinations")));
    if (!what.launch) return {};
    GLOVE_CHECK(check_launch(*what.launch, what, member_of(at, "launch")));
    if (what.runtime_id == "pi" && !what.adoption)
        return refuse(errc::invalid_input, "policy.adoption", member_of(at, "adoption"),
                      "is missing, and pi does not start without it");
    GLOVE_TRY(const auto digest, launch_template_digest(*what.launch));
    if (digest != what.adapter_command_digest)
        return refuse(errc::invalid_input, "policy.template_digest",
                      member_of(at, "adapter_command_digest"),
                      "is not the digest of the template's launch",
                      "if the launch is as you want it, write " + digest);
    return {};
}

} // namespace glove::supervisor
