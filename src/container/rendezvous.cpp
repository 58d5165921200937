// Finds the sockets and FIFOs inside grants, and the sockets of services installed below /opt or
// /usr: a read-only mount does not stop connect(2), so each of them would be a way to a process of
// the host.
//
// The cost does not grow with the tree: sockets come from the kernel's table of bound names, FIFOs
// from a breadth-first walk that stops at a bound and says so. What appears later is not seen; the
// threat model names that residual.
#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <glove/container/plan.hpp>
#include <map>
#include <memory>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::size_t socket_table_limit = 16UL * 1024 * 1024; // bytes of /proc/net/unix

[[nodiscard]] auto is_type(const std::string& path, ::mode_t type) -> bool {
    struct ::stat found{};
    return ::lstat(path.c_str(), &found) == 0 && (found.st_mode & S_IFMT) == type;
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

[[nodiscard]] auto inside_any(const std::vector<std::string>& roots, std::string_view path)
    -> bool {
    return std::ranges::any_of(roots, [&](const auto& root) { return sys::holds(root, path); });
}

[[nodiscard]] auto add_sockets(const std::vector<std::string>& roots, rendezvous_search& out)
    -> bool {
    const auto table = sys::read_file("/proc/net/unix", socket_table_limit);
    if (!table) return false;
    std::map<std::string, std::string> real_parents; // a host has many sockets in few directories
    const auto canonical = [&](std::string_view name) -> std::string {
        auto parent = sys::parent_of(name);
        const auto known = real_parents.find(parent);
        if (known != real_parents.end())
            return known->second + std::string{name.substr(parent.size())};
        const auto found = resolve(parent);
        const auto& real = real_parents[parent] = found ? found->real : std::string{};
        return real + std::string{name.substr(parent.size())};
    };
    for (std::string_view rest{*table}; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        const auto name = bound_path(line);
        if (!name.starts_with('/')) continue;
        // Bound through a link, perhaps: grants go by canonical names.
        auto path = canonical(name);
        if (inside_any(roots, path) && is_type(path, S_IFSOCK))
            out.found.push_back({std::move(path), true});
    }
    return true;
}

struct walk {
    std::vector<std::string> queue; // directories, breadth first
    std::size_t budget;
};

// False when the budget ran out in this directory.
[[nodiscard]] auto scan(const std::string& path, walk& state, rendezvous_search& out) -> bool {
    struct closer {
        void operator()(::DIR* open) const noexcept { (void)::closedir(open); }
    };
    const std::unique_ptr<::DIR, closer> directory{::opendir(path.c_str())};
    if (directory == nullptr)
        return true; // what cannot be listed by the invoker cannot be by the agent
    while (const auto* const entry = ::readdir(directory.get())) {
        const std::string_view name{entry->d_name};
        if (name == "." || name == "..") continue;
        if (state.budget-- == 0) return false;
        auto inner = path + "/" + std::string{name};
        if (entry->d_type == DT_DIR) state.queue.push_back(std::move(inner));
        else if (entry->d_type == DT_FIFO || entry->d_type == DT_SOCK ||
                 (entry->d_type == DT_UNKNOWN &&
                  (is_type(inner, S_IFIFO) || is_type(inner, S_IFSOCK))))
            out.found.push_back({std::move(inner), entry->d_type == DT_SOCK});
    }
    return true;
}

} // namespace

auto find_rendezvous(const std::vector<std::string>& roots, std::size_t entry_limit,
                     const std::vector<std::string>& by_table_only) -> rendezvous_search {
    rendezvous_search out;
    auto all = roots;
    all.insert(all.end(), by_table_only.begin(), by_table_only.end());
    if (all.empty()) return out;
    out.complete = add_sockets(all, out);
    walk state{.queue = roots, .budget = entry_limit};
    for (std::size_t next = 0; next < state.queue.size(); ++next) {
        const auto here = state.queue[next]; // a copy: scanning grows the queue
        if (!scan(here, state, out)) {
            out.complete = false;
            break;
        }
    }
    std::ranges::sort(out.found, {}, &rendezvous::path);
    const auto repeated = std::ranges::unique(out.found, {}, &rendezvous::path);
    out.found.erase(repeated.begin(), repeated.end());
    return out;
}

} // namespace glove::container
