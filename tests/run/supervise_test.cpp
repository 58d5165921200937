// Supervision of real agents on a clock that the case sets; the signals of a child of its own.
#include "run/supervise.hpp"
#include <csignal>
#include <glove/container/launch.hpp>
#include <gmock/gmock.h>
#include <optional>
#include <poll.h>
#include <pty.h>
#include <set>
#include <support/forked.hpp>
#include <sys/ioctl.h>
#include <sys/wait.h>

namespace {

using namespace glove;
using namespace std::chrono_literals;
using run::exit_cause;
using run::signal_inbox;

TEST(ExitCause, EachHasItsWord) {
    EXPECT_EQ(to_string(exit_cause::exited), "exited");
    EXPECT_EQ(to_string(exit_cause::signaled), "signaled");
    EXPECT_EQ(to_string(exit_cause::terminated), "terminated");
    EXPECT_EQ(to_string(exit_cause::wall_time), "wall_time");
    EXPECT_EQ(to_string(exit_cause::output_bytes), "output_bytes");
    EXPECT_EQ(to_string(exit_cause::mediation), "mediation");
}

auto describe(const std::optional<signal_inbox::received>& got) -> std::string {
    if (!got) return "none";
    return std::to_string(got->number) + (got->typed ? " typed" : " sent");
}

TEST(SignalInbox, WhatAProcessSendsIsNotTyped) {
    EXPECT_EQ(test::said_by([] {
                  auto inbox = signal_inbox::open(false).value();
                  auto out = describe(inbox.take());
                  (void)::raise(SIGTERM);
                  (void)::kill(::getpid(), SIGINT);
                  std::multiset<std::string> rest; // their order is the kernel's
                  rest.insert(describe(inbox.take()));
                  rest.insert(describe(inbox.take()));
                  for (const auto& line : rest) out += ", " + line;
                  return out + ", " + describe(inbox.take());
              }),
              "none, 15 sent, 2 sent, none");
}

TEST(SignalInbox, WhatATerminalSendsIsTyped) {
    EXPECT_EQ(test::said_by([] {
                  int keyboard = -1;
                  int terminal = -1;
                  test::prepared(::openpty(&keyboard, &terminal, nullptr, nullptr, nullptr) == 0,
                                 "openpty");
                  test::prepared(::setsid() >= 0 && ::ioctl(terminal, TIOCSCTTY, 0) == 0, "tty");
                  auto inbox = signal_inbox::open(false).value();
                  std::string out;
                  for (const char* key : {"\x03", "\x1c"}) { // Ctrl-C, Ctrl-backslash
                      test::prepared(::write(keyboard, key, 1) == 1, "type");
                      ::pollfd source{inbox.descriptor().get(), POLLIN, 0};
                      (void)::poll(&source, 1, 10'000);
                      out += describe(inbox.take()) + ", ";
                  }
                  return out;
              }),
              "2 typed, 3 typed, ");
}

TEST(SignalInbox, WhatTheCallerIgnoresStaysIgnored) {
    EXPECT_EQ(test::said_by([] {
                  (void)::signal(SIGHUP, SIG_IGN);
                  (void)::signal(SIGCHLD, SIG_IGN);
                  auto inbox = signal_inbox::open(false).value();
                  (void)::raise(SIGHUP);
                  auto out = describe(inbox.take());
                  (void)::raise(SIGUSR1);
                  struct ::sigaction children{};
                  (void)::sigaction(SIGCHLD, nullptr, &children);
                  return out + ", " + describe(inbox.take()) +
                         (children.sa_handler == SIG_DFL ? ", children waited for" : ", lost");
              }),
              "none, " + std::to_string(SIGUSR1) + " sent, children waited for");
}

// --- whole runs

// Stands still until `jump`, and from then on is that much later.
class stepped_clock final : public sys::clock {
public:
    explicit stepped_clock(std::chrono::nanoseconds a_reading) : step_{a_reading} {}
    [[nodiscard]] auto monotonic() const noexcept -> std::chrono::nanoseconds override {
        return now_ += step_;
    }
    [[nodiscard]] auto wall() const noexcept -> std::chrono::nanoseconds override { return now_; }

private:
    mutable std::chrono::nanoseconds now_{0};
    std::chrono::nanoseconds step_;
};

struct scene {
    std::string script; // prints "ready" when it is
    std::optional<std::chrono::nanoseconds> wall_time = {};
    std::chrono::nanoseconds a_reading = 0ns; // how far the clock goes on with every look at it
    int send = 0;                             // to Glove, once the agent is ready
};

// "cause status" of the agent, or the step that failed.
auto play(const scene& what) -> std::string {
    return test::said_by([&]() -> std::string {
        auto inbox = signal_inbox::open(false).value();
        container::profile wish;
        wish.argv = {"/bin/sh", "-c", what.script};
        const auto plan = container::make_plan(wish).value();
        test::pipe_ends ready;
        char arguments[64] = {};
        container::launch_request request;
        request.plan = &plan;
        request.streams = {0, ready.write.get(), 2};
        request.arguments = {.begin = arguments, .size = sizeof arguments};
        test::prepared(::getrlimit(RLIMIT_NOFILE, &request.open_files) == 0, "getrlimit");
        auto agent = container::launch(request).value();
        ready.write = {};
        (void)agent.release();
        if (what.send != 0) {
            char byte = 0;
            test::prepared(::read(ready.read.get(), &byte, 1) == 1, "ready");
            (void)::raise(what.send);
        }
        const stepped_clock time{what.a_reading};
        auto terminal = run::private_terminal::open(run::terminal_wish::never).value();
        container::limits limits;
        limits.wall_time = what.wall_time;
        const auto ended = run::supervise({.agent = agent,
                                           .limits = limits,
                                           .relay = nullptr,
                                           .terminal = terminal,
                                           .egress = nullptr,
                                           .inbox = inbox,
                                           .time = time});
        if (!ended) return std::string{ended.error().step};
        const auto status = ended->wait_status;
        return std::string{to_string(ended->cause)} +
               (WIFSIGNALED(status) ? " signal " + std::to_string(WTERMSIG(status))
                                    : " code " + std::to_string(WEXITSTATUS(status))) +
               (ended->output_bytes ? " counted" : "");
    });
}

TEST(Supervise, AnAgentThatEndsByItselfHasExited) {
    EXPECT_EQ(play({.script = "exit 5"}), "exited code 5");
}

TEST(Supervise, AnAgentThatASignalEndedWasSignaled) {
    EXPECT_EQ(play({.script = "kill -USR1 $$"}), "signaled signal " + std::to_string(SIGUSR1));
}

TEST(Supervise, AtTheWallTimeTheAgentIsAskedToEnd) {
    EXPECT_EQ(play({.script = "exec sleep 1000", .wall_time = 1ms, .a_reading = 1ms}),
              "wall_time signal 15");
}

TEST(Supervise, BeforeTheWallTimeNothingHappens) {
    EXPECT_EQ(play({.script = "exit 4", .wall_time = 1h}), "exited code 4");
}

TEST(Supervise, AnAgentThatDoesNotEndIsKilledAfterTheGrace) {
    EXPECT_EQ(play({.script = "trap '' TERM; echo; while :; do sleep 1; done",
                    .a_reading = 10s,
                    .send = SIGTERM}),
              "terminated signal 9");
}

TEST(Supervise, WithinTheGraceAnAgentEndsAsItWants) {
    EXPECT_EQ(
        play({.script = "trap 'exit 3' TERM; echo; while :; do sleep 0.05; done", .send = SIGTERM}),
        "terminated code 3");
}

TEST(Supervise, ASignalThatIsSentIsPassedOn) {
    for (const auto* name : {"HUP", "INT", "QUIT"}) {
        const int number = name == std::string_view{"HUP"}   ? SIGHUP
                           : name == std::string_view{"INT"} ? SIGINT
                                                             : SIGQUIT;
        EXPECT_EQ(play({.script = std::string{"trap 'exit 3' "} + name +
                                  "; echo; while :; do sleep 0.05; done",
                        .send = number}),
                  "terminated code 3")
            << name;
    }
}

TEST(Supervise, AUserSignalIsPassedOnAndStopsNothing) {
    EXPECT_EQ(
        play({.script = "trap 'exit 6' USR1; echo; while :; do sleep 0.05; done", .send = SIGUSR1}),
        "exited code 6");
}

} // namespace
