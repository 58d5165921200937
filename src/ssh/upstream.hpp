// A connection to the caller's ssh agent.
//
// Guarantees: what is connected to is the socket that was pinned, whatever has its name by now, and
// no link is followed to it. Nothing waits: an agent whose backlog is full is an error.
#pragma once
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>

namespace glove::ssh {

// To what `pin_agent` gave. Not blocking, closed on exec.
[[nodiscard]] auto connect_to(sys::fd_ref socket) -> result<sys::unique_fd>;

} // namespace glove::ssh
