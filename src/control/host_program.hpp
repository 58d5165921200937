// The program of a session: which file it is, and what is in it.
//
// Guarantees: what was hashed is held by a descriptor, and it is this file that is mounted and
// runs, whatever its name comes to mean. It was read in pieces and did not change meanwhile; that
// it is the same still can be asked as often as one likes.
#pragma once
#include <glove/base/error.hpp>
#include <glove/control/launch_binding.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <glove/sys/files.hpp>
#include <string>

namespace glove::control {

struct session_program {
    std::string name; // as the policy has it, and the first argument
    std::string path; // canonical: where it is mounted, and what is executed
    sys::unique_fd pin;
    sys::file_facts facts;
};

// In the search paths, in their order, when the template discovers its runtime: then whoever could
// choose what runs is asked again. Steps: program.find, program.kind, program.size, and those of
// `check_search_paths`.
[[nodiscard]] auto find_program(const supervisor::launch_template& launch)
    -> result<session_program>;

// Steps: program.read, program.changed.
[[nodiscard]] auto measure(const session_program& program) -> result<bound_executable>;

// Step: program.changed (errc::conflict).
[[nodiscard]] auto check_unchanged(const session_program& program) -> result<>;

} // namespace glove::control
