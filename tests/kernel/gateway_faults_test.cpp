// Each record fails once: then nothing of its turn has left, and nothing leaves any more.
#include "scene.hpp"

namespace glove::kernel {

namespace {

// A run with every kind of record: starts, initialize, lists, calls allowed and denied, cancelled,
// timed out, an agent that goes, and the end.
void live(scene& s) {
    const auto counts = [&] {
        std::size_t all = s.started.size() + s.stopped.size() + s.closed.size();
        for (const auto& [who, lines] : s.to_agents) all += lines.size();
        for (const auto& [who, lines] : s.to_upstreams) all += lines.size();
        return all;
    };
    std::size_t before = 0;
    const auto step = [&](const std::function<void()>& what) {
        if (s.over) return;
        before = counts();
        s.turn(what);
        if (s.over) {
            EXPECT_EQ(counts(), before);
            EXPECT_TRUE(s.gate().problem());
        }
    };
    const auto line = [&](std::size_t which, const std::string& text) {
        step([&] { s.gate().upstream_line(which, {.text = text, .bytes = text.size()}); });
    };
    const auto say = [&](session_id who, const std::string& text) {
        step([&] { s.gate().agent_line(who, {.text = text, .bytes = text.size()}); });
    };
    const auto last = [&](std::size_t which) {
        return s.to_upstreams[which].empty() ? q("{'id':1}") : s.to_upstreams[which].back();
    };
    step([&] { s.gate().start(); });
    step([&] { s.gate().upstream_started(0); });
    line(0, scene::answer(last(0), q("{'protocolVersion':'2025-06-18','capabilities':{'tools':{},"
                                     "'resources':{}}}")));
    for (int i = 0; i < 3 && !s.over && s.to_upstreams[0].size() > 1; ++i) {
        auto request = s.to_upstreams[0].back();
        s.to_upstreams[0].pop_back();
        const auto result = request.find("tools/list") != std::string::npos
                                ? "{\"tools\":[" + scene::tool("echo") + "]}"
                            : request.find("templates") != std::string::npos
                                ? q("{'resourceTemplates':[]}")
                                : q("{'resources':[]}");
        line(0, scene::answer(request, result));
    }
    step([&] { EXPECT_TRUE(s.gate().open_session()); });
    say(0, scene::request("0", "initialize",
                          "{'protocolVersion':'2025-06-18','capabilities':{'sampling':{}}}"));
    say(0, scene::request("1", "tools/list"));
    say(0, scene::call("2", "up__echo"));
    line(0, scene::request("5", "sampling/createMessage"));
    say(0, q("{'jsonrpc':'2.0','id':1,'result':{}}"));
    for (auto& each : s.to_upstreams[0])
        if (each.find("tools/call") != std::string::npos) {
            line(0, scene::answer(each, "{}"));
            break;
        }
    say(0, scene::call("3", "up__none"));
    say(0, scene::call("4", "up__echo"));
    say(0, scene::notification("notifications/cancelled", "{'requestId':4}"));
    say(0, scene::call("5", "up__echo"));
    s.time.now += 600s;
    step([] {});
    say(0, scene::request("6", "resources/read", "{'uri':'x:y'}"));
    line(0, scene::request("7", "sampling/createMessage"));
    line(0, "garbage");
    step([&] { s.gate().upstream_ended(0, "ended", ""); });
    s.time.now += 1s;
    step([] {});
    step([&] { s.gate().upstream_ended(0, "could not start", ""); });
    s.time.now += 2s;
    step([] {}); // and is being started when all ends
    say(0, scene::call("8", "up__echo"));
    step([&] { s.gate().agent_gone(0); });
    step([&] { s.gate().end("told to"); });
}

[[nodiscard]] auto made() -> scene_options {
    scene_options out;
    out.relay = {"resources", "sampling"};
    return out;
}

TEST(Fault, EveryStageAndEveryCommitFailsClosed) {
    std::size_t stages = 0, commits = 0;
    {
        scene s{made()};
        live(s);
        EXPECT_FALSE(s.over);
        stages = s.log.stages;
        commits = s.log.commits;
        // Each pending record has its outcome.
        std::map<std::string, int> open;
        for (const auto& each : s.log.kept) {
            if (each.status == audit::status::pending) ++open[each.call];
            else if (open.contains(each.call)) --open[each.call];
        }
        for (const auto& [call, count] : open) EXPECT_EQ(count, 0) << call;
    }
    EXPECT_GE(stages, 20U);
    for (std::size_t i = 1; i <= stages; ++i) {
        scene s{made()};
        s.log.failing_stage = i;
        live(s);
        EXPECT_TRUE(s.over) << i;
    }
    for (std::size_t i = 1; i <= commits; ++i) {
        scene s{made()};
        s.log.failing_commit = i;
        live(s);
        EXPECT_TRUE(s.over) << i;
    }
}

} // namespace

} // namespace glove::kernel
