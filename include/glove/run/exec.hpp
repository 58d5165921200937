// `glove exec` and `glove run`: contain one agent process, from the operator's wish to the exit
// status.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/launch.hpp>
#include <glove/container/profile.hpp>
#include <glove/kernel/mediation.hpp>
#include <optional>
#include <string>
#include <vector>

namespace glove::run {

// Exit statuses of Glove itself; every other one is the agent's own, or 128 + n for signal n.
enum class exit_status : int { usage = 2, refused = 125, not_executable = 126, not_found = 127 };

// Whether the agent gets a terminal of its own.
enum class terminal_wish : std::uint8_t {
    automatic, // when a standard stream is a terminal
    always,
    never,
};

// What a server is made of beside the words that start it.
struct server_files {
    std::vector<std::string> parts;
    bool changeable = false; // the agent may change it, and that is meant
};

// The tools that an agent gets from servers outside, and how it speaks with them.
struct mediation_request {
    kernel::mediation what; // without the task, the run and the record
    // It speaks on its own standard input and output; otherwise by a socket that it finds inside.
    bool on_streams = false;
    // Where servers and rules were read from: whoever can change them decides about the next run.
    std::vector<std::string> files;
    // In the order of the servers.
    std::vector<server_files> servers;
};

struct exec_request {
    container::profile profile;
    std::optional<std::string> audit_log; // default: one file a run under the state directory
    bool audit_sync = false;              // audit lines survive a power cut
    std::optional<std::string> report;    // JSON file written when the run is over
    terminal_wish terminal = terminal_wish::automatic;
    bool explain = false; // print what would be exposed and run nothing
    bool json = false;    // of `explain`
    std::optional<mediation_request> mediation;
    container::argument_area arguments; // of this process, wiped in the sandbox's init
};

// Runs to the end and returns the exit status. Errors are Glove's own failures only.
[[nodiscard]] auto exec(exec_request request) -> result<int>;

// The step of an error that glove-mediator has told on standard error already, with the reason.
inline constexpr step_name told_step{"plan.rules"};

// The status that tells what kind of failure an error of `exec` was.
[[nodiscard]] auto status_of(const error& problem) -> exit_status;

// Descriptors 0, 1 and 2 exist from here on (/dev/null where the caller closed them), so that no
// other file can take their place. The first thing that a program does.
[[nodiscard]] auto claim_standard_streams() -> result<>;

} // namespace glove::run
