// The options of a contained run, the same for `glove exec` and `glove run`, and the way from them
// to the run.
#pragma once
#include "cli/mediation_options.hpp"
#include "cli/options.hpp"
#include <CLI/CLI.hpp>
#include <glove/host/profiles.hpp>
#include <glove/run/exec.hpp>

namespace glove::cli {

struct run_words {
    run::exec_request request;
    std::vector<std::string> read, write, environment;
    std::string home;    // a name; empty and "none": one that ends with the run
    std::string network; // empty: what the other flags need
    std::string profile;
    bool path = false;
    std::vector<std::string> publish;
    std::uint64_t wall_time_ms = 0, cpu_time_ms = 0;
    std::string transport; // of a mediated run; empty: what the tier allows
    mediation_words mediation;
};

// A verb that runs a command in a sandbox.
struct contained_verb {
    const char* usage;
    const char* description;
    const char* footer;
    const char* example; // of a command, for whoever gave none
    bool mediated;       // with tool servers
};

void declare_contained(CLI::App& app, const contained_verb& verb, run_words& words);

// The request that the words make. `profile` is what a profile adds to its options, or null.
[[nodiscard]] auto complete(run_words& words, const contained_verb& verb, const invocation& call,
                            const host::run_profile* profile) -> result<>;

// Parses, runs and reports: the whole verb.
[[nodiscard]] auto contained_run(const contained_verb& verb, const invocation& call) -> int;

// A plan that is made only to know whether it can be.
[[nodiscard]] auto check_plan(container::profile wish) -> result<>;

} // namespace glove::cli
