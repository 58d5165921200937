// The options of servers that are contained, each by a `glove exec` of its own.
#pragma once
#include "cli/mediation_options.hpp"
#include <span>

namespace glove::cli {

void declare_containment(CLI::App& app, mediation_words& words);

// Gives every server its perimeter when they are to be contained, and looks at what it can be
// given. Otherwise no server may have a grant. `writable` is what the agent may change, as given.
[[nodiscard]] auto contain_servers(const mediation_words& words,
                                   std::span<const std::string> writable, mediation_wish& into)
    -> result<>;

} // namespace glove::cli
