// The perimeter as data: what the agent's file tree, environment and command will be.
//
// Guarantees: every source is pinned by a descriptor and its identity recorded, so what is mounted
// is what was looked at; entries are ordered so that a parent precedes its children, whatever the
// order of the flags. Making a plan changes nothing on the host.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/bridge.hpp>
#include <glove/container/profile.hpp>
#include <glove/ssh/identity.hpp>
#include <glove/sys/files.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::container {

enum class entry_kind : std::uint8_t {
    directory, // made in the root file system, read-only once the agent runs
    link,      // symbolic link; `text` is its target
    file,      // synthesised file; `text` is its content
    bind,      // a pinned path of the host; `text` is its path there
    device,    // a pinned device node of the host
    scratch,   // private writable directory
    mask,      // an unreadable empty stand-in over something inside a grant
    mounted,   // a detached mount, which `pin` is; without one, `text` names what is lent
};

enum class origin : std::uint8_t {
    system,  // discovered: programs, libraries, certificates
    managed, // made by Glove
    asked,   // a grant of the operator
    program, // what a program needs that the operator asked for
    hidden,  // --hide
    guarded, // a socket or FIFO found inside a grant or a system place
    kept,    // a protected path inside a writable grant, or a directory on the way to one
};

struct tree_entry {
    std::string path; // absolute, as the agent sees it
    entry_kind kind = entry_kind::directory;
    container::origin origin = container::origin::managed;
    access mode = access::read;
    ::mode_t permissions = 0755; // of directory, file and scratch
    std::string text = {};
    sys::file_identity identity = {}; // of the pinned source or of what is masked
    sys::unique_fd pin = {};
};

// A place inside a writable grant where a program of the host looks for what to do by itself.
struct protected_path {
    std::string path; // canonical
    std::string_view reason;
    sys::file_identity identity = {}; // type 0: nothing was there
    [[nodiscard]] auto is_there() const noexcept -> bool { return identity.type != 0; }
};

struct user_identity {
    ::uid_t uid = 0; // as the agent sees them
    ::gid_t gid = 0;
    // As whoever writes the maps sees them; empty: by the same numbers.
    std::optional<::uid_t> outside_uid = {};
    std::optional<::gid_t> outside_gid = {};
    [[nodiscard]] auto outer_uid() const noexcept -> ::uid_t { return outside_uid.value_or(uid); }
    [[nodiscard]] auto outer_gid() const noexcept -> ::gid_t { return outside_gid.value_or(gid); }
    [[nodiscard]] auto name() const noexcept -> std::string_view {
        return uid == 0 ? "root" : "agent";
    }
};

// The one private file system: all scratch directories share these two bounds.
struct scratch_budget {
    std::uint64_t bytes = 0;
    std::uint64_t inodes = 0;
};

// A listening socket that stands inside; its descriptor comes out by `running::take_listener`.
struct planned_listener {
    std::string path;            // as the agent names it
    ::mode_t permissions = 0600; // to connect takes the right to write
};

// What the agent may have signed, by whom, and the listener on which it asks.
struct ssh_agent_plan {
    ssh::public_key key;
    sys::unique_fd socket; // of the caller's ssh agent, pinned; never mounted
    std::size_t listener = 0;
};

struct plan {
    std::vector<tree_entry> tree;
    std::vector<std::string> argv;
    std::vector<std::string> programs;    // absolute or relative candidates for exec, in order
    std::vector<std::string> environment; // NAME=VALUE
    std::string work_directory;
    bool has_workspace = false;
    std::optional<std::string> home; // the name of the home that is kept
    user_identity user;
    network_tier network = network_tier::offline;
    std::optional<bridge_plan> bridge;
    std::vector<planned_listener> listeners;
    // Where they really stand: /run can be a link. Empty without one.
    std::string listener_place;
    std::optional<ssh_agent_plan> ssh_agent;
    container::limits limits;
    scratch_budget scratch;
    // A detached mount of a tmpfs, in whose size nobody has a say here, in place of a new one.
    sys::unique_fd scratch_mount;
    // The bounded search for FIFOs did not see every entry of every grant.
    bool guard_search_complete = true;
    // What stays as it is, and what must not appear; in tree order.
    std::vector<protected_path> protected_paths;
    std::vector<std::string> released; // protected but for --unprotect
    // Directories of writable grants that are a repository, or hold a ".git"; sorted.
    std::vector<std::string> repositories;
    std::vector<std::string> git_directories; // git's own, of those and of what is inside of them
    // The bounded search for repositories saw every directory of the writable grants.
    bool protected_search_complete = true;
    // So a repository that is found later is a new one: only closed directories were not seen.
    bool repositories_known = true;
    // What the operator should know although it is no reason to refuse; a sentence each.
    std::vector<std::string> notes;
};

inline constexpr std::string_view home_directory = "/home/agent";
// The one thing that `plan::scratch_mount` may hold: a directory of files that are lent, each of
// which can be put at a place inside. The directory itself cannot be seen there.
inline constexpr std::string_view lent_directory = ".glove";
inline constexpr std::string_view listener_directory = "/run/glove";
// Connections that wait to be accepted; a further one waits in connect(2).
inline constexpr int listener_backlog = 16;
inline constexpr std::size_t most_listeners = 8;
inline constexpr std::string_view host_name = "glove";
inline constexpr std::string_view search_path =
    "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

// Looks at the host and decides. Errors name the flag, the path and the reason.
[[nodiscard]] auto make_plan(const profile& wish) -> result<plan>;

// Parts of `make_plan`, apart so that they can be tested on made-up trees.
// ---------------------------

// A path with every symbolic link on the way to it. `links` are (canonical name, target as stored).
struct resolved_path {
    std::string real;
    std::vector<std::pair<std::string, std::string>> links;
};
[[nodiscard]] auto resolve(const std::string& path) -> result<resolved_path>;

// The system view found under `root` ("" is the host): links stay links, what is missing is left
// out.
[[nodiscard]] auto discover_system(const std::string& root) -> result<std::vector<tree_entry>>;

// Whether `real`, which is canonical, lies in one of the places whose programs every agent sees.
[[nodiscard]] auto is_system_place(std::string_view real) noexcept -> bool;

// Files of /etc that Glove writes itself. `bridge` is null where nothing can be reached.
[[nodiscard]] auto identity_files(const user_identity& user, std::string_view shell,
                                  const bridge_plan* bridge) -> std::vector<tree_entry>;

// Environment of the agent from the caller's (`outer`) and the asked-for variables.
[[nodiscard]] auto make_environment(const char* const* outer, const profile& wish,
                                    const user_identity& user, std::string_view shell)
    -> result<std::vector<std::string>>;

// At most a quarter of `ram_bytes`, inodes included.
[[nodiscard]] auto default_scratch(std::uint64_t ram_bytes) noexcept -> scratch_budget;

// Sockets and FIFOs that exist below `roots` now. Sockets come from the kernel's table of bound
// names, so their number, not the size of the tree, decides the cost; FIFOs come from a walk of at
// most `entry_limit` directory entries, which does not enter `by_table_only`.
struct rendezvous {
    std::string path;
    bool is_socket = false;
};
struct rendezvous_search {
    std::vector<rendezvous> found;
    bool complete = true;
    // The first place inside the roots that could not be looked at, for a reason that does not
    // keep the agent out of it as well; 0 when there is none.
    int failed_os = 0;
    std::string failed_path = {};
};
// Below `socket_roots` only sockets are looked for.
[[nodiscard]] auto find_rendezvous(const std::vector<std::string>& roots, std::size_t entry_limit,
                                   const std::vector<std::string>& socket_roots = {})
    -> rendezvous_search;

} // namespace glove::container
