// The perimeter of a managed session as a plan: like that of a run, but that everything of the host
// comes as a mount that was made ready before, and stands nowhere yet.
//
// Guarantees: nothing of the host is looked up by a name inside the sandbox but the system's own
// places; what a session may write is in the file systems that it was given, and nowhere else; its
// private places (/tmp, /var/tmp, /home/agent, /dev/shm, /run and what Glove makes) are all in the
// one scratch file system. Whoever runs inside is the user 1000, whoever the service runs as.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/bridge.hpp>
#include <glove/container/plan.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace glove::container {

// A mount of exactly what the descriptor leads to, below no other, without set-id programs and
// devices; a directory's submounts are not in it. Steps: mount.clone, mount.restrict.
[[nodiscard]] auto detached_mount(sys::fd_ref of, access mode) -> result<sys::unique_fd>;

struct session_mount {
    std::string target;   // absolute, in its shortest form
    sys::unique_fd mount; // detached; taken into the sandbox by the launch
    access mode = access::read;
    bool directory = false;
};

struct session_wish {
    std::string program;                  // absolute, as the session sees it
    std::vector<std::string> arguments;   // the first is the program's name
    std::vector<std::string> environment; // NAME=VALUE; Glove adds its own
    std::string work_directory;
    std::vector<session_mount> mounts; // in any order; one inside of another stands on top of it
    sys::unique_fd scratch;            // a detached, empty tmpfs (session_files.hpp)
    std::optional<bridge_plan> bridge; // of an online session; without one it is sealed
};

// Steps: session.target (two with the same target, or a place that Glove provides itself and does
// not let anybody mount on: /proc, /dev, /run, /etc),
// session.environment, and those of a plan.
[[nodiscard]] auto make_session_plan(session_wish wish) -> result<plan>;

} // namespace glove::container
