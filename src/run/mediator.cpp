// One message channel to `glove-mediator`; what it is to do goes to it as a sealed file.
#include "run/mediator.hpp"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/run/exec.hpp>
#include <glove/run/mediation.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/entropy.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/sockets.hpp>
#include <glove/sys/spawn.hpp>
#include <glove/sys/standard_error.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace glove::run {

namespace {

using kernel::control_word;
using std::chrono::milliseconds;

constexpr const char* program_name = "glove-mediator";
// A message of it is a word and a few lines.
constexpr std::size_t longest_message = 16UL << 10;
// Beyond the time that a server has to start.
constexpr std::chrono::seconds start_margin{15};
// For what only looks at rules.
constexpr std::chrono::seconds check_patience{30};
constexpr std::size_t most_check_output = 4UL << 20;

[[nodiscard]] auto find_mediator(std::string named) -> result<std::string> {
    if (!named.empty()) return named;
    return sys::find_own_program(program_name, "mediation.program");
}

[[nodiscard]] auto sealed_text(const kernel::mediation& what) -> result<sys::unique_fd> {
    GLOVE_TRY(const auto text, kernel::encode(what));
    return sys::sealed_file(text, "mediation.settings");
}

[[nodiscard]] auto inherited_environment(const std::optional<std::string>& path = {})
    -> std::vector<std::string> {
    constexpr std::string_view name = "PATH=";
    std::vector<std::string> out;
    for (char** variable = ::environ; *variable != nullptr; ++variable)
        if (!path || !std::string_view{*variable}.starts_with(name)) out.emplace_back(*variable);
    if (path) out.push_back(std::string{name} + *path);
    return out;
}

[[nodiscard]] auto longest_start(const kernel::mediation& what) -> milliseconds {
    milliseconds out{what.start_timeout_ms};
    for (const auto& upstream : what.upstreams)
        if (upstream.start_timeout) out = std::max(out, *upstream.start_timeout);
    return out;
}

[[nodiscard]] auto milliseconds_until(std::chrono::nanoseconds deadline) -> int {
    const auto left = std::chrono::ceil<milliseconds>(deadline - sys::system_clock{}.monotonic());
    return static_cast<int>(std::clamp<milliseconds::rep>(left.count(), 0, 3'600'000));
}

// Of a process that has ended: how, and whether as one does that was to end.
struct process_end {
    std::string words = "ended";
    bool in_order = false;
};

[[nodiscard]] auto how_it_ended(sys::child_process& process) -> process_end {
    const auto info = process.wait();
    if (!info) return {};
    const auto status = std::to_string(info->si_status);
    if (info->si_code != CLD_EXITED) return {.words = "was killed by signal " + status};
    return {.words = "ended with status " + status, .in_order = info->si_status == 0};
}

[[nodiscard]] auto has_ended(const sys::child_process& process, int wait_ms) -> bool {
    ::pollfd source{process.descriptor().get(), POLLIN, 0};
    return ::poll(&source, 1, wait_ms) == 1;
}

} // namespace

auto mediator::start(const kernel::mediation& what, std::optional<agent_ends> ends,
                     std::string program, const std::optional<std::string>& path)
    -> result<mediator> {
    GLOVE_TRY(program, find_mediator(std::move(program)));
    GLOVE_TRY(const auto settings, sealed_text(what));
    GLOVE_TRY(auto channel, sys::message_channel("mediation.channel"));
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    if (!nothing) return fail_os("mediation.start", errno, "/dev/null");
    GLOVE_TRY(auto child, sys::spawn({.program = program,
                                      .arguments = {program_name},
                                      .environment = inherited_environment(path),
                                      .descriptors = {{0, ends ? ends->input : nothing},
                                                      {1, ends ? ends->output : nothing},
                                                      {2, sys::fd_ref::standard_error()},
                                                      {kernel::mediation_descriptor, settings},
                                                      {kernel::control_descriptor, channel[1]}},
                                      .own_session = true}));
    return mediator{std::move(child), std::move(channel[0]), longest_start(what) + start_margin};
}

mediator::~mediator() {
    if (process_ && control_) finish(-1, {});
}

void mediator::take(std::string_view message) {
    const std::string words{message.substr(1)};
    switch (static_cast<control_word>(message.front())) {
    case control_word::ready:
        ready_ = true;
        for (std::string_view rest{words}; !rest.empty();) {
            const auto line = rest.substr(0, rest.find('\n'));
            if (!line.empty()) sys::say_line(printable(line));
            rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        }
        return;
    case control_word::failed:
    case control_word::ended: end_ = words.empty() ? std::string{"it gave up"} : words; return;
    case control_word::left: left_ = true; return;
    case control_word::listener: break;
    }
    end_ = "it said what it must not";
}

// It has closed its end, so it ends or has ended.
void mediator::gone() {
    if (end_) return;
    if (!has_ended(*process_, 1000)) {
        end_ = std::string{program_name} + " closed its channel";
        return;
    }
    control_ = {};
    reap(left_);
}

// One that was to end has no end to tell of, when it ended in order.
void mediator::reap(bool was_to_end) {
    const auto how = how_it_ended(*process_);
    process_.reset();
    if (!end_ && !(was_to_end && how.in_order)) end_ = std::string{program_name} + " " + how.words;
}

void mediator::advance() {
    std::string buffer(longest_message, '\0');
    while (control_ && !end_) {
        const auto got = ::recv(control_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        // One that ended without reading all says so first; what it had said comes afterwards.
        if (got < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) return gone();
        take({buffer.data(), static_cast<std::size_t>(got)});
    }
}

void mediator::serve(sys::unique_fd listener) {
    const char word = static_cast<char>(control_word::listener);
    if (!control_ || end_ || sys::send_message(control_, {&word, 1}, listener) == 1) return;
    const int os = errno;
    advance(); // what it has said tells more
    if (!end_)
        end_ =
            std::string{"the socket of the sandbox could not be handed over: "} + std::strerror(os);
}

void mediator::finish(int hurry, const std::function<bool()>& is_meant) {
    advance(); // what it has said until now was not because of this
    if (!process_) return;
    control_ = {};
    const auto wait = [&](std::chrono::nanoseconds at_most, int also) {
        const auto deadline = sys::system_clock{}.monotonic() + at_most;
        for (int left = 1; left > 0;) {
            left = milliseconds_until(deadline);
            std::array<::pollfd, 2> sources{
                {{process_->descriptor().get(), POLLIN, 0}, {also, POLLIN, 0}}};
            (void)::poll(sources.data(), sources.size(), left);
            if (sources[0].revents != 0) return true;
            if (sources[1].revents != 0 && is_meant()) return false;
        }
        return false;
    };
    if (wait(finish_patience, hurry)) return reap(true);
    (void)process_->signal(SIGTERM);
    if (wait(last_patience, -1)) return reap(true);
    (void)process_->signal_group(SIGKILL); // whatever of it is left; the servers end with it
    process_.reset();
}

void mediator::finish(sys::fd_ref hurry, const std::function<bool()>& is_meant) {
    finish(hurry.get(), is_meant);
}

auto rules_of(kernel::mediation what, std::string program) -> result<std::vector<std::string>> {
    what.task = kernel::task::check;
    what.json = false;
    GLOVE_TRY(program, find_mediator(std::move(program)));
    GLOVE_TRY(const auto settings, sealed_text(what));
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    int ends[2];
    if (!nothing || ::pipe2(ends, O_CLOEXEC) != 0) return fail_os("mediation.check");
    const sys::unique_fd from{ends[0]};
    sys::unique_fd to{ends[1]};
    GLOVE_TRY(auto child, sys::spawn({.program = program,
                                      .arguments = {program_name},
                                      .environment = inherited_environment(),
                                      .descriptors = {{0, nothing},
                                                      {1, to},
                                                      {2, sys::fd_ref::standard_error()},
                                                      {kernel::mediation_descriptor, settings}},
                                      .own_session = true}));
    to = {};
    const auto deadline = sys::system_clock{}.monotonic() + check_patience;
    std::string text;
    for (;;) {
        ::pollfd source{from.get(), POLLIN, 0};
        const int left = milliseconds_until(deadline);
        const int ready = ::poll(&source, 1, left);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return fail(errc::timed_out, "mediation.check", program_name);
        char bytes[4096];
        const auto got = ::read(from.get(), bytes, sizeof bytes);
        if (got <= 0) break;
        if (text.size() + static_cast<std::size_t>(got) > most_check_output)
            return fail(errc::limit_exceeded, "mediation.check", "the rules are too many");
        text.append(bytes, static_cast<std::size_t>(got));
    }
    if (!has_ended(child, milliseconds_until(deadline)))
        return fail(errc::timed_out, "mediation.check", program_name);
    GLOVE_TRY(const auto info, child.wait());
    if (info.si_code != CLD_EXITED)
        return fail(errc::io, "mediation.check", std::string{program_name} + " was killed");
    if (info.si_status != 0)
        return fail(errc::invalid_input, told_step, "the rules about tools were refused");
    std::vector<std::string> out;
    for (std::string_view rest{text}; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        if (!line.empty()) out.emplace_back(line);
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
    return out;
}

auto put_on_record(kernel::mediation& what, const std::optional<std::string>& audit_log)
    -> result<> {
    sys::system_entropy random;
    GLOVE_TRY(what.run, sys::random_id(random));
    if (audit_log) {
        GLOVE_TRY(what.audit_log, sys::absolute(*audit_log));
        put_perimeters_on_record(what);
        return {};
    }
    const auto directory = what.state + "/audit";
    GLOVE_CHECK(sys::make_private_directory(directory));
    what.audit_log = directory + "/" + what.run + ".jsonl";
    put_perimeters_on_record(what);
    return {};
}

void put_perimeters_on_record(kernel::mediation& what) {
    for (auto& upstream : what.upstreams)
        if (upstream.perimeter) upstream.perimeter->audit_log = what.audit_log;
}

auto server_directory(const kernel::mediation& of, const std::string& upstream) -> std::string {
    return of.state + "/servers/" + upstream;
}

auto make_server_directories(const kernel::mediation& what) -> result<> {
    for (const auto& upstream : what.upstreams)
        if (upstream.directory == server_directory(what, upstream.name))
            GLOVE_CHECK(sys::make_private_directory(*upstream.directory));
    return {};
}

auto become_mediator(const kernel::mediation& what) -> result<> {
    if (what.task != kernel::task::check) GLOVE_CHECK(make_server_directories(what));
    GLOVE_TRY(const auto program, find_mediator({}));
    GLOVE_TRY(const auto settings, sealed_text(what));
    return sys::become({.program = program,
                        .arguments = {program_name},
                        .environment = inherited_environment(),
                        .descriptors = {{0, sys::fd_ref::standard_input()},
                                        {1, sys::fd_ref::standard_output()},
                                        {2, sys::fd_ref::standard_error()},
                                        {kernel::mediation_descriptor, settings}}});
}

} // namespace glove::run
