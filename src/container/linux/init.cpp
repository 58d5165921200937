// Process 1 of the namespace: builds the perimeter, starts the agent, reaps, passes signals on, and
// ends everything when the agent or the supervisor ends.
//
// Guarantees: it never execs, holds no descriptor but the three streams, the control channel and
// the private terminal, is not dumpable, has no capability once the agent exists, and its memory
// holds neither the caller's arguments nor its environment in a place that /proc would show.
#include "container/linux/steps.hpp"
#include "sys/syscalls.hpp"
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace glove::container {

namespace {

// 0 at end of file: the supervisor is gone.
[[nodiscard]] auto receive(order_message& message) noexcept -> ssize_t {
    ssize_t got = 0;
    do got = ::recv(control_descriptor, &message, sizeof message, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

auto await(order wanted, order_message& message) noexcept -> failure {
    const auto got = receive(message);
    if (got < 0) return outcome(false, call::recv);
    if (got == 0) ::_exit(125);
    return {.os = message.what == wanted ? 0 : EPROTO, .where = call::recv};
}

auto seal_descriptors(setup_state& state) noexcept -> failure {
    for (int stream = 0; stream < 3; ++stream) {
        const int source = state.plan->streams[static_cast<std::size_t>(stream)];
        if (source != stream && ::dup2(source, stream) < 0) return outcome(false, call::dup2);
    }
    // The channels' places, which one of them may hold the other's of: moved out of the way first.
    const auto& plan = *state.plan;
    const int bridge = plan.bridge.channel < 0
                           ? -1
                           : ::fcntl(plan.bridge.channel, F_DUPFD_CLOEXEC, bridge_descriptor + 1);
    if (plan.bridge.channel >= 0 && bridge < 0) return outcome(false, call::dup3);
    if (plan.control != control_descriptor &&
        ::dup3(plan.control, control_descriptor, O_CLOEXEC) < 0)
        return outcome(false, call::dup3);
    if (bridge >= 0 && ::dup3(bridge, bridge_descriptor, O_CLOEXEC) < 0)
        return outcome(false, call::dup3);
    return outcome(close_but_kept(plan), call::close_range);
}

auto await_maps(setup_state&) noexcept -> failure {
    order_message message{};
    return await(order::maps_written, message);
}

// After the maps: they could not be written for a process that is not dumpable.
auto forbid_inspection(setup_state&) noexcept -> failure {
    return outcome(::prctl(PR_SET_DUMPABLE, 0) == 0, call::prctl);
}

// Second line only: it goes by thread and can be lost. The control channel's end of file is the
// first.
auto die_with_supervisor(setup_state&) noexcept -> failure {
    return outcome(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, call::prctl);
}

auto wipe_arguments(setup_state& state) noexcept -> failure {
    constexpr char title[] = "glove-init";
    std::memset(state.plan->arguments, 0, state.plan->arguments_size);
    std::memcpy(state.plan->arguments, title, std::min(sizeof title, state.plan->arguments_size));
    return outcome(::prctl(PR_SET_NAME, title) == 0, call::prctl);
}

auto new_keyring(setup_state&) noexcept -> failure {
    return outcome(::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) >= 0, call::keyctl);
}

auto leave_cgroup_view(setup_state&) noexcept -> failure {
    return outcome(::unshare(CLONE_NEWCGROUP) == 0, call::unshare);
}

auto name_host(setup_state&) noexcept -> failure {
    return outcome(::sethostname(host_name.data(), host_name.size()) == 0, call::sethostname);
}

// The address of the host's own name. A machine whose only address is 127.0.0.1 looks to glibc as
// if it had no IPv4, and a program that asks for the addresses it can use is told of none.
[[nodiscard]] auto add_own_address(int socket) noexcept -> bool {
    ::ifreq request{};
    std::memcpy(request.ifr_name, "lo:0", 5);
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(host_name_address);
    std::memcpy(&request.ifr_addr, &address, sizeof address);
    return ::ioctl(socket, SIOCSIFADDR, &request) == 0;
}

auto raise_loopback(setup_state& state) noexcept -> failure {
    if (!state.plan->loopback) return {};
    const int s = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) return outcome(false, call::socket);
    ::ifreq request{};
    std::memcpy(request.ifr_name, "lo", 3);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    auto raised = outcome(::ioctl(s, SIOCSIFFLAGS, &request) == 0, call::ioctl);
    if (raised.os == 0) raised = outcome(add_own_address(s), call::ioctl);
    (void)sys::close_range(static_cast<unsigned>(s), static_cast<unsigned>(s), 0);
    return raised;
}

auto open_permissions(setup_state& state) noexcept -> failure {
    state.umask = ::umask(0); // modes below are meant as written; the agent gets the caller's back
    return {};
}

auto forbid_new_privileges(setup_state&) noexcept -> failure {
    return outcome(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, call::prctl);
}

auto drop_capabilities(setup_state&) noexcept -> failure {
    constexpr unsigned long locked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                     SECBIT_NO_CAP_AMBIENT_RAISE |
                                     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (::prctl(PR_SET_SECUREBITS, locked) != 0) return outcome(false, call::prctl);
    for (unsigned long number = 0; ::prctl(PR_CAPBSET_DROP, number) == 0; ++number)
        if (number > 63) return {.os = EOVERFLOW, .where = call::prctl};
    if (errno != EINVAL) return outcome(false, call::prctl); // EINVAL: past the last one
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
        return outcome(false, call::prctl);
    ::__user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    const ::__user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
    return outcome(::syscall(SYS_capset, &header, none) == 0, call::capset);
}

// All signals are blocked from before the clone, so no ending is lost before this exists.
auto watch_children(setup_state& state) noexcept -> failure {
    ::sigset_t children;
    ::sigemptyset(&children);
    ::sigaddset(&children, SIGCHLD);
    state.children = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    return outcome(state.children >= 0, call::signalfd);
}

// A session of its own: "my group" names nobody outside, and the caller's terminal is out of reach.
// Init leads it and the agent does not, so that the terminal's keys can stop the agent.
auto leave_session(setup_state&) noexcept -> failure {
    return outcome(::setsid() >= 0, call::setsid);
}

// The caller's /dev/null is a node of the host, which root's agent could chmod for everybody.
auto own_null_streams(setup_state& state) noexcept -> failure {
    for (int stream = 0; stream < 3; ++stream) {
        const int flags = state.plan->nothing[static_cast<std::size_t>(stream)];
        if (flags < 0) continue;
        const int fd = ::open("/dev/null", flags | O_CLOEXEC);
        if (fd < 0) return outcome(false, call::openat);
        if (::dup2(fd, stream) < 0) return outcome(false, call::dup2);
        if (sys::close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0) != 0)
            return outcome(false, call::close_range);
    }
    return {};
}

[[nodiscard]] auto monotonic_second() noexcept -> std::int64_t {
    ::timespec now{};
    (void)::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

auto await_release(setup_state& state) noexcept -> failure {
    order_message message{};
    const auto bad = await(order::release, message);
    if (message.value > 0) state.last_second = monotonic_second() + message.value;
    return bad;
}

constexpr setup_step steps[] = {
    {"init.descriptors", seal_descriptors, "descriptors sealed"},
    {"init.id_maps", await_maps, "own uid and gid mapped, setgroups denied"},
    {"init.inspection", forbid_inspection, "init cannot be traced or read"},
    {"init.parent_death", die_with_supervisor, "ends with the supervisor"},
    {"init.arguments", wipe_arguments, "arguments and environment of init wiped"},
    {"init.keyring", new_keyring, "new session keyring"},
    {"init.cgroup_namespace", leave_cgroup_view, "cgroup namespace"},
    {"init.host_name", name_host, ""},
    {"init.loopback", raise_loopback, ""},
    {"init.permissions", open_permissions, ""},
    {"mount.root", mount_root, ""},
    {"mount.tree", mount_tree, "own root file system, sources pinned"},
    {"mount.listeners", open_listeners, ""},
    {"mount.proc", mount_proc, "/proc of the namespace"},
    {"mount.user_namespaces", forbid_user_namespaces, "no further user namespaces"},
    {"bridge.ports", open_low_ports, "", true},
    {"mount.proc_guard", guard_proc, "/proc settings read-only, kernel views masked"},
    {"mount.terminals", mount_terminals, "own terminals"},
    {"mount.enter", enter_root, "old root detached, new root read-only"},
    {"init.streams", own_null_streams, ""},
    {"init.session", leave_session, "signals stay inside"},
    {"init.terminal", open_terminal, ""},
    {"init.no_new_privileges", forbid_new_privileges, "no new privileges"},
    {"init.capabilities", drop_capabilities, "no capability in any set"},
    {"bridge.start", start_bridge, "bridge to the egress proxy", true},
    {"init.child_events", watch_children, ""},
    {"init.release", await_release, ""},
    {"agent.start", start_agent, "system-call filter"},
};
static_assert(std::size(steps) <= 64, "news_message::armed has one bit a step");

// A child that asked for PTRACE_TRACEME made init its tracer and stops at every signal: it is set
// free, and what it stopped for is delivered. False for a child that is nobody's tracee.
[[nodiscard]] auto let_go(::pid_t pid, int status) noexcept -> bool {
    const int number = WSTOPSIG(status);
    const long deliver = number == SIGTRAP ? 0L : static_cast<long>(number);
    return ::ptrace(PTRACE_DETACH, pid, nullptr, deliver) == 0;
}

// Reaps everything that has ended; true once the agent has.
[[nodiscard]] auto reap(setup_state& state, int& status) noexcept -> bool {
    bool agent_ended = false;
    for (;;) {
        int ended = 0;
        const auto pid = ::waitpid(-1, &ended, WNOHANG | WUNTRACED | __WALL);
        if (pid == 0 || (pid < 0 && agent_ended)) return agent_ended;
        if (pid < 0) ::_exit(125); // the agent cannot be watched: end it
        if (!WIFEXITED(ended) && !WIFSIGNALED(ended)) {
            if (!let_go(pid, ended) && pid == state.agent) note_stop(state, WSTOPSIG(ended));
            continue;
        }
        if (pid != state.agent) continue;
        agent_ended = true;
        status = ended;
    }
}

// The agent has not been reaped here, so its number cannot be another's. In its group may be init,
// which cannot be ended or stopped from inside.
void tell_group(const setup_state& state, int number) noexcept {
    const auto group = ::getpgid(state.agent);
    (void)::kill(group <= 1 ? 0 : -group, number);
}

// Numbers are those of this namespace: one that was given to somebody else meanwhile is still the
// session's. Where nobody of the agent's is in the foreground, its own group is meant.
void tell_foreground(const setup_state& state, int number) noexcept {
    const auto group = state.plan->terminal.wanted ? ::tcgetpgrp(terminal_descriptor) : -1;
    if (group <= 1 || ::kill(-group, number) != 0) tell_group(state, number);
}

void carry_out(setup_state& state, const order_message& message) noexcept {
    switch (message.what) {
    case order::maps_written:
    case order::release: return;
    case order::signal: (void)::kill(state.agent, message.value); return;
    case order::signal_group:
        if (message.value == SIGSTOP || message.value == SIGCONT)
            state.held = message.value == SIGSTOP;
        return tell_group(state, message.value);
    case order::signal_foreground: return tell_foreground(state, message.value);
    case order::foreground:
    case order::background:
        if (!state.plan->terminal.wanted) return;
        lend_terminal(state, message.what == order::foreground);
        state.held = false;
        tell_group(state, SIGCONT);
        return note_going_on(state);
    case order::heard: return note_heard(state);
    }
}

// The supervisor's clock stands still while it is stopped, and it stops when the job of its
// terminal does. This one goes on.
[[nodiscard]] auto end_when_late(setup_state& state) noexcept -> const ::timespec* {
    if (state.last_second == 0) return nullptr;
    const auto left = state.last_second - monotonic_second();
    if (left > 0) {
        state.patience = {.tv_sec = left, .tv_nsec = 0};
        return &state.patience;
    }
    (void)::kill(state.agent, SIGKILL);
    state.last_second = 0;
    return nullptr;
}

// Returns the agent's wait status. Ends the namespace when the supervisor is gone.
[[nodiscard]] auto watch(setup_state& state) noexcept -> int {
    std::array<::pollfd, 2> sources{::pollfd{control_descriptor, POLLIN, 0},
                                    ::pollfd{state.children, POLLIN, 0}};
    for (int status = 0;;) {
        if (reap(state, status)) return status;
        if (::ppoll(sources.data(), sources.size(), end_when_late(state), nullptr) <= 0) continue;
        if ((sources[1].revents & POLLIN) != 0) {
            ::signalfd_siginfo drained;
            (void)!::read(state.children, &drained, sizeof drained);
        }
        if (sources[0].revents == 0) continue;
        order_message message{};
        if (receive(message) <= 0) ::_exit(125);
        carry_out(state, message);
    }
}

} // namespace

auto setup_steps() noexcept -> std::span<const setup_step> { return steps; }

void tell(const news_message& message, int control) noexcept {
    // Nobody left to tell is the same as told: both end the namespace.
    (void)!::send(control, &message, sizeof message, MSG_NOSIGNAL);
}

failure tell_with(int descriptor, news_message message) noexcept {
    ::iovec part{&message, sizeof message};
    alignas(::cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    ::msghdr whole{};
    whole.msg_iov = &part;
    whole.msg_iovlen = 1;
    whole.msg_control = space;
    whole.msg_controllen = sizeof space;
    auto* const header = CMSG_FIRSTHDR(&whole);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    return outcome(::sendmsg(control_descriptor, &whole, MSG_NOSIGNAL) == sizeof message,
                   call::sendmsg);
}

void run_init(const setup_plan& plan) noexcept {
    setup_state state{.plan = &plan};
    news_message message{.what = news::started,
                         .step = 0,
                         .where = call::none,
                         .value = 0,
                         .index = failure::no_index,
                         .armed = 0};
    for (std::size_t i = 0; i < std::size(steps); ++i) {
        const auto bad = steps[i].run(state);
        if (bad.os == 0) {
            message.armed |= std::uint64_t{1} << i;
            continue;
        }
        message.what = news::failed;
        message.step = static_cast<std::uint8_t>(i);
        message.where = bad.where;
        message.value = bad.os;
        message.index = bad.index;
        // The first step puts the channel in its place; when it fails, it may not be there.
        tell(message, i == 0 ? plan.control : control_descriptor);
        ::_exit(125);
    }
    state.armed = message.armed;
    tell(message);
    // The streams are the agent's alone: a reader sees their end when the agent closes them.
    if (sys::close_range(0, 2, 0) != 0) ::_exit(125);
    message.value = watch(state);
    message.what = news::ended;
    tell(message);
    ::_exit(0);
}

} // namespace glove::container
