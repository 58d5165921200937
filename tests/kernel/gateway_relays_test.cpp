// Every row of the protocol's table, relayed and not, in both directions.
#include "scene.hpp"
#include <glove/mcp/protocol.hpp>

namespace glove::kernel {

namespace {

const std::vector<std::string> everything{"resources", "prompts",  "completion",
                                          "logging",   "sampling", "elicitation"};
constexpr const char* all_capabilities =
    "{'tools':{'listChanged':true},'resources':{'subscribe':true,'listChanged':true},'prompts':{"
    "'listChanged':true},'completions':{},'logging':{}}";
constexpr const char* all_offers = "{'sampling':{},'elicitation':{},'roots':{'listChanged':true}}";

struct world {
    scene s;
    session_id a = 0;
    explicit world(std::vector<std::string> relay, std::vector<std::string> upstreams = {"up"})
        : s{make(std::move(relay), std::move(upstreams))} {}
    static auto make(std::vector<std::string> relay, std::vector<std::string> upstreams)
        -> scene_options {
        scene_options out;
        out.relay = std::move(relay);
        out.upstreams = std::move(upstreams);
        return out;
    }
    void begin() {
        s.start();
        for (std::size_t i = 0; i < s.started.size(); ++i)
            s.come_up(i, scene::tool("echo"), all_capabilities);
        a = s.enter(all_offers);
    }
};

// Params with which a request of an agent is in order.
[[nodiscard]] auto params_for(std::string_view method) -> std::string {
    if (method == "tools/call") return "{'name':'up__echo'}";
    if (method == "prompts/get") return "{'name':'up__p'}";
    if (method == "completion/complete")
        return "{'ref':{'type':'ref/prompt','name':'up__p'},'argument':{'name':'x','value':''}}";
    if (method == "logging/setLevel") return "{'level':'info'}";
    if (method.starts_with("resources/") && !method.ends_with("list")) return "{'uri':'x:a'}";
    return "{}";
}

TEST(Relay, EveryRequestOfAnAgentIsAnswered) {
    for (const bool relayed : {false, true}) {
        for (const auto& row : mcp::methods()) {
            if (row.from != mcp::sender::agent || row.shape != mcp::shape::request) continue;
            if (row.name == "initialize") continue;
            world w{relayed ? everything : std::vector<std::string>{}};
            w.s.prompts[0] = q("{'name':'p'}");
            w.begin();
            w.s.agent(w.a, scene::request("1", std::string{row.name}, params_for(row.name)));
            const bool known = row.treatment != mcp::treatment::refuse &&
                               (relayed || row.feature == mcp::feature::base ||
                                row.feature == mcp::feature::tools);
            if (known && w.s.is_quiet(w.a) && !w.s.got_nothing(0))
                w.s.upstream(0, scene::answer(w.s.got(0), "{}"));
            const auto heard = w.s.heard(w.a);
            EXPECT_EQ(heard.find("-32601") == std::string::npos, known) << row.name << heard;
            EXPECT_NE(heard.find(q("'id':1")), std::string::npos);
        }
        world w{relayed ? everything : std::vector<std::string>{}};
        w.begin();
        w.s.agent(w.a, scene::request("1", "no/such"));
        EXPECT_NE(w.s.heard(w.a).find("-32601"), std::string::npos);
    }
}

TEST(Relay, EveryRequestOfAServerIsAnswered) {
    for (const bool relayed : {false, true}) {
        for (const auto& row : mcp::methods()) {
            if (row.from != mcp::sender::upstream || row.shape != mcp::shape::request) continue;
            world w{relayed ? everything : std::vector<std::string>{}};
            w.begin();
            w.s.agent(w.a, scene::call("1", "up__echo"));
            (void)w.s.got(0);
            w.s.upstream(0, scene::request("0", std::string{row.name})); // 0 is an id
            const bool asks = relayed && row.treatment == mcp::treatment::relay;
            if (asks) {
                const auto asked = w.s.heard(w.a);
                EXPECT_NE(asked.find(std::string{row.name}), std::string::npos);
                w.s.agent(w.a, scene::answer(asked, q("{'yes':1}")));
            }
            const auto got = w.s.got(0);
            EXPECT_NE(got.find(q("'id':0")), std::string::npos);
            EXPECT_EQ(got.find("-32601") == std::string::npos, asks || row.name == "ping")
                << row.name << got;
        }
        world w{relayed ? everything : std::vector<std::string>{}};
        w.begin();
        w.s.upstream(0, scene::request("'s'", "no/such"));
        EXPECT_EQ(w.s.got(0), q("{'jsonrpc':'2.0','id':'s','error':{'code':-32601,'message':"
                                "'Method not found'}}"));
    }
}

TEST(Relay, NotificationsThatAreNotRelayedAreCounted) {
    world w{{}};
    w.begin();
    const auto before = w.s.gate().counts().dropped_notifications;
    for (const std::string method :
         {"notifications/resources/list_changed", "notifications/resources/updated",
          "notifications/prompts/list_changed", "notifications/message",
          "notifications/elicitation/complete", "notifications/tasks/status", "no/such"})
        w.s.upstream(0, scene::notification(method, "{'uri':'x:a','level':'info'}"));
    for (const std::string method :
         {"notifications/roots/list_changed", "notifications/tasks/status", "no/such"})
        w.s.agent(w.a, scene::notification(method));
    EXPECT_EQ(w.s.gate().counts().dropped_notifications, before + 10);
    EXPECT_TRUE(w.s.is_quiet(w.a));
    EXPECT_TRUE(w.s.got_nothing(0));
}

TEST(Relay, OnlyWhatIsRelayedIsOffered) {
    world none{{}};
    none.begin();
    EXPECT_NE(none.s.welcome.find(q("'capabilities':{'tools':{'listChanged':true}},")),
              std::string::npos);
    world all{everything};
    all.begin();
    EXPECT_NE(all.s.welcome.find(
                  q("'capabilities':{'tools':{'listChanged':true},'resources':{'subscribe':true,"
                    "'listChanged':true},'prompts':{'listChanged':true},'completions':{},"
                    "'logging':{}}")),
              std::string::npos)
        << all.s.welcome;
    // What the server does not offer is not offered either.
    scene s{world::make(everything, {"up"})};
    s.start();
    s.come_up(0, scene::tool("echo"));
    (void)s.enter();
    EXPECT_EQ(s.welcome.find("resources"), std::string::npos);
}

TEST(Relay, OnlyWhatGloveAnswersIsOfferedToServers) {
    scene s{world::make({"sampling", "elicitation"}, {"up"})};
    s.start();
    s.turn([&] { s.gate().upstream_started(0); });
    EXPECT_NE(s.got(0).find(q("'capabilities':{'sampling':{},'elicitation':{}}")),
              std::string::npos);
}

TEST(Relay, RootsComeFromThePolicy) {
    scene_options what;
    what.policy_file = "[roots]\nup = [\"/\"]\n";
    scene s{what};
    s.start();
    s.turn([&] { s.gate().upstream_started(0); });
    const auto request = s.got(0);
    EXPECT_NE(request.find(q("'capabilities':{'roots':{}}")), std::string::npos);
    s.upstream(0, scene::answer(request, q("{'protocolVersion':'2025-06-18','capabilities':{}}")));
    (void)s.got(0);
    const auto a = s.enter(all_offers);
    s.upstream(0, scene::request("0", "roots/list"));
    EXPECT_NE(s.got(0).find("file:///"), std::string::npos);
    EXPECT_TRUE(s.is_quiet(a));
}

TEST(Relay, ListsOfAllServersAreOne) {
    world w{everything, {"a", "b"}};
    w.s.resources[0] = q("{'uri':'x:1','name':'one\\u200b'}");
    w.s.resources[1] = q("{'uri':'y:1','name':'two'}");
    w.s.templates[1] = q("{'uriTemplate':'y:{id}','name':'t'}");
    w.s.prompts[0] = q("{'name':'p','description':'d'}");
    w.s.prompts[1] = q("{'name':'p'}");
    w.begin();
    w.s.agent(w.a, scene::request("1", "resources/list"));
    EXPECT_EQ(w.s.heard(w.a), q("{'jsonrpc':'2.0','id':1,'result':{'resources':[{'uri':'x:1',"
                                "'name':'one'},{'uri':'y:1','name':'two'}]}}"));
    w.s.agent(w.a, scene::request("2", "resources/templates/list"));
    EXPECT_EQ(w.s.heard(w.a), q("{'jsonrpc':'2.0','id':2,'result':{'resourceTemplates':[{"
                                "'uriTemplate':'y:{id}','name':'t'}]}}"));
    w.s.agent(w.a, scene::request("3", "prompts/list"));
    EXPECT_EQ(w.s.heard(w.a), q("{'jsonrpc':'2.0','id':3,'result':{'prompts':[{'name':'a__p',"
                                "'description':'d'},{'name':'b__p'}]}}"));
    // To whom they belong.
    const auto goes = [&](const std::string& method, const std::string& params, std::size_t where) {
        w.s.agent(w.a, scene::request("'g'", method, params));
        ASSERT_FALSE(w.s.got_nothing(where)) << method << params << w.s.heard(w.a);
        const auto request = w.s.got(where);
        EXPECT_TRUE(w.s.got_nothing(1 - where));
        w.s.upstream(where, scene::answer(request, q("{'ok':1}")));
        EXPECT_EQ(w.s.heard(w.a), q("{'jsonrpc':'2.0','id':'g','result':{'ok':1}}"));
    };
    goes("resources/read", "{'uri':'x:1'}", 0);
    goes("resources/read", "{'uri':'y:1'}", 1);
    goes("resources/read", "{'uri':'y:other'}", 1);
    goes("prompts/get", "{'name':'b__p','arguments':{}}", 1);
    goes("completion/complete", "{'ref':{'type':'ref/prompt','name':'a__p'},'argument':{}}", 0);
    goes("completion/complete", "{'ref':{'type':'ref/resource','uri':'y:{id}'},'argument':{}}", 1);
    w.s.agent(w.a, scene::request("4", "resources/read", "{'uri':'z:1'}"));
    EXPECT_NE(w.s.heard(w.a).find("no server lists this resource"), std::string::npos);
    w.s.agent(w.a, scene::request("5", "prompts/get", "{'name':'p'}"));
    EXPECT_NE(w.s.heard(w.a).find("there is no such prompt"), std::string::npos);
}

TEST(Relay, AResourceOfTwoServersIsNobodys) {
    world w{everything, {"a", "b"}};
    w.s.resources[0] = w.s.resources[1] = q("{'uri':'x:1','name':'n'}");
    w.begin();
    w.s.agent(w.a, scene::request("1", "resources/read", "{'uri':'x:1'}"));
    EXPECT_NE(w.s.heard(w.a).find("more than one server"), std::string::npos);
}

TEST(Relay, IsRecordedAndWrittenAnew) {
    world w{everything};
    w.s.prompts[0] = q("{'name':'p'}");
    w.begin();
    w.s.log.kept.clear();
    w.s.agent(w.a, q("{'jsonrpc':'2.0','id':1,'method':'prompts/get','params':{ 'name' :\r "
                     "'up__p','vendor':1.50,'_meta':{'progressToken':'t','k':2}}}"));
    const auto request = w.s.got(0);
    EXPECT_NE(request.find(q("'params':{'name':'p','vendor':1.50,'_meta':{'progressToken':") +
                           scene::id_of(request) + q(",'k':2}}")),
              std::string::npos)
        << request;
    ASSERT_EQ(w.s.log.kept.size(), 1U);
    EXPECT_EQ(w.s.log.kept[0].tool, "up.prompts/get");
    EXPECT_EQ(w.s.log.kept[0].status, audit::status::pending);
    w.s.upstream(0, q("{'jsonrpc':'2.0','id':" + scene::id_of(request) +
                      ",'error':{'code':-32002,'message':'no','data':{'uri':1}}}"));
    EXPECT_EQ(w.s.heard(w.a), q("{'jsonrpc':'2.0','id':1,'error':{'code':-32002,'message':'no',"
                                "'data':{'uri':1}}}"));
    EXPECT_EQ(w.s.log.kept.back().status, audit::status::execution_error);
}

TEST(Relay, ThePolicyNarrowsResourcesAndPrompts) {
    scene_options what = world::make(everything, {"up"});
    what.policy_file = "[resources.up]\nallow = [\"x:ok/\"]\n[prompts.up]\nallow = [\"good\"]\n";
    scene s{what};
    s.resources[0] = q("{'uri':'x:ok/1','name':'n'},{'uri':'x:no/1','name':'secret'}");
    s.prompts[0] = q("{'name':'good'},{'name':'bad'}");
    s.start();
    s.come_up(0, scene::tool("echo"), all_capabilities);
    const auto a = s.enter();
    s.agent(a, scene::request("1", "resources/list"));
    const auto list = s.heard(a);
    EXPECT_NE(list.find("x:ok/1"), std::string::npos);
    EXPECT_EQ(list.find("secret"), std::string::npos);
    s.agent(a, scene::request("2", "prompts/list"));
    EXPECT_EQ(s.heard(a).find("bad"), std::string::npos);
    s.log.kept.clear();
    s.agent(a, scene::request("3", "resources/read", "{'uri':'x:no/1'}"));
    EXPECT_NE(s.heard(a).find("policy denied"), std::string::npos);
    EXPECT_EQ(s.log.kept.back().status, audit::status::invalid_arguments);
    s.agent(a, scene::request("4", "resources/subscribe", "{'uri':'x:no/1'}"));
    EXPECT_NE(s.heard(a).find("policy denied"), std::string::npos);
    EXPECT_TRUE(s.got_nothing(0));
    s.agent(a, scene::request("5", "resources/read", "{'uri':'x:ok/2'}"));
    EXPECT_FALSE(s.got_nothing(0));
}

TEST(Relay, SubscriptionsBelongToTheirAgents) {
    world w{everything};
    w.begin();
    const auto b = w.s.enter();
    const auto subscribe = [&](session_id who, const std::string& method) {
        w.s.agent(who, scene::request("1", method, "{'uri':'x:1'}"));
        if (!w.s.got_nothing(0)) w.s.upstream(0, scene::answer(w.s.got(0), "{}"));
        EXPECT_NE(w.s.heard(who).find("result"), std::string::npos);
    };
    const auto update = [&] {
        w.s.upstream(0, scene::notification("notifications/resources/updated", "{'uri':'x:1'}"));
    };
    subscribe(w.a, "resources/subscribe");
    update();
    EXPECT_NE(w.s.heard(w.a).find("updated"), std::string::npos);
    EXPECT_TRUE(w.s.is_quiet(b));
    subscribe(b, "resources/subscribe");
    // The other one still wants it, so the server is not told.
    w.s.agent(w.a, scene::request("1", "resources/unsubscribe", "{'uri':'x:1'}"));
    EXPECT_TRUE(w.s.got_nothing(0));
    (void)w.s.heard(w.a);
    update();
    EXPECT_TRUE(w.s.is_quiet(w.a));
    EXPECT_NE(w.s.heard(b).find("updated"), std::string::npos);
    // After a new start it is made anew.
    w.s.turn([&] { w.s.gate().upstream_ended(0, "ended", ""); });
    w.s.pass(1s);
    w.s.turn([&] { w.s.gate().upstream_started(0); });
    w.s.upstream(0, scene::answer(w.s.got(0), q("{'protocolVersion':'2025-06-18','capabilities':") +
                                                  q(all_capabilities) + "}"));
    (void)w.s.got(0);
    std::string again;
    for (int i = 0; i < 8 && !w.s.got_nothing(0); ++i) {
        const auto request = w.s.got(0);
        if (request.find("subscribe") != std::string::npos) again = request;
        else if (request.find("tools/list") != std::string::npos)
            w.s.upstream(0, scene::answer(request, q("{'tools':[]}")));
        else if (request.find("templates") != std::string::npos)
            w.s.upstream(0, scene::answer(request, q("{'resourceTemplates':[]}")));
        else if (request.find("resources/list") != std::string::npos)
            w.s.upstream(0, scene::answer(request, q("{'resources':[]}")));
        else w.s.upstream(0, scene::answer(request, q("{'prompts':[]}")));
    }
    EXPECT_NE(again.find(q("'params':{'uri':'x:1'}")), std::string::npos);
    w.s.upstream(0, scene::answer(again, "{}"));
    w.s.turn([&] { w.s.gate().agent_gone(b); });
    EXPECT_NE(w.s.got(0).find("resources/unsubscribe"), std::string::npos);
}

// A request of Glove's own, with the method as it is.
[[nodiscard]] auto own_requests(scene& s, const std::string& method) -> std::size_t {
    return static_cast<std::size_t>(
        std::ranges::count_if(s.to_upstreams[0], [&](const std::string& each) {
            return each.find(q("'method':'" + method + "'")) != std::string::npos;
        }));
}

TEST(Relay, ManyLevelsAreOneRequestAndThenTheLast) {
    world w{everything};
    w.begin();
    for (int i = 0; i < 3000; ++i)
        w.s.agent(w.a, scene::request("1", "logging/setLevel",
                                      i % 2 == 0 ? "{'level':'info'}" : "{'level':'error'}"));
    EXPECT_EQ(own_requests(w.s, "logging/setLevel"), 1U);
    // Calls go on.
    w.s.to_agents[w.a].clear();
    const auto first = w.s.got(0);
    w.s.agent(w.a, scene::call("2", "up__echo"));
    EXPECT_NE(w.s.got(0).find("tools/call"), std::string::npos);
    w.s.upstream(0, scene::answer(first, "{}"));
    const auto second = w.s.got(0);
    EXPECT_NE(second.find(q("{'level':'error'}")), std::string::npos);
    w.s.upstream(0, scene::answer(second, "{}"));
    EXPECT_TRUE(w.s.got_nothing(0));
    // One that is never answered does not end it.
    w.s.agent(w.a, scene::request("3", "logging/setLevel", "{'level':'debug'}"));
    (void)w.s.got(0);
    w.s.agent(w.a, scene::request("3", "logging/setLevel", "{'level':'alert'}"));
    EXPECT_TRUE(w.s.got_nothing(0));
    w.s.pass(300s);
    EXPECT_EQ(own_requests(w.s, "logging/setLevel"), 1U);
}

TEST(Relay, SubscriptionsAreTakenBackOneAfterTheOther) {
    world w{everything};
    w.begin();
    const auto subscribe = [&](session_id who, const std::string& uri) {
        w.s.agent(who, scene::request("1", "resources/subscribe", "{'uri':'" + uri + "'}"));
        w.s.upstream(0, scene::answer(w.s.got(0), "{}"));
        (void)w.s.heard(who);
    };
    for (int i = 0; i < 256; ++i) subscribe(w.a, "x:" + std::to_string(1000 + i));
    w.s.agent(w.a, scene::request("1", "resources/subscribe", "{'uri':'x:more'}"));
    EXPECT_NE(w.s.heard(w.a).find("too many subscriptions"), std::string::npos);
    w.s.turn([&] { w.s.gate().agent_gone(w.a); });
    EXPECT_EQ(own_requests(w.s, "resources/unsubscribe"), 1U);
    // What is wanted again meanwhile is not taken back.
    const auto b = w.s.enter();
    auto taken_back = w.s.got(0);
    w.s.agent(b, scene::request("1", "resources/subscribe", "{'uri':'x:1255'}"));
    const auto wanted = w.s.got(0);
    for (int i = 1; i < 255; ++i) {
        w.s.upstream(0, scene::answer(taken_back, "{}"));
        ASSERT_EQ(own_requests(w.s, "resources/unsubscribe"), 1U);
        taken_back = w.s.got(0);
        EXPECT_EQ(taken_back.find("x:1255"), std::string::npos);
    }
    w.s.upstream(0, scene::answer(taken_back, "{}"));
    const auto last = w.s.got(0);
    EXPECT_NE(last.find("resources/subscribe"), std::string::npos);
    EXPECT_NE(last.find("x:1255"), std::string::npos);
    w.s.upstream(0, scene::answer(wanted, "{}"));
    w.s.upstream(0, scene::answer(last, "{}"));
    EXPECT_TRUE(w.s.got_nothing(0));
}

TEST(Relay, SubscriptionsThatWaitCountToo) {
    world w{everything};
    w.begin();
    for (int i = 0; i < 255; ++i) {
        w.s.agent(w.a, scene::request("1", "resources/subscribe",
                                      "{'uri':'x:" + std::to_string(i) + "'}"));
        w.s.upstream(0, scene::answer(w.s.got(0), "{}"));
    }
    w.s.to_agents[w.a].clear();
    w.s.agent(w.a, scene::request("1", "resources/subscribe", "{'uri':'x:a'}"));
    EXPECT_TRUE(w.s.is_quiet(w.a));
    w.s.agent(w.a, scene::request("2", "resources/subscribe", "{'uri':'x:b'}"));
    EXPECT_NE(w.s.heard(w.a).find("too many subscriptions"), std::string::npos);
}

TEST(Relay, KeysMayHaveTheirLengthAndNoMore) {
    for (const std::size_t size : {8192U, 8193U}) {
        world w{everything};
        w.s.prompts[0] = q("{'name':'p'}");
        w.s.resources[0] = q("{'uri':'" + std::string(size, 'r') + "'}");
        w.s.templates[0] = q("{'uriTemplate':'" + std::string(size / 2, 't') + "'}");
        w.begin();
        w.s.agent(w.a, scene::request("1", "resources/subscribe",
                                      "{'uri':'" + std::string(size, 'u') + "'}"));
        EXPECT_EQ(w.s.is_quiet(w.a), size == 8192U);
        if (size == 8193U) {
            EXPECT_NE(w.s.heard(w.a).find("-32602"), std::string::npos);
            EXPECT_TRUE(w.s.got_nothing(0));
            w.s.agent(w.a, scene::request("2", "prompts/get",
                                          "{'name':'" + std::string(size, 'u') + "'}"));
            EXPECT_NE(w.s.heard(w.a).find("at most 8192 bytes"), std::string::npos);
        }
        w.s.agent(w.a, scene::request("3", "resources/list"));
        EXPECT_EQ(w.s.heard(w.a).find("rrr") != std::string::npos, size == 8192U);
    }
    for (const std::size_t size : {4096U, 4097U}) {
        world w{everything};
        w.s.templates[0] = q("{'uriTemplate':'" + std::string(size, 't') + "'}");
        w.begin();
        w.s.agent(w.a, scene::request("1", "resources/templates/list"));
        EXPECT_EQ(w.s.heard(w.a).find("ttt") != std::string::npos, size == 4096U);
        EXPECT_EQ(w.s.notes.size(), size == 4096U ? 0U : 1U);
    }
}

TEST(Relay, TemplatesOfAServerCostOneUriSoMuch) {
    world w{everything, {"a", "b"}};
    std::string many;
    for (int i = 0; i < 400; ++i)
        many.append(i == 0 ? "" : ",")
            .append("{'uriTemplate':'{+a}" + std::string(2000, 'a') + std::to_string(i) + "'}");
    w.s.templates[0] = q(many);
    w.s.templates[1] = q("{'uriTemplate':'{+all}'}");
    w.begin();
    const auto began = std::chrono::steady_clock::now();
    w.s.agent(w.a,
              scene::request("1", "resources/read", "{'uri':'" + std::string(8000, 'a') + "'}"));
    EXPECT_LT(std::chrono::steady_clock::now() - began, 2s); // 400 times 16 million steps otherwise
    EXPECT_TRUE(w.s.got_nothing(0));
    EXPECT_FALSE(w.s.got_nothing(1));
}

TEST(Relay, ALogLevelIsEachAgentsOwn) {
    world w{everything};
    w.begin();
    const auto b = w.s.enter();
    w.s.agent(w.a, scene::request("1", "logging/setLevel", "{'level':'error'}"));
    const auto first = w.s.got(0);
    EXPECT_NE(first.find(q("{'level':'error'}")), std::string::npos);
    w.s.upstream(0, scene::answer(first, "{}"));
    (void)w.s.heard(w.a);
    w.s.agent(b, scene::request("1", "logging/setLevel", "{'level':'debug'}"));
    EXPECT_NE(w.s.got(0).find(q("{'level':'debug'}")), std::string::npos);
    (void)w.s.heard(b);
    w.s.agent(b, scene::request("1", "logging/setLevel", "{'level':'loud'}"));
    EXPECT_NE(w.s.heard(b).find("-32602"), std::string::npos);
    w.s.upstream(0, scene::notification("notifications/message",
                                        "{'level':'info','logger':'db','data':{'x':1}}"));
    EXPECT_TRUE(w.s.is_quiet(w.a));
    EXPECT_EQ(w.s.heard(b), q("{'jsonrpc':'2.0','method':'notifications/message','params':{"
                              "'logger':'up/db','level':'info','data':{'x':1}}}"));
    w.s.upstream(0, scene::notification("notifications/message", "{'level':'error','data':'x'}"));
    EXPECT_NE(w.s.heard(w.a).find(q("'logger':'up'")), std::string::npos);
}

TEST(Ask, GoesToTheAgentWhoseCallIsOpenAndToNoOther) {
    world w{everything};
    w.begin();
    const auto b = w.s.enter(all_offers);
    w.s.agent(w.a, scene::call("1", "up__echo"));
    const auto call = w.s.got(0);
    w.s.upstream(0, scene::request("'s1'", "sampling/createMessage",
                                   "{'messages':[],'_meta':{'progressToken':'up'}}"));
    EXPECT_TRUE(w.s.is_quiet(b));
    const auto asked = w.s.heard(w.a);
    EXPECT_EQ(asked.find("s1"), std::string::npos); // an id of its own
    EXPECT_NE(asked.find(q("'_meta':{'progressToken':") + scene::id_of(asked)), std::string::npos);
    // Progress and answers of another agent mean nothing.
    w.s.agent(b, scene::answer(asked, q("{'stolen':1}")));
    EXPECT_TRUE(w.s.got_nothing(0));
    w.s.agent(w.a,
              scene::notification("notifications/progress",
                                  "{'progressToken':" + scene::id_of(asked) + ",'progress':1}"));
    EXPECT_EQ(w.s.got(0), q("{'jsonrpc':'2.0','method':'notifications/progress','params':{"
                            "'progressToken':'up','progress':1}}"));
    w.s.agent(w.a, scene::answer(asked, q("{'role':'assistant'}")));
    EXPECT_EQ(w.s.got(0), q("{'jsonrpc':'2.0','id':'s1','result':{'role':'assistant'}}"));
    w.s.agent(w.a, scene::answer(asked, q("{'twice':1}")));
    EXPECT_TRUE(w.s.got_nothing(0));
    // With calls of two agents, nobody can be meant.
    w.s.agent(b, scene::call("1", "up__echo"));
    (void)w.s.got(0);
    w.s.upstream(0, scene::request("2", "elicitation/create"));
    EXPECT_NE(w.s.got(0).find("-32601"), std::string::npos);
    w.s.upstream(0, scene::answer(call, "{}"));
    (void)w.s.heard(w.a);
    w.s.upstream(0, scene::request("3", "elicitation/create"));
    EXPECT_NE(w.s.heard(b).find("elicitation/create"), std::string::npos);
    EXPECT_TRUE(w.s.is_quiet(w.a));
}

TEST(Ask, WithoutACallOrAnOfferIsRefused) {
    world w{everything};
    w.begin();
    w.s.upstream(0, scene::request("1", "sampling/createMessage"));
    EXPECT_NE(w.s.got(0).find("-32601"), std::string::npos);
    const auto plain = w.s.enter("{}");
    w.s.agent(plain, scene::call("1", "up__echo"));
    (void)w.s.got(0);
    w.s.upstream(0, scene::request("2", "sampling/createMessage"));
    EXPECT_NE(w.s.got(0).find("-32601"), std::string::npos);
    EXPECT_TRUE(w.s.is_quiet(plain));
}

TEST(Ask, EndsWithItsCall) {
    for (const std::string how : {"answer", "cancel", "timeout", "gone", "upstream"}) {
        world w{everything};
        w.begin();
        w.s.agent(w.a, scene::call("1", "up__echo"));
        const auto call = w.s.got(0);
        w.s.upstream(0, scene::request("'q'", "elicitation/create"));
        const auto asked = w.s.heard(w.a);
        if (how == "answer") w.s.upstream(0, scene::answer(call, "{}"));
        if (how == "cancel")
            w.s.agent(w.a, scene::notification("notifications/cancelled", "{'requestId':1}"));
        if (how == "timeout") w.s.pass(300s);
        if (how == "gone") w.s.turn([&] { w.s.gate().agent_gone(w.a); });
        if (how == "upstream") w.s.turn([&] { w.s.gate().upstream_ended(0, "ended", ""); });
        std::string to_server, to_agent;
        while (!w.s.got_nothing(0)) to_server += w.s.got(0);
        while (!w.s.is_quiet(w.a)) to_agent += w.s.heard(w.a);
        EXPECT_EQ(to_server.find(q("'id':'q','error'")) != std::string::npos, how != "upstream")
            << how;
        EXPECT_EQ(to_agent.find(q("'notifications/cancelled','params':{'requestId':") +
                                scene::id_of(asked)) != std::string::npos,
                  how != "gone")
            << how << to_agent;
        // The agent's answer is too late.
        if (how != "gone") w.s.agent(w.a, scene::answer(asked, "{}"));
        EXPECT_TRUE(w.s.got_nothing(0));
    }
}

TEST(Ask, CanBeTakenBackByTheServer) {
    world w{everything};
    w.begin();
    w.s.agent(w.a, scene::call("1", "up__echo"));
    (void)w.s.got(0);
    w.s.upstream(0, scene::request("7", "sampling/createMessage"));
    const auto asked = w.s.heard(w.a);
    w.s.upstream(0, scene::notification("notifications/cancelled", "{'requestId':'7'}"));
    EXPECT_TRUE(w.s.is_quiet(w.a));
    w.s.upstream(0, scene::notification("notifications/cancelled", "{'requestId':7}"));
    EXPECT_NE(w.s.heard(w.a).find(q("'requestId':") + scene::id_of(asked)), std::string::npos);
}

TEST(Relay, AServerThatDoesNotTellOfChangesIsAskedAnew) {
    world w{everything};
    w.s.resources[0] = q("{'uri':'x:1','name':'n'}");
    w.s.start();
    w.s.come_up(0, scene::tool("echo"), "{'tools':{},'resources':{}}");
    w.a = w.s.enter();
    w.s.pass(1s);
    w.s.agent(w.a, scene::request("1", "resources/list"));
    EXPECT_TRUE(w.s.is_quiet(w.a));
    w.s.agent(w.a, scene::request("2", "resources/list"));
    const auto request = w.s.got(0);
    EXPECT_TRUE(w.s.got_nothing(0)); // one for both
    w.s.agent(w.a, scene::notification("notifications/cancelled", "{'requestId':2}"));
    w.s.upstream(0, scene::answer(request, q("{'resources':[{'uri':'x:2','name':'n'}]}")));
    std::string heard;
    while (!w.s.is_quiet(w.a)) heard += w.s.heard(w.a);
    EXPECT_NE(heard.find(q("'id':1,'result':{'resources':[{'uri':'x:2'")), std::string::npos);
    EXPECT_EQ(heard.find(q("'id':2")), std::string::npos);
}

} // namespace

} // namespace glove::kernel
