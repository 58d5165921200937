// The service's side: asks, and takes what comes for what it claims to be only when the kernel says
// so.
#include <glove/container/launcher.hpp>

#include "container/linux/control_channel.hpp"
#include "container/linux/launch_message.hpp"
#include "container/linux/launch_parts.hpp"
#include "container/linux/session_keeper.hpp"
#include <array>
#include <chrono>
#include <csignal>
#include <glove/base/numbers.hpp>
#include <glove/base/wipe.hpp>
#include <glove/container/probe.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/process_facts.hpp>
#include <glove/sys/sockets.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace glove::container {

struct launcher::state {
    sys::child_process process;
    sys::unique_fd channel;
};

namespace {

// Nothing that a keeper does waits for anybody; this is for a machine that stands still.
constexpr std::chrono::seconds keeper_patience{60};
constexpr std::chrono::seconds start_patience{20};

// A lock that another thread holds would never be given back in the launcher.
[[nodiscard]] auto check_threads() -> result<> {
#ifndef GLOVE_SANITIZED // which has a thread of its own
    if (const auto threads = own_status("Threads"); threads != "1")
        return fail(errc::wrong_state, "launcher.threads",
                    "there are " + threads +
                        " threads, and the launcher is made before the second");
#endif
    return {};
}

[[nodiscard]] auto fork_launcher(const sys::unique_fd& theirs) -> result<sys::child_process> {
    const auto service = ::getpid();
    const auto child = ::fork();
    if (child == 0) run_launcher(theirs.get(), service);
    if (child < 0) return fail_os("launcher.fork", errno, "fork");
    sys::unique_fd pidfd{static_cast<int>(::syscall(SYS_pidfd_open, child, 0))};
    if (pidfd) return sys::child_process{std::move(pidfd)};
    const int os = errno;
    (void)::kill(child, SIGKILL); // not reaped, so the number is its own
    (void)::waitpid(child, nullptr, 0);
    return fail_os("launcher.fork", os, "pidfd_open");
}

[[nodiscard]] auto await_answer(sys::fd_ref channel, std::chrono::seconds patience) -> result<> {
    const sys::system_clock time;
    const auto deadline = time.monotonic() + patience;
    ::pollfd source{channel.get(), POLLIN, 0};
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - time.monotonic());
        if (left.count() <= 0)
            return fail(errc::timed_out, "launcher.keeper",
                        "no answer within " + std::to_string(patience.count()) + " seconds");
        const int got = ::poll(&source, 1, static_cast<int>(left.count()));
        if (got > 0) return {};
        if (got < 0 && errno != EINTR) return fail_os("launcher.keeper", errno, "poll");
    }
}

struct made_init {
    sys::unique_fd pidfd, control;
};

// What the keeper answers, once.
[[nodiscard]] auto receive_answer(sys::fd_ref channel) -> result<made_init> {
    GLOVE_CHECK(await_answer(channel, keeper_patience));
    std::string room(longest_refusal, '\0');
    GLOVE_TRY(auto message, sys::receive_message(channel, room, "launcher.keeper"));
    if (message.size == 0)
        return fail(errc::io, "launcher.keeper", "it ended without an answer",
                    "see whether the launcher, a process of the service, was killed");
    const auto answer = std::string_view{room}.substr(0, message.size);
    if (answer.front() == static_cast<char>(keeper_answer::refused))
        return std::unexpected(decode_refusal(answer.substr(1)));
    if (answer.size() != 1 || answer.front() != static_cast<char>(keeper_answer::launched) ||
        message.descriptors.size() != 2)
        return fail(errc::corrupt, "launcher.keeper", "its answer cannot be read");
    return made_init{std::move(message.descriptors[0]), std::move(message.descriptors[1])};
}

[[nodiscard]] auto send(sys::fd_ref channel, std::string_view bytes, std::span<const int> passed)
    -> result<> {
    if (sys::send_descriptors(channel, bytes, passed) == static_cast<ssize_t>(bytes.size()))
        return {};
    return fail_os("launcher.send", errno, "sendmsg");
}

template<class T> [[nodiscard]] auto bytes_of(const T& value) -> std::string_view {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

// In the order in which the keeper distributes them.
[[nodiscard]] auto descriptors_of(const session_launch& what) -> std::vector<int> {
    std::vector<int> out{what.plan->scratch_mount.get()};
    for (const auto& entry : what.plan->tree)
        if (entry.kind == entry_kind::mounted && entry.pin) out.push_back(entry.pin.get());
    if (what.bridge != nullptr) out.push_back(what.bridge->get());
    if (what.entry) out.push_back(what.entry->get());
    return out;
}

[[nodiscard]] auto file_of(const session_launch& what) -> result<sys::unique_fd> {
    GLOVE_TRY(auto bytes, encode_launch(*what.plan, what.rows, what.columns));
    const wiped_at_end forget{bytes};
    return sys::sealed_file(bytes, "launcher.send");
}

[[nodiscard]] auto send_launch(sys::fd_ref channel, sys::fd_ref file, const session_launch& what)
    -> result<> {
    const auto passed = descriptors_of(what);
    const launch_opening opening{.descriptors = static_cast<std::uint32_t>(passed.size()),
                                 .has_entry = what.entry.has_value()};
    const int number = file.get();
    GLOVE_CHECK(send(channel, bytes_of(opening), {&number, 1}));
    for (std::size_t at = 0; at < passed.size(); at += sys::most_passed) {
        const launch_piece piece{.first = static_cast<std::uint32_t>(at)};
        const auto rest = std::span{passed}.subspan(at);
        GLOVE_CHECK(
            send(channel, bytes_of(piece), rest.first(std::min(rest.size(), sys::most_passed))));
    }
    return {};
}

[[nodiscard]] auto is_channel(sys::fd_ref socket) -> bool {
    int domain = 0, type = 0;
    ::socklen_t size = sizeof domain, size_of_type = sizeof type;
    return ::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
           ::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &size_of_type) == 0 &&
           domain == AF_UNIX && type == SOCK_SEQPACKET;
}

[[nodiscard]] auto pid_of(sys::fd_ref pidfd) -> std::uint32_t {
    const auto text =
        sys::read_file("/proc/self/fdinfo/" + std::to_string(pidfd.get()), 4096).value_or("");
    constexpr std::string_view label = "\nPid:\t";
    const auto at = text.find(label);
    if (at == std::string::npos) return 0;
    const auto rest = std::string_view{text}.substr(at + label.size());
    return static_cast<std::uint32_t>(
        parse_decimal(rest.substr(0, rest.find('\n')), 1U << 30U).value_or(0));
}

// As long as it lives, its number is nobody else's: so it must still do after it was looked at.
// Nothing when it has ended.
[[nodiscard]] auto identify(const sys::child_process& init)
    -> result<std::optional<init_identity>> {
    init_identity out{.pid = pid_of(init.descriptor())};
    const auto facts = sys::facts_of_process(static_cast<::pid_t>(out.pid));
    GLOVE_TRY(const auto ended, init.has_ended());
    if (ended) return std::nullopt;
    if (out.pid == 0 || !facts)
        return fail(errc::unsupported, "launcher.identity",
                    "/proc does not show the process that was started",
                    "mount /proc without hidepid for the service");
    out.start_time_ticks = facts->start_ticks;
    return out;
}

// Why init ended before anybody released it.
[[nodiscard]] auto failure_of(running& process) -> error {
    for (;;) {
        auto news = process.read_news();
        if (!news) return std::move(news).error();
        if (*news) return {errc::io, "launcher.init", 0, "the sandbox's init ended at once"};
    }
}

} // namespace

launcher::launcher(std::unique_ptr<state> own) : state_{std::move(own)} {}
launcher::launcher(launcher&&) noexcept = default;
launcher::~launcher() = default;

auto launcher::start() -> result<launcher> {
    GLOVE_CHECK(check_threads());
    GLOVE_TRY(auto ends, sys::message_channel("launcher.channel"));
    GLOVE_TRY(auto process, fork_launcher(ends[1]));
    ends[1] = {};
    GLOVE_CHECK(await_answer(ends[0], start_patience));
    std::array<char, 1> ready{};
    GLOVE_TRY(const auto message, sys::receive_message(ends[0], ready, "launcher.start"));
    if (message.size != 1)
        return fail(errc::io, "launcher.start", "the launcher ended before it was ready");
    return launcher{std::make_unique<state>(state{std::move(process), std::move(ends[0])})};
}

auto launcher::launch(const session_launch& what) -> result<launched_session> {
    if (what.plan->bridge.has_value() != (what.bridge != nullptr))
        return fail(errc::wrong_state, "launch.bridge", "a bridge and its channel go together");
    GLOVE_TRY(const auto file, file_of(what));
    GLOVE_TRY(auto ends, sys::message_channel("launcher.channel"));
    constexpr char one_more = 's';
    const int theirs = ends[1].get();
    if (auto asked = send(state_->channel, {&one_more, 1}, {&theirs, 1}); !asked) {
        auto problem = std::move(asked).error();
        if (is_hang_up(problem.os))
            problem.remedy = "the launcher has ended: start the service again";
        return std::unexpected(std::move(problem));
    }
    ends[1] = {};
    // A keeper that could not be made, or has refused already, has said why.
    if (auto sent = send_launch(ends[0], file, what); !sent && !is_hang_up(sent.error().os))
        return std::unexpected(std::move(sent).error());
    auto made = receive_answer(ends[0]);
    if (!made) return std::unexpected(std::move(made).error());
    if (what.bridge != nullptr) *what.bridge = {};
    auto init = sys::child_process::reaped_elsewhere(std::move(made->pidfd));
    GLOVE_TRY(const auto identity, identify(init));
    if (!is_channel(made->control))
        return fail(errc::corrupt, "launcher.keeper", "what came is no control channel");
    auto process = running_elsewhere(*what.plan, std::move(init), std::move(made->control));
    if (!identity) return std::unexpected(failure_of(process));
    return launched_session{std::move(process), *identity};
}

auto launcher::is_alive() const -> bool {
    const auto ended = state_->process.has_ended();
    return ended && !*ended;
}

} // namespace glove::container
