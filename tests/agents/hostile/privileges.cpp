// Looks for privilege that is left, and tries to gain some: capabilities, identities, namespaces.
#include "attack.hpp"
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hostile {
namespace {

auto status_field(std::string_view name) -> std::string {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':')
            return line.substr(line.find_first_not_of(" \t", name.size() + 1));
    return {};
}

auto capabilities(arguments) -> result {
    for (const char* const set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
        const auto value = status_field(set);
        if (value.empty()) return untried(set);
        if (value.find_first_not_of('0') != std::string::npos)
            return worked(std::string{set} + " " + value);
    }
    return denied("none in any set");
}

auto may_gain(arguments) -> result {
    if (status_field("NoNewPrivs") != "1") return worked("NoNewPrivs");
    if (status_field("Seccomp") != "2") return worked("Seccomp");
    constexpr int wanted = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                           SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                           SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    const int bits = ::prctl(PR_GET_SECUREBITS);
    if (bits != wanted) return worked("securebits " + std::to_string(bits));
    return denied("no way up");
}

auto gain_capability(arguments) -> result {
    ::__user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    ::__user_cap_data_struct wanted[_LINUX_CAPABILITY_U32S_3] = {};
    wanted[0] = {.effective = 1, .permitted = 1, .inheritable = 1}; // CAP_CHOWN
    return judge(::syscall(SYS_capset, &header, wanted));
}

auto loosen_securebits(arguments) -> result { return judge(::prctl(PR_SET_SECUREBITS, 0)); }
auto new_user_id(arguments) -> result { return judge(::setresuid(12345, 12345, 12345)); }
auto new_group_id(arguments) -> result { return judge(::setresgid(12345, 12345, 12345)); }
auto drop_groups(arguments) -> result { return judge(::setgroups(0, nullptr)); }

// -- namespaces -----------------------------------------------------------------------------------

constexpr std::array kinds{CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                           CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};

// Each attempt in a process of its own: one that works must not change the next.
template<class Try> auto first_that_works(Try&& attempt) -> result {
    int error = 0;
    for (const int kind : kinds) {
        const auto child = ::fork();
        if (child == 0) ::_exit(attempt(kind) < 0 ? errno : 0);
        int status = 0;
        if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return untried("waitpid");
        if (WEXITSTATUS(status) == 0) return worked(std::to_string(kind));
        error = WEXITSTATUS(status);
    }
    return denied(error);
}

auto by_unshare(arguments) -> result {
    return first_that_works([](int kind) { return static_cast<long>(::unshare(kind)); });
}

auto by_clone(arguments) -> result {
    return first_that_works([](int kind) {
        const auto child = ::syscall(SYS_clone, kind | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
        if (child == 0) ::_exit(0);
        return child;
    });
}

auto by_clone3(arguments) -> result {
    return first_that_works([](int kind) {
        ::clone_args wanted{};
        wanted.flags = static_cast<std::uint64_t>(kind);
        wanted.exit_signal = SIGCHLD;
        const auto child = ::syscall(SYS_clone3, &wanted, sizeof wanted);
        if (child == 0) ::_exit(0);
        return child;
    });
}

auto by_count(arguments) -> result {
    const int setting = ::open("/proc/sys/user/max_user_namespaces", O_RDWR | O_CLOEXEC);
    if (setting < 0) return denied();
    return judge(::write(setting, "1000", 4));
}

auto any_user_namespace_left(arguments) -> result {
    std::string number;
    std::ifstream{"/proc/sys/user/max_user_namespaces"} >> number;
    return number == "0" ? denied("0") : worked(number);
}

auto join(arguments with) -> result {
    const int place = ::open(with[0], O_RDONLY | O_CLOEXEC);
    if (place < 0) return denied();
    return judge(::setns(place, 0));
}

constexpr std::array attacks{
    attack{"capabilities", "have a capability in any set", capabilities},
    attack{"may_gain", "be able to gain privilege later", may_gain},
    attack{"gain_capability", "raise a capability", gain_capability},
    attack{"loosen_securebits", "make root powerful again", loosen_securebits},
    attack{"new_user_id", "become another user", new_user_id},
    attack{"new_group_id", "become another group", new_group_id},
    attack{"drop_groups", "leave the groups, which can widen access", drop_groups},
    attack{"namespace_by_unshare", "make a namespace", by_unshare},
    attack{"namespace_by_clone", "make a namespace", by_clone},
    attack{"namespace_by_clone3", "make a namespace", by_clone3},
    attack{"namespace_by_count", "permit user namespaces again", by_count},
    attack{"namespace_count", "find user namespaces permitted", any_user_namespace_left},
    attack{"join_namespace PATH", "enter a namespace", join},
};

} // namespace

auto privilege_attacks() -> std::span<const attack> { return attacks; }

} // namespace hostile
