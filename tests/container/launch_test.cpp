// The parts of a launch that are tables, and the conversation with init.
#include "container/linux/steps.hpp"
#include <algorithm>
#include <array>
#include <glove/container/launch.hpp>
#include <gmock/gmock.h>
#include <poll.h>
#include <set>
#include <support/forked.hpp>
#include <sys/wait.h>

namespace {

using namespace glove;
using namespace glove::container;

// Reads on until the run has ended or failed.
auto last_news(running& agent) -> result<ending> {
    for (;;) {
        GLOVE_TRY(const auto end, agent.read_news());
        if (end) return *end;
    }
}

using testing::HasSubstr;

TEST(Layers, EachIsAskedForOnce) {
    std::set<std::string_view> names;
    for (const auto& layer : requested_layers(plan{})) {
        EXPECT_FALSE(layer.name.empty());
        EXPECT_FALSE(layer.armed) << layer.name;
        EXPECT_TRUE(names.insert(layer.name).second) << layer.name;
    }
}

TEST(Layers, TheNamespacesComeFirstAndThenTheStepsInTheirOrder) {
    std::vector<std::string_view> expected{"user namespace",    "pid namespace", "mount namespace",
                                           "network namespace", "ipc namespace", "uts namespace"};
    for (const auto& step : setup_steps())
        if (!step.layer.empty() && !step.of_bridge) expected.push_back(step.layer);
    std::vector<std::string_view> asked;
    for (const auto& layer : requested_layers(plan{})) asked.push_back(layer.name);
    EXPECT_EQ(asked, expected);
}

auto position(std::string_view step) -> std::ptrdiff_t {
    const auto steps = setup_steps();
    const auto at = std::ranges::find(steps, step, &setup_step::name);
    EXPECT_NE(at, steps.end()) << step;
    return at - steps.begin();
}

// Orders on which the perimeter rests.
TEST(Steps, TheirOrderIsTheOneThePerimeterNeeds) {
    EXPECT_EQ(position("init.descriptors"), 0);
    EXPECT_LT(position("init.id_maps"), position("init.inspection")); // else no map can be written
    EXPECT_LT(position("init.inspection"), position("init.release")); // before untrusted code
    EXPECT_LT(position("mount.tree"), position("mount.enter"));
    EXPECT_LT(position("mount.tree"), position("mount.listeners"));
    EXPECT_LT(position("mount.listeners"), position("mount.enter")); // which leaves the directory
    EXPECT_LT(position("mount.user_namespaces"), position("mount.proc_guard")); // read-only then
    EXPECT_LT(position("bridge.ports"), position("mount.proc_guard"));
    EXPECT_LT(position("init.capabilities"), position("bridge.start"));
    EXPECT_LT(position("bridge.start"), position("init.release"));
    EXPECT_LT(position("mount.enter"), position("init.terminal"));  // of the namespace's own devpts
    EXPECT_LT(position("init.session"), position("init.terminal")); // which it then controls
    EXPECT_LT(position("init.terminal"), position("init.release"));
    EXPECT_LT(position("mount.enter"), position("init.capabilities"));
    EXPECT_LT(position("init.capabilities"), position("init.release"));
    EXPECT_EQ(position("agent.start"), static_cast<std::ptrdiff_t>(setup_steps().size()) - 1);
}

TEST(Steps, EachHasANameOfItsOwnAndSomethingToDo) {
    std::set<std::string_view> names;
    for (const auto& step : setup_steps()) {
        EXPECT_TRUE(names.insert(step.name).second) << step.name;
        EXPECT_NE(step.name.find('.'), std::string_view::npos) << step.name;
        EXPECT_NE(step.run, nullptr);
    }
}

TEST(CallNames, EachCallIsReportedByItsOwnName) {
#define GLOVE_ROW(name)                                                                            \
    std::pair {                                                                                    \
        call::name, std::string_view { #name }                                                     \
    }
    constexpr std::array rows{
        GLOVE_ROW(capset),        GLOVE_ROW(chdir),      GLOVE_ROW(clone),
        GLOVE_ROW(close_range),   GLOVE_ROW(dup2),       GLOVE_ROW(dup3),
        GLOVE_ROW(execve),        GLOVE_ROW(fchdir),     GLOVE_ROW(fsconfig),
        GLOVE_ROW(fsmount),       GLOVE_ROW(fsopen),     GLOVE_ROW(getdents64),
        GLOVE_ROW(ioctl),         GLOVE_ROW(keyctl),     GLOVE_ROW(mkdirat),
        GLOVE_ROW(mount_setattr), GLOVE_ROW(move_mount), GLOVE_ROW(open_tree),
        GLOVE_ROW(openat),        GLOVE_ROW(openat2),    GLOVE_ROW(pivot_root),
        GLOVE_ROW(prctl),         GLOVE_ROW(recv),       GLOVE_ROW(seccomp),
        GLOVE_ROW(setsid),        GLOVE_ROW(setrlimit),  GLOVE_ROW(sethostname),
        GLOVE_ROW(sigaction),     GLOVE_ROW(signalfd),   GLOVE_ROW(sigprocmask),
        GLOVE_ROW(socket),        GLOVE_ROW(statx),      GLOVE_ROW(symlinkat),
        GLOVE_ROW(umount2),       GLOVE_ROW(unlinkat),   GLOVE_ROW(unshare),
        GLOVE_ROW(write),         GLOVE_ROW(bind),       GLOVE_ROW(epoll_create1),
        GLOVE_ROW(epoll_ctl),     GLOVE_ROW(listen),     GLOVE_ROW(sendmsg),
        GLOVE_ROW(setpgid),       GLOVE_ROW(fstatfs),
    };
#undef GLOVE_ROW
    EXPECT_EQ(rows.size() + 1, call_names.size());
    EXPECT_EQ(call_names[static_cast<std::size_t>(call::none)], "");
    for (const auto& [number, name] : rows)
        EXPECT_EQ(call_names[static_cast<std::size_t>(number)], name);
}

TEST(Remedy, AStepThatNeedsNoExplanationGetsNone) {
    EXPECT_EQ(remedy_for("mount.tree", ENOSPC), "");
    EXPECT_EQ(remedy_for("init.keyring", ENOMEM), "");
    EXPECT_EQ(remedy_for("agent.start", EACCES), "");
    EXPECT_EQ(remedy_for("agent.start", EPERM), "");
    EXPECT_EQ(remedy_for("launch.namespaces", ENOMEM), "");
    EXPECT_EQ(remedy_for("anything.else", 0), "");
}

TEST(Remedy, ACertainCauseGetsItsMend) {
    EXPECT_THAT(remedy_for("init.keyring", EDQUOT), HasSubstr("kernel.keys.maxkeys"));
    EXPECT_THAT(remedy_for("mount.tree", ESTALE), HasSubstr("replaces that path"));
}

// --- the conversation with a real init

auto plan_for(std::vector<std::string> argv) -> plan {
    profile wish;
    wish.argv = std::move(argv);
    auto made = make_plan(wish);
    EXPECT_TRUE(made.has_value()) << made.error().step << " " << made.error().detail;
    return *std::move(made);
}

auto start(const plan& source) -> running {
    static std::array<char, 64> arguments{};
    launch_request request{.plan = &source,
                           .arguments = {.begin = arguments.data(), .size = arguments.size()}};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &request.open_files), 0);
    auto started = launch(request);
    EXPECT_TRUE(started.has_value()) << started.error().step << " " << started.error().detail;
    return *std::move(started);
}

void await_news(const running& agent) {
    ::pollfd source{agent.news().get(), POLLIN, 0};
    EXPECT_EQ(::poll(&source, 1, 60'000), 1);
}

TEST(Launch, AProgramRunsAndItsStatusComesBackWithEveryLayerArmed) {
    const auto source = plan_for({"sh", "-c", "exit 9"});
    auto agent = start(source);
    ASSERT_TRUE(agent.release().has_value());
    const auto ended = last_news(agent);
    ASSERT_TRUE(ended.has_value()) << ended.error().step << " " << ended.error().detail;
    EXPECT_TRUE(WIFEXITED(ended->wait_status));
    EXPECT_EQ(WEXITSTATUS(ended->wait_status), 9);
    for (const auto& layer : agent.layers()) EXPECT_TRUE(layer.armed) << layer.name;
}

TEST(Launch, WithoutAReleaseTheProgramDoesNotRun) {
    const auto source = plan_for({"true"});
    auto agent = start(source);
    ::pollfd waiting{agent.news().get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 300), 0);
    ASSERT_TRUE(agent.release().has_value());
    await_news(agent);
    EXPECT_TRUE(last_news(agent).has_value());
}

TEST(Launch, ASignalReachesTheAgent) {
    const auto source = plan_for({"sleep", "1000"});
    auto agent = start(source);
    ASSERT_TRUE(agent.release().has_value());
    ASSERT_TRUE(agent.signal(SIGTERM).has_value());
    const auto ended = last_news(agent);
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->wait_status, SIGTERM);
}

TEST(Launch, AKillEndsTheNamespace) {
    const auto source = plan_for({"sleep", "1000"});
    auto agent = start(source);
    ASSERT_TRUE(agent.release().has_value());
    ASSERT_TRUE(agent.kill().has_value());
    const auto ended = last_news(agent);
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->wait_status, SIGKILL);
}

TEST(Launch, AProgramThatDoesNotExistIsNamed) {
    const auto source = plan_for({"/no/such/program"});
    auto agent = start(source);
    ASSERT_TRUE(agent.release().has_value());
    const auto ended = last_news(agent);
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(ended.error().step, exec_step);
    EXPECT_EQ(ended.error().os, ENOENT);
    EXPECT_EQ(ended.error().detail, "/no/such/program");
}

// A link in place of a parent directory of Glove's own: the step fails whatever the host is like.
auto broken_plan() -> plan {
    auto out = plan_for({"true"});
    out.tree.insert(out.tree.begin(), tree_entry{.path = "/zz/missing/parent"});
    return out;
}

TEST(Launch, AStepThatFailsIsNamedWhenTheReleaseComesFirst) {
    const auto source = broken_plan();
    for (int i = 0; i < 20; ++i) {
        auto agent = start(source);
        ASSERT_TRUE(agent.release().has_value());
        const auto ended = last_news(agent);
        ASSERT_FALSE(ended.has_value());
        ASSERT_EQ(ended.error().step, "mount.tree") << i;
        EXPECT_EQ(ended.error().os, ENOENT);
        EXPECT_EQ(ended.error().detail, "openat2 for /zz/missing/parent");
    }
}

TEST(Launch, AStepThatFailsIsNamedWhenTheReleaseComesTooLate) {
    const auto source = broken_plan();
    auto agent = start(source);
    await_news(agent);
    ::usleep(50'000);
    ASSERT_TRUE(agent.release().has_value());
    const auto ended = last_news(agent);
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(ended.error().step, "mount.tree");
    const auto layers = agent.layers();
    const auto armed = [&](std::string_view name) {
        return std::ranges::find(layers, name, &layer::name)->armed;
    };
    EXPECT_TRUE(armed("descriptors sealed"));
    EXPECT_FALSE(armed("own root file system, sources pinned"));
    EXPECT_FALSE(armed("system-call filter"));
}

// In a process that has no other child: a shell may have left some to this one.
TEST(Launch, DroppingItEndsWhatRunsAndReapsIt) {
    EXPECT_EQ(test::said_by([] {
                  const auto source = plan_for({"sleep", "1000"});
                  {
                      auto agent = start(source);
                      if (!agent.release()) return std::string{"not released"};
                  }
                  const auto left = ::waitpid(-1, nullptr, WNOHANG | __WALL);
                  return std::string{left < 0 && errno == ECHILD ? "none left" : "one left"};
              }),
              "none left");
}

TEST(OpenFiles, TheSoftLimitIsRaisedToTheHardOne) {
    ::rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const auto told = raise_open_files();
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->rlim_cur, before.rlim_cur);
    ::rlimit after{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
    EXPECT_EQ(after.rlim_cur, before.rlim_max);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

} // namespace
