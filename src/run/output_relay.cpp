// Reads only what it can hand on: while bytes wait for the caller's reader, the agent's pipe fills
// and the agent waits, as it would without a relay.
#include "run/output_relay.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <unistd.h>

namespace glove::run {

namespace {

constexpr std::size_t read_bytes = 64UL * 1024;
// A pipe that polls writable takes this much without blocking; a terminal, a little.
constexpr std::size_t pipe_bytes = 4096;
constexpr std::size_t terminal_bytes = 256;

[[nodiscard]] auto same_file(sys::fd_ref a, sys::fd_ref b) -> result<bool> {
    GLOVE_TRY(const auto first, sys::inspect(a));
    GLOVE_TRY(const auto second, sys::inspect(b));
    return first.identity == second.identity;
}

} // namespace

auto output_relay::create(std::uint64_t limit) -> result<output_relay> {
    output_relay out{limit};
    out.nothing_ = sys::unique_fd{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
    if (!out.nothing_) return fail_os("relay.pipe", errno, "/dev/null");
    GLOVE_TRY(const bool merged,
              same_file(sys::fd_ref::standard_output(), sys::fd_ref::standard_error()));
    for (int target = 1; target <= (merged ? 1 : 2); ++target) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return fail_os("relay.pipe");
        out.channels_.push_back(
            {.from = sys::unique_fd{ends[0]}, .agent_end = sys::unique_fd{ends[1]}, .to = target});
    }
    return out;
}

auto output_relay::agent_streams() const -> std::array<int, 2> {
    return {channels_.front().agent_end.get(), channels_.back().agent_end.get()};
}

void output_relay::agent_has_streams() {
    for (auto& c : channels_) c.agent_end = {};
}

auto output_relay::interest() const -> std::vector<::pollfd> {
    std::vector<::pollfd> out;
    for (const auto& c : channels_) {
        if (!c.waiting.empty()) out.push_back({c.to, POLLOUT, 0});
        else if (!c.ended) out.push_back({c.from.get(), POLLIN, 0});
    }
    return out;
}

void output_relay::advance(const std::vector<::pollfd>& ready) {
    for (const auto& event : ready) {
        if (event.revents == 0) continue;
        for (auto& c : channels_) {
            if (event.fd == c.to && event.events == POLLOUT) write(c);
            else if (event.fd == c.from.get() && event.events == POLLIN) read(c);
        }
    }
    for (auto& c : channels_) let_go(c);
}

// The reader sees the end when the agent closes its output, not when Glove ends. Standard error
// stays: Glove itself still has to speak.
void output_relay::let_go(channel& done) {
    if (!done.ended || !done.waiting.empty() || done.to != 1) return;
    if (::dup2(nothing_.get(), done.to) == done.to) done.to = -1;
}

auto output_relay::check() const -> result<> {
    if (lost_ != 0) return fail_os("relay.output", lost_, "output of the command was lost");
    return {};
}

void output_relay::read(channel& from) {
    from.waiting.resize(read_bytes);
    const auto got = ::read(from.from.get(), from.waiting.data(), from.waiting.size());
    const int os = got < 0 ? errno : 0;
    from.waiting.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    const bool again = os == EINTR || os == EAGAIN;
    if (got <= 0 && !again) from.ended = true;
    if (os != 0 && !again && lost_ == 0) lost_ = os;
    if (from.waiting.size() > limit_ - passed_) {
        from.waiting.resize(limit_ - passed_);
        excess_ = true;
    }
    passed_ += from.waiting.size();
}

void output_relay::write(channel& to) {
    const auto chunk = ::isatty(to.to) == 1 ? terminal_bytes : pipe_bytes;
    const auto put = ::write(to.to, to.waiting.data(), std::min(to.waiting.size(), chunk));
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (put < 0) {
        if (errno != EPIPE && lost_ == 0) lost_ = errno;
        // The reader is gone. Closing our end lets the agent learn it the usual way, by SIGPIPE.
        to.waiting.clear();
        to.ended = true;
        to.from = {};
        return;
    }
    to.waiting.erase(0, static_cast<std::size_t>(put));
}

} // namespace glove::run
