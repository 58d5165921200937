// The mediator of a run, played by a stand-in: see mediator_stand_in.cpp.
#include "run/mediator.hpp"
#include "run/supervise.hpp"
#include <cstdlib>
#include <glove/sys/files.hpp>
#include <glove/sys/sockets.hpp>
#include <gmock/gmock.h>
#include <poll.h>
#include <support/folder.hpp>
#include <sys/eventfd.h>
#include <unistd.h>

namespace {

using namespace glove;
using namespace std::chrono_literals;
using run::mediator;
using testing::ElementsAre;
using testing::HasSubstr;

auto stand_in() -> std::string {
    return sys::parent_of(sys::read_link("/proc/self/exe").value()) + "/mediator_stand_in";
}

auto some_mediation() -> kernel::mediation {
    kernel::mediation out;
    out.task = kernel::task::bridge;
    out.upstreams.push_back(
        {.name = "demo", .argv = {"true"}, .environment = {}, .passed = {}, .directory = {}});
    out.directory = "/";
    out.state = "/state";
    out.run = "0123456789abcdef0123456789abcdef";
    out.audit_log = "/log";
    return out;
}

class MediatorTest : public testing::Test {
protected:
    MediatorTest() { ::setenv("STAND_IN_FOLDER", (folder_ / "").c_str(), 1); }

    auto start(const char* how) -> mediator {
        ::setenv("STAND_IN", how, 1);
        return mediator::start(some_mediation(), {}, stand_in()).value();
    }
    // Until it is ready or has ended, or for ten seconds.
    static void await(mediator& one, bool wants_end = false) {
        await(one, [&] { return one.end() || (!wants_end && one.is_ready()); });
    }
    static void await(mediator& one, const std::function<bool()>& is_enough) {
        for (int i = 0; i < 100 && !is_enough(); ++i) {
            ::pollfd source{one.descriptor().get(), POLLIN, 0};
            (void)::poll(&source, 1, 100);
            one.advance();
        }
    }
    auto left(const char* name) -> std::string {
        return sys::read_file(folder_ / name, 1 << 20).value_or("nothing");
    }
    test::folder folder_;
    sys::unique_fd quiet_{::eventfd(0, EFD_CLOEXEC)};
};

TEST_F(MediatorTest, IsReadyAndEndsWithItsChannel) {
    auto one = start("ready");
    await(one);
    EXPECT_TRUE(one.is_ready());
    EXPECT_FALSE(one.end());
    one.finish(quiet_, [] { return true; });
    EXPECT_EQ(left("leads"), "its own session");
    EXPECT_EQ(kernel::decode_mediation(left("told")).value(), some_mediation());
}

TEST_F(MediatorTest, GetsTheSocketInside) {
    auto one = start("ready");
    await(one);
    one.serve(sys::unique_fd{::eventfd(0, EFD_CLOEXEC)});
    EXPECT_FALSE(one.end());
    one.finish(quiet_, [] { return true; });
    EXPECT_EQ(left("heard"), "l+fd ");
}

TEST_F(MediatorTest, WhatItSaysWhenItCannotStartIsKept) {
    auto one = start("fail");
    await(one);
    EXPECT_FALSE(one.is_ready());
    EXPECT_EQ(one.end(), "the server demo did not start\nits last words");
}

TEST_F(MediatorTest, AnEndWithoutAWordIsTold) {
    auto one = start("quit");
    await(one);
    EXPECT_EQ(one.end(), "glove-mediator ended with status 3");
    auto other = start("killed");
    await(other);
    EXPECT_EQ(other.end(), "glove-mediator was killed by signal 9");
    auto late = start("gone");
    await(late, true);
    EXPECT_TRUE(late.is_ready());
    EXPECT_EQ(late.end(), "glove-mediator ended with status 4");
}

TEST_F(MediatorTest, GivesUpWithWords) {
    auto one = start("ended");
    await(one, true);
    EXPECT_EQ(one.end(), "the record cannot be written");
}

// An agent that closes its streams has no tools any more, and may go on.
TEST_F(MediatorTest, OneThatTheAgentHasLeftEndsInOrder) {
    auto one = start("left");
    await(one, [&] { return one.descriptor().get() < 0; });
    EXPECT_EQ(one.descriptor().get(), -1);
    EXPECT_FALSE(one.end());
    one.finish(quiet_, [] { return true; });
    EXPECT_FALSE(one.end());
    auto other = start("leave");
    await(other, true);
    EXPECT_EQ(other.end(), "glove-mediator ended with status 4");
}

// Whoever was quicker, the end of the run or the news.
TEST_F(MediatorTest, WhatHadEndedOtherwiseIsToldAtTheEndOfTheRun) {
    for (const auto& [how, end] : {std::pair{"ready", ""},
                                   {"late", "glove-mediator ended with status 4"},
                                   {"gone", "glove-mediator ended with status 4"},
                                   {"ended", "the record cannot be written"}}) {
        auto one = start(how);
        await(one);
        ::usleep(500'000); // nobody looks
        one.finish(quiet_, [] { return true; });
        EXPECT_EQ(one.end().value_or(""), end) << how;
    }
}

TEST_F(MediatorTest, AnAgentThatEndedBeforeTheNewsCameHasNotJustExited) {
    using run::exit_cause;
    struct {
        const char* how;
        exit_cause before, after;
    } const cases[] = {
        {"ready", exit_cause::exited, exit_cause::exited},
        {"gone", exit_cause::exited, exit_cause::mediation},
        {"gone", exit_cause::signaled, exit_cause::mediation},
        {"gone", exit_cause::terminated, exit_cause::terminated},
        {"gone", exit_cause::wall_time, exit_cause::wall_time},
    };
    auto inbox = run::signal_inbox::open(false).value();
    for (const auto& each : cases) {
        auto one = start(each.how);
        await(one);
        ::usleep(500'000);
        result<run::outcome> ended{run::outcome{.cause = each.before}};
        run::finish_tools(one, inbox, ended);
        EXPECT_EQ(ended->cause, each.after) << each.how;
        EXPECT_EQ(ended->mediation_end.empty(), each.after != exit_cause::mediation);
    }
}

TEST_F(MediatorTest, AWordThatIsNoneIsItsEnd) {
    auto one = start("wrong");
    await(one, true);
    EXPECT_EQ(one.end(), "it said what it must not");
}

TEST_F(MediatorTest, OneThatDoesNotEndIsKilledWhenItIsTime) {
    auto one = start("hang");
    await(one);
    const auto before = std::chrono::steady_clock::now();
    one.finish(quiet_, [] { return true; });
    const auto took = std::chrono::steady_clock::now() - before;
    EXPECT_GE(took, run::finish_patience);
    EXPECT_LE(took, run::finish_patience + run::last_patience + 8s);
}

TEST_F(MediatorTest, ASecondRequestToEndDoesNotWait) {
    const sys::unique_fd loud{::eventfd(1, EFD_CLOEXEC)};
    auto one = start("deaf");
    await(one);
    const auto before = std::chrono::steady_clock::now();
    one.finish(loud, [] { return true; });
    const auto took = std::chrono::steady_clock::now() - before;
    EXPECT_GE(took, run::last_patience); // it does not hear SIGTERM
    EXPECT_LT(took, run::finish_patience);
}

TEST_F(MediatorTest, WhatIsNoRequestToEndChangesNothing) {
    const sys::unique_fd loud{::eventfd(1, EFD_CLOEXEC)};
    auto one = start("hang");
    await(one);
    const auto before = std::chrono::steady_clock::now();
    one.finish(loud, [&] {
        std::uint64_t count = 0;
        (void)!::read(loud.get(), &count, sizeof count);
        return false;
    });
    EXPECT_GE(std::chrono::steady_clock::now() - before, run::finish_patience);
}

TEST_F(MediatorTest, WaitsForAServerAsLongAsItMayTake) {
    ::setenv("STAND_IN", "ready", 1);
    auto what = some_mediation();
    what.start_timeout_ms = 1000;
    EXPECT_EQ(mediator::start(what, {}, stand_in()).value().patience(), 16s);
    what.upstreams.front().start_timeout = 90s;
    EXPECT_EQ(mediator::start(what, {}, stand_in()).value().patience(), 105s);
}

TEST_F(MediatorTest, AProgramThatIsNotThereIsAnError) {
    const auto got = mediator::start(some_mediation(), {}, "/nowhere/glove-mediator");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::not_found);
}

TEST_F(MediatorTest, WhatCannotBeSaidIsNotStarted) {
    auto what = some_mediation();
    what.upstreams.front().argv.clear();
    EXPECT_FALSE(mediator::start(what, {}, stand_in()));
}

TEST_F(MediatorTest, RulesAreJudgedByIt) {
    ::setenv("STAND_IN", "ready", 1);
    EXPECT_THAT(run::rules_of(some_mediation(), stand_in()).value(),
                ElementsAre("a rule", "another"));
    EXPECT_EQ(kernel::decode_mediation(left("told")).value().task, kernel::task::check);
    ::setenv("STAND_IN", "fail", 1);
    const auto refused = run::rules_of(some_mediation(), stand_in());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().step, "plan.rules");
}

} // namespace
