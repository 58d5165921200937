// Decides by looking at the streams once; later only the foreground is looked at again.
#include "run/private_terminal.hpp"
#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glove::run {

namespace {

[[nodiscard]] auto duplicate(int fd) -> result<sys::unique_fd> {
    sys::unique_fd copy{::fcntl(fd, F_DUPFD_CLOEXEC, 3)};
    if (!copy) return fail_os("terminal.descriptor");
    return copy;
}

// A pipe or terminal by an open file of our own, so that nobody else's flags or reads matter.
[[nodiscard]] auto own_stream(int stream, int access) -> result<sys::unique_fd> {
    if (auto pipe = reopen_pipe(stream, access)) return pipe;
    if (auto terminal = reopen_terminal(stream, access)) return terminal;
    return duplicate(stream);
}

} // namespace

auto private_terminal::plan_ways() -> result<> {
    for (int stream = 0; stream < 3; ++stream) {
        auto& way = ways_[static_cast<std::size_t>(stream)];
        if (wish_ == terminal_wish::always || (made_ && caller_->is(stream)))
            way = stream_way::terminal;
        else if (::isatty(stream) == 1) way = stream_way::relayed;
    }
    if (ways_[0] != stream_way::relayed) return {};
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_os("terminal.pipe");
    agent_input_ = sys::unique_fd{ends[0]};
    input_->connect(sys::unique_fd{ends[1]}, false);
    input_->enable(caller_->in_foreground());
    return {};
}

auto private_terminal::open(terminal_wish wish) -> result<private_terminal> {
    private_terminal out;
    out.wish_ = wish;
    auto caller = caller_terminal::find();
    // Forced, the private terminal stands for the caller's only where that is typed at.
    if (wish == terminal_wish::always && caller && !caller->is(0)) caller.reset();
    if (caller) out.caller_.emplace(std::move(*caller));
    out.made_ = wish == terminal_wish::always || (wish == terminal_wish::automatic && out.caller_);
    if (out.caller_ && (out.made_ || out.caller_->is(0))) {
        out.input_.emplace(out.caller_->descriptor(), input_relay::source::terminal);
    } else if (out.made_) {
        GLOVE_TRY(out.own_input_, own_stream(0, O_RDONLY));
        out.input_.emplace(out.own_input_, input_relay::source::bytes);
    }
    if (wish == terminal_wish::always && !(out.caller_ && out.caller_->is(1))) {
        GLOVE_TRY(out.own_output_, own_stream(1, O_WRONLY));
    }
    if (out.made_) {
        out.nothing_ = sys::unique_fd{::open("/dev/null", O_RDWR | O_CLOEXEC)};
        if (!out.nothing_) return fail_os("terminal.descriptor", errno, "/dev/null");
    }
    GLOVE_CHECK(out.plan_ways());
    if (!out.caller_) return out;
    out.size_ = out.caller_->size();
    const bool alone = wish == terminal_wish::always || (out.caller_->is(0) && out.caller_->is(1));
    out.has_modes_ = out.wanted_ = out.front_ = alone && out.caller_->in_foreground();
    return out;
}

auto private_terminal::request() const -> std::optional<container::terminal_request> {
    if (!made_) return std::nullopt;
    container::terminal_request out;
    for (std::size_t i = 0; i < ways_.size(); ++i)
        out.streams[i] = ways_[i] == stream_way::terminal;
    out.foreground = front_;
    if (!caller_) return out;
    const auto modes = caller_->modes();
    if (front_) out.modes = modes;
    // In the background of a terminal that wants its jobs to be silent there, the agent's is as
    // well: writing stops the agent, and the job with it.
    else out.quiet = !caller_->in_foreground() && modes && (modes->c_lflag & TOSTOP) != 0;
    out.size = size_.value_or(out.size);
    return out;
}

auto private_terminal::connect(sys::unique_fd master, output_relay& output) -> result<> {
    GLOVE_TRY(auto for_output, duplicate(master.get()));
    GLOVE_TRY(auto for_input, duplicate(master.get()));
    master_ = std::move(master);
    if (own_output_) {
        struct ::stat found{};
        const bool own_file = ::fstat(own_output_.get(), &found) == 0 &&
                              (::fcntl(own_output_.get(), F_GETFL) & O_NONBLOCK) != 0;
        output.add_terminal(std::move(for_output), own_output_,
                            !own_file && !S_ISREG(found.st_mode));
    } else {
        output.add_terminal(std::move(for_output), caller_->descriptor(), caller_->may_block());
    }
    output_ = &output;
    input_->connect(std::move(for_input), true);
    input_->hold(awaited_ != 0);
    note_returns();
    if (!caller_) input_->enable(true);
    else if (front_) (void)take(); // not when it went to the background just now: a read waits
    resize();
    return {};
}

void private_terminal::interest(std::vector<::pollfd>& into) const {
    if (input_) input_->interest(into);
}
void private_terminal::advance(std::span<const ::pollfd> ready) {
    if (input_) input_->advance(ready);
}

void private_terminal::resize() {
    if (!caller_ || !master_) return;
    const auto now = caller_->size();
    if (!now || (size_ && std::memcmp(&*size_, &*now, sizeof *now) == 0)) return;
    size_ = now;
    (void)::ioctl(master_.get(), TIOCSWINSZ, &*now);
}

void private_terminal::note_returns() const {
    if (output_ == nullptr || !caller_ || own_output_) return;
    const auto now = caller_->modes();
    output_->returns_are_doubled(!caller_->is_taken() && now && (now->c_oflag & OPOST) != 0 &&
                                 (now->c_oflag & ONLCR) != 0);
}

auto private_terminal::take() -> bool {
    if (!caller_ || !master_ || !caller_->in_foreground()) return false;
    // Not from an open file that others share: the read could wait.
    if (!caller_->is_taken() && !caller_->may_block()) input_->take_typed_ahead();
    // From the background they could be those of a shell's prompt, so they come only now.
    const auto modes = caller_->modes();
    if (!caller_->take()) return false;
    if (!has_modes_ && modes) (void)::tcsetattr(master_.get(), TCSANOW, &*modes);
    has_modes_ = true;
    note_returns();
    wanted_ = true;
    input_->enable(true);
    return true;
}

void private_terminal::give_back() {
    if (!caller_) return;
    caller_->give_back();
    note_returns();
    if (input_) input_->enable(false);
}

void private_terminal::go_on(container::running& agent) {
    front_ = !caller_ || (wanted_ && take());
    resize();
    if (!agent.go_on(front_)) return;
    // A key that stops the agent would be forgotten by what makes it go on.
    ++awaited_;
    input_->hold(true);
}

void private_terminal::agent_takes_input() {
    if (made_ && awaited_ != 0 && --awaited_ == 0) input_->hold(false);
}

void private_terminal::agent_stopped(container::running& agent, int number) {
    const bool asks = number == SIGTTIN || number == SIGTTOU;
    if (asks) wanted_ = true;
    if (!caller_) {
        // Without a terminal of the caller's there is no job to stop.
        if (asks || number == SIGTSTP) go_on(agent);
        else (void)agent.hear_stop();
        return;
    }
    if (asks && caller_->in_foreground()) return go_on(agent);
    give_back();
    const bool stopped = stop_job(number == SIGSTOP ? SIGTSTP : number);
    // Where no shell waits for the job, Ctrl-Z has no effect, and what needs the foreground waits.
    if (stopped || number == SIGTSTP) go_on(agent);
    else (void)agent.hear_stop();
}

void private_terminal::hold(container::running& agent, bool typed) {
    (void)agent.signal_group(SIGSTOP);
    give_back();
    // The kernel knows whether a shell waits for the job.
    if (typed) stop_self(SIGTSTP);
    else (void)::raise(SIGSTOP);
    if (made_) go_on(agent);
    else (void)agent.signal_group(SIGCONT);
    if (!made_ && input_) input_->enable(caller_->in_foreground());
}

void private_terminal::continued(container::running& agent) {
    if (!caller_) return;
    if (!made_) {
        if (input_) input_->enable(caller_->in_foreground());
        return;
    }
    if (wanted_ && !front_) return go_on(agent);
    // Stopped by a signal that nobody can catch, Glove finds the shell's modes.
    if (wanted_) (void)take();
    resize();
}

} // namespace glove::run
