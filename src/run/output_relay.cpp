// Reads only what it can hand on: while bytes wait for the caller's reader, the agent's pipe fills
// and the agent waits, as it would without a relay.
#include "run/output_relay.hpp"
#include "run/caller_terminal.hpp"
#include <algorithm>
#include <fcntl.h>
#include <glove/sys/files.hpp>
#include <unistd.h>

namespace glove::run {

namespace {

// A private terminal gives 4 KiB at a time; more of them make one write.
constexpr std::size_t buffer_bytes = 64UL * 1024;
// A pipe that polls writable takes this much without blocking. A terminal that could not be opened
// anew takes no more than one byte for certain.
constexpr std::size_t pipe_bytes = 4096;
constexpr std::size_t terminal_bytes = 1;

void never_block(int fd) {
    if (const int flags = ::fcntl(fd, F_GETFL); flags >= 0)
        (void)::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

[[nodiscard]] auto same_file(sys::fd_ref a, sys::fd_ref b) -> result<bool> {
    GLOVE_TRY(const auto first, sys::inspect(a));
    GLOVE_TRY(const auto second, sys::inspect(b));
    return first.identity == second.identity;
}

} // namespace

void output_relay::add(channel made) {
    never_block(made.from.get()); // this end's open file is ours alone
    made.buffer.resize(buffer_bytes);
    channels_.push_back(std::move(made));
}

auto output_relay::create(std::uint64_t limit, std::array<bool, 2> wanted) -> result<output_relay> {
    output_relay out{limit};
    out.nothing_ = sys::unique_fd{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
    if (!out.nothing_) return fail_os("relay.pipe", errno, "/dev/null");
    GLOVE_TRY(const bool merged,
              same_file(sys::fd_ref::standard_output(), sys::fd_ref::standard_error()));
    for (int target = 1; target <= 2; ++target) {
        const auto at = static_cast<std::size_t>(target) - 1;
        if (!wanted[at]) continue;
        if (target == 2 && merged && wanted[0]) {
            out.agent_streams_[1] = out.agent_streams_[0];
            continue;
        }
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return fail_os("relay.pipe");
        out.agent_streams_[at] = ends[1];
        channel made{.from = sys::unique_fd{ends[0]},
                     .agent_end = sys::unique_fd{ends[1]},
                     .own = reopen_terminal(target, O_WRONLY),
                     .to = target,
                     .chunk = ::isatty(target) == 1 ? terminal_bytes : pipe_bytes};
        if (made.own) {
            made.to = made.own.get();
            made.chunk = 0;
        }
        out.add(std::move(made));
    }
    return out;
}

void output_relay::agent_has_streams() {
    for (auto& c : channels_) c.agent_end = {};
}

void output_relay::add_terminal(sys::unique_fd master, sys::fd_ref to, bool may_block) {
    const auto careful = ::isatty(to.get()) == 1 ? terminal_bytes : pipe_bytes;
    add({.from = std::move(master),
         .agent_end = {},
         .to = to.get(),
         .is_terminal = true,
         .chunk = may_block ? careful : 0});
}

auto output_relay::interest() const -> std::vector<::pollfd> {
    std::vector<::pollfd> out;
    interest(out);
    return out;
}

void output_relay::interest(std::vector<::pollfd>& into) const {
    for (const auto& c : channels_) {
        if (c.has_waiting()) into.push_back({c.to, POLLOUT, 0});
        else if (!c.ended) into.push_back({c.from.get(), POLLIN, 0});
    }
}

void output_relay::advance(std::span<const ::pollfd> ready) {
    for (const auto& event : ready) {
        if (event.revents == 0) continue;
        for (auto& c : channels_) {
            if (event.fd == c.to && event.events == POLLOUT) write(c);
            else if (event.fd == c.from.get() && event.events == POLLIN) read(c);
        }
    }
    if (agent_ended_) take_the_rest();
    for (auto& c : channels_) let_go(c);
}

void output_relay::agent_has_ended() {
    agent_ended_ = true;
    take_the_rest();
}

void output_relay::take_the_rest() {
    for (auto& c : channels_)
        if (!c.ended && !c.has_waiting()) read(c);
}

// The reader sees the end when the agent closes its output, not when Glove ends. Standard error
// stays: Glove itself still has to speak.
void output_relay::let_go(channel& done) {
    if (!done.ended || done.has_waiting()) return;
    if (done.own) {
        done.own = {};
        done.to = -1;
    }
    if (done.to != 1) return;
    if (::dup2(nothing_.get(), done.to) == done.to) done.to = -1;
}

auto output_relay::check() const -> result<> {
    if (lost_ != 0) return fail_os("relay.output", lost_, "output of the command was lost");
    return {};
}

// Takes what is there, so that many small pieces make one write.
void output_relay::read(channel& from) {
    from.begin = from.end = 0;
    while (from.end < from.buffer.size()) {
        const auto got =
            ::read(from.from.get(), from.buffer.data() + from.end, from.buffer.size() - from.end);
        if (got > 0) {
            from.end += static_cast<std::size_t>(got);
            continue;
        }
        const int os = got < 0 ? errno : 0;
        if (os == EINTR) continue;
        if (os == EAGAIN && !agent_ended_) break;
        from.ended = true; // a terminal's last user has gone: EIO
        if (os != 0 && os != EAGAIN && !from.is_terminal && lost_ == 0) lost_ = os;
        break;
    }
    if (from.is_terminal && returns_are_doubled_) drop_returns(from);
    count(from);
    if (from.has_waiting() && from.chunk == 0) write(from);
}

// One at the very end of what was read stays, which does no harm.
void output_relay::drop_returns(channel& from) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < from.end; ++i) {
        const bool doubled =
            from.buffer[i] == '\r' && i + 1 < from.end && from.buffer[i + 1] == '\n';
        if (!doubled) from.buffer[kept++] = from.buffer[i];
    }
    from.end = kept;
}

void output_relay::count(channel& from) {
    if (from.end > limit_ - passed_) {
        from.end = static_cast<std::size_t>(limit_ - passed_);
        excess_ = true;
    }
    passed_ += from.end;
}

void output_relay::write(channel& to) {
    if (!to.has_waiting()) return;
    auto size = to.end - to.begin;
    if (to.chunk != 0) size = std::min(size, to.chunk);
    const auto put = ::write(to.to, to.buffer.data() + to.begin, size);
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (put < 0) return lose_reader(to, errno);
    to.begin += static_cast<std::size_t>(put);
}

void output_relay::lose_reader(channel& to, int os) {
    to.begin = to.end;
    if (to.is_terminal) {
        // The agent learns it from the hang-up. What it still says must not hold it up.
        hung_up_ = true;
        to.to = nothing_.get();
        return;
    }
    if (os != EPIPE && lost_ == 0) lost_ = os;
    // The reader is gone. Closing our end lets the agent learn it the usual way, by SIGPIPE.
    to.ended = true;
    to.from = {};
}

} // namespace glove::run
