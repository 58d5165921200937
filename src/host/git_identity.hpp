// Who the caller is to Git, from the global settings.
//
// Reads `name` and `email` of the section [user] and nothing else: no other file that a setting
// includes, no project, and Git is not run. What is not understood is as if it were not there.
#pragma once
#include <string>
#include <string_view>

namespace glove::host {

struct git_identity {
    std::string name, email; // empty: not set
};

// Adds what `text` sets to `into`; a later value replaces an earlier one.
void read_git_identity(std::string_view text, git_identity& into);
// Of the caller: $GIT_CONFIG_GLOBAL alone when that is set, otherwise $XDG_CONFIG_HOME/git/config
// and then ~/.gitconfig.
[[nodiscard]] auto caller_git_identity() -> git_identity;
// A .gitconfig that says it; empty when nothing is known.
[[nodiscard]] auto git_settings(const git_identity& who) -> std::string;

} // namespace glove::host
