// Passes what is typed, or what a pipe brings, on to the agent's private terminal or pipe.
//
// Guarantees: bytes pass unchanged and in order; it never waits in a write, and reads no more than
// it can hold, so an agent that does not read holds up nobody. The end of a pipe reaches a terminal
// as its end-of-file character, one for each program that reads, and a pipe as its end.
#pragma once
#include <cstdint>
#include <glove/sys/fd.hpp>
#include <poll.h>
#include <span>
#include <vector>

namespace glove::run {

class input_relay {
public:
    enum class source : std::uint8_t {
        terminal, // the caller's; its end is a hang-up
        bytes,    // anything else
    };
    // `from` is borrowed.
    input_relay(sys::fd_ref from, source kind) : from_{from.get()}, kind_{kind} {}

    // Where it goes; a terminal's master, or a pipe. Does not block from here on.
    void connect(sys::unique_fd to, bool to_terminal);
    // What was typed before the caller's terminal became raw, where an end of file is none any
    // more. It is passed on when nothing holds.
    void take_typed_ahead();
    // Whether to read at all: a terminal in the background must not be.
    void enable(bool on) noexcept { enabled_ = on; }
    // Nothing is passed on while it holds: the agent is not yet there to get it.
    void hold(bool on) noexcept { held_ = on; }
    void interest(std::vector<::pollfd>& into) const;
    void advance(std::span<const ::pollfd> ready);
    // Whether the input of a terminal has ended, which each program that reads there must be told.
    [[nodiscard]] auto repeats_end() const noexcept -> bool { return peer_ && to_; }
    // Now and then: types the key for the end when the last one was read.
    void repeat_end();
    // The caller's terminal has hung up.
    [[nodiscard]] auto hung_up() const noexcept -> bool { return hung_up_; }

private:
    void read();
    void write();
    void end();
    [[nodiscard]] auto end_of_file() const -> char;

    int from_;
    source kind_;
    sys::unique_fd to_;
    sys::unique_fd peer_; // the agent's side of a terminal, only looked at
    bool to_terminal_ = false;
    bool enabled_ = false;
    bool held_ = false;
    bool ended_ = false;
    bool hung_up_ = false;
    bool at_line_start_ = true;
    std::vector<char> waiting_ = std::vector<char>(16UL * 1024);
    std::size_t begin_ = 0, end_ = 0;
};

} // namespace glove::run
