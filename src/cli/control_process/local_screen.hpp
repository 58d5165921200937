// The place of this process: its terminal, or its streams.
//
// Guarantees: a terminal is raw only while it is ours and in the foreground; its modes are put back
// by `finish` and the destructor, before this program stops (SIGTSTP), and when it crashes; only
// SIGKILL prevents that. What the session switched on in it and left so, such as a hidden cursor,
// is switched off at the end. Signals that would end this program end the wait instead, also a wait
// for somebody who takes no output. Nothing is read of an input that is not passed on, but of a
// terminal that was taken, for its keys.
#pragma once
#include "cli/control_process/attach_loop.hpp"
#include "cli/control_process/detach_key.hpp"
#include "cli/control_process/left_modes.hpp"
#include "run/caller_terminal.hpp"
#include <glove/sys/fd.hpp>
#include <memory>
#include <optional>

namespace glove::cli {

enum class typed_at : std::uint8_t {
    nowhere,
    terminal, // raw, with a key that leaves
    stream,   // standard input as it is
};
struct screen_wish {
    typed_at input = typed_at::nowhere;
    bool read_only = false; // of a terminal: keys are looked at and passed on to nobody
    bool pages = false;     // each page as JSON in a line, instead of its bytes
    detach_key leaves;
};

// What would end this program, as something to wait for. From its making on, until the process
// ends.
class ending_signals {
public:
    [[nodiscard]] static auto open() -> result<ending_signals>;
    [[nodiscard]] auto descriptor() const noexcept -> sys::fd_ref { return fd_; }
    // 0: none.
    [[nodiscard]] auto take() const -> int;

private:
    explicit ending_signals(sys::unique_fd fd) : fd_{std::move(fd)} {}
    sys::unique_fd fd_;
};

class local_screen final : public attached_screen {
public:
    // `terminal` when it is typed at one; it is taken now, if we are in its foreground.
    [[nodiscard]] static auto open(screen_wish wish, const ending_signals& ends,
                                   std::optional<run::caller_terminal> terminal)
        -> result<std::unique_ptr<local_screen>>;
    ~local_screen() override;

    [[nodiscard]] auto wait(std::chrono::milliseconds most) -> result<news> override;
    [[nodiscard]] auto show(const shown_page& page, std::string_view answer) -> result<> override;
    void remark(std::string_view words) override;
    // For good. Whether the session had left something switched on.
    auto finish() -> bool;

private:
    void give_back();
    local_screen(screen_wish wish, const ending_signals& ends,
                 std::optional<run::caller_terminal> terminal, sys::unique_fd events)
        : wish_{std::move(wish)}, ends_{ends}, terminal_{std::move(terminal)},
          events_{std::move(events)} {}
    void take();
    [[nodiscard]] auto input() const -> int;
    [[nodiscard]] auto output() const -> int;
    void hear_events(news& into);
    [[nodiscard]] auto read_input(news& into) -> result<>;
    [[nodiscard]] auto put(std::string_view bytes) -> result<>;

    screen_wish wish_;
    const ending_signals& ends_;
    std::optional<run::caller_terminal> terminal_;
    sys::unique_fd events_;
    std::optional<window_size> size_; // that was told
    left_modes modes_;
    bool input_ended_ = false, finished_ = false;
};

} // namespace glove::cli
