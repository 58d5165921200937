// The channel against children that do to their side of the terminal what they can.
#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <glove/container/pty_channel.hpp>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <support/forked.hpp>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace glove;
using namespace std::chrono_literals;
using container::pty_channel;
using container::pty_event;
using container::transcript;
using test::prepared;

const sys::system_clock real_time;

auto soon(std::chrono::nanoseconds after) -> std::chrono::nanoseconds {
    return real_time.monotonic() + after;
}

// No new line becomes two bytes, and nothing is echoed.
void raw(int fd) {
    ::termios modes{};
    if (::tcgetattr(fd, &modes) != 0) ::_exit(110);
    ::cfmakeraw(&modes);
    if (::tcsetattr(fd, TCSANOW, &modes) != 0) ::_exit(111);
}
void put(std::string_view text) {
    while (!text.empty()) {
        const auto took = ::write(1, text.data(), text.size());
        if (took < 0) ::_exit(112);
        text.remove_prefix(static_cast<std::size_t>(took));
    }
}

// A terminal, its channel, and one child that leads a session on it.
class scene {
public:
    using body = std::function<void()>;
    explicit scene(std::uint64_t limit, std::function<result<>(int)> signals = {}) {
        sys::unique_fd master{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
        const int locked = 0;
        prepared(master && ::ioctl(master.get(), TIOCSPTLCK, &locked) == 0, "terminal");
        peer_ = sys::unique_fd{::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)};
        prepared(bool{peer_}, "the other side");
        number_ = master.get();
        channel = pty_channel::adopt(std::move(master),
                                     {limit, text.get(), &real_time, std::move(signals)})
                      .value();
    }
    scene(const scene&) = delete;
    auto operator=(const scene&) = delete;
    ~scene() {
        if (child_ <= 0) return;
        (void)::kill(child_, SIGKILL);
        reap();
    }
    // The terminal is its streams 0, 1 and 2. Ends when the body does.
    void start(const body& what) {
        child_ = ::fork();
        prepared(child_ >= 0, "fork");
        if (child_ != 0) {
            peer_ = {};
            return;
        }
        if (::setsid() < 0 || ::ioctl(peer_.get(), TIOCSCTTY, 0) != 0) ::_exit(100);
        for (int i = 0; i < 3; ++i)
            if (::dup2(peer_.get(), i) < 0) ::_exit(101);
        peer_ = {};
        channel.release(); // its descriptors are closed here, and nothing else of it
        (void)::close_range(3, ~0U, 0);
        what();
        ::_exit(0);
    }
    auto reap() -> int {
        int status = 0;
        while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
        }
        child_ = 0;
        return status;
    }
    // Until it ends, or says `until`, which is no end.
    auto pump_for(std::chrono::nanoseconds time) -> pty_event {
        const auto until = soon(time);
        for (;;) {
            const auto event = channel->pump(until);
            EXPECT_TRUE(event) << (event ? "" : event.error().step);
            if (!event || *event != pty_event::exceeded) return event.value_or(pty_event::ended);
            ++exceeded;
        }
    }
    void pump_until_shown(std::string_view what) {
        const auto until = soon(10s);
        while (shown().find(what) == std::string::npos && real_time.monotonic() < until)
            if (pump_for(10ms) == pty_event::ended) break;
        EXPECT_NE(shown().find(what), std::string::npos) << shown();
    }
    // The child has ended by itself.
    auto drained() -> container::pty_account {
        const auto until = soon(20s);
        for (;;) {
            if (pump_for(10ms) == pty_event::ended || real_time.monotonic() > until) break;
            ::siginfo_t info{};
            if (::waitid(P_PID, static_cast<::id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) ==
                    0 &&
                info.si_pid == child_)
                channel->finish_by(soon(10s));
        }
        return channel->account();
    }
    [[nodiscard]] auto shown() const -> std::string {
        std::string out;
        for (std::uint64_t at = 0;;) {
            const auto part = text->page(at, transcript::most_page_bytes).value();
            if (part.bytes.empty()) return out;
            out += part.bytes;
            at = part.next_cursor;
        }
    }

    std::unique_ptr<transcript> text = transcript::create().value();
    std::unique_ptr<pty_channel> channel;
    int exceeded = 0;
    int number_ = -1; // of the master

private:
    sys::unique_fd peer_;
    ::pid_t child_ = 0;
};

TEST(PtyChannel, TakesOnlyAMaster) {
    const auto text = transcript::create().value();
    const auto adopt = [&](const char* path) {
        return pty_channel::adopt(sys::unique_fd{::open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)},
                                  {10, text.get(), &real_time, {}});
    };
    const auto other = adopt("/dev/null");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().step, "pty.master");
    EXPECT_FALSE(pty_channel::adopt({}, {10, text.get(), &real_time, {}}));
    EXPECT_TRUE(adopt("/dev/ptmx"));
    EXPECT_FALSE(
        pty_channel::adopt(sys::unique_fd{::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)},
                           {10, nullptr, &real_time, {}}));
}

TEST(PtyChannel, AsManyBytesAsTheLimitAreFine) {
    scene it{10'000};
    it.start([] {
        raw(0);
        put(std::string(10'000, 'x'));
    });
    const auto end = it.drained();
    EXPECT_EQ(end.output_bytes, 10'000U);
    EXPECT_FALSE(end.exceeded);
    EXPECT_EQ(it.exceeded, 0);
    EXPECT_TRUE(end.drained);
    EXPECT_TRUE(it.text->complete());
    EXPECT_EQ(it.shown(), std::string(10'000, 'x'));
}

TEST(PtyChannel, OneByteMoreTripsOnceAndIsCounted) {
    scene it{10'000};
    it.start([] {
        raw(0);
        put(std::string(10'001, 'x'));
    });
    const auto end = it.drained();
    EXPECT_EQ(end.output_bytes, 10'001U);
    EXPECT_TRUE(end.exceeded);
    EXPECT_EQ(end.discarded_bytes, 0U);
    EXPECT_EQ(it.exceeded, 1);
    EXPECT_EQ(it.text->count(), 10'001U);
    EXPECT_TRUE(it.text->complete()); // nothing of it is missing
}

TEST(PtyChannel, AFloodIsCountedToTheByteAndTheRestIsDropped) {
    scene it{10'000};
    it.start([] {
        raw(0);
        put(std::string(500'000, 'x'));
    });
    const auto end = it.drained();
    EXPECT_EQ(end.output_bytes, 10'001U);
    EXPECT_EQ(end.discarded_bytes, 500'000U - 10'001U);
    EXPECT_EQ(it.exceeded, 1);
    EXPECT_EQ(it.text->count(), 10'001U);
    EXPECT_TRUE(end.drained);
    EXPECT_FALSE(it.text->complete());
}

TEST(PtyChannel, AFloodCannotHoldUpTheClock) {
    scene it{1'000};
    it.start([] {
        raw(0);
        for (;;) put(std::string(4096, 'x'));
    });
    it.pump_until_shown("x");
    const auto before = real_time.monotonic();
    EXPECT_EQ(it.pump_for(50ms), pty_event::time);
    EXPECT_LT(real_time.monotonic() - before, 5s);
    EXPECT_EQ(it.text->count(), 1'001U);
}

TEST(PtyChannel, WhatWasWrittenLastIsDrainedAfterTheEnd) {
    scene it{1U << 20};
    it.start([] {
        raw(0);
        put("the last words");
    });
    it.reap();
    it.channel->finish_by(soon(10s));
    EXPECT_EQ(it.pump_for(10s), pty_event::ended);
    EXPECT_EQ(it.shown(), "the last words");
    EXPECT_TRUE(it.channel->account().drained);
    EXPECT_TRUE(it.text->page(14, 1)->eof);
}

TEST(PtyChannel, ATerminalThatIsClosedAndOpenedAgainGoesOn) {
    scene it{1U << 20};
    it.start([] {
        raw(0);
        put("before ");
        const std::string name = ::ttyname(0);
        for (int i = 0; i < 3; ++i) (void)::close_range(0, 2, 0);
        ::usleep(100'000);
        if (::open(name.c_str(), O_RDWR) != 0 || ::dup2(0, 1) != 1) ::_exit(1);
        put("after");
        ::pause();
    });
    it.pump_until_shown("after");
    EXPECT_EQ(it.shown(), "before after");
    EXPECT_FALSE(it.channel->account().ended);
}

// While nobody has it open there is nothing to wait for, and still no processor is burnt.
TEST(PtyChannel, AHangUpIsNotPolledWithoutEnd) {
    scene it{1U << 20};
    it.start([] {
        put("x");
        (void)::close_range(0, 2, 0);
        ::pause();
    });
    it.pump_until_shown("x");
    const auto used = [] {
        ::timespec now{};
        (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
    };
    const auto before = used();
    EXPECT_EQ(it.pump_for(500ms), pty_event::time);
    EXPECT_LT(used() - before, 100ms);
}

TEST(PtyChannel, AGrandchildThatKeepsTheTerminalIsNotWaitedForForEver) {
    scene it{1U << 20};
    it.start([] {
        raw(0);
        put("ready");
        (void)::signal(SIGHUP, SIG_IGN);
        if (::fork() == 0) {
            ::sleep(3);
            ::_exit(0);
        }
    });
    it.pump_until_shown("ready");
    it.reap();
    const auto before = real_time.monotonic();
    it.channel->finish_by(before + 200ms);
    it.channel->finish_by(before + 1h); // the first one stands
    EXPECT_EQ(it.pump_for(10s), pty_event::ended);
    const auto took = real_time.monotonic() - before;
    EXPECT_GE(took, 200ms);
    EXPECT_LT(took, 2s);
    EXPECT_FALSE(it.channel->account().drained);
    EXPECT_FALSE(it.text->complete());
    EXPECT_EQ(it.pump_for(1s), pty_event::ended);
}

TEST(PtyChannel, InputArrivesWhole) {
    scene it{1U << 20};
    it.start([] {
        raw(0);
        put("ready");
        std::size_t sum = 0;
        for (char part[4096]; sum < pty_channel::piece_bytes;) {
            const auto got = ::read(0, part, sizeof part);
            if (got <= 0) ::_exit(1);
            sum += static_cast<std::size_t>(got);
        }
        put("all");
    });
    it.pump_until_shown("ready");
    EXPECT_TRUE(it.channel->write(std::string(pty_channel::piece_bytes, 'i')));
    it.pump_until_shown("all");
}

TEST(PtyChannel, InputIsBounded) {
    scene it{1U << 20};
    EXPECT_EQ(it.channel->write("").error().code, errc::invalid_input);
    EXPECT_EQ(it.channel->write(std::string(pty_channel::piece_bytes + 1, 'i')).error().step,
              "pty.input");
}

TEST(PtyChannel, AChildThatNeverReadsCostsASecond) {
    scene it{1U << 20};
    it.start([] {
        raw(0);
        put("ready");
        ::pause();
    });
    it.pump_until_shown("ready");
    result<> put = {};
    const auto before = real_time.monotonic();
    for (int i = 0; put && i < 16; ++i)
        put = it.channel->write(std::string(pty_channel::piece_bytes, 'i'));
    const auto took = real_time.monotonic() - before;
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().code, errc::timed_out);
    EXPECT_EQ(put.error().step, "pty.input");
    EXPECT_NE(put.error().detail.find("of 65536"), std::string::npos) << put.error().detail;
    EXPECT_GE(took, 1s);
    EXPECT_LT(took, 8s);
}

TEST(PtyChannel, NoMoreWritersWaitThanThereIsRoomFor) {
    scene it{1U << 20};
    it.start([] {
        raw(0);
        put("ready");
        ::pause();
    });
    it.pump_until_shown("ready");
    while (it.channel->write(std::string(pty_channel::piece_bytes, 'i'))) {
    }
    std::atomic<unsigned> refused = 0;
    std::atomic<unsigned> late = 0;
    {
        std::vector<std::jthread> all;
        for (unsigned i = 0; i < pty_channel::most_writers + 4; ++i)
            all.emplace_back([&] {
                const auto put = it.channel->write("i");
                if (put) return;
                if (put.error().code == errc::limit_exceeded) ++refused;
                if (put.error().code == errc::timed_out) ++late;
            });
    }
    EXPECT_GE(refused, 1U);
    EXPECT_LE(refused, 4U);
    EXPECT_EQ(refused + late, pty_channel::most_writers + 4);
}

TEST(PtyChannel, SizesAreBoundedAndArrive) {
    scene it{1U << 20};
    it.start([] {
        raw(0);
        put("ready");
        char any = 0;
        for (int i = 0; i < 2; ++i) {
            if (::read(0, &any, 1) != 1) ::_exit(1);
            ::winsize size{};
            (void)::ioctl(0, TIOCGWINSZ, &size);
            put(std::to_string(size.ws_row) + "x" + std::to_string(size.ws_col) + " ");
        }
    });
    it.pump_until_shown("ready");
    const auto try_size = [&](std::uint16_t rows, std::uint16_t columns) {
        return it.channel->resize(rows, columns);
    };
    EXPECT_EQ(try_size(0, 80).error().step, "pty.size");
    EXPECT_EQ(try_size(24, 0).error().step, "pty.size");
    EXPECT_EQ(try_size(4097, 80).error().step, "pty.size");
    EXPECT_EQ(try_size(24, 4097).error().step, "pty.size");
    ASSERT_TRUE(try_size(1, 4096));
    ASSERT_TRUE(it.channel->write("."));
    it.pump_until_shown("1x4096");
    ASSERT_TRUE(try_size(4096, 1));
    ASSERT_TRUE(it.channel->write("."));
    it.pump_until_shown("4096x1");
}

TEST(PtyChannel, AnInterruptReachesTheForegroundGroupAlone) {
    scene it{1U << 20};
    it.start([] {
        raw(0); // ISIG is off: no typed key could do it
        const auto behind = ::fork();
        if (behind == 0) {
            // A group of its own, in the background.
            (void)::setpgid(0, 0);
            (void)::signal(SIGINT, [](int) { ::_exit(9); });
            ::sleep(1);
            ::_exit(0);
        }
        (void)::setpgid(behind, behind);
        static volatile std::sig_atomic_t hit = 0;
        (void)::signal(SIGINT, [](int) { hit = 1; });
        put("ready ");
        while (hit == 0) ::usleep(1000);
        put("interrupted ");
        int status = 0;
        (void)::waitpid(behind, &status, 0);
        put(status == 0 ? "spared" : "hit");
    });
    it.pump_until_shown("ready");
    ASSERT_TRUE(it.channel->signal(SIGINT));
    it.pump_until_shown("spared");
    EXPECT_NE(it.shown().find("interrupted"), std::string::npos);
}

TEST(PtyChannel, OtherSignalsGoByWhoeverIsInside) {
    std::vector<int> asked;
    scene it{1U << 20, [&](int number) -> result<> {
                 asked.push_back(number);
                 return {};
             }};
    EXPECT_TRUE(it.channel->signal(SIGTERM));
    EXPECT_TRUE(it.channel->signal(SIGHUP));
    EXPECT_EQ(asked, (std::vector{SIGTERM, SIGHUP}));
    for (const int number : {0, SIGKILL, SIGSTOP, SIGQUIT, SIGUSR1, -1}) {
        const auto sent = it.channel->signal(number);
        ASSERT_FALSE(sent) << number;
        EXPECT_EQ(sent.error().step, "pty.signal");
    }
    EXPECT_EQ(asked.size(), 2U);
}

TEST(PtyChannel, WithoutSomebodyInsideNobodyIsGuessedAt) {
    scene it{1U << 20};
    EXPECT_EQ(it.channel->signal(SIGTERM).error().code, errc::unsupported);
    EXPECT_EQ(it.channel->signal(SIGHUP).error().code, errc::unsupported);
    EXPECT_TRUE(it.channel->signal(SIGINT));
}

TEST(PtyChannel, TheChildCannotPutPacketsIntoTheOutput) {
    scene it{1U << 20};
    it.start([] {
        raw(0);
        const int on = 1;
        const bool packets = ::ioctl(0, TIOCPKT, &on) == 0;
        // What packet mode would tell of.
        (void)::tcflush(0, TCIOFLUSH);
        (void)::tcflow(0, TCOOFF);
        (void)::tcflow(0, TCOON);
        put(packets ? "packets" : "plain");
    });
    EXPECT_TRUE(it.drained().drained);
    EXPECT_EQ(it.shown(), "plain");
}

// A master that came in packet mode is put right.
TEST(PtyChannel, PacketModeIsCleared) {
    const auto text = transcript::create().value();
    sys::unique_fd master{::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)};
    const int on = 1;
    ASSERT_EQ(::ioctl(master.get(), TIOCPKT, &on), 0);
    const int number = master.get();
    const auto channel = pty_channel::adopt(std::move(master), {10, text.get(), &real_time, {}});
    ASSERT_TRUE(channel);
    int now = 1;
    ASSERT_EQ(::ioctl(number, TIOCGPKT, &now), 0);
    EXPECT_EQ(now, 0);
}

TEST(PtyChannel, AfterTheEndThereIsNothingToDo) {
    scene it{1U << 20};
    it.start([] {});
    it.reap();
    it.channel->finish_by(soon(10s));
    EXPECT_EQ(it.pump_for(10s), pty_event::ended);
    EXPECT_EQ(it.channel->write("x").error().step, "pty.ended");
    EXPECT_EQ(it.channel->resize(24, 80).error().step, "pty.ended");
    EXPECT_EQ(it.channel->signal(SIGINT).error().step, "pty.ended");
}

// Another thread ends a wait that has a long way to go.
TEST(PtyChannel, FinishingWakesThePump) {
    scene it{1U << 20};
    it.start([] { ::pause(); });
    std::jthread later{[&] {
        ::usleep(50'000);
        it.channel->finish_by(soon(0s));
    }};
    const auto before = real_time.monotonic();
    EXPECT_EQ(it.pump_for(30s), pty_event::ended);
    EXPECT_LT(real_time.monotonic() - before, 800ms);
}

} // namespace
