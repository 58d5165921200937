// Never blocks, never reads more than one frame; the service's own time is not the client's.
#include "control/exchange.hpp"
#include <algorithm>
#include <cerrno>
#include <sys/socket.h>

namespace glove::control {

auto exchange::receive(char* to, std::size_t size) -> std::optional<std::size_t> {
    for (;;) {
        const auto got = ::recv(socket_.get(), to, size, MSG_DONTWAIT);
        if (got > 0) return static_cast<std::size_t>(got);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            stopped_ = outcome::more;
        } else if (got == 0 && header_size_ == 0) {
            stopped_ = outcome::left;
        } else {
            stopped_ = outcome::failed;
            why_ = {got == 0 ? errc::invalid_input : errc::io, "exchange.read",
                    got == 0 ? 0 : errno, "the client closed in the middle of its request"};
        }
        return std::nullopt;
    }
}

auto exchange::read_header() -> outcome {
    while (header_size_ < header_.size()) {
        const auto got = receive(header_.data() + header_size_, header_.size() - header_size_);
        if (!got) return stopped_;
        header_size_ += *got;
    }
    auto bytes = frame_body_bytes({header_.data(), header_.size()});
    if (!bytes) {
        why_ = std::move(bytes).error();
        return outcome::failed;
    }
    wanted_ = *bytes;
    if (!is_large()) return outcome::arrived;
    step_ = step::waiting;
    return outcome::large;
}

// In one place from the beginning: growing would leave copies behind that nobody wipes.
auto exchange::read_body() -> outcome {
    constexpr std::size_t piece = 16UL << 10;
    body_.reserve(*wanted_);
    while (body_.size() < *wanted_) {
        const auto before = body_.size();
        body_.resize(std::min(*wanted_, before + piece));
        const auto got = receive(body_.data() + before, body_.size() - before);
        body_.resize(before + got.value_or(0));
        if (!got) return stopped_;
    }
    return outcome::arrived;
}

auto exchange::read_some() -> outcome {
    if (!wanted_)
        if (const auto head = read_header(); head != outcome::arrived) return head;
    return read_body();
}

void exchange::begin_work(const arrival& when) {
    step_ = step::working;
    arrived_ = when;
    left_ = deadline_ - when.monotonic;
}

void exchange::end_work(std::string answer, time now) {
    step_ = step::writing;
    deadline_ = now + left_;
    wipe(body_);
    body_.shrink_to_fit();
    if (answer.empty()) return; // there is none, and the connection is closed
    const auto header = frame_header(answer.size());
    if (!header) return;
    answer_.reserve(header->size() + answer.size());
    answer_.append(header->data(), header->size()).append(answer);
}

auto exchange::write_some() -> outcome {
    while (sent_ < answer_.size()) {
        const auto put = ::send(socket_.get(), answer_.data() + sent_, answer_.size() - sent_,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put >= 0) {
            sent_ += static_cast<std::size_t>(put);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return outcome::more;
        } else if (errno != EINTR) {
            why_ = {errc::io, "exchange.write", errno, "the client does not take its answer"};
            return outcome::failed;
        }
    }
    return outcome::done;
}

} // namespace glove::control
