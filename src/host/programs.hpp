// Finds a program that the caller has installed, and what it needs to be seen by: its package, and
// the interpreter that its first line names.
//
// Guarantees: everything is found by looking; nothing is ever run. Nothing that the run may write
// is found. A place that others could have changed is refused, and so is a program that needs the
// whole home to be seen. What makes a directory one with its program must be the caller's as well,
// and a link does not bring a directory of another tree.
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
    std::vector<std::string> homes;    // canonical, that one too: never shown as a whole
    std::vector<std::string> path;     // absolute directories of PATH, in order
    std::vector<std::string> prefixes; // of npm, nvm: as the caller's variables and .npmrc say
    std::vector<std::string> writable; // canonical; what a run may write is not the caller's
    std::vector<std::string> closed;   // Glove's own places, which nothing may hold
};
// Of the calling process. `writable` is what the run may change, as given.
[[nodiscard]] auto caller_search(std::span<const std::string> writable) -> result<program_search>;
// The home of a user in the text of /etc/passwd; empty when it does not say.
[[nodiscard]] auto home_in(std::string_view accounts, unsigned user) -> std::string;

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
