// Starts another program with exactly the arguments, environment and descriptors that are named.
//
// Guarantees: nothing else is inherited: every other descriptor is closed, every signal has its
// default action and none is blocked. A program that cannot be started is an error here, with the
// kernel's reason, and leaves no process. It searches no PATH and asks no shell.
#pragma once
#include <glove/base/error.hpp>
#include <glove/sys/child_process.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace glove::sys {

struct passed_descriptor {
    int child; // the number it has in the program
    fd_ref ours;
};

struct spawn_request {
    // An absolute path, or, when there is a `file`, only what errors call it.
    std::string program;
    std::optional<fd_ref> file = {};
    std::vector<std::string> arguments; // the first is the program's own name
    std::vector<std::string> environment = {};
    std::vector<passed_descriptor> descriptors = {}; // each number once
    // Out of the caller's process group: no key typed at its terminal ends or stops the program,
    // which has no terminal. It leads a process group of its own (`child_process::signal_group`).
    bool own_session = false;
    // SIGKILL when the calling THREAD ends, however it ends. A program that gains privileges when
    // it is executed loses this.
    bool dies_with_parent = false;
    std::optional<std::string> directory = {}; // to start in; the caller's when there is none
};

[[nodiscard]] auto spawn(const spawn_request& request) -> result<child_process>;

// This process becomes the program, as `spawn` would start it. Returns only what went wrong, and
// then the descriptors may stand at their new numbers.
[[nodiscard]] auto become(const spawn_request& request) -> result<>;

// A program of Glove's own that people do not start: beside this one, or in libexec/glove.
[[nodiscard]] auto find_own_program(const std::string& name, step_name step) -> result<std::string>;

} // namespace glove::sys
