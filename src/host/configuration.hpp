// The user's configuration file, $XDG_CONFIG_HOME/glove/config.toml.
//
// Guarantees: it is read only when others could not have written it; what is not understood is an
// error that names the file, the line and the key, never ignored. It says nothing about the
// machine: no path in it is looked at. No other file is ever read, and none of a project.
#pragma once
#include <cstddef>
#include <glove/host/settings.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::host {

struct configured_profile {
    std::string name;
    std::size_t line = 0;
    std::string extends; // empty: nothing
    settings values;
};

struct configuration {
    std::string file;
    std::vector<configured_profile> profiles; // by name
};

// Whether it can name a profile: a-z, 0-9, "-" and "_", at most 64. Such a name can name a home.
[[nodiscard]] auto is_profile_name(std::string_view name) noexcept -> bool;

// `home` stands for "~"; empty when there is none.
[[nodiscard]] auto parse_configuration(std::string_view text, const std::string& file,
                                       const std::string& home) -> result<configuration>;
// The caller's. Without a file there are no profiles in it.
[[nodiscard]] auto read_configuration() -> result<configuration>;

} // namespace glove::host
