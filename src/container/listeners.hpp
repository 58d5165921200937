// Where the sockets stand on which the host's side accepts connections of the agent.
//
// Guarantees: all of them stand in one directory that nothing of the operator's shares; what stands
// beside them is a program that was pinned, or a text.
#pragma once
#include "container/tree.hpp"

namespace glove::container {

[[nodiscard]] inline auto path_inside(const listener_wish& wish) -> std::string {
    return std::string{listener_directory} + "/" + wish.name;
}

[[nodiscard]] inline auto path_inside(const companion& wish) -> std::string {
    return std::string{listener_directory} + "/" + wish.name;
}

[[nodiscard]] auto plan_listeners(const std::vector<listener_wish>& wishes, network_tier tier)
    -> result<std::vector<planned_listener>>;

// With the listeners that the other wishes need.
[[nodiscard]] auto with_listeners(profile wish) -> profile;
// Asks the caller's ssh agent for its keys, once listeners and tree were planned: one whose place
// an agent could change is refused, and not connected to.
[[nodiscard]] auto plan_ssh_agent(const profile& wish, const plan& made)
    -> result<std::optional<ssh_agent_plan>>;

// Adds their directory below `run`, which is where /run really is, and returns its path. The last
// entry to be added: it is refused when anything of a grant is there.
[[nodiscard]] auto add_listener_place(tree_builder& tree, const std::string& run)
    -> result<std::string>;
// Adds what stands beside the sockets in `place`.
[[nodiscard]] auto add_companions(tree_builder& tree, const std::string& place,
                                  const std::vector<companion>& companions) -> result<>;

} // namespace glove::container
