// Upstreams in words: the option, the customary file, and what a set of them must be.
#include <glove/mcp/upstream_process.hpp>
#include <gmock/gmock.h>

namespace {

using namespace glove;
using namespace glove::mcp;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

auto step_of(const error& why) -> std::string { return std::string{why.step}; }

TEST(UpstreamOption, IsANameAndACommandSplitAtCommas) {
    const auto one = parse_upstream("files=npx,-y,@scope/server-files,/srv/a b=c");
    ASSERT_TRUE(one);
    EXPECT_EQ(one->name, "files");
    EXPECT_THAT(one->argv, ElementsAre("npx", "-y", "@scope/server-files", "/srv/a b=c"));
    EXPECT_TRUE(one->required);
    EXPECT_FALSE(one->directory);
    EXPECT_THAT(parse_upstream("a=b")->argv, ElementsAre("b"));
    EXPECT_THAT(parse_upstream("a=b,,c,")->argv, ElementsAre("b", "", "c", ""));
    EXPECT_THAT(parse_upstream("a=./b\"'\\,$x")->argv, ElementsAre("./b\"'\\", "$x"));
}

TEST(UpstreamOption, ANameHasOneTo32OfItsCharacters) {
    const std::string longest(32, 'n');
    for (const auto& name : {std::string{"a"}, std::string{"A-b_9"}, std::string{"0"}, longest})
        EXPECT_EQ(parse_upstream(name + "=x").value().name, name);
    for (const auto& name :
         {std::string{}, longest + "n", std::string{"a.b"}, std::string{"a__b"}, std::string{"a b"},
          std::string{"-a"}, std::string{"_a"}, std::string{"a_"}, std::string{"a/b"},
          std::string{"\xc3\xa9"}, std::string{"glove"}}) {
        const auto refused = parse_upstream(name + "=x");
        ASSERT_FALSE(refused) << name;
        EXPECT_EQ(step_of(refused.error()), "mcp.upstream");
        EXPECT_FALSE(refused.error().remedy.empty());
    }
    EXPECT_TRUE(parse_upstream("Glove=x"));
}

TEST(UpstreamOption, ACommandIsNeeded) {
    for (const auto* word : {"a=", "a=,x", "npx", "", "npx,-y,server"}) {
        const auto refused = parse_upstream(word);
        ASSERT_FALSE(refused) << word;
        EXPECT_EQ(step_of(refused.error()), "mcp.upstream");
        EXPECT_FALSE(refused.error().remedy.empty());
    }
}

TEST(UpstreamOption, AMessageHoldsNoArgument) {
    for (const auto* word : {"a__b=x,--token,s3cret", "npx,--token,s3cret"}) {
        const auto refused = parse_upstream(word);
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().detail + refused.error().remedy, Not(HasSubstr("s3cret")));
    }
}

TEST(Upstreams, EachNameStandsOnce) {
    const auto a = parse_upstream("a=x").value();
    const auto b = parse_upstream("b=x").value();
    EXPECT_TRUE(check_upstreams({}));
    EXPECT_TRUE(check_upstreams({a, b}));
    const auto refused = check_upstreams({a, b, a});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::conflict);
    EXPECT_EQ(step_of(refused.error()), "mcp.upstreams");
    EXPECT_THAT(refused.error().detail, HasSubstr("'a'"));
}

TEST(Upstreams, AtMost64) {
    std::vector<upstream_wish> all;
    for (int i = 0; i < 64; ++i)
        all.push_back(parse_upstream("u" + std::to_string(i) + "=x").value());
    EXPECT_TRUE(check_upstreams(all));
    all.push_back(parse_upstream("one-more=x").value());
    const auto refused = check_upstreams(all);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::limit_exceeded);
}

// A wish that did not come from a word is held to the same rules.
TEST(Upstreams, EachIsOneThatCouldBeStarted) {
    const auto sound = parse_upstream("a=x,y").value();
    const auto checked = [&](auto change) {
        auto wish = sound;
        change(wish);
        return check_upstreams({wish}).has_value();
    };
    EXPECT_TRUE(checked([](auto& w) {
        w.environment = {{"_A9", "v=\n"}, {"B", ""}};
        w.passed = {"TOKEN"};
        w.directory = "here";
    }));
    const std::string nul("a\0b", 3);
    EXPECT_FALSE(checked([](auto& w) { w.argv.clear(); }));
    EXPECT_FALSE(checked([](auto& w) { w.argv.front().clear(); }));
    EXPECT_FALSE(checked([](auto& w) { w.name = "glove"; }));
    EXPECT_FALSE(checked([](auto& w) { w.directory = ""; }));
    EXPECT_FALSE(checked([&](auto& w) { w.argv.push_back(nul); }));
    EXPECT_FALSE(checked([&](auto& w) { w.directory = nul; }));
    EXPECT_FALSE(checked([&](auto& w) { w.environment = {{"A", nul}}; }));
    for (const auto* name : {"", "A=B", "9A", "A-B", "A B", "\xc3\x84"}) {
        EXPECT_FALSE(checked([&](auto& w) { w.environment = {{name, "v"}}; })) << name;
        EXPECT_FALSE(checked([&](auto& w) { w.passed = {name}; })) << name;
    }
}

auto parsed(std::string_view text) -> result<upstream_file> {
    return parse_upstream_file(text, "some/mcp.json");
}

auto server(std::string_view members) -> std::string {
    return R"({"mcpServers":{"fs":{)" + std::string{members} + "}}}";
}

// The step and the words of the refusal; empty when it was taken.
auto refusal_of(std::string_view text) -> std::string {
    const auto read = parsed(text);
    if (read) return {};
    EXPECT_THAT(read.error().detail, HasSubstr("some/mcp.json: "));
    return step_of(read.error()) + ": " + read.error().detail + " / " + read.error().remedy;
}

TEST(UpstreamFile, TheCustomaryForm) {
    const auto read = parsed(R"({
      "$schema": "x",
      "mcpServers": {
        "fs": {"command": "npx", "args": ["-y", "server", ""], "env": {"TOKEN": "t", "EMPTY": ""},
               "cwd": "/srv", "type": "stdio", "timeout": 1.5, "alwaysAllow": ["a"]},
        "Other-1": {"args": ["one"], "command": "/opt/server", "disabled": false}
      },
      "inputs": []
    })");
    ASSERT_TRUE(read) << read.error().detail;
    ASSERT_EQ(read->upstreams.size(), 2U);
    const auto& fs = read->upstreams[0];
    EXPECT_EQ(fs.name, "fs");
    EXPECT_THAT(fs.argv, ElementsAre("npx", "-y", "server", ""));
    EXPECT_THAT(fs.environment, ElementsAre(Pair("TOKEN", "t"), Pair("EMPTY", "")));
    EXPECT_THAT(fs.passed, IsEmpty());
    EXPECT_EQ(fs.directory, "/srv");
    EXPECT_TRUE(fs.required);
    EXPECT_EQ(read->upstreams[1].name, "Other-1");
    EXPECT_THAT(read->upstreams[1].argv, ElementsAre("/opt/server", "one"));
    EXPECT_THAT(read->ignored, ElementsAre("$schema", "inputs", "fs.timeout", "fs.alwaysAllow"));
}

TEST(UpstreamFile, ADisabledServerIsLeftOutAndListed) {
    const auto read = parsed(R"({"mcpServers":{
        "off": {"disabled": true, "url": "https://example.org"}, "on": {"command": "x"}}})");
    ASSERT_TRUE(read);
    ASSERT_EQ(read->upstreams.size(), 1U);
    EXPECT_EQ(read->upstreams[0].name, "on");
    EXPECT_THAT(read->ignored, ElementsAre("off (disabled)"));
    EXPECT_THAT(refusal_of(server(R"("command":"x","disabled":"yes")")),
                HasSubstr("mcpServers.fs.disabled is neither"));
}

TEST(UpstreamFile, AServerOfTheNetworkIsRefusedByName) {
    for (const auto* member :
         {R"("url":"https://example.org/mcp")", R"("type":"http")", R"("type":"sse")",
          R"("type":"streamable-http")", R"("type":1)", R"("transport":"sse")",
          R"("httpUrl":"https://example.org")", R"("serverUrl":"https://example.org")"}) {
        const auto words = refusal_of(server(std::string{R"("command":"x",)"} + member));
        EXPECT_THAT(words, HasSubstr("mcp.config: some/mcp.json: mcpServers.fs.")) << member;
        EXPECT_THAT(words, HasSubstr("only stdio servers"));
        EXPECT_THAT(words, Not(HasSubstr("example.org")));
    }
    EXPECT_THAT(refusal_of(server(R"("command":"x","envFile":".env")")), HasSubstr("fs.envFile"));
    EXPECT_EQ(refusal_of(server(R"("command":"x","transport":"stdio")")), "");
}

TEST(UpstreamFile, EachMemberHasItsType) {
    EXPECT_THAT(refusal_of(server(R"("args":[])")), HasSubstr("mcpServers.fs has no command"));
    for (const auto* command : {"1", "null", "[\"x\"]", "\"\""})
        EXPECT_THAT(refusal_of(server(std::string{R"("command":)"} + command)),
                    HasSubstr("mcpServers.fs.command is"));
    const auto with = [](std::string_view more) {
        return refusal_of(server(R"("command":"x",)" + std::string{more}));
    };
    EXPECT_THAT(with(R"("args":"-y")"), HasSubstr("mcpServers.fs.args is not an array"));
    EXPECT_THAT(with(R"("args":["a",1])"), HasSubstr("mcpServers.fs.args.1 is not a string"));
    EXPECT_THAT(with(R"("env":["A=b"])"), HasSubstr("mcpServers.fs.env is not an object"));
    EXPECT_THAT(with(R"("env":{"A":1})"), HasSubstr("mcpServers.fs.env.A is not a string"));
    EXPECT_THAT(with(R"("env":{"A=B":"1"})"), HasSubstr("mcpServers.fs.env.A=B is no name"));
    EXPECT_THAT(with(R"("cwd":1)"), HasSubstr("mcpServers.fs.cwd is not a string"));
    EXPECT_THAT(with(R"("cwd":"")"), HasSubstr("mcpServers.fs.cwd is empty"));
    EXPECT_EQ(with(R"("args":[],"env":{},"cwd":"/")"), "");
    for (const auto* cwd : {".", "..", "work", "./work", "~", "~/work"})
        EXPECT_THAT(with(R"("cwd":")" + std::string{cwd} + R"(")"),
                    HasSubstr("mcpServers.fs.cwd is no absolute path"))
            << cwd;
    for (const auto* text : {R"({"mcpServers":[]})", R"({"mcpServers":{"fs":[]}})", "{}", "[]",
                             R"({"servers":{"fs":{"command":"x"}}})"})
        EXPECT_THAT(refusal_of(text), HasSubstr("mcp.config: ")) << text;
    EXPECT_EQ(refusal_of(R"({"mcpServers":{}})"), "");
}

TEST(UpstreamFile, WhatAnotherClientWouldFillInIsRefused) {
    for (const auto* members :
         {R"("command":"${HOME}/x")", R"("command":"x","args":["${input:key}"])",
          R"("command":"x","env":{"TOKEN":"s3cret${TOKEN}"})",
          R"("command":"x","cwd":"${workspaceFolder}")"}) {
        const auto words = refusal_of(server(members));
        EXPECT_THAT(words, HasSubstr("variables are not filled in")) << members;
        EXPECT_THAT(words, HasSubstr("--upstream-env fs:NAME"));
        EXPECT_THAT(words, Not(HasSubstr("s3cret")));
    }
    EXPECT_EQ(refusal_of(server(R"("command":"x","args":["$HOME","{}","$"],"env":{"A":"$B"})")),
              "");
}

TEST(UpstreamFile, NamesAreThoseOfTheOption) {
    for (const auto* name : {"a.b", "a__b", "", "glove", "\\u001b[2J"}) {
        const auto words =
            refusal_of(R"({"mcpServers":{")" + std::string{name} + R"(":{"command":"x"}}})");
        EXPECT_NE(words, "") << name;
        EXPECT_THAT(words, Not(HasSubstr("\x1b")));
    }
}

TEST(UpstreamFile, IsStrictJson) {
    EXPECT_THAT(refusal_of(server(R"("command":"x","command":"y")")), HasSubstr("json.repeated: "));
    EXPECT_THAT(refusal_of(R"({"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}})"),
                HasSubstr("json.repeated: "));
    EXPECT_THAT(refusal_of(server(R"("command":"x","\u0063ommand":"y")")),
                HasSubstr("json.repeated: "));
    EXPECT_THAT(refusal_of(server(R"("command":"a\u0000b")")), HasSubstr("json.nul: "));
    EXPECT_THAT(refusal_of(server("\"command\":\"x\" // note\n")), HasSubstr("json.syntax: "));
    EXPECT_THAT(refusal_of(server("\"command\":\"x\",")), HasSubstr("json.syntax: "));
    EXPECT_THAT(refusal_of(""), HasSubstr("json.syntax: "));
}

TEST(UpstreamFile, IsBounded) {
    auto text = server(R"("command":"x")");
    text.append((1UL << 20) - text.size(), ' ');
    EXPECT_EQ(refusal_of(text), "");
    EXPECT_THAT(refusal_of(text + " "), HasSubstr("json.size: "));
    std::string many;
    for (int i = 0; i < 65; ++i)
        many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"command":"x"})";
    const auto read = parsed(R"({"mcpServers":{)" + many + "}}");
    ASSERT_FALSE(read);
    EXPECT_EQ(step_of(read.error()), "mcp.upstreams");
}

} // namespace
