// Three processes, one below the other, so that nothing outlives a mediation: the worker has the
// servers for children, and a warden has whatever is left when the one below it has gone, however
// it went. There are two wardens, so that one process is left whichever two are killed at once.
//
// Guarantees: a signal to end reaches the worker once; when the worker has ended, every descendant
// of all three is killed and reaped before the outer warden ends with the worker's status. A
// warden's death is a SIGTERM to the one below it, and with `dies_with_parent` the death of whoever
// started the outer one is one to that. No warden kills a worker that outlives its own warden: for
// a few seconds it is told to hurry, and ends what is below it itself.
#pragma once
#include <functional>
#include <glove/base/error.hpp>

namespace glove::kernel {

// Runs `work` in the worker; what it returns is the status to end with. Only the outer warden
// returns from here. Before any thread is made.
[[nodiscard]] auto under_warden(bool dies_with_parent, const std::function<int()>& work)
    -> result<int>;

// Every process below this one, in whatever session it is, within a few seconds.
void kill_descendants();

} // namespace glove::kernel
