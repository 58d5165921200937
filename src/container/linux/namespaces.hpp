// The clone that every perimeter begins with, and the maps that follow it.
#pragma once
#include <glove/base/error.hpp>
#include <glove/container/plan.hpp>
#include <sys/types.h>

namespace glove::container {

struct cloned {
    ::pid_t pid = -1; // -1: refused, see errno
    int pidfd = -1;
};

// Starts `body` as process 1 of new namespaces, with a copy of the memory, every signal blocked and
// every handler gone. It makes system calls only, and does not return.
[[nodiscard]] auto clone_into_namespaces(void (*body)(const void*) noexcept, const void* argument)
    -> cloned;

// Maps the one user and the one group, and denies setgroups. The child must not be reaped before,
// so that its number names it and nothing else.
[[nodiscard]] auto write_id_maps(::pid_t child, const user_identity& user) -> result<>;

} // namespace glove::container
