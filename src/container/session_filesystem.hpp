// What is behind a session's file system, for those who make one.
#pragma once
#include "container/image/image_process.hpp"
#include "container/linux/own_mounts.hpp"
#include <glove/container/session_files.hpp>
#include <glove/sys/files.hpp>

namespace glove::container {

// Asks a file system that a process serves how much room there is, so that nobody else waits for
// the answer.
class use_watch {
public:
    [[nodiscard]] static auto over(sys::fd_ref content) -> result<std::unique_ptr<use_watch>>;
    use_watch(const use_watch&) = delete;
    auto operator=(const use_watch&) -> use_watch& = delete;
    // Waits for the answer to a question that is open.
    ~use_watch();

    // Asks, and tells what was answered last: nothing before the first answer.
    [[nodiscard]] auto ask() -> std::optional<result<room>>;
    // Waits for the answer to a question that is asked now, but not for long.
    [[nodiscard]] auto ask_and_wait() -> std::optional<result<room>>;

private:
    use_watch() = default;
    void answer();
    sys::unique_fd content_;
    std::mutex lock_;
    std::condition_variable changed_;
    std::uint64_t asked_ = 0, answered_ = 0; // numbers of questions
    bool over_ = false;
    std::optional<result<room>> last_;
    std::thread thread_;
};

struct session_filesystem::state {
    sys::unique_fd mount, content;
    std::uint64_t least_bytes = 1, least_files = 1; // fewer are left: there was no room
    cloning how = cloning::direct;
    bool taken = false;
    bool writable = true;
    std::uint64_t baseline = 0;
    filesystem_use seen = {};
    // Of an image.
    sys::unique_fd image = {}; // its lock
    std::string loop = {};
    std::optional<image_process> server = {};
    std::unique_ptr<watchdog> lifetime = {}; // over `server`
    std::unique_ptr<use_watch> watch = {};

    [[nodiscard]] auto look() -> std::optional<result<room>>;
    [[nodiscard]] auto close(const sys::clock& time, std::chrono::nanoseconds deadline) -> result<>;
    void drop();
    [[nodiscard]] auto sync(const sys::clock& time, std::chrono::nanoseconds deadline) -> result<>;
    [[nodiscard]] auto await_release(const sys::clock& time, std::chrono::nanoseconds deadline)
        -> result<>;
};

} // namespace glove::container
