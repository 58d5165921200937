// Agents: what is answered when, what is malformed, and how many there may be.
#include "scene.hpp"

namespace glove::kernel {

namespace {

[[nodiscard]] auto hello(const std::string& revision) -> std::string {
    return scene::request("0", "initialize",
                          "{'protocolVersion':'" + revision + "','capabilities':{}}");
}

TEST(Session, BeforeInitializeOnlyAFewRequestsAreAnswered) {
    scene s;
    s.start();
    s.come_up(0, scene::tool("echo"));
    std::optional<session_id> a;
    s.turn([&] { a = s.gate().open_session(); });
    s.agent(*a, scene::request("1", "ping"));
    EXPECT_EQ(s.heard(*a), q("{'jsonrpc':'2.0','id':1,'result':{}}"));
    s.agent(*a, scene::request("'server-discover-probe-1'", "server/discover"));
    EXPECT_NE(s.heard(*a).find("-32601"), std::string::npos);
    for (const std::string method : {"tools/list", "tools/call", "resources/read", "nothing"}) {
        s.agent(*a, scene::request("1", method, "{'name':'up__echo'}"));
        EXPECT_NE(s.heard(*a).find("-32600"), std::string::npos) << method;
    }
    EXPECT_TRUE(s.got_nothing(0));
    s.agent(*a, hello("2025-06-18"));
    EXPECT_NE(s.heard(*a).find("serverInfo"), std::string::npos);
    s.agent(*a, scene::request("2", "server/discover"));
    EXPECT_NE(s.heard(*a).find("-32601"), std::string::npos);
    s.agent(*a, hello("2025-06-18"));
    EXPECT_NE(s.heard(*a).find("-32600"), std::string::npos);
}

TEST(Session, EachSideNegotiatesByItself) {
    for (const std::string wanted : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
        scene s;
        s.start();
        s.turn([&] { s.gate().upstream_started(0); });
        const auto request = s.got(0);
        EXPECT_NE(request.find(q("'protocolVersion':'2025-11-25'")), std::string::npos);
        s.upstream(0, scene::answer(request, q("{'protocolVersion':'2024-11-05','capabilities':{"
                                               "}}")));
        std::optional<session_id> a;
        s.turn([&] { a = s.gate().open_session(); });
        s.agent(*a, hello(wanted));
        EXPECT_NE(s.heard(*a).find(q("'protocolVersion':'" + wanted + "'")), std::string::npos);
        EXPECT_EQ(s.gate().upstreams()[0].revision, "2024-11-05");
    }
    for (const std::string wanted : {"1999-01-01", "2026-07-28", ""}) {
        scene s;
        s.start();
        s.come_up(0, "");
        std::optional<session_id> a;
        s.turn([&] { a = s.gate().open_session(); });
        s.agent(*a, hello(wanted));
        EXPECT_NE(s.heard(*a).find(q("'protocolVersion':'2025-11-25'")), std::string::npos);
    }
}

TEST(Session, InitializeWithoutWhatItNeedsIsRefused) {
    scene s;
    s.start();
    s.come_up(0, "");
    std::optional<session_id> a;
    s.turn([&] { a = s.gate().open_session(); });
    for (const std::string params :
         {"{}", "{'protocolVersion':1,'capabilities':{}}", "{'protocolVersion':'2025-06-18'}",
          "{'protocolVersion':'2025-06-18','capabilities':[]}"}) {
        s.agent(*a, scene::request("1", "initialize", params));
        EXPECT_NE(s.heard(*a).find("-32602"), std::string::npos) << params;
    }
    s.agent(*a, hello("2025-06-18"));
    EXPECT_NE(s.heard(*a).find("result"), std::string::npos);
}

TEST(Session, WaitsForTheServersAndIsPingedMeanwhile) {
    scene s;
    s.start();
    std::optional<session_id> a;
    s.turn([&] { a = s.gate().open_session(); });
    s.agent(*a, hello("2025-06-18"));
    EXPECT_TRUE(s.is_quiet(*a));
    EXPECT_EQ(s.gate().open_requests(*a), 1U);
    s.agent(*a, scene::request("1", "ping"));
    (void)s.heard(*a);
    s.come_up(0, scene::tool("echo"));
    EXPECT_NE(s.heard(*a).find("serverInfo"), std::string::npos);
}

TEST(Session, WhatComesBeforeTheWelcomeWaitsForIt) {
    scene s;
    s.start();
    std::optional<session_id> a;
    s.turn([&] { a = s.gate().open_session(); });
    s.agent(*a, hello("2025-06-18"));
    s.agent(*a, scene::notification("notifications/initialized"));
    s.agent(*a, scene::request("2", "tools/list"));
    s.agent(*a, scene::call("3", "up__echo"));
    EXPECT_TRUE(s.is_quiet(*a));
    EXPECT_FALSE(s.gate().has_held_lines(*a));
    EXPECT_EQ(s.gate().open_requests(*a), 4U);
    s.agent(*a, scene::call("3", "up__echo"));
    EXPECT_NE(s.heard(*a).find("open request"), std::string::npos);
    s.agent(*a, scene::request("4", "ping"));
    EXPECT_NE(s.heard(*a).find(q("'id':4")), std::string::npos);
    s.come_up(0, scene::tool("echo"));
    EXPECT_NE(s.heard(*a).find("serverInfo"), std::string::npos);
    // What comes now does not overtake them.
    s.agent(*a, scene::call("5", "up__echo"));
    EXPECT_TRUE(s.got_nothing(0));
    while (s.gate().has_held_lines(*a)) s.turn([&] { EXPECT_TRUE(s.gate().take_held_line(*a)); });
    s.turn([&] { EXPECT_FALSE(s.gate().take_held_line(*a)); });
    EXPECT_EQ(s.gate().held_bytes(*a), 0U);
    EXPECT_NE(s.heard(*a).find("up__echo"), std::string::npos);
    for (const std::string id : {"3", "5"}) {
        s.upstream(0, scene::answer(s.got(0), "{}"));
        EXPECT_NE(s.heard(*a).find(q("'id':" + id)), std::string::npos);
    }
}

TEST(Session, WhatWaitsForTheWelcomeIsBounded) {
    for (const bool by_bytes : {false, true}) {
        scene s;
        s.start();
        std::optional<session_id> a;
        s.turn([&] { a = s.gate().open_session(); });
        s.agent(*a, hello("2025-06-18"));
        const std::string padding((1UL << 20) / 256, 'x');
        int held = 0;
        while (s.gate().takes_lines(*a)) {
            s.agent(*a, scene::request(std::to_string(++held), "tools/list",
                                       by_bytes ? "{'x':'" + padding + "'}" : "{}"));
            ASSERT_TRUE(s.is_quiet(*a));
        }
        EXPECT_EQ(held < 256, by_bytes);
        EXPECT_LE(held, 256);
        s.agent(*a, scene::request("1000", "tools/list"));
        EXPECT_NE(s.heard(*a).find("-31005"), std::string::npos);
        // None is forgotten when all ends.
        s.turn([&] { s.gate().end("told to"); });
        for (int i = 0; i <= held; ++i)
            EXPECT_NE(s.heard(*a).find("-31001"), std::string::npos) << i;
        EXPECT_TRUE(s.is_quiet(*a));
    }
}

TEST(Session, ServersThatAreNotRequiredAreWaitedForABit) {
    scene_options what;
    what.required = false;
    scene s{what};
    s.start();
    std::optional<session_id> a;
    s.turn([&] { a = s.gate().open_session(); });
    s.agent(*a, hello("2025-06-18"));
    s.pass(9999ms);
    EXPECT_TRUE(s.is_quiet(*a));
    EXPECT_EQ(s.gate().deadline(), s.time.now + 1ms);
    s.pass(1ms);
    EXPECT_NE(s.heard(*a).find("serverInfo"), std::string::npos);
    s.come_up(0, scene::tool("echo"));
    EXPECT_EQ(s.heard(*a), q("{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}"));
}

TEST(Session, MalformedLinesAreAnsweredAndCounted) {
    scene s;
    const auto a = s.ready();
    struct {
        std::string line, code, id;
    } const cases[] = {{"hello", "-32700", "null"},
                       {"\xff", "-32700", "null"},
                       {q("[{'jsonrpc':'2.0','id':1,'method':'ping'}]"), "-32600", "null"},
                       {q("{'jsonrpc':'2.0','id':null,'method':'ping'}"), "-32600", "null"},
                       {q("{'jsonrpc':'2.0','id':1.5,'method':'ping'}"), "-32600", "null"},
                       {q("{'jsonrpc':'1.0','id':5,'method':'ping'}"), "-32600", "5"},
                       {q("{'id':5,'method':'ping'}"), "-32600", "5"},
                       {q("{'jsonrpc':'2.0','id':5,'method':'ping','params':7}"), "-32600", "5"},
                       {std::string(100'000, '['), "-32600", "null"}};
    for (const auto& each : cases) {
        s.agent(a, each.line);
        const auto heard = s.heard(a);
        EXPECT_NE(heard.find("\"id\":" + each.id + ",\"error\":{\"code\":" + each.code),
                  std::string::npos)
            << each.line.substr(0, 60) << heard;
    }
    EXPECT_EQ(s.gate().counts().malformed_agent_lines, std::size(cases));
    s.agent(a, scene::request("1", "ping"));
    EXPECT_NE(s.heard(a).find("result"), std::string::npos);
}

TEST(Session, AHundredMalformedLinesInARowAreEnough) {
    scene s;
    const auto a = s.ready();
    for (int i = 0; i < 100; ++i) s.agent(a, "x");
    s.agent(a, scene::request("1", "ping")); // begins the count anew
    for (int i = 0; i < 100; ++i) s.agent(a, "x");
    EXPECT_TRUE(s.closed.empty());
    s.agent(a, "x");
    EXPECT_EQ(s.closed.count(a), 1U);
    s.to_agents[a].clear();
    s.agent(a, scene::request("2", "ping"));
    EXPECT_TRUE(s.is_quiet(a));
}

TEST(Session, AMessageThatIsTooLongIsToldWithTheLimit) {
    scene s;
    const auto a = s.ready();
    const auto begin = q("{'jsonrpc':'2.0','id':3,'method':'tools/call'");
    s.turn([&] { s.gate().agent_line(a, {.text = begin, .too_long = true, .bytes = 16'777'217}); });
    EXPECT_EQ(s.heard(a), q("{'jsonrpc':'2.0','id':3,'error':{'code':-31003,'message':'a message "
                            "may have 16777216 bytes and this one has 16777217'}}"));
    s.agent(a, scene::request("1", "ping"));
    EXPECT_NE(s.heard(a).find("result"), std::string::npos);
}

TEST(Session, SixtyFourAndNoMore) {
    scene s;
    s.start();
    s.turn([&] {
        for (std::size_t i = 0; i < most_sessions; ++i) EXPECT_TRUE(s.gate().open_session());
        EXPECT_FALSE(s.gate().open_session());
        s.gate().agent_gone(7);
        EXPECT_EQ(s.gate().open_session(), session_id{7});
    });
}

TEST(Session, ASlowAgentHearsNoNotificationsButEveryAnswer) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo", "{}", ",'_meta':{'progressToken':1}"));
    const auto request = s.got(0);
    s.agent_bytes = most_waiting_bytes;
    s.upstream(0, scene::notification("notifications/progress", "{'progress':1,'progressToken':" +
                                                                    scene::id_of(request) + "}"));
    EXPECT_TRUE(s.is_quiet(a));
    EXPECT_EQ(s.gate().counts().dropped_notifications, 1U);
    s.upstream(0, scene::answer(request, "{}"));
    EXPECT_NE(s.heard(a).find("result"), std::string::npos);
}

TEST(Session, TheEndAnswersEverything) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    s.turn([&] { s.gate().end("told to"); });
    EXPECT_NE(s.heard(a).find("-31001"), std::string::npos);
    EXPECT_EQ(s.closed.count(a), 1U);
    EXPECT_EQ(s.stopped.count(0), 1U);
    EXPECT_EQ(s.log.kept.back().status, audit::status::transport_error);
    s.agent(a, scene::request("2", "ping"));
    EXPECT_TRUE(s.is_quiet(a));
}

} // namespace

} // namespace glove::kernel
