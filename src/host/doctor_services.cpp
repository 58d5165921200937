// What stands around a run: control groups, the user's service manager, room for storage that is
// kept. `glove exec` needs none of it.
//
// Looks by name and owner only; no module is loaded and no automount is triggered.
#include "host/doctor_checks.hpp"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <glove/base/numbers.hpp>
#include <glove/sys/files.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::host {

namespace {

[[nodiscard]] auto look(const std::string& path, struct ::stat& found) -> bool {
    return ::fstatat(AT_FDCWD, path.c_str(), &found, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0;
}

[[nodiscard]] auto split(std::string_view text, char at) -> std::vector<std::string_view> {
    std::vector<std::string_view> out;
    while (!text.empty()) {
        const auto end = std::min(text.find(at), text.size());
        out.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

// The mount point of the unified hierarchy; `root` is what of it is mounted there.
struct cgroup_mount {
    std::string root, point;
};
[[nodiscard]] auto find_cgroup2() -> std::optional<cgroup_mount> {
    const auto mounts = sys::read_file("/proc/self/mountinfo", 16UL << 20).value_or("");
    for (const auto line : split(mounts, '\n')) {
        if (line.find(" - cgroup2 ") == std::string_view::npos) continue;
        const auto fields = split(line, ' ');
        if (fields.size() > 5) return cgroup_mount{std::string{fields[3]}, std::string{fields[4]}};
    }
    return std::nullopt;
}

constexpr std::string_view unified_advice =
    "start Linux with systemd.unified_cgroup_hierarchy=1 in its parameters";

[[nodiscard]] auto controllers_of(const std::string& group) -> std::vector<std::string> {
    auto listed = sys::read_file(group + "/cgroup.controllers", 4096).value_or("");
    while (!listed.empty() && listed.back() == '\n') listed.pop_back();
    std::vector<std::string> out;
    for (const auto name : split(listed, ' ')) out.emplace_back(name);
    return out;
}

void look_at_cgroup(service_facts& out, ::uid_t uid) {
    const auto mount = find_cgroup2();
    out.cgroup2_mounted = mount.has_value();
    if (!mount) return;
    const auto groups = sys::read_file("/proc/self/cgroup", 1UL << 20).value_or("");
    for (const auto line : split(groups, '\n')) {
        if (!line.starts_with("0::/")) continue;
        auto path = line.substr(3);
        if (mount->root != "/") {
            if (!sys::holds(mount->root, path)) return;
            path.remove_prefix(mount->root.size());
        }
        out.cgroup = mount->point + std::string{path == "/" ? std::string_view{} : path};
    }
    if (out.cgroup.empty()) return;
    const auto number = std::to_string(uid);
    out.controllers = controllers_of(out.cgroup);
    out.manager_controllers = controllers_of(mount->point + "/user.slice/user-" + number +
                                             ".slice/user@" + number + ".service");
    // "4:memory:/x": a controller that the old hierarchies hold.
    for (const auto line : split(groups, '\n'))
        if (const auto fields = split(line, ':'); fields.size() > 1)
            out.old_hierarchies |= fields[1] == "memory" || fields[1] == "pids";
    struct ::stat found{};
    out.cgroup_is_own = look(out.cgroup, found) && found.st_uid == uid &&
                        ::access(out.cgroup.c_str(), W_OK) == 0 &&
                        ::access((out.cgroup + "/cgroup.procs").c_str(), W_OK) == 0 &&
                        ::access((out.cgroup + "/cgroup.subtree_control").c_str(), W_OK) == 0;
}

// Not by the name service, which may ask the network.
[[nodiscard]] auto name_of(::uid_t uid) -> std::string {
    const auto accounts = sys::read_file("/etc/passwd", 4UL << 20).value_or("");
    for (const auto line : split(accounts, '\n')) {
        const auto fields = split(line, ':');
        if (fields.size() > 2 && parse_decimal(fields[2], UINT32_MAX) == uid)
            return std::string{fields[0]};
    }
    return {};
}

[[nodiscard]] auto find_ext4_program(const char* name) -> std::string {
    for (const auto* const directory : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"})
        if (auto path = std::string{directory} + name; ::access(path.c_str(), X_OK) == 0)
            return path;
    return {};
}

// Opening the node of a module that is not there would load it.
[[nodiscard]] auto try_loop_control() -> int {
    constexpr const char* node = "/dev/loop-control";
    struct ::stat found{};
    if (!look(node, found)) return errno;
    if (::access(node, R_OK | W_OK) != 0) return errno;
    if (!sys::exists("/sys/module/loop") && !sys::exists("/sys/class/misc/loop-control"))
        return ENODEV;
    const sys::unique_fd control{::open(node, O_RDWR | O_CLOEXEC)};
    return control ? 0 : errno;
}

constexpr std::string_view needed_controllers[] = {"cpu", "memory", "pids"};

constexpr std::string_view delegate_advice =
    "as root run: mkdir -p /etc/systemd/system/user@.service.d && printf "
    "'[Service]\\nDelegate=cpu memory pids\\n' > /etc/systemd/system/user@.service.d/delegate.conf "
    "&& systemctl daemon-reload; then log in again";

} // namespace

auto look_at_services(::uid_t uid) -> service_facts {
    service_facts out;
    look_at_cgroup(out, uid);
    struct ::stat found{};
    out.user_manager = look("/run/user/" + std::to_string(uid) + "/systemd/private", found) &&
                       S_ISSOCK(found.st_mode);
    out.user_name = name_of(uid);
    out.lingering =
        !out.user_name.empty() && look("/var/lib/systemd/linger/" + out.user_name, found);
    out.loop_control = try_loop_control();
    out.fuse = ::access("/dev/fuse", R_OK | W_OK) == 0 ? 0 : errno;
    out.ext4_maker = find_ext4_program("mke2fs");
    out.ext4_mender = find_ext4_program("e2fsck");
    out.ext4_server = find_ext4_program("fuse2fs");
    return out;
}

auto judge_cgroup(const facts& seen) -> verdict {
    const auto& services = seen.services;
    if (!services.cgroup2_mounted)
        return warning("the unified hierarchy of control groups is not mounted",
                       std::string{unified_advice});
    if (services.cgroup.empty())
        return warning("the own control group is not below what is mounted",
                       "mount the whole of cgroup2 at /sys/fs/cgroup in this container");
    const auto given_by_manager = [&](std::string_view name) {
        return std::ranges::find(services.manager_controllers, name) !=
               services.manager_controllers.end();
    };
    if (services.user_manager && std::ranges::all_of(needed_controllers, given_by_manager))
        return passed("your service manager makes groups, with cpu, memory and pids");
    std::string lacking;
    for (const auto name : needed_controllers)
        if (std::ranges::find(services.controllers, name) == services.controllers.end())
            lacking.append(lacking.empty() ? "" : ", ").append(name);
    if (!lacking.empty() && services.old_hierarchies)
        return warning("the controllers " + lacking +
                           " are in the old hierarchies of control groups",
                       std::string{unified_advice});
    if (!lacking.empty())
        return warning(services.cgroup + " lacks the controllers " + lacking,
                       std::string{delegate_advice});
    if (!services.cgroup_is_own)
        return warning(services.cgroup + " is not delegated to this user",
                       seen.uid == 0 ? "mount /sys/fs/cgroup writable in this container"
                                     : "start Glove with: systemd-run --user --scope -p "
                                       "Delegate=yes glove ...");
    return passed(services.cgroup + " is delegated, with cpu, memory and pids");
}

auto judge_user_manager(const facts& seen) -> verdict {
    const auto uid = std::to_string(seen.uid);
    const auto socket = "/run/user/" + uid + "/systemd/private";
    if (seen.services.user_manager) return passed(socket + " is there");
    return warning("there is no " + socket,
                   "log in on a machine that runs systemd, or as root run: systemctl start user@" +
                       uid + ".service");
}

auto judge_lingering(const facts& seen) -> verdict {
    const auto& name = seen.services.user_name;
    if (name.empty())
        return warning("user " + std::to_string(seen.uid) + " is not in /etc/passwd",
                       "loginctl enable-linger");
    if (seen.services.lingering) return passed("services of " + name + " go on after logging out");
    return warning("services of " + name + " end when " + name + " logs out",
                   "loginctl enable-linger " + name);
}

auto judge_retained_storage(const facts& seen) -> verdict {
    const auto& services = seen.services;
    for (const auto& [found, name] :
         {std::pair{&services.ext4_maker, "mke2fs"}, std::pair{&services.ext4_mender, "e2fsck"}})
        if (found->empty())
            return warning(std::string{"there is no "} + name, "install the package e2fsprogs");
    if (services.loop_control == 0)
        return passed("loop devices can be attached; " + services.ext4_maker);
    if (services.fuse == 0 && !services.ext4_server.empty())
        return passed("/dev/fuse can be opened; " + services.ext4_server);
    const auto text =
        std::string{"/dev/loop-control: "} + std::strerror(services.loop_control) +
        "; /dev/fuse: " + (services.fuse == 0 ? "can be opened" : std::strerror(services.fuse));
    if (services.ext4_server.empty())
        return warning(text + "; there is no fuse2fs", "install the package fuse2fs");
    return warning(text, "as root run: modprobe fuse");
}

} // namespace glove::host
