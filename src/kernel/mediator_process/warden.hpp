// Two processes, so that nothing outlives a mediation: the worker has the servers for children, and
// the warden has whatever is left when the worker has gone, however it went.
//
// Guarantees: a signal to end reaches the worker once; when the worker has ended, every descendant
// of both is killed and reaped before the warden ends with the worker's status. With
// `dies_with_parent` the death of whoever started the warden is a SIGTERM.
#pragma once
#include <functional>
#include <glove/base/error.hpp>

namespace glove::kernel {

// Runs `work` in the worker; what it returns is the status to end with. Only the warden returns
// from here. Before any thread is made.
[[nodiscard]] auto under_warden(bool dies_with_parent, const std::function<int()>& work)
    -> result<int>;

// Every process below this one, in whatever session it is, within a few seconds.
void kill_descendants();

} // namespace glove::kernel
