// What init reads between clone and the end, and the memory that it lies in.
#pragma once
#include "container/linux/setup_plan.hpp"
#include <glove/container/launch.hpp>
#include <memory>
#include <string>
#include <vector>

namespace glove::container {

// Strings are owned by the plan; the vectors hold pointers to them.
struct prepared_launch {
    std::vector<tree_operation> tree;
    std::vector<const char*> programs, argv, environment;
    std::string scratch_bytes, scratch_inodes;
    std::vector<bridge_known> known;
    std::vector<bridge_socket> sockets;
    std::vector<bridge_domain> domains;
    std::vector<listener_setup> listeners;
    std::vector<sys::unique_fd> moved; // mounts whose numbers were too low
    std::vector<int> kept;
    setup_plan child{};
    const plan* source = nullptr;
};

// Everything that needs memory is done here, before there is an init. `control` is its end of the
// channel. Step: launch.mounts.
[[nodiscard]] auto prepare(const launch_request& request, int control)
    -> result<std::unique_ptr<prepared_launch>>;

} // namespace glove::container
