// The three standard streams: what may be handed to the agent, and when Glove lets go of them.
//
// A stream is not bounded by the new root or by the network namespace: what it leads to, the agent
// has.
#pragma once
#include <glove/base/error.hpp>

namespace glove::run {

// Refuses what would lead out: directories, block devices, sockets that can reach more than one
// peer.
[[nodiscard]] auto check_streams() -> result<>;

// Glove must not keep a pipe alive that the agent has closed. Standard error stays, for Glove's own
// messages; so does standard output when its bytes are `relayed`.
[[nodiscard]] auto let_go_of_streams(bool relayed) -> result<>;

} // namespace glove::run
