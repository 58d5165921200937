// The options that say which tool servers there are and what an agent may do with them, the same
// for `glove run` and `glove mcp`.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/kernel/mediation.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace glove::cli {

struct mediation_words {
    std::vector<std::string> upstreams, files, upstream_environment;
    std::vector<std::string> upstream_read, upstream_write, upstream_egress; // of contained ones
    bool contain = false;
    std::vector<std::string> changeable; // of `glove run`
    policy::wish rules;
    std::string relay; // a list with commas
    std::string names; // empty: qualified
    std::vector<std::string> renames;
    std::optional<std::uint64_t> start_timeout_ms, call_timeout_ms, result_bytes;
    bool no_instructions = false, no_pins = false;
};

void declare_mediation(CLI::App& app, mediation_words& words);

struct mediation_wish {
    kernel::mediation what; // without the task, the run and the record
    std::vector<std::string> notes;
    std::vector<std::string> files; // that were named, absolute
};
// Null when there is none of this name, and the error that says so.
[[nodiscard]] auto find_upstream(mediation_wish& among, std::string_view name)
    -> mcp::upstream_wish*;
[[nodiscard]] auto no_such_upstream(const std::string& option, std::string_view name,
                                    const mediation_wish& among) -> std::unexpected<error>;

// Errors name the option and its value. Rules are judged by glove-mediator, not here. `writable` is
// what the agent may change.
[[nodiscard]] auto mediation_of(const mediation_words& words, std::span<const std::string> writable)
    -> result<mediation_wish>;

} // namespace glove::cli
