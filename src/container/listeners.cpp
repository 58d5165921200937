// Checks the names, finds the directory, and has the one listener that there is today: the ssh
// agent's. Nothing is made here.
#include "container/listeners.hpp"
#include <algorithm>
#include <cstdlib>
#include <set>
#include <sys/un.h>

namespace glove::container {

namespace {

// A file name that is one in every shell and in every message.
[[nodiscard]] auto is_plain_name(std::string_view name) -> bool {
    constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    return !name.empty() && name.size() < sizeof(::sockaddr_un::sun_path) - 32 &&
           name.front() != '.' && name.find_first_not_of(allowed) == std::string_view::npos;
}

constexpr std::string_view ssh_agent_name = "ssh-agent.sock";
constexpr std::chrono::seconds ssh_agent_patience{10};

} // namespace

auto plan_listeners(const std::vector<listener_wish>& wishes, network_tier tier)
    -> result<std::vector<planned_listener>> {
    std::vector<planned_listener> out;
    std::set<std::string_view> names;
    for (const auto& wish : wishes) {
        const std::string flag{wish.flag};
        if (tier == network_tier::sealed)
            return fail(errc::invalid_input, "plan.listeners",
                        flag + " and --net sealed: no socket can be connected to by name there",
                        "leave one of the two out");
        if (!is_plain_name(wish.name) || !names.insert(wish.name).second ||
            out.size() == most_listeners)
            return fail(errc::invalid_input, "plan.listeners",
                        flag + ": there can be no socket named " + wish.name);
        out.push_back({.path = path_inside(wish)});
    }
    return out;
}

auto with_listeners(profile wish) -> profile {
    if (wish.ssh_agent)
        wish.listeners.push_back({.flag = "--ssh-agent",
                                  .name = std::string{ssh_agent_name},
                                  .variable = "SSH_AUTH_SOCK"});
    return wish;
}

auto plan_ssh_agent(const profile& wish, const plan& made)
    -> result<std::optional<ssh_agent_plan>> {
    if (!wish.ssh_agent) return std::nullopt;
    ssh_agent_plan out;
    GLOVE_TRY(out.socket, ssh::agent_socket(std::getenv("SSH_AUTH_SOCK")));
    GLOVE_TRY(auto keys, ssh::list_keys(out.socket, ssh_agent_patience));
    GLOVE_TRY(out.key, ssh::choose_key(std::move(keys), *wish.ssh_agent));
    const auto path = std::string{listener_directory} + "/" + std::string{ssh_agent_name};
    const auto at = std::ranges::find(made.listeners, path, &planned_listener::path);
    out.listener = static_cast<std::size_t>(at - made.listeners.begin());
    return out;
}

auto add_listener_place(tree_builder& tree, const std::string& run) -> result<std::string> {
    auto place = run + std::string{listener_directory.substr(std::string_view{"/run"}.size())};
    if (tree.covered(place) || tree.is_link(place) || tree.first_below(place) != nullptr)
        return fail(errc::not_permitted, "grant.check",
                    "a grant shares " + place + ", which Glove provides itself",
                    "grant another path, or move what is there");
    tree.add({.path = place});
    return place;
}

} // namespace glove::container
