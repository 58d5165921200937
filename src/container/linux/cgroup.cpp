// Reads and writes, nothing else: what the values mean is for others.
#include "container/linux/cgroup.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/sys/files.hpp>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace glove::container::cgroup {

namespace {

constexpr const char* hierarchy = "/sys/fs/cgroup";
constexpr std::size_t longest_value = 64UL * 1024;

[[nodiscard]] auto open_hierarchy() -> result<sys::unique_fd> {
    sys::unique_fd root{::open(hierarchy, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (!root) return fail_os("limits.hierarchy", errno, hierarchy);
    struct ::statfs type{};
    if (::fstatfs(root.get(), &type) != 0) return fail_os("limits.hierarchy", errno, hierarchy);
    if (type.f_type != CGROUP2_SUPER_MAGIC)
        return fail(errc::unsupported, "limits.hierarchy",
                    std::string{hierarchy} + " is not the unified hierarchy of control groups",
                    "start Linux with systemd.unified_cgroup_hierarchy=1 in its parameters");
    return root;
}

[[nodiscard]] auto open_file(sys::fd_ref group, const char* file, int flags)
    -> result<sys::unique_fd> {
    sys::unique_fd out{::openat(group.get(), file, flags | O_NOFOLLOW | O_CLOEXEC)};
    if (!out) return fail_os("limits.file", errno, file);
    return out;
}

} // namespace

auto path_of(::pid_t process) -> result<std::string> {
    const auto file = "/proc/" + std::to_string(process) + "/cgroup";
    GLOVE_TRY(const auto table, sys::read_file(file, longest_value));
    for (std::string_view rest{table}; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        if (line.starts_with("0::/")) return std::string{line.substr(3)};
    }
    return fail(errc::unsupported, "limits.hierarchy", file + " names no group",
                "start Linux with systemd.unified_cgroup_hierarchy=1 in its parameters");
}

auto open_own(const std::string& path) -> result<sys::unique_fd> {
    GLOVE_TRY(const auto root, open_hierarchy());
    GLOVE_TRY(auto group, sys::open_beneath(root, path.size() > 1 ? path.substr(1) : "",
                                            O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    GLOVE_TRY(const auto facts, sys::inspect(group));
    if (facts.owner != ::geteuid() || (facts.permissions & (S_IWGRP | S_IWOTH)) != 0)
        return fail(errc::not_permitted, "limits.owner", path + " is not yours alone");
    return group;
}

auto make(sys::fd_ref parent, const std::string& name) -> result<sys::unique_fd> {
    if (::mkdirat(parent.get(), name.c_str(), 0755) != 0)
        return fail_os("limits.group", errno, name);
    return sys::open_beneath(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

auto remove(sys::fd_ref parent, const std::string& name) -> result<> {
    if (::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
        return fail_os("limits.remove", errno, name);
    return {};
}

auto read(sys::fd_ref group, const char* file) -> result<std::string> {
    GLOVE_TRY(const auto opened, open_file(group, file, O_RDONLY));
    GLOVE_TRY(auto value, sys::read_all(opened, longest_value));
    if (value.ends_with('\n')) value.pop_back();
    return value;
}

auto write(sys::fd_ref group, const char* file, std::string_view value) -> result<> {
    GLOVE_TRY(const auto opened, open_file(group, file, O_WRONLY));
    // In one piece: the kernel takes each write for a value of its own.
    if (::write(opened.get(), value.data(), value.size()) != static_cast<::ssize_t>(value.size()))
        return fail_os("limits.file", errno, std::string{file} + " <- " + std::string{value});
    return {};
}

auto entry(std::string_view table, std::string_view name) -> std::optional<std::uint64_t> {
    for (auto rest = table; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ')
            return parse_decimal(line.substr(name.size() + 1), UINT64_MAX);
    }
    return std::nullopt;
}

auto lists(std::string_view words, std::string_view word) -> bool {
    for (auto rest = words; !rest.empty();) {
        const auto one = rest.substr(0, rest.find_first_of(" \n"));
        rest.remove_prefix(std::min(one.size() + 1, rest.size()));
        if (one == word) return true;
    }
    return false;
}

} // namespace glove::container::cgroup
