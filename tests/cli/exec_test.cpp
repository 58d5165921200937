#include <filesystem>
#include <glove/sys/files.hpp>
#include <glove/wire/json.hpp>
#include <gmock/gmock.h>
#include <support/program.hpp>

namespace {

using namespace glove;
using test::glove_program;
using test::ran;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

void expect_usage_error(const ran& got, const std::string& detail) {
    EXPECT_EQ(got.status, 2) << got.err;
    EXPECT_THAT(got.out, IsEmpty());
    EXPECT_THAT(got.err, StartsWith("error[invalid_input]: "));
    EXPECT_THAT(got.err, HasSubstr(detail));
}

// What the plan says about an option; nothing runs.
auto explained(const glove_program& glove, std::vector<std::string> options)
    -> std::optional<wire::json::value> {
    options.insert(options.begin(), "exec");
    for (const auto* word : {"--explain", "--json", "--", "true"}) options.emplace_back(word);
    const auto got = glove(options);
    if (got.status != 0) return std::nullopt;
    auto parsed = wire::json::read(got.out);
    EXPECT_TRUE(parsed.has_value()) << got.out;
    return parsed ? std::optional{*std::move(parsed)} : std::nullopt;
}

auto limit(const glove_program& glove, std::vector<std::string> options, std::string_view name)
    -> std::optional<std::uint64_t> {
    const auto plan = explained(glove, std::move(options));
    if (!plan) return std::nullopt;
    const auto* const found = plan->find("limits")->find(name);
    return found == nullptr ? std::nullopt : found->as_unsigned();
}

struct number_row {
    const char* text;
    std::uint64_t value;
};

TEST(ExecOptions, ADurationIsANumberWithAUnit) {
    const glove_program glove;
    for (const auto& [text, value] :
         {number_row{"90", 90'000}, number_row{"90s", 90'000}, number_row{"250ms", 250},
          number_row{"10m", 600'000}, number_row{"2h", 7'200'000}, number_row{"007s", 7'000},
          number_row{"878400h", 3'162'240'000'000}})
        EXPECT_EQ(limit(glove, {"--wall-time", text}, "wall_time_ms"), value) << text;
}

TEST(ExecOptions, WhatIsNoDurationIsRefused) {
    const glove_program glove;
    for (const auto* text :
         {"", "0", "0ms", "s", "-1", "+1", "1.5h", "1 s", " 1", "1S", "10min", "1d", "1h30m", "1e3",
          "0x10", "999999999h", "878401h", "99999999999999999999"})
        expect_usage_error(glove({"exec", "--wall-time", text, "--", "true"}), "--wall-time");
}

TEST(ExecOptions, ASizeIsANumberWithAUnit) {
    const glove_program glove;
    for (const auto& [text, value] :
         {number_row{"0", 0}, number_row{"512", 512}, number_row{"1b", 1},
          number_row{"64KB", 65'536}, number_row{"64k", 65'536}, number_row{"10MB", 10'485'760},
          number_row{"10MiB", 10'485'760}, number_row{"2gb", 2'147'483'648},
          number_row{"18446744073709551615", 18'446'744'073'709'551'615U}})
        EXPECT_EQ(limit(glove, {"--output-bytes", text}, "output_bytes"), value) << text;
    EXPECT_EQ(limit(glove, {"--scratch-bytes", "64MB"}, "scratch_bytes"), 64U << 20U);
    EXPECT_EQ(limit(glove, {"--memory", "64MB"}, "memory_bytes"), 64U << 20U);
    EXPECT_EQ(limit(glove, {"--disk", "64MB"}, "disk_bytes"), 64U << 20U);
}

TEST(ExecOptions, ProcessesAndProcessorsAreNumbers) {
    const glove_program glove;
    EXPECT_EQ(limit(glove, {"--pids", "1"}, "processes"), 1U);
    EXPECT_EQ(limit(glove, {"--pids", "4194303"}, "processes"), 4'194'303U);
    EXPECT_EQ(limit(glove, {"--cpus", "0.01"}, "cpu_hundredths"), 1U);
    EXPECT_EQ(limit(glove, {"--cpus", "1000"}, "cpu_hundredths"), 100'000U);
    EXPECT_EQ(limit(glove, {"--cpu-time", "90s"}, "cpu_time_ms"), 90'000U);
    for (const auto* text : {"", "0", "-1", "1.5", "4194304", "many"})
        expect_usage_error(glove({"exec", "--pids", text, "--", "true"}), "--pids");
    for (const auto* text : {"", "0", "0.0", "-1", "0.001", "1000.01", "all"})
        expect_usage_error(glove({"exec", "--cpus", text, "--", "true"}), "--cpus");
}

TEST(ExecOptions, ALimitOfTheKernelIsHeldOrTheRunIsRefused) {
    const glove_program glove;
    for (const auto& [flag, value] :
         {std::pair{"--memory", "64M"}, {"--pids", "99"}, {"--cpus", "1"}, {"--cpu-time", "1h"}}) {
        const auto report = glove.work("report.json");
        const auto got = glove({"exec", flag, value, "--report", report, "--", "echo", "ran"});
        const auto told = wire::json::read(test::content_of(report));
        ASSERT_TRUE(told.has_value()) << got.err;
        if (got.status == 0) {
            EXPECT_NE(told->find("control_group"), nullptr) << flag;
        } else {
            EXPECT_EQ(got.status, 125);
            EXPECT_EQ(got.out, "");
            EXPECT_TRUE(told->find("error")->find("step")->as_string()->starts_with("limits."))
                << got.err;
        }
    }
}

TEST(ExecOptions, WhatIsNoSizeIsRefused) {
    const glove_program glove;
    for (const auto* option : {"--output-bytes", "--scratch-bytes", "--memory", "--disk"})
        for (const auto* text : {"", "-1", "+1", "1.5MB", "MB", "1 MB", " 1", "1MBx", "1q", "0x10",
                                 "1e3", "18446744073709551616", "99999999999999eb"})
            expect_usage_error(glove({"exec", option, text, "--", "true"}), option);
    expect_usage_error(glove({"exec", "--scratch-bytes", "0", "--", "true"}), "no room at all");
}

TEST(ExecOptions, ATierIsOneOfThree) {
    const glove_program glove;
    for (const auto* tier : {"offline", "local", "sealed"})
        EXPECT_EQ(*explained(glove, {"--net", tier})->find("network")->as_string(), tier);
    EXPECT_EQ(*explained(glove, {})->find("network")->as_string(), "offline");
    for (const auto* tier : {"", "Offline", "egress", "on", "offline,local"})
        expect_usage_error(glove({"exec", "--net", tier, "--", "true"}), "--net");
}

TEST(ExecOptions, ADestinationChoosesTheTierEgress) {
    const glove_program glove;
    const auto got = explained(glove, {"--egress-allow", "API.example.com.", "--egress-allow",
                                       ".example.org:22", "--publish", "3000"});
    EXPECT_EQ(*got->find("network")->as_string(), "egress");
    EXPECT_EQ(*(*got->find("egress_allow")->as_array())[0].as_string(), "api.example.com");
    EXPECT_EQ(*(*got->find("egress_allow")->as_array())[1].as_string(), ".example.org:22");
    EXPECT_EQ((*got->find("publish")->as_array())[0].as_unsigned(), 3000U);
    EXPECT_EQ(*explained(glove, {"--publish", "3000"})->find("network")->as_string(), "local");
    EXPECT_EQ(explained(glove, {})->find("egress_allow"), nullptr);
}

TEST(ExecOptions, WhatCannotBeADestinationIsRefused) {
    const glove_program glove;
    for (const auto* rule : {"", "https://a.example", "*.example.com", "a.example:0",
                             "a.example,unknown", "127.0.0.1:80", "localhost", "10.0.0.1"})
        expect_usage_error(glove({"exec", "--egress-allow", rule, "--", "true"}), rule);
    for (const auto* port : {"0", "65536", "-1", "x", "", "80:80"})
        expect_usage_error(glove({"exec", "--publish", port, "--", "true"}), port);
    for (const auto* tier : {"offline", "local", "sealed"}) {
        const auto got =
            glove({"exec", "--net", tier, "--egress-allow", "a.example", "--", "true"});
        EXPECT_EQ(got.status, 2);
        EXPECT_THAT(got.err, HasSubstr("cannot go with the network tier " + std::string{tier}));
    }
    expect_usage_error(
        glove({"exec", "--egress-allow", "a.example", "--egress-connections", "0", "--", "true"}),
        "--egress-connections");
}

TEST(ExecNotes, AProgramThatTheCommandCanReplaceIsTold) {
    const glove_program glove;
    std::filesystem::copy_file(glove.path(), glove.work("glove"));
    glove.place().directory("desk/other");
    const auto explain = [&](const char* access, const char* path) {
        return test::run_program(
                   {glove.work("glove"), "exec", access, path, "--explain", "--", "true"},
                   {{"HOME", glove.place() / "home"}}, glove.place() / "desk")
            .out;
    };
    EXPECT_THAT(explain("--write", "."), HasSubstr("can put another program in its place"));
    EXPECT_THAT(explain("--read", "."), Not(HasSubstr("another program")));
    EXPECT_THAT(explain("--write", "other"), Not(HasSubstr("another program")));
}

TEST(ExecOptions, AnOptionTakesOneValueAtATime) {
    const glove_program glove;
    glove.place().directory("desk/a");
    glove.place().directory("desk/b");
    for (const auto* option : {"--read", "--write", "--hide", "--env"})
        expect_usage_error(glove({"exec", option, "a", "b", "--explain", "--", "true"}), "b");
    const auto got = glove({"exec", "--read", "a", "--read", "b", "--explain", "--", "true"});
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_THAT(got.out,
                HasSubstr("(your files)\n  " + glove.work("a") + "\n  " + glove.work("b")));
}

TEST(ExecOptions, AValueIsTakenAsItStands) {
    const glove_program glove;
    for (const auto* name : {"[a,b]", "a,b", "{x}", "%%", "a b", "--help"}) {
        glove.place().directory("desk/" + std::string{name});
        const auto got = glove({"exec", "--read=" + std::string{name}, "--explain", "--", "true"});
        EXPECT_EQ(got.status, 0) << name << ": " << got.err;
        EXPECT_THAT(got.out, HasSubstr("  " + glove.work(name) + "\n"));
    }
}

TEST(ExecOptions, WhatCanBeGivenOnceIsRefusedTheSecondTime) {
    const glove_program glove;
    expect_usage_error(glove({"exec", "--net", "local", "--net", "offline", "--", "true"}),
                       "--net");
    expect_usage_error(glove({"exec", "--workspace", ".", "--workspace", ".", "--", "true"}),
                       "--workspace");
}

TEST(ExecOptions, AVariableIsPassedOnOrSet) {
    const glove_program glove;
    const auto seen = glove({"exec", "--env", "GIVEN", "--env", "SET=a=b", "--env", "EMPTY=", "--",
                             "sh", "-c", "echo \"$GIVEN|$SET|${EMPTY-unset}|${OTHER-unset}\""},
                            {{"GIVEN", "from outside"}, {"OTHER", "secret"}});
    EXPECT_EQ(seen.status, 0) << seen.err;
    EXPECT_EQ(seen.out, "from outside|a=b||unset\n");
    expect_usage_error(glove({"exec", "--env", "GIVEN", "--", "true"}),
                       "--env GIVEN: not set in your environment");
    expect_usage_error(glove({"exec", "--env", "=x", "--", "true"}), "needs a name");
    expect_usage_error(glove({"exec", "--env", "HOME=/x", "--", "true"}), "--env HOME");
}

TEST(ExecOptions, ACommandIsNeeded) {
    const glove_program glove;
    expect_usage_error(glove({"exec"}), "no command was given");
    expect_usage_error(glove({"exec", "--"}), "no command was given");
    expect_usage_error(glove({"exec", "--", ""}), "no command was given");
    expect_usage_error(glove({"exec", "--json", "--", "true"}), "--json goes with --explain");
}

TEST(ExecCommand, WhatFollowsTheDashesIsNeverInterpreted) {
    const glove_program glove;
    const auto echoed = [&](std::vector<std::string> words) {
        std::vector<std::string> all{"exec", "--", "printf", "%s\n"};
        all.insert(all.end(), words.begin(), words.end());
        const auto got = glove(all);
        EXPECT_EQ(got.status, 0) << got.err;
        return got.out;
    };
    EXPECT_EQ(echoed({"--help"}), "--help\n");
    EXPECT_EQ(echoed({"--explain", "--read", "/root", "--", "-h"}),
              "--explain\n--read\n/root\n--\n-h\n");
    EXPECT_EQ(echoed({"", "a b", "$HOME", "*"}), "\na b\n$HOME\n*\n");
    // As the command itself, too.
    EXPECT_EQ(glove({"exec", "--", "--help"}).status, 127);
    EXPECT_THAT(glove({"exec", "--", "--version"}).out, IsEmpty());
}

TEST(ExecStatus, ItIsTheCommandsOwn) {
    const glove_program glove;
    EXPECT_EQ(glove({"exec", "--", "true"}).status, 0);
    EXPECT_EQ(glove({"exec", "--", "sh", "-c", "exit 42"}).status, 42);
    EXPECT_EQ(glove({"exec", "--", "sh", "-c", "kill -TERM $$"}).status, 128 + 15);
    EXPECT_EQ(glove({"exec", "--", "no-such-program"}).status, 127);
    EXPECT_EQ(glove({"exec", "--", "/etc/passwd"}).status, 126);
}

TEST(ExecStatus, ARefusalIsToldInOneForm) {
    const glove_program glove;
    const auto got = glove({"exec", "--read", "/", "--", "true"});
    EXPECT_EQ(got.status, 2);
    EXPECT_EQ(got.err,
              "error[not_permitted]: grant.check: --read /: the whole file system cannot be "
              "granted\nTry: name the directories that the agent needs\n");
    glove.place().file("desk/log", "", 0644);
    const auto refused = glove({"exec", "--audit-log", "log", "--", "true"});
    EXPECT_EQ(refused.status, 125);
    EXPECT_THAT(refused.err, StartsWith("error[not_permitted]: file.private: log "));
}

// --- explain

TEST(Explain, ItListsAndRunsNothing) {
    const glove_program glove;
    const auto got = glove({"exec", "--workspace", ".", "--env", "KEY=hunter2", "--explain", "--",
                            "touch", "created"});
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_THAT(got.out, HasSubstr("Can be changed (your files)\n  " + (glove.place() / "desk")));
    EXPECT_THAT(got.out, HasSubstr("  KEY\n"));
    EXPECT_THAT(got.out, Not(HasSubstr("hunter2")));
    EXPECT_THAT(got.out, HasSubstr("Nothing was run."));
    EXPECT_FALSE(sys::exists(glove.work("created")));
    EXPECT_EQ(test::names_in(glove.place() / "home"), 0U); // not even a record
    const auto twin = glove({"exec", "--workspace", ".", "--", "touch", "created"});
    EXPECT_EQ(twin.status, 0) << twin.err;
    EXPECT_TRUE(sys::exists(glove.work("created")));
}

TEST(Explain, AsJsonItIsStrictAndSaysWhatTheTextSays) {
    const glove_program glove;
    const auto plan = explained(glove, {"--workspace", "."});
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(*plan->find("work_directory")->as_string(), glove.place() / "desk");
    const auto text = glove({"exec", "--workspace", ".", "--explain", "--", "true"}).out;
    for (const auto& layer : *plan->find("layers")->as_array())
        EXPECT_THAT(text, HasSubstr("  " + *layer.find("name")->as_string() + "\n"));
    for (const auto& variable : *plan->find("environment")->as_array())
        EXPECT_THAT(text, HasSubstr("  " + *variable.as_string() + "\n"));
    EXPECT_EQ(test::names_in(glove.place() / "home"), 0U);
}

TEST(Explain, WhatARunWouldRefuseItRefuses) {
    const glove_program glove;
    expect_usage_error(glove({"exec", "--hide", ".", "--explain", "--", "true"}), "--hide");
    EXPECT_EQ(glove({"exec", "--read", "/missing", "--explain", "--", "true"}).status, 2);
}

// --- records

TEST(Records, ARunWritesItsIntentItsEndAndItsReport) {
    const glove_program glove;
    glove.place().directory("desk/in");
    const auto got = glove({"exec", "--workspace", "in", "--audit-log", "log", "--report", "report",
                            "--", "sh", "-c", "exit 3"});
    EXPECT_EQ(got.status, 3) << got.err;
    const auto log = test::content_of(glove.work("log"));
    const auto first = wire::json::read(log.substr(0, log.find('\n')));
    const auto second = wire::json::read(log.substr(log.find('\n') + 1));
    ASSERT_TRUE(first.has_value() && second.has_value()) << log;
    EXPECT_EQ(*first->find("action")->as_string(), "agent_launch");
    EXPECT_EQ(*first->find("status")->as_string(), "pending");
    EXPECT_EQ(*second->find("action")->as_string(), "agent_exit");
    EXPECT_EQ(*second->find("status")->as_string(), "ok");
    for (const auto* id : {"run", "call"}) {
        EXPECT_EQ(first->find(id)->as_string()->size(), 32U);
        EXPECT_EQ(*first->find(id), *second->find(id));
    }
    const auto report = wire::json::read(test::content_of(glove.work("report")));
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(*report->find("run"), *first->find("run"));
    EXPECT_EQ(report->find("exit")->find("code")->as_unsigned(), 3U);
    for (const auto& layer : *report->find("layers")->as_array())
        EXPECT_EQ(layer.find("armed")->as_bool(), true) << *layer.find("name")->as_string();
}

TEST(Records, TheyCannotLieWhereTheAgentSeesThem) {
    const glove_program glove;
    glove.place().directory("desk/in");
    for (const auto* option : {"--audit-log", "--report"})
        for (const auto* path : {"in/new", "in/new/deep", "./in/new", "in/../in/new"})
            EXPECT_EQ(glove({"exec", "--workspace", "in", option, path, "--", "true"}).status, 2)
                << option << " " << path;
    EXPECT_EQ(
        glove({"exec", "--workspace", "in", "--report", "missing/../in/new", "--", "true"}).status,
        2);
    EXPECT_EQ(test::names_in(glove.work("in")), 0U);
    EXPECT_FALSE(sys::exists(glove.work("missing")));
}

TEST(Records, WithoutAnOptionTheRecordIsInTheStateDirectory) {
    const glove_program glove;
    EXPECT_EQ(glove({"exec", "--", "true"}).status, 0);
    EXPECT_EQ(test::names_in(glove.place() / "home/.local/state/glove/audit"), 1U);
    EXPECT_EQ(glove({"exec", "--", "true"}, {{"XDG_STATE_HOME", glove.place() / "state"}}).status,
              0);
    EXPECT_EQ(test::names_in(glove.place() / "state/glove/audit"), 1U);
    EXPECT_EQ(glove({"exec", "--", "true"}, {{"XDG_STATE_HOME", "relative"}}).status, 125);
}

TEST(Limits, OutputStopsExactlyAtItsLimit) {
    const glove_program glove;
    const auto within = glove({"exec", "--output-bytes", "10", "--", "printf", "0123456789"});
    EXPECT_EQ(within.status, 0);
    EXPECT_EQ(within.out, "0123456789");
    const auto over = glove(
        {"exec", "--output-bytes", "10", "--", "sh", "-c", "printf 0123456789X; exec sleep 100"});
    EXPECT_EQ(over.status, 128 + 9);
    EXPECT_EQ(over.out, "0123456789");
    EXPECT_THAT(over.err, HasSubstr("output limit"));
}

TEST(Limits, TimeRunsOut) {
    const glove_program glove;
    const auto over = glove({"exec", "--wall-time", "100ms", "--", "sleep", "100"});
    EXPECT_EQ(over.status, 128 + 15);
    EXPECT_THAT(over.err, HasSubstr("wall-time limit"));
    EXPECT_EQ(glove({"exec", "--wall-time", "878400h", "--", "true"}).status, 0);
}

} // namespace
