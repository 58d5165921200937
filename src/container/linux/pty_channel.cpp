// EIO on a master says that nobody has the other side open. While the session lives somebody may
// open it again, and polling would tell of the hang-up without end: so it is looked at now and
// then.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <glove/container/pty_channel.hpp>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace glove::container {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds hang_up_pause{20};
constexpr milliseconds input_pause{5};

// For poll: never early, and not so long that a clock of another speed is missed.
[[nodiscard]] auto wait_time(nanoseconds left) -> int {
    constexpr nanoseconds most = std::chrono::seconds{1};
    left = std::clamp(left, nanoseconds{0}, most);
    return static_cast<int>(std::chrono::ceil<milliseconds>(left).count());
}

} // namespace

pty_channel::pty_channel(sys::unique_fd master, sys::unique_fd wake, wish with)
    : master_{std::move(master)}, wake_{std::move(wake)}, with_{std::move(with)},
      piece_{std::make_unique_for_overwrite<char[]>(piece_bytes)} {}
pty_channel::~pty_channel() = default;

auto pty_channel::adopt(sys::unique_fd master, wish with) -> result<std::unique_ptr<pty_channel>> {
    if (with.into == nullptr || with.clock == nullptr)
        return fail(errc::invalid_input, "pty.master", "a channel needs a transcript and a clock");
    int number = -1;
    if (!master || ::ioctl(master.get(), TIOCGPTN, &number) != 0)
        return fail(errc::invalid_input, "pty.master", "it is no master of a pseudo-terminal");
    // Control bytes among the output would be counted and shown as output.
    const int plain = 0;
    if (::ioctl(master.get(), TIOCPKT, &plain) != 0) return fail_os("pty.master", errno, "TIOCPKT");
    const int flags = ::fcntl(master.get(), F_GETFL);
    if (flags < 0 || ::fcntl(master.get(), F_SETFL, flags | O_NONBLOCK) != 0)
        return fail_os("pty.master", errno, "O_NONBLOCK");
    sys::unique_fd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (!wake) return fail_os("pty.wake");
    return std::unique_ptr<pty_channel>{
        new pty_channel{std::move(master), std::move(wake), std::move(with)}};
}

// Counts first and records then, so that nothing is ever recorded that was not counted.
auto pty_channel::take(std::string_view bytes) -> result<> {
    {
        const std::scoped_lock hold{lock_};
        const auto left =
            with_.most_output_bytes - std::min(account_.output_bytes, with_.most_output_bytes);
        auto counted = std::min<std::uint64_t>(left, bytes.size());
        if (!account_.exceeded && counted < bytes.size()) {
            ++counted;
            account_.exceeded = true;
        }
        account_.output_bytes += counted;
        account_.discarded_bytes += bytes.size() - counted;
        bytes = bytes.substr(0, static_cast<std::size_t>(counted));
    }
    return with_.into->append(bytes);
}

auto pty_channel::read() -> result<found> {
    const auto got = ::read(master_.get(), piece_.get(), piece_bytes);
    if (got > 0) {
        GLOVE_CHECK(take({piece_.get(), static_cast<std::size_t>(got)}));
        return found::bytes;
    }
    if (got == 0 || errno == EIO) return found::hang_up;
    if (errno == EAGAIN || errno == EINTR) return found::nothing;
    const int os = errno;
    end(false);
    return fail_os("pty.read", os);
}

// A hang-up is the end only when it was found after everybody had ended.
auto pty_channel::step(bool finishing) -> result<found> {
    GLOVE_TRY(const auto what, read());
    if (what == found::hang_up && finishing) end(true);
    return what;
}

void pty_channel::wait(bool for_output, nanoseconds until) const {
    ::pollfd ends[2]{{wake_.get(), POLLIN, 0}, {master_.get(), POLLIN, 0}};
    if (::poll(ends, for_output ? 2 : 1, wait_time(until - with_.clock->monotonic())) <= 0) return;
    std::uint64_t rung = 0;
    if (ends[0].revents != 0) (void)!::read(wake_.get(), &rung, sizeof rung);
}

auto pty_channel::pump(nanoseconds until) -> result<pty_event> {
    for (;;) {
        if (account().ended) return pty_event::ended;
        const nanoseconds deadline{finish_.load()};
        if (with_.clock->monotonic() >= deadline) {
            end(false);
            return pty_event::ended;
        }
        GLOVE_TRY(const auto what, step(deadline.count() != never));
        const auto now = account();
        if (now.ended) return pty_event::ended;
        if (now.exceeded && !std::exchange(told_, true)) return pty_event::exceeded;
        const auto time = with_.clock->monotonic();
        if (time >= until) return pty_event::time;
        if (what == found::nothing) wait(true, std::min(until, deadline));
        if (what == found::hang_up)
            wait(false, std::min({until, deadline, nanoseconds{time + hang_up_pause}}));
    }
}

void pty_channel::finish_by(nanoseconds deadline) {
    auto expected = never;
    // A deadline of "never" is none.
    (void)finish_.compare_exchange_strong(expected, std::min(deadline.count(), never - 1));
    const std::uint64_t one = 1;
    // A full counter is awake already.
    (void)!::write(wake_.get(), &one, sizeof one);
}

void pty_channel::end(bool drained) {
    {
        const std::scoped_lock hold{lock_};
        account_.ended = true;
        account_.drained = drained;
        drained = drained && account_.discarded_bytes == 0;
    }
    with_.into->finish(drained);
}

auto pty_channel::account() const -> pty_account {
    const std::scoped_lock hold{lock_};
    return account_;
}

auto pty_channel::require_open() const -> result<> {
    if (account().ended) return fail(errc::wrong_state, "pty.ended", "the terminal has ended");
    return {};
}

auto pty_channel::write(std::string_view bytes) -> result<> {
    if (bytes.empty() || bytes.size() > piece_bytes)
        return fail(errc::invalid_input, "pty.input",
                    std::to_string(bytes.size()) + " bytes; 1 to " + std::to_string(piece_bytes) +
                        " are taken at once");
    const auto deadline = with_.clock->monotonic() + input_time;
    std::unique_lock line{line_};
    if (writers_ == most_writers)
        return fail(errc::limit_exceeded, "pty.input",
                    std::to_string(most_writers) + " writers wait already");
    ++writers_;
    const bool mine = next_.wait_for(line, input_time, [this] { return !writing_; });
    if (mine) writing_ = true;
    line.unlock();
    result<> done = mine ? write_by(deadline, bytes)
                         : result<>{fail(errc::timed_out, "pty.input",
                                         "other input came first; none was taken")};
    line.lock();
    --writers_;
    if (mine) writing_ = false;
    next_.notify_one();
    return done;
}

// Room, a stopped terminal and one that nobody has open are all the same: to be tried again.
auto pty_channel::write_by(nanoseconds deadline, std::string_view bytes) -> result<> {
    const auto size = bytes.size();
    for (bool again = false; !bytes.empty();) {
        GLOVE_CHECK(require_open());
        const auto put = ::write(master_.get(), bytes.data(), bytes.size());
        if (put > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(put));
            again = false;
            continue;
        }
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno != EAGAIN && errno != EIO) return fail_os("pty.input");
        const auto left = deadline - with_.clock->monotonic();
        if (left <= nanoseconds{0})
            return fail(errc::timed_out, "pty.input",
                        std::to_string(size - bytes.size()) + " of " + std::to_string(size) +
                            " bytes were taken in a second");
        ::pollfd room{master_.get(), POLLOUT, 0};
        // After a second refusal the poll is not believed: it may say "hang-up" without end.
        if (again) (void)::poll(nullptr, 0, wait_time(std::min<nanoseconds>(left, input_pause)));
        else (void)::poll(&room, 1, wait_time(left));
        again = true;
    }
    return {};
}

auto pty_channel::resize(std::uint16_t rows, std::uint16_t columns) -> result<> {
    if (rows == 0 || rows > most_lines || columns == 0 || columns > most_lines)
        return fail(errc::invalid_input, "pty.size",
                    std::to_string(rows) + " rows and " + std::to_string(columns) +
                        " columns; each may be 1 to " + std::to_string(most_lines));
    GLOVE_CHECK(require_open());
    const ::winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    if (::ioctl(master_.get(), TIOCSWINSZ, &size) != 0) return fail_os("pty.size");
    return {};
}

// TIOCSIG takes SIGINT, but neither SIGTERM nor SIGHUP.
auto pty_channel::signal(int number) -> result<> {
    if (number != SIGINT && number != SIGTERM && number != SIGHUP)
        return fail(errc::invalid_input, "pty.signal",
                    std::to_string(number) + " is neither SIGINT nor SIGTERM nor SIGHUP");
    GLOVE_CHECK(require_open());
    if (number == SIGINT && ::ioctl(master_.get(), TIOCSIG, number) == 0) return {};
    if (!with_.signal_foreground)
        return fail(errc::unsupported, "pty.signal",
                    "signal " + std::to_string(number) + " needs somebody inside of the session");
    return with_.signal_foreground(number);
}

} // namespace glove::container
