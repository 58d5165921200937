// Private homes of agents that outlast a run, and the logins that they share.
//
// A home is a directory that one agent after the other may write; nothing in it is believed. It is
// only ever reached by descriptor, beneath its own top, without links. A credential of a profile is
// kept once, in a store that no agent sees, and lent: copied into a home when it is opened, and
// copied back when the agent changed it.
//
// Guarantees: one home is used by several runs at once only when their grants are equal; what the
// store held before the last return is kept beside it. Nothing here says what is inside of a
// credential.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/profile.hpp>
#include <glove/sys/fd.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::host {

// [a-z0-9][a-z0-9._-]{0,63}; "none" is no name.
[[nodiscard]] auto is_home_name(std::string_view name) noexcept -> bool;
// Of a home that an operator names: "usage" is the step of the error.
[[nodiscard]] auto check_home_name(const std::string& name) -> result<>;

struct seed_file {
    std::string path; // relative to the home
    std::string content;
};

// What a run may reach, as one text: `digest` decides whether two runs may share a home, `words`
// tells people.
struct run_grants {
    std::string digest;
    std::string words;
};
// Of everything in a profile that widens or narrows what the agent reaches. Values of variables
// are not in it, their names are.
[[nodiscard]] auto grants_of(const container::profile& wish) -> result<run_grants>;

// Exactly one home: `name`, or that of `profile` for `project`.
struct home_wish {
    std::string name;
    std::string profile;                  // empty: no logins are lent
    std::string project;                  // real path of the workspace; empty: there is none
    std::vector<std::string> credentials; // of the profile, relative to the home
    std::vector<seed_file> seeds;         // written where nothing has their name
    run_grants grants;
};

// The name under which a home is listed: `name`, or PROFILE+DIGEST.
[[nodiscard]] auto home_key(const home_wish& wish) -> result<std::string>;

// For a plan that is only explained: makes and changes nothing.
[[nodiscard]] auto look_at_home(const home_wish& wish) -> result<container::kept_home>;

class open_home {
public:
    // Errors with errc::conflict: another run with other grants uses it.
    [[nodiscard]] static auto open(const home_wish& wish) -> result<open_home>;
    open_home(open_home&&) noexcept;
    auto operator=(open_home&&) noexcept -> open_home&;
    ~open_home(); // lets go of the home; what `finish` did not return, the next opening does

    [[nodiscard]] auto directory() const -> container::kept_home;
    [[nodiscard]] auto descriptor() const noexcept -> sys::fd_ref;
    // What the operator should know about the opening; a sentence each.
    [[nodiscard]] auto warnings() const -> const std::vector<std::string>&;
    // Takes changed credentials back. To be called once, when the agent has ended, however it did.
    [[nodiscard]] auto finish() -> result<std::vector<std::string>>;

private:
    struct state;
    explicit open_home(std::unique_ptr<state> made) noexcept;
    std::unique_ptr<state> state_;
};

// --- glove home

struct home_facts {
    std::string name, profile, project;
    std::string path; // of the directory that agents see
    std::vector<std::string> credentials;
    std::int64_t created_ns = 0;
    std::int64_t used_ns = 0;
    bool in_use = false;
    std::string grants;      // of the runs that use it, in words
    std::uint64_t bytes = 0; // on the disk
    std::uint64_t entries = 0;
    bool counted_all = true;
};
struct home_list {
    std::vector<home_facts> homes;
    std::vector<error> problems;        // homes that could not be read
    std::vector<std::string> leftovers; // of removals that did not come to their end
};
[[nodiscard]] auto list_homes() -> result<home_list>;
[[nodiscard]] auto show_home(const std::string& name) -> result<home_facts>;

// Takes changed credentials back first; the answer is what the operator should know.
[[nodiscard]] auto remove_home(const std::string& name) -> result<std::vector<std::string>>;

struct import_request {
    std::string home;                     // into this home, or
    std::string profile;                  // into the store of this profile
    std::vector<std::string> credentials; // of that profile: nothing else goes into its store
    std::vector<std::string> files;       // FILE or FILE:TARGET
};
// One sentence for each file.
[[nodiscard]] auto import_files(const import_request& request) -> result<std::vector<std::string>>;

} // namespace glove::host
