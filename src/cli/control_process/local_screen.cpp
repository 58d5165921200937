// One poll over signals and input. Output waits by itself, in pieces that a pipe takes at once.
#include "cli/control_process/local_screen.hpp"
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <glove/base/text.hpp>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace glove::cli {

namespace {

constexpr std::array ending{SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGXCPU,   SIGALRM, SIGVTALRM,
                            SIGPROF, SIGIO,  SIGPWR, SIGUSR1, SIGSTKFLT, SIGUSR2};
constexpr std::array telling{SIGWINCH, SIGTSTP, SIGCONT};
constexpr std::array unwanted{SIGPIPE, SIGTTIN, SIGTTOU, SIGXFSZ};
constexpr std::array crashes{SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
constexpr std::size_t piece_bytes = 4096; // that a pipe takes without waiting when it takes any

// What the caller ignores (nohup) stays ignored.
template<std::size_t N> [[nodiscard]] auto inbox_of(const std::array<int, N>& numbers)
    -> result<sys::unique_fd> {
    ::sigset_t wanted;
    ::sigemptyset(&wanted);
    for (const int number : numbers) {
        struct ::sigaction now{};
        if (::sigaction(number, nullptr, &now) != 0) return fail_os("signals.query");
        if (now.sa_handler != SIG_IGN) ::sigaddset(&wanted, number);
    }
    if (::sigprocmask(SIG_BLOCK, &wanted, nullptr) != 0) return fail_os("signals.block");
    sys::unique_fd out{::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (!out) return fail_os("signals.open");
    return out;
}

[[nodiscard]] auto next_signal(sys::fd_ref inbox) -> int {
    ::signalfd_siginfo info{};
    return ::read(inbox.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                                  : 0;
}

// For a crash: whoever it is that finds the terminal then finds it usable.
struct {
    int fd = -1;
    ::termios modes{};
} at_crash;

void put_back_and_crash(int number) {
    if (at_crash.fd >= 0) (void)::tcsetattr(at_crash.fd, TCSANOW, &at_crash.modes);
    (void)::raise(number); // the handler is gone already
}

void restore_at_crash(int fd, const ::termios& modes) {
    at_crash.modes = modes;
    at_crash.fd = fd;
    struct ::sigaction how{};
    how.sa_handler = put_back_and_crash;
    how.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    for (const int number : crashes) (void)::sigaction(number, &how, nullptr);
}

} // namespace

auto ending_signals::open() -> result<ending_signals> {
    for (const int number : unwanted)
        if (::signal(number, SIG_IGN) == SIG_ERR) return fail_os("signals.disposition");
    GLOVE_TRY(auto fd, inbox_of(ending));
    return ending_signals{std::move(fd)};
}

auto ending_signals::take() const -> int { return next_signal(fd_); }

auto local_screen::open(screen_wish wish, const ending_signals& ends,
                        std::optional<run::caller_terminal> terminal)
    -> result<std::unique_ptr<local_screen>> {
    sys::unique_fd events;
    if (terminal) {
        GLOVE_TRY(events, inbox_of(telling));
    }
    std::unique_ptr<local_screen> out{
        new local_screen{std::move(wish), ends, std::move(terminal), std::move(events)}};
    if (out->terminal_) {
        if (const auto modes = out->terminal_->modes())
            restore_at_crash(out->terminal_->descriptor().get(), *modes);
        out->take();
    }
    return out;
}

local_screen::~local_screen() {
    (void)finish();
    at_crash.fd = -1;
}

// One that takes nothing now is not waited for.
auto local_screen::finish() -> bool {
    const auto undo = terminal_ && !finished_ ? modes_.undo() : std::string{};
    finished_ = true;
    if (!undo.empty() && terminal_->is_taken() && terminal_->in_foreground() &&
        !terminal_->may_block())
        (void)!::write(output(), undo.data(), undo.size());
    give_back();
    return !undo.empty();
}

// Whoever has the foreground has modes of its own.
void local_screen::take() { (void)terminal_->take(); }
void local_screen::give_back() {
    if (terminal_) terminal_->give_back();
}

auto local_screen::input() const -> int {
    if (input_ended_ || wish_.input == typed_at::nowhere) return -1;
    if (!terminal_) return sys::fd_ref::standard_input().get();
    return terminal_->is_taken() && terminal_->in_foreground() ? terminal_->descriptor().get() : -1;
}

auto local_screen::output() const -> int {
    return terminal_ ? terminal_->descriptor().get() : sys::fd_ref::standard_output().get();
}

void local_screen::hear_events(news& into) {
    for (int number = next_signal(events_); number != 0; number = next_signal(events_)) {
        if (number == SIGTSTP) {
            give_back();
            run::stop_self(SIGTSTP);
            take();
        } else if (number == SIGCONT) {
            take();
        }
    }
    const auto now = terminal_->size();
    if (wish_.read_only || !now || now->ws_row == 0 || now->ws_col == 0) return;
    constexpr unsigned short most = 4096;
    const window_size size{std::min(now->ws_row, most), std::min(now->ws_col, most)};
    if (size == size_) return;
    size_ = size;
    into.size = size;
}

auto local_screen::read_input(news& into) -> result<> {
    std::array<char, piece_bytes> piece;
    const auto got = ::read(input(), piece.data(), piece.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got <= 0) {
        input_ended_ = true;
        into.hung_up = terminal_.has_value(); // the end of a stream is none of the session's
        return {};
    }
    const std::string_view typed{piece.data(), static_cast<std::size_t>(got)};
    if (!terminal_) {
        into.typed = typed;
        return {};
    }
    auto taken = wish_.leaves.take(typed);
    into.detaches = taken.complete;
    // Nothing can be interrupted then, so that is what it means.
    if (wish_.read_only) into.detaches = into.detaches || typed.find('\x03') != typed.npos;
    else into.typed = std::move(taken.passed);
    return {};
}

auto local_screen::wait(std::chrono::milliseconds most) -> result<news> {
    news out;
    if (terminal_) hear_events(out);
    if (out.size) return out;
    // A shell's `fg` tells a job that runs nothing.
    if (terminal_ && !terminal_->is_taken()) take();
    std::array watched{::pollfd{ends_.descriptor().get(), POLLIN, 0},
                       ::pollfd{terminal_ ? events_.get() : -1, POLLIN, 0},
                       ::pollfd{input(), POLLIN, 0}};
    const int ready =
        ::poll(watched.data(), watched.size(), static_cast<int>(std::max(most.count(), 0L)));
    if (ready < 0 && errno != EINTR) return fail_os("attach.wait");
    if (ready <= 0) return out;
    if (watched[0].revents != 0) out.signal = ends_.take();
    if (watched[1].revents != 0) hear_events(out);
    if (watched[2].revents != 0 && out.signal == 0) GLOVE_CHECK(read_input(out));
    return out;
}

auto local_screen::put(std::string_view bytes) -> result<> {
    while (!bytes.empty()) {
        std::array watched{::pollfd{ends_.descriptor().get(), POLLIN, 0},
                           ::pollfd{output(), POLLOUT, 0}};
        if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR)
            return fail_os("output", errno, "waiting");
        if (watched[0].revents != 0) return fail(errc::io, "output", "it was given up");
        if (watched[1].revents == 0) continue;
        const auto put = ::write(output(), bytes.data(), std::min(bytes.size(), piece_bytes));
        if (put >= 0) bytes.remove_prefix(static_cast<std::size_t>(put));
        else if (errno != EAGAIN && errno != EINTR)
            return fail_os("output", errno, terminal_ ? "the terminal" : "standard output");
    }
    return {};
}

auto local_screen::show(const shown_page& page, std::string_view answer) -> result<> {
    if (wish_.pages) return put(std::string{answer} + "\n");
    GLOVE_CHECK(put(page.bytes));
    if (terminal_) modes_.see(page.bytes);
    return {};
}

void local_screen::remark(std::string_view words) {
    const bool raw = terminal_ && terminal_->is_taken() && terminal_->is(2);
    const std::string_view line_end = raw ? "\r\n" : "\n";
    const auto text = std::string{raw ? line_end : ""} + "glove: " + printable(words);
    (void)std::fputs((text + std::string{line_end}).c_str(), stderr);
}

} // namespace glove::cli
