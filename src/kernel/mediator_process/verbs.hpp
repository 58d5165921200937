// What people ask of a mediation beside serving: which tools, which rules, which pins.
#pragma once
#include <glove/kernel/gateway.hpp>
#include <glove/kernel/mediation.hpp>
#include <string>

namespace glove::kernel {

struct printed {
    std::string text; // for stdout
    int status = 0;
};

// `tools`: what an agent would see, and why the rest is hidden. Status 1 when a server is not up.
[[nodiscard]] auto print_tools(const gateway& of, bool json) -> printed;
// `check`: the rules; with a tool, whether a call is allowed (0), denied (1) or is none (error).
[[nodiscard]] auto print_check(const mediation& what, const policy::engine& rules)
    -> result<printed>;
// `pin`: what is not as it was pinned, status 1 when there is such a thing. With `accept`, what was
// accepted.
[[nodiscard]] auto print_pins(const mediation& what, const gateway& of, policy::pin_store& pins)
    -> result<printed>;
// `pin` with `forget`: what was forgotten.
[[nodiscard]] auto print_forgotten(const mediation& what, policy::pin_store& pins)
    -> result<printed>;

} // namespace glove::kernel
