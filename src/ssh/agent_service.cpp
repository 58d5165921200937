// One channel to `glove-ssh-agent`, one connection to the caller's agent for each request that is
// open, and a timer for the nearest deadline, all behind one descriptor.
#include "ssh/broker_protocol.hpp"
#include "ssh/upstream.hpp"
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/ssh/agent_service.hpp>
#include <glove/sys/entropy.hpp>
#include <glove/sys/sockets.hpp>
#include <glove/sys/spawn.hpp>
#include <glove/sys/standard_error.hpp>
#include <map>
#include <optional>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

namespace glove::ssh {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds patience_at_start{10};
// Of an event; requests have their own numbers, which begin at `first_request`.
constexpr std::uint64_t of_control = 0, of_timer = 1, first_request = 2;
constexpr int events_at_once = 32;

struct signing {
    std::uint64_t id = 0; // of the process
    std::string call;
    std::size_t bytes = 0;
    nanoseconds began{}, deadline{};
    sys::unique_fd agent = {};
    std::string request = {}; // what is left of it
    frame_reader answer = {};
};

struct order {
    std::string bytes;
    sys::unique_fd passed = {};
};

[[nodiscard]] auto in_words(const error& problem) -> std::string {
    return problem.os == 0 ? problem.detail : problem.detail + ": " + std::strerror(problem.os);
}

} // namespace

struct agent_service::state {
    agent_options options;
    const sys::clock& time;
    audit::sink& log;
    std::string run;
    sys::unique_fd control = {}, events = {}, timer = {};
    std::optional<sys::child_process> process = {};
    bool ready = false, finishing = false, wants_room = false;
    int start_problem = 0;
    std::optional<error> log_problem = {};
    std::map<std::uint64_t, signing> open = {};
    std::uint64_t next_request = first_request;
    std::deque<order> orders = {};
    agent_counts counts = {};
    std::string buffer = {};

    [[nodiscard]] auto launch() -> result<>;
    [[nodiscard]] auto watch(sys::fd_ref what, std::uint64_t number, std::uint32_t events_of) const
        -> bool;
    void handle(std::uint64_t number);
    void read_news_of_process();
    void take(const broker_report& news);
    void sign(const broker_report& news);
    void progress(std::uint64_t number);
    void judge(std::uint64_t number, std::string_view message);
    void conclude(std::uint64_t number, audit::status status, const std::string& why,
                  std::string_view signature = {});
    void expire();
    void set_timer() const;
    void tell(order what);
    void send_orders();
    void ended(const std::string& why);
    [[nodiscard]] auto put_on_record(const signing& one, audit::status status,
                                     const std::string& why) -> bool;
};

auto agent_service::state::launch() -> result<> {
    if (options.program.empty()) {
        GLOVE_TRY(options.program, sys::find_own_program("glove-ssh-agent", "ssh.program"));
    }
    GLOVE_TRY(auto channel, sys::message_channel("ssh.channel"));
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    if (!nothing) return fail_os("ssh.start", errno, "/dev/null");
    GLOVE_TRY(auto child,
              sys::spawn({.program = options.program,
                          .arguments = {"glove-ssh-agent"},
                          .environment = {},
                          .descriptors = {{0, nothing},
                                          {1, nothing},
                                          {2, nothing},
                                          {broker_control, channel[1]}},
                          // What is typed at the terminal is the command's own business.
                          .own_session = true}));
    process.emplace(std::move(child));
    control = std::move(channel[0]);
    events = sys::unique_fd{::epoll_create1(EPOLL_CLOEXEC)};
    timer = sys::unique_fd{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
    if (!events || !timer || !watch(control, of_control, EPOLLIN) ||
        !watch(timer, of_timer, EPOLLIN))
        return fail_os("ssh.start");
    buffer.resize(longest_news + 1); // one byte more tells a longer message
    if (sys::send_message(control, identity_order({options.key.blob, options.key.comment}), {}) < 0)
        return fail_os("ssh.start", errno, "glove-ssh-agent");
    return {};
}

auto agent_service::state::watch(sys::fd_ref what, std::uint64_t number,
                                 std::uint32_t events_of) const -> bool {
    ::epoll_event wanted{};
    wanted.events = events_of;
    wanted.data.u64 = number;
    return ::epoll_ctl(events.get(), EPOLL_CTL_ADD, what.get(), &wanted) == 0 ||
           (errno == EEXIST && ::epoll_ctl(events.get(), EPOLL_CTL_MOD, what.get(), &wanted) == 0);
}

void agent_service::state::tell(order what) {
    orders.push_back(std::move(what));
    send_orders();
}

void agent_service::state::send_orders() {
    while (control && !orders.empty()) {
        const auto& next = orders.front();
        const auto put = sys::send_message(control, next.bytes, next.passed);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && (errno == EAGAIN || errno == ETOOMANYREFS)) break;
        if (put < 0) return ended("could not be told what it must know");
        orders.pop_front();
    }
    const bool wanted = !orders.empty();
    if (control && wanted != wants_room &&
        watch(control, of_control, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN))
        wants_room = wanted;
}

// It cannot be started again: nobody else has the socket inside.
void agent_service::state::ended(const std::string& why) {
    if (!control) return;
    control = {}; // leaves `events` by itself
    orders.clear();
    if (process) (void)process->signal(SIGKILL);
    if (!finishing && ready)
        sys::say_line("glove-ssh-agent " + why + "; the command goes on without an ssh agent");
    while (!open.empty())
        conclude(open.begin()->first, audit::status::transport_error,
                 "the run ended before the ssh agent answered");
}

void agent_service::state::read_news_of_process() {
    // So many may be open at once, and as many again on their way.
    for (unsigned i = 0; control && i < 2 * most_connections; ++i) {
        const auto got = ::recv(control.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) return ended("ended");
        const auto news = read_news({buffer.data(), static_cast<std::size_t>(got)});
        if (!news) return ended("said what it must not and was ended");
        take(*news);
    }
    send_orders();
}

void agent_service::state::take(const broker_report& news) {
    switch (news.what) {
    case broker_news::ready: ready = true; return;
    case broker_news::failed: start_problem = news.os == 0 ? EIO : news.os; return;
    case broker_news::sign: return sign(news);
    }
}

auto agent_service::state::put_on_record(const signing& one, audit::status status,
                                         const std::string& why) -> bool {
    audit::event line{.action = audit::action::ssh_sign,
                      .tool = options.key.fingerprint,
                      .arguments = "{\"bytes\":" + std::to_string(one.bytes) + "}",
                      .status = status,
                      .error = {},
                      .timestamp_ns = time.wall().count(),
                      .latency_ns = 0,
                      .run = run,
                      .call = one.call};
    if (status != audit::status::pending) line.latency_ns = (time.monotonic() - one.began).count();
    if (!why.empty()) line.error = why;
    auto appended = log.append(line);
    if (!appended && !log_problem) log_problem = appended.error();
    return appended.has_value();
}

void agent_service::state::sign(const broker_report& news) {
    const auto is_same = [&](const auto& one) { return one.second.id == news.id; };
    // One that does not take its answers has no further questions.
    if (!ready || open.size() >= most_connections || orders.size() > 2 * most_connections ||
        std::ranges::any_of(open, is_same))
        return ended("said what it must not and was ended");
    sys::system_entropy random;
    auto call = sys::random_id(random);
    const auto number = next_request++;
    signing one{.id = news.id,
                .call = call ? *call : std::string{},
                .bytes = news.data.size(),
                .began = time.monotonic(),
                .deadline = time.monotonic() + options.patience};
    if (!call && !log_problem) log_problem = call.error();
    if (!call || !put_on_record(one, audit::status::pending, {})) {
        ++counts.failed;
        return tell({plain_order(broker_word::refused, news.id)});
    }
    one.request = sign_frame(options.key.blob, news.data, news.flags);
    auto agent = connect_to(options.socket);
    if (agent) one.agent = *std::move(agent);
    const bool watched = one.agent && watch(one.agent, number, EPOLLIN | EPOLLOUT);
    open.emplace(number, std::move(one));
    if (!agent) conclude(number, audit::status::transport_error, in_words(agent.error()));
    else if (!watched)
        conclude(number, audit::status::transport_error, "the ssh agent cannot be waited for");
    else progress(number);
    set_timer();
}

// Sends what is left of a request, or reads what there is of its answer.
void agent_service::state::progress(std::uint64_t number) {
    const auto at = open.find(number);
    if (at == open.end()) return;
    auto& one = at->second;
    const auto broke = [&](const std::string& words) {
        conclude(number, audit::status::transport_error, "the ssh agent " + words);
    };
    if (!one.request.empty()) {
        const auto put = ::send(one.agent.get(), one.request.data(), one.request.size(),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (put < 0) return broke(std::string{"broke off: "} + std::strerror(errno));
        one.request.erase(0, static_cast<std::size_t>(put));
        if (one.request.empty() && !watch(one.agent, number, EPOLLIN))
            return broke("cannot be waited for");
        return;
    }
    std::array<char, 4096> bytes{};
    const auto got = ::recv(one.agent.get(), bytes.data(),
                            std::min(one.answer.wanted(), bytes.size()), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got < 0) return broke(std::string{"broke off: "} + std::strerror(errno));
    if (got == 0) return broke("hung up");
    one.answer.add({bytes.data(), static_cast<std::size_t>(got)});
    if (!one.answer.is_sound()) return broke("gave an answer that is none");
    if (const auto message = one.answer.take()) judge(number, *message);
}

void agent_service::state::judge(std::uint64_t number, std::string_view message) {
    if (is_failure(message))
        return conclude(number, audit::status::execution_error, "the ssh agent refused to sign");
    const auto signature = read_signature(message);
    if (!signature)
        return conclude(number, audit::status::transport_error,
                        "the ssh agent gave an answer that is none");
    conclude(number, audit::status::ok, {}, *signature);
}

void agent_service::state::conclude(std::uint64_t number, audit::status status,
                                    const std::string& why, std::string_view signature) {
    const auto at = open.find(number);
    if (at == open.end()) return;
    const auto one = std::move(at->second);
    open.erase(at);
    const bool recorded = put_on_record(one, status, why);
    const bool good = recorded && status == audit::status::ok;
    ++(good ? counts.made : counts.failed);
    if (!control) return;
    tell({good ? plain_order(broker_word::signature, one.id, signature)
               : plain_order(broker_word::refused, one.id)});
}

void agent_service::state::expire() {
    std::uint64_t ignored = 0;
    (void)!::read(timer.get(), &ignored, sizeof ignored);
    const auto now = time.monotonic();
    std::vector<std::uint64_t> late;
    for (const auto& [number, one] : open)
        if (now >= one.deadline) late.push_back(number);
    for (const auto number : late)
        conclude(number, audit::status::transport_error, "the ssh agent did not answer in time");
    set_timer();
}

void agent_service::state::set_timer() const {
    ::itimerspec when{};
    if (!open.empty()) {
        // Numbers grow with time, so the first that is open is due first.
        const auto left =
            std::max(open.begin()->second.deadline - time.monotonic(), nanoseconds{1});
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
        when.it_value = {whole.count(), (left - whole).count()};
    }
    (void)::timerfd_settime(timer.get(), 0, &when, nullptr);
}

void agent_service::state::handle(std::uint64_t number) {
    if (number == of_control) read_news_of_process();
    else if (number == of_timer) expire();
    else progress(number);
}

agent_service::agent_service(std::unique_ptr<state> made) : state_{std::move(made)} {}
agent_service::agent_service(agent_service&&) noexcept = default;
agent_service::~agent_service() = default;

auto agent_service::start(agent_options options, const sys::clock& time, audit::sink& log,
                          std::string run) -> result<agent_service> {
    std::unique_ptr<state> made{
        new state{.options = std::move(options), .time = time, .log = log, .run = std::move(run)}};
    GLOVE_CHECK(made->launch());
    return agent_service{std::move(made)};
}

auto agent_service::await_ready() -> result<> {
    auto& s = *state_;
    const auto deadline = s.time.monotonic() + patience_at_start;
    while (!s.ready && s.start_problem == 0 && s.control) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - s.time.monotonic());
        if (left.count() <= 0) return fail(errc::timed_out, "ssh.start", "glove-ssh-agent");
        ::pollfd source{s.control.get(), POLLIN, 0};
        if (::poll(&source, 1, static_cast<int>(left.count())) > 0) s.read_news_of_process();
    }
    if (s.start_problem != 0) return fail_os("ssh.start", s.start_problem, "glove-ssh-agent");
    if (!s.ready) return fail(errc::io, "ssh.start", "glove-ssh-agent ended");
    return {};
}

void agent_service::serve(sys::unique_fd listener) {
    state_->tell({plain_order(broker_word::listener, 0), std::move(listener)});
}

auto agent_service::descriptor() const noexcept -> sys::fd_ref { return state_->events; }

void agent_service::advance() {
    std::array<::epoll_event, events_at_once> ready{};
    const int count = ::epoll_wait(state_->events.get(), ready.data(), events_at_once, 0);
    for (int i = 0; i < count; ++i) state_->handle(ready[static_cast<std::size_t>(i)].data.u64);
}

auto agent_service::finish() -> result<> {
    auto& s = *state_;
    advance(); // an end that nobody asked for is told
    s.finishing = true;
    s.ended("ended");
    s.process.reset();
    if (s.log_problem) return std::unexpected(*s.log_problem);
    return {};
}

auto agent_service::counts() const noexcept -> agent_counts { return state_->counts; }

} // namespace glove::ssh
