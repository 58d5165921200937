// Where programs are installed for one user: the tables of package and version managers.
//
// Looks at directories; never at what a program is, and runs nothing.
#pragma once
#include "host/programs.hpp"
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glove::host {

// Paths at which a program of this name may be, the most likely first: along PATH, as if it were
// typed, then where managers and its own installer put it.
[[nodiscard]] auto places_of(const std::string& name, std::span<const std::string_view> own_places,
                             const program_search& search) -> std::vector<std::string>;
// Whether the path is a stand-in that starts a version manager first.
[[nodiscard]] auto is_shim(std::string_view path, const std::string& home) -> bool;
// The directory of the Node.js version that holds `real`; empty when none does.
[[nodiscard]] auto version_directory(const std::string& real, const program_search& search)
    -> std::string;
// The npm package that holds `real`, or the node_modules that it shares with what it depends on;
// empty when none does. Never the home, nor what holds it.
[[nodiscard]] auto package_directory(const std::string& real, const std::string& home)
    -> std::string;
// Whether the inner PATH has this directory anyway.
[[nodiscard]] auto is_on_system_path(std::string_view directory) -> bool;

} // namespace glove::host
