#include <fstream>
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

TEST(RunOptions, AServerThatTheCommandCanReplaceIsTold) {
    const glove_program glove;
    put(glove, "server.py", "pass");
    const auto said = [&](const char* access) {
        return glove({"run", "--upstream", "a=python3,server.py", "--allow", "a.*", access, ".",
                      "--explain", "--", "true"})
            .out;
    };
    EXPECT_THAT(said("--workspace"), HasSubstr("of which the server a is made"));
    EXPECT_THAT(said("--read"), Not(HasSubstr("of which the server a is made")));
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
