// Waits go through the event loop; every call on the descriptor itself is told not to wait.
#include "net/proxy/stream.hpp"
#include <boost/asio/socket_base.hpp>
#include <cerrno>
#include <memory>
#include <sys/socket.h>

namespace glove::net::proxy {

using wait_type = asio::posix::descriptor_base::wait_type;

stream::stream(asio::io_context& io, sys::unique_fd fd) : waiter_{io} {
    boost::system::error_code problem;
    waiter_.assign(fd.get(), problem);
    if (!problem) (void)fd.release();
}

auto stream::readable() -> awaitable<bool> {
    boost::system::error_code problem;
    co_await waiter_.async_wait(wait_type::wait_read,
                                asio::redirect_error(asio::use_awaitable, problem));
    co_return !problem;
}

auto stream::writable() -> awaitable<bool> {
    boost::system::error_code problem;
    co_await waiter_.async_wait(wait_type::wait_write,
                                asio::redirect_error(asio::use_awaitable, problem));
    co_return !problem;
}

void stream::forget_writable() {
    boost::system::error_code problem;
    sys::unique_fd fd{waiter_.release()};
    waiter_.assign(fd.get(), problem);
    if (!problem) (void)fd.release();
}

void stream::cancel() {
    boost::system::error_code ignored;
    waiter_.cancel(ignored);
}

void stream::close() {
    boost::system::error_code ignored;
    waiter_.close(ignored);
}

void stream::reset() {
    if (!is_open()) return;
    const ::linger now{.l_onoff = 1, .l_linger = 0};
    (void)::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
}

auto stream::receive(char* into, std::size_t size, int flags) -> ssize_t {
    ssize_t got = 0;
    do got = ::recv(fd(), into, size, flags | MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    return got;
}

auto stream::send(std::string_view bytes) -> ssize_t {
    ssize_t put = 0;
    do put = ::send(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    while (put < 0 && errno == EINTR);
    return put;
}

auto stream::send_all(std::string_view bytes) -> awaitable<bool> {
    while (!bytes.empty()) {
        const auto put = send(bytes);
        if (put >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(put));
            continue;
        }
        if (errno != EAGAIN) co_return false;
        const bool ready = co_await writable();
        if (!ready) co_return false;
    }
    co_return true;
}

void stream::end_sending() { (void)::shutdown(fd(), SHUT_WR); }

auto bell::next() -> awaitable<void> {
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void deadline::start(std::chrono::milliseconds after, std::function<void()> then) {
    const auto round = ++round_;
    timer_.expires_after(after);
    // The owner of `this` is kept alive by what `then` holds.
    timer_.async_wait([this, round, then = std::move(then)](boost::system::error_code problem) {
        if (!problem && round == round_) then();
    });
}

void deadline::stop() {
    ++round_;
    timer_.cancel();
}

auto pause(asio::io_context& io, std::chrono::milliseconds time) -> awaitable<void> {
    asio::steady_timer timer{io, time};
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

} // namespace glove::net::proxy
