// One loop over everything that can happen to a run: news of init, signals, output, deadlines.
#include "run/supervise.hpp"
#include <algorithm>
#include <array>
#include <csignal>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace glove::run {

namespace {

using std::chrono::nanoseconds;

constexpr auto cause_names = std::to_array<std::string_view>(
    {"exited", "signaled", "terminated", "wall_time", "output_bytes"});
static_assert(cause_names.size() == static_cast<std::size_t>(exit_cause::output_bytes) + 1);

struct forwarded_signal {
    int number;
    bool ends; // escalates to SIGKILL after the grace
};
constexpr std::array forwarded{
    forwarded_signal{SIGTERM, true},  forwarded_signal{SIGHUP, true},
    forwarded_signal{SIGINT, true},   forwarded_signal{SIGQUIT, true},
    forwarded_signal{SIGUSR1, false}, forwarded_signal{SIGUSR2, false},
};

[[nodiscard]] auto ends_the_agent(const signal_inbox::received& got) -> bool {
    const auto row = std::ranges::find(forwarded, got.number, &forwarded_signal::number);
    // What is typed at a terminal goes to the agent, whose own business it is to end: Ctrl-C at a
    // prompt must not.
    return row != forwarded.end() && row->ends && !(got.typed && got.number != SIGHUP);
}

class watch {
public:
    watch(container::running& agent, const container::limits& limits, output_relay* relay,
          signal_inbox& inbox, const sys::clock& time)
        : agent_{agent}, relay_{relay}, inbox_{inbox}, time_{time} {
        if (limits.wall_time) wall_deadline_ = time_.monotonic() + *limits.wall_time;
    }

    [[nodiscard]] auto run() -> result<outcome> {
        for (;;) {
            wait();
            if (const auto got = inbox_.take()) pass_on(*got);
            check_clock();
            if (relay_ != nullptr && relay_->limit_reached() && !stopped_by_)
                stop(exit_cause::output_bytes, nanoseconds{0});
            if (ended_) break;
        }
        GLOVE_TRY(const auto ended, agent_.collect());
        GLOVE_CHECK(drain());
        if (relay_ != nullptr) GLOVE_CHECK(relay_->check());
        outcome out{.cause = stopped_by_.value_or(
                        WIFSIGNALED(ended.wait_status) ? exit_cause::signaled : exit_cause::exited),
                    .wait_status = ended.wait_status,
                    .output_bytes = {}};
        if (relay_ != nullptr) out.output_bytes = relay_->passed();
        return out;
    }

private:
    void wait() {
        sources_.assign({{agent_.news().get(), POLLIN, 0}, {inbox_.descriptor().get(), POLLIN, 0}});
        std::vector<::pollfd> output;
        if (relay_ != nullptr) output = relay_->interest();
        sources_.insert(sources_.end(), output.begin(), output.end());
        const auto timeout = until_next_deadline();
        if (::ppoll(sources_.data(), sources_.size(), timeout ? &*timeout : nullptr, nullptr) < 0)
            return;
        ended_ = sources_.front().revents != 0;
        if (relay_ != nullptr) relay_->advance({sources_.begin() + 2, sources_.end()});
    }

    [[nodiscard]] auto until_next_deadline() const -> std::optional<::timespec> {
        auto next = kill_deadline_;
        if (!stopped_by_ && wall_deadline_ && (!next || *wall_deadline_ < *next))
            next = wall_deadline_;
        if (!next) return std::nullopt;
        const auto left = std::max(*next - time_.monotonic(), nanoseconds{0});
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
        return ::timespec{whole.count(), (left - whole).count()};
    }

    void check_clock() {
        const auto now = time_.monotonic();
        if (!stopped_by_ && wall_deadline_ && now >= *wall_deadline_) {
            (void)agent_.signal(SIGTERM);
            stop(exit_cause::wall_time, termination_grace);
        }
        if (kill_deadline_ && now >= *kill_deadline_) {
            (void)agent_.kill();
            kill_deadline_.reset();
        }
    }

    void stop(exit_cause why, nanoseconds grace) {
        stopped_by_ = why;
        kill_deadline_ = time_.monotonic() + grace;
    }

    void pass_on(const signal_inbox::received& got) {
        if (!got.typed) (void)agent_.signal(got.number);
        if (ends_the_agent(got) && !stopped_by_) stop(exit_cause::terminated, termination_grace);
    }

    // The namespace is empty, so the pipes end; only the caller's reader can make this last.
    [[nodiscard]] auto drain() -> result<> {
        if (relay_ == nullptr) return {};
        for (auto waiting = relay_->interest(); !waiting.empty(); waiting = relay_->interest()) {
            if (stopped_by_ && ::poll(waiting.data(), waiting.size(), 1000) == 0) return {};
            if (!stopped_by_ && ::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
                return fail_os("relay.wait", errno, "output of the command was lost");
            relay_->advance(waiting);
        }
        return {};
    }

    container::running& agent_;
    output_relay* relay_;
    signal_inbox& inbox_;
    const sys::clock& time_;
    std::vector<::pollfd> sources_;
    std::optional<nanoseconds> wall_deadline_, kill_deadline_;
    std::optional<exit_cause> stopped_by_;
    bool ended_ = false;
};

} // namespace

auto to_string(exit_cause cause) -> std::string_view {
    return cause_names[static_cast<std::size_t>(cause)];
}

auto signal_inbox::open() -> result<signal_inbox> {
    ::sigset_t wanted;
    ::sigemptyset(&wanted);
    for (const auto& row : forwarded) {
        // What the caller ignores (nohup, a background job) stays ignored.
        struct ::sigaction now{};
        if (::sigaction(row.number, nullptr, &now) != 0) return fail_os("signals.query");
        if (now.sa_handler != SIG_IGN) ::sigaddset(&wanted, row.number);
    }
    // An ignored SIGCHLD would reap init by itself and free its number.
    if (::signal(SIGCHLD, SIG_DFL) == SIG_ERR || ::signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return fail_os("signals.disposition");
    if (::sigprocmask(SIG_BLOCK, &wanted, nullptr) != 0) return fail_os("signals.block");
    sys::unique_fd fd{::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (!fd) return fail_os("signals.open");
    return signal_inbox{std::move(fd)};
}

auto signal_inbox::take() -> std::optional<received> {
    ::signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    return received{.number = static_cast<int>(info.ssi_signo),
                    .typed = info.ssi_code == SI_KERNEL};
}

auto supervise(container::running& agent, const container::limits& limits, output_relay* relay,
               signal_inbox& inbox, const sys::clock& time) -> result<outcome> {
    return watch{agent, limits, relay, inbox, time}.run();
}

} // namespace glove::run
