// The compiled filters that the binary carries, and the call that puts one on.
//
// Guarantees: no work at start-up, no allocation, no libseccomp; both functions may be used between
// clone and exec. Installing is irrevocable and covers every thread of the caller. It never sets
// no_new_privs: the caller does, or the kernel refuses.
#pragma once
#include <glove/container/network_tier.hpp>
#include <linux/filter.h>
#include <span>

namespace glove::container::seccomp {

using program = std::span<const ::sock_filter>;

// The filter of this machine. `declared` counts the descriptors from 3 upwards that a sealed agent
// was handed; other tiers ask nothing of it. Empty when there is no such filter, which `install`
// refuses: an agent without its filter does not start.
[[nodiscard]] auto program_for(network_tier tier, unsigned declared) noexcept -> program;

// For the namespace's bridge, by itself: a dozen calls of an event loop over sockets of the IPv4
// and IPv6 families; any other, and any other architecture, kills.
[[nodiscard]] auto bridge_filter() noexcept -> program;

// 0 or an errno; EINVAL for an empty program, ESRCH when a thread has another filter already.
[[nodiscard]] auto install(program filter) noexcept -> int;

} // namespace glove::container::seccomp
