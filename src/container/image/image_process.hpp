// A `glove-image`, and what runs beside it: whoever waits, does so until a deadline.
#pragma once
#include <chrono>
#include <condition_variable>
#include <glove/base/error.hpp>
#include <glove/sys/child_process.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/fd.hpp>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace glove::container {

// Both ends of a pipe, closed on exec.
struct pipe_pair {
    sys::unique_fd read, write;
};
[[nodiscard]] auto make_pipe(step_name step) -> result<pipe_pair>;

// What a program said, at most 2 KiB, fit for an operator's screen; never waits.
[[nodiscard]] auto words_from(sys::fd_ref pipe) -> std::string;

// Its exit status; a signal is 128 and its number. It is killed when the deadline is over, or
// within a second of being told to stop (errc::wrong_state).
[[nodiscard]] auto await_end(sys::child_process& process, const sys::clock& time,
                             std::chrono::nanoseconds deadline, step_name step,
                             const std::stop_token& stop = {}) -> result<int>;

struct image_job {
    std::string_view name; // image_check, image_serve or image_show
    std::string helper;    // of glove-image
    std::string tool;      // the program that does it
    sys::fd_ref image;
    std::optional<sys::fd_ref> fuse = {};
    std::optional<sys::fd_ref> entry = {};
};

class image_process {
public:
    [[nodiscard]] static auto start(const image_job& what) -> result<image_process>;

    // With everything that it started. Any thread.
    void kill() const;
    [[nodiscard]] auto wait(const sys::clock& time, std::chrono::nanoseconds deadline,
                            const std::stop_token& stop = {}) -> result<int>;
    [[nodiscard]] auto words() const -> std::string { return words_from(words_); }

private:
    image_process(sys::child_process process, sys::unique_fd life, sys::unique_fd words)
        : process_{std::move(process)}, life_{std::move(life)}, words_{std::move(words)} {}
    sys::child_process process_;
    sys::unique_fd life_, words_;
};

// Kills the process when it is not destroyed before the deadline: a call that waits for what the
// process serves ends with an error then.
class watchdog {
public:
    [[nodiscard]] static auto over(const image_process& process, std::chrono::nanoseconds patience)
        -> result<std::unique_ptr<watchdog>>;
    watchdog(const watchdog&) = delete;
    auto operator=(const watchdog&) -> watchdog& = delete;
    ~watchdog();

private:
    watchdog() = default;
    std::mutex lock_;
    std::condition_variable changed_;
    bool over_ = false;
    std::thread thread_;
};

} // namespace glove::container
