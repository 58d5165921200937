// Servers: starts, deaths, restarts, and what they may not do.
#include "scene.hpp"

namespace glove::kernel {

namespace {

void end(scene& s, std::size_t which, const std::string& how = "ended with status 3",
         const std::string& tail = "") {
    s.turn([&] { s.gate().upstream_ended(which, how, tail); });
}

TEST(Upstream, IsGreetedAndListed) {
    scene s;
    s.start();
    EXPECT_EQ(s.started.count(0), 1U);
    EXPECT_FALSE(s.gate().is_ready());
    s.turn([&] { s.gate().upstream_started(0); });
    const auto request = s.got(0);
    EXPECT_NE(request.find(q("'method':'initialize','params':{'protocolVersion':'2025-11-25',"
                             "'capabilities':{},'clientInfo':{'name':'glove','version':'1'}}")),
              std::string::npos)
        << request;
    // As some servers do, before they answer.
    s.upstream(0, scene::notification("notifications/tools/list_changed"));
    s.upstream(0, scene::answer(request, q("{'protocolVersion':'2025-06-18','capabilities':{"
                                           "'tools':{}}}")));
    EXPECT_NE(s.got(0).find("notifications/initialized"), std::string::npos);
    EXPECT_FALSE(s.gate().is_ready());
    s.answer_lists(0, scene::tool("echo"));
    EXPECT_TRUE(s.gate().is_ready());
    EXPECT_EQ(s.log.kept.size(), 2U);
    EXPECT_EQ(s.log.kept[0].status, audit::status::pending);
    EXPECT_EQ(s.log.kept[1].action, audit::action::initialize);
    EXPECT_EQ(s.log.kept[1].status, audit::status::ok);
    EXPECT_EQ(s.log.kept[1].tool, "up");
    EXPECT_EQ(s.log.kept[0].call, s.log.kept[1].call);
}

TEST(Upstream, ThatIsRequiredAndCannotStartEndsTheRun) {
    scene s;
    s.start();
    end(s, 0, "could not be executed", "boom");
    ASSERT_TRUE(s.gate().problem());
    EXPECT_NE(s.gate().problem()->detail.find("up could not be started: could not be executed"),
              std::string::npos)
        << s.gate().problem()->detail;
    EXPECT_NE(s.gate().problem()->detail.find("boom"), std::string::npos);
    EXPECT_FALSE(s.gate().is_ready());
    EXPECT_EQ(s.log.kept.back().status, audit::status::transport_error);
}

TEST(Upstream, ThatIsNotRequiredIsDoneWithout) {
    scene_options what;
    what.upstreams = {"a", "b"};
    what.required = false;
    scene s{what};
    s.start();
    end(s, 0);
    EXPECT_FALSE(s.gate().is_ready());
    s.come_up(1, scene::tool("echo"));
    EXPECT_TRUE(s.gate().is_ready());
    EXPECT_FALSE(s.gate().problem());
    const auto a = s.enter();
    s.agent(a, scene::call("1", "b__echo"));
    EXPECT_FALSE(s.got_nothing(1));
}

TEST(Upstream, HasItsTimeToStartAndIsNotCancelled) {
    scene_options what;
    what.gateway.start_timeout = 3s;
    scene s{what};
    s.start();
    s.turn([&] { s.gate().upstream_started(0); });
    (void)s.got(0);
    s.pass(2999ms);
    EXPECT_TRUE(s.stopped.empty());
    s.pass(1ms);
    EXPECT_EQ(s.stopped.count(0), 1U);
    EXPECT_TRUE(s.got_nothing(0));
    end(s, 0);
    EXPECT_NE(s.gate().problem()->detail.find("3000 ms (--start-timeout)"), std::string::npos);
}

TEST(Upstream, HasOneTimeForAllOfItsStart) {
    scene_options what;
    what.gateway.start_timeout = 3s;
    scene s{what};
    s.start();
    s.pass(1s);
    s.turn([&] { s.gate().upstream_started(0); });
    const auto hello = s.got(0);
    s.pass(1s);
    s.upstream(0, scene::answer(hello, q("{'protocolVersion':'2025-06-18','capabilities':{'tools':"
                                         "{}}}")));
    (void)s.got(0);
    s.pass(500ms);
    s.upstream(0, scene::answer(s.got(0), q("{'tools':[],'nextCursor':'1'}")));
    s.pass(400ms);
    s.upstream(0, scene::answer(s.got(0), q("{'tools':[],'nextCursor':'2'}")));
    EXPECT_FALSE(s.got_nothing(0));
    s.pass(99ms);
    EXPECT_TRUE(s.stopped.empty());
    s.pass(1ms);
    EXPECT_EQ(s.stopped.count(0), 1U);
    end(s, 0);
    EXPECT_NE(s.gate().problem()->detail.find("3000 ms (--start-timeout)"), std::string::npos);
}

TEST(Upstream, HasOneTimeForAllPagesOfAList) {
    scene_options what;
    what.gateway.start_timeout = 3s;
    what.relay = {"prompts"};
    scene s{what};
    s.start();
    s.come_up(0, scene::tool("echo"), "{'tools':{},'prompts':{}}");
    const auto a = s.enter();
    s.pass(10s);
    s.agent(a, scene::request("1", "prompts/list"));
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(s.is_quiet(a));
        const auto request = s.got(0);
        s.pass(i < 4 ? 700ms : 199ms);
        if (i < 4)
            s.upstream(0, scene::answer(request, q("{'prompts':[],'nextCursor':'" +
                                                   std::to_string(i) + "'}")));
    }
    EXPECT_TRUE(s.is_quiet(a));
    s.pass(1ms);
    EXPECT_NE(s.heard(a).find(q("'prompts':[]")), std::string::npos);
    EXPECT_TRUE(s.stopped.empty());
}

TEST(Upstream, OneIsNotHeardMoreThanItsShare) {
    scene_options what;
    what.upstreams = {"loud", "calm"};
    what.relay = {"prompts"};
    scene s{what};
    s.start();
    s.come_up(0, scene::tool("echo"), "{'prompts':{'listChanged':true}}");
    s.come_up(1, scene::tool("echo"), "{'prompts':{'listChanged':true}}");
    const auto fails = [&](std::size_t which, const std::string& words) {
        s.pass(1s);
        s.upstream(which, scene::notification("notifications/prompts/list_changed"));
        s.upstream(which, q("{'jsonrpc':'2.0','id':" + scene::id_of(s.got(which)) +
                            ",'error':{'code':1,'message':'" + words + "'}}"));
    };
    for (int i = 0; i < 5; ++i) fails(0, "same");
    EXPECT_EQ(s.notes.size(), 1U);
    for (int i = 0; i < 63; ++i) fails(0, std::to_string(i));
    EXPECT_EQ(s.notes.size(), 64U);
    EXPECT_EQ(s.notes.back().find("left out"), std::string::npos);
    for (int i = 0; i < 100; ++i) fails(0, "more" + std::to_string(i));
    EXPECT_EQ(s.notes.size(), 65U);
    EXPECT_NE(s.notes.back().find("loud, which is left out"), std::string::npos);
    fails(1, "once");
    EXPECT_EQ(s.notes.size(), 66U);
}

TEST(Upstream, AnAnswerToInitializeThatIsNoneFailsTheStart) {
    for (const std::string result :
         {"{}", "{'protocolVersion':'1999-01-01','capabilities':{}}", "[]", "7",
          "{'protocolVersion':'2025-06-18'}", "{'protocolVersion':7,'capabilities':{}}"}) {
        scene s;
        s.start();
        s.turn([&] { s.gate().upstream_started(0); });
        s.upstream(0, scene::answer(s.got(0), q(result)));
        EXPECT_EQ(s.stopped.count(0), 1U) << result;
        end(s, 0);
        EXPECT_TRUE(s.gate().problem());
    }
}

TEST(Upstream, BannersBeforeTheFirstAnswerAreSkippedUpToABound) {
    for (const unsigned lines : {64U, 65U}) {
        scene s;
        s.start();
        s.turn([&] { s.gate().upstream_started(0); });
        const auto request = s.got(0);
        for (unsigned i = 0; i < lines; ++i) s.upstream(0, "Server starting...");
        EXPECT_EQ(s.notes.size(), 1U);
        EXPECT_EQ(s.stopped.count(0), lines == 65U ? 1U : 0U);
        s.upstream(0,
                   scene::answer(request, q("{'protocolVersion':'2025-06-18','capabilities':{}}")));
        EXPECT_EQ(s.gate().is_ready(), lines == 64U);
    }
}

TEST(Upstream, ThatDiesLeavesNoCallWithoutAnAnswer) {
    scene s;
    const auto a = s.ready();
    const auto b = s.enter();
    s.agent(a, scene::call("1", "up__echo"));
    s.agent(a, scene::call("'1'", "up__echo"));
    s.agent(b, scene::call("1", "up__echo"));
    end(s, 0);
    EXPECT_NE(s.heard(a).find("-31001"), std::string::npos);
    EXPECT_NE(s.heard(a).find("-31001"), std::string::npos);
    EXPECT_NE(s.heard(b).find("-31001"), std::string::npos);
    EXPECT_EQ(s.log.kept.back().error, "up: ended with status 3");
    // Meanwhile calls fail at once.
    s.agent(a, scene::call("2", "up__echo"));
    EXPECT_NE(s.heard(a).find("-31001"), std::string::npos);
    s.agent(a, scene::request("3", "tools/list"));
    EXPECT_NE(s.heard(a).find("up__echo"), std::string::npos);
}

TEST(Upstream, IsStartedAgainAndNoCallIsSentAgain) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    (void)s.got(0);
    end(s, 0);
    (void)s.heard(a);
    EXPECT_EQ(s.started.count(0), 1U);
    EXPECT_EQ(s.gate().deadline(), s.time.now + 1s);
    s.pass(999ms);
    EXPECT_EQ(s.started.count(0), 1U);
    s.pass(1ms);
    EXPECT_EQ(s.started.count(0), 2U);
    s.come_up(0, scene::tool("echo"));
    EXPECT_TRUE(s.got_nothing(0));
    s.agent(a, scene::call("2", "up__echo"));
    EXPECT_NE(s.got(0).find("tools/call"), std::string::npos);
    EXPECT_TRUE(s.is_quiet(a)); // the list is what it was
}

TEST(Upstream, StartsAreBoundedAndFurtherAndFurtherApart) {
    scene s;
    (void)s.ready();
    std::chrono::nanoseconds pause = 1s;
    for (int i = 0; i < 5; ++i) {
        end(s, 0);
        EXPECT_EQ(s.gate().deadline(), s.time.now + pause) << i;
        s.pass(pause);
        EXPECT_EQ(s.started.count(0), 2U + static_cast<unsigned>(i));
        s.come_up(0, scene::tool("echo"));
        pause = std::min<std::chrono::nanoseconds>(pause * 2, 30s);
    }
    end(s, 0);
    EXPECT_FALSE(s.gate().deadline());
    s.pass(1h);
    EXPECT_EQ(s.started.count(0), 6U);
    EXPECT_FALSE(s.gate().problem()); // the run goes on
}

TEST(Upstream, ALongLifeForgivesEarlierDeaths) {
    scene s;
    (void)s.ready();
    for (int i = 0; i < 12; ++i) {
        s.pass(60s);
        end(s, 0);
        EXPECT_EQ(s.gate().deadline(), s.time.now + 1s);
        s.pass(1s);
        s.come_up(0, scene::tool("echo"));
    }
}

TEST(Upstream, ARestartThatFailsIsTriedAgain) {
    scene s;
    const auto a = s.ready();
    end(s, 0);
    s.pass(1s);
    end(s, 0, "could not be executed");
    EXPECT_FALSE(s.gate().problem());
    EXPECT_EQ(s.gate().deadline(), s.time.now + 2s);
    s.pass(2s);
    s.come_up(0, scene::tool("echo"));
    s.agent(a, scene::call("1", "up__echo"));
    EXPECT_FALSE(s.got_nothing(0));
}

TEST(Upstream, AMessageThatIsTooLongEndsItsCallAndNotTheServer) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    s.agent(a, scene::call("2", "up__echo"));
    const auto first = s.got(0);
    const auto second = s.got(0);
    const auto long_line = [&](const std::string& begin, const std::string& end = "") {
        s.turn([&] {
            s.gate().upstream_line(
                0, {.text = begin, .too_long = true, .bytes = 16'777'217, .tail = end});
        });
    };
    long_line(q("{'jsonrpc':'2.0','id':" + scene::id_of(first) + ",'result':{'x':'"));
    const auto heard = s.heard(a);
    EXPECT_NE(heard.find(q("'id':1")), std::string::npos);
    EXPECT_NE(heard.find("-31003"), std::string::npos);
    EXPECT_NE(heard.find("16777217 bytes and may have 16777216"), std::string::npos);
    EXPECT_TRUE(s.is_quiet(a));
    // Whose this one is nobody knows.
    long_line(q("{'result':{'x':'"));
    EXPECT_NE(s.heard(a).find("-31003"), std::string::npos);
    EXPECT_EQ(s.stopped.count(0), 0U);
    s.upstream(0, scene::answer(second, "{}")); // late
    EXPECT_TRUE(s.is_quiet(a));
    s.agent(a, scene::call("3", "up__echo"));
    s.upstream(0, scene::answer(s.got(0), "{}"));
    EXPECT_NE(s.heard(a).find(q("'id':3,'result'")), std::string::npos);
    // Many servers write the id last.
    s.agent(a, scene::call("4", "up__echo"));
    s.agent(a, scene::call("5", "up__echo"));
    (void)s.got(0);
    const auto last = s.got(0);
    long_line(q("{'result':{'x':'"), q("'},'jsonrpc':'2.0','id':" + scene::id_of(last) + "}"));
    EXPECT_NE(s.heard(a).find(q("'id':5,'error'")), std::string::npos);
    EXPECT_TRUE(s.is_quiet(a));
}

TEST(Upstream, AMessageThatIsTooLongEndsOneThatIsNotUpYet) {
    scene s;
    s.start();
    s.turn([&] { s.gate().upstream_started(0); });
    s.turn(
        [&] { s.gate().upstream_line(0, {.text = "{", .too_long = true, .bytes = 16'777'217}); });
    EXPECT_EQ(s.stopped.count(0), 1U);
}

TEST(Upstream, NothingOfOneThatIsBeingStoppedIsBelieved) {
    scene s;
    const auto a = s.ready();
    s.agent(a, scene::call("1", "up__echo"));
    const auto request = s.got(0);
    s.upstream(0, "garbage");
    (void)s.heard(a);
    s.upstream(0, scene::answer(request, "{}"));
    s.upstream(0, scene::request("1", "ping"));
    EXPECT_TRUE(s.is_quiet(a));
    EXPECT_TRUE(s.got_nothing(0));
    end(s, 0);
    EXPECT_EQ(s.gate().deadline(), s.time.now + 1s);
}

TEST(Upstream, OneServersDeathIsNotAnothers) {
    scene_options what;
    what.upstreams = {"a", "b"};
    scene s{what};
    s.start();
    s.come_up(0, scene::tool("echo"));
    s.come_up(1, scene::tool("echo"));
    const auto agent = s.enter();
    s.agent(agent, scene::call("1", "a__echo"));
    s.agent(agent, scene::call("2", "b__echo"));
    const auto request = s.got(1);
    // An answer of one server to a call of another is none.
    s.upstream(0, scene::answer(request, "{}"));
    EXPECT_TRUE(s.is_quiet(agent));
    end(s, 0);
    EXPECT_NE(s.heard(agent).find(q("'id':1,'error'")), std::string::npos);
    s.upstream(1, scene::answer(request, "{}"));
    EXPECT_NE(s.heard(agent).find(q("'id':2,'result'")), std::string::npos);
}

} // namespace

} // namespace glove::kernel
