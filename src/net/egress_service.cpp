// One channel, one process: what `glove-egress` wants is put on record here and answered; what it
// says is checked like anything that comes from outside.
#include "net/egress_protocol.hpp"
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/net/egress_service.hpp>
#include <glove/sys/entropy.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/sockets.hpp>
#include <glove/sys/spawn.hpp>
#include <map>
#include <optional>
#include <poll.h>
#include <set>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::net {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds patience_at_start{10};
constexpr std::chrono::seconds patience_at_end{2};
constexpr int messages_at_once = 256;
// Intents that may be open beyond the limit of connections, so that an outcome may be on its way.
constexpr std::size_t open_slack = 64;

struct open_call {
    std::optional<destination> where; // empty for a published port
    std::string tool, call;
    nanoseconds began{};
};

[[nodiscard]] auto tool_of(const egress_report& news) -> std::string {
    return news.inward ? "publish:" + std::to_string(news.port) : to_string(*news.where);
}

// The command can stop a terminal or fill a pipe that it shares, and the run must be ended all the
// same: nothing here may wait. So such a stream is opened once more, because the flags of the one
// that was inherited are the caller's as well. Of a terminal, nothing can be read through it.
struct error_stream {
    bool is_socket = false, can_wait = false;
    sys::unique_fd own; // when it can; empty when it cannot be opened

    error_stream() {
        struct ::stat found{};
        if (::fstat(2, &found) != 0) return;
        is_socket = S_ISSOCK(found.st_mode);
        can_wait = S_ISFIFO(found.st_mode) || ::isatty(2) == 1;
        constexpr int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
        if (can_wait) own = sys::unique_fd{::open("/proc/self/fd/2", flags)};
    }
};

// A terminal may be raw for the command's sake.
void say_line(const std::string& words) {
    const auto line = "glove: " + words + (::isatty(2) == 1 ? "\r\n" : "\n");
    const error_stream to;
    if (to.is_socket) (void)::send(2, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (!to.can_wait) (void)sys::write_all(sys::fd_ref::standard_error(), line);
    else if (to.own) (void)sys::write_all(to.own, line);
}

[[nodiscard]] auto new_token() -> result<std::string> {
    sys::system_entropy random;
    GLOVE_TRY(auto token, sys::random_id(random));
    GLOVE_TRY(const auto rest, sys::random_id(random));
    return token += rest;
}

} // namespace

auto find_egress_program() -> result<std::string> {
    GLOVE_TRY(const auto own, sys::read_link("/proc/self/exe"));
    const auto directory = sys::parent_of(own);
    const auto beside = directory + "/glove-egress";
    const auto installed = sys::parent_of(directory) + "/libexec/glove/glove-egress";
    if (sys::exists(beside)) return beside;
    if (sys::exists(installed)) return installed;
    return fail(errc::not_found, "egress.program", beside + " and " + installed,
                "install glove-egress beside glove or in libexec/glove");
}

struct egress_service::state {
    egress_options options;
    const sys::clock& time;
    audit::sink& log;
    std::string run;
    std::string token = {};
    sys::unique_fd control = {}, events = {};
    std::optional<sys::child_process> process = {};
    bool ready = false, finishing = false, wants_room = false;
    std::optional<error> start_problem = {}, log_problem = {};
    std::map<std::uint64_t, open_call> open = {};
    std::deque<egress_order> answers = {};
    std::map<std::string, std::size_t> record_of = {};
    std::vector<egress_record> records = {};
    std::uint64_t more_records = 0;
    std::set<std::string> told = {};

    [[nodiscard]] auto launch(sys::unique_fd bridge) -> result<>;
    void read_all_news();
    void take(const egress_report& news);
    void intend(const egress_report& news);
    void refuse(const egress_report& news);
    void conclude(std::uint64_t id, const egress_report& news);
    void answer(egress_word what, std::uint64_t id);
    void send_answers();
    void want_room(bool wanted);
    void ended(const std::string& why);
    void tell(const destination& where, const std::string& words);
    [[nodiscard]] auto record(const destination& where) -> egress_record*;
    [[nodiscard]] auto event(const std::string& tool, std::string call, audit::status status) const
        -> audit::event;
};

auto egress_service::state::launch(sys::unique_fd bridge) -> result<> {
    if (options.program.empty()) {
        GLOVE_TRY(options.program, find_egress_program());
    }
    GLOVE_TRY(token, new_token());
    egress_configuration settings{.rules = {},
                                  .published = options.published,
                                  .token = token,
                                  .limits = {.connections = options.connections}};
    for (const auto& rule : options.rules.all()) settings.rules.push_back(rule.text);
    GLOVE_TRY(const auto sealed, seal(settings));
    GLOVE_TRY(auto channel, sys::message_channel("egress.channel"));
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    if (!nothing) return fail_os("egress.start", errno, "/dev/null");
    const error_stream errors;
    const bool has_errors = ::fcntl(2, F_GETFD) >= 0 && (!errors.can_wait || errors.own);
    const sys::fd_ref said = errors.own ? sys::fd_ref{errors.own} : sys::fd_ref::standard_error();
    sys::spawn_request request{
        .program = options.program,
        .arguments = {"glove-egress"},
        .environment = {},
        .descriptors = {{0, nothing},
                        {1, nothing},
                        {2, has_errors ? said : sys::fd_ref{nothing}},
                        {egress_control, channel[1]},
                        {egress_settings, sealed}},
        // Ctrl-C is the command's own business: it must not take the network away.
        .own_session = true};
    if (bridge) request.descriptors.push_back({egress_bridge, bridge});
    if (options.listener) request.descriptors.push_back({egress_listener, options.listener});
    GLOVE_TRY(auto child, sys::spawn(request));
    process.emplace(std::move(child));
    options.listener = {};
    control = std::move(channel[0]);
    events = sys::unique_fd{::epoll_create1(EPOLL_CLOEXEC)};
    ::epoll_event wanted{.events = EPOLLIN, .data = {}};
    if (!events || ::epoll_ctl(events.get(), EPOLL_CTL_ADD, control.get(), &wanted) != 0)
        return fail_os("egress.start");
    return {};
}

void egress_service::state::want_room(bool wanted) {
    if (wanted == wants_room || !control) return;
    ::epoll_event events_wanted{.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, .data = {}};
    if (::epoll_ctl(events.get(), EPOLL_CTL_MOD, control.get(), &events_wanted) == 0)
        wants_room = wanted;
}

void egress_service::state::answer(egress_word what, std::uint64_t id) {
    answers.push_back({what, id});
    // It never has more questions open, so it does not take its answers.
    if (answers.size() > options.connections + open_slack)
        ended("said what it must not and was ended");
}

void egress_service::state::send_answers() {
    while (control && !answers.empty()) {
        const auto put = ::send(control.get(), &answers.front(), sizeof answers.front(),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == EAGAIN) break;
        if (put < 0) return; // its end is read next
        answers.pop_front();
    }
    want_room(!answers.empty());
}

// It cannot be started again: the other end of the bridge's channel is gone with it.
void egress_service::state::ended(const std::string& why) {
    if (!control) return;
    control = {}; // leaves `events` by itself
    answers.clear();
    if (process) (void)process->signal(SIGKILL);
    if (!finishing && ready)
        say_line("glove-egress " + why + "; the command goes on without a network");
    for (auto at = open.begin(); at != open.end();) {
        const auto id = at++->first;
        egress_report news;
        news.what = egress_news::outcome;
        news.reason = egress_reason::run_ended;
        conclude(id, news);
    }
}

void egress_service::state::read_all_news() {
    for (int i = 0; control && i < messages_at_once; ++i) {
        // One byte more than a message tells a longer one.
        std::array<std::byte, sizeof(egress_message) + 1> bytes{};
        const auto got = ::recv(control.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) return ended("ended");
        const auto news = read_news(std::span{bytes}.first(static_cast<std::size_t>(got)));
        if (!news) return ended("said what it must not and was ended");
        take(*news);
    }
    send_answers();
}

void egress_service::state::take(const egress_report& news) {
    switch (news.what) {
    case egress_news::ready: ready = true; return;
    case egress_news::failed:
        if (news.port != 0) {
            start_problem = fail_os("egress.publish", news.os,
                                    "port " + std::to_string(news.port) + " of 127.0.0.1")
                                .error();
            start_problem->remedy = news.os == EADDRINUSE
                                        ? "end the program that listens on it, or publish another"
                                        : "publish another port";
        } else start_problem = error{classify(news.os), "egress.start", news.os, news.detail, {}};
        return;
    case egress_news::intent: return intend(news);
    case egress_news::refused: return refuse(news);
    case egress_news::outcome: return conclude(news.id, news);
    }
}

auto egress_service::state::event(const std::string& tool, std::string call,
                                  audit::status status) const -> audit::event {
    return {.action = audit::action::egress,
            .tool = tool,
            .arguments = {},
            .status = status,
            .error = {},
            .timestamp_ns = time.wall().count(),
            .latency_ns = 0,
            .run = run,
            .call = std::move(call)};
}

auto egress_service::state::record(const destination& where) -> egress_record* {
    auto name = to_string(where);
    if (const auto at = record_of.find(name); at != record_of.end()) return &records[at->second];
    if (records.size() == most_egress_records) {
        ++more_records;
        return nullptr;
    }
    record_of.emplace(std::move(name), records.size());
    records.push_back({.where = where, .last_error = {}});
    return &records.back();
}

void egress_service::state::tell(const destination& where, const std::string& words) {
    if (!options.tell_refusals || told.size() == most_egress_records) return;
    if (told.insert(to_string(where)).second) say_line(printable(words));
}

void egress_service::state::intend(const egress_report& news) {
    if (open.contains(news.id) || open.size() >= options.connections + open_slack)
        return ended("said what it must not and was ended");
    sys::system_entropy random;
    auto call = sys::random_id(random);
    open_call made{.where = news.where,
                   .tool = tool_of(news),
                   .call = call ? *call : std::string{},
                   .began = time.monotonic()};
    auto appended = call ? log.append(event(made.tool, made.call, audit::status::pending))
                         : result<>{std::unexpected(call.error())};
    auto* const row = news.where ? record(*news.where) : nullptr;
    if (!appended) {
        if (row != nullptr) {
            ++row->failed;
            row->last_error = explain(egress_reason::not_recorded, made.tool, {}, 0);
        }
        if (!log_problem) log_problem = appended.error();
        return answer(egress_word::refused, news.id);
    }
    if (row != nullptr) ++row->allowed;
    open.emplace(news.id, std::move(made));
    answer(egress_word::recorded, news.id);
}

void egress_service::state::refuse(const egress_report& news) {
    sys::system_entropy random;
    auto call = sys::random_id(random);
    const auto place = news.where ? to_string(*news.where) : std::string{};
    auto refused = event(place, call ? *call : std::string{}, audit::status::invalid_arguments);
    if (place.empty()) refused.tool.reset();
    refused.error = explain(news.reason, place, news.detail, news.os);
    if (news.where) {
        if (auto* const row = record(*news.where); row != nullptr) {
            ++row->refused;
            row->last_error = *refused.error;
        }
        tell(*news.where, news.reason == egress_reason::not_allowed
                              ? place + " was refused" + how_to_allow(*news.where)
                              : *refused.error);
    }
    if (auto appended = log.append(refused); !appended && !log_problem)
        log_problem = appended.error();
}

void egress_service::state::conclude(std::uint64_t id, const egress_report& news) {
    const auto at = open.find(id);
    if (at == open.end()) return ended("said what it must not and was ended");
    const auto call = std::move(at->second);
    open.erase(at);
    auto done = event(call.tool, call.call,
                      news.reason == egress_reason::none ? audit::status::ok
                                                         : audit::status::transport_error);
    done.arguments = "{\"sent\":" + std::to_string(news.sent) +
                     ",\"received\":" + std::to_string(news.received) + "}";
    done.latency_ns = (time.monotonic() - call.began).count();
    if (news.reason != egress_reason::none)
        done.error = explain(news.reason, call.tool, news.detail, news.os);
    if (call.where) {
        if (auto* const row = record(*call.where); row != nullptr) {
            const auto add = [](std::uint64_t& to, std::uint64_t more) {
                to = more > UINT64_MAX - to ? UINT64_MAX : to + more;
            };
            add(row->bytes_sent, news.sent);
            add(row->bytes_received, news.received);
            if (done.error) {
                ++row->failed;
                row->last_error = *done.error;
            }
        }
        if (news.reason == egress_reason::address_refused) tell(*call.where, *done.error);
    }
    if (auto appended = log.append(done); !appended && !log_problem) log_problem = appended.error();
}

egress_service::egress_service(std::unique_ptr<state> made) : state_{std::move(made)} {}
egress_service::egress_service(egress_service&&) noexcept = default;
egress_service::~egress_service() = default;

auto egress_service::start(egress_options options, sys::unique_fd bridge, const sys::clock& time,
                           audit::sink& log, std::string run) -> result<egress_service> {
    std::unique_ptr<state> made{
        new state{.options = std::move(options), .time = time, .log = log, .run = std::move(run)}};
    GLOVE_CHECK(made->launch(std::move(bridge)));
    return egress_service{std::move(made)};
}

auto egress_service::await_ready() -> result<> {
    auto& s = *state_;
    const auto deadline = s.time.monotonic() + patience_at_start;
    while (!s.ready && !s.start_problem && s.control) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - s.time.monotonic());
        if (left.count() <= 0) return fail(errc::timed_out, "egress.start", "glove-egress");
        ::pollfd source{s.control.get(), POLLIN, 0};
        if (::poll(&source, 1, static_cast<int>(left.count())) > 0) s.read_all_news();
    }
    if (s.start_problem) return std::unexpected(*s.start_problem);
    if (!s.control && !s.ready) return fail(errc::io, "egress.start", "glove-egress ended");
    return {};
}

auto egress_service::descriptor() const noexcept -> sys::fd_ref { return state_->events; }
void egress_service::advance() { state_->read_all_news(); }

auto egress_service::finish() -> result<> {
    auto& s = *state_;
    s.read_all_news(); // an end that nobody asked for is told
    s.finishing = true;
    s.answer(egress_word::finish, 0);
    s.send_answers();
    const auto deadline = s.time.monotonic() + patience_at_end;
    while (s.control) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - s.time.monotonic());
        ::pollfd source{s.control.get(), POLLIN, 0};
        if (left.count() <= 0) s.ended("did not end");
        else if (::poll(&source, 1, static_cast<int>(left.count())) > 0) s.read_all_news();
    }
    s.process.reset();
    if (s.log_problem) return std::unexpected(*s.log_problem);
    return {};
}

auto egress_service::records() const noexcept -> std::span<const egress_record> {
    return state_->records;
}
auto egress_service::more_records() const noexcept -> std::uint64_t { return state_->more_records; }
auto egress_service::token() const noexcept -> const std::string& { return state_->token; }

} // namespace glove::net
