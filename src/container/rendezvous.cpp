// Finds the sockets and FIFOs inside grants, and the sockets of services installed below /opt or
// /usr: a read-only mount does not stop connect(2), so each of them would be a way to a process of
// the host.
//
// The cost does not grow with the tree: sockets come from the kernel's table of bound names, FIFOs
// from a breadth-first walk that stops at a bound and says so. What appears later is not seen; the
// threat model names that residual.
#include <algorithm>
#include <glove/container/tree_walk.hpp>
#include <iterator>
#include <map>
#include <set>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::size_t socket_table_limit = 16UL * 1024 * 1024; // bytes of /proc/net/unix

// What is gone, and what the invoker may not look at, is as closed to the agent.
[[nodiscard]] auto is_out_of_reach(int os) noexcept -> bool {
    return os == ENOENT || os == ENOTDIR || os == EACCES || os == ELOOP;
}

void note_failure(rendezvous_search& out, int os, const std::string& path) {
    if (is_out_of_reach(os) || out.failed_os != 0) return;
    out.failed_os = os;
    out.failed_path = path;
}

// 0 when there is nothing to be seen.
[[nodiscard]] auto type_of(const std::string& path, rendezvous_search& out) -> ::mode_t {
    struct ::stat found{};
    if (::lstat(path.c_str(), &found) == 0) return found.st_mode & S_IFMT;
    note_failure(out, errno, path);
    return 0;
}

// The path is the eighth column of a line and may hold spaces; an abstract name starts with '@'.
[[nodiscard]] auto bound_path(std::string_view line) -> std::string_view {
    for (int column = 0; column < 7; ++column) {
        const auto space = line.find(' ');
        if (space == std::string_view::npos) return {};
        line.remove_prefix(space);
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    }
    return line;
}

using place_set = std::set<std::string, std::less<>>;

[[nodiscard]] auto inside_any(const place_set& roots, const std::string& path) -> bool {
    for (auto at = path; !at.empty(); at = sys::parent_of(at)) {
        if (roots.contains(at)) return true;
        if (at == "/") break;
    }
    return false;
}

[[nodiscard]] auto add_sockets(const place_set& roots, rendezvous_search& out) -> bool {
    const auto table = sys::read_file("/proc/net/unix", socket_table_limit);
    if (!table) return false;
    std::map<std::string, std::string> real_parents; // a host has many sockets in few directories
    const auto canonical = [&](std::string_view name) -> std::string {
        auto parent = sys::parent_of(name);
        const auto known = real_parents.find(parent);
        if (known != real_parents.end())
            return known->second + std::string{name.substr(parent.size())};
        const auto found = resolve(parent);
        if (!found && !is_out_of_reach(found.error().os)) {
            // Elsewhere on the host, a place that does not answer need not concern this run.
            if (inside_any(roots, parent)) note_failure(out, found.error().os, parent);
            out.complete = false;
        }
        const auto& real = real_parents[parent] = found ? found->real : std::string{};
        return real + std::string{name.substr(parent.size())};
    };
    for (std::string_view rest{*table}; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        const auto name = bound_path(line);
        // Abstract names stay outside with the network namespace; one bound by a relative name is
        // anywhere, and only the walk can find it.
        if (!name.starts_with('/')) continue;
        // Bound through a link, perhaps: grants go by canonical names.
        auto path = canonical(name);
        if (inside_any(roots, path) && type_of(path, out) == S_IFSOCK)
            out.found.push_back({std::move(path), true});
    }
    return true;
}

} // namespace

auto find_rendezvous(const std::vector<std::string>& roots, std::size_t entry_limit,
                     const std::vector<std::string>& socket_roots) -> rendezvous_search {
    rendezvous_search out;
    place_set with_sockets{roots.begin(), roots.end()};
    with_sockets.insert(socket_roots.begin(), socket_roots.end());
    if (with_sockets.empty()) return out;
    if (!add_sockets(with_sockets, out)) out.complete = false;
    auto names = walk_trees(roots, entry_limit);
    out.complete &= names.complete;
    std::ranges::move(names.found, std::back_inserter(out.found));
    if (names.failed_os != 0) note_failure(out, names.failed_os, names.failed_path);
    std::ranges::sort(out.found, {}, &rendezvous::path);
    const auto repeated = std::ranges::unique(out.found, {}, &rendezvous::path);
    out.found.erase(repeated.begin(), repeated.end());
    return out;
}

} // namespace glove::container
