// A descriptor that is waited for, and the small pieces that every part of the proxy is made of.
//
// Guarantees: no call on a stream blocks, whatever the flags of its descriptor say: another process
// may hold the same open file and change them.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <glove/sys/fd.hpp>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace glove::net::proxy {

namespace asio = boost::asio;
using asio::awaitable;

class stream {
public:
    stream(asio::io_context& io, sys::unique_fd fd);
    stream(stream&&) = default;
    auto operator=(stream&&) -> stream& = default;

    [[nodiscard]] auto is_open() const -> bool { return waiter_.is_open(); }
    [[nodiscard]] auto fd() -> int { return waiter_.native_handle(); }
    // False when the wait was given up: the stream is closed or `cancel` was called.
    [[nodiscard]] auto readable() -> awaitable<bool>;
    [[nodiscard]] auto writable() -> awaitable<bool>;
    // Once waited for, asio looks for room to write ever after, and wakes at every acknowledgement.
    void forget_writable();
    // Ends every wait.
    void cancel();
    void close();
    // The peer sees a reset.
    void reset();

    // Sockets only. As recv and send; -1 and EAGAIN instead of waiting.
    [[nodiscard]] auto receive(char* into, std::size_t size, int flags = 0) -> ssize_t;
    [[nodiscard]] auto send(std::string_view bytes) -> ssize_t;
    // All of it, or false.
    [[nodiscard]] auto send_all(std::string_view bytes) -> awaitable<bool>;
    void end_sending();

private:
    asio::posix::stream_descriptor waiter_;
};

// Wakes every coroutine that waits at this moment; they look again whether what they wait for is
// so.
class bell {
public:
    explicit bell(asio::io_context& io) : timer_{io, asio::steady_timer::time_point::max()} {}
    void ring() { timer_.cancel(); }
    [[nodiscard]] auto next() -> awaitable<void>;

private:
    asio::steady_timer timer_;
};

// Calls once when the time is up, unless it was stopped before.
class deadline {
public:
    explicit deadline(asio::io_context& io) : timer_{io} {}
    void start(std::chrono::milliseconds after, std::function<void()> then);
    void stop();

private:
    asio::steady_timer timer_;
    std::uint64_t round_ = 0;
};

[[nodiscard]] auto pause(asio::io_context& io, std::chrono::milliseconds time) -> awaitable<void>;

} // namespace glove::net::proxy
