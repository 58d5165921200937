// The host's end of a session's terminal: drains it, counts what it shows, and passes input, size
// and signals to it.
//
// Guarantees: of the output, exactly the first `most_output_bytes` and one byte more are counted
// and recorded, however they came; the one more says that the limit was exceeded. What follows is
// read and dropped, so that whoever is about to be ended is not held up, and the drain stays clean.
// Nothing waits beyond an absolute deadline, whatever the child does to its side of the terminal:
// it may flood, not read, close and open it again, or leave it open for others.
//
// Never signals by a number: the kernel knows the foreground group (TIOCSIG), or whoever is inside
// of the session's own pid namespace does.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/container/transcript.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/fd.hpp>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>

namespace glove::container {

struct pty_account {
    std::uint64_t output_bytes = 0;    // counted; all of them are in the transcript
    std::uint64_t discarded_bytes = 0; // that came after the limit was exceeded
    bool exceeded = false;
    bool ended = false;
    bool drained = false; // it ended because nothing was left and nobody could write any more
};

enum class pty_event : std::uint8_t {
    time,     // the moment that was waited for
    exceeded, // the limit of the output; told once
    ended,    // for ever
};

class pty_channel {
public:
    static constexpr std::size_t piece_bytes = 64UL << 10; // of a read, and of input
    static constexpr std::uint16_t most_lines = 4096;      // and columns
    static constexpr unsigned most_writers = 8;            // that wait at once
    static constexpr std::chrono::seconds input_time{1};

    struct wish {
        std::uint64_t most_output_bytes = 0;
        transcript* into = nullptr;        // outlives the channel; nobody else writes to it
        const sys::clock* clock = nullptr; // outlives the channel
        // Signals the foreground group from inside of the session's pid namespace, without waiting,
        // from any thread. Without it only an interrupt can be sent.
        std::function<result<>(int number)> signal_foreground;
    };
    // Takes the master of a pseudo-terminal that nobody else has. Steps: pty.master, pty.wake.
    [[nodiscard]] static auto adopt(sys::unique_fd master, wish with)
        -> result<std::unique_ptr<pty_channel>>;
    // What is left of the session gets the terminal's hang-up. Nobody may be in a call any more.
    ~pty_channel();
    pty_channel(const pty_channel&) = delete;
    auto operator=(const pty_channel&) -> pty_channel& = delete;

    // Reads what comes until `until`, on the clock's monotonic time, or until there is something to
    // tell. One thread, again and again until `ended`. After an error it may go on, but for
    // pty.read, which has ended it. Steps: pty.read, and those of the transcript.
    [[nodiscard]] auto pump(std::chrono::nanoseconds until) -> result<pty_event>;

    // All below: any thread.

    // Every process of the session has ended: `pump` takes what is left and ends, at the deadline
    // even when somebody keeps the terminal open. The first deadline stands.
    void finish_by(std::chrono::nanoseconds deadline);
    // Input, 1 to `piece_bytes`; whole when it succeeds. The terminal must take it within one
    // second, the wait for other writers included; else errc::timed_out, and how much it has taken
    // stands in the detail. Steps: pty.input, pty.ended.
    [[nodiscard]] auto write(std::string_view bytes) -> result<>;
    // Each 1 to `most_lines`. Steps: pty.size, pty.ended.
    [[nodiscard]] auto resize(std::uint16_t rows, std::uint16_t columns) -> result<>;
    // SIGINT, SIGTERM or SIGHUP to the terminal's foreground group. Steps: pty.signal, pty.ended,
    // and those of `signal_foreground`.
    [[nodiscard]] auto signal(int number) -> result<>;
    [[nodiscard]] auto account() const -> pty_account;

private:
    static constexpr auto never = std::numeric_limits<std::int64_t>::max();
    enum class found : std::uint8_t { bytes, nothing, hang_up };

    pty_channel(sys::unique_fd master, sys::unique_fd wake, wish with);
    [[nodiscard]] auto read() -> result<found>;
    [[nodiscard]] auto take(std::string_view bytes) -> result<>;
    [[nodiscard]] auto step(bool finishing) -> result<found>;
    void wait(bool for_output, std::chrono::nanoseconds until) const;
    void end(bool drained);
    [[nodiscard]] auto require_open() const -> result<>;
    [[nodiscard]] auto write_by(std::chrono::nanoseconds deadline, std::string_view bytes)
        -> result<>;

    sys::unique_fd master_, wake_;
    wish with_;
    std::unique_ptr<char[]> piece_; // of the thread that pumps
    bool told_ = false;             // of the same: that the limit was exceeded
    std::atomic<std::int64_t> finish_{never};
    std::mutex line_;              // of those who write
    std::condition_variable next_; // one of them is done
    unsigned writers_ = 0;         // under `line_`: all of them
    bool writing_ = false;         // under `line_`: one of them has the terminal
    mutable std::mutex lock_;
    pty_account account_; // under it
};

} // namespace glove::container
