// One buffer, filled only when it is empty.
#include "run/input_relay.hpp"
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace glove::run {

void input_relay::connect(sys::unique_fd to, bool to_terminal) {
    to_ = std::move(to);
    to_terminal_ = to_terminal;
    if (const int flags = ::fcntl(to_.get(), F_GETFL); flags >= 0)
        (void)::fcntl(to_.get(), F_SETFL, flags | O_NONBLOCK);
}

void input_relay::interest(std::vector<::pollfd>& into) const {
    const bool full = begin_ != end_;
    if (full && to_ && !held_) into.push_back({to_.get(), POLLOUT, 0});
    if (ended_ || hung_up_) return;
    const bool reads = enabled_ && !held_ && !full && to_;
    // A terminal's hang-up is told even when nothing is asked for.
    if (reads || kind_ == source::terminal)
        into.push_back({from_, static_cast<short>(reads ? POLLIN : 0), 0});
}

void input_relay::advance(std::span<const ::pollfd> ready) {
    for (const auto& event : ready) {
        if (event.revents == 0) continue;
        if (to_ && event.fd == to_.get() && event.events == POLLOUT) write();
        if (event.fd != from_ || event.events == POLLOUT) continue;
        if (kind_ == source::terminal && (event.revents & (POLLHUP | POLLERR)) != 0)
            hung_up_ = true;
        else if (event.events == POLLIN) read();
    }
}

void input_relay::read() {
    const auto got = ::read(from_, waiting_.data(), waiting_.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
        // Raw, it has no other end.
        if (kind_ == source::terminal && got == 0 && to_terminal_) hung_up_ = true;
        // A terminal that went to another group says EIO; it is asked again when it comes back.
        else if (kind_ == source::terminal && got < 0) enabled_ = false;
        else end();
        return;
    }
    begin_ = 0;
    end_ = static_cast<std::size_t>(got);
    at_line_start_ = waiting_[end_ - 1] == '\n';
    write();
}

void input_relay::write() {
    while (begin_ != end_) {
        const auto put = ::write(to_.get(), waiting_.data() + begin_, end_ - begin_);
        if (put < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (put <= 0) break;
        begin_ += static_cast<std::size_t>(put);
    }
    if (begin_ == end_) {
        if (ended_ && !to_terminal_) to_ = {};
        return;
    }
    // Nobody will ever read it: a pipe whose reader has gone.
    begin_ = end_;
    ended_ = true;
    to_ = {};
}

// In the middle of a line the first end-of-file character only hands that line over.
void input_relay::end() {
    ended_ = true;
    begin_ = end_ = 0;
    if (!to_terminal_) {
        to_ = {};
        return;
    }
    constexpr int only_looks = O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
    peer_ = sys::unique_fd{::ioctl(to_.get(), TIOCGPTPEER, only_looks)};
    if (end_of_file() == 0) return;
    end_ = at_line_start_ ? 1 : 2;
    std::fill_n(waiting_.begin(), end_, end_of_file());
    write();
}

void input_relay::repeat_end() {
    if (!repeats_end() || held_ || begin_ != end_) return;
    ::pollfd unread{peer_.get(), POLLIN, 0};
    if (end_of_file() == 0 || ::poll(&unread, 1, 0) != 0) return;
    begin_ = 0;
    end_ = 1;
    waiting_[0] = end_of_file();
    write();
}

// The key for it at the agent's terminal; 0 when that reads no lines.
auto input_relay::end_of_file() const -> char {
    ::termios modes{};
    if (::tcgetattr(to_.get(), &modes) != 0 || (modes.c_lflag & ICANON) == 0) return 0;
    return static_cast<char>(modes.c_cc[VEOF]);
}

void input_relay::take_typed_ahead() {
    ::termios modes{};
    if (begin_ != end_ || ::tcgetattr(from_, &modes) != 0 || (modes.c_lflag & ICANON) == 0) return;
    begin_ = end_ = 0;
    while (end_ < waiting_.size()) {
        const auto got = ::read(from_, waiting_.data() + end_, waiting_.size() - end_);
        if (got < 0) break;
        end_ += static_cast<std::size_t>(got);
        if (got > 0) continue;
        const char key = end_of_file();
        if (key != 0) waiting_[end_++] = key;
        break;
    }
    at_line_start_ = end_ == 0 || waiting_[end_ - 1] == '\n';
    if (!held_) write();
}

} // namespace glove::run
