// The agent's process group is its own, on a terminal too: what else of the host is in the caller's
// group is neither ended nor stopped nor slowed down, and Glove is not either.
#include "agents/scene.hpp"
#include "support/bystander.hpp"
#include "support/pseudo_terminal.hpp"

namespace glove::test {
namespace {

constexpr int killed = 128 + SIGKILL;

class Groups : public Scene {
protected:
    // In a group that holds nobody but the bystander: what an attack that works would reach.
    [[nodiscard]] static auto beside(const bystander& other, command asked) -> command {
        asked.before_exec = [&other] {
            if (::setpgid(0, 0) != 0) ::_exit(120);
            other.join();
        };
        return asked;
    }
    [[nodiscard]] auto bare_command(const words& attack) const -> command {
        return {.argv = words{hostile_binary} + attack, .environment = environment_in(home)};
    }
    [[nodiscard]] auto report() const -> std::string { return contents(home + "/report.json"); }
    words reported{"--report", home + "/report.json"};
    const std::vector<words> ends{{"kill_group", "9"}, {"kill_group_by_handle", "9"}};
    const std::vector<words> slows{{"slow_group"}, {"slow_group_disk"}};
};

TEST_F(Groups, of_the_caller_are_not_ended) {
    for (const auto& attack : ends) {
        bystander other;
        const auto seen = run(beside(other, inside_command(attack, reported)));
        EXPECT_EQ(seen.status(), killed) << attack[0] << seen; // the agent itself
        EXPECT_TRUE(other.goes_on()) << attack[0];
        EXPECT_NE(report().find("\"cause\":\"signaled\""), std::string::npos) << report();
        bystander reached;
        EXPECT_EQ(run(beside(reached, bare_command(attack))).status(), killed) << attack[0];
        EXPECT_TRUE(reached.becomes('Z')) << attack[0];
    }
    bystander other;
    EXPECT_TRUE(worked(judged(run(beside(other, inside_command({"end_children"}))))));
    EXPECT_TRUE(other.goes_on());
}

TEST_F(Groups, of_the_caller_are_not_stopped_and_time_still_ends_the_run) {
    const auto stop = std::to_string(SIGSTOP);
    bystander other;
    started agent{
        beside(other, inside_command({"kill_group", stop}, reported + words{"--wall-time", "1s"}))};
    EXPECT_TRUE(other.goes_on());
    EXPECT_EQ(agent.finish(std::chrono::seconds{40}).status(), killed);
    EXPECT_TRUE(other.goes_on());
    EXPECT_NE(report().find("\"cause\":\"wall_time\""), std::string::npos) << report();
    bystander reached;
    const started bare_one{beside(reached, bare_command({"kill_group", stop}))};
    EXPECT_TRUE(reached.becomes('T'));
}

TEST_F(Groups, of_the_caller_are_not_slowed_down) {
    for (const auto& attack : slows) {
        bystander other;
        auto asked = inside_command({});
        asked.argv.pop_back();
        asked.argv = asked.argv + words{"sh", "-c", "\"$0\" \"$1\" && echo here; exec sleep 60",
                                        hostile_binary, attack[0]};
        started agent{beside(other, asked)};
        ASSERT_TRUE(agent.says("here")) << attack[0];
        const auto own = priorities_of(::getpid());
        EXPECT_EQ(priorities_of(other.pid()), own) << attack[0];
        EXPECT_EQ(priorities_of(agent.pid()), own) << attack[0];
        bystander reached;
        EXPECT_TRUE(worked(judged(run(beside(reached, bare_command(attack)))))) << attack[0];
        EXPECT_NE(priorities_of(reached.pid()), own) << attack[0];
    }
}

class GroupsOnATerminal : public Groups {
protected:
    [[nodiscard]] auto at_terminal(const bystander& other, command asked) const -> command {
        asked.standard_input = terminal_.end();
        asked.before_exec = [&other] {
            pseudo_terminal::take();
            other.join();
        };
        return asked;
    }

private:
    pseudo_terminal terminal_;
};

// The same attacks: there they reach the agent's own group, and nobody of the caller's.
TEST_F(GroupsOnATerminal, are_the_agent_s_own) {
    for (const auto& attack : ends) {
        bystander other;
        EXPECT_EQ(run(at_terminal(other, inside_command(attack))).status(), killed) << attack[0];
        EXPECT_TRUE(other.goes_on()) << attack[0];
    }
    const auto own = priorities_of(::getpid());
    for (const auto& attack : slows) {
        bystander other;
        EXPECT_TRUE(worked(judged(run(at_terminal(other, inside_command(attack)))))) << attack[0];
        EXPECT_TRUE(other.goes_on()) << attack[0];
        EXPECT_EQ(priorities_of(other.pid()), own) << attack[0];
    }
    bystander other;
    const auto stop = std::to_string(SIGSTOP);
    started agent{at_terminal(
        other, inside_command({"kill_group", stop}, reported + words{"--wall-time", "1s"}))};
    EXPECT_EQ(agent.finish(std::chrono::seconds{40}).status(), killed);
    EXPECT_TRUE(other.goes_on());
    EXPECT_NE(report().find("\"cause\":\"wall_time\""), std::string::npos) << report();
}

TEST_F(GroupsOnATerminal, are_within_reach_of_a_bare_run) {
    for (const auto& attack : ends) {
        bystander reached;
        EXPECT_EQ(run(at_terminal(reached, bare_command(attack))).status(), killed) << attack[0];
        EXPECT_TRUE(reached.becomes('Z')) << attack[0];
    }
    for (const auto& attack : slows) {
        bystander reached;
        EXPECT_TRUE(worked(judged(run(at_terminal(reached, bare_command(attack)))))) << attack[0];
        EXPECT_NE(priorities_of(reached.pid()), priorities_of(::getpid())) << attack[0];
    }
}

} // namespace
} // namespace glove::test
