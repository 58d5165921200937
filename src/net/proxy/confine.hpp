// What `glove-egress` gives up once it has everything it needs.
//
// After `confine`, a proxy that the agent took over could still: open TCP and UDP connections to
// any address that the host reaches, use the connections that are open, say to the supervisor what
// it likes in the forms that the supervisor checks, and read files below /etc and the resolver's
// settings below /run. It could not run a program, write or read other files (where the kernel has
// Landlock; else it could read what the user can), signal or trace a process, make memory
// executable, open a Unix socket, or gain a privilege.
#pragma once
#include <glove/base/error.hpp>

namespace glove::net::proxy {

// Before anything is read: ends with the starter, cannot be traced or dumped.
[[nodiscard]] auto harden() -> result<>;
// Last, with one thread.
[[nodiscard]] auto confine() -> result<>;

} // namespace glove::net::proxy
