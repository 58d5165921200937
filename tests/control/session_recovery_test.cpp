// After a restart: receipts, processes that are gone, killed or unknown, and the disk in between.
#include "session_scene.hpp"
#include <gmock/gmock.h>
#include <map>

namespace {

using namespace glove;
using namespace glove::test;
using testing::ElementsAre;
using testing::IsEmpty;

class some_observer final : public process_observer {
public:
    auto observe(const session_record& of) -> observed_process override {
        seen.push_back(of.session_id);
        const auto at = answers.find(of.session_id);
        return at == answers.end() ? observed_process::gone : at->second;
    }
    std::map<std::string, observed_process> answers;
    std::vector<std::string> seen;
};

class Recovery : public testing::Test {
protected:
    registry_scene scene;
    some_observer observer;
    std::map<std::string, terminal_envelope> receipts;

    auto finder() -> receipt_finder {
        return [this](const session_record& of) -> std::optional<terminal_envelope> {
            const auto at = receipts.find(of.session_id);
            return at == receipts.end() ? std::nullopt : std::optional{at->second};
        };
    }
    auto recover() { return scene->recover(finder(), observer); }
    void restart() { ASSERT_TRUE(scene.open()) << scene.why.step << ": " << scene.why.detail; }
    auto code(const std::string& id) { return scene->record(id)->failure_code; }
};

// A receipt that cannot be read is not one that is absent.
TEST_F(Recovery, EndsWhenAReceiptCannotBeReadAndGoesOnLater) {
    scene.bring("one", running);
    receipts["one"] = receipt_at(1000, 1000);
    restart();
    const auto broken = [](const session_record&) -> result<std::optional<terminal_envelope>> {
        return fail(errc::io, "test.receipts");
    };
    EXPECT_EQ(scene->recover(broken, observer).error().step, "test.receipts");
    EXPECT_EQ(scene.state_of("one"), running);
    EXPECT_THAT(observer.seen, IsEmpty());
    EXPECT_THAT(recover().value(), IsEmpty());
    EXPECT_EQ(scene.state_of("one"), exited);
}

TEST_F(Recovery, EndsWhatWasLeft) {
    for (const auto is : {created, preparing, starting, running, stopping, exited, failed})
        scene.bring(std::string{to_string(is)}, is);
    scene.bring("killed", running);
    observer.answers["killed"] = observed_process::ended;
    restart();
    EXPECT_THAT(recover().value(), IsEmpty());
    EXPECT_EQ(scene.state_of("created"), created);
    EXPECT_EQ(scene.state_of("preparing"), preparing);
    EXPECT_EQ(code("starting"), "recovered_without_process");
    EXPECT_EQ(code("running"), "recovered_without_process");
    EXPECT_EQ(code("stopping"), "recovered_without_process");
    EXPECT_EQ(code("killed"), "recovered_terminated");
    EXPECT_EQ(code("failed"), "supervisor_error");
    // Nothing of it runs before its process is on record.
    EXPECT_THAT(observer.seen, ElementsAre("killed", "running", "stopping"));
    const auto last = scene->record("running").value();
    const auto text = "running:approval-1:" + digits('e') + ":1000";
    EXPECT_EQ(last.idempotency_key, "recovery-fail-" + wire::to_hex(*wire::sha256(text)));
    const auto bytes = scene.disk.content();
    EXPECT_THAT(recover().value(), IsEmpty()); // once
    restart();
    EXPECT_THAT(recover().value(), IsEmpty());
    EXPECT_EQ(scene.disk.content(), bytes);
    // What is new is of this process.
    scene.bring("new", running);
    EXPECT_THAT(recover().value(), IsEmpty());
    EXPECT_EQ(scene.state_of("new"), running);
    scene.bring("preparing", exited);
}

TEST_F(Recovery, AReceiptThatIsThereIsTheEnd) {
    scene.bring("one", running);
    scene.bring("two", stopping);
    scene.bring("three", starting);
    receipts["one"] = receipts["three"] = receipt_at(1000, 1500);
    receipts["one"].sequence = 7;
    receipts["two"] = receipt_at(1000, 1600);
    receipts["two"].sequence = 8;
    receipts["two"].termination_cause = "signaled";
    receipts["two"].exit_code.reset();
    restart();
    EXPECT_THAT(recover().value(), IsEmpty());
    EXPECT_EQ(scene->record("one")->idempotency_key, "recovery-exit-7");
    EXPECT_EQ(scene->record("two")->idempotency_key, "recovery-exit-8");
    EXPECT_EQ(scene.state_of("one"), exited);
    EXPECT_EQ(scene.state_of("two"), exited);
    EXPECT_EQ(scene.state_of("three"), failed);
    EXPECT_THAT(observer.seen, IsEmpty());
}

TEST_F(Recovery, AReceiptThatDoesNotFitIsNone) {
    scene.bring("one", running);
    receipts["one"] = receipt_at(1001, 1500); // it ran from 1000 on
    restart();
    EXPECT_THAT(recover().value(), IsEmpty());
    EXPECT_EQ(code("one"), "recovered_without_process");
}

TEST_F(Recovery, OneThatCannotBeToldIsLeftAndTheOthersGoOn) {
    scene.bring("a", running);
    scene.bring("b", running);
    scene.bring("c", stopping);
    const auto intent = scene.say("b", "a").value();
    observer.answers["b"] = observed_process::unknown;
    restart();
    EXPECT_EQ(code_of(scene.stop("b")), "session_reconciliation_failed"); // nobody looked yet
    EXPECT_THAT(recover().value(), ElementsAre("b"));
    EXPECT_EQ(scene.state_of("a"), failed);
    EXPECT_EQ(scene.state_of("c"), failed);
    EXPECT_EQ(scene.state_of("b"), running);
    EXPECT_EQ(code_of(scene.stop("b")), "session_reconciliation_failed");
    EXPECT_EQ(code_of(scene.exit("b")), "session_reconciliation_failed");
    EXPECT_EQ(code_of(scene.fail("b", "supervisor_error")), "session_reconciliation_failed");
    EXPECT_EQ(code_of(scene.say("b", "b")), "invalid_observation_intent_state");
    EXPECT_EQ(scene.run("b")->state, running); // a replay says what is on record
    EXPECT_EQ(code_of(scene.decide(intent)), "");
    scene.bring("d", running); // others may start
    EXPECT_THAT(recover().value(), ElementsAre("b"));
    observer.answers.clear();
    EXPECT_THAT(recover().value(), IsEmpty());
    EXPECT_EQ(code("b"), "recovered_without_process");
    EXPECT_EQ(scene.state_of("d"), running);
}

TEST_F(Recovery, AKeyThatIsTakenLeavesTheSessionAsItIs) {
    scene.bring("one", running);
    receipts["one"] = receipt_at(1000, 1500);
    ASSERT_TRUE(
        scene->create("recovery-exit-1", {"two", digits('c'), plan_text()}, judge_all).has_value());
    restart();
    // Whatever its process is: the receipt says how it ended, and nothing may say otherwise.
    for (const auto was : {observed_process::unknown, observed_process::gone}) {
        observer.answers["one"] = was;
        EXPECT_THAT(recover().value(), ElementsAre("one"));
        EXPECT_EQ(scene.state_of("one"), running);
    }
    EXPECT_THAT(observer.seen, IsEmpty());
    receipts["one"].sequence = 2; // whose key is free
    EXPECT_THAT(recover().value(), IsEmpty());
    EXPECT_EQ(scene.state_of("one"), exited);
}

TEST_F(Recovery, ADiskThatFailsIsSaid) {
    for (const char* id : {"a", "b", "c"}) scene.bring(id, running);
    restart();
    scene.disk.plan({.at = 6, .does = effect::part}); // of the second record
    const auto broken = recover();
    ASSERT_FALSE(broken.has_value());
    EXPECT_EQ(broken.error().step, "disk.fault");
    EXPECT_EQ(scene.state_of("a"), failed);
    EXPECT_EQ(scene.state_of("b"), running);
    scene.disk.plan({});
    restart();
    EXPECT_THAT(recover().value(), IsEmpty());
    for (const char* id : {"a", "b", "c"}) EXPECT_EQ(scene.state_of(id), failed);
}

TEST_F(Recovery, AManagedSessionIsObservedToo) {
    scene.bring("one", preparing);
    ASSERT_TRUE(scene.start("one", managed_binding()).has_value());
    ASSERT_TRUE(scene.run("one", {.schema_version = 0, .pid = 0}).has_value());
    restart();
    EXPECT_THAT(recover().value(), IsEmpty());
    EXPECT_EQ(scene->record("one")->operation, "mark_managed_failed");
}

} // namespace
