// The last steps before the agent's program: its own descriptors, limits, signals and filter.
//
// The agent is made with CLONE_VM | CLONE_VFORK: it borrows init's memory until exec, which copies
// nothing and tells init exactly what happened. Init waits meanwhile.
#include "container/linux/seccomp_bpf.hpp"
#include "container/linux/steps.hpp"
#include "sys/confine.hpp"
#include "sys/syscalls.hpp"
#include <cerrno>
#include <csignal>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::size_t stack_bytes = 64UL * 1024;
alignas(16) char agent_stack[stack_bytes];

struct agent_start {
    setup_state* state;
    failure outcome; // written by the child while init waits
};

// The kernel's own form: glibc's sigaction leaves its two reserved signals alone.
struct kernel_sigaction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
};

[[nodiscard]] auto reset_signals(unsigned long blocked) noexcept -> failure {
    const kernel_sigaction standard{};
    for (int number = 1; number <= 64; ++number) {
        if (number == SIGKILL || number == SIGSTOP) continue;
        if (::syscall(SYS_rt_sigaction, number, &standard, nullptr, sizeof standard.mask) != 0)
            return {.os = errno, .where = call::sigaction};
    }
    if (::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, nullptr, sizeof blocked) != 0)
        return {.os = errno, .where = call::sigprocmask};
    return {};
}

[[nodiscard]] auto set_limits(const setup_plan& plan) noexcept -> failure {
    if (!sys::forbid_core_files()) return {.os = errno, .where = call::setrlimit};
    if (::setrlimit(RLIMIT_NOFILE, &plan.open_files) != 0)
        return {.os = errno, .where = call::setrlimit};
    return {};
}

// A group of its own, with every signal still blocked: taking the foreground would stop it else.
[[nodiscard]] auto take_foreground(const terminal_setup& terminal) noexcept -> failure {
    if (!terminal.wanted) return {};
    if (::setpgid(0, 0) != 0) return {.os = errno, .where = call::setpgid};
    if (terminal.foreground && ::tcsetpgrp(terminal_descriptor, ::getpid()) != 0)
        return {.os = errno, .where = call::ioctl};
    return {};
}

// Last: nothing after it but exec is needed, so the filter need not allow more than the agent gets.
[[nodiscard]] auto install_filter(const setup_plan& plan) noexcept -> failure {
    return {.os = seccomp::install(plan.filter), .where = call::seccomp};
}

// The most telling refusal wins: "found but not executable" over "not found".
[[nodiscard]] auto exec_program(const setup_plan& plan) noexcept -> failure {
    failure worst{.os = ENOENT, .where = call::execve};
    for (std::uint32_t i = 0; plan.programs[i] != nullptr; ++i) {
        ::execve(plan.programs[i], const_cast<char* const*>(plan.argv),
                 const_cast<char* const*>(plan.environment));
        const int os = errno;
        // ENOENT of a file that is there is about its interpreter.
        const bool present = os == ENOENT && ::faccessat(AT_FDCWD, plan.programs[i], F_OK, 0) == 0;
        if ((os == ENOENT || os == ENOTDIR) && !present) continue;
        worst = {.os = present ? ELIBBAD : os, .where = call::execve, .index = i};
        if (os != EACCES) break;
    }
    return worst;
}

[[nodiscard]] auto become_agent(setup_state& state) noexcept -> failure {
    const auto& plan = *state.plan;
    if (sys::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
        return {.os = errno, .where = call::close_range};
    ::umask(state.umask);
    if (const auto bad = take_foreground(plan.terminal); bad.os != 0) return bad;
    if (const auto bad = set_limits(plan); bad.os != 0) return bad;
    if (const auto bad = reset_signals(plan.blocked_signals); bad.os != 0) return bad;
    if (const auto bad = install_filter(plan); bad.os != 0) return bad;
    return exec_program(plan);
}

auto agent_main(void* argument) noexcept -> int {
    auto& start = *static_cast<agent_start*>(argument);
    start.outcome = become_agent(*start.state);
    ::_exit(127);
}

} // namespace

failure start_agent(setup_state& state) noexcept {
    agent_start start{.state = &state, .outcome = {}};
    state.agent =
        ::clone(agent_main, agent_stack + stack_bytes, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
    if (state.agent < 0) return {.os = errno, .where = call::clone};
    return start.outcome;
}

} // namespace glove::container
