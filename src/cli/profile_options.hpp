// A profile as options of `glove exec`: what it says goes in front of the words that were given.
#pragma once
#include "cli/verbs.hpp"
#include <glove/base/error.hpp>
#include <glove/container/profile.hpp>
#include <glove/host/profiles.hpp>
#include <optional>
#include <string>
#include <vector>

namespace glove::cli {

// `call` with the options of the profile before its own, but for those that its own replace.
// `parsed` knows which were given.
[[nodiscard]] auto with_profile(const CLI::App& parsed, const invocation& call,
                                const host::effective_profile& profile) -> invocation;

// The command of a run: the profile's program for no words and for words that begin with an
// option or with the program's name; otherwise the words themselves.
[[nodiscard]] auto command_of(const host::run_profile& profile, const invocation& call)
    -> result<std::vector<std::string>>;

// What the profile needs beside its options.
void add_profile(const host::run_profile& profile, container::profile& into);
// What --path offers.
[[nodiscard]] auto add_path_programs(container::profile& into) -> result<>;

// Everything that `glove exec -p` would look up, without running anything.
struct profile_trial {
    std::string program;            // where it is; empty when the profile names none
    std::optional<error> not_found; // the program alone is missing
};
[[nodiscard]] auto try_profile(const host::effective_profile& profile) -> result<profile_trial>;

} // namespace glove::cli
