// Intents: the order of checks, replays, decisions, pages, quarantine, and that whatever a guest
// writes, its session can be ended on record.
#include "control/session_room.hpp"
#include "session_scene.hpp"
#include <gmock/gmock.h>

namespace {

using namespace glove;
using namespace glove::test;

class Intents : public testing::Test {
protected:
    registry_scene scene;
    void SetUp() override { scene.bring("one", running); }

    auto with(const std::string& id, auto change, std::string_view schema = test_schema) {
        auto context = scene.context("one");
        auto body = scene.body(id, schema);
        change(context, body);
        return scene->enqueue(context, body);
    }
    auto pending(std::uint64_t after = 0, std::size_t limit = 256) {
        std::vector<std::string> out;
        for (const auto& one : scene->pending(after, limit).items)
            out.push_back(one.body.intent_id);
        return out;
    }
};
using C = guest_context;
using B = adapters::guest_body;
using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(Intents, AreAdmittedOnce) {
    const auto first = scene.say("one", "a");
    ASSERT_TRUE(first.has_value()) << why_of(first);
    EXPECT_EQ(first->sequence, 5U);
    EXPECT_EQ(first->disposition, intent_disposition::pending);
    const auto size = scene.disk.content().size();
    scene.clock.add(5000); // later than it lives, with other times
    EXPECT_EQ(scene.say("one", "a")->sequence, 5U);
    scene.bring("one", exited);
    EXPECT_EQ(scene.say("one", "a")->sequence, 5U);
    ASSERT_TRUE(scene.open());
    EXPECT_EQ(scene.say("one", "a")->context.issued_at_ms, 1000U);
    EXPECT_EQ(code_of(with("a", [](C&, B& b) { b.item_count = 3; })), "idempotency_conflict");
    EXPECT_EQ(code_of(with("a", [](C& c, B&) { c.channel_id = "other"; })), "idempotency_conflict");
    EXPECT_EQ(code_of(with("a", [](C& c, B&) { c.projection_digest = digits('f'); })),
              "idempotency_conflict");
    EXPECT_LT(size, scene.disk.content().size()); // only the end of the session came to it
    EXPECT_THAT(pending(), ElementsAre("a"));
}

TEST_F(Intents, ARefusalNamesTheFirstThingThatIsWrong) {
    const auto code = [&](auto change) { return code_of(with("a", change)); };
    // Each line breaks what its check looks at, and everything that later checks do.
    const auto ruin = [](C& c) {
        c.session_id = "nobody";
        c.runtime_id = "other";
    };
    EXPECT_EQ(code([&](C& c, B& b) {
                  ruin(c);
                  b.schema = "unknown.v1";
                  b.item_count = 0;
              }),
              "unsupported_schema");
    EXPECT_EQ(code([&](C& c, B& b) {
                  ruin(c);
                  b.intent_id = "a b";
              }),
              "invalid_request");
    EXPECT_EQ(code([&](C& c, B& b) {
                  ruin(c);
                  b.observation = "";
              }),
              "invalid_request");
    EXPECT_EQ(code([&](C& c, B& b) {
                  ruin(c);
                  b.value_digest = digits('A');
              }),
              "invalid_request");
    EXPECT_EQ(code([&](C& c, B& b) {
                  ruin(c);
                  b.item_count = 0;
              }),
              "invalid_request");
    EXPECT_EQ(code([&](C& c, B& b) {
                  ruin(c);
                  b.item_count = 5;
              }),
              "invalid_request");
    EXPECT_EQ(code([&](C& c, B&) {
                  ruin(c);
                  c.issued_at_ms = 1101;
                  c.expires_at_ms = 2000;
              }),
              "invalid_observation_intent_state");
    EXPECT_EQ(code([&](C& c, B&) {
                  ruin(c);
                  c.expires_at_ms = 1000;
              }),
              "invalid_observation_intent_state");
    EXPECT_EQ(code([&](C& c, B&) { ruin(c); }), "session_not_found");
    const std::string no = "invalid_observation_intent_state";
    EXPECT_EQ(code([](C& c, B&) { c.runtime_id = "pi"; }), no);
    EXPECT_EQ(code([](C& c, B&) { c.controller_plan_digest = digits('d'); }), no);
    EXPECT_EQ(code([](C& c, B&) { c.profile_digest = digits('d'); }), no);
    EXPECT_EQ(code([](C& c, B&) { c.policy_revision = 8; }), no);
    EXPECT_EQ(code([](C& c, B&) { c.issued_at_ms = 999; }), no);
    EXPECT_EQ(code([](C& c, B&) { c.expires_at_ms = 11'001; }), no);
    EXPECT_EQ(code([](C& c, B&) { c.projection_digest = ""; }),
              "observation_intent_control_failed");
    EXPECT_EQ(code([](C& c, B&) { c.channel_id = "a b"; }), "observation_intent_control_failed");
    EXPECT_THAT(pending(), IsEmpty());
    // The allowed twins, at the bounds.
    EXPECT_EQ(code_of(with("b",
                           [](C& c, B& b) {
                               c.expires_at_ms = 11'000;
                               b.item_count = 1;
                           })),
              "");
    EXPECT_EQ(code_of(with("c",
                           [](C& c, B&) {
                               c.issued_at_ms = 1100;
                               c.expires_at_ms = 1101;
                           })),
              "");
    EXPECT_EQ(code_of(with("d", [](C& c, B&) { c.channel_generation = 2; })), "");
    EXPECT_THAT(pending(), ElementsAre("b", "c", "d"));
}

TEST_F(Intents, OnlyARunningSessionIsHeard) {
    for (const auto is : {created, preparing, starting, stopping, exited, failed}) {
        registry_scene fresh;
        fresh.bring("one", is);
        EXPECT_EQ(code_of(fresh.say("one", "a")), "invalid_session_state") << to_string(is);
    }
    registry_scene deaf;
    deaf.heard = false;
    deaf.bring("one", running);
    EXPECT_EQ(code_of(deaf.say("one", "a")), "unsupported_schema");
}

TEST_F(Intents, BodiesAreJudgedByTheirSchema) {
    auto strict = channel("strict.v1", {4, 100, 10'000, 100});
    auto never = channel("never.v1");
    never.body_validator = no_body;
    scene.channels = host_of({strict, never, channel(std::string{test_schema})});
    ASSERT_TRUE(scene.open());
    registry_scene& s = scene;
    s.bring("two", running);
    EXPECT_EQ(code_of(s.say("two", "a", "never.v1")), "invalid_request");
    EXPECT_EQ(code_of(s.say("two", "a", "strict.v1")), "invalid_request"); // longer than 100 bytes
    EXPECT_EQ(code_of(s.say("two", "a")), "");
}

TEST_F(Intents, AreDecidedOnce) {
    const auto a = scene.say("one", "a").value();
    const auto b = scene.say("one", "b").value();
    EXPECT_EQ(code_of(scene.decide(a, intent_disposition::pending)), "invalid_request");
    EXPECT_EQ(code_of(scene.decide(a, intent_disposition::expired)),
              "invalid_observation_intent_state");
    scene.clock.set(1500);
    const auto first = scene.decide(a, intent_disposition::accepted);
    ASSERT_TRUE(first.has_value()) << why_of(first);
    EXPECT_EQ(first->decided_at_ms, 1500U);
    EXPECT_EQ(first->sequence, a.sequence);
    scene.clock.set(1999);
    EXPECT_EQ(code_of(scene.decide(b, intent_disposition::rejected)), "");
    scene.clock.set(5000);
    for (int life = 0; life < 2; ++life) {
        EXPECT_EQ(scene.decide(a, intent_disposition::accepted)->decided_at_ms, 1500U);
        EXPECT_EQ(code_of(scene.decide(a, intent_disposition::rejected)), "idempotency_conflict");
        EXPECT_EQ(code_of(scene.decide(a, intent_disposition::expired)), "idempotency_conflict");
        EXPECT_EQ(scene.say("one", "a")->disposition, intent_disposition::accepted);
        EXPECT_THAT(pending(), IsEmpty());
        ASSERT_TRUE(scene.open());
    }
}

TEST_F(Intents, ExpireUndecidedAndAreThenDecidedSo) {
    const auto a = scene.say("one", "a").value();
    scene.clock.set(2000); // its last moment has passed
    EXPECT_THAT(pending(), ElementsAre("a"));
    EXPECT_EQ(code_of(scene.decide(a, intent_disposition::accepted)),
              "invalid_observation_intent_state");
    EXPECT_EQ(code_of(scene.decide(a, intent_disposition::rejected)),
              "invalid_observation_intent_state");
    EXPECT_EQ(code_of(scene.decide(a, intent_disposition::expired)), "");
    EXPECT_THAT(pending(), IsEmpty());
}

TEST_F(Intents, AreDecidedAfterTheirSessionEnded) {
    const auto a = scene.say("one", "a").value();
    const auto b = scene.say("one", "b").value();
    scene.bring("one", failed);
    EXPECT_EQ(code_of(scene.decide(a)), "");
    ASSERT_TRUE(scene.open());
    EXPECT_EQ(code_of(scene.decide(b)), "");
    ASSERT_TRUE(scene.open());
    EXPECT_EQ(scene.state_of("one"), failed);
}

TEST_F(Intents, AGuestWhoseClockIsAheadIsDecidedAtItsOwnTime) {
    auto context = scene.context("one");
    context.issued_at_ms = 1100;
    const auto a = scene->enqueue(context, scene.body("a")).value();
    EXPECT_EQ(scene.decide(a)->decided_at_ms, 1100U);
}

TEST_F(Intents, DecisionsNameWhatTheyDecide) {
    auto a = scene.say("one", "a").value();
    const auto code = [&](auto change) {
        intent_decision what{"one", 1, "a", a.intent_digest, intent_disposition::accepted};
        change(what);
        return code_of(scene->decide(what));
    };
    using D = intent_decision;
    const std::string no = "observation_intent_not_found";
    EXPECT_EQ(code([](D& d) { d.session_id = "two"; }), no);
    EXPECT_EQ(code([](D& d) { d.channel_generation = 2; }), no);
    EXPECT_EQ(code([](D& d) { d.intent_id = "b"; }), no);
    EXPECT_EQ(code([](D& d) { d.intent_digest = digits('0'); }), no);
    EXPECT_EQ(code([](D&) {}), "");
}

TEST_F(Intents, ArePaged) {
    for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(scene.say("one", id).has_value());
    const auto first = scene->pending(0, 2);
    ASSERT_EQ(first.items.size(), 2U);
    EXPECT_EQ(first.next_after_sequence, 6U);
    const auto rest = scene->pending(6, 2);
    EXPECT_EQ(rest.items.size(), 1U);
    EXPECT_EQ(rest.next_after_sequence, std::nullopt);
    EXPECT_EQ(scene->pending(0, 3).next_after_sequence, std::nullopt);
    EXPECT_EQ(scene->pending(0, 0).items.size(), 1U);
    scene.decide(first.items[1]).value();
    EXPECT_THAT(pending(), ElementsAre("a", "c"));
    EXPECT_THAT(pending(5), ElementsAre("c"));
    EXPECT_THAT(pending(7), IsEmpty());
}

TEST_F(Intents, ASchemaThatRetiresLeavesMetadata) {
    const auto a = scene.say("one", "a").value();
    const auto b = scene.say("one", "b", "test.other.v1").value();
    const auto c = scene.say("one", "c").value();
    const auto d = scene.say("one", "d").value();
    scene.decide(d).value();
    const auto bytes = scene.disk.content();
    const auto all = scene.channels;
    auto narrow = channel(std::string{test_schema}, {3, 8192, 10'000, 100}); // they have 4 items
    scene.channels = host_of({narrow});
    ASSERT_TRUE(scene.open());
    EXPECT_THAT(pending(), IsEmpty());
    const auto kept = scene->quarantined(0, 10);
    ASSERT_EQ(kept.size(), 4U);
    EXPECT_EQ(kept[0].sequence, a.sequence);
    EXPECT_EQ(kept[0].reason, closed_reason::schema_incompatible);
    EXPECT_EQ(kept[1].schema_id, "test.other.v1");
    EXPECT_EQ(kept[1].intent_id, "b");
    EXPECT_EQ(kept[1].session_id, "one");
    EXPECT_EQ(kept[1].channel_generation, 1U);
    EXPECT_EQ(kept[1].reason, closed_reason::schema_unavailable);
    EXPECT_EQ(scene->quarantined(a.sequence, 1).front().sequence, b.sequence);
    EXPECT_EQ(code_of(scene.say("one", "b", "test.other.v1")), "invalid_observation_intent_state");
    EXPECT_EQ(code_of(scene.say("one", "a")), "invalid_observation_intent_state");
    EXPECT_EQ(code_of(scene.decide(a)), "invalid_observation_intent_state");
    EXPECT_EQ(code_of(scene.decide(b)), "invalid_observation_intent_state");
    scene.heard = false;
    ASSERT_TRUE(scene.open());
    EXPECT_EQ(scene->quarantined(0, 10).size(), 4U);
    EXPECT_EQ(scene->quarantined(0, 10)[0].reason, closed_reason::schema_unavailable);
    EXPECT_EQ(scene.disk.content(), bytes);
    // The catalog of before brings them back as they were.
    scene.heard = true;
    scene.channels = all;
    ASSERT_TRUE(scene.open());
    EXPECT_THAT(pending(), ElementsAre("a", "b", "c"));
    EXPECT_TRUE(scene->quarantined(0, 10).empty());
    EXPECT_EQ(code_of(scene.decide(c)), "");
}

// A time to live that was admitted and is not any more.
TEST_F(Intents, ALongerLifeThanIsAdmittedIsQuarantined) {
    ASSERT_TRUE(scene.say("one", "a").has_value()); // lives for 1000 ms
    for (const std::uint64_t most : {1000U, 999U}) {
        scene.channels = host_of({channel(std::string{test_schema}, {4, 8192, most, 100})});
        ASSERT_TRUE(scene.open());
        EXPECT_EQ(scene->quarantined(0, 10).size(), most == 1000 ? 0U : 1U);
    }
}

TEST_F(Intents, OfOneSessionAreCounted) {
    scene.how.intents_per_session = 2;
    ASSERT_TRUE(scene.open());
    scene.bring("two", running);
    scene.bring("three", running);
    EXPECT_EQ(code_of(scene.say("two", "a")), "");
    scene.decide(scene.say("two", "b").value()).value();
    EXPECT_EQ(code_of(scene.say("two", "c")), "observation_intent_capacity");
    EXPECT_EQ(code_of(scene.say("two", "a")), ""); // a replay
    EXPECT_EQ(code_of(scene.say("three", "a")), "");
}

// A large plan stands in each record: its guest has no larger part of what all guests may leave.
TEST_F(Intents, OfOneSessionAreMeasured) {
    auto plan = plan_of_version_2();
    std::vector<supervisor::exposure_grant> grants;
    for (char c = 'A'; c < 'A' + 20; ++c) {
        auto grant = project_grant();
        grant.exposure_id = std::string(128, c);
        grants.push_back(grant);
    }
    plan.grants = grants;
    scene.bring("large-1", running, plan_text(61'000, plan));
    scene.bring("small-1", running);
    const auto longest = [&](const std::string& id) {
        const auto now = scene->record(id).value();
        return longest_decision(now,
                                facts_of(supervisor::decode_plan(now.canonical_plan_json).value()));
    };
    ASSERT_GT(longest("large-1"), longest("small-1"));
    const auto admitted = [&](const std::string& id) {
        for (int i = 0;; ++i)
            if (const auto one = scene.say(id, "intent-" + std::to_string(i)); !one) {
                EXPECT_EQ(code_of(one), "observation_intent_capacity") << why_of(one);
                EXPECT_TRUE(why_of(one).starts_with("intent.session")) << why_of(one);
                return i;
            }
    };
    scene.how.intent_bytes_per_session = 3 * longest("large-1");
    ASSERT_TRUE(scene.open());
    // The processes of before are nobody's any more; these are of now.
    scene.bring("large-2", running, plan_text(61'000, plan));
    scene.bring("small-2", running);
    EXPECT_EQ(admitted("large-2"), 3);
    EXPECT_GT(admitted("small-2"), 3);
    EXPECT_EQ(code_of(scene.say("large-2", "intent-0")), ""); // a replay
    scene.how.intent_bytes_per_session = longest("large-2");
    ASSERT_TRUE(scene.open());
    scene.bring("large-3", running, plan_text(61'000, plan));
    EXPECT_EQ(admitted("large-3"), 1);
    scene.how.intent_bytes_per_session = longest("large-2") - 1;
    ASSERT_TRUE(scene.open());
    scene.bring("large-4", running, plan_text(61'000, plan));
    EXPECT_EQ(admitted("large-4"), 0);
}

// The guest writes until nothing more of it fits: its own session and others go on to their ends,
// every intent can be decided, and all of it is there after a restart.
TEST_F(Intents, DoNotKeepASessionFromItsEnd) {
    for (const auto& [bytes, records] : std::vector<std::pair<std::uint64_t, std::size_t>>{
             {128U << 10, 0}, {0, 40}, {160U << 10, 60}, {100U << 10, 10'000}}) {
        registry_scene s;
        s.how.file_bytes = bytes;
        s.how.records = records;
        s.how.intents_per_session = 100'000;
        s.bring("one", running);
        s.bring("two", starting);
        std::vector<intent_item> said;
        for (int i = 0;; ++i) {
            const auto one = s.say("one", "intent-" + std::to_string(i));
            if (!one) {
                EXPECT_EQ(code_of(one), "observation_intent_capacity") << why_of(one);
                break;
            }
            said.push_back(*one);
            ASSERT_LT(i, 2000);
        }
        EXPECT_GT(said.size(), 2U);
        ASSERT_TRUE(s.open()) << s.why.step << ": " << s.why.detail;
        // It was running when the process ended, so that is what is left to do.
        struct nobody final : process_observer {
            auto observe(const session_record&) -> observed_process override {
                return observed_process::gone;
            }
        } gone;
        for (const auto& one : said) EXPECT_EQ(code_of(s.decide(one)), "");
        EXPECT_TRUE(s->recover({}, gone).value().empty());
        EXPECT_EQ(s.state_of("one"), failed);
        EXPECT_EQ(s.state_of("two"), failed);
        ASSERT_TRUE(s.open());
        EXPECT_EQ(s.state_of("one"), failed);
    }
}

// The same in one process, with sessions until the file is full beside it.
TEST_F(Intents, OnAFullFileStopAndExitStillWork) {
    registry_scene s;
    s.how.file_bytes = 128U << 10;
    s.how.intents_per_session = 100'000;
    s.bring("one", running);
    for (int i = 0;; ++i)
        if (const auto one = s.say("one", "intent-" + std::to_string(i)); !one) break;
    std::vector<std::string> ids;
    for (int i = 0;; ++i) {
        const auto id = "more-" + std::to_string(i);
        if (const auto more = s.create(id); !more) {
            EXPECT_EQ(code_of(more), "session_capacity") << why_of(more);
            break;
        }
        ids.push_back(id);
    }
    EXPECT_GT(ids.size(), 1U);
    EXPECT_EQ(code_of(s.say("one", "one-more")), "observation_intent_capacity");
    EXPECT_EQ(code_of(s.stop("one")), "");
    EXPECT_EQ(code_of(s.exit("one")), "");
    for (const auto& id : ids) s.bring(id, exited);
    EXPECT_EQ(code_of(s.create("after")), "");
}

} // namespace
