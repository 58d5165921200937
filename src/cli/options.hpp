// Parsing and help of a verb's options, the same for every verb.
#pragma once
#include "cli/verbs.hpp"
#include <glove/base/error.hpp>
#include <optional>

namespace glove::cli {

// Prints the failure and returns the exit status of a usage error.
[[nodiscard]] auto usage_failure(const error& problem) -> int;

// Parses the words before "--". An exit status when there is nothing more to do: help was printed,
// or the options were refused and the reason printed. `usage` is the line that help shows.
[[nodiscard]] auto parse_options(CLI::App& app, const char* usage, const invocation& call)
    -> std::optional<int>;

// Refuses words after "--" of a verb that starts nothing.
[[nodiscard]] auto unexpected_command(const invocation& call, const char* usage) -> int;

} // namespace glove::cli
