// From what was made ready to the digest that names the launch.
#pragma once
#include "control/host_egress.hpp"
#include "control/host_grants.hpp"
#include "control/host_program.hpp"
#include "control/host_secrets.hpp"
#include <glove/base/error.hpp>
#include <glove/control/launch_binding.hpp>
#include <glove/supervisor/bundle_store.hpp>
#include <optional>
#include <string>
#include <vector>

namespace glove::control {

struct bound_parts {
    const supervisor::sealed_plan& plan;
    const supervisor::launch_template& launch;
    const session_program& program;
    const bound_executable& executable;
    const std::vector<granted_path>& grants;
    const std::vector<supervisor::resolved_bundle>& bundles;
    const std::vector<session_secret>& secrets;
    const online_plan* online = nullptr;
    std::uint64_t scratch_bytes = 0;
};

// /workspace when something stands in it, else the home.
[[nodiscard]] auto work_directory(const std::vector<granted_path>& grants) -> std::string;

// The first is the program's name.
[[nodiscard]] auto arguments_of(const session_program& program,
                                const supervisor::launch_template& launch)
    -> std::vector<std::string>;

[[nodiscard]] auto bind(const bound_parts& of) -> launch_binding;

} // namespace glove::control
