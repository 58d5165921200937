// The child borrows this process's memory until exec (CLONE_VM | CLONE_VFORK): it allocates
// nothing, takes no lock and calls nothing that does. All it needs is made ready before.
#include "sys/syscalls.hpp"
#include <algorithm>
#include <csignal>
#include <glove/sys/files.hpp>
#include <glove/sys/spawn.hpp>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace glove::sys {

namespace {

constexpr std::size_t stack_bytes = 64UL * 1024;

struct move {
    int child, ours;
    int parked = -1; // where the child keeps it while the wanted numbers are still taken
};

// Shared with the child, which writes `os`, `parked` and `directory_failed` alone.
struct spawn_state {
    const char* program;
    int file; // -1 when there is none
    char* const* arguments;
    char* const* environment;
    std::vector<move> moves; // in the order of `child`
    ::sigset_t nothing_blocked;
    bool own_session;
    ::pid_t parent;        // whose end is the child's; 0: nobody's
    const char* directory; // null: stays where it is
    bool directory_failed = false;
    int os = 0;
};

// The kernel's own form: glibc's sigaction leaves its two reserved signals alone.
struct kernel_sigaction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
};

[[nodiscard]] auto reset_signals(const ::sigset_t& nothing_blocked) noexcept -> bool {
    const kernel_sigaction standard{};
    for (int number = 1; number <= 64; ++number) {
        if (number == SIGKILL || number == SIGSTOP) continue;
        if (::syscall(SYS_rt_sigaction, number, &standard, nullptr, sizeof standard.mask) != 0)
            return false;
    }
    return ::sigprocmask(SIG_SETMASK, &nothing_blocked, nullptr) == 0;
}

// First out of the way of every wanted number, then to its own.
[[nodiscard]] auto place_descriptors(spawn_state& state) noexcept -> bool {
    const int above = state.moves.empty() ? 0 : state.moves.back().child + 1;
    if (state.file >= 0) {
        state.file = ::fcntl(state.file, F_DUPFD_CLOEXEC, above);
        if (state.file < 0) return false;
    }
    for (auto& each : state.moves) {
        each.parked = ::fcntl(each.ours, F_DUPFD_CLOEXEC, above);
        if (each.parked < 0) return false;
    }
    for (const auto& each : state.moves)
        if (::dup2(each.parked, each.child) < 0) return false;
    int next = 0;
    for (const auto& each : state.moves) {
        if (each.child > next &&
            close_range(static_cast<unsigned>(next), static_cast<unsigned>(each.child - 1),
                        CLOSE_RANGE_CLOEXEC) != 0)
            return false;
        next = each.child + 1;
    }
    return close_range(static_cast<unsigned>(next), ~0U, CLOSE_RANGE_CLOEXEC) == 0;
}

// A parent that ended before the kernel was asked will never be heard of.
[[nodiscard]] auto die_with(::pid_t parent) noexcept -> bool {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    errno = ESRCH;
    return ::getppid() == parent;
}

[[nodiscard]] auto arrange(spawn_state& state) noexcept -> bool {
    // The session first: no signal of the old group may meet the default actions.
    if (state.own_session && ::setsid() < 0) return false;
    if (state.parent != 0 && !die_with(state.parent)) return false;
    state.directory_failed = state.directory != nullptr && ::chdir(state.directory) != 0;
    if (state.directory_failed) return false;
    return place_descriptors(state) && reset_signals(state.nothing_blocked);
}

// Returns only when something failed; errno tells.
void execute(spawn_state& state) noexcept {
    if (!arrange(state)) return;
    if (state.file < 0) (void)::execve(state.program, state.arguments, state.environment);
    else (void)execveat(state.file, "", state.arguments, state.environment, AT_EMPTY_PATH);
}

auto child_main(void* argument) noexcept -> int {
    auto& state = *static_cast<spawn_state*>(argument);
    execute(state);
    state.os = errno;
    ::_exit(127);
}

[[nodiscard]] auto pointers(const std::vector<std::string>& texts) -> std::vector<char*> {
    std::vector<char*> out;
    out.reserve(texts.size() + 1);
    // The kernel only reads them.
    for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

// `arguments` and `environment` outlive it.
[[nodiscard]] auto prepare(const spawn_request& request, const std::vector<char*>& arguments,
                           const std::vector<char*>& environment) -> result<spawn_state> {
    spawn_state state{.program = request.program.c_str(),
                      .file = request.file ? request.file->get() : -1,
                      .arguments = arguments.data(),
                      .environment = environment.data(),
                      .moves = {},
                      .nothing_blocked = {},
                      .own_session = request.own_session,
                      .parent = request.dies_with_parent ? ::getpid() : 0,
                      .directory = request.directory ? request.directory->c_str() : nullptr};
    for (const auto& each : request.descriptors)
        state.moves.push_back({each.child, each.ours.get()});
    std::ranges::sort(state.moves, {}, &move::child);
    if (std::ranges::adjacent_find(state.moves, {}, &move::child) != state.moves.end())
        return fail(errc::invalid_input, "spawn.descriptors", "one number is wanted twice");
    ::sigemptyset(&state.nothing_blocked);
    return state;
}

} // namespace

auto spawn(const spawn_request& request) -> result<child_process> {
    const auto arguments = pointers(request.arguments);
    const auto environment = pointers(request.environment);
    GLOVE_TRY(auto state, prepare(request, arguments, environment));
    std::vector<char> stack(stack_bytes);
    const auto top = reinterpret_cast<std::uintptr_t>(stack.data() + stack.size()) & ~15UL;
    // No handler of this process may run in the child, which shares its memory.
    ::sigset_t all;
    ::sigset_t before;
    ::sigfillset(&all);
    if (::sigprocmask(SIG_SETMASK, &all, &before) != 0) return fail_os("spawn.signals");
    int pidfd = -1;
    const auto pid = ::clone(child_main, reinterpret_cast<void*>(top),
                             CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &state, &pidfd);
    const int os = errno;
    (void)::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) return fail_os("spawn.clone", os, request.program);
    // Reaps the one that failed.
    child_process child{unique_fd{pidfd}, request.own_session ? pid : 0};
    if (state.directory_failed) return fail_os("spawn.directory", state.os, *request.directory);
    if (state.os != 0) return fail_os("spawn.program", state.os, request.program);
    return child;
}

auto become(const spawn_request& request) -> result<> {
    const auto arguments = pointers(request.arguments);
    const auto environment = pointers(request.environment);
    GLOVE_TRY(auto state, prepare(request, arguments, environment));
    execute(state);
    return fail_os("spawn.program", errno, request.program);
}

auto find_own_program(const std::string& name, step_name step) -> result<std::string> {
    GLOVE_TRY(const auto own, read_link("/proc/self/exe"));
    const auto directory = parent_of(own);
    const auto beside = directory + "/" + name;
    const auto installed = parent_of(directory) + "/libexec/glove/" + name;
    for (const auto& place : {beside, installed}) {
        const auto found = is_there(place);
        if (!found) return fail_os(step, found.error().os, place);
        if (*found) return place;
    }
    return fail(errc::not_found, step, beside + " and " + installed,
                "install " + name + " beside glove or in libexec/glove");
}

} // namespace glove::sys
