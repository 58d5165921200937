// The kernel: what a perimeter needs of it, and which setting, profile or filter is in the way.
#include "host/doctor_checks.hpp"
#include <cstdlib>
#include <cstring>
#include <glove/base/numbers.hpp>
#include <glove/sys/files.hpp>
#include <sys/utsname.h>
#include <unistd.h>

namespace glove::host {

namespace {

using container::ability;

constexpr std::string_view sandboxed_advice =
    "this is inside a Glove sandbox already: start the command without glove";
constexpr std::string_view filter_advice =
    "a system-call filter of the surrounding container forbids it: allow it there (Docker: "
    "--security-opt seccomp=unconfined), or run Glove outside of it";
constexpr std::string_view uncovered_advice =
    "start the surrounding container with an uncovered /proc (Docker: --security-opt "
    "systempaths=unconfined)";

// "   1000:     3 2/2 2/200 46/20000": the fourth field is of the quota.
void read_key_quota(kernel_facts& out) {
    const auto table = sys::read_file("/proc/key-users", 1UL << 20).value_or("");
    const auto own = std::to_string(::getuid()) + ":";
    for (std::size_t at = 0; at < table.size();) {
        const auto end = std::min(table.find('\n', at), table.size());
        std::string_view line{table.data() + at, end - at};
        at = end + 1;
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        if (!line.starts_with(own)) continue;
        std::string_view fields[4];
        for (auto& field : fields) {
            line.remove_prefix(std::min(line.find(' '), line.size()));
            line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
            field = line.substr(0, line.find(' '));
        }
        const auto slash = fields[2].find('/');
        if (slash == std::string_view::npos) return;
        out.keys = parse_decimal(fields[2].substr(0, slash), UINT64_MAX);
        out.most_keys = parse_decimal(fields[2].substr(slash + 1), UINT64_MAX);
        return;
    }
}

[[nodiscard]] auto apparmor_label() -> std::string {
    auto label = container::kernel_setting("/proc/self/attr/apparmor/current");
    if (label.empty()) label = container::kernel_setting("/proc/self/attr/current");
    while (!label.empty() && label.back() == '\0') label.pop_back();
    return label;
}

[[nodiscard]] auto words(int os) -> std::string { return std::strerror(os); }

[[nodiscard]] auto is_denied(int os) -> bool { return os == EPERM || os == EACCES; }

[[nodiscard]] auto restricted_by_apparmor(const facts& seen) -> bool {
    return seen.uid != 0 && seen.kernel.apparmor_restricts == "1";
}

// The profile of the Debian package is for this path alone.
constexpr std::string_view packaged_program = "/usr/bin/glove";

// Whether a path means itself in a shell, in printf and in a profile.
[[nodiscard]] auto is_plain(std::string_view path) -> bool {
    return path.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789/._+-") == std::string_view::npos;
}

// One line that can be pasted.
[[nodiscard]] auto profile_advice(const facts& seen) -> std::string {
    if (seen.program == packaged_program)
        return "as root load the profile of the package: apparmor_parser -r /etc/apparmor.d/glove; "
               "where that file is missing: apt-get install --reinstall glove";
    if (!is_plain(seen.program))
        return "move this program to a path of plain letters, such as /usr/local/bin/glove, and "
               "ask again";
    return "install the Debian package of Glove, which brings a profile for " +
           std::string{packaged_program} +
           "; for this program, as root run: printf 'abi <abi/4.0>,\\nprofile glove-copy " +
           seen.program +
           " flags=(unconfined) { userns, }\\n' > /etc/apparmor.d/glove-copy && apparmor_parser -r "
           "/etc/apparmor.d/glove-copy";
}

// Which of the switches keeps user namespaces away, from the most certain to the least.
[[nodiscard]] auto namespaces_advice(const facts& seen, int os) -> std::string {
    const auto& kernel = seen.kernel;
    if (kernel.inside_glove) return std::string{sandboxed_advice};
    if (kernel.max_user_namespaces == "0")
        return "user namespaces are switched off: as root run: sysctl -w "
               "user.max_user_namespaces=10000";
    if (is_denied(os) && kernel.unprivileged_userns_clone == "0" && seen.uid != 0)
        return "unprivileged user namespaces are switched off: as root run: sysctl -w "
               "kernel.unprivileged_userns_clone=1";
    if (is_denied(os) && restricted_by_apparmor(seen)) return profile_advice(seen);
    if (kernel.under_filter) return std::string{filter_advice};
    if (os == ENOSYS) return "use Linux 5.12 or newer";
    if (os == ENOSPC || os == EUSERS)
        return "end other sandboxes of this user, or as root run: sysctl -w "
               "user.max_user_namespaces=10000";
    return "a kernel with CONFIG_USER_NS, or a container around this one that permits them, is "
           "needed";
}

struct mount_call {
    ability which;
    std::string_view name;
};
constexpr mount_call mount_calls[] = {
    {ability::new_filesystem, "fsopen"},
    {ability::open_tree, "open_tree"},
    {ability::mount_setattr, "mount_setattr"},
    {ability::move_mount, "move_mount"},
};

[[nodiscard]] auto mount_advice(const facts& seen, int os) -> std::string {
    if (seen.kernel.inside_glove) return std::string{sandboxed_advice};
    if (is_denied(os) && restricted_by_apparmor(seen)) return profile_advice(seen);
    if (seen.kernel.under_filter) return std::string{filter_advice};
    if (os == ENOSYS) return "use Linux 5.12 or newer";
    return "a security module of the surrounding container forbids mounting (Docker: "
           "--security-opt apparmor=unconfined)";
}

} // namespace

auto look_at_kernel() -> kernel_facts {
    kernel_facts out;
    if (struct ::utsname name{}; ::uname(&name) == 0) {
        out.release = name.release;
        out.machine = name.machine;
    }
    out.can = container::probe_abilities(probe_patience);
    out.landlock = container::landlock_version();
    out.max_user_namespaces = container::kernel_setting("/proc/sys/user/max_user_namespaces");
    out.unprivileged_userns_clone =
        container::kernel_setting("/proc/sys/kernel/unprivileged_userns_clone");
    out.apparmor_restricts =
        container::kernel_setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    out.apparmor_label = apparmor_label();
    out.under_filter = container::own_status("Seccomp") == "2";
    out.inside_glove = std::getenv("GLOVE_SANDBOXED") != nullptr;
    out.proc_covered = container::proc_is_covered();
    read_key_quota(out);
    return out;
}

auto judge_kernel(const facts& seen) -> verdict {
    const auto text = "Linux " + seen.kernel.release + " on " + seen.kernel.machine;
    if (seen.kernel.machine == "x86_64" || seen.kernel.machine == "aarch64") return passed(text);
    return failed(text + ": there is no system-call filter for this machine",
                  "use an x86-64 or arm64 machine");
}

auto judge_namespaces(const facts& seen) -> verdict {
    const auto& can = seen.kernel.can;
    if (!can.has(ability::namespaces)) {
        const int os = can.answer(ability::namespaces);
        return failed("clone3 with six new namespaces: " + words(os), namespaces_advice(seen, os));
    }
    if (!can.has(ability::id_maps)) {
        const int os = can.answer(ability::id_maps);
        return failed("writing the id maps of a new user namespace: " + words(os),
                      namespaces_advice(seen, os));
    }
    return passed("user, pid, mount, network, ipc and uts namespaces can be made");
}

auto judge_apparmor(const facts& seen) -> verdict {
    if (seen.kernel.apparmor_restricts != "1")
        return passed("AppArmor does not restrict user namespaces");
    if (seen.uid == 0) return passed("AppArmor restricts user namespaces, but not those of root");
    const auto& label = seen.kernel.apparmor_label;
    const bool profiled = !label.empty() && label != "unconfined";
    if (!seen.perimeter.refusal)
        return passed("AppArmor restricts user namespaces, and lets this program have them" +
                      (profiled ? " (profile " + label + ")" : std::string{}));
    const auto& can = seen.kernel.can;
    const bool to_blame = is_denied(can.answer(ability::namespaces)) ||
                          is_denied(can.answer(ability::id_maps)) ||
                          is_denied(can.answer(ability::new_filesystem));
    if (!to_blame)
        return warning("AppArmor restricts user namespaces; it is not what refuses here",
                       "see linux_perimeter");
    if (profiled)
        return failed("AppArmor restricts user namespaces, and the profile " + label +
                          " of this program does not permit them",
                      "add the line `userns,` to that profile and load it with apparmor_parser -r");
    return failed("AppArmor restricts user namespaces, and this program has no profile",
                  profile_advice(seen));
}

auto judge_seccomp(const facts& seen) -> verdict {
    const auto around = seen.kernel.under_filter
                            ? std::string{", under another one of whoever started glove"}
                            : std::string{};
    if (seen.kernel.can.has(ability::filter))
        return passed("the filter of a sandbox can be installed" + around);
    const int os = seen.kernel.can.answer(ability::filter);
    const auto text = "installing the filter of a sandbox: " + words(os) + around;
    if (seen.kernel.inside_glove) return failed(text, std::string{sandboxed_advice});
    if (seen.kernel.under_filter) return failed(text, std::string{filter_advice});
    return failed(text, "use a kernel with CONFIG_SECCOMP_FILTER");
}

auto judge_mount_api(const facts& seen) -> verdict {
    const auto& can = seen.kernel.can;
    std::string good;
    for (const auto& row : mount_calls) {
        const int os = can.answer(row.which);
        if (os == container::not_tried)
            return failed("could not be tried without namespaces", "see linux_namespaces");
        if (os != 0)
            return failed(std::string{row.name} + " in new namespaces: " + words(os),
                          mount_advice(seen, os));
        good.append(good.empty() ? "" : ", ").append(row.name);
    }
    return passed(good + " work in new namespaces");
}

auto judge_proc(const facts& seen) -> verdict {
    const int os = seen.kernel.can.answer(ability::proc);
    if (os == 0) return passed("a /proc of the sandbox's own can be mounted");
    if (os == container::not_tried)
        return failed("could not be tried without namespaces", "see linux_namespaces");
    const auto text = "mounting a /proc in new namespaces: " + words(os);
    if (seen.kernel.inside_glove) return failed(text, std::string{sandboxed_advice});
    if (is_denied(os) && seen.kernel.proc_covered)
        return failed(text + ": parts of this /proc are covered", std::string{uncovered_advice});
    return failed(text, mount_advice(seen, os));
}

auto judge_landlock(const facts& seen) -> verdict {
    if (seen.kernel.landlock > 0)
        return passed("Landlock, version " + std::to_string(seen.kernel.landlock));
    if (seen.kernel.inside_glove)
        return warning("Landlock is not offered inside of a sandbox",
                       std::string{sandboxed_advice});
    return warning("the kernel does not offer Landlock",
                   "start Linux with `landlock` in the list of its parameter lsm=");
}

auto judge_keys(const facts& seen) -> verdict {
    const auto& kernel = seen.kernel;
    if (!kernel.keys || !kernel.most_keys) return passed("no key of this user is counted");
    const auto text = std::to_string(*kernel.keys) + " of " + std::to_string(*kernel.most_keys) +
                      " keys of this user are in use";
    constexpr std::uint64_t spare = 8; // every run takes one
    if (*kernel.most_keys >= spare && *kernel.keys <= *kernel.most_keys - spare)
        return passed(text);
    return warning(
        text, seen.uid == 0 ? "as root run: sysctl -w kernel.keys.root_maxkeys=1000000"
                            : "end other runs, or as root run: sysctl -w kernel.keys.maxkeys=1000");
}

auto judge_perimeter(const facts& seen) -> verdict {
    if (!seen.perimeter.refusal)
        return passed(seen.perimeter.has_true
                          ? "`true` ran in a complete sandbox"
                          : "a complete sandbox was built; the system has no `true` to run in it");
    const auto& problem = *seen.perimeter.refusal;
    auto text = std::string{problem.step};
    if (!problem.detail.empty()) text += ": " + problem.detail;
    if (problem.os != 0) text += ": " + words(problem.os);
    if (seen.kernel.inside_glove) return failed(text, std::string{sandboxed_advice});
    if (!problem.remedy.empty()) return failed(text, problem.remedy);
    return failed(text, "mend what else is missing in this list; the table of errors in "
                        "docs/exec.md explains the step");
}

} // namespace glove::host
