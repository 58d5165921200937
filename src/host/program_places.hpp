// Where programs are installed for one user: the tables of package and version managers.
//
// Looks at directories; never at what a program is, and runs nothing.
#pragma once
#include "host/programs.hpp"
#include "host/trusted.hpp"
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
// the Python environment or package of whose bin it is, if it was found at `path` in the same tree.
// Empty when there is none. Never a home, nor what holds it, nor what others could change.
[[nodiscard]] auto package_directory(const std::string& path, const std::string& real,
                                     const program_search& search) -> std::string;
// Whether a directory may be shown as a whole: nobody else may put anything into it.
[[nodiscard]] auto is_closed_to_others(const std::string& directory) -> bool;
// Whether the path lies in what the run may write.
[[nodiscard]] auto is_writable(std::string_view path, const program_search& search) -> bool;
// The same of a file, and of each link on the way to it.
[[nodiscard]] auto is_written(const std::string& path, const trusted_file& file,
                              const program_search& search) -> bool;
// Whether the inner PATH has this directory anyway.
[[nodiscard]] auto is_on_system_path(std::string_view directory) -> bool;

} // namespace glove::host
