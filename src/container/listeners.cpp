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

// The writable grant that `path` (canonical) lies in, by whatever name; null for none.
[[nodiscard]] auto grant_around(const plan& made, const std::string& path)
    -> result<const tree_entry*> {
    for (auto place = sys::parent_of(path);; place = sys::parent_of(place)) {
        GLOVE_TRY(const auto pinned, sys::pin(place, sys::follow::never));
        GLOVE_TRY(const auto facts, sys::inspect(pinned));
        for (const auto& entry : made.tree)
            if (entry.kind == entry_kind::bind && entry.mode == access::write &&
                entry.identity == facts.identity)
                return &entry;
        if (place == "/") return nullptr;
    }
}

// Who can write where the socket or a link to it stands decides what it leads to: bytes that the
// agent chose would go to any service of the caller's.
[[nodiscard]] auto refuse_within_grants(const plan& made, const resolved_path& socket) -> result<> {
    std::vector<std::string> places{socket.real};
    for (const auto& [link, target] : socket.links) places.push_back(link);
    for (const auto& place : places) {
        GLOVE_TRY(const auto* const grant, grant_around(made, place));
        if (grant != nullptr)
            return fail(errc::not_permitted, "plan.ssh_agent",
                        "--ssh-agent: SSH_AUTH_SOCK leads by " + place + ", which lies in " +
                            grant->text + ", where the command can write",
                        "start the ssh agent with its socket elsewhere: ssh-agent -a PATH");
    }
    return {};
}

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
    GLOVE_TRY(const auto path, ssh::agent_socket(std::getenv("SSH_AUTH_SOCK")));
    const auto where = resolve(path);
    if (!where) return fail_os("ssh.agent", where.error().os, "the ssh agent's socket " + path);
    GLOVE_CHECK(refuse_within_grants(made, *where));
    GLOVE_TRY(out.socket, ssh::pin_agent(where->real));
    GLOVE_TRY(auto keys, ssh::list_keys(out.socket, ssh_agent_patience));
    GLOVE_TRY(out.key, ssh::choose_key(std::move(keys), *wish.ssh_agent));
    const auto inside = std::string{listener_directory} + "/" + std::string{ssh_agent_name};
    const auto at = std::ranges::find(made.listeners, inside, &planned_listener::path);
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

auto add_companions(tree_builder& tree, const std::string& place,
                    const std::vector<companion>& companions) -> result<> {
    for (const auto& wish : companions) {
        tree_entry entry{.path = place + "/" + wish.name,
                         .kind = entry_kind::file,
                         .permissions = 0444,
                         .text = wish.text};
        if (!wish.program.empty()) {
            GLOVE_TRY(const auto where, resolve(wish.program));
            entry.kind = entry_kind::bind;
            entry.text = where.real;
            GLOVE_TRY(entry.pin, sys::pin(entry.text, sys::follow::never));
            GLOVE_TRY(const auto facts, sys::inspect(entry.pin));
            entry.identity = facts.identity;
        }
        tree.add(std::move(entry));
    }
    return {};
}

} // namespace glove::container
