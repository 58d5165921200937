// What an upstream is started with, found out from its wish and the caller's environment.
#pragma once
#include <glove/mcp/upstream_process.hpp>

namespace glove::mcp {

// Absolute. A name with a slash begins in the working directory; another is looked for on the
// caller's PATH, of which entries that are not absolute count nothing.
[[nodiscard]] auto find_upstream_program(const upstream_wish& what, const char* const* outer)
    -> result<std::string>;
// The words of `glove exec` around it; the wish has a perimeter. No value of a variable is among
// them: everybody on the machine can read them.
[[nodiscard]] auto contained_arguments(const upstream_wish& what) -> std::vector<std::string>;
// What programs need to find their way, what is passed and what is set; no variable twice.
[[nodiscard]] auto upstream_environment(const upstream_wish& what, const char* const* outer)
    -> std::vector<std::string>;

} // namespace glove::mcp
