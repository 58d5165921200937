// Durability against a power cut is not tested here: whether a line was synced can only be seen in
// the system calls, which the fault lane watches.
#include <array>
#include <glove/audit/jsonl.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/json.hpp>
#include <gtest/gtest.h>
#include <map>
#include <support/folder.hpp>
#include <support/forked.hpp>

namespace {

using namespace glove;
using audit::action;
using audit::durability;
using audit::jsonl_sink;
using audit::status;
using test::folder;

auto full_event() -> audit::event {
    return {.action = action::agent_launch,
            .tool = "a.tool",
            .arguments = R"({"argv":["sh"]})",
            .status = status::pending,
            .error = "went \"wrong\"\n",
            .timestamp_ns = 1'700'000'000'123'456'789,
            .latency_ns = -1,
            .run = "r",
            .call = "c"};
}

auto small_event(std::string run = "r") -> audit::event {
    audit::event out;
    out.action = action::agent_exit;
    out.status = status::ok;
    out.run = std::move(run);
    out.call = "c";
    return out;
}

TEST(ToLine, EveryMemberStandsInItsPlace) {
    EXPECT_EQ(audit::to_line(full_event()),
              R"({"action":"agent_launch","tool":"a.tool","arguments":"{\"argv\":[\"sh\"]}",)"
              R"("status":"pending","error":"went \"wrong\"\n","timestamp_ns":1700000000123456789,)"
              R"("latency_ns":-1,"run":"r","call":"c"})"
              "\n");
}

TEST(ToLine, WhatIsEmptyIsLeftOut) {
    EXPECT_EQ(audit::to_line(small_event()),
              R"({"action":"agent_exit","status":"ok","timestamp_ns":0,"latency_ns":0,)"
              R"("run":"r","call":"c"})"
              "\n");
    auto empty_text = small_event();
    empty_text.error = "";
    EXPECT_NE(audit::to_line(empty_text).find(R"("error":"")"), std::string::npos);
}

TEST(ToLine, EveryActionAndEveryStatusHasItsWord) {
    const std::array actions{std::pair{action::list_tools, "list_tools"},
                             std::pair{action::call_tool, "call_tool"},
                             std::pair{action::initialize, "initialize"},
                             std::pair{action::agent_launch, "agent_launch"},
                             std::pair{action::agent_exit, "agent_exit"},
                             std::pair{action::egress, "egress"},
                             std::pair{action::ssh_sign, "ssh_sign"}};
    const std::array statuses{std::pair{status::pending, "pending"},
                              std::pair{status::ok, "ok"},
                              std::pair{status::tool_not_found, "tool_not_found"},
                              std::pair{status::invalid_arguments, "invalid_arguments"},
                              std::pair{status::execution_error, "execution_error"},
                              std::pair{status::transport_error, "transport_error"}};
    for (const auto& [what, word] : actions)
        for (const auto& [how, outcome] : statuses) {
            auto event = small_event();
            event.action = what;
            event.status = how;
            const auto parsed = wire::json::read(audit::to_line(event));
            ASSERT_TRUE(parsed.has_value());
            EXPECT_EQ(*parsed->find("action")->as_string(), word);
            EXPECT_EQ(*parsed->find("status")->as_string(), outcome);
        }
}

// What an agent can put into a line: it must never end it early.
TEST(ToLine, NoTextMakesASecondLine) {
    auto event = full_event();
    event.arguments = "a\nb\r\n\x01\xff\"\\";
    const auto line = audit::to_line(event);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_TRUE(wire::json::read(line).has_value());
}

TEST(JsonlSink, TheFileAndItsDirectoryAreForTheOwnerAlone) {
    const folder place;
    const auto path = place / "new/deep/run.jsonl";
    auto sink = jsonl_sink::open(path, durability::process);
    ASSERT_TRUE(sink.has_value());
    ASSERT_TRUE(sink->append(full_event()).has_value());
    ASSERT_TRUE(sink->append(small_event()).has_value());
    EXPECT_EQ(test::content_of(path), audit::to_line(full_event()) + audit::to_line(small_event()));
    struct ::stat found{};
    ASSERT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0600U);
    ASSERT_EQ(::stat((place / "new/deep").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0700U);
}

TEST(JsonlSink, LinesAreAddedToAnEarlierRecord) {
    const folder place;
    const auto path = place.file("log", "earlier\n", 0600);
    auto sink = jsonl_sink::open(path, durability::power);
    ASSERT_TRUE(sink.has_value());
    ASSERT_TRUE(sink->append(small_event()).has_value());
    EXPECT_EQ(test::content_of(path), "earlier\n" + audit::to_line(small_event()));
}

TEST(JsonlSink, AFileThatIsNotPrivateIsRefused) {
    const folder place;
    place.file("good", "", 0600);
    place.file("readable", "", 0644);
    place.link("link", "good");
    place.fifo("fifo");
    place.directory("directory");
    place.file("named", "", 0600);
    std::filesystem::create_hard_link(place / "named", place / "second");
    for (const auto* name : {"readable", "link", "fifo", "directory", "named"})
        EXPECT_FALSE(jsonl_sink::open(place / name, durability::process).has_value()) << name;
    EXPECT_TRUE(jsonl_sink::open(place / "good", durability::process).has_value());
}

TEST(JsonlSink, ARefusedPathTellsWhichStepRefused) {
    const folder place;
    place.file("file", "", 0600);
    EXPECT_EQ(jsonl_sink::open(place / "file/log", durability::process).error().os, ENOTDIR);
    place.file("readable", "", 0644);
    EXPECT_EQ(jsonl_sink::open(place / "readable", durability::process).error().step,
              "file.private");
}

TEST(JsonlSink, TwoProcessesOnOneFileWriteWholeLines) {
    constexpr int lines = 500;
    const folder place;
    const auto path = place / "log";
    const auto writer = [&](const std::string& run) {
        const auto child = ::fork();
        if (child != 0) return child;
        auto sink = jsonl_sink::open(path, durability::process);
        if (!sink) ::_exit(1);
        auto event = small_event(run);
        event.arguments = std::string(3000, run.front());
        for (event.timestamp_ns = 0; event.timestamp_ns < lines; ++event.timestamp_ns)
            if (!sink->append(event)) ::_exit(2);
        ::_exit(0);
    };
    for (const auto child : {writer("a"), writer("b")}) {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
    }
    std::map<std::string, std::int64_t> next; // of each run, in order and without a gap
    const auto text = test::content_of(path);
    for (std::string_view rest{text}; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() + 1);
        const auto parsed = wire::json::read(line);
        ASSERT_TRUE(parsed.has_value()) << line;
        const auto& run = *parsed->find("run")->as_string();
        EXPECT_EQ(parsed->find("timestamp_ns")->as_signed(), next[run]++);
    }
    EXPECT_EQ(next["a"], lines);
    EXPECT_EQ(next["b"], lines);
}

TEST(JsonlSink, ALineThatDoesNotFitIsAnErrorAndLeavesNoHalfOfItself) {
    const folder place;
    const auto path = place.file("log", "earlier\n", 0600);
    const auto line = audit::to_line(small_event()).size();
    const auto append = [&](std::size_t room) {
        return test::said_by([&] {
            test::forbid_growth(room);
            auto sink = jsonl_sink::open(path, durability::process);
            if (!sink) return std::string{"not opened"};
            const auto done = sink->append(small_event());
            return done ? std::string{"appended"} : std::string{done.error().step};
        });
    };
    EXPECT_EQ(append(8 + line - 1), "file.write");
    EXPECT_EQ(test::content_of(path), "earlier\n");
    EXPECT_EQ(append(8 + line), "appended");
    EXPECT_EQ(test::content_of(path), "earlier\n" + audit::to_line(small_event()));
}

} // namespace
