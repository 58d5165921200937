#include <filesystem>
#include <fstream>
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

using words = std::vector<std::string>;

void expect_usage_error(const ran& got, const std::string& detail) {
    EXPECT_EQ(got.status, 2) << got.err;
    EXPECT_THAT(got.out, IsEmpty());
    EXPECT_THAT(got.err, HasSubstr("error["));
    EXPECT_THAT(got.err, HasSubstr(detail));
}

// The same options with both verbs; what is wrong is found before anything starts.
void expect_refused(const glove_program& glove, const words& options, const std::string& detail) {
    words run{"run"};
    run.insert(run.end(), options.begin(), options.end());
    run.insert(run.end(), {"--", "true"});
    expect_usage_error(glove(run), detail);
    words mcp{"mcp", "tools"};
    mcp.insert(mcp.end(), options.begin(), options.end());
    expect_usage_error(glove(mcp), detail);
}

void put(const glove_program& glove, const char* name, const std::string& text) {
    std::ofstream{glove.work(name)} << text;
}

// What `glove run --explain` says; the rules are judged for it.
auto explained(const glove_program& glove, words options) -> std::optional<wire::json::value> {
    options.insert(options.begin(), "run");
    for (const auto* word : {"--explain", "--json", "--", "true"}) options.emplace_back(word);
    const auto got = glove(options);
    EXPECT_EQ(got.status, 0) << got.err;
    auto parsed = wire::json::read(got.out);
    EXPECT_TRUE(parsed.has_value()) << got.out;
    return parsed ? std::optional{*std::move(parsed)} : std::nullopt;
}

auto text_of(const wire::json::value* value) -> std::string {
    return value == nullptr || value->as_string() == nullptr ? ""
                                                             : std::string{*value->as_string()};
}

auto texts_of(const wire::json::value* list) -> words {
    words out;
    if (list != nullptr && list->as_array() != nullptr)
        for (const auto& item : *list->as_array()) out.emplace_back(text_of(&item));
    return out;
}

TEST(RunOptions, AToolServerIsNeeded) {
    const glove_program glove;
    expect_refused(glove, {}, "no tool server was named");
    EXPECT_THAT(glove({"run", "--", "true"}).err, HasSubstr("glove exec"));
}

TEST(RunOptions, ACommandIsNeeded) {
    const glove_program glove;
    const auto got = glove({"run", "--upstream", "a=true"});
    expect_usage_error(got, "no command was given");
    EXPECT_THAT(got.err, HasSubstr("glove run"));
}

TEST(RunOptions, WhatIsNoServerIsRefused) {
    const glove_program glove;
    for (const auto* word :
         {"", "a", "=true", "a=", "a.b=true", "a__b=true", "glove=true", "a b=true"})
        expect_refused(glove, {"--upstream", word}, "--upstream");
    expect_refused(glove, {"--upstream", "a=true", "--upstream", "a=false"}, "'a'");
}

TEST(RunOptions, ServersComeFromFilesAsWell) {
    const glove_program glove;
    put(glove, "servers.json",
        R"({"mcpServers":{"files":{"command":"server","args":["x"],"env":{"TOKEN":"secret"}}}})");
    std::filesystem::create_directory(glove.place() / "other");
    std::filesystem::rename(glove.work("servers.json"),
                            (glove.place() / "other") + "/servers.json");
    const auto file = (glove.place() / "other") + "/servers.json";
    const auto plan = explained(glove, {"--mcp-config", file, "--allow", "files.read"});
    ASSERT_TRUE(plan);
    const auto& upstreams = *plan->find("mediation")->find("upstreams")->as_array();
    ASSERT_EQ(upstreams.size(), 1U);
    EXPECT_EQ(text_of(upstreams[0].find("name")), "files");
    EXPECT_EQ(texts_of(upstreams[0].find("command")), (words{"server", "x"}));
    EXPECT_EQ(texts_of(upstreams[0].find("environment")), (words{"TOKEN"}));
    expect_refused(glove, {"--mcp-config", "none.json"}, "--mcp-config none.json");
    put(glove, "bad.json", "{]");
    expect_refused(glove, {"--mcp-config", "bad.json"}, "bad.json");
    put(glove, "remote.json", R"({"mcpServers":{"a":{"url":"https://a.example"}}})");
    expect_refused(glove, {"--mcp-config", "remote.json"}, "url");
}

TEST(RunOptions, TheCommandNeverReadsWhereServersAndRulesStand) {
    const glove_program glove;
    put(glove, "servers.json", R"({"mcpServers":{"files":{"command":"server"}}})");
    for (const auto* option : {"--workspace", "--read", "--write"}) {
        const auto got = glove({"run", "--mcp-config", "servers.json", "--allow", "files.*", option,
                                ".", "--explain", "--", "true"});
        EXPECT_EQ(got.status, 2);
        EXPECT_THAT(got.err, HasSubstr("servers.json"));
    }
    std::filesystem::create_directory(glove.work("inner"));
    EXPECT_EQ(glove({"run", "--mcp-config", "servers.json", "--allow", "files.*", "--workspace",
                     "inner", "--explain", "--", "true"})
                  .status,
              0);
}

class changed_servers {
public:
    const glove_program glove;

    auto asked(const words& more, const std::string& server = "a=python3,./server.py") const {
        words all{"run", "--upstream", server, "--allow", "a.*", "--explain"};
        all.insert(all.end(), more.begin(), more.end());
        all.insert(all.end(), {"--", "true"});
        return glove(all);
    }
    // Refused, with its words and the way out; and permitted when that is meant, and told.
    void expect_refused_unless_meant(words more, const std::string& server,
                                     std::string_view why) const {
        const auto got = asked(more, server);
        EXPECT_EQ(got.status, 2) << got.err;
        EXPECT_THAT(got.err, HasSubstr(why));
        EXPECT_THAT(got.err, HasSubstr("--upstream-changeable a"));
        more.insert(more.end(), {"--upstream-changeable", "a"});
        const auto meant = asked(more, server);
        EXPECT_EQ(meant.status, 0) << meant.err;
        EXPECT_THAT(meant.out, HasSubstr(why));
    }
};

TEST(RunOptions, AServerThatTheCommandCanReplaceIsRefusedUnlessThatIsMeant) {
    const changed_servers of;
    put(of.glove, "server.py", "pass");
    const std::string script = "a=python3,./server.py", made = "of which the server a is made";
    of.expect_refused_unless_meant({"--workspace", "."}, script, made);
    of.expect_refused_unless_meant({"--write", "server.py"}, script, made);
    const auto reads = of.asked({"--read", "."});
    EXPECT_EQ(reads.status, 0) << reads.err;
    EXPECT_THAT(reads.out, Not(HasSubstr(made)));
    // A name is no path, and that is told where it would be one.
    const auto name = of.asked({"--workspace", "."}, "a=python3,server.py").out;
    EXPECT_THAT(name, Not(HasSubstr(made)));
    EXPECT_THAT(name, HasSubstr("'server.py' is no path here: write ./ in front of it"));
    EXPECT_THAT(of.asked({"--workspace", "."}, "a=python3,other.py").out,
                Not(HasSubstr("is no path here")));
    // By a link that the command can turn.
    of.glove.place().directory("tools");
    std::ofstream{of.glove.place() / "tools/server.py"} << "pass";
    std::filesystem::create_symlink(of.glove.place() / "tools", of.glove.work("link"));
    of.expect_refused_unless_meant({"--workspace", "."}, "a=python3,./link/server.py", made);
}

// What stands beside a script is loaded by it; beside a file of data, it is not.
TEST(RunOptions, APlaceInsideOfAServersDirectoryIsRefusedUnlessThatIsMeant) {
    const changed_servers of;
    std::filesystem::create_directories(of.glove.work("server/lib"));
    std::filesystem::create_directories(of.glove.work("beside"));
    put(of.glove, "server/main.py", "pass");
    put(of.glove, "server/data.db", "");
    of.expect_refused_unless_meant({"--workspace", "server/lib"}, "a=python3,./server/main.py",
                                   "is inside of " + of.glove.work("server"));
    for (const auto* const server : {"a=python3,./server/main.py", "a=sqlite,./server/data.db"})
        EXPECT_EQ(of.asked({"--workspace", "beside"}, server).status, 0) << server;
    EXPECT_EQ(of.asked({"--workspace", "server/lib"}, "a=sqlite,./server/data.db").status, 0);
    put(of.glove, "server/data.db", "#!/usr/bin/python3\n");
    EXPECT_EQ(of.asked({"--workspace", "server/lib"}, "a=sqlite,./server/data.db").status, 2);
}

TEST(RunOptions, AServerThatMayBeChangedIsOneThatIsThere) {
    const changed_servers of;
    const auto got = of.asked({"--upstream-changeable", "b"});
    EXPECT_EQ(got.status, 2);
    EXPECT_THAT(got.err, HasSubstr("--upstream-changeable b: there is no upstream 'b'"));
}

auto upstream_of(const std::optional<wire::json::value>& plan) -> const wire::json::value& {
    return (*plan->find("mediation")->find("upstreams")->as_array())[0];
}

TEST(RunOptions, AServerStartsInADirectoryOfGlovesOwn) {
    const glove_program glove;
    const auto plan = explained(glove, {"--upstream", "a=true", "--allow", "a.*"});
    ASSERT_TRUE(plan);
    const auto place = glove.place() / "home/.local/state/glove/servers/a";
    EXPECT_EQ(text_of(upstream_of(plan).find("directory")), place);
    EXPECT_FALSE(std::filesystem::exists(place)); // explaining makes nothing
    EXPECT_EQ(glove({"mcp", "check", "--upstream", "a=true", "--allow", "a.*"}).status, 0);
    EXPECT_FALSE(std::filesystem::exists(place));
    (void)glove({"mcp", "tools", "--upstream", "a=true", "--allow", "a.*"});
    EXPECT_EQ(std::filesystem::status(place).permissions(), std::filesystem::perms::owner_all);
    for (const auto* grant : {"/servers", "/servers/a"}) {
        const auto got =
            glove({"run", "--upstream", "a=true", "--allow", "a.*", "--read",
                   glove.place() / "home/.local/state/glove" + grant, "--explain", "--", "true"});
        EXPECT_EQ(got.status, 2) << got.out;
    }
}

TEST(RunOptions, WhatIsWrittenAsAPathBeginsWhereTheCallerIs) {
    const glove_program glove;
    const auto desk = glove.work("");
    const auto up = (glove.place() / "");
    const auto plan = explained(
        glove, {"--upstream", "a=./bin/x,.,..,./a,../b,.//./c,./../d,.hidden,..x,b,./,-c,./e/../f",
                "--allow", "a.*"});
    ASSERT_TRUE(plan);
    const auto bare = desk.substr(0, desk.size() - 1);
    EXPECT_EQ(texts_of(upstream_of(plan).find("command")),
              (words{desk + "bin/x", bare, up.substr(0, up.size() - 1), desk + "a", up + "b",
                     desk + "c", up + "d", ".hidden", "..x", "b", bare, "-c", desk + "e/../f"}));
    const auto inner = explained(glove, {"--upstream", "a=bin/x", "--allow", "a.*"});
    ASSERT_TRUE(inner);
    EXPECT_EQ(texts_of(upstream_of(inner).find("command")), (words{desk + "bin/x"}));
}

TEST(RunOptions, ADirectoryOfAServerIsKeptAndToldWhereTheCommandMayChangeIt) {
    const glove_program glove;
    glove.place().directory("other");
    const auto file = glove.place() / "other/servers.json";
    const auto said = [&](const std::string& cwd, const char* access) {
        std::ofstream{file} << R"({"mcpServers":{"a":{"command":"true","args":["./x"],"cwd":")"
                            << cwd << R"("}}})";
        return glove({"run", "--mcp-config", file, "--allow", "a.*", access, ".", "--explain", "--",
                      "true"});
    };
    const auto told = said(glove.work("inner"), "--workspace"); // need not be there yet
    EXPECT_THAT(told.out, HasSubstr("where the server a starts"));
    EXPECT_THAT(told.out, HasSubstr("a: true ./x, outside"));
    EXPECT_THAT(said(glove.work("inner"), "--read").out, Not(HasSubstr("where the server")));
    EXPECT_THAT(said("/", "--workspace").out, Not(HasSubstr("where the server")));
    expect_usage_error(said("inner", "--workspace"), "cwd is no absolute path");
}

TEST(RunOptions, NoServerIsLookedForWhereTheCommandMayWrite) {
    const glove_program glove;
    std::filesystem::create_directory(glove.work("bin"));
    const auto notes = [&](const std::string& path, const char* access) {
        return glove({"run", "--upstream", "a=true", "--allow", "a.*", access, ".", "--explain",
                      "--", "true"},
                     {{"PATH", path}})
            .out;
    };
    const auto told = "servers are not looked for in " + glove.work("bin");
    EXPECT_THAT(notes(glove.work("bin") + ":/usr/bin", "--workspace"), HasSubstr(told));
    EXPECT_THAT(notes("/usr/bin:" + glove.work("bin"), "--workspace"), HasSubstr(told));
    EXPECT_THAT(notes("/usr/bin:" + glove.work("bin/later"), "--workspace"), HasSubstr(told));
    EXPECT_THAT(notes(glove.work("bin") + ":/usr/bin", "--read"), Not(HasSubstr(told)));
    EXPECT_THAT(notes("/usr/bin:bin", "--workspace"), Not(HasSubstr("are not looked for")));
}

TEST(RunOptions, WhatMayBeASecretOfAServerIsNotShown) {
    const glove_program glove;
    const auto report = glove.place() / "report";
    for (const auto* how : {"--explain", "--json", "--report"}) {
        words all{"run", "--upstream",
                  "a=true,--token,hidden1,--API-Key,hidden2,--password=hidden3,NAME=hidden4,"
                  "db://me:hidden5@host/x,--header,A: hidden6,--secret,--port,3,-v,plain",
                  "--allow", "a.*"};
        if (std::string_view{how} == "--report") all.insert(all.end(), {how, report});
        else all.emplace_back("--explain");
        if (std::string_view{how} == "--json") all.emplace_back(how);
        all.insert(all.end(), {"--", "true"});
        const auto got = glove(all);
        const auto text = std::string_view{how} == "--report"
                              ? sys::read_file(report, 1 << 20).value_or("nothing")
                              : got.out;
        EXPECT_THAT(text + got.err, Not(HasSubstr("hidden"))) << how;
        for (const auto* shown : {"--token", "--API-Key", "--password=...", "NAME=...",
                                  "db://...@host/x", "--header", "-v", "plain"})
            EXPECT_THAT(text, HasSubstr(shown)) << how;
    }
}

TEST(RunOptions, AVariableGoesToOneServer) {
    const glove_program glove;
    const auto plan = explained(glove, {"--upstream", "a=true", "--upstream-env", "a:TOKEN=secret",
                                        "--upstream-env", "a:PATH", "--allow", "a.*"});
    ASSERT_TRUE(plan);
    EXPECT_EQ(
        texts_of((*plan->find("mediation")->find("upstreams")->as_array())[0].find("environment")),
        (words{"TOKEN", "PATH"}));
    for (const auto* word : {"", "TOKEN", "a", "a:", "a:=x", "a:1X=x", "a:A-B=x"})
        expect_refused(glove, {"--upstream", "a=true", "--upstream-env", word}, "not UP:NAME");
    expect_refused(glove, {"--upstream", "a=true", "--upstream-env", "b:TOKEN=x"},
                   "there is no upstream 'b'");
    expect_refused(glove, {"--upstream", "a=true", "--upstream-env", "a:NOT_SET"}, "not set");
    expect_refused(glove,
                   {"--upstream", "a=true", "--upstream-env", "a:T=x", "--upstream-env", "a:T=y"},
                   "more than once");
}

TEST(RunOptions, NoMessageShowsTheValueOfAVariable) {
    const glove_program glove;
    for (const auto& options : {words{"--upstream", "a=true", "--upstream-env", "b:TOKEN=hidden"},
                                words{"--upstream", "a=true", "--upstream-env", "a:TOKEN=hidden",
                                      "--upstream-env", "a:TOKEN=hidden"},
                                words{"--upstream", "a=true", "--upstream-env", "a:TOKEN=hidden",
                                      "--allow", "a.*", "--explain"},
                                words{"--upstream", "a=true", "--upstream-env", "a:TOKEN=hidden",
                                      "--allow", "a.*", "--explain", "--json"}}) {
        words all{"run"};
        all.insert(all.end(), options.begin(), options.end());
        all.insert(all.end(), {"--", "true"});
        const auto got = glove(all);
        EXPECT_THAT(got.out + got.err, Not(HasSubstr("hidden")));
        EXPECT_THAT(got.out + got.err, HasSubstr("TOKEN"));
    }
}

TEST(RunOptions, ToolsAreCalledByTheirServerOrBare) {
    const glove_program glove;
    const auto names = [&](words options) {
        options.insert(options.end(), {"--upstream", "a=true", "--allow", "a.*"});
        const auto plan = explained(glove, options);
        return plan ? text_of(plan->find("mediation")->find("tool_names")) : "";
    };
    EXPECT_EQ(names({}), "qualified");
    EXPECT_EQ(names({"--tool-names", "qualified"}), "qualified");
    EXPECT_EQ(names({"--tool-names", "bare"}), "bare");
    expect_refused(glove, {"--upstream", "a=true", "--tool-names", "short"}, "--tool-names");
    expect_refused(glove, {"--upstream", "a=true", "--upstream", "b=true", "--tool-names", "bare"},
                   "there are 2 upstreams");
}

TEST(RunOptions, ARenamedToolHasANameThatAnAgentCanSay) {
    const glove_program glove;
    const auto good = std::string(128, 'n');
    const auto plan = explained(glove, {"--upstream", "a=true", "--allow", "a.*", "--rename",
                                        "search=a.web.search", "--rename", good + "=a.other"});
    ASSERT_TRUE(plan);
    EXPECT_EQ(texts_of(plan->find("mediation")->find("renames")),
              (words{"search=a.web.search", good + "=a.other"}));
    for (const auto& word :
         {std::string{""}, std::string{"x"}, std::string{"x=a"}, std::string{"x=a."},
          std::string{"=a.t"}, std::string{"a b=a.t"}, good + "n=a.t"})
        expect_refused(glove, {"--upstream", "a=true", "--rename", word}, "--rename");
    expect_refused(glove, {"--upstream", "a=true", "--rename", "x=b.t"},
                   "there is no upstream 'b'");
    expect_refused(glove, {"--upstream", "a=true", "--rename", "x=a.t", "--rename", "x=a.u"},
                   "renamed already");
    expect_refused(glove, {"--upstream", "a=true", "--rename", "x=a.t", "--rename", "y=a.t"},
                   "renamed already");
}

TEST(RunOptions, WhatIsRelayedIsAListOfWords) {
    const glove_program glove;
    const auto plan = explained(glove, {"--upstream", "a=true", "--allow", "a.*", "--relay",
                                        "resources,prompts,resources"});
    ASSERT_TRUE(plan);
    EXPECT_EQ(texts_of(plan->find("mediation")->find("relay")), (words{"resources", "prompts"}));
    for (const auto* word : {"tools", "tasks", "everything", ",", "resources;prompts", "Resources"})
        expect_refused(glove, {"--upstream", "a=true", "--relay", word}, "--relay");
}

TEST(RunOptions, TimesAndSizesAreNumbersWithAUnit) {
    const glove_program glove;
    const auto plan = explained(glove, {"--upstream", "a=true", "--allow", "a.*", "--call-timeout",
                                        "2m", "--start-timeout", "500ms", "--result-bytes", "1M"});
    ASSERT_TRUE(plan);
    const auto& mediation = *plan->find("mediation");
    EXPECT_EQ(mediation.find("call_timeout_ms")->as_unsigned(), 120'000U);
    EXPECT_EQ(mediation.find("start_timeout_ms")->as_unsigned(), 500U);
    EXPECT_EQ(mediation.find("result_bytes")->as_unsigned(), 1U << 20U);
    const auto defaults = explained(glove, {"--upstream", "a=true", "--allow", "a.*"});
    ASSERT_TRUE(defaults);
    EXPECT_EQ(defaults->find("mediation")->find("call_timeout_ms")->as_unsigned(), 300'000U);
    EXPECT_EQ(defaults->find("mediation")->find("start_timeout_ms")->as_unsigned(), 60'000U);
    for (const auto* option : {"--call-timeout", "--start-timeout"})
        for (const auto* text : {"", "0", "-1", "1.5h", "10min", "x"})
            expect_refused(glove, {"--upstream", "a=true", option, text}, option);
    for (const auto* text : {"", "0", "-1", "1.5M", "x"})
        expect_refused(glove, {"--upstream", "a=true", "--result-bytes", text}, "--result-bytes");
}

TEST(RunOptions, WithoutARuleNoToolIsAllowedAndThatIsTold) {
    const glove_program glove;
    const auto told = [&](words options) {
        options.insert(options.begin(), {"run", "--upstream", "a=true"});
        options.insert(options.end(), {"--explain", "--", "true"});
        return glove(options).out;
    };
    EXPECT_THAT(told({}), HasSubstr("no tool is allowed"));
    EXPECT_THAT(told({"--deny", "a.b"}), HasSubstr("no tool is allowed"));
    EXPECT_THAT(told({"--allow", "a.b"}), Not(HasSubstr("no tool is allowed")));
    EXPECT_THAT(told({"--policy", "/none.toml"}), Not(HasSubstr("no tool is allowed")));
}

TEST(RunOptions, ARuleThatCannotBeUsedIsRefusedByExplain) {
    const glove_program glove;
    for (const auto& options :
         {words{"--allow", "nowhere.tool"}, words{"--allow", "a"}, words{"--deny", "*"},
          words{"--allow-arg", "a.tool"}, words{"--policy", "none.toml"}}) {
        words all{"run", "--upstream", "a=true", "--explain"};
        all.insert(all.end(), options.begin(), options.end());
        all.insert(all.end(), {"--", "true"});
        const auto got = glove(all);
        EXPECT_EQ(got.status, 2) << options.back();
        EXPECT_THAT(got.out, IsEmpty());
        EXPECT_THAT(got.err, HasSubstr("error["));
        EXPECT_EQ(got.err.find("error["), got.err.rfind("error[")) << got.err; // told once
    }
}

TEST(RunOptions, TheWayToTheToolsFollowsTheTier) {
    const glove_program glove;
    const auto way = [&](words options) {
        options.insert(options.end(), {"--upstream", "a=true", "--allow", "a.*"});
        const auto plan = explained(glove, options);
        return plan ? text_of(plan->find("mediation")->find("transport")) : "";
    };
    EXPECT_EQ(way({}), "bridge");
    EXPECT_EQ(way({"--agent-transport", "bridge"}), "bridge");
    EXPECT_EQ(way({"--agent-transport", "stdio"}), "stdio");
    EXPECT_EQ(way({"--net", "sealed"}), "stdio");
    EXPECT_EQ(way({"--net", "sealed", "--agent-transport", "stdio"}), "stdio");
    expect_usage_error(glove({"run", "--upstream", "a=true", "--net", "sealed", "--agent-transport",
                              "bridge", "--", "true"}),
                       "--agent-transport stdio");
    expect_usage_error(
        glove({"run", "--upstream", "a=true", "--agent-transport", "x", "--", "true"}),
        "--agent-transport");
    expect_usage_error(
        glove({"run", "--upstream", "a=true", "--agent-transport", "stdio", "--pty", "--", "true"}),
        "--pty");
}

TEST(RunOptions, ThePlanShowsWhatStandsInside) {
    const glove_program glove;
    const auto plan = explained(glove, {"--upstream", "a=true", "--allow", "a.*"});
    ASSERT_TRUE(plan);
    std::vector<std::string> inside;
    for (const auto& entry : *plan->find("tree")->as_array())
        if (text_of(entry.find("path")).starts_with("/run/glove"))
            inside.push_back(text_of(entry.find("path")) + " " + text_of(entry.find("kind")) + " " +
                             text_of(entry.find("access")));
    EXPECT_THAT(inside, testing::ElementsAre(
                            "/run/glove directory read", "/run/glove/bin directory read",
                            "/run/glove/bin/glove-mcp bind read", "/run/glove/mcp.json file read"));
    EXPECT_THAT(texts_of(plan->find("environment")), testing::Contains("GLOVE_MCP_CONFIG"));
    const auto sealed =
        explained(glove, {"--upstream", "a=true", "--allow", "a.*", "--net", "sealed"});
    ASSERT_TRUE(sealed);
    EXPECT_THAT(texts_of(sealed->find("environment")), Not(testing::Contains("GLOVE_MCP_CONFIG")));
    const auto text =
        glove({"run", "--upstream", "a=true,x", "--allow", "a.t", "--explain", "--", "true"});
    EXPECT_THAT(text.out, HasSubstr("Tools\n  a: true x, outside of the sandbox\n"));
}

TEST(RunOptions, ItTakesEveryOptionOfExec) {
    const glove_program glove;
    const auto exec = glove({"exec", "--help"}).out;
    const auto run = glove({"run", "--help"}).out;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = exec.find("  --", at)) != std::string::npos; ++at, ++count) {
        const auto option = exec.substr(at, exec.find_first_of(" ,\n", at + 4) - at);
        EXPECT_THAT(run, HasSubstr(option));
    }
    EXPECT_GT(count, 15U);
}

TEST(RunOptions, AProfileNamesServersAndRules) {
    const glove_program glove;
    glove.place().directory("home/.config/glove");
    std::ofstream{glove.place() / "home/.config/glove/config.toml"}
        << "[profile.p]\nupstream = [\"a=true\"]\nallow = [\"a.t\"]\ndeny = [\"a.u\"]\n";
    std::filesystem::permissions(glove.place() / "home/.config/glove/config.toml",
                                 std::filesystem::perms::owner_read);
    const auto plan = explained(glove, {"-p", "p", "--allow", "a.v"});
    ASSERT_TRUE(plan);
    const auto& mediation = *plan->find("mediation");
    EXPECT_EQ(text_of((*mediation.find("upstreams")->as_array())[0].find("name")), "a");
    EXPECT_EQ(texts_of(mediation.find("allow")), (words{"a.t", "a.v"}));
    EXPECT_EQ(texts_of(mediation.find("deny")), (words{"a.u"}));
    const auto exec = glove({"exec", "-p", "p", "--explain", "--", "true"});
    EXPECT_EQ(exec.status, 0) << exec.err;
    EXPECT_THAT(exec.out, HasSubstr("the tools of the profile p are left out"));
}

TEST(RunOptions, ExecHasNoneOfTheToolOptions) {
    const glove_program glove;
    for (const auto* option : {"--upstream", "--allow", "--policy", "--relay"})
        expect_usage_error(glove({"exec", option, "a=true", "--", "true"}), "not an option");
}

TEST(Mcp, TakesOneOfFourActions) {
    const glove_program glove;
    for (const auto* word : {"", "start", "Serve"})
        expect_usage_error(glove({"mcp", word, "--upstream", "a=true"}),
                           "serve, tools, check, pin");
    expect_usage_error(glove({"mcp", "tools", "a.b", "--upstream", "a=true"}), "takes no tool");
    expect_usage_error(glove({"mcp", "serve", "--json", "--upstream", "a=true"}), "--json");
    expect_usage_error(glove({"mcp", "check", "--accept", "a", "--upstream", "a=true"}),
                       "--accept");
    expect_usage_error(glove({"mcp", "tools", "--audit-log", "x", "--upstream", "a=true"}),
                       "puts nothing on record");
    expect_usage_error(glove({"mcp", "tools", "--upstream", "a=true", "--", "true"}),
                       "takes no command");
}

} // namespace
