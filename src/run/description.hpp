// What a plan exposes and what a run did, for people (`--explain`) and for scripts (`--json`,
// `--report`). One walk over the same tables serves both, so they cannot differ.
#pragma once
#include "run/protection.hpp"
#include "run/supervise.hpp"
#include <glove/container/launch.hpp>
#include <glove/container/plan.hpp>
#include <glove/run/exec.hpp>
#include <glove/wire/json_writer.hpp>
#include <optional>
#include <string>

namespace glove::run {

// Of NAME=VALUE: a value may be a secret, and is never shown.
[[nodiscard]] inline auto name_of(std::string_view variable) -> std::string_view {
    return variable.substr(0, variable.find('='));
}
[[nodiscard]] inline auto milliseconds(std::optional<std::chrono::nanoseconds> time)
    -> std::optional<std::int64_t> {
    if (!time) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::milliseconds>(*time).count();
}

// What was in force during a run, and what was reached.
struct run_facts {
    std::vector<container::layer> layers = {};
    std::vector<net::egress_record> destinations = {};
    std::uint64_t more_destinations = 0; // past the bound of the list
    ssh::agent_counts signatures = {};
    std::vector<place_change> changes = {}; // of protected places
    std::optional<container::enforced_limits> enforced = {};
};

// How a run went; what is not known (yet) is empty.
struct run_record {
    std::string run;
    std::string audit_log;
    const container::plan* plan = nullptr;
    const mediation_request* mediation = nullptr; // null: without tools
    run_facts facts;
    std::optional<outcome> ended;
    std::optional<error> problem;
    std::int64_t started_ns = 0, ended_ns = 0; // wall clock
};

// What the agent may do with tools: the rules are in the words of glove-mediator.
struct tools_view {
    const mediation_request* mediation = nullptr; // null: there are none
    std::vector<std::string> rules = {};
};
[[nodiscard]] auto explain_text(const container::plan& plan, const tools_view& tools = {})
    -> std::string;
[[nodiscard]] auto explain_json(const container::plan& plan, const tools_view& tools = {})
    -> std::string;
[[nodiscard]] auto report_json(const run_record& record) -> std::string;

// `{"argv":[...]}`, for the audit line; of a tool server, as its words are shown.
[[nodiscard]] auto command_json(const container::plan& plan, bool of_server = false) -> std::string;

} // namespace glove::run
