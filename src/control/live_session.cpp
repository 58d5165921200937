// What the two threads of a session do, and how it is ended.
#include "control/live_session.hpp"
#include <algorithm>
#include <glove/sys/threads.hpp>
#include <poll.h>
#include <sys/eventfd.h>
#include <vector>

namespace glove::control {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kill_again{200};
constexpr nanoseconds longest_wait = std::chrono::seconds{1};
constexpr nanoseconds longest_pump = std::chrono::hours{1};

// For poll: never early, and not so long that a clock of another speed is missed.
[[nodiscard]] auto wait_time(nanoseconds left) -> int {
    left = std::clamp(left, nanoseconds{0}, longest_wait);
    return static_cast<int>(std::chrono::ceil<milliseconds>(left).count());
}

} // namespace

live_session::live_session(std::string name, std::string_view key, const sys::clock& clock,
                           service_log& log)
    : id{std::move(name)}, keys{key}, clock_{clock}, log_{log} {}
live_session::~live_session() { let_go(); }

void live_session::tell(std::string_view name, const error& why) const {
    log_.write({.name = name, .why = &why, .text = id});
}

auto live_session::hosted() const -> std::shared_ptr<hosted_session> {
    const std::scoped_lock hold{lock_};
    return hosted_;
}
auto live_session::channel() const -> std::shared_ptr<container::pty_channel> {
    if (point_ != point::alive) return nullptr;
    const std::scoped_lock hold{lock_};
    return channel_;
}
auto live_session::transcript() const -> const container::transcript* {
    return is_started() ? text_.get() : nullptr;
}

auto live_session::adopt(std::unique_ptr<hosted_session> what) -> result<> {
    sys::unique_fd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (!wake) return fail_os("runtime.wake");
    const std::scoped_lock hold{lock_};
    hosted_ = std::move(what);
    wake_ = std::move(wake);
    return {};
}

auto live_session::open_terminal(const std::shared_ptr<hosted_session>& of) -> result<> {
    std::vector<container::transcript_sink*> sinks;
    if (auto eye = of->take_evaluator()) {
        eye_.emplace(*std::move(eye));
        sinks.push_back(&*eye_);
    }
    GLOVE_TRY(text_, container::transcript::create(container::transcript::usual_capacity,
                                                   std::move(sinks)));
    GLOVE_TRY(auto channel,
              container::pty_channel::adopt(
                  of->take_terminal(),
                  {.most_output_bytes = plan.limits.terminal_output_bytes,
                   .into = text_.get(),
                   .clock = &clock_,
                   .signal_foreground = [kept = std::weak_ptr{of}](int number) -> result<> {
                       const auto there = kept.lock();
                       if (there) return there->signal_foreground(number);
                       return fail(errc::wrong_state, "pty.ended", "the session is over");
                   }}));
    const std::scoped_lock hold{lock_};
    channel_ = std::move(channel);
    return {};
}

auto live_session::begin_watch(hosted_session& of) -> result<resource_watch> {
    return resource_watch::begin({.limits = plan.limits,
                                  .cpus = of.processors(),
                                  .clock = &clock_,
                                  .meter = &of.meter(),
                                  .into = &ended_by_});
}

// Everything that may fail does so before the session is on record as running.
auto live_session::attend(std::function<void()> watcher) -> result<> {
    const auto mine = hosted();
    GLOVE_CHECK(open_terminal(mine));
    GLOVE_TRY(watch_, begin_watch(*mine));
    // It may begin only after everything else is over.
    GLOVE_TRY(pumping_,
              sys::start_thread([this, from = channel_] { pump(*from); }, "runtime.thread"));
    const auto watch = [this, run = std::move(watcher)] {
        if (pass_gate()) run();
    };
    GLOVE_TRY(watching_, sys::start_thread(watch, "runtime.thread"));
    return {};
}

void live_session::open_gate(const answer<>& before) {
    const auto mine = hosted();
    // The one from before the record stays when its meters fail now: its next look finds that.
    if (auto fresh = begin_watch(*mine)) watch_ = *std::move(fresh);
    point_ = point::alive;
    const auto released = before ? mine->release() : std::unexpected(before.error().why);
    if (!released && !is_ending()) {
        tell("session.trouble", released.error());
        (void)ended_by_.note(termination_cause::supervisor_error);
        kill_now();
    }
    const std::scoped_lock hold{gate_lock_};
    gate_ = gate::opened;
    gate_moved_.notify_all();
}

auto live_session::pass_gate() -> bool {
    std::unique_lock hold{gate_lock_};
    gate_moved_.wait(hold, [this] { return gate_ != gate::shut; });
    return gate_ == gate::opened;
}

void live_session::abandon_start() {
    kill_now();
    {
        const std::scoped_lock hold{gate_lock_};
        gate_ = gate::abandoned;
        gate_moved_.notify_all();
    }
    {
        const std::scoped_lock hold{lock_};
        if (channel_) channel_->finish_by(nanoseconds{0});
    }
    join();
    let_go();
    note_over();
}

void live_session::pump(container::pty_channel& from) {
    bool told = false;
    for (;;) {
        const auto what = from.pump(clock_.monotonic() + longest_pump);
        if (what && *what == container::pty_event::ended) return;
        if (what && *what == container::pty_event::exceeded) {
            (void)ended_by_.note(termination_cause::terminal_output_limit);
            kill_now();
            wake();
        }
        if (what) continue;
        if (!std::exchange(told, true)) tell("session.trouble", what.error());
        if (!from.account().ended) continue; // an evaluator that lacks a piece knows it
        (void)ended_by_.note(termination_cause::supervisor_error);
        kill_now();
        return wake();
    }
}

void live_session::kill_now() {
    if (const auto mine = hosted()) (void)mine->kill(); // again by the thread that watches
}

void live_session::kill(const std::function<void()>& once_killed) {
    if (const auto mine = hosted())
        if (auto killed = mine->kill(); !killed && !std::exchange(kill_failed_, true))
            tell("session.trouble", killed.error());
    if (!std::exchange(is_recorded_, true)) once_killed();
}

auto live_session::look_at_limits() -> nanoseconds {
    const auto soon = clock_.monotonic() + kill_again;
    if (!is_watched_ || is_ending()) return soon;
    auto next = watch_->check();
    if (next) return is_ending() ? soon : *next;
    tell("session.trouble", next.error());
    is_watched_ = false;
    return soon;
}

auto live_session::wait_for_end(const std::function<void()>& once_killed)
    -> std::optional<process_end> {
    const auto mine = hosted();
    for (;;) {
        if (given_up_) return std::nullopt;
        const auto until = look_at_limits();
        if (is_ending()) kill(once_killed);
        wait(*mine, until);
        const auto end = mine->advance();
        if (end && !*end) continue;
        if (!end) tell("session.trouble", end.error());
        // Who was ended by somebody is on record as that, however soon it was over.
        if (!end || is_ending()) kill(once_killed);
        return end ? **end : process_end{};
    }
}

void live_session::wait(const hosted_session& of, nanoseconds until) const {
    std::vector<::pollfd> ends{{wake_.get(), POLLIN, 0}};
    for (const auto& one : of.descriptors()) ends.push_back({one.get(), POLLIN, 0});
    // Whatever comes of it, the host is asked then.
    const int ready = ::poll(ends.data(), ends.size(), wait_time(until - clock_.monotonic()));
    std::uint64_t rung = 0;
    if (ready > 0 && ends.front().revents != 0) (void)!::read(wake_.get(), &rung, sizeof rung);
}

auto live_session::settle(const process_end& end, nanoseconds drained_by) -> settled_end {
    watch_->end_wall_time();
    channel_->finish_by(drained_by);
    pumping_.join();
    auto out = control::settle(*watch_, channel_->account(), end, ended_by_);
    if (out.trouble) tell("session.trouble", *out.trouble);
    return out;
}

void live_session::end_it(bool is_on_record) {
    if (is_on_record) on_record_ = true;
    end_wanted_ = true;
    kill_now();
    wake();
}
auto live_session::is_ending() const -> bool { return end_wanted_ || ended_by_.verdict(); }

void live_session::give_up() {
    given_up_ = true;
    wake();
}

void live_session::wake() const {
    const std::scoped_lock hold{lock_};
    const std::uint64_t one = 1;
    if (wake_) (void)!::write(wake_.get(), &one, sizeof one); // a full counter is awake already
}

void live_session::let_go() {
    std::shared_ptr<hosted_session> hosted;
    std::shared_ptr<container::pty_channel> channel;
    sys::unique_fd wake;
    {
        const std::scoped_lock hold{lock_};
        hosted.swap(hosted_);
        channel.swap(channel_);
        wake.swap(wake_);
    }
    if (channel) channel->finish_by(nanoseconds{0});
    if (pumping_.joinable()) pumping_.join();
}

void live_session::note_over() {
    room.reset();
    point_ = point::over;
}

void live_session::join() {
    if (watching_.joinable()) watching_.join();
    if (pumping_.joinable()) pumping_.join();
}

} // namespace glove::control
