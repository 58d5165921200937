// What servers ask: Glove answers what is its own, and an agent what it may be asked. Nothing is
// left without an answer.
#include "kernel/core.hpp"
#include "kernel/texts.hpp"
#include <algorithm>
#include <glove/wire/json_writer.hpp>

namespace glove::kernel {

using mcp::code;
using wire::json::kind;

void gateway::state::refuse_upstream(std::size_t to, std::string_view id, code number,
                                     std::string_view words) {
    out.to_upstream(to, mcp::failure_text(id, number, words));
}

void gateway::state::upstream_request(std::size_t from, const mcp::message& what) {
    // One that asks and does not read has no further questions.
    if (out.waiting_for_upstream(from) >= most_waiting_bytes)
        return fail_upstream(from, code::upstream_gone,
                             "the server " + ups[from].wish.name + " does not read",
                             "asked and did not read the answers");
    if (what.method == "ping") return out.to_upstream(from, mcp::answer_text(what.id, "{}"));
    const auto* row = mcp::find_method(what.method, mcp::sender::upstream, mcp::shape::request);
    if (row != nullptr && row->treatment != mcp::treatment::refuse) {
        if (row->feature == mcp::feature::roots) return answer_roots(from, what);
        if (row->treatment == mcp::treatment::relay && options.relay.has(row->feature))
            return ask_agent(from, what, row->feature);
    }
    refuse_upstream(from, what.id, code::method_not_found, "Method not found");
}

// From the policy, whatever an agent has: a server may take them for what it may touch.
void gateway::state::answer_roots(std::size_t from, const mcp::message& what) {
    const auto roots = parts.rules.roots(ups[from].wish.name);
    if (roots.empty())
        return refuse_upstream(from, what.id, code::method_not_found, "Method not found");
    std::string text;
    {
        wire::json::writer to{text};
        to.begin_object();
        to.begin_array("roots");
        for (const auto& each : roots) {
            to.begin_object();
            to.member("uri", each.uri);
            if (!each.name.empty()) to.member("name", each.name);
            to.end_object();
        }
        to.end_array();
        to.end_object();
    }
    out.to_upstream(from, mcp::answer_text(what.id, text));
}

void gateway::state::ask_agent(std::size_t from, const mcp::message& what, mcp::feature feature) {
    const auto none = [&](std::string_view words) {
        refuse_upstream(from, what.id, code::method_not_found, words);
    };
    // Only the agent whose call the server works on can be meant.
    auto chosen = no_session;
    for (session_id i = 0; i < sessions.size(); ++i) {
        if (!has_call(sessions[i], from)) continue;
        if (chosen != no_session) return none("more than one agent waits for this server");
        chosen = i;
    }
    if (chosen == no_session) return none("no agent waits for this server");
    auto& to = sessions[chosen];
    if (!(feature == mcp::feature::sampling ? to.samples : to.elicits))
        return none("the agent does not offer it");
    if (to.asks.size() >= most_asks || out.waiting_for_agent(chosen) >= most_waiting_bytes)
        return refuse_upstream(from, what.id, code::too_many_calls, "too many requests are open");
    ask made{.id = to.next_ask++,
             .upstream = static_cast<std::uint32_t>(from),
             .upstream_id = std::string{what.id},
             .token = {},
             .subject = ups[from].wish.name + "." + what.method,
             .number = log.next_number(),
             .began = now};
    std::string params = "{";
    if (what.params != nullptr) {
        const auto* meta = upstream_reader.member(what.params, "_meta");
        if (const auto complaint = check_meta(meta); !complaint.empty())
            return refuse_upstream(from, what.id, code::invalid_params, complaint);
        put_members(params, upstream_reader.outline().inside(*what.params), "_meta");
        if (meta != nullptr) put_ask_meta(params, made);
    }
    params += '}';
    if (!log.stage({.action = audit::action::call_tool,
                    .subject = made.subject,
                    .arguments = &params,
                    .status = audit::status::pending,
                    .number = made.number}))
        return;
    out.to_agent(chosen, mcp::request_text(std::to_string(made.id), what.method, params));
    to.asks.push_back(std::move(made));
}

// `meta_outline` holds it.
void gateway::state::put_ask_meta(std::string& to, ask& of) {
    if (!to.ends_with('{')) to += ',';
    to += "\"_meta\":{";
    if (const auto* token = meta_outline.find("progressToken")) {
        of.token = token->text;
        to += "\"progressToken\":";
        append_number(to, of.id);
    }
    put_members(to, meta_outline.members(), "progressToken");
    to += '}';
}

void gateway::state::agent_answer(session_id from, const mcp::message& what) {
    auto& by = sessions[from];
    const auto id = read_id(what.id);
    const auto found = std::ranges::find(by.asks, id.number, &ask::id);
    if (id.quoted || id.number == 0 || found == by.asks.end()) {
        ++counts.stray_answers;
        return;
    }
    const auto answered = std::move(*found);
    by.asks.erase(found);
    const bool good = what.kind == mcp::message_kind::answer;
    close_ask(answered, good ? audit::status::ok : audit::status::execution_error,
              good ? std::string{} : "error: " + excerpt(what.error->text));
    if (is_over() || !ups[answered.upstream].is_alive()) return;
    out.to_upstream(answered.upstream,
                    good ? mcp::answer_text(answered.upstream_id, safe(what.result->text))
                         : mcp::failure_text(answered.upstream_id, safe(what.error->text)));
}

void gateway::state::close_ask(const ask& of, audit::status status, std::string_view why) {
    (void)log.stage({.action = audit::action::call_tool,
                     .subject = of.subject,
                     .status = status,
                     .why = why,
                     .latency = now - of.began,
                     .number = of.number});
}

// What the server `at` asked this agent: the call that it asked for is over.
void gateway::state::drop_asks(session_id of, std::size_t at, bool tell_upstream) {
    auto& by = sessions[of];
    for (auto each = by.asks.begin(); each != by.asks.end();) {
        if (each->upstream != at) {
            ++each;
            continue;
        }
        close_ask(*each, audit::status::transport_error, "the call it belonged to is over");
        if (is_over()) return by.asks.clear();
        if (tell_upstream && ups[at].is_alive())
            refuse_upstream(at, each->upstream_id, code::invalid_request,
                            "the call it belonged to is over");
        to_agent_unless_slow(
            of, mcp::notification_text("notifications/cancelled",
                                       "{\"requestId\":" + std::to_string(each->id) + "}"));
        each = by.asks.erase(each);
    }
}

// Of what the agent was asked.
void gateway::state::progress_of_agent(session_id from, const mcp::message& what) {
    const auto* token = agent_reader.member(what.params, "progressToken");
    const auto& by = sessions[from];
    const auto id = token != nullptr ? read_id(token->text) : given_id{};
    const auto found = std::ranges::find(by.asks, id.number, &ask::id);
    if (id.quoted || id.number == 0 || found == by.asks.end() || found->token.empty() ||
        !ups[found->upstream].is_alive() ||
        out.waiting_for_upstream(found->upstream) >= most_waiting_bytes) {
        ++counts.dropped_notifications;
        return;
    }
    std::string params = "{\"progressToken\":";
    append_safe(params, found->token);
    put_members(params, agent_reader.outline().inside(*what.params), "progressToken");
    params += '}';
    out.to_upstream(found->upstream, mcp::notification_text(what.method, params));
}

// Of what it asked.
void gateway::state::cancel_by_upstream(std::size_t from, const mcp::message& what) {
    const auto* id = upstream_reader.member(what.params, "requestId");
    if (id == nullptr) return;
    for (session_id i = 0; i < sessions.size(); ++i) {
        auto& asks = sessions[i].asks;
        const auto found = std::ranges::find_if(asks, [&](const ask& each) {
            return each.upstream == from && each.upstream_id == id->text;
        });
        if (found == asks.end()) continue;
        close_ask(*found, audit::status::transport_error, "cancelled by the server");
        to_agent_unless_slow(
            i, mcp::notification_text("notifications/cancelled",
                                      "{\"requestId\":" + std::to_string(found->id) + "}"));
        asks.erase(found);
        return;
    }
    ++counts.dropped_notifications;
}

} // namespace glove::kernel
