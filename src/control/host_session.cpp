// Everything that may wait does so in `launch` and `conclude`; in between there are descriptors.
#include "control/host_session.hpp"
#include <algorithm>
#include <array>
#include <csignal>
#include <glove/control/session_processes.hpp>
#include <glove/sys/sockets.hpp>
#include <iterator>
#include <poll.h>

namespace glove::control {

namespace {

// After whatever the supervisor does, unless that is stopped: then init itself ends the session.
constexpr std::chrono::seconds grace_of_init{10};

[[nodiscard]] auto longest_life(std::uint64_t wall_time_ms) -> std::chrono::seconds {
    constexpr std::uint64_t most_ms = 1000ULL * INT32_MAX;
    const std::chrono::milliseconds bound{std::min(wall_time_ms, most_ms)};
    return std::chrono::ceil<std::chrono::seconds>(bound) + grace_of_init;
}

} // namespace

host_session::host_session(const host_means& means, prepared_session made)
    : means_{means}, made_{std::move(made)}, meter_{made_.group, [this] { return use(); }} {}

// The processes first; then what they used. The other members end by themselves.
host_session::~host_session() {
    end_process();
    network_.reset();
}

// A request that a file system of the session does not answer holds whoever made it, and so the
// namespace; whoever serves it is in the session's group.
void host_session::end_process() {
    if (process_ && process_->end()) {
        const auto patience = std::chrono::milliseconds{patience_with_end};
        ::pollfd init{process_->init().get(), POLLIN, 0};
        if (::poll(&init, 1, static_cast<int>(patience.count())) == 0) (void)made_.group.kill();
    }
    process_.reset();
}

auto host_session::take_evaluator() -> std::optional<transcript_evaluator> {
    return std::exchange(made_.evaluator, std::nullopt);
}

auto host_session::take_terminal() -> sys::unique_fd { return std::move(terminal_); }

auto host_session::start_network(sys::unique_fd relay) -> result<> {
    GLOVE_TRY(auto log, audit::jsonl_sink::open(means_.egress_log, audit::durability::process));
    egress_log_.emplace(std::move(log));
    records_.emplace(*egress_log_);
    const auto& bridge = made_.online->bridge;
    GLOVE_TRY(auto started, net::egress_service::start({.rules = bridge.rules,
                                                        .published = bridge.published,
                                                        .connections = bridge.connections,
                                                        .listener = {},
                                                        .program = means_.egress_program},
                                                       std::move(relay), means_.time, *records_,
                                                       made_.session_id));
    network_.emplace(std::move(started));
    return record_token(*egress_log_, made_.session_id, made_.facts.profile_digest,
                        network_->token(), means_.time.wall().count());
}

// Its arrival says that the sandbox stands; a failure says which step refused.
auto host_session::await_terminal(std::chrono::nanoseconds deadline) -> result<> {
    while (!terminal_) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(deadline - means_.time.monotonic());
        if (left.count() <= 0)
            return fail(errc::timed_out, "session.launch",
                        "the sandbox did not stand within the time that the launch has");
        constexpr std::chrono::milliseconds longest{60'000};
        ::pollfd source{process_->awaited().get(), POLLIN, 0};
        const int got = ::poll(&source, 1, static_cast<int>(std::min(left, longest).count()));
        if (got < 0 && errno != EINTR) return fail_os("session.launch", errno, "poll");
        if (got <= 0) continue;
        GLOVE_TRY(const auto ended, process_->look_for_news());
        if (ended)
            return fail(errc::io, "session.launch",
                        "the sandbox's first process ended before it was released");
        terminal_ = process_->take_terminal();
    }
    return {};
}

auto host_session::launch(std::chrono::nanoseconds deadline) -> result<process_identity> {
    GLOVE_CHECK(check_unchanged(made_.program));
    std::array<sys::unique_fd, 2> channel; // the proxy's end, the bridge's end
    if (made_.online) {
        GLOVE_TRY(channel, sys::message_channel("egress.channel"));
    }
    GLOVE_TRY(auto launched,
              means_.launcher.launch({.plan = made_.plan.get(),
                                      .entry = made_.group.entry(),
                                      .bridge = made_.online ? &channel[1] : nullptr}));
    {
        const std::lock_guard held{reach_};
        process_.emplace(std::move(launched.process));
        is_live_ = true;
    }
    if (killed_) GLOVE_CHECK(process_->end()); // meanwhile
    if (made_.online) GLOVE_CHECK(start_network(std::move(channel[0])));
    GLOVE_CHECK(await_terminal(deadline));
    if (!made_.secrets.empty()) {
        GLOVE_TRY(const auto home, made_.files.home());
        GLOVE_CHECK(give(made_.secrets, home));
    }
    if (network_) GLOVE_CHECK(network_->await_ready());
    GLOVE_CHECK(check_unchanged(made_.program));
    GLOVE_CHECK(made_.is_still_granted()); // a copy takes its time, and a revocation none
    return process_identity_of(launched.init.pid, launched.init.start_time_ticks,
                               made_.group.identity());
}

auto host_session::release() -> result<> {
    made_.files.begin_use();
    return process_->release(longest_life(made_.facts.limits.wall_time_ms));
}

auto host_session::descriptors() const -> std::vector<sys::fd_ref> {
    std::vector<sys::fd_ref> out;
    if (is_live_) out.push_back(process_->awaited());
    if (network_) out.push_back(network_->descriptor());
    return out;
}

auto host_session::advance() -> result<std::optional<process_end>> {
    if (network_) network_->advance();
    if (!is_live_) return std::nullopt;
    auto news = process_->look_for_news();
    if (news && !*news) {
        if (end_.is_overdue(killed_ || process_->is_ending(), means_.time.monotonic()))
            (void)made_.group.kill(); // again, with the next look
        return std::nullopt;
    }
    {
        const std::lock_guard held{reach_};
        is_live_ = false;
    }
    if (news) return end_of((*news)->wait_status);
    if (killed_) return end_of(SIGKILL); // init had no time to tell
    return std::unexpected(std::move(news).error());
}

auto host_session::signal_foreground(int number) const -> result<> {
    const std::lock_guard held{reach_};
    return is_live_ ? process_->signal_foreground(number) : result<>{};
}

auto host_session::kill() const -> result<> {
    killed_ = true;
    const std::lock_guard held{reach_};
    return is_live_ ? process_->end() : result<>{};
}

auto host_session::conclude(std::stop_token stop) -> session_remains {
    session_remains out;
    if (network_)
        if (auto finished = network_->finish(); !finished)
            out.troubles.push_back(std::move(finished).error());
    network_.reset();
    {
        const std::lock_guard held{reach_};
        is_live_ = false;
    }
    // They hold the session's mounts.
    end_process();
    made_.plan.reset();
    if (!made_.secrets.empty()) {
        if (const auto home = made_.files.home()) {
            std::ranges::move(take_back(made_.secrets, *home), std::back_inserter(out.troubles));
        } else {
            out.troubles.push_back(home.error());
        }
    }
    auto left = made_.files.conclude(std::move(stop));
    out.retained_changes = std::move(left.changes);
    std::ranges::move(left.troubles, std::back_inserter(out.troubles));
    if (auto ended = made_.group.end(means_.time, means_.time.monotonic() + patience_with_files);
        !ended)
        out.troubles.push_back(std::move(ended).error());
    return out;
}

// A process that serves an image is in the group as well, and ends with it when memory runs out:
// then what was seen last is the most that there is to know.
auto host_session::use() -> result<container::filesystem_use> {
    const auto now = made_.files.use();
    if (now) {
        last_use_ = *now;
        return last_use_;
    }
    const auto usage = made_.group.usage();
    if (!usage || usage->out_of_memory == 0) return std::unexpected(now.error());
    return last_use_;
}

} // namespace glove::control
