// The perimeter, in order. Reading the table is reading the sandbox: --explain and --report print
// it.
#pragma once
#include "container/linux/protocol.hpp"
#include "container/linux/setup_plan.hpp"
#include "sys/syscalls.hpp"
#include <cerrno>
#include <span>
#include <string_view>

namespace glove::container {

// The control channel's place in init.
inline constexpr int control_descriptor = 3;
// The bridge's channel to the relay, in init until the bridge runs, and in the bridge.
inline constexpr int bridge_descriptor = 4;
// The private terminal, in init.
inline constexpr int terminal_descriptor = 5;

// Closes everything of init above its streams and channels.
[[nodiscard]] inline auto close_but_channels(const setup_plan& plan) noexcept -> bool {
    const int last = plan.bridge.channel < 0 ? control_descriptor : bridge_descriptor;
    return sys::close_range(static_cast<unsigned>(last + 1), ~0U, 0) == 0;
}

// The same, but for mounts that are to be put in place, none of which has a lower number.
[[nodiscard]] inline auto close_but_kept(const setup_plan& plan) noexcept -> bool {
    auto next =
        static_cast<unsigned>(plan.bridge.channel < 0 ? control_descriptor : bridge_descriptor) + 1;
    for (const int kept : plan.kept) {
        const auto number = static_cast<unsigned>(kept);
        if (number > next && sys::close_range(next, number - 1, 0) != 0) return false;
        next = number + 1;
    }
    return sys::close_range(next, ~0U, 0) == 0;
}
// The lowest number of a mount that is kept: above those that have a place, and what moves there.
inline constexpr int first_kept_descriptor = 16;

// What the steps share. Lives on init's stack; the agent step shares init's memory until exec.
struct setup_state {
    const setup_plan* plan = nullptr;
    int root = -1;      // the new root file system
    int lent = -1;      // its directory of what is lent
    int proc = -1;      // the new /proc
    ::mode_t umask = 0; // the caller's, given back to the agent
    int children = -1;  // becomes readable when a process of the namespace has ended
    ::pid_t agent = -1;
    std::int64_t last_second = 0; // of CLOCK_MONOTONIC: the agent is ended then; 0: never
    ::timespec patience{};        // until then
    ::pid_t foreground = -1;      // group that the private terminal serves, while it is withheld
    std::uint64_t armed = 0;      // every step, once all were carried out
    bool held = false;            // the supervisor stopped the agent
    bool stop_told = false;       // and the supervisor has not answered it
    int stop_untold = 0;          // a later stop, to be told after that
};

[[nodiscard]] inline auto outcome(bool good, call where) noexcept -> failure {
    return good ? failure{} : failure{.os = errno, .where = where};
}

struct setup_step {
    std::string_view name; // of errors
    failure (*run)(setup_state&) noexcept;
    std::string_view layer; // what holds once it has run; empty for plumbing
    bool of_bridge = false; // does nothing in a plan without one
};

[[nodiscard]] auto setup_steps() noexcept -> std::span<const setup_step>;

// mounts.cpp
failure mount_root(setup_state&) noexcept;
failure mount_tree(setup_state&) noexcept;
failure mount_terminals(setup_state&) noexcept;
failure enter_root(setup_state&) noexcept;

// proc.cpp
failure mount_proc(setup_state&) noexcept;
failure forbid_user_namespaces(setup_state&) noexcept;
failure open_low_ports(setup_state&) noexcept;
failure guard_proc(setup_state&) noexcept;

// listeners.cpp
failure open_listeners(setup_state&) noexcept;

// bridge.cpp
failure start_bridge(setup_state&) noexcept;

// terminal.cpp: the private terminal, and what init does for the job that runs on it
failure open_terminal(setup_state&) noexcept;
void lend_terminal(setup_state&, bool to_foreground) noexcept;
void note_stop(setup_state&, int number) noexcept;
void note_heard(setup_state&) noexcept;
void note_going_on(setup_state&) noexcept;

// agent.cpp
failure start_agent(setup_state&) noexcept;

// init.cpp: says something to the supervisor.
void tell(const news_message& message, int control = control_descriptor) noexcept;
// The same, with a descriptor that the supervisor gets.
failure tell_with(int descriptor, news_message message) noexcept;
// Everything that runs as process 1 of the namespace. Never returns.
[[noreturn]] void run_init(const setup_plan& plan) noexcept;

} // namespace glove::container
