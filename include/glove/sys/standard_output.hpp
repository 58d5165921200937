// JSON on standard output.
//
// Guarantees: on a terminal nothing of it draws, moves or reorders anything, and it is the same
// JSON; whoever reads it by a pipe or from a file gets it as it is.
#pragma once
#include <glove/base/text.hpp>
#include <glove/sys/files.hpp>
#include <unistd.h>

namespace glove::sys {

[[nodiscard]] inline auto print_json(std::string_view text) -> result<> {
    const auto out = fd_ref::standard_output();
    return ::isatty(out.get()) == 1 ? write_all(out, printable_json(text)) : write_all(out, text);
}

} // namespace glove::sys
