// Says what to do about a refused step, and only when a fact of this machine proves the cause.
#include "container/mount_table.hpp"
#include <cerrno>
#include <glove/container/probe.hpp>
#include <glove/sys/files.hpp>
#include <unistd.h>

namespace glove::container {

namespace {

[[nodiscard]] auto under_filter() -> bool { return own_status("Seccomp") == "2"; }

[[nodiscard]] auto apparmor_restricts() -> bool {
    return ::geteuid() != 0 &&
           kernel_setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1";
}

constexpr std::string_view apparmor_advice =
    "AppArmor restricts unprivileged user namespaces on this machine, and this program needs a "
    "profile: the Debian package brings one, and glove doctor prints one for this program";
constexpr std::string_view filter_advice =
    "a system-call filter of the surrounding container forbids this: allow user namespaces there "
    "(Docker: --security-opt seccomp=unconfined), or run Glove outside of it";

[[nodiscard]] auto namespaces_remedy(int os) -> std::string_view {
    if (os == ENOSPC || os == EUSERS) {
        if (kernel_setting("/proc/sys/user/max_user_namespaces") == "0")
            return "user namespaces are switched off: as root run: sysctl -w "
                   "user.max_user_namespaces=10000";
        return {};
    }
    if (os == ENOSYS && under_filter()) return filter_advice;
    if (os != EPERM && os != EACCES) return {};
    if (kernel_setting("/proc/sys/kernel/unprivileged_userns_clone") == "0")
        return "unprivileged user namespaces are switched off: as root run: sysctl -w "
               "kernel.unprivileged_userns_clone=1";
    if (apparmor_restricts()) return apparmor_advice;
    if (under_filter()) return filter_advice;
    return {};
}

} // namespace

auto kernel_setting(std::string_view path) -> std::string {
    auto text = sys::read_file(std::string{path}, 4096).value_or("");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

auto own_status(std::string_view name) -> std::string {
    const auto status = sys::read_file("/proc/self/status", 64UL * 1024).value_or("");
    const auto at = status.find("\n" + std::string{name} + ":\t");
    if (at == std::string::npos) return {};
    const auto begin = at + name.size() + 3;
    return status.substr(begin, status.find('\n', begin) - begin);
}

// procfs may only be mounted where no part of the outer /proc is covered.
auto proc_is_covered() -> bool {
    const auto mounts = mount_table::read();
    return mounts && mounts->covers_proc();
}

auto remedy_for(std::string_view step, int os) -> std::string {
    const bool denied = os == EPERM || os == EACCES;
    if (step == "launch.namespaces") return std::string{namespaces_remedy(os)};
    if (step == "mount.proc" && denied && proc_is_covered())
        return "parts of /proc are covered in the surrounding container, so the kernel refuses a "
               "new "
               "one: start that container with an uncovered /proc (Docker: --security-opt "
               "systempaths=unconfined)";
    if (step == "init.keyring" && os == EDQUOT)
        return "this user has as many keys as kernel.keys.maxkeys allows: raise it, or end other "
               "runs";
    if (step == "mount.tree" && os == ESTALE)
        return "start it again when nothing replaces that path";
    if (denied) {
        if (apparmor_restricts()) return std::string{apparmor_advice};
        if (under_filter()) return std::string{filter_advice};
    }
    return {};
}

} // namespace glove::container
