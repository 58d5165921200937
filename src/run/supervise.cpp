// One loop over everything that can happen to a run: news of init, signals, output, deadlines.
#include "run/supervise.hpp"
#include <algorithm>
#include <array>
#include <csignal>
#include <glove/base/text.hpp>
#include <glove/sys/standard_error.hpp>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace glove::run {

namespace {

using std::chrono::nanoseconds;

constexpr auto cause_names =
    std::to_array<std::string_view>({"exited", "signaled", "terminated", "wall_time",
                                     "output_bytes", "memory", "cpu_time", "mediation"});
static_assert(cause_names.size() == static_cast<std::size_t>(exit_cause::mediation) + 1);

enum class effect : std::uint8_t {
    ends,    // asks the agent to end; it is killed after the grace
    passes,  // the agent's own business
    stops,   // holds the whole run, as job control does
    goes_on, // of a job that had stopped, or comes to the foreground
    resizes, // the terminal's window
};
struct noted_signal {
    int number;
    effect what;
};
constexpr std::array noted{
    noted_signal{SIGTERM, effect::ends},
    noted_signal{SIGHUP, effect::ends},
    noted_signal{SIGINT, effect::ends},
    noted_signal{SIGQUIT, effect::ends},
    // Whoever sends these would else end Glove at once: no outcome on record, no modes put back.
    noted_signal{SIGXCPU, effect::ends},
    noted_signal{SIGALRM, effect::ends},
    noted_signal{SIGVTALRM, effect::ends},
    noted_signal{SIGPROF, effect::ends},
    noted_signal{SIGIO, effect::ends},
    noted_signal{SIGPWR, effect::ends},
    noted_signal{SIGSTKFLT, effect::ends},
    noted_signal{SIGUSR1, effect::passes},
    noted_signal{SIGUSR2, effect::passes},
    noted_signal{SIGTSTP, effect::stops},
    noted_signal{SIGCONT, effect::goes_on},
    noted_signal{SIGWINCH, effect::resizes},
};

struct disposition {
    int number;
    void (*to)(int);
};
const std::array dispositions{
    disposition{SIGCHLD, SIG_DFL}, // ignored, it would reap init by itself and free its number
    disposition{SIGPIPE, SIG_IGN}, // a reader that is gone is an error to be told
    // A file that may not grow is an error of the write: what the agent has recorded must not be
    // able to end Glove.
    disposition{SIGXFSZ, SIG_IGN},
    // Nobody's terminal stops Glove where it does not expect it; the clock goes on.
    disposition{SIGTTIN, SIG_IGN},
    disposition{SIGTTOU, SIG_IGN},
};

[[nodiscard]] auto effect_of(int number) -> effect {
    const auto* const row = std::ranges::find(noted, number, &noted_signal::number);
    return row == noted.end() ? effect::passes : row->what;
}

// How long a reader that takes nothing may hold up a run that was asked to end.
constexpr std::chrono::seconds reader_patience{1};

// How long a second program that reads a terminal without input may wait for its end.
constexpr std::chrono::milliseconds end_repetition{100};

// Between two looks at the processor time: what may be used meanwhile is what can be used too much.
constexpr std::chrono::milliseconds shortest_sample{10}, longest_sample{1000};

void say_mediation_ended(std::string_view therefore, std::string_view why) {
    sys::say_line("the mediation of tools ended, " + std::string{therefore} + ": " +
                  printable(why.substr(0, why.find('\n'))));
}

[[nodiscard]] auto asks_to_end(int number) -> bool { return effect_of(number) == effect::ends; }

class watch {
public:
    explicit watch(const supervised& run)
        : agent_{run.agent}, relay_{run.relay}, terminal_{run.terminal}, egress_{run.egress},
          ssh_agent_{run.ssh_agent}, take_listener_{run.take_listener}, tools_{run.tools},
          release_{run.release}, group_{run.group}, inbox_{run.inbox}, time_{run.time},
          wall_time_{run.limits.wall_time}, cpu_time_{run.limits.cpu_time},
          counted_{run.limits.output_bytes.has_value()} {
        if (cpu_time_) next_sample_ = time_.monotonic();
        if (tools_ != nullptr) start_deadline_ = time_.monotonic() + tools_->patience();
        else if (wall_time_) wall_deadline_ = time_.monotonic() + *wall_time_;
    }

    [[nodiscard]] auto run() -> result<outcome> {
        container::ending ended;
        while (!ended_) {
            (void)wait();
            if (has_news_) {
                auto news = agent_.read_news();
                // The kernel ends the whole group, init with it, which then tells nothing.
                if (!news && ran_out_of_memory()) news = container::ending{.wait_status = SIGKILL};
                GLOVE_TRY(const auto end, std::move(news));
                if (end) ended = *end;
                ended_ = end.has_value();
                if (auto came = agent_.take_listener(); came.socket && take_listener_)
                    take_listener_(std::move(came));
                GLOVE_CHECK(heed());
            }
            if (tools_ != nullptr) GLOVE_CHECK(check_tools());
            if (const auto got = next_signal())
                start_deadline_ ? pass_on_early(*got) : pass_on(*got);
            check_hang_up();
            check_clock();
            GLOVE_CHECK(check_processor());
            check_end_of_input();
            if (relay_ != nullptr && relay_->limit_reached() && !stopped_by_)
                stop(exit_cause::output_bytes, nanoseconds{0});
        }
        // Before the output is passed on, which may take until another limit.
        GLOVE_TRY(const auto used, settle());
        if (relay_ != nullptr) relay_->agent_has_ended();
        drain(ended.wait_status);
        if (relay_ != nullptr) GLOVE_CHECK(relay_->check());
        // Whoever was quicker, the relay or the agent's own end: what was written is cut off.
        if (relay_ != nullptr && relay_->limit_reached() &&
            stopped_by_.value_or(exit_cause::output_bytes) == exit_cause::output_bytes) {
            stopped_by_ = exit_cause::output_bytes;
            ended.wait_status = SIGKILL;
        }
        if (stopped_early_ != 0) ended.wait_status = stopped_early_;
        outcome out{.cause = stopped_by_.value_or(
                        WIFSIGNALED(ended.wait_status) ? exit_cause::signaled : exit_cause::exited),
                    .wait_status = ended.wait_status,
                    .output_bytes = {},
                    .usage = used};
        if (counted_) out.output_bytes = relay_->passed();
        if (out.cause == exit_cause::mediation) out.mediation_end = tools_->end().value_or("");
        return out;
    }

private:
    // What else the news of init may bring.
    [[nodiscard]] auto heed() -> result<> {
        if (auto master = agent_.take_terminal())
            GLOVE_CHECK(terminal_.connect(std::move(master), *relay_));
        if (agent_.takes_input()) terminal_.agent_takes_input();
        if (const int number = agent_.take_stop(); number != 0)
            terminal_.agent_stopped(agent_, number);
        return {};
    }

    [[nodiscard]] auto next_signal() -> std::optional<signal_inbox::received> {
        return has_signal_ ? inbox_.take() : std::nullopt;
    }

    // Before the tools are ready there is no agent; afterwards there is none without them.
    [[nodiscard]] auto check_tools() -> result<> {
        const auto& end = tools_->end();
        if (start_deadline_ && !stopped_by_) {
            if (end) return not_started(*end);
            if (tools_->is_ready()) return begin();
            if (time_.monotonic() >= *start_deadline_)
                return fail(errc::timed_out, "mediation.start",
                            "the tool servers were not ready in time", "see --start-timeout");
        } else if (end && !stopped_by_ && !ended_) {
            say_mediation_ended("so the command is ended", *end);
            (void)agent_.signal(SIGTERM);
            stop(exit_cause::mediation, termination_grace);
        }
        return {};
    }

    [[nodiscard]] auto begin() -> result<> {
        start_deadline_.reset();
        GLOVE_CHECK(release_());
        if (wall_time_) wall_deadline_ = time_.monotonic() + *wall_time_;
        return {};
    }

    // The first line says what failed; the others are what a server had to say.
    [[nodiscard]] static auto not_started(std::string_view words) -> result<> {
        const auto first = words.substr(0, words.find('\n'));
        for (auto rest = words.substr(std::min(first.size() + 1, words.size())); !rest.empty();) {
            const auto line = rest.substr(0, rest.find('\n'));
            sys::say_line(printable(line));
            rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        }
        return fail(errc::io, "mediation.start", std::string{first});
    }

    // Nothing inside can take a signal yet, and a key has nobody else to go to.
    void pass_on_early(const signal_inbox::received& got) {
        if (effect_of(got.number) == effect::resizes) return terminal_.resize();
        if (!asks_to_end(got.number) || stopped_by_) return;
        stopped_early_ = got.number;
        stop(exit_cause::terminated, nanoseconds{0});
    }

    // False when a deadline came first.
    [[nodiscard]] auto wait() -> bool {
        sources_.assign(
            {{ended_ ? -1 : agent_.news().get(), POLLIN, 0},
             {inbox_.descriptor().get(), POLLIN, 0},
             {egress_ == nullptr ? -1 : egress_->descriptor().get(), POLLIN, 0},
             {ssh_agent_ == nullptr ? -1 : ssh_agent_->descriptor().get(), POLLIN, 0},
             {tools_ == nullptr || tools_->end() ? -1 : tools_->descriptor().get(), POLLIN, 0}});
        const auto fixed = sources_.size();
        if (relay_ != nullptr) relay_->interest(sources_);
        const auto output = sources_.size() - fixed;
        if (!ended_) terminal_.interest(sources_);
        const auto timeout = until_next_deadline();
        const int ready =
            ::ppoll(sources_.data(), sources_.size(), timeout ? &*timeout : nullptr, nullptr);
        has_news_ = ready > 0 && sources_.front().revents != 0;
        has_signal_ = ready > 0 && sources_[1].revents != 0;
        if (ready <= 0) return ready < 0;
        if (egress_ != nullptr && sources_[2].revents != 0) egress_->advance();
        if (ssh_agent_ != nullptr && sources_[3].revents != 0) ssh_agent_->advance();
        if (tools_ != nullptr && sources_[4].revents != 0) tools_->advance();
        const std::span<const ::pollfd> all{sources_};
        if (relay_ != nullptr) relay_->advance(all.subspan(fixed, output));
        terminal_.advance(all.subspan(fixed + output));
        return true;
    }

    [[nodiscard]] auto until_next_deadline() const -> std::optional<::timespec> {
        auto next = kill_deadline_;
        if (!stopped_by_ && wall_deadline_ && (!next || *wall_deadline_ < *next))
            next = wall_deadline_;
        if (next_sample_ && !stopped_by_ && !ended_ && (!next || *next_sample_ < *next))
            next = next_sample_;
        if (start_deadline_ && !stopped_by_ && (!next || *start_deadline_ < *next))
            next = start_deadline_;
        if (!ended_ && terminal_.repeats_end() && (!next || end_deadline_ < *next))
            next = end_deadline_;
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

    // Whether the kernel ended the group for want of memory, the machine's included.
    [[nodiscard]] auto ran_out_of_memory() const -> bool {
        if (group_ == nullptr) return false;
        const auto used = group_->usage();
        return used && used->out_of_memory > 0;
    }

    // What was used in all, by a group that is empty now, and whether that was too much.
    [[nodiscard]] auto settle() -> result<std::optional<container::group_usage>> {
        if (group_ == nullptr) return std::nullopt;
        GLOVE_TRY(const auto used, group_->usage());
        if (!stopped_by_ && used.is_over_memory()) stopped_by_ = exit_cause::memory;
        if (!stopped_by_ && is_over(used)) stopped_by_ = exit_cause::cpu_time;
        return used;
    }

    [[nodiscard]] auto is_over(const container::group_usage& used) const -> bool {
        return cpu_time_ && std::chrono::microseconds{used.cpu_us} >= *cpu_time_;
    }

    // The next look comes before what is left can be used by all processors at once.
    [[nodiscard]] auto check_processor() -> result<> {
        const auto now = time_.monotonic();
        if (!next_sample_ || stopped_by_ || ended_ || now < *next_sample_) return {};
        GLOVE_TRY(const auto used, group_->usage());
        if (is_over(used)) {
            (void)agent_.kill();
            stop(exit_cause::cpu_time, nanoseconds{0});
            return {};
        }
        const auto left = *cpu_time_ - std::chrono::microseconds{used.cpu_us};
        const auto soon = left / std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L);
        next_sample_ = now + std::clamp<nanoseconds>(soon, shortest_sample, longest_sample);
        return {};
    }

    void check_end_of_input() {
        const auto now = time_.monotonic();
        if (!terminal_.repeats_end() || now < end_deadline_) return;
        terminal_.repeat_end();
        end_deadline_ = now + end_repetition;
    }

    void stop(exit_cause why, nanoseconds grace) {
        stopped_by_ = why;
        kill_deadline_ = time_.monotonic() + grace;
    }

    void pass_on(const signal_inbox::received& got) {
        switch (effect_of(got.number)) {
        case effect::stops: return terminal_.hold(agent_, got.typed);
        case effect::goes_on: return terminal_.continued(agent_);
        case effect::resizes: return terminal_.resize();
        case effect::ends:
        case effect::passes: break;
        }
        // What is typed where the terminal is not taken is for every program of the foreground,
        // and whether to end is the agent's own business: Ctrl-C at a prompt must not end it.
        if (got.typed && terminal_.is_made() && got.number != SIGHUP) {
            (void)agent_.signal_group(got.number);
            return;
        }
        if (got.number == SIGHUP && terminal_.is_made()) (void)agent_.signal_group(SIGHUP);
        else (void)agent_.signal(got.number);
        if (asks_to_end(got.number) && !stopped_by_)
            stop(exit_cause::terminated, termination_grace);
    }

    // Nobody is at the terminal any more, which is the same as if Glove had been told.
    void check_hang_up() {
        if (hung_up_ || !(terminal_.hung_up() || (relay_ != nullptr && relay_->hung_up()))) return;
        hung_up_ = true;
        struct ::sigaction now{};
        if (::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) return;
        pass_on({.number = SIGHUP});
    }

    // The namespace is empty, so the pipes end; only the caller's reader can make this last.
    // Signals and the clock still count: they end a run whose output nobody takes, and because that
    // output is lost the run then ends as if by the signal, whatever the agent's own status was.
    void drain(int& wait_status) {
        while (relay_ != nullptr && !relay_->interest().empty()) {
            if (stopped_by_) kill_deadline_ = time_.monotonic() + reader_patience;
            if (!wait() && stopped_by_) return;
            const auto got = next_signal();
            if (got && effect_of(got->number) == effect::stops) terminal_.hold(agent_, got->typed);
            if (got && effect_of(got->number) == effect::goes_on) terminal_.continued(agent_);
            const bool asked = got && asks_to_end(got->number);
            if (stopped_by_) {
                if (asked) return;
                continue;
            }
            const bool late = wall_deadline_ && time_.monotonic() >= *wall_deadline_;
            if (!asked && !late) continue;
            stop(asked ? exit_cause::terminated : exit_cause::wall_time, reader_patience);
            wait_status = asked ? got->number : SIGTERM;
        }
    }

    container::running& agent_;
    output_relay* relay_;
    private_terminal& terminal_;
    net::egress_service* egress_;
    ssh::agent_service* ssh_agent_;
    const std::function<void(container::inner_listener)>& take_listener_;
    mediator* tools_;
    const std::function<result<>()>& release_;
    const container::control_group* group_;
    signal_inbox& inbox_;
    const sys::clock& time_;
    std::vector<::pollfd> sources_;
    std::optional<nanoseconds> wall_time_, wall_deadline_, kill_deadline_;
    std::optional<nanoseconds> cpu_time_, next_sample_;
    std::optional<nanoseconds> start_deadline_; // until the tools are ready
    int stopped_early_ = 0;                     // by this signal, before the agent started
    nanoseconds end_deadline_{};
    std::optional<exit_cause> stopped_by_;
    bool counted_;
    bool has_news_ = false;
    bool has_signal_ = false;
    bool hung_up_ = false;
    bool ended_ = false;
};

} // namespace

auto to_string(exit_cause cause) -> std::string_view {
    return cause_names[static_cast<std::size_t>(cause)];
}

auto is_limit(exit_cause cause) noexcept -> bool {
    return cause == exit_cause::wall_time || cause == exit_cause::output_bytes ||
           cause == exit_cause::memory || cause == exit_cause::cpu_time;
}

auto signal_inbox::open(bool on_terminal) -> result<signal_inbox> {
    ::sigset_t wanted;
    ::sigemptyset(&wanted);
    for (const auto& row : noted) {
        const bool of_terminal = row.what == effect::goes_on || row.what == effect::resizes;
        if (of_terminal && !on_terminal) continue;
        // What the caller ignores (nohup, a background job) stays ignored.
        struct ::sigaction now{};
        if (::sigaction(row.number, nullptr, &now) != 0) return fail_os("signals.query");
        if (now.sa_handler != SIG_IGN) ::sigaddset(&wanted, row.number);
    }
    for (const auto& row : dispositions)
        if (::signal(row.number, row.to) == SIG_ERR) return fail_os("signals.disposition");
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

void finish_tools(mediator& tools, signal_inbox& inbox, result<outcome>& ended) {
    tools.finish(inbox.descriptor(), [&inbox] {
        const auto got = inbox.take();
        return got && asks_to_end(got->number);
    });
    const auto& end = tools.end();
    if (!end || !ended) return;
    if (ended->cause != exit_cause::exited && ended->cause != exit_cause::signaled) return;
    say_mediation_ended("and the command ended before it was told", *end);
    ended->cause = exit_cause::mediation;
    ended->mediation_end = *end;
}

auto supervise(const supervised& run) -> result<outcome> { return watch{run}.run(); }

} // namespace glove::run
