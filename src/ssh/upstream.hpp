// A connection to the caller's ssh agent.
//
// Guarantees: the socket is looked at by a descriptor, and what was looked at is what is connected
// to; it belongs to the caller or to root. Nothing waits: an agent whose backlog is full is an
// error.
#pragma once
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <string>

namespace glove::ssh {

// Not blocking, closed on exec.
[[nodiscard]] auto connect_to(const std::string& socket) -> result<sys::unique_fd>;

} // namespace glove::ssh
