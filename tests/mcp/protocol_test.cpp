#include <glove/mcp/protocol.hpp>
#include <gmock/gmock.h>
#include <set>

namespace {

using namespace glove::mcp;

auto treated(std::string_view name, sender from, shape of) -> std::string {
    const auto* const row = find_method(name, from, of);
    if (row == nullptr) return "unknown";
    return std::string{to_string(row->treatment)} + " " + std::string{to_string(row->feature)};
}

TEST(Revisions, ARevisionThatIsSpokenIsAnswered) {
    for (const auto* revision : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
        EXPECT_EQ(negotiated(revision), revision);
        EXPECT_TRUE(speaks(revision));
    }
}

TEST(Revisions, AnyOtherGetsTheLatest) {
    for (const auto* revision : {"1999-01-01", "2026-07-28", "2024-10-07", "", "2025-11-25 "}) {
        EXPECT_EQ(negotiated(revision), "2025-11-25");
        EXPECT_FALSE(speaks(revision));
    }
}

TEST(Methods, EachRowIsThereOnceAndIsFound) {
    std::set<std::tuple<std::string_view, sender, shape>> rows;
    for (const auto& row : methods()) {
        EXPECT_TRUE(rows.emplace(row.name, row.from, row.shape).second) << row.name;
        EXPECT_EQ(find_method(row.name, row.from, row.shape), &row);
        EXPECT_EQ(row.name.starts_with("notifications/"), row.shape == shape::notification);
        // What is relayed can be asked for.
        EXPECT_TRUE(row.treatment != treatment::relay ||
                    relayable(to_string(row.feature)) == row.feature)
            << row.name;
        EXPECT_TRUE(row.feature != feature::tasks || row.treatment == treatment::refuse);
    }
    EXPECT_EQ(rows.size(), 40U);
}

TEST(Methods, OfTheAgent) {
    EXPECT_EQ(treated("tools/call", sender::agent, shape::request), "call tools");
    EXPECT_EQ(treated("initialize", sender::agent, shape::request), "own base");
    EXPECT_EQ(treated("server/discover", sender::agent, shape::request), "refuse base");
    EXPECT_EQ(treated("resources/read", sender::agent, shape::request), "relay resources");
    EXPECT_EQ(treated("tasks/result", sender::agent, shape::request), "refuse tasks");
    EXPECT_EQ(treated("notifications/roots/list_changed", sender::agent, shape::notification),
              "refuse roots");
}

TEST(Methods, OfTheUpstream) {
    EXPECT_EQ(treated("ping", sender::upstream, shape::request), "own base");
    EXPECT_EQ(treated("roots/list", sender::upstream, shape::request), "own roots");
    EXPECT_EQ(treated("sampling/createMessage", sender::upstream, shape::request),
              "relay sampling");
    EXPECT_EQ(treated("notifications/message", sender::upstream, shape::notification),
              "relay logging");
}

TEST(Methods, AreExactAndOfOneSideAndShape) {
    for (const auto* name : {"", "Tools/call", "tools/call ", "tools/Call", "tools//call", "tools",
                             "subscriptions/listen", "tasks/update"})
        EXPECT_EQ(treated(name, sender::agent, shape::request), "unknown") << name;
    EXPECT_EQ(treated("tools/call", sender::agent, shape::notification), "unknown");
    EXPECT_EQ(treated("tools/call", sender::upstream, shape::request), "unknown");
    EXPECT_EQ(treated("roots/list", sender::agent, shape::request), "unknown");
    EXPECT_EQ(treated("notifications/initialized", sender::agent, shape::request), "unknown");
    EXPECT_EQ(treated("notifications/initialized", sender::upstream, shape::notification),
              "unknown");
}

TEST(Features, WordsOfRelay) {
    for (const auto* word :
         {"resources", "prompts", "completion", "logging", "sampling", "elicitation"})
        EXPECT_EQ(to_string(relayable(word).value()), word);
    for (const auto* word : {"", "base", "tools", "roots", "tasks", "Resources", "resource"})
        EXPECT_FALSE(relayable(word)) << word;
}

TEST(Features, ASetHoldsWhatWasAdded) {
    feature_set set;
    EXPECT_FALSE(set.has(feature::base));
    set.add(feature::sampling);
    set.add(feature::base);
    EXPECT_TRUE(set.has(feature::sampling));
    EXPECT_TRUE(set.has(feature::base));
    EXPECT_FALSE(set.has(feature::elicitation));
}

} // namespace
