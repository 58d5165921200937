// Children in namespaces of their own, as every perimeter begins. The maps are written from
// outside.
#include "container/linux/namespaces.hpp"
#include <csignal>
#include <fcntl.h>
#include <glove/sys/fd.hpp>
#include <linux/magic.h>
#include <linux/sched.h>
#include <string>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace glove::container {

namespace {

// CLONE_NEWUSER owns the others, so they need no privilege of the host.
constexpr std::uint64_t namespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

// Blocks every signal for as long as it lives; the child starts, and init stays, with all blocked.
class signals_blocked {
public:
    signals_blocked() noexcept {
        ::sigset_t all;
        ::sigfillset(&all);
        good_ = ::sigprocmask(SIG_SETMASK, &all, &before_) == 0;
    }
    signals_blocked(const signals_blocked&) = delete;
    auto operator=(const signals_blocked&) -> signals_blocked& = delete;
    ~signals_blocked() {
        if (good_) (void)::sigprocmask(SIG_SETMASK, &before_, nullptr);
    }
    explicit operator bool() const noexcept { return good_; }

private:
    ::sigset_t before_{};
    bool good_ = false;
};

[[nodiscard]] auto write_setting(sys::fd_ref process, const char* name, const std::string& value)
    -> result<> {
    const sys::unique_fd file{::openat(process.get(), name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (!file) return fail_os("launch.id_maps", errno, std::string{"open /proc/PID/"} + name);
    if (::write(file.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size()))
        return fail_os("launch.id_maps", errno, std::string{"write /proc/PID/"} + name);
    return {};
}

} // namespace

auto clone_into_namespaces(void (*body)(const void*) noexcept, const void* argument) -> cloned {
    cloned child;
    const signals_blocked guard;
    if (!guard) return child;
    ::clone_args request{};
    request.flags = namespaces | CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
    request.pidfd = reinterpret_cast<std::uintptr_t>(&child.pidfd);
    request.exit_signal = SIGCHLD;
    child.pid = static_cast<::pid_t>(::syscall(SYS_clone3, &request, sizeof request));
    if (child.pid == 0) {
        body(argument);
        ::_exit(125);
    }
    return child;
}

auto write_id_maps(::pid_t child, const user_identity& user) -> result<> {
    const sys::unique_fd process{
        ::open(("/proc/" + std::to_string(child)).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (!process) return fail_os("launch.id_maps", errno, "open /proc/PID");
    struct ::statfs type{};
    if (::fstatfs(process.get(), &type) != 0)
        return fail_os("launch.id_maps", errno, "fstatfs /proc");
    if (type.f_type != PROC_SUPER_MAGIC)
        return fail(errc::not_permitted, "launch.id_maps", "/proc is not the kernel's procfs");
    const auto one = [](auto inside, auto outside) {
        return std::to_string(inside) + " " + std::to_string(outside) + " 1\n";
    };
    GLOVE_CHECK(write_setting(process, "setgroups", "deny"));
    GLOVE_CHECK(write_setting(process, "uid_map", one(user.uid, user.outer_uid())));
    return write_setting(process, "gid_map", one(user.gid, user.outer_gid()));
}

} // namespace glove::container
