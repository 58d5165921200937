#include "container/listeners.hpp"
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

auto add_listener_place(tree_builder& tree, const std::string& run) -> result<std::string> {
    auto place = run + std::string{listener_directory.substr(std::string_view{"/run"}.size())};
    if (tree.covered(place) || tree.has_in(place))
        return fail(errc::not_permitted, "grant.check",
                    "a grant shares " + place + ", which Glove provides itself",
                    "grant another path, or move what is there");
    tree.add({.path = place});
    return place;
}

} // namespace glove::container
