// What stands behind `gloved` on its command line.
//
// Guarantees: an option that is not known, comes twice, lacks its value or does not go with another
// one is an error that names it; nothing is looked at but the words.
#pragma once
#include <glove/base/error.hpp>
#include <glove/control/service_config.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace glove::daemon {

enum class action : std::uint8_t { serve, init_state, print_version, print_help };

struct invocation {
    action what = action::serve;
    std::optional<std::string> config_file = {};
    control::service_config settings = {}; // of `serve` without a file
};

// Steps: usage, and config.* for settings that do not go together.
[[nodiscard]] auto parse_options(std::span<const char* const> words) -> result<invocation>;
[[nodiscard]] auto help_text() -> std::string;

} // namespace glove::daemon
