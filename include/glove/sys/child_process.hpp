// A process that this process owns: a child, or one that somebody else reaps. Identity is the
// pidfd, never the number.
//
// Guarantees: dropping the object kills the process and waits for its end, and a child is reaped; a
// signal can never reach another process that took over the number.
#pragma once
#include <csignal>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <sys/types.h>

namespace glove::sys {

class child_process {
public:
    // `leads`: its number, when it leads a process group.
    explicit child_process(unique_fd pidfd, ::pid_t leads = 0) noexcept
        : pidfd_{std::move(pidfd)}, leads_{leads} {}
    // It is not a child of this process: how it ended is not told.
    [[nodiscard]] static auto reaped_elsewhere(unique_fd pidfd) noexcept -> child_process {
        child_process out{std::move(pidfd)};
        out.elsewhere_ = true;
        return out;
    }
    child_process(child_process&&) noexcept = default;
    auto operator=(child_process&&) -> child_process& = delete;
    ~child_process();

    // Becomes readable when the child has ended.
    [[nodiscard]] auto descriptor() const noexcept -> fd_ref { return pidfd_; }
    // One that has ended, and that nobody has waited for here, takes it as well.
    [[nodiscard]] auto signal(int number) const -> result<>;
    // To every process of the group that the child leads. Only until it is reaped: its number, and
    // so the group's, is nobody else's as long.
    [[nodiscard]] auto signal_group(int number) const -> result<>;
    // Whether `wait` would not block. Reaps nothing.
    [[nodiscard]] auto has_ended() const -> result<bool>;
    // Blocks until it has ended, and reaps it; of what is reaped elsewhere nothing is told. Once.
    [[nodiscard]] auto wait() -> result<::siginfo_t>;

private:
    unique_fd pidfd_;
    ::pid_t leads_;
    bool elsewhere_ = false;
};

} // namespace glove::sys
