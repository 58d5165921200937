// tools/call: ids, the policy, the record, what the server may answer, and limits.
#include "scene.hpp"

namespace glove::kernel {

namespace {

[[nodiscard]] auto result(const std::string& text) -> std::string {
    return q("{'content':[{'type':'text','text':'" + text + "'}]}");
}

TEST(Call, GoesThereAndBackWithTheAgentsOwnId) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("7", "up__echo", "{ 'm' :\t'hi' }"));
    const auto request = s.got(0);
    EXPECT_EQ(request,
              q("{'jsonrpc':'2.0','id':" + scene::id_of(request) +
                ",'method':'tools/call','params':{'name':'echo','arguments':{'m':'hi'}}}"));
    EXPECT_TRUE(s.is_quiet(a));
    s.upstream(0, scene::answer(request, result("hi")));
    EXPECT_EQ(s.heard(a), "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":" + result("hi") + "}");
}

TEST(Call, IsOnRecordBeforeAndAfter) {
    scene s;
    const auto a = s.ready();
    s.log.kept.clear();
    s.agent(a, scene::call("1", "up__echo", "{'m':1}"));
    ASSERT_EQ(s.log.kept.size(), 1U);
    const auto intent = s.log.kept[0];
    EXPECT_EQ(intent.action, audit::action::call_tool);
    EXPECT_EQ(intent.tool, "up.echo");
    EXPECT_EQ(intent.arguments, q("{'m':1}"));
    EXPECT_EQ(intent.status, audit::status::pending);
    EXPECT_EQ(intent.run, "run");
    EXPECT_EQ(intent.call.size(), 32U);
    s.time.now += 5ms;
    s.upstream(0, scene::answer(s.got(0), result("x")));
    ASSERT_EQ(s.log.kept.size(), 2U);
    EXPECT_EQ(s.log.kept[1].status, audit::status::ok);
    EXPECT_EQ(s.log.kept[1].call, intent.call);
    EXPECT_EQ(s.log.kept[1].latency_ns, 5'000'000);
    EXPECT_FALSE(s.log.kept[1].error);
}

TEST(Call, IdsKeepTheirType) {
    scene s;
    const auto a = s.ready();
    for (const std::string id : {"1", "'1'", "9007199254740993", "0", "-5", "'\\u0031'"}) {
        s.agent(a, scene::call(id, "up__echo"));
    }
    std::vector<std::string> requests;
    while (!s.got_nothing(0)) requests.push_back(s.got(0));
    ASSERT_EQ(requests.size(), 6U);
    for (std::size_t i = requests.size(); i-- > 0;)
        s.upstream(0, scene::answer(requests[i], result(std::to_string(i))));
    for (const std::string id : {"'\\u0031'", "-5", "0", "9007199254740993", "'1'", "1"})
        EXPECT_TRUE(s.heard(a).starts_with(q("{'jsonrpc':'2.0','id':" + id + ",'result'")));
}

TEST(Call, AnIdThatIsOpenIsRefusedWithoutIt) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    s.agent(a, scene::call("1", "up__echo"));
    EXPECT_NE(s.heard(a).find(q("'id':null,'error':{'code':-32600")), std::string::npos);
    const auto request = s.got(0);
    EXPECT_TRUE(s.got_nothing(0));
    s.upstream(0, scene::answer(request, result("x")));
    EXPECT_NE(s.heard(a).find(q("'id':1,'result'")), std::string::npos);
    s.agent(a, scene::call("1", "up__echo")); // free again
    EXPECT_FALSE(s.got_nothing(0));
}

TEST(Call, ADenialIsAToolErrorThatNamesTheRule) {
    scene_options what;
    what.rules = {{"up.*"}, {"up.write"}, {"up.read:path=/srv/"}, {}};
    scene s{what};
    const auto a = s.ready(scene::tool("read") + "," + scene::tool("write"));
    s.log.kept.clear();
    s.agent(a, scene::call("1", "up__write"));
    const auto denied = s.heard(a);
    EXPECT_NE(denied.find(q("'text':'policy denied: ")), std::string::npos) << denied;
    EXPECT_NE(denied.find(q("'isError':true")), std::string::npos);
    EXPECT_TRUE(s.got_nothing(0));
    ASSERT_EQ(s.log.kept.size(), 1U);
    EXPECT_EQ(s.log.kept[0].status, audit::status::invalid_arguments);
    EXPECT_EQ(s.log.kept[0].tool, "up.write");
    EXPECT_TRUE(s.log.kept[0].error);
}

TEST(Call, AnUnknownToolIsAProtocolError) {
    scene s;
    const auto a = s.ready();
    s.log.kept.clear();
    s.agent(a, scene::call("1", "up__nothing"));
    EXPECT_EQ(s.heard(a), q("{'jsonrpc':'2.0','id':1,'error':{'code':-32602,'message':'Unknown "
                            "tool: up__nothing'}}"));
    ASSERT_EQ(s.log.kept.size(), 1U);
    EXPECT_EQ(s.log.kept[0].status, audit::status::tool_not_found);
    s.agent(a, scene::call("2", "echo")); // the server's name is no name for agents
    EXPECT_NE(s.heard(a).find("Unknown tool: echo"), std::string::npos);
    EXPECT_TRUE(s.got_nothing(0));
}

TEST(Call, OddParamsAreRefused) {
    scene s;
    const auto a = s.ready();
    for (const std::string params :
         {"{}", "{'name':1}", "{'name':'up__echo','arguments':null}",
          "{'name':'up__echo','arguments':[]}", "{'Name':'up__echo'}",
          "{'name':'up__echo','task':{}}", "{'name':'up__echo','_meta':1}",
          "{'name':'up__echo','_meta':{'progressToken':1.5}}",
          "{'name':'up__echo','_meta':{'progressToken':null}}"}) {
        s.agent(a, scene::request("1", "tools/call", params));
        EXPECT_NE(s.heard(a).find("-32602"), std::string::npos) << params;
    }
    s.agent(a, q("{'jsonrpc':'2.0','id':1,'method':'tools/call'}"));
    EXPECT_NE(s.heard(a).find("-32602"), std::string::npos);
    s.agent(a, q("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':['up__echo']}"));
    EXPECT_NE(s.heard(a).find("-32602"), std::string::npos);
    EXPECT_TRUE(s.got_nothing(0));
}

TEST(Call, WithoutArgumentsNoneAreSent) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::request("1", "tools/call", "{'name':'up__echo'}"));
    EXPECT_EQ(s.got(0).find("arguments"), std::string::npos);
}

TEST(Call, DuplicateKeysAreRefusedAtEveryLevel) {
    scene s;
    const auto a = s.ready();
    for (const std::string line :
         {"{'jsonrpc':'2.0','id':1,'method':'tools/call','method':'ping'}",
          "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'up__echo','n\\u0061me':"
          "'x'}}",
          "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'up__echo','arguments':{"
          "'p':1,'p':2}}}",
          "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'up__echo','_meta':{'p':{"
          "'q':1,'q':2}}}}"}) {
        s.agent(a, q(line));
        EXPECT_NE(s.heard(a).find("-32600"), std::string::npos) << line;
    }
    EXPECT_TRUE(s.got_nothing(0));
}

// A server that takes other bytes for the end of a line would see a second message.
TEST(Call, NoOtherLineBreakReachesTheServer) {
    scene s;
    const auto a = s.ready();
    s.agent(a, q("{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'up__echo',\r"
                 "'arguments':{'a':'\xe2\x80\xa8'\r},'_meta':\r{'x':\r{'y':'\xe2\x80\xa9'}\r}}}"));
    const auto request = s.got(0);
    EXPECT_EQ(request.find('\r'), std::string::npos);
    EXPECT_NE(request.find(q("'arguments':{'a':'\\u2028'}")), std::string::npos) << request;
    EXPECT_NE(request.find(q("'_meta':{'x':{'y':'\\u2029'}}")), std::string::npos) << request;
    s.upstream(0, q("{'jsonrpc':'2.0','id':" + scene::id_of(request) +
                    ",'result':\r{'content':[\r],'x':'\xe2\x80\xa8 \xe2\x80\xaf'}\r}"));
    EXPECT_EQ(s.heard(a), q("{'jsonrpc':'2.0','id':1,'result':{'content':[],'x':'\\u2028 "
                            "\xe2\x80\xaf'}}"));
}

// A long result is a part of what was read, and is changed where a short one would be.
TEST(Call, ALongResultIsPassedOnWithoutACopyUnlessSomethingOfItMustChange) {
    scene s;
    const auto a = s.ready();
    mcp::line_reader reader;
    const auto answer_with = [&](const std::string& text) {
        s.agent(a, scene::call("1", "up__echo"));
        reader.feed("{\"jsonrpc\":\"2.0\",\"id\":" + scene::id_of(s.got(0)) +
                    ",\"result\":{\"x\":\"" + text + "\"}}\n");
        s.turn([&] { s.gate().upstream_line(0, reader.next().value()); });
        EXPECT_FALSE(reader.next());
        return s.heard(a);
    };
    const auto whole = [](const std::string& text) {
        return "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"" + text + "\"}}";
    };
    const std::string large(100'000, 'x');
    EXPECT_EQ(answer_with(large), whole(large));
    EXPECT_EQ(s.shared_parts, 1U);
    EXPECT_EQ(answer_with(large + "\xe2\x80\xa8"), whole(large + "\\u2028"));
    EXPECT_EQ(answer_with("short"), whole("short"));
    EXPECT_EQ(s.shared_parts, 1U);
}

// Whether a rule looks at the arguments or not, the server gets the same text.
TEST(Call, ArgumentsAreWrittenAnewInOneWay) {
    const std::string odd = R"({ "a" : [ 1.50e+1 , -0 ,{ } ], "\u0062":"\/\u00e9\u2028\n" })";
    std::string sent[2];
    for (const bool judged : {false, true}) {
        scene_options what;
        if (judged)
            what.policy_file = "[tool.\"up.echo\"]\nallow = true\nadditional = true\n"
                               "required = [\"/b\"]\n";
        scene s{what};
        const auto a = s.ready();
        s.agent(a, R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__echo",)"
                   R"("arguments":)" +
                       odd + "}}");
        sent[judged] = s.got(0);
        s.agent(a, scene::call("2", "up__echo", "{'a':'x'}"));
        EXPECT_EQ(s.got_nothing(0), judged);
    }
    EXPECT_EQ(sent[0], sent[1]);
    EXPECT_NE(sent[0].find("\"arguments\":{\"a\":[1.50e+1,-0,{}],\"b\":\"/\xc3\xa9\\u2028\\n\"}"),
              std::string::npos)
        << sent[0];
}

TEST(Call, UnknownMembersOfAResultPass) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    const auto odd = q("{'content':[{'type':'new','_meta':{'a':1.50}}],'structuredContent':[1e400],"
                       "'_meta':{'v':null},'isError':false,'vendor':{}}");
    s.upstream(0, scene::answer(s.got(0), odd));
    EXPECT_EQ(s.heard(a), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" + odd + "}");
}

TEST(Call, OutcomesAreToldApart) {
    scene s;
    const auto a = s.ready();
    s.log.kept.clear();
    s.agent(a, scene::call("1", "up__echo"));
    s.upstream(0, scene::answer(s.got(0), q("{'content':[],'isError':true}")));
    EXPECT_NE(s.heard(a).find(q("'isError':true")), std::string::npos);
    EXPECT_EQ(s.log.kept[1].status, audit::status::execution_error);
    EXPECT_EQ(s.log.kept[1].error, "tool error");
    s.agent(a, scene::call("1", "up__echo"));
    const auto problem = q("{'code':-32042,'message':'go there','data':{'url':[1]}}");
    s.upstream(0,
               q("{'jsonrpc':'2.0','id':" + scene::id_of(s.got(0)) + ",'error':") + problem + "}");
    EXPECT_EQ(s.heard(a), "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":" + problem + "}");
    EXPECT_EQ(s.log.kept[3].status, audit::status::execution_error);
    EXPECT_EQ(s.log.kept[3].error, "error -32042: go there");
}

TEST(Call, ALateOrStrangeAnswerIsDropped) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    const auto request = s.got(0);
    s.upstream(0, q("{'jsonrpc':'2.0','id':99999,'result':{}}"));
    s.upstream(0, q("{'jsonrpc':'2.0','id':'none','result':{}}"));
    s.upstream(0, scene::answer(request, result("first")));
    s.upstream(0, scene::answer(request, result("second")));
    EXPECT_NE(s.heard(a).find("first"), std::string::npos);
    EXPECT_TRUE(s.is_quiet(a));
    EXPECT_EQ(s.gate().counts().stray_answers, 3U);
    EXPECT_TRUE(s.stopped.empty());
}

TEST(Call, AnIdGivenBackAsAStringFailsThatCallAtOnce) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    s.agent(a, scene::call("2", "up__echo"));
    s.upstream(0, q("{'jsonrpc':'2.0','id':'" + scene::id_of(s.got(0)) + "','result':{}}"));
    EXPECT_NE(s.heard(a).find(q("'id':1,'error':{'code':-31004")), std::string::npos);
    s.upstream(0, scene::answer(s.got(0), result("two")));
    EXPECT_NE(s.heard(a).find("two"), std::string::npos);
}

TEST(Call, ResultAndErrorTogetherFailThatCallAtOnce) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    s.agent(a, scene::call("2", "up__echo"));
    s.upstream(0, q("{'jsonrpc':'2.0','id':" + scene::id_of(s.got(0)) +
                    ",'result':{'content':[]},'error':{'code':1,'message':'x'}}"));
    EXPECT_NE(s.heard(a).find(q("'id':1,'error':{'code':-31004")), std::string::npos);
    EXPECT_TRUE(s.stopped.empty());
    s.upstream(0, scene::answer(s.got(0), result("two")));
    EXPECT_NE(s.heard(a).find("two"), std::string::npos);
}

TEST(Call, AResultThatIsNoObjectIsRefused) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    s.upstream(0, scene::answer(s.got(0), "[]"));
    EXPECT_NE(s.heard(a).find("-31004"), std::string::npos);
    EXPECT_EQ(s.log.kept.back().status, audit::status::transport_error);
}

TEST(Call, EveryLineThatIsNoMessageFailsWhatWaits) {
    const std::string deep(100'000, '[');
    for (const auto& line : std::vector<std::string>{
             "hello", q("{'jsonrpc':'2.0',"), "\xff\xfe",
             q("{'jsonrpc':'2.0','id':1,'result':{'x':'\xff'}}"), "[]", "7",
             q("{'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'x'}}"),
             "{\"jsonrpc\":\"2.0\",\"x\":" + deep + std::string(100'000, ']') + "}"}) {
        scene s;
        const auto a = s.ready();
        s.agent(a, scene::call("1", "up__echo"));
        s.agent(a, scene::call("2", "up__echo"));
        s.upstream(0, line);
        EXPECT_NE(s.heard(a).find("-31004"), std::string::npos) << line.substr(0, 60);
        EXPECT_NE(s.heard(a).find("-31004"), std::string::npos);
        EXPECT_EQ(s.stopped.count(0), 1U);
        EXPECT_EQ(s.log.kept.back().status, audit::status::transport_error);
    }
}

TEST(Call, AResultMayHaveItsLimitAndNotAByteMore) {
    scene_options what;
    what.gateway.result_bytes = 200;
    scene s{what};
    const auto a = s.ready();
    const auto empty = result("").size();
    s.agent(a, scene::call("1", "up__echo"));
    s.upstream(0, scene::answer(s.got(0), result(std::string(200 - empty, 'x'))));
    EXPECT_EQ(s.heard(a).find("isError"), std::string::npos);
    s.agent(a, scene::call("1", "up__echo"));
    s.upstream(0, scene::answer(s.got(0), result(std::string(201 - empty, 'x'))));
    const auto refused = s.heard(a);
    EXPECT_NE(refused.find("201 bytes and may have 200 (--result-bytes)"), std::string::npos);
    EXPECT_NE(refused.find(q("'isError':true")), std::string::npos);
    EXPECT_EQ(s.log.kept.back().status, audit::status::transport_error);
}

TEST(Call, TheLimitsOfAToolAreItsOwn) {
    scene_options what;
    what.policy_file = "[tool.\"up.echo\"]\nallow = true\ntimeout = \"2s\"\n"
                       "result_bytes = \"30\"\ncalls = 2\n";
    what.rules = {{"up.other"}, {}, {}, {}};
    scene s{what};
    const auto a = s.ready(scene::tool("echo") + "," + scene::tool("other"));
    s.agent(a, scene::call("1", "up__echo"));
    s.agent(a, scene::call("2", "up__other"));
    s.pass(2s);
    EXPECT_NE(s.heard(a).find(q("'id':1,'error':{'code':-31002")), std::string::npos);
    EXPECT_TRUE(s.is_quiet(a));
    (void)s.got(0);
    s.upstream(0, scene::answer(s.got(0), result(std::string(100, 'x'))));
    EXPECT_EQ(s.heard(a).find("isError"), std::string::npos);
    EXPECT_NE(s.got(0).find("notifications/cancelled"), std::string::npos);
    s.agent(a, scene::call("3", "up__echo"));
    s.upstream(0, scene::answer(s.got(0), result(std::string(100, 'x'))));
    EXPECT_NE(s.heard(a).find("may have 30"), std::string::npos);
    s.agent(a, scene::call("4", "up__echo"));
    EXPECT_NE(s.heard(a).find("policy denied: "), std::string::npos);
}

TEST(Call, TimesOutAndTheServerIsTold) {
    scene_options what;
    what.gateway.call_timeout = 5s;
    scene s{what};
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    const auto request = s.got(0);
    EXPECT_EQ(s.gate().deadline(), s.time.now + 5s);
    s.pass(4999ms);
    EXPECT_TRUE(s.is_quiet(a));
    s.pass(1ms);
    EXPECT_NE(s.heard(a).find(q("'id':1,'error':{'code':-31002,'message':'the server up did not "
                                "answer within 5000 ms'")),
              std::string::npos);
    EXPECT_NE(s.got(0).find(q("'requestId':" + scene::id_of(request))), std::string::npos);
    EXPECT_EQ(s.log.kept.back().status, audit::status::transport_error);
    s.upstream(0, scene::answer(request, result("late")));
    EXPECT_TRUE(s.is_quiet(a));
    EXPECT_FALSE(s.gate().deadline());
}

// One that is over and that nothing has left of never runs.
TEST(Call, IsTakenBackWhenItIsOverBeforeItHasLeft) {
    scene s;
    const auto a = s.ready();
    s.upstream_reads = false;
    const auto begin = [&](const std::string& id) {
        s.agent(a, scene::call(id, "up__echo"));
        EXPECT_EQ(s.calls_held[0].size(), 1U);
    };
    const auto is_taken_back = [&] {
        EXPECT_TRUE(s.calls_held[0].empty());
        EXPECT_TRUE(s.got_nothing(0)); // no cancellation of what it never heard of
        EXPECT_EQ(s.log.kept.back().status, audit::status::transport_error);
    };
    begin("1");
    s.agent(a, scene::notification("notifications/cancelled", "{'requestId':1}"));
    is_taken_back();
    begin("2");
    s.pass(300s);
    EXPECT_NE(s.heard(a).find("-31002"), std::string::npos);
    is_taken_back();
    begin("3");
    s.turn([&] { s.gate().agent_gone(a); });
    is_taken_back();
}

TEST(Call, CancelledByTheAgentIsForgotten) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("'x'", "up__echo"));
    const auto request = s.got(0);
    s.agent(a, scene::notification("notifications/cancelled", "{'requestId':'y'}"));
    s.agent(a, scene::notification("notifications/cancelled", "{'requestId':'x','reason':'no'}"));
    EXPECT_EQ(s.got(0), q("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                          "'requestId':" +
                          scene::id_of(request) + ",'reason':'no'}}"));
    s.upstream(0, scene::answer(request, result("late")));
    EXPECT_TRUE(s.is_quiet(a));
    EXPECT_EQ(s.log.kept.back().error, "cancelled by the agent");
    EXPECT_EQ(s.gate().open_requests(a), 0U);
}

TEST(Call, ProgressOfOneAgentNeverReachesAnother) {
    scene s;
    const auto a = s.ready();
    const auto b = s.enter();
    const std::string meta = ",'_meta':{'progressToken':'t','traceparent':'00-1'}";
    s.agent(a, scene::call("1", "up__echo", "{}", meta));
    s.agent(b, scene::call("1", "up__echo", "{}", meta));
    const auto first = s.got(0);
    const auto second = s.got(0);
    EXPECT_NE(
        first.find(q("'_meta':{'progressToken':" + scene::id_of(first) + ",'traceparent':'00-1'}")),
        std::string::npos)
        << first;
    s.upstream(0, scene::notification("notifications/progress",
                                      "{'progress':1,'progressToken':" + scene::id_of(second) +
                                          ",'message':'m'}"));
    EXPECT_TRUE(s.is_quiet(a));
    EXPECT_EQ(s.heard(b), q("{'jsonrpc':'2.0','method':'notifications/progress','params':{"
                            "'progressToken':'t','progress':1,'message':'m'}}"));
    // The agent's own token means nothing to the server, and neither does a call that is over.
    s.upstream(0,
               scene::notification("notifications/progress", "{'progress':1,'progressToken':'t'}"));
    s.upstream(0, scene::answer(first, result("x")));
    (void)s.heard(a);
    s.upstream(0, scene::notification("notifications/progress", "{'progress':2,'progressToken':" +
                                                                    scene::id_of(first) + "}"));
    EXPECT_TRUE(s.is_quiet(a));
    EXPECT_TRUE(s.is_quiet(b));
}

TEST(Call, TwoAgentsShareAServerAndNothingElse) {
    scene s;
    const auto a = s.ready();
    const auto b = s.enter();
    s.agent(a, scene::call("1", "up__echo"));
    s.agent(b, scene::call("1", "up__echo"));
    const auto first = s.got(0);
    const auto second = s.got(0);
    // Neither can cancel the other's.
    s.agent(a, scene::notification("notifications/cancelled",
                                   "{'requestId':" + scene::id_of(second) + "}"));
    EXPECT_TRUE(s.got_nothing(0));
    s.upstream(0, scene::answer(second, result("for b")));
    s.upstream(0, scene::answer(first, result("for a")));
    EXPECT_NE(s.heard(a).find("for a"), std::string::npos);
    EXPECT_NE(s.heard(b).find("for b"), std::string::npos);
}

TEST(Call, AnAgentThatGoesTakesItsCallsAlong) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    const auto request = s.got(0);
    s.turn([&] { s.gate().agent_gone(a); });
    EXPECT_NE(s.got(0).find(q("'requestId':" + scene::id_of(request))), std::string::npos);
    EXPECT_EQ(s.log.kept.back().error, "the agent has gone");
    const auto b = s.enter(); // in its place
    EXPECT_EQ(a, b);
    s.upstream(0, scene::answer(request, result("for the one that went")));
    EXPECT_TRUE(s.is_quiet(b));
}

TEST(Call, SoManyMayBeOpenAndNoMore) {
    scene s;
    const auto a = s.ready();
    for (std::size_t i = 0; i < most_calls_of_a_session; ++i)
        s.agent(a, scene::call(std::to_string(i), "up__echo"));
    EXPECT_TRUE(s.is_quiet(a));
    s.agent(a, scene::call("'more'", "up__echo"));
    EXPECT_NE(s.heard(a).find("-31005"), std::string::npos);
    std::vector<session_id> others;
    for (std::size_t i = 1; i < most_calls / most_calls_of_a_session; ++i) {
        others.push_back(s.enter());
        for (std::size_t j = 0; j < most_calls_of_a_session; ++j)
            s.agent(others.back(), scene::call(std::to_string(j), "up__echo"));
        EXPECT_TRUE(s.is_quiet(others.back()));
    }
    const auto last = s.enter();
    s.agent(last, scene::call("1", "up__echo"));
    EXPECT_NE(s.heard(last).find("-31005"), std::string::npos);
    s.upstream(0, scene::answer(s.got(0), result("x")));
    s.agent(last, scene::call("1", "up__echo"));
    EXPECT_TRUE(s.is_quiet(last));
}

TEST(Call, AServerThatDoesNotReadGetsNoMore) {
    scene s;
    const auto a = s.ready();
    s.upstream_bytes = most_waiting_bytes - 1;
    s.agent(a, scene::call("1", "up__echo"));
    EXPECT_TRUE(s.is_quiet(a));
    s.upstream_bytes = most_waiting_bytes;
    s.agent(a, scene::call("2", "up__echo"));
    EXPECT_NE(s.heard(a).find("-31005"), std::string::npos);
}

TEST(Call, LongArgumentsAreRecordedAsTheirDigest) {
    scene s;
    const auto a = s.ready();
    const auto with = [](std::size_t size) { // of the whole object
        return "{'m':'" + std::string(size - 8, 'x') + "'}";
    };
    s.agent(a, scene::call("1", "up__echo", with(64UL << 10)));
    EXPECT_EQ(s.log.kept.back().arguments, q(with(64UL << 10)));
    s.agent(a, scene::call("2", "up__echo", with((64UL << 10) + 1)));
    EXPECT_TRUE(s.log.kept.back().arguments.value().starts_with(q("{'bytes':65537,'sha256':'")));
    (void)s.got(0);
    EXPECT_NE(s.got(0).find(std::string(60'000, 'x')), std::string::npos);
}

TEST(Call, SecretsOfAResultAreRedacted) {
    scene_options what;
    what.rules = {};
    what.policy_file = "[tool.\"up.echo\"]\nallow = true\nredact = [\"sk-[a-z]+\"]\n";
    scene s{what};
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    s.upstream(0, scene::answer(s.got(0), result("key sk-abc end")));
    const auto heard = s.heard(a);
    EXPECT_EQ(heard.find("sk-abc"), std::string::npos);
    EXPECT_NE(heard.find("key [redacted] end"), std::string::npos) << heard;
}

TEST(Call, ProgressOfARedactedToolIsNumbersOnly) {
    scene_options what;
    what.rules = {{"up.other"}, {}, {}, {}};
    what.policy_file = "[tool.\"up.echo\"]\nallow = true\nredact = [\"sk-[a-z]+\"]\n";
    scene s{what};
    const auto a = s.ready(scene::tool("echo") + "," + scene::tool("other"));
    for (const std::string name : {"up__echo", "up__other"}) {
        s.agent(a, scene::call("1", name, "{}", ",'_meta':{'progressToken':'t'}"));
        const auto request = s.got(0);
        s.upstream(0, scene::notification("notifications/progress",
                                          "{'progressToken':" + scene::id_of(request) +
                                              ",'progress':1,'total':2.5,'message':'sk-abc'}"));
        const std::string words = name == "up__other" ? ",'message':'sk-abc'" : "";
        EXPECT_EQ(s.heard(a), q("{'jsonrpc':'2.0','method':'notifications/progress','params':{"
                                "'progressToken':'t','progress':1,'total':2.5" +
                                words + "}}"));
        s.upstream(0, scene::answer(request, result("x")));
        (void)s.heard(a);
    }
}

TEST(Call, ARedactedResultMayHaveTheLimitAndNoMore) {
    scene_options what;
    what.rules = {};
    what.policy_file = "[tool.\"up.echo\"]\nallow = true\nredact = [\"y\"]\nresult_bytes = "
                       "\"200\"\n";
    scene s{what};
    const auto a = s.ready();
    const auto heard = [&](std::size_t times) {
        s.agent(a, scene::call("1", "up__echo"));
        s.upstream(0, scene::answer(s.got(0), q("{'a':'" + std::string(times, 'y') + "'}")));
        return s.heard(a);
    };
    // {"a":"..."} with ten bytes for each.
    EXPECT_NE(heard(19).find("[redacted]"), std::string::npos);
    const auto refused = heard(20);
    EXPECT_NE(refused.find("the result has 208 bytes and may have 200"), std::string::npos)
        << refused;
    EXPECT_EQ(s.log.kept.back().status, audit::status::transport_error);
}

TEST(Call, TheRecordOfARedactedErrorIsRedactedToo) {
    scene_options what;
    what.rules = {};
    what.policy_file = "[tool.\"up.echo\"]\nallow = true\nredact = [\"sk-[a-z]+\", \"mess.ge\"]\n";
    scene s{what};
    const auto a = s.ready();
    const auto fails = [&](const std::string& failure) {
        s.agent(a, scene::call("1", "up__echo"));
        s.upstream(
            0, q("{'jsonrpc':'2.0','id':" + scene::id_of(s.got(0)) + ",'error':" + failure + "}"));
        return s.heard(a);
    };
    what.policy_file = "[tool.\"up.echo\"]\nallow = true\nredact = [\"sk-[a-z]+\"]\n";
    // A pattern that takes the names of the error's own members leaves no error to be shown.
    EXPECT_NE(fails("{'code':5,'message':'sk-abc'}").find("not shown"), std::string::npos);
    EXPECT_EQ(s.log.kept.back().error.value_or("").find("sk-abc"), std::string::npos);

    scene plain{what};
    const auto b = plain.ready();
    plain.agent(b, scene::call("1", "up__echo"));
    plain.upstream(0, q("{'jsonrpc':'2.0','id':" + scene::id_of(plain.got(0)) +
                        ",'error':{'code':5,'message':'no sk-abc'}}"));
    EXPECT_NE(plain.heard(b).find(q("'error':{'code':5,'message':'no [redacted]'}")),
              std::string::npos);
    EXPECT_EQ(plain.log.kept.back().error, "error 5: no [redacted]");
    EXPECT_EQ(plain.log.kept.back().status, audit::status::execution_error);
}

TEST(Call, OnlyWhatIsSentUsesUpTheMeter) {
    scene_options what;
    what.rules = {};
    what.policy_file = "[tool.\"up.echo\"]\nallow = true\ncalls = 1\n";
    scene s{what};
    const auto a = s.ready();
    s.upstream_bytes = most_waiting_bytes;
    for (int i = 0; i < 3; ++i) {
        s.agent(a, scene::call("1", "up__echo"));
        EXPECT_NE(s.heard(a).find("does not read"), std::string::npos);
    }
    // Nothing of it is on record as sent.
    for (const auto& each : s.log.kept)
        EXPECT_FALSE(each.action == audit::action::call_tool &&
                     each.status == audit::status::pending);
    s.upstream_bytes = 0;
    s.agent(a, scene::call("1", "up__echo"));
    s.upstream(0, scene::answer(s.got(0), result("x")));
    (void)s.heard(a);
    s.agent(a, scene::call("1", "up__echo"));
    EXPECT_NE(s.heard(a).find("policy denied"), std::string::npos);
}

TEST(Call, MetaIsBoundedAndWrittenAnew) {
    scene s;
    const auto a = s.ready();
    const auto with = [](std::size_t size) {
        return ",'_meta':{'x':'" + std::string(size - 8, 'm') + "'}";
    };
    s.agent(a, scene::call("1", "up__echo", "{}", with(16'384)));
    EXPECT_FALSE(s.got_nothing(0));
    (void)s.got(0);
    s.agent(a, scene::call("2", "up__echo", "{}", with(16'385)));
    EXPECT_NE(s.heard(a).find("params._meta may have at most 16 KiB"), std::string::npos);
    EXPECT_TRUE(s.got_nothing(0));
    s.agent(a, scene::call("3", "up__echo", "{}", ",'_meta':{ 'x' : [ 1.50 , '\\u0041' ] }"));
    EXPECT_NE(s.got(0).find(q("'_meta':{'x':[1.50,'A']}")), std::string::npos);
}

} // namespace

} // namespace glove::kernel
