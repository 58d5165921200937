#include <glove/audit/jsonl.hpp>
#include <glove/audit/names.hpp>
#include <glove/audit/reader.hpp>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using audit::action;
using audit::line_cutter;
using audit::read_record;
using audit::status;
using testing::ElementsAre;
using testing::HasSubstr;

auto whole(const audit::event& event) -> std::string {
    auto line = audit::to_line(event);
    line.pop_back();
    return line;
}

auto intent() -> audit::event {
    return {.action = action::agent_launch,
            .tool = {},
            .arguments = R"({"argv":["sh","-c","echo \"a\nb\""]})",
            .status = status::pending,
            .error = {},
            .timestamp_ns = 1'700'000'000'123'456'789,
            .latency_ns = 0,
            .run = "r",
            .call = "c"};
}

TEST(ReadRecord, WhatIsWrittenIsRead) {
    for (std::size_t a = 0; a < audit::action_names.size(); ++a)
        for (std::size_t s = 0; s < audit::status_names.size(); ++s) {
            auto event = intent();
            event.action = static_cast<action>(a);
            event.status = static_cast<status>(s);
            event.tool = "a.example:443";
            event.error = "went \"wrong\"\n\x1b[2J";
            event.latency_ns = -5;
            const auto got = read_record(whole(event));
            ASSERT_TRUE(got.has_value()) << got.error().detail;
            EXPECT_EQ(got->data.action, event.action);
            EXPECT_EQ(got->data.status, event.status);
            EXPECT_EQ(got->data.tool, event.tool);
            EXPECT_EQ(got->data.error, event.error);
            EXPECT_EQ(got->data.timestamp_ns, event.timestamp_ns);
            EXPECT_EQ(got->data.latency_ns, event.latency_ns);
            EXPECT_EQ(got->data.run, "r");
            EXPECT_EQ(got->data.call, "c");
        }
}

TEST(ReadRecord, TheArgumentsAreLookedInto) {
    EXPECT_THAT(read_record(whole(intent()))->argv, ElementsAre("sh", "-c", "echo \"a\nb\""));
    auto event = intent();
    event.action = action::agent_exit;
    event.arguments = R"({"cause":"signaled","signal":9})";
    auto got = read_record(whole(event));
    EXPECT_EQ(got->cause, "signaled");
    EXPECT_EQ(got->signal, 9);
    EXPECT_FALSE(got->code.has_value());
    event.action = action::egress;
    event.arguments = R"({"sent":18446744073709551615,"received":0})";
    got = read_record(whole(event));
    EXPECT_EQ(got->sent, UINT64_MAX);
    EXPECT_EQ(got->received, 0U);
    event.arguments = R"({"argv":{"a":1},"cause":7,"code":"x","sent":-1,"more":1.5})";
    for (std::size_t a = 0; a < audit::action_names.size(); ++a) {
        event.action = static_cast<action>(a);
        got = read_record(whole(event));
        ASSERT_TRUE(got.has_value());
        EXPECT_TRUE(got->argv.empty() && got->cause.empty() && !got->code && !got->sent);
    }
}

TEST(ReadRecord, TheArgumentsOfACallAreNotTakenForGlovesWords) {
    auto event = intent();
    event.tool = "up.tool";
    event.arguments =
        R"({"argv":["x"],"cause":"exited","code":3,"signal":9,"sent":1,"received":2})";
    for (const auto which : {action::call_tool, action::list_tools, action::initialize}) {
        event.action = which;
        const auto got = read_record(whole(event));
        ASSERT_TRUE(got.has_value());
        EXPECT_EQ(got->data.arguments, event.arguments);
        EXPECT_TRUE(got->argv.empty() && got->cause.empty() && !got->code && !got->signal &&
                    !got->sent && !got->received);
    }
}

// What a message may hold can be read back from the record.
TEST(ReadRecord, ArgumentsOfACallMayBeDeepAndMany) {
    auto event = intent();
    event.action = action::call_tool;
    std::string deep = "{\"a\":" + std::string(63, '[') + std::string(63, ']') + "}";
    std::string many = "{\"n\":" + std::string(400, '7');
    for (int i = 0; i < 5000; ++i) many += ",\"m" + std::to_string(i) + "\":-1.5e300";
    for (const auto& text : {deep, many + "}", std::string{R"({"bytes":70000,"sha256":"ab"})"}}) {
        event.arguments = text;
        const auto got = read_record(whole(event));
        ASSERT_TRUE(got.has_value()) << got.error().detail;
        EXPECT_EQ(got->data.arguments, text);
    }
    event.arguments = "{\"a\":" + std::string(64, '[') + std::string(64, ']') + "}";
    EXPECT_FALSE(read_record(whole(event)).has_value());
}

TEST(ReadRecord, WhatToLineCannotHaveWrittenIsRefused) {
    const std::string good = whole(intent());
    ASSERT_TRUE(read_record(good).has_value());
    const auto with = [&](const std::string& old, const std::string& now) {
        auto out = good;
        const auto at = out.find(old);
        EXPECT_NE(at, std::string::npos) << old;
        return out.replace(at, old.size(), now);
    };
    for (const auto& line :
         {std::string{}, std::string{"{}"}, std::string{"[]"}, std::string{"null"}, good + "x",
          good.substr(0, good.size() - 1), with("agent_launch", "agent_lunch"),
          with("pending", "Pending"), with("\"run\":\"r\"", "\"run\":7"),
          with(",\"run\":\"r\"", ""), with("\"run\":\"r\"", "\"run\":\"r\",\"run\":\"s\""),
          with("\"run\":\"r\"", "\"run\":\"r\",\"more\":1"),
          with("\"latency_ns\":0", "\"latency_ns\":0.5"),
          with("\"latency_ns\":0", "\"latency_ns\":\"0\""),
          with("1700000000123456789", "99999999999999999999"), with(R"({\"argv\")", R"({\"argv)")})
        EXPECT_FALSE(read_record(line).has_value()) << line;
}

// --- lines

struct cut_line {
    std::string text;
    std::uint64_t number;
    bool too_long;
    auto operator==(const cut_line&) const -> bool = default;
};

auto cut(line_cutter& cutter, std::string_view bytes) -> std::vector<cut_line> {
    std::vector<cut_line> out;
    cutter.feed(bytes, [&](const line_cutter::line& line) {
        out.push_back({std::string{line.text}, line.number, line.too_long});
    });
    return out;
}

TEST(LineCutter, PiecesMakeTheSameLinesAsTheWhole) {
    const std::string text = "one\n\nthree\n";
    const std::vector<cut_line> wanted{{"one", 1, false}, {"three", 3, false}};
    for (std::size_t size = 1; size <= text.size(); ++size) {
        line_cutter cutter;
        std::vector<cut_line> got;
        for (std::size_t at = 0; at < text.size(); at += size)
            for (auto& line : cut(cutter, std::string_view{text}.substr(at, size)))
                got.push_back(std::move(line));
        EXPECT_EQ(got, wanted) << size;
        EXPECT_FALSE(cutter.is_torn());
    }
}

// What is left of a line that could not be written whole.
TEST(LineCutter, ALineOfSpacesIsCountedAndNotTaken) {
    line_cutter cutter;
    EXPECT_THAT(cut(cutter, "one\n  "), ElementsAre(cut_line{"one", 1, false}));
    EXPECT_THAT(cut(cutter, " \n\n \t\nfive\n"),
                ElementsAre(cut_line{" \t", 4, false}, cut_line{"five", 5, false}));
}

TEST(LineCutter, ALineWithoutAnEndWaitsForIt) {
    line_cutter cutter;
    EXPECT_TRUE(cut(cutter, "a").empty());
    EXPECT_TRUE(cutter.is_torn());
    EXPECT_EQ(cutter.next_number(), 1U);
    EXPECT_THAT(cut(cutter, "b\n"), ElementsAre(cut_line{"ab", 1, false}));
    EXPECT_FALSE(cutter.is_torn());
    EXPECT_TRUE(cut(cutter, "torn").empty());
    cutter.drop_torn();
    EXPECT_THAT(cut(cutter, "new\n"), ElementsAre(cut_line{"new", 2, false}));
}

TEST(LineCutter, ALineOfExactlyTheBoundIsKeptAndOneMoreIsNot) {
    const std::string longest(audit::longest_line, 'x');
    line_cutter cutter;
    auto got = cut(cutter, longest + "\n");
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].text.size(), audit::longest_line);
    EXPECT_TRUE(cut(cutter, longest).empty());
    EXPECT_TRUE(cut(cutter, "xxx").empty());
    EXPECT_TRUE(cutter.is_torn());
    EXPECT_THAT(cut(cutter, "x\nnext\n"),
                ElementsAre(cut_line{"", 2, true}, cut_line{"next", 3, false}));
}

} // namespace
