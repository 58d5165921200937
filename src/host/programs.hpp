// Finds a program that the caller has installed, and what it needs to be seen by: its package, and
// the interpreter that its first line names.
//
// Guarantees: everything is found by looking; nothing is ever run. Nothing inside of the project is
// found. A place that others could have changed is refused, and so is a program that needs the
// whole home to be seen.
#pragma once
#include <glove/base/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glove::host {

// What of the caller is looked at.
struct program_search {
    std::string home;                  // canonical; empty: there is none
    std::vector<std::string> path;     // absolute directories of PATH, in order
    std::vector<std::string> prefixes; // of npm, nvm: as the caller's variables and .npmrc say
    std::string project;               // canonical; what is in it is not the caller's
    std::vector<std::string> closed;   // Glove's own places, which nothing may hold
};
// Of the calling process. `project` is the workspace as given, or empty.
[[nodiscard]] auto caller_search(const std::string& project) -> result<program_search>;

// Paths that must be seen, outside of the system's. A link among them brings its target.
struct closure {
    std::vector<std::string> files;
    std::vector<std::string> directories; // for PATH
    void join(closure other);
};

struct found_program {
    std::string path; // where it was found, perhaps a link
    closure needs;
};

// `name` is a name or an absolute path; `own_places` are relative to the home, a last component "*"
// stands for the highest version. errc::not_found when there is none.
[[nodiscard]] auto find_program(std::string_view name, std::span<const std::string_view> own_places,
                                const program_search& search) -> result<found_program>;

// What the file or link at `path` needs.
[[nodiscard]] auto closure_of(const std::string& path, const program_search& search)
    -> result<closure>;

// The directories of PATH below the home, and what the links in them need.
struct path_offer {
    closure needs;
    std::vector<std::string> left_out; // "PATH (why)"
};
[[nodiscard]] auto offer_path(const program_search& search) -> result<path_offer>;

} // namespace glove::host
