// What the agent leaves running ends with it, and with Glove, however that ends.
#include "agents/scene.hpp"

namespace glove::test {
namespace {

class Leftovers : public Scene {
protected:
    // True when the daemon did not live to leave its mark.
    [[nodiscard]] auto gone() const -> bool {
        (void)::usleep(1'200'000);
        return !std::filesystem::exists(workspace + "/outlived");
    }
};

TEST_F(Leftovers, end_when_the_agent_exits) {
    EXPECT_TRUE(worked(inside({"outlive", workspace + "/outlived"})));
    EXPECT_TRUE(gone());
    EXPECT_TRUE(worked(bare({"outlive", workspace + "/outlived"})));
    EXPECT_FALSE(gone());
}

TEST_F(Leftovers, end_when_glove_is_killed) {
    for (const int number : {SIGKILL, SIGTERM}) {
        std::filesystem::remove(workspace + "/outlived");
        auto asked = inside_command({});
        asked.argv.pop_back();
        asked.argv =
            asked.argv + words{"sh", "-c",
                               "trap '' TERM HUP; " + hostile_binary + " outlive " + workspace +
                                   "/outlived & echo here; sleep 0.2; exec sleep 60"};
        started agent{asked};
        ASSERT_TRUE(agent.says("here"));
        ASSERT_EQ(::kill(agent.pid(), number), 0);
        if (number == SIGKILL) {
            EXPECT_TRUE(gone());
        }
        (void)agent.finish(std::chrono::seconds{30});
    }
}

TEST_F(Leftovers, cannot_hold_the_output_open) {
    const auto seen = run(glove_exec(home, {}, {"sh", "-c", "setsid sleep 60 & echo said"}));
    EXPECT_EQ(seen.output, "said\n");
    EXPECT_EQ(seen.status(), 0);
}

} // namespace
} // namespace glove::test
