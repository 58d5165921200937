#include <glove/audit/rows.hpp>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using audit::action;
using audit::record;
using audit::row;
using audit::row_filter;
using audit::row_joiner;
using audit::row_state;
using audit::status;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

auto made(action what, status how, std::int64_t at, std::string call = "c", std::string run = "r")
    -> record {
    record out;
    out.data.action = what;
    out.data.status = how;
    out.data.timestamp_ns = at;
    out.data.run = std::move(run);
    out.data.call = std::move(call);
    return out;
}
auto launched(std::int64_t at, std::string run = "r") -> record {
    auto out = made(action::agent_launch, status::pending, at, "c", std::move(run));
    out.argv = {"npm", "run", "a b"};
    return out;
}
auto ended(std::int64_t at, std::string run = "r") -> record {
    auto out = made(action::agent_exit, status::ok, at, "c", std::move(run));
    out.cause = "exited";
    out.code = 0;
    out.data.latency_ns = 7;
    return out;
}
auto connecting(std::int64_t at, std::string call) -> record {
    auto out = made(action::egress, status::pending, at, std::move(call));
    out.data.tool = "a.example:443";
    return out;
}

TEST(Join, AnIntentAndItsOutcomeAreOneRow) {
    row_joiner joiner;
    joiner.add(launched(10), 0);
    joiner.add(connecting(20, "d"), 1);
    auto closed = made(action::egress, status::transport_error, 30, "d");
    closed.data.tool = "a.example:443";
    closed.data.error = "refused";
    closed.data.latency_ns = 10;
    closed.sent = 5;
    closed.received = 6;
    joiner.add(closed, 2);
    joiner.add(ended(40), 3);
    ASSERT_THAT(joiner.rows(), SizeIs(2));
    const auto& run = joiner.rows()[0];
    EXPECT_EQ(run.action, action::agent_launch);
    EXPECT_EQ(run.what, "npm run 'a b'");
    EXPECT_EQ(state_word(run), "ok");
    EXPECT_EQ(run.began_ns, 10);
    EXPECT_EQ(run.duration_ns, 7);
    EXPECT_THAT(run.detail, IsEmpty());
    EXPECT_THAT(run.numbers, ElementsAre(0, 3));
    const auto& connection = joiner.rows()[1];
    EXPECT_EQ(connection.what, "a.example:443");
    EXPECT_EQ(state_word(connection), "transport_error");
    EXPECT_EQ(connection.error, "refused");
    EXPECT_EQ(connection.sent, 5U);
    EXPECT_EQ(connection.received, 6U);
    EXPECT_THAT(connection.numbers, ElementsAre(1, 2));
}

TEST(Join, ARecordOfAnotherRunIsNotTheOutcome) {
    row_joiner joiner;
    joiner.add(launched(10, "a"), 0);
    joiner.add(ended(20, "b"), 1);
    ASSERT_THAT(joiner.rows(), SizeIs(2));
    EXPECT_EQ(joiner.rows()[0].state, row_state::open);
    EXPECT_EQ(joiner.rows()[1].action, action::agent_exit);
}

TEST(Join, AnOutcomeAloneIsARow) {
    row_joiner joiner;
    auto refused = made(action::egress, status::invalid_arguments, 10);
    refused.data.tool = "b.example:443";
    refused.data.error = "no rule allows it";
    const auto& at = joiner.add(refused, 0);
    EXPECT_EQ(state_word(at), "invalid_arguments");
    EXPECT_FALSE(at.duration_ns.has_value());
    EXPECT_FALSE(at.has_intent);
}

TEST(Join, ACallIsShownWithItsArguments) {
    const auto what = [](action which, std::optional<std::string> tool,
                         std::optional<std::string> arguments) {
        auto call = made(which, status::pending, 10);
        call.data.tool = std::move(tool);
        call.data.arguments = std::move(arguments);
        row_joiner joiner;
        joiner.add(call, 0);
        auto outcome = made(which, status::execution_error, 20);
        outcome.data.error = "tool error";
        const auto& at = joiner.add(outcome, 1);
        EXPECT_EQ(at.action, which);
        EXPECT_EQ(state_word(at), "execution_error");
        EXPECT_EQ(at.error, "tool error");
        return at.what;
    };
    EXPECT_EQ(what(action::call_tool, "up.tool", R"({"a":1})"), R"(up.tool {"a":1})");
    EXPECT_EQ(what(action::call_tool, "up.tool", "{}"), "up.tool");
    EXPECT_EQ(what(action::call_tool, "up.tool", {}), "up.tool");
    EXPECT_EQ(what(action::initialize, "up", {}), "up");
    EXPECT_EQ(what(action::initialize, "agent", R"({"revision":"x"})"), "agent");
    EXPECT_EQ(what(action::list_tools, "agent", {}), "agent");
    EXPECT_EQ(what(action::ssh_sign, "SHA256:x", R"({"bytes":1})"), "SHA256:x");
}

TEST(Join, ACallThatWasRefusedIsARowOfItsOwn) {
    row_joiner joiner;
    auto refused = made(action::call_tool, status::invalid_arguments, 10);
    refused.data.tool = "up.write";
    refused.data.error = "deny up.*";
    const auto& at = joiner.add(refused, 0);
    EXPECT_EQ(state_word(at), "invalid_arguments");
    EXPECT_EQ(at.what, "up.write");
    EXPECT_EQ(at.error, "deny up.*");
    EXPECT_TRUE((row_filter{
        .states = {}, .actions = {"call_tool"}, .since_ns = {}, .until_ns = {}, .run = {}}
                     .matches(at)));
}

TEST(Join, HowACommandEndedIsTold) {
    const auto detail = [](std::string cause, std::optional<std::int64_t> code,
                           std::optional<std::int64_t> signal) {
        auto outcome = ended(20);
        outcome.cause = std::move(cause);
        outcome.code = code;
        outcome.signal = signal;
        row_joiner joiner;
        joiner.add(launched(10), 0);
        return joiner.add(outcome, 1).detail;
    };
    EXPECT_EQ(detail("exited", 0, {}), "");
    EXPECT_EQ(detail("exited", 3, {}), "exit 3");
    EXPECT_EQ(detail("signaled", {}, 9), "signal 9");
    EXPECT_EQ(detail("wall_time", {}, 15), "wall_time");
    EXPECT_EQ(detail("terminated", 0, {}), "terminated");
}

TEST(Join, WhatHasNoOutcomeIsOpenUntilItsRunEnds) {
    row_joiner joiner;
    joiner.add(launched(10), 0);
    joiner.add(connecting(20, "d"), 1);
    joiner.settle(0);
    EXPECT_EQ(state_word(joiner.rows()[0]), "open");
    EXPECT_EQ(state_word(joiner.rows()[1]), "open");
    joiner.add(ended(30), 2);
    joiner.settle(0);
    EXPECT_EQ(state_word(joiner.rows()[0]), "ok");
    EXPECT_EQ(state_word(joiner.rows()[1]), "lost");
}

TEST(Join, WhatIsOlderThanTheMachinesStartIsLost) {
    row_joiner joiner;
    joiner.add(launched(10), 0);
    joiner.settle(10);
    EXPECT_EQ(joiner.rows()[0].state, row_state::open);
    joiner.settle(11);
    EXPECT_EQ(joiner.rows()[0].state, row_state::lost);
}

TEST(Join, WhatEndedIsForgottenAndWhatWaitsIsNot) {
    row_joiner joiner;
    joiner.add(launched(10, "a"), 0);
    joiner.add(launched(11, "b"), 1);
    joiner.add(ended(12, "a"), 2);
    joiner.forget_ended();
    ASSERT_THAT(joiner.rows(), SizeIs(1));
    const auto& done = joiner.add(ended(13, "b"), 3);
    EXPECT_EQ(done.action, action::agent_launch);
    EXPECT_EQ(done.began_ns, 11);
    joiner.forget_ended();
    EXPECT_THAT(joiner.rows(), IsEmpty());
}

TEST(CommandText, WordsAreQuotedAsAShellNeedsIt) {
    EXPECT_EQ(audit::command_text(std::vector<std::string>{"ls", "-la", "/a/b.c"}),
              "ls -la /a/b.c");
    EXPECT_EQ(audit::command_text(std::vector<std::string>{"sh", "-c", "a'b $c", ""}),
              "sh -c 'a'\\''b $c' ''");
}

TEST(Filter, EachPartIsNeeded) {
    row at;
    at.run = "abcdef";
    at.action = action::egress;
    at.state = row_state::ended;
    at.status = status::ok;
    at.began_ns = 100;
    const auto matches = [&](const row_filter& filter) { return filter.matches(at); };
    EXPECT_TRUE(matches({}));
    EXPECT_TRUE(matches({.states = {"open", "ok"},
                         .actions = {"egress"},
                         .since_ns = 100,
                         .until_ns = 100,
                         .run = "abc"}));
    EXPECT_FALSE(
        matches({.states = {"open"}, .actions = {}, .since_ns = {}, .until_ns = {}, .run = {}}));
    EXPECT_FALSE(matches(
        {.states = {}, .actions = {"agent_launch"}, .since_ns = {}, .until_ns = {}, .run = {}}));
    EXPECT_FALSE(
        matches({.states = {}, .actions = {}, .since_ns = 101, .until_ns = {}, .run = {}}));
    EXPECT_FALSE(matches({.states = {}, .actions = {}, .since_ns = {}, .until_ns = 99, .run = {}}));
    EXPECT_FALSE(
        matches({.states = {}, .actions = {}, .since_ns = {}, .until_ns = {}, .run = "b"}));
    at.state = row_state::open;
    EXPECT_TRUE(
        matches({.states = {"open"}, .actions = {}, .since_ns = {}, .until_ns = {}, .run = {}}));
}

} // namespace
