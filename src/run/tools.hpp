// The tools of a run: what of them stands in the sandbox, and the mediator that serves them.
//
// Guarantees: what stands inside is a program of Glove's own and texts, which nobody inside can
// change; neither the rules nor a server nor its environment is there.
#pragma once
#include "run/mediator.hpp"
#include <glove/container/plan.hpp>
#include <glove/run/exec.hpp>

namespace glove::run {

// What stands inside, so that an agent finds its tools.
[[nodiscard]] auto plan_tools(const mediation_request& wish, container::profile& into) -> result<>;

// Where the socket of the tools is in the plan; past the end when the agent has them on its
// streams.
[[nodiscard]] auto tools_listener(const container::plan& plan) -> std::size_t;

// The caller's PATH without what is no absolute path, and without what the agent may change:
// neither a server nor what it starts is looked for there.
struct search_path {
    std::string kept;
    std::vector<std::string> left_out; // for the second reason
};
[[nodiscard]] auto search_path_of_servers(const container::plan& plan) -> search_path;

// A server starts again when it has died, so what it is made of and where it starts count during
// the run as well. What it is made of is refused to an agent, unless that is meant; what else the
// agent could change is told.
[[nodiscard]] auto check_servers(const mediation_request& tools, container::plan& plan) -> result<>;

// The agent's standard input and output, when it speaks with its tools there.
struct tool_streams {
    sys::unique_fd agent_input, agent_output;
};

// What the record of the run is.
struct shared_record {
    std::string run, file;
    bool sync = false;
};
[[nodiscard]] auto start_tools(const mediation_request& wish, const container::plan& plan,
                               const shared_record& record, tool_streams& streams)
    -> result<mediator>;

} // namespace glove::run
