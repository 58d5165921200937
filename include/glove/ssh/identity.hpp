// The one key of the caller's ssh agent that a run may have signatures of.
//
// Guarantees: only the public half is ever here. The caller's agent is asked for its list by this
// process; it is trusted as the caller's other programs are, and its answer is bounded and decoded
// strictly all the same.
#pragma once
#include <chrono>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::ssh {

struct public_key {
    std::string blob;        // as it travels
    std::string comment;     // printable
    std::string type;        // "ssh-ed25519"
    std::string fingerprint; // "SHA256:...", as ssh-add prints it
};

// The caller's agent, as $SSH_AUTH_SOCK names it.
[[nodiscard]] auto agent_socket(const char* variable) -> result<std::string>;

// Pins the socket at `path`, on which no component may be a link; it belongs to the caller or to
// root. The descriptor stays this socket, whatever becomes of its name.
[[nodiscard]] auto pin_agent(const std::string& path) -> result<sys::unique_fd>;

// Every key that the agent at the pinned `socket` offers.
[[nodiscard]] auto list_keys(sys::fd_ref socket, std::chrono::milliseconds patience)
    -> result<std::vector<public_key>>;

// The key that `wish` names by fingerprint or comment; an empty wish is for the only one. What is
// missing or more than one is refused with the list.
[[nodiscard]] auto choose_key(std::vector<public_key> keys, std::string_view wish)
    -> result<public_key>;

} // namespace glove::ssh
