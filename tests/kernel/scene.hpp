// A gateway between agents and servers that are texts in a test.
#pragma once
#include <algorithm>
#include <deque>
#include <functional>
#include <glove/kernel/gateway.hpp>
#include <glove/mcp/message.hpp>
#include <glove/wire/json_writer.hpp>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace glove::kernel {

namespace json = wire::json;
using namespace std::chrono_literals;

// A text with ' for ".
[[nodiscard]] inline auto q(std::string text) -> std::string {
    std::ranges::replace(text, '\'', '"');
    return text;
}

class fake_clock final : public sys::clock {
public:
    std::chrono::nanoseconds now = 1000s;
    [[nodiscard]] auto monotonic() const noexcept -> std::chrono::nanoseconds override {
        return now;
    }
    [[nodiscard]] auto wall() const noexcept -> std::chrono::nanoseconds override {
        return now + 1'700'000'000s;
    }
};

class fake_log final : public audit::batching_sink {
public:
    std::vector<audit::event> staged, kept;
    std::size_t stages = 0, commits = 0;
    std::optional<std::size_t> failing_stage, failing_commit; // from 1

    [[nodiscard]] auto append(const audit::event& what) -> result<> override {
        GLOVE_CHECK(stage(what));
        return commit();
    }
    [[nodiscard]] auto stage(const audit::event& what) -> result<> override {
        if (++stages == failing_stage) return fail(errc::io, "fake.stage");
        staged.push_back(what);
        return {};
    }
    [[nodiscard]] auto commit() -> result<> override {
        if (staged.empty()) return {};
        if (++commits == failing_commit) return fail(errc::io, "fake.commit");
        for (auto& each : staged) kept.push_back(std::move(each));
        staged.clear();
        return {};
    }
};

struct scene_options {
    std::vector<std::string> upstreams{"up"};
    policy::wish rules{{"*.*"}, {}, {}, {}};
    std::string policy_file;
    std::vector<std::string> relay;
    gateway_options gateway{};
    policy::pin_store* pins = nullptr;
    bool required = true;
};

class scene final : public outlet {
public:
    fake_clock time;
    fake_log log;
    std::map<session_id, std::deque<std::string>> to_agents;
    std::map<std::size_t, std::deque<std::string>> to_upstreams;
    std::multiset<std::size_t> started, stopped;
    std::set<session_id> closed;
    std::vector<std::string> notes;
    bool over = false; // a turn could not be committed
    std::size_t agent_bytes = 0, upstream_bytes = 0;

    explicit scene(scene_options what = {}) {
        if (what.rules.allow == std::vector<std::string>{"*.*"}) {
            what.rules.allow.clear();
            for (const auto& each : what.upstreams) what.rules.allow.push_back(each + ".*");
        }
        auto rules = policy::engine::parse(what.rules, what.policy_file, what.upstreams, "/");
        if (!rules) throw std::runtime_error{rules.error().detail};
        rules_.emplace(*std::move(rules));
        auto options = what.gateway;
        for (const auto& each : what.upstreams)
            options.upstreams.push_back({.name = each,
                                         .argv = {"/server/" + each},
                                         .environment = {},
                                         .passed = {},
                                         .directory = {},
                                         .required = what.required});
        for (const auto& word : what.relay) options.relay.add(mcp::relayable(word).value());
        options.run = "run";
        options.version = "1";
        options.call_prefix = 0xabc;
        auto made = gateway::make(options, {*this, log, *rules_, meter_, what.pins, time});
        if (!made) throw std::runtime_error{made.error().detail};
        gate_.emplace(*std::move(made));
    }

    auto gate() -> gateway& { return *gate_; }
    // What leaves only when the turn is committed.
    void turn(const std::function<void()>& events) {
        if (over) return;
        gate_->begin_turn();
        events();
        gate_->advance();
        const auto done = gate_->commit();
        if (done)
            for (auto& each : waiting_) each();
        else over = true;
        waiting_.clear();
    }
    void pass(std::chrono::nanoseconds how_long) {
        time.now += how_long;
        turn([] {});
    }

    void upstream(std::size_t from, const std::string& line) {
        turn([&] { gate_->upstream_line(from, {.text = line, .bytes = line.size()}); });
    }
    void agent(session_id from, const std::string& line) {
        turn([&] { gate_->agent_line(from, {.text = line, .bytes = line.size()}); });
    }
    // The next message for it; fails when there is none.
    auto heard(session_id which) -> std::string { return take(to_agents[which], "agent"); }
    auto got(std::size_t which) -> std::string { return take(to_upstreams[which], "server"); }
    [[nodiscard]] auto is_quiet(session_id which) -> bool { return to_agents[which].empty(); }
    [[nodiscard]] auto got_nothing(std::size_t which) -> bool {
        return to_upstreams[which].empty();
    }

    static auto tool(const std::string& name, const std::string& more = "") -> std::string {
        return q("{'name':'" + name + "','inputSchema':{'type':'object'}" + more + "}");
    }
    static auto id_of(const std::string& message) -> std::string {
        const auto tree = json::read(message, mcp::message_limits());
        return json::to_text(tree.value().find("id") != nullptr ? *tree->find("id")
                                                                : json::value{});
    }
    static auto answer(const std::string& request, const std::string& result) -> std::string {
        return "{\"jsonrpc\":\"2.0\",\"id\":" + id_of(request) + ",\"result\":" + result + "}";
    }
    // The server comes up with these tools.
    void come_up(std::size_t which, const std::string& tools,
                 const std::string& capabilities = "{'tools':{'listChanged':true}}",
                 const std::string& more = "") {
        turn([&] { gate_->upstream_started(which); });
        upstream(which, answer(got(which),
                               q("{'protocolVersion':'2025-06-18','capabilities':" + capabilities +
                                 ",'serverInfo':{'name':'s','version':"
                                 "'1'}" +
                                 more + "}")));
        EXPECT_NE(got(which).find("notifications/initialized"), std::string::npos);
        answer_lists(which, tools);
    }
    // Answers every list that was asked for: `tools`, and nothing else.
    void answer_lists(std::size_t which, const std::string& tools) {
        while (!to_upstreams[which].empty()) {
            const auto request = got(which);
            if (request.find("tools/list") != std::string::npos)
                upstream(which, answer(request, "{\"tools\":[" + tools + "]}"));
            else if (request.find("resources/list") != std::string::npos)
                upstream(which, answer(request, "{\"resources\":[" + resources[which] + "]}"));
            else if (request.find("resources/templates") != std::string::npos)
                upstream(which,
                         answer(request, "{\"resourceTemplates\":[" + templates[which] + "]}"));
            else if (request.find("prompts/list") != std::string::npos)
                upstream(which, answer(request, "{\"prompts\":[" + prompts[which] + "]}"));
            else FAIL() << request;
        }
    }
    std::map<std::size_t, std::string> resources, templates, prompts;

    void start() {
        turn([&] { gate_->start(); });
    }
    // One server with a tool `echo`, and an agent that is welcome.
    auto ready(const std::string& tools = tool("echo")) -> session_id {
        start();
        come_up(0, tools);
        return enter();
    }
    auto enter(const std::string& capabilities = "{}") -> session_id {
        std::optional<session_id> made;
        turn([&] { made = gate_->open_session(); });
        agent(made.value(), q("{'jsonrpc':'2.0','id':'hello','method':'initialize','params':{"
                              "'protocolVersion':'2025-06-18','capabilities':" +
                              capabilities + ",'clientInfo':{'name':'a','version':'1'}}}"));
        welcome = heard(*made);
        agent(*made, q("{'jsonrpc':'2.0','method':'notifications/initialized'}"));
        return *made;
    }
    std::string welcome;

    static auto call(const std::string& id, const std::string& tool,
                     const std::string& arguments = "{}", const std::string& more = "")
        -> std::string {
        return q("{'jsonrpc':'2.0','id':" + id + ",'method':'tools/call','params':{'name':'" +
                 tool + "','arguments':" + arguments + more + "}}");
    }
    static auto request(const std::string& id, const std::string& method,
                        const std::string& params = "{}") -> std::string {
        return q("{'jsonrpc':'2.0','id':" + id + ",'method':'" + method + "','params':" + params +
                 "}");
    }
    static auto notification(const std::string& method, const std::string& params = "{}")
        -> std::string {
        return q("{'jsonrpc':'2.0','method':'" + method + "','params':" + params + "}");
    }

    std::size_t shared_parts = 0; // of messages for agents
    void to_agent(session_id to, std::string head, mcp::shared_text body,
                  std::string tail) override {
        ++shared_parts;
        EXPECT_TRUE(body.owner);
        outlet::to_agent(to, std::move(head), std::move(body), std::move(tail));
    }
    void to_agent(session_id to, std::string message) override {
        waiting_.emplace_back([this, to, message] { to_agents[to].push_back(message); });
    }
    void to_upstream(std::size_t to, std::string message) override {
        waiting_.emplace_back([this, to, message] { to_upstreams[to].push_back(message); });
    }
    // A call stays in the queue while its server reads nothing.
    bool upstream_reads = true;
    std::map<std::size_t, std::vector<std::pair<std::uint64_t, std::string>>> calls_held;
    void to_upstream(std::size_t to, std::string message, std::uint64_t call) override {
        if (upstream_reads) return to_upstream(to, std::move(message));
        calls_held[to].emplace_back(call, std::move(message));
    }
    [[nodiscard]] auto take_back(std::size_t from, std::uint64_t call) -> bool override {
        return std::erase_if(calls_held[from],
                             [&](const auto& each) { return each.first == call; }) > 0;
    }
    void close_agent(session_id which) override {
        waiting_.emplace_back([this, which] { closed.insert(which); });
    }
    void start_upstream(std::size_t which) override {
        waiting_.emplace_back([this, which] { started.insert(which); });
    }
    void stop_upstream(std::size_t which) override {
        waiting_.emplace_back([this, which] { stopped.insert(which); });
    }
    [[nodiscard]] auto waiting_for_agent(session_id) const -> std::size_t override {
        return agent_bytes;
    }
    [[nodiscard]] auto waiting_for_upstream(std::size_t) const -> std::size_t override {
        return upstream_bytes;
    }
    void note(std::string words) override { notes.push_back(std::move(words)); }

private:
    static auto take(std::deque<std::string>& from, const char* who) -> std::string {
        if (from.empty()) {
            ADD_FAILURE() << "nothing for the " << who;
            return "{}";
        }
        auto out = std::move(from.front());
        from.pop_front();
        return out;
    }
    std::optional<policy::engine> rules_;
    policy::meter meter_;
    std::optional<gateway> gate_;
    std::vector<std::function<void()>> waiting_;
};

} // namespace glove::kernel
