// Moves one thing out of a directory that an agent may write, whatever it is.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <string>

namespace glove::host {

// What a copy to another file system may take at most.
struct copy_budget {
    std::uint64_t bytes = 1ULL << 30U;
    std::size_t entries = 65536;
};

// `name` in `from` becomes `name` in `to`, where it must be free. On another file system it is
// copied, without what is neither file, directory nor link, and then removed; past the budget it
// stays where it is. What its owner closed to himself is opened up, `from` as well.
[[nodiscard]] auto move_away(sys::fd_ref from, const std::string& name, sys::fd_ref to,
                             copy_budget budget = {}) -> result<>;

// The second half of it alone, for tests and other file systems.
[[nodiscard]] auto copy_and_remove(sys::fd_ref from, const std::string& name, sys::fd_ref to,
                                   copy_budget budget = {}) -> result<>;

} // namespace glove::host
