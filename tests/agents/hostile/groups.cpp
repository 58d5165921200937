// Attacks what shares a process group with it, which "my own group" names without a number.
//
// A test starts these in a group that it made, where nobody is but what it started.
#include "attack.hpp"
#include <array>
#include <csignal>
#include <cstdlib>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hostile {
namespace {

constexpr unsigned whole_group = 1U << 2;   // PIDFD_SIGNAL_PROCESS_GROUP
constexpr int lower = 19;                   // below whatever `nice` the tests were started with
constexpr int lower_for_disk = 2 << 13 | 7; // best effort, last
constexpr int one_for_disk = 1, group_for_disk = 2;

auto kill_group(arguments with) -> result { return judge(::kill(0, std::atoi(with[0]))); }

// The group's number is its leader's, which inside may have none.
auto kill_group_by_handle(arguments with) -> result {
    const auto leader = ::getpgrp() > 0 ? ::getpgrp() : ::getpid();
    const auto handle = ::syscall(SYS_pidfd_open, leader, 0);
    if (handle < 0) return untried("pidfd_open");
    const auto done =
        ::syscall(SYS_pidfd_send_signal, handle, std::atoi(with[0]), nullptr, whole_group);
    return done < 0 && errno == EINVAL ? untried("an older kernel") : judge(done);
}

auto slow_group(arguments) -> result { return judge(::setpriority(PRIO_PGRP, 0, lower)); }
auto slow_group_disk(arguments) -> result {
    return judge(::syscall(SYS_ioprio_set, group_for_disk, 0, lower_for_disk));
}
auto slow_self(arguments) -> result { return judge(::setpriority(PRIO_PROCESS, 0, lower)); }
auto slow_self_disk(arguments) -> result {
    return judge(::syscall(SYS_ioprio_set, one_for_disk, 0, lower_for_disk));
}

// What the call is for: a program that ends its own children.
auto end_children(arguments) -> result {
    const auto child = ::fork();
    if (child == 0)
        for (;;) (void)::pause();
    (void)::signal(SIGTERM, SIG_IGN);
    if (::kill(0, SIGTERM) != 0) {
        const int why = errno;
        (void)::kill(child, SIGKILL);
        return denied(why);
    }
    int status = 0;
    (void)::waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? worked() : denied("not by it");
}

constexpr std::array attacks{
    attack{"kill_group SIGNAL", "signal the own group", kill_group},
    attack{"kill_group_by_handle SIGNAL", "the same by a handle", kill_group_by_handle},
    attack{"slow_group", "lower the priority of the own group", slow_group},
    attack{"slow_group_disk", "the same for the disk", slow_group_disk},
    attack{"slow_self", "lower one's own priority", slow_self},
    attack{"slow_self_disk", "the same for the disk", slow_self_disk},
    attack{"end_children", "end one's own children by the group", end_children},
};

} // namespace

auto group_attacks() -> std::span<const attack> { return attacks; }

} // namespace hostile
