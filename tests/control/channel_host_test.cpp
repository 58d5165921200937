// Admission: each refusal and its allowed twin, each bound at n and n+1.
#include "session_scene.hpp"

namespace {

using namespace glove;
using namespace glove::test;

auto step_of(const result<>& what) -> std::string {
    return what ? "" : std::string{what.error().step};
}

TEST(ChannelHost, AdmitsNothingBeforeTheFreeze) {
    channel_host host;
    EXPECT_EQ(step_of(host.freeze()), "channel.empty");
    EXPECT_FALSE(host.frozen());
    EXPECT_TRUE(host.add(channel("b.v1")).has_value());
    EXPECT_EQ(step_of(host.add(channel("b.v1"))), "channel.repeated");
    EXPECT_TRUE(host.add(channel("a.v1")).has_value());
    EXPECT_EQ(host.find("a.v1"), nullptr);
    EXPECT_TRUE(host.freeze().has_value());
    EXPECT_TRUE(host.freeze().has_value());
    ASSERT_NE(host.find("a.v1"), nullptr);
    EXPECT_EQ(host.find("a.v1")->schema_id, "a.v1");
    EXPECT_EQ(host.find("c.v1"), nullptr);
    EXPECT_EQ(host.catalog().size(), 2U);
    EXPECT_EQ(host.catalog().front().schema_id, "a.v1");
    EXPECT_EQ(step_of(host.add(channel("c.v1"))), "channel.frozen");
}

TEST(ChannelHost, RefusesWhatIsNoContract) {
    channel_host host;
    EXPECT_EQ(step_of(host.add(channel(""))), "channel.schema");
    EXPECT_EQ(step_of(host.add(channel("with space"))), "channel.schema");
    EXPECT_EQ(step_of(host.add(channel(std::string(129, 'a')))), "channel.schema");
    EXPECT_TRUE(host.add(channel(std::string(128, 'a'))).has_value());
    auto nobody = channel("a.v1");
    nobody.body_validator = nullptr;
    EXPECT_EQ(step_of(host.add(nobody)), "channel.validator");
    const auto with = [&](adapters::channel_bounds bounds) {
        return step_of(channel_host{}.add(channel("a.v1", bounds)));
    };
    EXPECT_EQ(with({4096, 16'384, 600'000, 600'000}), "");
    EXPECT_EQ(with({1, 1, 1, 0}), "");
    for (const auto& wrong : {adapters::channel_bounds{0, 1, 1, 0},
                              {4097, 1, 1, 0},
                              {1, 0, 1, 0},
                              {1, 16'385, 1, 0},
                              {1, 1, 0, 0},
                              {1, 1, 600'001, 0},
                              {1, 1, 1, 2}})
        EXPECT_EQ(with(wrong), "channel.bounds");
}

TEST(Sage, AdmitsObservationsAndNothingElse) {
    const auto what = adapters::sage::observation_channel();
    EXPECT_EQ(what.schema_id, "sage.glove-observation.v1");
    EXPECT_EQ(what.bounds, (adapters::channel_bounds{4096, 8192, 600'000, 30'000}));
    EXPECT_EQ(adapters::sage::adapter_id, "sage-observation");
    EXPECT_EQ(adapters::sage::runtime_ids.size(), 1U);
    EXPECT_EQ(adapters::sage::runtime_ids.front(), "pi");
    EXPECT_EQ(what.body_validator({what.schema_id, "intent-1", "anything", digits('a'), 1}), "");
    EXPECT_NE(what.body_validator({"sage.other.v1", "intent-1", "anything", digits('a'), 1}), "");
    channel_host host;
    EXPECT_TRUE(host.add(what).has_value());
    EXPECT_TRUE(host.freeze().has_value());
}

TEST(ChannelHost, ARegistryNeedsOneThatDoesNotChange) {
    channel_host host;
    ASSERT_TRUE(host.add(channel("a.v1")).has_value());
    failing_disk disk;
    failing_storage store{disk};
    hand_clock clock;
    const auto early = session_registry::open(store, {}, &host, clock);
    ASSERT_FALSE(early.has_value());
    EXPECT_EQ(early.error().step, "registry.channels");
    ASSERT_TRUE(host.freeze().has_value());
    EXPECT_TRUE(session_registry::open(store, {}, &host, clock).has_value());
}

} // namespace
