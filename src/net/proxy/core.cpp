// The supervisor's channel and the pipes: what every connection needs and none owns.
#include "net/proxy/core.hpp"
#include "net/proxy/request.hpp"
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <sys/socket.h>

namespace glove::net::proxy {

namespace {

constexpr std::size_t memory_bytes = 64UL * 1024;
constexpr std::size_t least_pipe_bytes = 4096;

// One message or nothing; never waits.
template<class T> [[nodiscard]] auto put(int channel, const T& message) -> ssize_t {
    ssize_t sent = 0;
    do sent = ::send(channel, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent;
}

} // namespace

supervisor_link::supervisor_link(asio::io_context& io, sys::unique_fd channel)
    : io_{io}, channel_{io, std::move(channel)} {}

void supervisor_link::listen(std::function<void(bool)> on_end) {
    on_end_ = std::move(on_end);
    asio::co_spawn(io_, read(), asio::detached);
}

auto supervisor_link::read() -> awaitable<void> {
    for (;;) {
        const bool waited = co_await channel_.readable();
        egress_order order;
        const auto got = ::recv(channel_.fd(), &order, sizeof order, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR) && waited) continue;
        if (got != sizeof order) co_return on_end_(false);
        if (order.what == egress_word::finish) {
            on_end_(true);
            continue; // its end still counts
        }
        const auto at = open_.find(order.id);
        if (at == open_.end()) continue;
        at->second->recorded = order.what == egress_word::recorded;
        at->second->answered = true;
        at->second->bell.ring();
        open_.erase(at);
    }
}

auto supervisor_link::tell(const egress_message& what) -> awaitable<void> {
    while (put(channel_.fd(), what) < 0) {
        if (errno != EAGAIN) co_return; // `read` sees its end
        const bool ready = co_await channel_.writable();
        if (!ready) co_return;
    }
}

auto supervisor_link::tell_now(const egress_message& what) -> bool {
    return put(channel_.fd(), what) >= 0;
}

auto supervisor_link::ask(egress_message intent) -> awaitable<bool> {
    const auto waiting = std::make_shared<question>(io_);
    open_.emplace(intent.id, waiting);
    co_await tell(intent);
    while (!waiting->answered) co_await waiting->bell.next();
    co_return waiting->recorded;
}

auto lane::of_memory() -> lane {
    lane out;
    out.capacity_ = memory_bytes;
    return out;
}

auto lane::fill(stream& from, std::size_t most) -> ssize_t {
    ssize_t got = 0;
    if (read_) { // holds so many pieces, however large
        // The kernel asks the open file, which others may hold, whether to wait.
        (void)::fcntl(from.fd(), F_SETFL, O_NONBLOCK);
        do
            got = ::splice(from.fd(), nullptr, write_.get(), nullptr, most,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        while (got < 0 && errno == EINTR);
    } else {
        memory_.resize(capacity_);
        got = from.receive(memory_.data(), std::min(most, capacity_));
        begin_ = 0;
    }
    if (got > 0) held_ += static_cast<std::size_t>(got);
    return got;
}

auto lane::drain(stream& to) -> ssize_t {
    ssize_t put = 0;
    if (read_) {
        (void)::fcntl(to.fd(), F_SETFL, O_NONBLOCK);
        do
            put = ::splice(read_.get(), nullptr, to.fd(), nullptr, held_,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        while (put < 0 && errno == EINTR);
    } else {
        put = to.send(std::string_view{memory_}.substr(begin_, held_));
        if (put > 0) begin_ += static_cast<std::size_t>(put);
    }
    if (put > 0) held_ -= static_cast<std::size_t>(put);
    return put;
}

auto lane_pool::take() -> lane {
    if (!spare_.empty()) {
        auto out = std::move(spare_.back());
        spare_.pop_back();
        return out;
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return lane::of_memory();
    sys::unique_fd read{ends[0]};
    sys::unique_fd write{ends[1]};
    // Refused when the user's pipes hold too much: then what the kernel gives has to do.
    auto size = ::fcntl(write.get(), F_SETPIPE_SZ, static_cast<int>(limits_.pipe_bytes));
    if (size < 0) size = ::fcntl(write.get(), F_GETPIPE_SZ);
    const auto capacity = std::max(static_cast<std::size_t>(std::max(size, 0)), least_pipe_bytes);
    return {std::move(read), std::move(write), capacity};
}

void lane_pool::give(lane used) {
    if (used.is_pipe() && used.held() == 0 && spare_.size() < limits_.spare_pipes)
        spare_.push_back(std::move(used));
}

core::core(asio::io_context& context, egress_configuration settings, egress_rules parsed,
           sys::unique_fd control)
    : io{context}, limits{settings.limits}, rules{std::move(parsed)},
      credential{to_base64("glove:" + settings.token)}, link{context, std::move(control)},
      lanes{limits}, room{context} {
    for (const auto& rule : rules.all()) budgets.push_back({.left = rule.max_bytes});
}

auto core::has_room() -> bool {
    if (active < limits.connections) return true;
    if (!told_full)
        (void)sys::write_all(sys::fd_ref::standard_error(),
                             "glove: " + std::to_string(limits.connections) +
                                 " connections are open: further ones wait\n");
    told_full = true;
    return false;
}

} // namespace glove::net::proxy
