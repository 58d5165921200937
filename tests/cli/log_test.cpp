// `glove log` over real records and over prepared files.
#include <csignal>
#include <fstream>
#include <glove/audit/jsonl.hpp>
#include <gmock/gmock.h>
#include <sstream>
#include <support/on_terminal.hpp>
#include <utime.h>

namespace {

using namespace glove;
using test::glove_program;
using test::ran;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t noon = 1'769'860'800 * second; // 2026-01-31T12:00:00Z

struct sample {
    audit::action action = audit::action::egress;
    audit::status status = audit::status::ok;
    std::int64_t at = noon;
    std::string run = "aaaa";
    std::string call = "c";
    std::string tool = {};
    std::string arguments = {};
    std::string error = {};
};
auto line(const sample& from) -> std::string {
    const auto optional = [](const std::string& text) {
        return text.empty() ? std::optional<std::string>{} : text;
    };
    return audit::to_line({.action = from.action,
                           .tool = optional(from.tool),
                           .arguments = optional(from.arguments),
                           .status = from.status,
                           .error = optional(from.error),
                           .timestamp_ns = from.at,
                           .latency_ns = from.status == audit::status::pending ? 0 : second,
                           .run = from.run,
                           .call = from.call});
}

auto launch(std::int64_t at, const std::string& run, const std::string& word) -> std::string {
    return line({.action = audit::action::agent_launch,
                 .status = audit::status::pending,
                 .at = at,
                 .run = run,
                 .arguments = R"({"argv":[")" + word + R"("]})"});
}
auto exit_of(std::int64_t at, const std::string& run, int code) -> std::string {
    return line({.action = audit::action::agent_exit,
                 .at = at,
                 .run = run,
                 .arguments = R"({"cause":"exited","code":)" + std::to_string(code) + "}"});
}
auto egress(audit::status status, std::int64_t at, const std::string& call,
            const std::string& error = {}) -> std::string {
    return line({.status = status,
                 .at = at,
                 .call = call,
                 .tool = call + ".example:443",
                 .arguments = status == audit::status::pending ? "" : R"({"sent":1,"received":2})",
                 .error = error});
}

// A run with two connections, one that another run left open, and one that was refused.
auto whole_log() -> std::string {
    return launch(noon, "aaaa", "agent") + egress(audit::status::pending, noon + second, "one") +
           egress(audit::status::pending, noon + 2 * second, "two") +
           egress(audit::status::ok, noon + 3 * second, "one") +
           egress(audit::status::invalid_arguments, noon + 4 * second, "bad", "no rule") +
           exit_of(noon + 5 * second, "aaaa", 3) + launch(noon + 6 * second, "bbbb", "lost-one");
}

auto lines_of(const std::string& text) -> std::size_t {
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

TEST(Log, ARealRunIsOneRow) {
    const glove_program glove;
    ASSERT_EQ(glove({"exec", "--", "sh", "-c", "exit 3"}).status, 3);
    const auto got = glove({"log"});
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_THAT(got.out, AllOf(StartsWith("TIME "), HasSubstr("agent_launch  ok, exit 3"),
                               HasSubstr("  sh -c 'exit 3'\n")));
    EXPECT_EQ(lines_of(got.out), 2U);
    EXPECT_EQ(got.err,
              "glove: 1 run in " + (glove.place() / "home/.local/state/glove/audit") + "\n");
}

TEST(Log, WithoutRecordsItSaysSo) {
    const glove_program glove;
    const auto got = glove({"log"});
    EXPECT_EQ(got.status, 0);
    EXPECT_THAT(got.out, IsEmpty());
    EXPECT_THAT(got.err, StartsWith("glove: there is no record of a run in "));
    EXPECT_EQ(glove({"log"}, {{"XDG_STATE_HOME", "relative"}}).status, 2);
}

// Calls of tools, and what an agent could say in them.
TEST(Log, CallsAreListedWithTheirArgumentsAndFiltered) {
    const auto call = [](audit::status status, std::int64_t at, const std::string& name,
                         const std::string& error = {}) {
        return line({.action = audit::action::call_tool,
                     .status = status,
                     .at = at,
                     .call = name,
                     .tool = "files." + name,
                     .arguments = status == audit::status::ok
                                      ? ""
                                      : R"({"code":3,"sent":1,"text":"a\u001b[2J"})",
                     .error = error});
    };
    const auto text =
        line({.action = audit::action::initialize, .at = noon, .tool = "files"}) +
        line({.action = audit::action::list_tools, .at = noon + second, .tool = "agent"}) +
        call(audit::status::pending, noon + 2 * second, "read") +
        call(audit::status::ok, noon + 3 * second, "read") +
        call(audit::status::invalid_arguments, noon + 4 * second, "write", "deny files.write");
    const glove_program glove;
    glove.place().file("desk/log", text);
    const auto got = glove({"log", "log"});
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_EQ(
        got.out,
        "TIME                  ACTION        STATUS              DURATION  SENT/RECEIVED  WHAT\n"
        "2026-01-31T12:00:00Z  initialize    ok                  1.0s      -              files\n"
        "2026-01-31T12:00:01Z  list_tools    ok                  1.0s      -              agent\n"
        "2026-01-31T12:00:02Z  call_tool     ok                  1.0s      -              "
        "files.read {\"code\":3,\"sent\":1,\"text\":\"a\\u001b[2J\"}\n"
        "2026-01-31T12:00:04Z  call_tool     invalid_arguments   1.0s      -              "
        "files.write {\"code\":3,\"sent\":1,\"text\":\"a\\u001b[2J\"}\n"
        "    deny files.write\n");
    const auto calls = glove({"log", "--action", "call_tool", "--status", "ok", "log"});
    EXPECT_EQ(lines_of(calls.out), 2U);
    EXPECT_THAT(calls.out, AllOf(HasSubstr("files.read"), Not(HasSubstr("files.write"))));
    EXPECT_EQ(lines_of(glove({"log", "--json", "--action", "call_tool", "log"}).out), 3U);
}

TEST(Log, IntentsAndOutcomesAreJoined) {
    const glove_program glove;
    const auto file = glove.place().file("desk/log", whole_log());
    const auto got = glove({"log", "log"});
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_THAT(got.err, IsEmpty());
    EXPECT_EQ(
        got.out,
        "TIME                  ACTION        STATUS              DURATION  SENT/RECEIVED  WHAT\n"
        "2026-01-31T12:00:00Z  agent_launch  ok, exit 3          1.0s      -              agent\n"
        "2026-01-31T12:00:01Z  egress        ok                  1.0s      1/2            "
        "one.example:443\n"
        "2026-01-31T12:00:02Z  egress        lost                -         -              "
        "two.example:443\n"
        "2026-01-31T12:00:04Z  egress        invalid_arguments   1.0s      1/2            "
        "bad.example:443\n"
        "    no rule\n"
        "2026-01-31T12:00:06Z  agent_launch  lost                -         -              "
        "lost-one\n");
}

TEST(Log, ARunThatGoesOnIsOpen) {
    const glove_program glove;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    glove.place().file("desk/log", launch(std::chrono::nanoseconds{now}.count(), "aaaa", "x"));
    EXPECT_THAT(glove({"log", "log"}).out, HasSubstr("  open  "));
    EXPECT_EQ(lines_of(glove({"log", "log", "--status", "open"}).out), 2U);
    EXPECT_THAT(glove({"log", "log", "--status", "lost"}).out, IsEmpty());
}

struct filter_row {
    std::vector<std::string> options;
    std::size_t rows;
};

TEST(Log, EachFilterLeavesOutTheRest) {
    const glove_program glove;
    glove.place().file("desk/log", whole_log());
    for (const auto& [options, rows] :
         {filter_row{{"--status", "ok"}, 2}, filter_row{{"--status", "lost"}, 2},
          filter_row{{"--status", "ok", "--status", "lost"}, 4},
          filter_row{{"--status", "execution_error"}, 0}, filter_row{{"--action", "egress"}, 3},
          filter_row{{"--action", "agent_launch"}, 2},
          filter_row{{"--action", "egress", "--status", "ok"}, 1},
          filter_row{{"--since", "2026-01-31T12:00:02Z"}, 3},
          filter_row{{"--since", "2026-01-31T14:00:02+02:00"}, 3},
          filter_row{{"--until", "2026-01-31T12:00:02Z"}, 3},
          filter_row{{"--since", "2026-01-31T12:00:02Z", "--until", "2026-01-31T12:00:02Z"}, 1},
          filter_row{{"--since", "10m", "--until", "0s"}, 0}, filter_row{{"--run", "bbbb"}, 1},
          filter_row{{"--run", "b"}, 1}, filter_row{{"--run", "bbbbb"}, 0},
          filter_row{{"--limit", "1"}, 1}, filter_row{{"--limit", "5"}, 5},
          filter_row{{"--limit", "6"}, 5}}) {
        std::vector<std::string> words{"log", "--json", "log"};
        words.insert(words.end(), options.begin(), options.end());
        const auto json = glove(words);
        words.erase(words.begin() + 1);
        const auto table = glove(words);
        EXPECT_EQ(table.status, 0) << options[0] << ": " << table.err;
        std::size_t found = 0;
        for (std::size_t at = 0; (at = table.out.find("\n2026", at)) != std::string::npos; ++at)
            ++found;
        EXPECT_EQ(found, rows) << options[0] << " " << options[1] << "\n" << table.out;
        EXPECT_EQ(json.out.empty(), rows == 0);
    }
}

TEST(Log, AsJsonTheLinesAreUnchangedAndInTheirOrder) {
    const glove_program glove;
    glove.place().file("desk/log", whole_log());
    EXPECT_EQ(glove({"log", "--json", "log"}).out, whole_log());
    EXPECT_EQ(glove({"log", "--json", "log", "--action", "egress", "--status", "ok"}).out,
              egress(audit::status::pending, noon + second, "one") +
                  egress(audit::status::ok, noon + 3 * second, "one"));
}

TEST(Log, ALineThatCannotBeReadIsToldAndHidesNoOther) {
    const glove_program glove;
    glove.place().file("desk/log", launch(noon, "aaaa", "x") +
                                       "{\"action\":7}\nnot \x1b[2J json\n[]\n" +
                                       exit_of(noon, "aaaa", 0));
    const auto got = glove({"log", "log"});
    EXPECT_EQ(got.status, 1);
    EXPECT_THAT(got.out, HasSubstr("agent_launch  ok  "));
    EXPECT_THAT(got.err, AllOf(StartsWith("error[corrupt]: log.line: log:2: "),
                               HasSubstr("log.line: log:3: "), HasSubstr("log.line: log:4: "),
                               Not(HasSubstr("\x1b"))));
    std::string bad;
    for (int i = 0; i < 12; ++i) bad += "[]\n";
    glove.place().file("desk/bad", bad);
    EXPECT_THAT(glove({"log", "bad"}).err, HasSubstr("2 more lines cannot be read"));
}

TEST(Log, ATornLastLineIsToldAndTolerated) {
    const glove_program glove;
    const auto text = launch(noon, "aaaa", "x");
    glove.place().file("desk/log", text + text.substr(0, 20));
    const auto got = glove({"log", "log"});
    EXPECT_EQ(got.status, 0);
    EXPECT_EQ(lines_of(got.out), 2U);
    EXPECT_EQ(got.err, "glove: log:2: the last line is not complete and was left out\n");
}

TEST(Log, AFileThatCannotBeOpenedIsTold) {
    const glove_program glove;
    glove.place().file("desk/log", whole_log());
    const auto got = glove({"log", "absent", "log", "."});
    EXPECT_EQ(got.status, 1);
    EXPECT_EQ(lines_of(got.out), 7U);
    EXPECT_THAT(got.err, AllOf(HasSubstr("log.open: absent: No such file"),
                               HasSubstr("log.open: .: Is a directory")));
}

TEST(Log, FilesAfterTheDashesAreFiles) {
    const glove_program glove;
    glove.place().file("desk/--json", whole_log());
    EXPECT_THAT(glove({"log", "--", "--json"}).out, StartsWith("TIME"));
}

// --- the newest of the state directory

auto record_of(const glove_program& glove, int number) -> std::string {
    const auto name = (number < 10 ? "0" : "") + std::to_string(number);
    const auto path = glove.place().file("home/.local/state/glove/audit/" + name + ".jsonl",
                                         launch(noon + number * second, name, "run" + name), 0600);
    const ::utimbuf times{1'700'000'000 + number, 1'700'000'000 + number};
    EXPECT_EQ(::utime(path.c_str(), &times), 0);
    return path;
}

TEST(Log, WithoutAFileTheNewestAreShownAndItSaysWhich) {
    const glove_program glove;
    for (int i = 0; i < 20; ++i) record_of(glove, i);
    EXPECT_THAT(glove({"log"}).err, StartsWith("glove: 20 runs in "));
    for (int i = 20; i < 22; ++i) record_of(glove, i);
    const auto got = glove({"log"});
    EXPECT_THAT(got.err, StartsWith("glove: the newest 20 of 22 runs in "));
    EXPECT_EQ(lines_of(got.out), 21U);
    EXPECT_THAT(got.out,
                AllOf(Not(HasSubstr("run01\n")), HasSubstr("run02\n"), HasSubstr("run21\n")));
    EXPECT_THAT(glove({"log", "--run", "00"}).out, HasSubstr("run00\n"));
    EXPECT_EQ(lines_of(glove({"log", "--since", "2020-01-01T00:00:00Z"}).out), 23U);
    EXPECT_THAT(glove({"log", "--json"}).err, IsEmpty());
}

TEST(Log, LinksAndOtherFilesOfTheDirectoryAreNotRead) {
    const glove_program glove;
    record_of(glove, 0);
    const auto audit = glove.place() / "home/.local/state/glove/audit";
    glove.place().file("home/.local/state/glove/audit/other", "nonsense\n");
    glove.place().file("home/.local/state/glove/audit/.x.jsonl", "nonsense\n");
    ASSERT_EQ(::symlink("/etc/passwd", (audit + "/link.jsonl").c_str()), 0);
    ASSERT_EQ(::mkfifo((audit + "/fifo.jsonl").c_str(), 0600), 0);
    const auto got = glove({"log"});
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_EQ(lines_of(got.out), 2U);
}

// --- options

TEST(Log, WhatIsNotUnderstoodIsAUsageError) {
    const glove_program glove;
    for (const auto& words :
         {std::vector<std::string>{"--status", "fine"},
          std::vector<std::string>{"--status", "pending"},
          std::vector<std::string>{"--action", "exec"},
          std::vector<std::string>{"--since", "yesterday"},
          std::vector<std::string>{"--until", "2026-01-31"},
          std::vector<std::string>{"--limit", "0"}, std::vector<std::string>{"--limit", "x"},
          std::vector<std::string>{"--tail"}}) {
        auto all = words;
        all.insert(all.begin(), "log");
        const auto got = glove(all);
        EXPECT_EQ(got.status, 2) << words[0];
        EXPECT_THAT(got.out, IsEmpty());
        EXPECT_THAT(got.err, StartsWith("error[invalid_input]: usage: ")) << got.err;
    }
}

// --- on a terminal

TEST(Log, OnATerminalItIsColouredAndFits) {
    const glove_program glove;
    glove.place().file("desk/log", launch(noon, "aaaa", std::string(300, 'w')));
    const std::vector<std::string> argv{glove.path(), "log", "log"};
    const auto coloured = test::run_on_terminal(argv, {}, glove.place() / "desk", 100);
    EXPECT_EQ(coloured.status, 0);
    EXPECT_THAT(coloured.out, AllOf(HasSubstr("\033[33mlost"), HasSubstr("www...\n")));
    const auto plain =
        test::run_on_terminal(argv, {{"NO_COLOR", "1"}}, glove.place() / "desk", 100);
    EXPECT_THAT(plain.out, Not(HasSubstr("\033")));
    std::istringstream lines{plain.out};
    for (std::string each; std::getline(lines, each);) EXPECT_LE(each.size(), 100U) << each;
    EXPECT_THAT(glove({"log", "log"}, {{"TERM", "xterm"}}).out,
                AllOf(Not(HasSubstr("\033")), HasSubstr(std::string(300, 'w'))));
}

// --- follow

class Follow : public testing::Test {
protected:
    void start(std::vector<std::string> words) {
        words.insert(words.begin(), {glove.path(), "log", "--follow"});
        child_ = ::fork();
        ASSERT_GE(child_, 0);
        if (child_ == 0) {
            (void)::dup2(out_.write.get(), 1);
            (void)::dup2(out_.write.get(), 2);
            ::setenv("HOME", (glove.place() / "home").c_str(), 1);
            ::unsetenv("XDG_STATE_HOME");
            std::vector<char*> argv;
            for (auto& word : words) argv.push_back(word.data());
            argv.push_back(nullptr);
            if (::chdir((glove.place() / "desk").c_str()) == 0) (void)::execv(argv[0], argv.data());
            ::_exit(124);
        }
        out_.write = {};
    }
    // Reads on until the text has come; what came so far.
    auto until(const std::string& text) -> std::string {
        while (said_.find(text) == std::string::npos) {
            char part[4096];
            const auto got = ::read(out_.read.get(), part, sizeof part);
            if (got <= 0) {
                ADD_FAILURE() << "it ended without '" << text << "': " << said_;
                break;
            }
            said_.append(part, static_cast<std::size_t>(got));
        }
        return said_;
    }
    void append(const std::string& name, const std::string& text) {
        std::ofstream{glove.place() / name, std::ios::app} << text << std::flush;
    }
    auto end(int signal) -> int {
        int status = 0;
        (void)::kill(child_, signal);
        (void)::waitpid(child_, &status, 0);
        child_ = -1;
        return status;
    }
    void TearDown() override {
        if (child_ > 0) (void)end(SIGKILL);
    }
    glove_program glove;

private:
    test::pipe_ends out_;
    std::string said_;
    ::pid_t child_ = -1;
};

TEST_F(Follow, WhatIsAddedIsShownUntilInterrupted) {
    glove.place().file("desk/log", launch(noon, "aaaa", "first"));
    start({"log"});
    until("first\n");
    const auto text = egress(audit::status::pending, noon + second, "one");
    append("desk/log", text.substr(0, 30));
    append("desk/log", text.substr(30));
    EXPECT_THAT(until("one.example:443\n"), ContainsRegex("egress +open +- +- +one.example"));
    append("desk/log", "nonsense\n" + exit_of(noon + 2 * second, "aaaa", 5));
    EXPECT_THAT(until("exit 5"), HasSubstr("log.line: log:3: "));
    const int status = end(SIGINT);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1); // a line could not be read
}

TEST_F(Follow, ANewRunIsFound) {
    record_of(glove, 1);
    start({});
    until("run01\n");
    append("home/.local/state/glove/audit/02.jsonl", launch(noon, "02", "second"));
    until("second\n");
    append("home/.local/state/glove/audit/02.jsonl", exit_of(noon, "02", 7));
    EXPECT_THAT(until("exit 7"), HasSubstr("second\n"));
    const int status = end(SIGTERM);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(Follow, AsJsonAndFilteredTheNewLinesAreUnchanged) {
    glove.place().file("desk/log", "");
    start({"log", "--json", "--action", "egress"});
    const auto wanted = egress(audit::status::pending, noon + second, "one");
    // The first may come before the file is watched; it is read either way.
    append("desk/log", launch(noon, "aaaa", "unwanted") + wanted);
    EXPECT_EQ(until(wanted), wanted);
}

} // namespace
