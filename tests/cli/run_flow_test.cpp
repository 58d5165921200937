// Whole runs of `glove run` with a mediator that stands in: tests/run/mediator_stand_in.cpp.
#include <filesystem>
#include <fstream>
#include <glove/sys/files.hpp>
#include <glove/wire/json.hpp>
#include <gmock/gmock.h>
#include <support/program.hpp>

namespace {

using namespace glove;
using test::ran;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class RunFlow : public testing::Test {
protected:
    RunFlow() {
        namespace fs = std::filesystem;
        folder_.directory("bin");
        folder_.directory("home");
        folder_.directory("desk");
        const fs::path glove{std::getenv("GLOVE_BIN")};
        const auto tests = fs::read_symlink("/proc/self/exe").parent_path();
        fs::copy_file(glove, folder_ / "bin/glove");
        fs::copy_file(glove.parent_path() / "glove-mcp", folder_ / "bin/glove-mcp");
        fs::copy_file(tests / "mediator_stand_in", folder_ / "bin/glove-mediator");
    }

    auto run(const char* how, std::vector<std::string> words, std::vector<std::string> before = {})
        -> ran {
        std::vector<std::string> all{std::move(before)};
        all.insert(all.end(),
                   {folder_ / "bin/glove", "run", "--upstream", "demo=true", "--allow", "demo.*",
                    "--audit-log", folder_ / "home/log", "--report", folder_ / "home/report"});
        all.insert(all.end(), words.begin(), words.end());
        return test::run_program(
            all,
            {{"HOME", folder_ / "home"}, {"STAND_IN", how}, {"STAND_IN_FOLDER", folder_ / "home"}},
            folder_ / "desk");
    }
    auto left(const char* name) -> std::string {
        return sys::read_file(folder_ / ("home/" + std::string{name}), 1 << 20).value_or("nothing");
    }
    auto report() -> wire::json::value { return wire::json::read(left("report")).value(); }
    static auto text(const wire::json::value& of, std::initializer_list<const char*> path)
        -> std::string {
        const auto* at = &of;
        for (const auto* name : path) {
            at = at->find(name);
            if (at == nullptr) return "nothing";
        }
        return at->as_string() == nullptr ? "no text" : std::string{*at->as_string()};
    }
    test::folder folder_;
};

TEST_F(RunFlow, TheCommandsStatusIsThatOfTheRun) {
    const auto got = run("ready", {"--", "sh", "-c", "echo out; exit 7"});
    EXPECT_EQ(got.status, 7) << got.err;
    EXPECT_EQ(got.out, "out\n");
    EXPECT_EQ(text(report(), {"exit", "cause"}), "exited");
    EXPECT_EQ(text(report(), {"mediation", "transport"}), "bridge");
}

TEST_F(RunFlow, TheMediatorSharesRecordAndRunWithTheCommand) {
    EXPECT_EQ(run("ready", {"--audit-sync", "--", "true"}).status, 0);
    const auto told = wire::json::read(left("told")).value();
    EXPECT_EQ(text(told, {"task"}), "bridge");
    EXPECT_EQ(text(told, {"run"}), text(report(), {"run"}));
    EXPECT_EQ(text(told, {"audit_log"}), folder_ / "home/log");
    EXPECT_EQ(text(told, {"directory"}), folder_ / "desk");
    EXPECT_EQ(told.find("audit_sync")->as_bool(), true);
    EXPECT_THAT(left("log"), HasSubstr("\"agent_exit\""));
    EXPECT_EQ(left("leads"), "its own session");
}

TEST_F(RunFlow, TheMediatorGetsTheSocketInside) {
    EXPECT_EQ(run("ready", {"--", "true"}).status, 0);
    EXPECT_EQ(left("heard"), "l+fd ");
    EXPECT_EQ(run("ready", {"--agent-transport", "stdio", "--", "true"}).status, 0);
    EXPECT_EQ(left("heard"), "");
}

TEST_F(RunFlow, WhatStandsInsideIsReadOnlyAndMayBeExecuted) {
    const auto got =
        run("ready", {"--", "sh", "-c",
                      "cat $GLOVE_MCP_CONFIG; test -x /run/glove/bin/glove-mcp && echo may;"
                      "test -S /run/glove/mcp.sock && echo socket;"
                      "echo x > /run/glove/mcp.json || echo kept;"
                      "rm -f /run/glove/mcp.sock || echo kept;"
                      "mv /run/glove /run/other || echo kept;"
                      "echo x > /run/glove/bin/glove-mcp || echo kept;"
                      "cp /bin/true /run/glove/bin/other || echo kept;"
                      "timeout 1 /run/glove/bin/glove-mcp < /dev/null; echo ran $?"});
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_THAT(
        got.out,
        HasSubstr(R"({"mcpServers":{"glove":{"command":"/run/glove/bin/glove-mcp","args":[]}}})"
                  "\nmay\nsocket\nkept\nkept\nkept\nkept\nkept\n"));
    EXPECT_THAT(got.out, HasSubstr("ran 124\n")); // nobody answers it here
}

TEST_F(RunFlow, WithoutServersTheCommandIsNotStarted) {
    for (const auto* how : {"fail", "quit", "killed"}) {
        const auto got = run(how, {"--workspace", ".", "--", "touch", "made"});
        EXPECT_EQ(got.status, 125) << how;
        EXPECT_THAT(got.out, IsEmpty());
        EXPECT_THAT(got.err, HasSubstr("error[io]: mediation.start: "));
        EXPECT_FALSE(std::filesystem::exists(folder_ / "desk/made"));
        EXPECT_EQ(text(report(), {"error", "step"}), "mediation.start");
    }
    const auto got = run("fail", {"--", "true"});
    EXPECT_THAT(got.err, HasSubstr("the server demo did not start\n"));
    EXPECT_THAT(got.err, HasSubstr("glove: its last words\n"));
}

TEST_F(RunFlow, WhatTheMediatorNotesIsTold) {
    const auto got = run("notes", {"--", "true"});
    EXPECT_EQ(got.status, 0);
    EXPECT_THAT(got.err, HasSubstr("glove: the first\nglove: the second\n"));
}

TEST_F(RunFlow, TheCommandDoesNotOutliveTheMediation) {
    for (const auto* how : {"ended", "gone", "wrong"}) {
        const auto got = run(how, {"--", "sleep", "60"});
        EXPECT_EQ(got.status, 125) << how;
        EXPECT_THAT(got.err, HasSubstr("the mediation of tools ended, so the command is ended: "));
        EXPECT_EQ(text(report(), {"exit", "cause"}), "mediation");
        EXPECT_THAT(left("log"), HasSubstr(R"(\"cause\":\"mediation\")"));
    }
    EXPECT_THAT(run("ended", {"--", "sleep", "60"}).err,
                HasSubstr("the record cannot be written\n"));
    EXPECT_EQ(text(report(), {"mediation_end"}), "the record cannot be written");
}

TEST_F(RunFlow, ACommandThatIgnoresTheEndIsKilledAndTheStatusIsNotItsOwn) {
    const auto got = run("ended", {"--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done"});
    EXPECT_EQ(got.status, 125);
    const auto zero =
        run("ended", {"--", "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"});
    EXPECT_EQ(zero.status, 125);
}

TEST_F(RunFlow, WhileServersStartARequestToEndIsHeard) {
    for (const auto& [name, status] : {std::pair{"INT", 130}, std::pair{"TERM", 143}}) {
        const auto got = run("slow", {"--workspace", ".", "--", "touch", "made"},
                             {"timeout", "--foreground", "--preserve-status", "-s", name, "1"});
        EXPECT_EQ(got.status, status) << got.err;
        EXPECT_FALSE(std::filesystem::exists(folder_ / "desk/made"));
        EXPECT_EQ(text(report(), {"exit", "cause"}), "terminated");
    }
}

TEST_F(RunFlow, TheClockOfTheRunBeginsWithTheCommand) {
    const auto got = run("ready", {"--wall-time", "1s", "--", "sleep", "60"});
    EXPECT_EQ(got.status, 143);
    EXPECT_EQ(text(report(), {"exit", "cause"}), "wall_time");
}

TEST_F(RunFlow, OnStreamsTheCommandsOutputIsNotTheCallers) {
    const auto got = run(
        "ready", {"--agent-transport", "stdio", "--", "sh", "-c", "echo inner; echo words >&2"});
    EXPECT_EQ(got.status, 0);
    EXPECT_THAT(got.out, IsEmpty());
    EXPECT_THAT(got.err, HasSubstr("words\n"));
    EXPECT_EQ(text(wire::json::read(left("told")).value(), {"task"}), "serve");
    EXPECT_EQ(run("ready", {"--net", "sealed", "--", "true"}).status, 0);
}

TEST_F(RunFlow, APartThatIsMissingIsNamed) {
    std::filesystem::remove(folder_ / "bin/glove-mcp");
    const auto got = run("ready", {"--", "true"});
    EXPECT_EQ(got.status, 125);
    EXPECT_THAT(got.err, HasSubstr("glove-mcp"));
    std::filesystem::remove(folder_ / "bin/glove-mediator");
    EXPECT_THAT(run("ready", {"--agent-transport", "stdio", "--", "true"}).err,
                HasSubstr("glove-mediator"));
}

} // namespace
