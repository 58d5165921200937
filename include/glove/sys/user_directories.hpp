// Where Glove's own files of the calling user are (XDG base directories). Looks at the environment
// and at nothing else; makes nothing.
#pragma once
#include <glove/base/error.hpp>
#include <string>

namespace glove::sys {

// $XDG_STATE_HOME/glove, or ~/.local/state/glove: audit records.
[[nodiscard]] auto state_directory() -> result<std::string>;
// $XDG_CONFIG_HOME/glove, or ~/.config/glove: settings.
[[nodiscard]] auto configuration_directory() -> result<std::string>;

} // namespace glove::sys
