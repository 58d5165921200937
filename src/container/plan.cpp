// Turns a profile into a plan: looks up and pins every source, refuses what cannot be granted
// exactly as asked, and puts the tree in mounting order.
//
// Never widens a grant: an unresolvable, overlapping, managed or control path is an error, not a
// smaller or larger mount.
#include <algorithm>
#include <array>
#include <glove/container/plan.hpp>
#include <map>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

namespace glove::container {

namespace {

// '/' sorts before every other byte, so that a directory is followed by what it holds.
struct path_order {
    using is_transparent = void;
    auto operator()(std::string_view a, std::string_view b) const noexcept -> bool {
        return std::ranges::lexicographical_compare(a, b, {}, rank, rank);
    }
    static auto rank(char c) noexcept -> int {
        return c == '/' ? 0 : static_cast<unsigned char>(c) + 1;
    }
};

struct scratch_place {
    std::string_view path;
    ::mode_t permissions;
};
constexpr std::array scratch_places{
    scratch_place{home_directory, 0700}, scratch_place{"/tmp", 01777},
    scratch_place{"/var/tmp", 01777},    scratch_place{"/run", 0755},
    scratch_place{"/dev/shm", 01777},
};
// Places of which an inner path may be granted, but which are Glove's as a whole.
constexpr std::array<std::string_view, 10> shared_places{
    "/usr", "/etc",       "/opt",       "/tmp",  "/var/tmp",
    "/run", "/nix/store", "/gnu/store", "/snap", home_directory};
// Places of which nothing can be granted.
constexpr std::array<std::string_view, 6> closed_places{"/proc", "/dev", "/bin",
                                                        "/sbin", "/lib", "/lib64"};
constexpr std::array device_nodes{"/dev/null",   "/dev/zero",    "/dev/full",
                                  "/dev/random", "/dev/urandom", "/dev/tty"};
struct fixed_link {
    const char* path;
    const char* target;
};
constexpr std::array device_links{
    fixed_link{"/dev/fd", "/proc/self/fd"},
    fixed_link{"/dev/stdin", "/proc/self/fd/0"},
    fixed_link{"/dev/stdout", "/proc/self/fd/1"},
    fixed_link{"/dev/stderr", "/proc/self/fd/2"},
    fixed_link{"/dev/ptmx", "pts/ptmx"},
    fixed_link{"/etc/mtab", "/proc/self/mounts"},
    fixed_link{"/var/run", "/run"},
};
// Directories the kernel's own file systems are mounted on.
constexpr std::array mount_points{"/proc", "/dev/pts"};

constexpr std::size_t guard_walk_limit = 1024; // directory entries, all grants together

[[nodiscard]] auto refuse(errc code, std::string_view flag, std::string_view path,
                          std::string_view why, std::string remedy = {}) {
    return fail(code, "grant.check",
                std::string{flag}.append(" ").append(path).append(": ").append(why),
                std::move(remedy));
}

class tree_builder {
public:
    // The first entry of a path wins; callers add the more important ones first.
    void add(tree_entry entry) {
        const auto at = entry.path;
        entries_.try_emplace(at, std::move(entry));
    }
    [[nodiscard]] auto covered(std::string_view path) const -> bool {
        for (auto at = std::string{path}; at != "/"; at = sys::parent_of(at))
            if (const auto found = entries_.find(at);
                found != entries_.end() && found->second.kind == entry_kind::bind)
                return true;
        return false;
    }
    // Every parent that nothing mounted provides becomes a directory.
    [[nodiscard]] auto finish() && -> std::vector<tree_entry> {
        std::vector<std::string> missing;
        for (const auto& [path, entry] : entries_)
            for (auto up = sys::parent_of(path);
                 up != "/" && !entries_.contains(up) && !covered(up); up = sys::parent_of(up))
                missing.push_back(up);
        for (auto& path : missing) add({.path = std::move(path)});
        std::vector<tree_entry> out;
        out.reserve(entries_.size());
        std::string masked; // what lies below a mask does not exist any more
        for (auto& [path, entry] : entries_) {
            if (!masked.empty() && sys::holds(masked, path)) continue;
            if (entry.kind == entry_kind::mask) masked = path;
            out.push_back(std::move(entry));
        }
        return out;
    }

private:
    std::map<std::string, tree_entry, path_order> entries_;
};

// What the flags name, looked up.
struct located_grant {
    std::string_view flag;
    std::string given;
    access mode;
    resolved_path where;
    sys::file_identity identity;
    sys::unique_fd pin;
};

[[nodiscard]] auto check_place(const located_grant& g) -> result<> {
    const std::string_view real{g.where.real};
    if (real == "/")
        return refuse(errc::not_permitted, g.flag, g.given,
                      "the whole file system cannot be granted",
                      "name the directories that the agent needs");
    const auto holds_managed = [&](std::string_view place) { return sys::holds(real, place); };
    for (const auto place : closed_places)
        if (sys::holds(place, real) || holds_managed(place))
            return refuse(errc::not_permitted, g.flag, g.given,
                          "overlaps " + std::string{place} + ", which Glove provides itself");
    for (const auto place : shared_places)
        if (holds_managed(place))
            return refuse(errc::not_permitted, g.flag, g.given,
                          "contains " + std::string{place} + ", which Glove provides itself",
                          "name the paths below it that the agent needs");
    if (sys::holds("/sys", real) && g.mode == access::write)
        return refuse(errc::not_permitted, g.flag, g.given, "/sys can only be read",
                      "use --read " + g.given);
    return {};
}

[[nodiscard]] auto check_type(const located_grant& g) -> result<> {
    switch (g.identity.type) {
    case S_IFDIR:
    case S_IFREG: return {};
    case S_IFSOCK:
        return refuse(errc::not_permitted, g.flag, g.given,
                      "is a socket: it would connect the agent to a process of the host");
    case S_IFIFO:
        return refuse(errc::not_permitted, g.flag, g.given,
                      "is a FIFO: it would connect the agent to a process of the host");
    default: return refuse(errc::not_permitted, g.flag, g.given, "is a device");
    }
}

[[nodiscard]] auto locate(std::string_view flag, const std::string& given, access mode)
    -> result<located_grant> {
    auto where = resolve(given);
    if (!where) {
        auto problem = std::move(where).error();
        problem.detail = std::string{flag} + " " + given;
        return std::unexpected(std::move(problem));
    }
    auto pin = sys::pin(where->real, sys::follow::no);
    if (!pin) {
        auto problem = std::move(pin).error();
        problem.detail = std::string{flag} + " " + given;
        return std::unexpected(std::move(problem));
    }
    GLOVE_TRY(const auto facts, sys::inspect(*pin));
    return located_grant{flag, given, mode, *std::move(where), facts.identity, *std::move(pin)};
}

[[nodiscard]] auto check_control(const std::vector<located_grant>& grants,
                                 const std::vector<std::string>& control_paths) -> result<> {
    for (const auto& path : control_paths) {
        // A control file may not exist yet; its nearest existing parent decides then.
        auto at = path;
        auto real = resolve(at);
        while (!real && at != "/") {
            at = sys::parent_of(at);
            real = resolve(at);
        }
        if (!real) return std::unexpected(std::move(real).error());
        const auto full =
            real->real == "/" ? path : real->real + path.substr(at == "/" ? 0 : at.size());
        for (const auto& g : grants)
            if (sys::holds(g.where.real, full) || sys::holds(full, g.where.real))
                return refuse(errc::not_permitted, g.flag, g.given,
                              "would show Glove's own files at " + full + " to the agent",
                              "grant a directory that does not hold them");
    }
    return {};
}

[[nodiscard]] auto check_overlap(const std::vector<located_grant>& sorted) -> result<> {
    for (std::size_t i = 1; i < sorted.size(); ++i) {
        const auto& outer = sorted[i - 1];
        const auto& inner = sorted[i];
        if (sys::holds(outer.where.real, inner.where.real))
            return refuse(errc::conflict, inner.flag, inner.given,
                          "overlaps " + std::string{outer.flag} + " " + outer.given,
                          "give each path once; use --hide for what must not be seen");
    }
    return {};
}

[[nodiscard]] auto locate_grants(const profile& wish) -> result<std::vector<located_grant>> {
    std::vector<located_grant> out;
    out.reserve(wish.grants.size() + 1);
    if (wish.workspace) {
        GLOVE_TRY(auto found, locate("--workspace", *wish.workspace, access::write));
        if (found.identity.type != S_IFDIR)
            return refuse(errc::invalid_input, "--workspace", *wish.workspace,
                          "is not a directory");
        out.push_back(std::move(found));
    }
    for (const auto& asked : wish.grants) {
        GLOVE_TRY(auto found, locate(asked.flag, asked.path, asked.mode));
        out.push_back(std::move(found));
    }
    for (const auto& g : out) {
        GLOVE_CHECK(check_place(g));
        GLOVE_CHECK(check_type(g));
    }
    GLOVE_CHECK(check_control(out, wish.control_paths));
    std::ranges::sort(out, path_order{}, [](const auto& g) -> const auto& { return g.where.real; });
    GLOVE_CHECK(check_overlap(out));
    return out;
}

[[nodiscard]] auto holder_of(const std::vector<located_grant>& grants, std::string_view path)
    -> const located_grant* {
    const auto found =
        std::ranges::find_if(grants, [&](const auto& g) { return sys::holds(g.where.real, path); });
    return found == grants.end() ? nullptr : &*found;
}

// A mask stands over an existing inode; its identity is checked again where it is mounted.
[[nodiscard]] auto mask_over(std::string path, origin why) -> result<tree_entry> {
    GLOVE_TRY(auto pin, sys::pin(path, sys::follow::no));
    GLOVE_TRY(const auto facts, sys::inspect(pin));
    return tree_entry{.path = std::move(path),
                      .kind = entry_kind::mask,
                      .origin = why,
                      .identity = facts.identity,
                      .pin = std::move(pin)};
}

[[nodiscard]] auto add_hidden(tree_builder& tree, const std::vector<located_grant>& grants,
                              const std::vector<std::string>& hidden) -> result<> {
    for (const auto& given : hidden) {
        GLOVE_TRY(const auto found, locate("--hide", given, access::read));
        const auto* const holder = holder_of(grants, found.where.real);
        if (holder == nullptr)
            return refuse(errc::invalid_input, "--hide", given,
                          "is not inside a granted path, so the agent cannot see it anyway");
        if (holder->where.real == found.where.real)
            return refuse(errc::conflict, "--hide", given,
                          "hides the whole of " + std::string{holder->flag} + " " + holder->given);
        GLOVE_TRY(auto entry, mask_over(found.where.real, origin::hidden));
        tree.add(std::move(entry));
    }
    return {};
}

[[nodiscard]] auto add_guards(tree_builder& tree, const std::vector<located_grant>& grants,
                              const std::vector<tree_entry>& system) -> result<bool> {
    std::vector<std::string> roots;
    roots.reserve(grants.size());
    for (const auto& g : grants)
        if (g.identity.type == S_IFDIR && !sys::holds("/sys", g.where.real))
            roots.push_back(g.where.real);
    std::vector<std::string> system_roots;
    for (const auto& entry : system)
        if (entry.kind == entry_kind::bind && entry.identity.type == S_IFDIR)
            system_roots.push_back(entry.path);
    auto search = find_rendezvous(roots, guard_walk_limit, system_roots);
    for (auto& found : search.found)
        if (auto entry = mask_over(std::move(found.path), origin::guarded))
            tree.add(*std::move(entry)); // one that vanished meanwhile needs no mask
    return search.complete;
}

void add_grants(tree_builder& tree, std::vector<located_grant>& grants) {
    for (auto& g : grants)
        tree.add({.path = g.where.real,
                  .kind = entry_kind::bind,
                  .origin = origin::asked,
                  .mode = g.mode,
                  .text = g.where.real,
                  .identity = g.identity,
                  .pin = std::move(g.pin)});
    for (auto& g : grants)
        for (auto& [path, target] : g.where.links)
            // A link inside something mounted is there already.
            if (!tree.covered(path))
                tree.add({.path = path,
                          .kind = entry_kind::link,
                          .origin = origin::asked,
                          .text = target});
}

[[nodiscard]] auto add_devices(tree_builder& tree) -> result<> {
    for (const auto* const node : device_nodes) {
        GLOVE_TRY(auto pin, sys::pin(node, sys::follow::no));
        GLOVE_TRY(const auto facts, sys::inspect(pin));
        tree.add({.path = node,
                  .kind = entry_kind::device,
                  .text = node,
                  .identity = facts.identity,
                  .pin = std::move(pin)});
    }
    for (const auto& link : device_links)
        tree.add({.path = link.path, .kind = entry_kind::link, .text = link.target});
    return {};
}

[[nodiscard]] auto login_shell() -> std::string_view {
    return sys::exists("/bin/bash") ? "/bin/bash" : "/bin/sh";
}

// A name with a slash is taken as it is; another is looked for along the agent's own PATH.
[[nodiscard]] auto candidates(const std::string& program) -> std::vector<std::string> {
    if (program.find('/') != std::string::npos) return {program};
    std::vector<std::string> out;
    for (auto rest = search_path; !rest.empty();) {
        const auto directory = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(directory.size() + 1, rest.size()));
        out.push_back(std::string{directory} + "/" + program);
    }
    return out;
}

[[nodiscard]] auto ram_bytes() -> std::uint64_t {
    struct ::sysinfo info{};
    return ::sysinfo(&info) == 0 ? std::uint64_t{info.totalram} * info.mem_unit : 0;
}

[[nodiscard]] auto make_tree(const profile& wish, plan& out) -> result<std::vector<tree_entry>> {
    GLOVE_TRY(auto grants, locate_grants(wish));
    GLOVE_TRY(auto system, discover_system(""));
    tree_builder tree;
    GLOVE_CHECK(add_hidden(tree, grants, wish.hidden));
    GLOVE_TRY(out.guard_search_complete, add_guards(tree, grants, system));
    if (wish.workspace)
        out.work_directory =
            std::ranges::find(grants, std::string_view{"--workspace"}, &located_grant::flag)
                ->where.real;
    else out.work_directory = home_directory;
    add_grants(tree, grants);
    for (const auto& place : scratch_places)
        tree.add({.path = std::string{place.path},
                  .kind = entry_kind::scratch,
                  .mode = access::write,
                  .permissions = place.permissions});
    GLOVE_CHECK(add_devices(tree));
    for (const auto* const point : mount_points) tree.add({.path = point});
    for (auto& file : identity_files(out.user, login_shell())) tree.add(std::move(file));
    for (auto& entry : system) tree.add(std::move(entry));
    return std::move(tree).finish();
}

} // namespace

auto default_scratch(std::uint64_t ram_bytes) noexcept -> scratch_budget {
    // What `size` does not count: an inode of tmpfs and the longest name it can have.
    constexpr std::uint64_t inode_bytes = 1536;
    const auto budget = std::max<std::uint64_t>(ram_bytes / 4, 64UL * 1024 * 1024);
    return {.bytes = budget / 4 * 3, .inodes = budget / 4 / inode_bytes};
}

auto make_plan(const profile& wish) -> result<plan> {
    if (wish.argv.empty() || wish.argv.front().empty())
        return fail(errc::invalid_input, "plan.command", "no command was given",
                    "put the command after --, as in: glove exec --workspace . -- bash");
    plan out;
    out.user = {.uid = ::geteuid(), .gid = ::getegid()};
    out.argv = wish.argv;
    out.programs = candidates(wish.argv.front());
    out.network = wish.network;
    out.limits = wish.limits;
    out.scratch = default_scratch(ram_bytes());
    if (wish.limits.scratch_bytes) out.scratch.bytes = *wish.limits.scratch_bytes;
    out.has_workspace = wish.workspace.has_value();
    GLOVE_TRY(out.environment, make_environment(::environ, wish, out.user, login_shell()));
    GLOVE_TRY(out.tree, make_tree(wish, out));
    return out;
}

} // namespace glove::container
