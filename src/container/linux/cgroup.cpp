// Reads and writes, nothing else: what the values mean is for others.
#include "container/linux/cgroup.hpp"
#include <algorithm>
#include <array>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/process_facts.hpp>
#include <glove/sys/user_namespace.hpp>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
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

[[nodiscard]] auto is_unit(std::string_view name) -> bool {
    return name.ends_with(".service") || name.ends_with(".scope") || name.ends_with(".slice");
}

// The group is below one of a service or scope: what a user's manager gave away, for it puts no
// process there otherwise. It cannot say so at the group, as the system's manager does.
[[nodiscard]] auto is_below_unit_of_user(std::string_view own) -> bool {
    const auto inside = ::geteuid();
    const auto user = inside == 0 ? sys::outer_user(inside) : inside;
    const auto manager = "/user@" + std::to_string(user) + ".service/";
    const auto at = own.find(manager);
    if (user == 0 || at == std::string_view::npos) return false;
    auto below = own.substr(at + manager.size());
    std::string_view last = below, unit;
    while (!below.empty()) {
        last = below.substr(0, below.find('/'));
        below.remove_prefix(std::min(last.size() + 1, below.size()));
        if (is_unit(last)) unit = last;
    }
    return !is_unit(last) && !unit.empty() && !unit.ends_with(".slice");
}

} // namespace

auto path_of(::pid_t process) -> result<std::string> {
    const auto file = "/proc/" + std::to_string(process) + "/cgroup";
    GLOVE_TRY(const auto table, sys::read_file(file, longest_value));
    if (const auto path = sys::unified_group_in(table)) return std::string{*path};
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

auto is_delegated(sys::fd_ref group, std::string_view own) -> bool {
    if (!sys::exists("/run/systemd/system")) return true; // nobody else makes groups here
    std::array<char, 2> value{};
    const auto size = ::fgetxattr(group.get(), "user.delegate", value.data(), value.size());
    return (size == 1 && value[0] == '1') || is_below_unit_of_user(own);
}

auto page_floor(std::uint64_t bytes) -> std::uint64_t {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes / page * page;
}

auto check_huge_pages() -> result<> {
    constexpr const char* pools = "/sys/kernel/mm/hugepages";
    constexpr std::size_t longest_table = 4UL << 20U;
    if (!sys::exists(pools)) return {};
    GLOVE_TRY(const auto mounts, sys::read_file("/proc/self/mountinfo", longest_table));
    if (mounts.find("memory_hugetlb_accounting") != std::string::npos) return {}; // they do count
    GLOVE_TRY(const auto place, sys::pin(pools, sys::follow::no));
    GLOVE_TRY(const auto sizes, sys::list_names(place, ""));
    for (const auto& [size, type] : sizes)
        for (const auto* const file : {"nr_hugepages", "nr_overcommit_hugepages"}) {
            const auto path = std::string{pools} + "/" + size + "/" + file;
            GLOVE_TRY(const auto count, sys::read_file(path, 64));
            if (count == "0\n") continue;
            return fail(
                errc::unsupported, "limits.huge_pages",
                "this machine has huge pages set aside, which count to no limit: " + path,
                "set it to 0 (sysctl vm.nr_hugepages, vm.nr_overcommit_hugepages), or mount "
                "cgroup2 with memory_hugetlb_accounting");
        }
    return {};
}

auto let_be_killed(::pid_t process) -> result<> {
    const auto path = "/proc/" + std::to_string(process) + "/oom_score_adj";
    GLOVE_TRY(const auto value, sys::read_file(path, 16));
    if (value != "-1000\n") return {};
    const sys::unique_fd file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    if (!file) return fail_os("limits.oom_score", errno, path);
    return sys::write_all(file, "-999");
}

} // namespace glove::container::cgroup
