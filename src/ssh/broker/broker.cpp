// One loop over the supervisor's channel, the socket inside and its connections. It never waits for
// one of them alone.
#include "ssh/broker/broker.hpp"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace glove::ssh {

void broker::run() {
    const auto ready = plain_news(broker_news::ready, 0);
    if (::send(control_.get(), ready.data(), ready.size(), MSG_NOSIGNAL) < 0) return;
    while (wait()) {
    }
}

// One look at everything; false when the supervisor is gone.
auto broker::wait() -> bool {
    const short room = asks_.empty() ? 0 : POLLOUT;
    const bool full = connections_.size() >= most_connections;
    sources_.assign({{control_.get(), static_cast<short>(POLLIN | room), 0},
                     {full ? -1 : listener_.get(), POLLIN, 0}});
    auto next = clock::time_point::max();
    for (const auto& one : connections_) {
        // A connection that waits for its answer is not looked at: its end would wake us for ever.
        const bool idle = one.now == doing::asking;
        const short wanted = one.now == doing::writing ? POLLOUT : POLLIN;
        sources_.push_back({idle ? -1 : one.socket.get(), wanted, 0});
        next = std::min(next, one.deadline);
    }
    ::timespec left{};
    if (next != clock::time_point::max()) {
        const auto time = std::max(next - clock::now(), clock::duration::zero());
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
        left = {whole.count(), std::chrono::nanoseconds{time - whole}.count()};
    }
    const bool timed = next != clock::time_point::max();
    if (::ppoll(sources_.data(), sources_.size(), timed ? &left : nullptr, nullptr) < 0)
        return errno == EINTR;
    std::size_t at = 2; // `connections_` only grows until all were served
    for (auto& one : connections_) serve(one, sources_[at++].revents);
    if (sources_[0].revents != 0 && !take_orders()) return false;
    if (sources_[1].revents != 0) accept_all();
    if (!send_asks()) return false;
    std::erase_if(connections_, [](const auto& one) { return one.now == doing::closed; });
    return true;
}

void broker::serve(connection& one, short events) {
    if (clock::now() >= one.deadline) one.now = doing::closed;
    else if (events == 0) return;
    else if (one.now == doing::reading) read(one);
    else if (one.now == doing::writing) write(one);
}

auto broker::take_orders() -> bool {
    std::string order(longest_order, '\0');
    ::iovec part{order.data(), order.size()};
    alignas(::cmsghdr) char space[CMSG_LEN(sizeof(int))] = {};
    ::msghdr whole{};
    whole.msg_iov = &part;
    whole.msg_iovlen = 1;
    whole.msg_control = space;
    whole.msg_controllen = sizeof space;
    const auto got = ::recvmsg(control_.get(), &whole, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    sys::unique_fd came;
    const auto* const header = CMSG_FIRSTHDR(&whole);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(header), sizeof number);
        came = sys::unique_fd{number};
    }
    order.resize(static_cast<std::size_t>(got));
    return carry_out(order, std::move(came));
}

auto broker::carry_out(std::string_view order, sys::unique_fd came) -> bool {
    broker_order head;
    if (order.size() < sizeof head) return false;
    std::memcpy(&head, order.data(), sizeof head);
    const auto bytes = order.substr(sizeof head);
    if (head.size > bytes.size()) return false;
    switch (head.what) {
    case broker_word::identity:
        key_ =
            identity{std::string{bytes.substr(0, head.size)}, std::string{bytes.substr(head.size)}};
        return true;
    case broker_word::listener: listener_ = std::move(came); return true;
    case broker_word::signature:
    case broker_word::refused: break;
    }
    const auto one = std::ranges::find(connections_, head.id, &connection::id);
    if (one == connections_.end() || one->now != doing::asking) return true; // it has gone
    answer(*one, head.what == broker_word::signature ? signature_frame(bytes) : failure_frame());
    return true;
}

void broker::accept_all() {
    while (connections_.size() < most_connections) {
        sys::unique_fd socket{
            ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
        if (!socket) return;
        connections_.push_back({.socket = std::move(socket), .id = ++last_id_});
    }
}

void broker::read(connection& one) {
    // Never more than the frame at hand: the next one is read when this is answered.
    const auto most = std::min(one.in.wanted(), buffer_.size());
    const auto got = ::recv(one.socket.get(), buffer_.data(), most, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        one.now = doing::closed;
        return;
    }
    if (!one.in.has_part()) one.deadline = clock::now() + patience_;
    one.in.add({buffer_.data(), static_cast<std::size_t>(got)});
    if (!one.in.is_sound()) one.now = doing::closed;
    else if (const auto message = one.in.take()) decide(one, *message);
}

void broker::decide(connection& one, std::string_view message) {
    const auto asked = read_request(message);
    if (key_ && asked.kind == request_kind::list) return answer(one, identities_frame(*key_));
    const bool may_sign = key_ && asked.kind == request_kind::sign && asked.key == key_->key &&
                          (asked.flags & ~known_flags) == 0;
    if (!may_sign) return answer(one, failure_frame());
    one.now = doing::asking;
    one.deadline = clock::time_point::max(); // the supervisor has one
    one.ask = sign_news(one.id, asked.data, asked.flags);
    asks_.push_back(one.id);
}

void broker::answer(connection& one, std::string frame) {
    one.out = std::move(frame);
    one.now = doing::writing;
    one.deadline = clock::now() + patience_;
    write(one);
}

void broker::write(connection& one) {
    const auto put =
        ::send(one.socket.get(), one.out.data(), one.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (put < 0) {
        one.now = doing::closed;
        return;
    }
    one.out.erase(0, static_cast<std::size_t>(put));
    if (!one.out.empty()) return;
    one.now = doing::reading;
    one.deadline = clock::time_point::max();
}

auto broker::send_asks() -> bool {
    while (!asks_.empty()) {
        const auto one = std::ranges::find(connections_, asks_.front(), &connection::id);
        if (one != connections_.end() && one->now == doing::asking) {
            if (::send(control_.get(), one->ask.data(), one->ask.size(),
                       MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
                if (errno == EAGAIN || errno == EINTR) return true;
                if (errno == EPIPE || errno == ECONNRESET) return false;
                answer(*one, failure_frame()); // such as more than this kernel sends at once
            }
            one->ask.clear();
        }
        asks_.pop_front();
    }
    return true;
}

} // namespace glove::ssh
