// Agents, servers and time in any order: what holds whatever happens.
//
// Each request of an agent that is not cancelled gets exactly one answer; what a server gets is a
// message in one line by any reader's rules, and no tool but those that are allowed; each intent on
// record has one outcome.
#include "scene.hpp"
#include <glove/mcp/message.hpp>
#include <random>

namespace glove::kernel {

namespace {

class storm {
public:
    explicit storm(unsigned seed) : random_{seed}, s_{options()} {
        s_.start();
        started(0);
        started(1);
    }

    // How many calls reached a server.
    auto blow(int steps) -> std::size_t {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
            step();
            look();
        }
        s_.turn([&] { s_.gate().end("the storm is over"); });
        look();
        for (const auto& [who, ids] : open_)
            EXPECT_TRUE(ids.empty()) << who << " waits for " << *ids.begin();
        std::map<std::string, int> intents;
        for (const auto& each : s_.log.kept) {
            if (each.status == audit::status::pending) ++intents[each.call];
            else if (intents.contains(each.call)) --intents[each.call];
        }
        for (const auto& [call, count] : intents) EXPECT_EQ(count, 0) << call;
        EXPECT_FALSE(s_.over);
        return s_.gate().counts().calls;
    }

private:
    [[nodiscard]] static auto options() -> scene_options {
        scene_options out;
        out.upstreams = {"a", "b"};
        out.required = false;
        out.rules = {{"a.echo", "b.*"}, {"b.secret"}, {}, {}};
        out.relay = {"resources", "prompts", "completion", "logging", "sampling", "elicitation"};
        out.gateway.call_timeout = 20s;
        out.gateway.result_bytes = 400;
        return out;
    }
    [[nodiscard]] auto dice(std::size_t sides) -> std::size_t { return random_() % sides; }
    template<std::size_t N> [[nodiscard]] auto one_of(const char* const (&words)[N])
        -> std::string {
        return words[dice(N)];
    }

    void step() {
        switch (dice(12)) {
        case 0: return agent_comes_or_goes();
        case 1: return s_.pass(std::chrono::milliseconds{dice(9000)});
        case 2: return upstream_dies_or_starts();
        case 3:
        case 4:
        case 5:
        case 6: return agent_speaks();
        default: return upstream_speaks();
        }
    }

    void agent_comes_or_goes() {
        if (!agents_.empty() && dice(4) == 0) {
            const auto which = agents_[dice(agents_.size())];
            s_.turn([&] { s_.gate().agent_gone(which); });
            std::erase(agents_, which);
            open_.erase(which);
            s_.to_agents.erase(which);
            return;
        }
        if (agents_.size() >= 4) return;
        std::optional<session_id> made;
        s_.turn([&] { made = s_.gate().open_session(); });
        agents_.push_back(*made);
        say(*made, "'init'", "initialize",
            dice(2) == 0 ? "{'protocolVersion':'2025-06-18','capabilities':{'sampling':{},"
                           "'elicitation':{}}}"
                         : "{'protocolVersion':'x','capabilities':{}}");
    }

    void say(session_id who, const std::string& id, const std::string& method,
             const std::string& params) {
        open_[who].insert(q(id));
        s_.agent(who, scene::request(id, method, params));
    }

    void agent_speaks() {
        if (agents_.empty()) return;
        const auto who = agents_[dice(agents_.size())];
        if (dice(30) == 0) {
            s_.agent(who, one_of({"x", "[]", "{}", "\xff"}));
            return;
        }
        if (dice(6) == 0 && !open_[who].empty()) {
            const auto id = *open_[who].begin();
            if (id == q("'init'")) return; // which cannot be cancelled
            s_.agent(who,
                     scene::notification("notifications/cancelled", "{'requestId':" + id + "}"));
            cancelled_.insert({who, id});
            open_[who].erase(id);
            return;
        }
        if (dice(5) == 0 && !asked_[who].empty()) {
            s_.agent(who, scene::answer(asked_[who].back(), "{}"));
            if (dice(2) == 0) asked_[who].pop_back();
            return;
        }
        const auto id =
            dice(2) == 0 ? std::to_string(++last_) : "'" + std::to_string(++last_) + "'";
        static constexpr const char* methods[] = {"tools/call",
                                                  "tools/call",
                                                  "tools/call",
                                                  "tools/list",
                                                  "resources/list",
                                                  "resources/read",
                                                  "resources/subscribe",
                                                  "resources/unsubscribe",
                                                  "prompts/get",
                                                  "completion/complete",
                                                  "logging/setLevel",
                                                  "ping",
                                                  "no/such",
                                                  "resources/templates/list",
                                                  "prompts/list"};
        const auto method = one_of(methods);
        static constexpr const char* tool_params[] = {
            "{'name':'a__echo','arguments':{'x':1}}",
            "{'name':'b__echo','_meta':{'progressToken':'t'}}",
            "{'name':'a__secret'}",
            "{'name':'b__secret'}",
            "{'name':'none'}",
            "{'name':'a__echo','arguments':\r{\r}}"};
        static constexpr const char* other_params[] = {
            "{'uri':'x:1'}",
            "{'uri':'y:1'}",
            "{'level':'info'}",
            "{'name':'a__p'}",
            "{'ref':{'type':'ref/prompt','name':'b__p'}}",
            "{}"};
        say(who, id, method,
            method == "tools/call"     ? one_of(tool_params)
            : method.ends_with("list") ? "{}"
                                       : one_of(other_params));
    }

    void started(std::size_t which) {
        s_.turn([&] { s_.gate().upstream_started(which); });
        s_.started.erase(which);
    }

    void upstream_dies_or_starts() {
        const auto which = dice(2);
        if (s_.stopped.contains(which)) {
            s_.stopped.erase(which);
            s_.turn([&] { s_.gate().upstream_ended(which, "was stopped", ""); });
            requests_[which].clear();
        } else if (s_.started.contains(which)) started(which);
        else if (dice(60) == 0) {
            s_.turn([&] { s_.gate().upstream_ended(which, "died", "x"); });
            requests_[which].clear();
        }
    }

    void upstream_speaks() {
        const auto which = dice(2);
        auto& waiting = requests_[which];
        const auto kind = dice(16);
        if (kind == 0)
            return s_.upstream(
                which, scene::request(std::to_string(dice(5)),
                                      one_of({"sampling/createMessage", "ping",
                                              "elicitation/create", "roots/list", "no/such"})));
        if (kind == 1)
            return s_.upstream(
                which, scene::notification(
                           one_of({"notifications/tools/list_changed", "notifications/message",
                                   "notifications/resources/updated", "notifications/progress",
                                   "notifications/resources/list_changed", "no/such"}),
                           "{'uri':'x:1','level':'error','progressToken':1}"));
        if (waiting.empty()) return;
        const auto at = dice(waiting.size());
        const auto request = waiting[at];
        if (dice(12) != 0) waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(at));
        answer(which, request);
    }

    void answer(std::size_t which, const std::string& request) {
        const auto has = [&](const char* word) { return request.find(word) != std::string::npos; };
        const auto id = scene::id_of(request);
        if (dice(300) == 0) return s_.upstream(which, "no message");
        if (dice(20) == 0)
            return s_.upstream(
                which, q("{'jsonrpc':'2.0','id':" + id + ",'error':{'code':-1,'message':'no'}}"));
        if (dice(30) == 0)
            return s_.upstream(which, q("{'jsonrpc':'2.0','id':'" + id + "','result':{}}"));
        std::string result = "{'content':[]}";
        if (has("\"initialize\""))
            result = "{'protocolVersion':'2025-06-18','capabilities':{'tools':{},'resources':{"
                     "'subscribe':true},'prompts':{},'completions':{},'logging':{}}}";
        else if (has("tools/list"))
            result = "{'tools':[{'name':'echo'},{'name':'secret'}" +
                     std::string{dice(2) == 0 ? "" : ",{'name':'more'}"} + "]}";
        else if (has("resources/list")) result = "{'resources':[{'uri':'x:1'}]}";
        else if (has("templates")) result = "{'resourceTemplates':[{'uriTemplate':'y:{i}'}]}";
        else if (has("prompts/list")) result = "{'prompts':[{'name':'p'}]}";
        else if (dice(10) == 0) result = "{'content':'" + std::string(500, 'x') + "'}";
        s_.upstream(which, scene::answer(request, q(result)));
    }

    // What has come out.
    void look() {
        for (std::size_t i = 0; i < 2; ++i)
            while (!s_.got_nothing(i)) {
                const auto message = s_.got(i);
                EXPECT_EQ(message.find_first_of("\r\n"), std::string::npos);
                EXPECT_EQ(message.find("secret"), std::string::npos) << message;
                const auto read = reader_.read(message);
                ASSERT_TRUE(read) << message;
                if (read->kind == mcp::message_kind::request) requests_[i].push_back(message);
            }
        for (const auto who : agents_)
            while (!s_.is_quiet(who)) hear(who, s_.heard(who));
    }

    void hear(session_id who, const std::string& message) {
        const auto read = reader_.read(message);
        if (!read) {
            // Only an error that belongs to no request has none.
            EXPECT_NE(message.find("\"id\":null,\"error\""), std::string::npos) << message;
            return;
        }
        EXPECT_EQ(message.find("secret\",\"input"), std::string::npos);
        if (read->kind == mcp::message_kind::notification) return;
        const std::string id{read->id};
        if (read->kind == mcp::message_kind::request) return asked_[who].push_back(message);
        EXPECT_EQ(open_[who].erase(id), 1U)
            << "a second answer, or one to what was cancelled: " << message;
    }

    std::mt19937 random_;
    scene s_;
    std::vector<session_id> agents_;
    std::map<session_id, std::set<std::string>> open_;
    std::set<std::pair<session_id, std::string>> cancelled_;
    std::map<session_id, std::vector<std::string>> asked_;
    std::map<std::size_t, std::vector<std::string>> requests_;
    mcp::message_reader reader_;
    unsigned last_ = 0;
};

TEST(Storm, WhatMustHoldHolds) {
    std::size_t calls = 0;
    for (unsigned seed = 1; seed <= 60 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        calls += storm{seed}.blow(3000);
    }
    EXPECT_GT(calls, 2000U);
}

} // namespace

} // namespace glove::kernel
