// The turn.
#include "kernel/mediator_process/service.hpp"
#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/sys/standard_error.hpp>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

namespace glove::kernel {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr int events_at_once = 128;
constexpr auto patience_at_end = 6s;     // beyond what servers have
constexpr std::size_t most_notes = 5000; // each server has a bound of its own

constexpr unsigned kind_shift = 56, index_shift = 32;

[[nodiscard]] auto tag(std::uint8_t kind, std::size_t index, std::uint32_t generation)
    -> std::uint64_t {
    return std::uint64_t{kind} << kind_shift | std::uint64_t{index} << index_shift | generation;
}

} // namespace

service::service(service_options options, const sys::clock& time, control channel)
    : options_{options}, time_{time}, control_{std::move(channel)} {}
service::~service() = default;

void service::attach(gateway& gate, const std::vector<mcp::upstream_wish>& upstreams) {
    gate_ = &gate;
    wishes_ = upstreams;
    servers_ = std::vector<server_peer>(upstreams.size());
}

auto service::watch(sys::fd_ref what, source kind, std::size_t index, std::uint32_t generation,
                    std::uint32_t events) -> bool {
    ::epoll_event wanted{};
    wanted.events = events;
    wanted.data.u64 = tag(static_cast<std::uint8_t>(kind), index, generation);
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, what.get(), &wanted) == 0;
}

void service::rewatch(sys::fd_ref what, source kind, std::size_t index, std::uint32_t generation,
                      std::uint32_t events) {
    ::epoll_event wanted{};
    wanted.events = events;
    wanted.data.u64 = tag(static_cast<std::uint8_t>(kind), index, generation);
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, what.get(), &wanted);
}

auto service::open() -> result<> {
    // A peer that has gone, and a record that does not fit, are errors and no deaths.
    (void)::signal(SIGPIPE, SIG_IGN);
    (void)::signal(SIGXFSZ, SIG_IGN);
    ::sigset_t watched;
    ::sigemptyset(&watched);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::sigaddset(&watched, number);
    if (::sigprocmask(SIG_BLOCK, &watched, nullptr) != 0) return fail_os("mcp.signals");
    epoll_ = sys::unique_fd{::epoll_create1(EPOLL_CLOEXEC)};
    signals_ = sys::unique_fd{::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK)};
    alarm_ = sys::unique_fd{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
    if (!epoll_ || !signals_ || !alarm_ || !watch(signals_, source::signals, 0, 0, EPOLLIN) ||
        !watch(alarm_, source::alarm, 0, 0, EPOLLIN) ||
        (control_ && !watch(control_.descriptor(), source::control, 0, 0, EPOLLIN)))
        return fail_os("mcp.events");
    if (options_.what == service_options::kind::serve) return open_standard_agent();
    return {};
}

auto service::run() -> int {
    if (auto opened = open(); !opened) {
        problem_ = opened.error();
        control_.say(control_word::failed, in_words(*problem_));
        return 125;
    }
    now_ = gate_->begin_turn();
    gate_->start();
    finish_turn();
    while (!is_done()) turn();
    if (!problem_) return 0;
    return given_up_ ? 1 : 125;
}

auto service::is_done() const -> bool {
    if (!ending_) return false;
    if (now_ >= end_by_) return true;
    const bool servers = std::ranges::any_of(
        servers_, [](const server_peer& each) { return each.process.has_value(); });
    const bool agents = std::ranges::any_of(
        agents_, [](const agent_peer& each) { return each.open && each.queue.bytes() > 0; });
    return !servers && (!agents || given_up_);
}

// A time that has come: at once.
auto service::next_wake() const -> std::optional<nanoseconds> {
    std::optional<nanoseconds> first;
    const auto add = [&](std::optional<nanoseconds> when) {
        if (when && (!first || *when < *first)) first = when;
    };
    if (!ending_) add(gate_->deadline());
    else add(end_by_);
    for (const auto& each : servers_) {
        if (!each.process) continue;
        add(each.process->deadline());
        if (each.blocked && each.queue.bytes() > 0 && !each.process->deadline())
            add(each.moved + longest_standstill_of_server);
    }
    add(spare_until_);
    for (std::size_t i = 0; i < agents_end_; ++i) {
        const auto& each = agents_[i];
        if (!each.open) continue;
        if (each.always_ready && each.reading && !each.ended && !ending_) return now_;
        if (has_lines(i) && may_take(i)) return now_;
        if (each.blocked && each.queue.bytes() > most_waiting_bytes) add(each.moved + 30s);
    }
    return first;
}

// Of epoll_wait. A time of its own would have the kernel start and stop a timer in each turn.
auto service::patience_of_turn() -> int {
    const auto when = next_wake();
    if (!when) return -1;
    if (*when <= now_) return 0;
    if (!alarm_at_ || *when < *alarm_at_) set_alarm(*when);
    return -1;
}

// One that rings too early costs a turn, so it stays as it is when there is time for more.
void service::set_alarm(nanoseconds when) {
    const auto left = when - now_;
    const auto whole = std::chrono::floor<std::chrono::seconds>(left);
    const ::itimerspec wanted{
        .it_interval = {},
        .it_value = {.tv_sec = whole.count(), .tv_nsec = (left - whole).count()}};
    (void)::timerfd_settime(alarm_.get(), 0, &wanted, nullptr); // of values that can be
    alarm_at_ = when;
}

void service::take_alarm() {
    std::uint64_t times = 0;
    (void)!::read(alarm_.get(), &times, sizeof times);
    alarm_at_.reset();
}

void service::turn() {
    ::epoll_event events[events_at_once];
    const int count = ::epoll_wait(epoll_.get(), events, events_at_once, patience_of_turn());
    now_ = gate_->begin_turn();
    for (int i = 0; i < count; ++i) handle(events[i]);
    for (std::size_t i = 0; i < agents_end_; ++i)
        if (agents_[i].open) {
            if (has_lines(i)) take_lines(i);
            if (agents_[i].always_ready) read_agent(i);
        }
    if (child_ended_) reap_strangers();
    own_deadlines();
    gate_->advance();
    finish_turn();
}

void service::handle(const ::epoll_event& event) {
    const auto kind = static_cast<source>(event.data.u64 >> kind_shift);
    const auto index = static_cast<std::size_t>(event.data.u64 >> index_shift & 0xffffffU);
    const auto generation = static_cast<std::uint32_t>(event.data.u64);
    switch (kind) {
    case source::signals: return take_signals();
    case source::alarm: return take_alarm();
    case source::control: return take_orders();
    case source::listener: return accept_agents();
    case source::agent_input:
    case source::agent_output:
        if (agents_[index].open && agents_[index].generation == generation)
            agent_event(kind, index, event.events);
        return;
    case source::server_input:
    case source::server_output:
    case source::server_errors:
    case source::server_end:
        if (servers_[index].process && servers_[index].generation == generation)
            server_event(kind, index);
        return;
    }
}

// What is looked after at the end may bring more to record and to send.
void service::finish_turn() {
    do {
        do settle_turn();
        while (has_more());
        look_after_agents();
        look_after_memory();
        if (far_behind_ > 0 || paused_ > 0) pause_servers();
        announce();
    } while (has_more());
}

auto service::has_more() const -> bool {
    return !actions_.empty() || !agents_to_flush_.empty() || !servers_to_flush_.empty() ||
           (!given_up_ && gate_->has_records());
}

// The records first. What is carried out may bring new ones, and then it all happens again.
void service::settle_turn() {
    if (!given_up_) {
        const auto kept = gate_->commit();
        if (!kept) give_up(kept.error());
        else if (const auto& why = gate_->problem(); why && !ending_) {
            problem_ = *why;
            return begin_end("the mediation could not begin");
        }
    }
    flush_all();
    if (!actions_.empty())
        for (const auto& each : std::exchange(actions_, {})) carry_out(each);
}

// All that was queued until now, and only then is it told who has gone: what that brings is not on
// record yet. The lists keep their room.
void service::flush_all() {
    std::swap(agents_to_flush_, flushing_);
    for (const auto each : flushing_) {
        agents_[each].queued = false;
        flush_agent(each);
    }
    flushing_.clear();
    std::swap(servers_to_flush_, flushing_);
    for (const auto each : flushing_) {
        servers_[each].queued = false;
        flush_server(each);
    }
    flushing_.clear();
    for (const auto each : broken_agents_) agent_gone(each);
    broken_agents_.clear();
}

void service::carry_out(const action& wanted) {
    switch (wanted.kind) {
    case action::what::close_agent:
        agents_[wanted.which].closing = true;
        return watch_agent(wanted.which);
    case action::what::start_upstream: return launch(wanted.which);
    case action::what::stop_upstream: return end_server(wanted.which);
    }
}

void service::announce() {
    if (ready_ || ending_ || !gate_->is_ready()) return;
    for (const auto& each : gate_->missing_tools())
        note("no server has the tool " + each + ", which is named");
    ready_ = true;
    std::string words;
    for (const auto& each : std::exchange(notes_, {})) words.append(each).append("\n");
    if (control_) control_.say(control_word::ready, words);
    else
        for (std::string_view rest{words}; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1))
            sys::say_line(std::string{rest.substr(0, rest.find('\n'))});
    if (options_.what == service_options::kind::look) begin_end("it has been looked at");
}

void service::take_signals() {
    ::signalfd_siginfo news{};
    while (::read(signals_.get(), &news, sizeof news) == sizeof news) {
        if (news.ssi_signo == SIGCHLD) {
            child_ended_ = true;
            continue;
        }
        // The second one is in a hurry.
        if (ending_) end_by_ = now_;
        else begin_end("it was told to end");
    }
}

void service::take_orders() {
    switch (control_.hear(listener_)) {
    case control::news::nothing: return;
    case control::news::listener:
        if (!watch(listener_, source::listener, 0, 0, EPOLLIN)) break;
        return;
    case control::news::ended: break;
    }
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, control_.descriptor().get(), nullptr);
    if (!ending_) begin_end("the run has ended");
}

// Processes of servers that have lost their parent are this one's, and nobody else reaps them.
void service::reap_strangers() {
    child_ended_ = false;
    for (;;) {
        ::siginfo_t found{};
        if (::waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT) != 0 || found.si_pid == 0)
            return;
        for (std::size_t i = 0; i < servers_.size(); ++i)
            if (servers_[i].process) advance_server(i);
        // A server was reaped by its owner, and then its number is no child's.
        (void)::waitid(P_PID, static_cast<::id_t>(found.si_pid), &found, WEXITED | WNOHANG);
    }
}

void service::begin_end(std::string_view why) {
    if (ending_) return;
    ending_ = true;
    end_by_ = now_ + patience_at_end;
    listener_ = {};
    if (!given_up_) gate_->end(why);
    for (std::size_t i = 0; i < agents_end_; ++i) watch_agent(i);
    for (std::size_t i = 0; i < servers_.size(); ++i)
        if (servers_[i].process) actions_.push_back({action::what::stop_upstream, i});
    if (problem_ && !ready_) {
        control_.say(control_word::failed, in_words(*problem_));
    }
}

// Nothing that was queued may leave any more.
void service::give_up(const error& why) {
    problem_ = error{why.code, why.step, why.os,
                     "the audit log " + options_.log + " cannot be written, and the run ends" +
                         (why.detail.empty() ? "" : ": " + why.detail),
                     "make room where it is, or name another place with --audit-log"};
    given_up_ = true;
    actions_.clear();
    agents_to_flush_.clear();
    servers_to_flush_.clear();
    control_.say(ready_ ? control_word::ended : control_word::failed, in_words(*problem_));
    for (std::size_t i = 0; i < agents_end_; ++i)
        if (agents_[i].open) drop_agent(i);
    for (auto& each : servers_) each.queue = {};
    begin_end("what happened could not be put on record");
}

// Best effort: the system bounds what all pipes of a user may have, so only few are made larger.
void service::widen(sys::fd_ref pipe, bool& is_wide) {
    constexpr int wide = 256 << 10; // more would not stay in a CPU's cache
    constexpr int most_wide = 64;
    if (is_wide) return;
    int count = 0;
    for (const auto& each : agents_) count += each.wide_input + each.wide_output;
    for (const auto& each : servers_) count += each.wide_input + each.wide_output;
    is_wide = count < most_wide && ::fcntl(pipe.get(), F_SETPIPE_SZ, wide) >= 0;
}

// The buffer of long messages stays while there are such.
void service::look_after_memory() {
    constexpr auto kept_for = 1s;
    if (!spare_->is_held()) return spare_until_.reset();
    if (!spare_until_) spare_until_ = now_ + kept_for;
    if (*spare_until_ > now_) return;
    spare_->give_back();
    spare_until_.reset();
}

void service::own_deadlines() {
    for (std::size_t i = 0; i < servers_.size(); ++i)
        if (auto& server = servers_[i];
            server.process && server.process->deadline() && *server.process->deadline() <= now_)
            advance_server(i);
    end_those_that_do_not_read();
}

void service::note(std::string words) {
    if (++said_ > most_notes) return;
    if (said_ == most_notes) words = "there is more to say, which is left out";
    words = printable(words);
    if (ready_) sys::say_line(words);
    else notes_.push_back(std::move(words));
}

} // namespace glove::kernel
