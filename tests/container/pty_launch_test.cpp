// The channel over the private terminal of a real sandbox: who gets a signal, and how it ends.
#include <array>
#include <csignal>
#include <glove/container/launch.hpp>
#include <glove/container/pty_channel.hpp>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

namespace {

using namespace glove;
using namespace glove::container;
using namespace std::chrono_literals;

const sys::system_clock real_time;

class session {
public:
    explicit session(const std::string& script) {
        profile wish;
        wish.argv = {"sh", "-c", script};
        plan_ = make_plan(wish).value();
        static std::array<char, 64> arguments{};
        launch_request request{.plan = &plan_,
                               .arguments = {.begin = arguments.data(), .size = arguments.size()},
                               .terminal = terminal_request{.streams = {true, true, true}}};
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &request.open_files), 0);
        agent_.emplace(launch(request).value());
        sys::unique_fd master;
        while (!master) {
            if (const auto end = agent_->read_news(); !end || *end)
                throw std::runtime_error{"ended"};
            master = agent_->take_terminal();
        }
        channel =
            pty_channel::adopt(std::move(master),
                               {1U << 20, text.get(), &real_time,
                                [this](int number) { return agent_->signal_foreground(number); }})
                .value();
        if (!agent_->release()) throw std::runtime_error{"not released"};
    }
    void pump_until_shown(std::string_view what) {
        const auto until = real_time.monotonic() + 30s;
        while (shown().find(what) == std::string::npos && real_time.monotonic() < until)
            if (channel->pump(real_time.monotonic() + 20ms).value() == pty_event::ended) break;
        EXPECT_NE(shown().find(what), std::string::npos) << shown();
    }
    // Its wait status, after the drain.
    auto finish() -> int {
        const auto until = real_time.monotonic() + 30s;
        while (real_time.monotonic() < until) {
            (void)channel->pump(real_time.monotonic() + 20ms).value();
            ::pollfd news{agent_->news().get(), POLLIN, 0};
            if (::poll(&news, 1, 0) != 1) continue;
            const auto end = agent_->read_news().value();
            if (!end) continue;
            channel->finish_by(real_time.monotonic() + 10s);
            while (channel->pump(real_time.monotonic() + 20ms).value() != pty_event::ended) {
            }
            return end->wait_status;
        }
        return -1;
    }
    [[nodiscard]] auto shown() const -> std::string {
        return text->page(0, transcript::most_page_bytes).value().bytes;
    }

    std::unique_ptr<transcript> text = transcript::create().value();
    std::unique_ptr<pty_channel> channel;

private:
    plan plan_;
    std::optional<running> agent_;
};

// A shell with job control, in whose foreground another group is.
auto shell_with_job(const std::string& signal) -> std::string {
    return "set -m; trap 'echo shell-hit' " + signal + "; sh -c 'trap \"echo job-hit; exit 0\" " +
           signal + "; echo ready; while :; do sleep 0.05; done'; echo over; exit 4";
}

TEST(PtyLaunch, ASignalReachesTheForegroundGroupAlone) {
    for (const auto& [number, name] :
         {std::pair{SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGINT, "INT"}}) {
        session it{shell_with_job(name)};
        it.pump_until_shown("ready");
        ASSERT_TRUE(it.channel->signal(number)) << name;
        const auto status = it.finish();
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 4) << name << " " << status;
        EXPECT_NE(it.shown().find("job-hit"), std::string::npos) << it.shown();
        EXPECT_NE(it.shown().find("over"), std::string::npos) << it.shown();
        EXPECT_EQ(it.shown().find("shell-hit"), std::string::npos) << it.shown();
        EXPECT_TRUE(it.text->complete());
    }
}

TEST(PtyLaunch, WithoutAJobItIsTheAgentsGroup) {
    session it{"trap 'echo hit; exit 5' TERM; echo ready; while :; do sleep 0.05; done"};
    it.pump_until_shown("ready");
    ASSERT_TRUE(it.channel->signal(SIGTERM));
    const auto status = it.finish();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5) << status;
    EXPECT_NE(it.shown().find("hit"), std::string::npos);
}

TEST(PtyLaunch, TheLastWordsOfANamespaceAreDrained) {
    session it{"head -c 20000 /dev/zero | tr '\\0' x; (sleep 1000 &) ; exit 6"};
    const auto status = it.finish();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 6) << status;
    EXPECT_EQ(it.text->count(), 20'000U);
    EXPECT_TRUE(it.channel->account().drained);
    EXPECT_TRUE(it.text->complete());
}

} // namespace
