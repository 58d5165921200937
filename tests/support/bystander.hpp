// A process that has nothing to do with the one under test but its process group.
//
// Guarantees: it waits and does nothing else; it is ended and reaped with the object, whatever
// became of the process under test.
#pragma once
#include "support/glove_process.hpp"
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace glove::test {

class bystander {
public:
    bystander() {
        if (::pipe2(hold_.data(), O_CLOEXEC) != 0 || ::pipe2(told_.data(), O_CLOEXEC) != 0 ||
            ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
            std::abort();
    }
    bystander(const bystander&) = delete;
    auto operator=(const bystander&) = delete;
    ~bystander() {
        if (pid_ > 0) {
            (void)::kill(pid_, SIGKILL); // nobody else reaps it, so the number is its own
            (void)::waitpid(pid_, nullptr, 0);
        }
        for (const int end : {hold_[0], hold_[1], told_[0], told_[1]}) ::close(end);
    }
    // Called by the process under test before its exec.
    void join() const {
        (void)::signal(SIGHUP, SIG_IGN); // the end of the session is not the attack
        const auto pid = ::fork();
        if (pid < 0) ::_exit(120);
        if (pid == 0) {
            if (::dup2(hold_[0], 0) != 0) ::_exit(120);
            (void)::close_range(1, ~0U, 0);
            char byte = 0;
            ::_exit(::read(0, &byte, 1) == 0 ? 0 : 1);
        }
        (void)::signal(SIGHUP, SIG_DFL);
        if (::write(told_[1], &pid, sizeof pid) != sizeof pid) ::_exit(120);
    }
    [[nodiscard]] auto pid() -> ::pid_t {
        if (pid_ < 0 && ::read(told_[0], &pid_, sizeof pid_) != sizeof pid_) std::abort();
        return pid_;
    }
    // As /proc tells it: S for one that waits, T for stopped, Z for dead.
    [[nodiscard]] auto state() -> char {
        const auto stat = contents("/proc/" + std::to_string(pid()) + "/stat");
        const auto name_end = stat.rfind(") ");
        return name_end == std::string::npos ? 'Z' : stat[name_end + 2];
    }
    [[nodiscard]] auto goes_on() -> bool { return state() == 'S' || state() == 'R'; }
    [[nodiscard]] auto becomes(char wanted) -> bool {
        for (int i = 0; i < 2000 && state() != wanted; ++i) (void)::usleep(5000);
        return state() == wanted;
    }

private:
    std::array<int, 2> hold_{}, told_{};
    ::pid_t pid_ = -1;
};

struct priorities {
    int of_processor;
    long of_disk;
    auto operator==(const priorities&) const -> bool = default;
};

[[nodiscard]] inline auto priorities_of(::pid_t pid) -> priorities {
    constexpr int one_process = 1; // IOPRIO_WHO_PROCESS
    return {::getpriority(PRIO_PROCESS, static_cast<::id_t>(pid)),
            ::syscall(SYS_ioprio_get, one_process, pid)};
}

} // namespace glove::test
