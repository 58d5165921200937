// The caller's terminal, and the time for which a run has it.
//
// Guarantees: its modes are changed only from its foreground, and what they were is put back by
// `give_back`, which the destructor calls; only SIGKILL of Glove, or a crash, prevents that. The
// flags of the open file that the caller shares are never touched: Glove opens one of its own,
// which does not block. Where that cannot be opened, `may_block` says so and writes are small.
#pragma once
#include <glove/sys/fd.hpp>
#include <optional>
#include <sys/ioctl.h>
#include <termios.h>

namespace glove::run {

class caller_terminal {
public:
    // The terminal of the first standard stream that is one.
    [[nodiscard]] static auto find() -> std::optional<caller_terminal>;
    caller_terminal(caller_terminal&& other) noexcept;
    auto operator=(caller_terminal&&) -> caller_terminal& = delete;
    ~caller_terminal() { give_back(); }

    [[nodiscard]] auto descriptor() const noexcept -> sys::fd_ref { return fd_; }
    [[nodiscard]] auto may_block() const noexcept -> bool { return may_block_; }
    // Whether a standard stream is this terminal.
    [[nodiscard]] auto is(int stream) const -> bool;
    // A terminal that controls no session of ours has no background.
    [[nodiscard]] auto in_foreground() const -> bool;
    [[nodiscard]] auto modes() const -> std::optional<::termios>;
    [[nodiscard]] auto size() const -> std::optional<::winsize>;

    // Raw from here on, so that every key passes; false in the background. Taking it twice renews
    // the modes and still remembers the caller's.
    [[nodiscard]] auto take() -> bool;
    void give_back();
    [[nodiscard]] auto is_taken() const noexcept -> bool { return before_.has_value(); }

private:
    caller_terminal(sys::unique_fd fd, unsigned device, bool may_block)
        : fd_{std::move(fd)}, device_{device}, may_block_{may_block} {}
    sys::unique_fd fd_;
    unsigned device_;
    bool may_block_;
    std::optional<::termios> before_;
};

// The terminal that a stream is, by an open file of our own, which does not block; empty where it
// cannot be opened, and for other kinds.
[[nodiscard]] auto reopen_terminal(int stream, int access) -> sys::unique_fd;

// The same pipe or FIFO by an open file of our own, which does not block; empty for other kinds.
[[nodiscard]] auto reopen_pipe(int stream, int access) -> sys::unique_fd;

// Stops the caller's job by a signal of job control, as the terminal would: every process of our
// group, this one last. False when it did not stop us, because nobody could go on with the job.
[[nodiscard]] auto stop_job(int number) -> bool;
// The same for this process alone, when every other one has been told.
void stop_self(int number);

} // namespace glove::run
