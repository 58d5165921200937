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

// Who runs inside, and its group.
inline constexpr ::uid_t session_user = 1000;
inline constexpr ::gid_t session_user_group = 1000;

// The kernel takes no longer string, its end included, as an argument or a variable.
inline constexpr std::size_t longest_argument = 128UL << 10;

// A mount of exactly what the descriptor leads to, below no other, without set-id programs and
// devices; a directory's submounts are not in it. Where the kernel would have to show what other
// mounts cover (in a user namespace), a directory that has some is refused by their name. What
// leads into a mount that stands nowhere itself is refused: kernels before 6.15 cannot mount it
// once more; see `session_mount::lent`. So is what is the kernel's own, as /proc is. Steps:
// mount.clone, mount.restrict.
[[nodiscard]] auto detached_mount(sys::fd_ref of, access mode) -> result<sys::unique_fd>;

struct session_mount {
    // Absolute, in its shortest form. Below another mount something of the same type must be there
    // already; everywhere else its place is made.
    std::string target;
    sys::unique_fd mount; // detached; taken into the sandbox by the launch
    access mode = access::read;
    bool directory = false;
    // In place of a mount: the name of a regular file in the directory `lent_directory` of the
    // scratch file system, which nobody inside can reach by another name.
    std::string lent = {};
    // Where on the host the content of a mount is, when it is the host's own: what waits there for
    // a connection (sockets, FIFOs) is covered.
    std::string source = {};
};

struct session_wish {
    std::string program;                  // absolute, as the session sees it
    std::vector<std::string> arguments;   // the first is the program's name
    std::vector<std::string> environment; // NAME=VALUE; Glove adds its own
    std::string work_directory;
    std::vector<session_mount> mounts; // in any order; one inside of another stands on top of it
    // A detached tmpfs, empty but for `lent_directory` (session_files.hpp). The descriptors that
    // the service has of it stay good for reading and writing, before, during and after.
    sys::unique_fd scratch;
    std::optional<bridge_plan> bridge; // of an online session; without one it is sealed
};

// Its environment: what was wished, what Glove sets, and PATH, TERM, USER, LOGNAME and SHELL where
// nothing was wished. Glove's own are HOME, TMPDIR, GLOVE_SANDBOXED and the three variables of a
// proxy, in either case of letters. Step: session.environment.
[[nodiscard]] auto session_environment(const std::vector<std::string>& wished, bool online)
    -> result<std::vector<std::string>>;

// Steps: session.target (two with the same target, or one that is, holds or lies in a place that
// Glove provides itself: /proc, /dev, /run, /etc; or is or holds /tmp, /var/tmp or the home; or
// lies in a place of the system that has nothing of its type there; /opt and /snap are none here),
// session.mount, session.scratch, session.command, session.environment, and those of a plan.
[[nodiscard]] auto make_session_plan(session_wish wish) -> result<plan>;

} // namespace glove::container
