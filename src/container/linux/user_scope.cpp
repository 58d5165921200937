// Asks the manager by busctl, which is a part of systemd; whether it did what was asked is read
// from the kernel. A process of a login is not below the manager, and only the manager can move it
// here.
#include "container/linux/user_scope.hpp"
#include "container/linux/cgroup.hpp"
#include "sys/syscalls.hpp"
#include <chrono>
#include <csignal>
#include <glove/base/text.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/spawn.hpp>
#include <linux/sched.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr const char* bus_program = "/usr/bin/busctl";
constexpr std::chrono::seconds manager_patience{20};
constexpr std::size_t longest_complaint = 4096;

[[nodiscard]] auto runtime_directory() -> std::string {
    return "/run/user/" + std::to_string(::geteuid());
}

[[noreturn]] void keep_place(::pid_t parent) noexcept {
    // Until it is killed: what is typed at the terminal, or ends the scope, must not end it first.
    ::sigset_t all;
    ::sigfillset(&all);
    (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
    (void)::prctl(PR_SET_NAME, "glove-keeper");
    (void)::prctl(PR_SET_DUMPABLE, 0);
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(1);
    (void)sys::close_range(0, ~0U, 0);
    for (;;) (void)::pause();
}

[[nodiscard]] auto start_keeper(::pid_t& number) -> result<sys::child_process> {
    const auto parent = ::getpid();
    int pidfd = -1;
    ::clone_args request{};
    request.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
    request.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
    request.exit_signal = SIGCHLD;
    number = static_cast<::pid_t>(::syscall(SYS_clone3, &request, sizeof request));
    if (number == 0) keep_place(parent);
    if (number < 0) return fail_os("limits.keeper", errno, "clone3");
    return sys::child_process{sys::unique_fd{pidfd}};
}

[[nodiscard]] auto words_of(const std::string& unit, ::pid_t init, ::pid_t keeper)
    -> std::vector<std::string> {
    return {"busctl",
            "--user",
            "--quiet",
            "--timeout=" + std::to_string(manager_patience.count()),
            "call",
            "org.freedesktop.systemd1",
            "/org/freedesktop/systemd1",
            "org.freedesktop.systemd1.Manager",
            "StartTransientUnit",
            "ssa(sv)a(sa(sv))",
            unit,
            "fail",
            "4",
            "PIDs",
            "au",
            "2",
            std::to_string(keeper),
            std::to_string(init),
            "Delegate",
            "b",
            "true",
            "CollectMode",
            "s",
            "inactive-or-failed",
            "Description",
            "s",
            "A run of glove",
            "0"};
}

[[nodiscard]] auto ask_manager(const std::string& unit, ::pid_t init, ::pid_t keeper) -> result<> {
    const sys::unique_fd said{::memfd_create("busctl", MFD_CLOEXEC)};
    if (!said) return fail_os("limits.manager", errno, "memfd_create");
    const auto place = runtime_directory();
    GLOVE_TRY(auto asking,
              sys::spawn({.program = bus_program,
                          .arguments = words_of(unit, init, keeper),
                          .environment = {"XDG_RUNTIME_DIR=" + place, "LC_ALL=C.UTF-8",
                                          "DBUS_SESSION_BUS_ADDRESS=unix:path=" + place + "/bus"},
                          .descriptors = {{1, said}, {2, said}},
                          .own_session = true,
                          .dies_with_parent = true}));
    ::pollfd end{asking.descriptor().get(), POLLIN, 0};
    const auto patience = std::chrono::milliseconds{manager_patience + std::chrono::seconds{5}};
    if (::poll(&end, 1, static_cast<int>(patience.count())) != 1)
        return fail(errc::timed_out, "limits.manager",
                    "the user's service manager did not answer in time");
    GLOVE_TRY(const auto how, asking.wait());
    if (how.si_code == CLD_EXITED && how.si_status == 0) return {};
    std::string words(longest_complaint, '\0');
    const auto size = ::pread(said.get(), words.data(), words.size(), 0);
    words.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    while (words.ends_with('\n')) words.pop_back();
    return fail(errc::not_permitted, "limits.manager",
                "the user's service manager made no scope: " + printable(words));
}

// The manager answers when the job is queued. Done is what the kernel says.
[[nodiscard]] auto await_place(::pid_t process, const std::string& unit) -> result<std::string> {
    const sys::system_clock time;
    const auto deadline = time.monotonic() + manager_patience;
    for (;;) {
        GLOVE_TRY(auto path, cgroup::path_of(process));
        if (path.ends_with("/" + unit)) return path;
        if (time.monotonic() >= deadline)
            return fail(errc::timed_out, "limits.manager",
                        "the service manager did not move the run into " + unit + ": it is in " +
                            printable(path));
        ::timespec pause{0, 2'000'000};
        (void)::nanosleep(&pause, nullptr);
    }
}

} // namespace

auto has_user_manager() -> bool {
    const auto place = runtime_directory();
    return sys::exists(bus_program) && sys::exists(place + "/systemd/private") &&
           sys::exists(place + "/bus");
}

auto make_user_scope(const std::string& run, ::pid_t init, const std::string& child)
    -> result<user_scope> {
    const auto unit = "glove-" + run + ".scope";
    ::pid_t keeper_number = 0;
    GLOVE_TRY(auto keeper, start_keeper(keeper_number));
    GLOVE_CHECK(ask_manager(unit, init, keeper_number));
    GLOVE_TRY(const auto path, await_place(keeper_number, unit));
    GLOVE_TRY(const auto path_of_init, await_place(init, unit));
    if (path != path_of_init)
        return fail(errc::conflict, "limits.manager", "the run is in two groups");
    GLOVE_TRY(auto group, cgroup::open_own(path));
    GLOVE_TRY(const auto members, cgroup::read(group, "cgroup.procs"));
    // The path named this very group, and nobody else is in it.
    const auto number = std::to_string(init), other = std::to_string(keeper_number);
    if (members != number + "\n" + other && members != other + "\n" + number)
        return fail(errc::conflict, "limits.manager", path + " does not hold the run alone");
    GLOVE_TRY(const auto own, cgroup::make(group, "keeper"));
    GLOVE_CHECK(cgroup::write(own, "cgroup.procs", other));
    GLOVE_TRY(const auto target, cgroup::make(group, child));
    GLOVE_CHECK(cgroup::write(target, "cgroup.procs", number));
    return user_scope{std::move(keeper), std::move(group)};
}

} // namespace glove::container
