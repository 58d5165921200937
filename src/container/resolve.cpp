// Walks a path the way the kernel would and remembers every symbolic link on it, so that both the
// name an agent was given and the name behind it can be made to work inside.
#include <algorithm>
#include <deque>
#include <glove/container/plan.hpp>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr int link_limit = 40; // the kernel's own

void push_front(std::deque<std::string>& parts, std::string_view path) {
    std::vector<std::string> fresh;
    while (!path.empty()) {
        const auto end = std::min(path.find('/'), path.size());
        if (end > 0 && path.substr(0, end) != ".") fresh.emplace_back(path.substr(0, end));
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    parts.insert(parts.begin(), fresh.begin(), fresh.end());
}

[[nodiscard]] auto join(const std::string& directory, const std::string& name) -> std::string {
    return directory == "/" ? "/" + name : directory + "/" + name;
}

} // namespace

auto resolve(const std::string& path) -> result<resolved_path> {
    if (path.empty()) return fail_os("grant.resolve", ENOENT, "an empty path");
    GLOVE_TRY(const auto start, sys::absolute(path));
    std::deque<std::string> rest;
    push_front(rest, start);
    resolved_path out{.real = "/", .links = {}};
    while (!rest.empty()) {
        const auto name = std::move(rest.front());
        rest.pop_front();
        if (name == "..") {
            out.real = sys::parent_of(out.real);
            continue;
        }
        const auto next = join(out.real, name);
        struct ::stat found{};
        if (::lstat(next.c_str(), &found) != 0) return fail_os("grant.resolve", errno, next);
        if (!S_ISLNK(found.st_mode)) {
            if (!rest.empty() && !S_ISDIR(found.st_mode))
                return fail_os("grant.resolve", ENOTDIR, next);
            out.real = next;
            continue;
        }
        auto link = sys::read_link(next);
        if (!link) return fail_os("grant.resolve", link.error().os, next); // replaced since
        auto target = *std::move(link);
        if (out.links.size() == link_limit) return fail_os("grant.resolve", ELOOP, path);
        if (target.starts_with('/')) out.real = "/";
        push_front(rest, target);
        out.links.emplace_back(next, std::move(target));
    }
    return out;
}

} // namespace glove::container
