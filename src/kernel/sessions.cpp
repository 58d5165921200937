// Agents: their lines, initialize, and lists, which are answered from what is known.
#include "kernel/core.hpp"
#include "kernel/texts.hpp"
#include "kernel/visible_text.hpp"
#include <algorithm>
#include <glove/wire/json_writer.hpp>

namespace glove::kernel {

namespace {

using mcp::code;

struct list_row {
    std::string_view method, member;
};
constexpr list_row list_rows[listing_kinds] = {{"tools/list", "tools"},
                                               {"resources/list", "resources"},
                                               {"resources/templates/list", "resourceTemplates"},
                                               {"prompts/list", "prompts"}};

// In the order in which they came, after the answer to initialize.
[[nodiscard]] auto must_wait(const session& by, const mcp::message& what) -> bool {
    if (by.now != session::phase::waiting && by.held.empty()) return false;
    return what.kind != mcp::message_kind::request ||
           (what.method != "ping" && what.method != "initialize" &&
            what.method != "server/discover");
}

[[nodiscard]] auto has_object(const wire::json::value& of, std::string_view name) -> bool {
    const auto* found = of.find(name);
    return found != nullptr && found->as_object() != nullptr;
}

} // namespace

void gateway::state::refuse(session_id to, std::string_view id, code number,
                            std::string_view words) {
    out.to_agent(to, mcp::failure_text(id, number, words));
}

void gateway::state::malformed_line(session_id from, const mcp::refusal& why) {
    ++counts.malformed_agent_lines;
    refuse(from, why.id, why.number, why.words);
    auto& by = sessions[from];
    if (++by.malformed <= most_malformed_lines) return;
    session_gone(from);
    by.now = session::phase::closing;
    out.close_agent(from);
}

void gateway::state::agent_line(session_id from, const mcp::line_reader::line& line) {
    auto& by = sessions[from];
    if (by.now == session::phase::absent || by.now == session::phase::closing) return;
    if (line.too_long)
        return malformed_line(from, {code::too_large,
                                     "a message may have " + std::to_string(mcp::longest_message) +
                                         " bytes and this one has " + std::to_string(line.bytes),
                                     mcp::made_out_id(line.text, line.tail)});
    const auto read = agent_reader.read(line.text);
    if (!read) return malformed_line(from, read.error());
    by.malformed = 0;
    if (read->params != nullptr && read->params->type != wire::json::kind::object) {
        if (read->kind == mcp::message_kind::request)
            refuse(from, read->id, code::invalid_params, "params must be an object");
        return;
    }
    if (must_wait(by, *read)) return hold_line(from, line.text, *read);
    take_message(from, *read);
}

void gateway::state::take_message(session_id from, const mcp::message& what) {
    switch (what.kind) {
    case mcp::message_kind::request: return agent_request(from, what);
    case mcp::message_kind::notification: return agent_notification(from, what);
    case mcp::message_kind::answer:
    case mcp::message_kind::failure: return agent_answer(from, what);
    }
}

void gateway::state::hold_line(session_id from, std::string_view text, const mcp::message& what) {
    auto& by = sessions[from];
    const bool asks = what.kind == mcp::message_kind::request;
    if (asks && is_open(by, what.id))
        return refuse(from, "null", code::invalid_request, "the id is that of an open request");
    if (by.is_full()) {
        if (asks) refuse(from, what.id, code::too_many_calls, "too many requests are open");
        else ++counts.dropped_notifications;
        return;
    }
    by.held.push_back({std::string{asks ? what.id : std::string_view{}}, std::string{text}});
    by.held_bytes += text.size();
}

void gateway::state::take_held_line(session_id from) {
    auto& by = sessions[from];
    const auto line = std::move(by.held.front());
    by.held.pop_front();
    by.held_bytes -= line.text.size();
    // It was read once already.
    if (const auto read = agent_reader.read(line.text)) take_message(from, *read);
}

void gateway::state::agent_request(session_id from, const mcp::message& what) {
    auto& by = sessions[from];
    if (is_open(by, what.id))
        // With its id, this would be taken for the answer to the other one.
        return refuse(from, "null", code::invalid_request, "the id is that of an open request");
    if (what.method == "ping") return out.to_agent(from, mcp::answer_text(what.id, "{}"));
    if (by.now != session::phase::ready) {
        if (what.method == "initialize") return initialize_agent(from, what);
        if (what.method == "server/discover")
            return refuse(from, what.id, code::method_not_found, "Method not found");
        return refuse(from, what.id, code::invalid_request, "initialize comes first");
    }
    if (what.method == "tools/call") return call_tool(from, what);
    const auto* row = mcp::find_method(what.method, mcp::sender::agent, mcp::shape::request);
    if (row == nullptr || row->treatment == mcp::treatment::refuse ||
        !options.relay.has(row->feature))
        return refuse(from, what.id, code::method_not_found, "Method not found");
    if (what.method == "initialize")
        return refuse(from, what.id, code::invalid_request, "initialize comes once");
    for (std::size_t kind = 0; kind < listing_kinds; ++kind)
        if (what.method == list_rows[kind].method)
            return list_for_agent(from, what, static_cast<listing_kind>(kind));
    relay_request(from, what);
}

void gateway::state::agent_notification(session_id from, const mcp::message& what) {
    const auto* row = mcp::find_method(what.method, mcp::sender::agent, mcp::shape::notification);
    if (row == nullptr || row->treatment == mcp::treatment::refuse) {
        ++counts.dropped_notifications;
        return;
    }
    if (what.method == "notifications/cancelled") cancel_by_agent(from, what);
    else if (what.method == "notifications/progress") progress_of_agent(from, what);
}

auto gateway::state::find_request(const session& of, std::string_view id) -> call* {
    const auto hash = hash_of(id);
    for (const auto& each : of.requests) {
        if (each.hash != hash) continue;
        auto* found = calls.find(each.call);
        if (found != nullptr && found->agent_id == id) return found;
    }
    return nullptr;
}

auto gateway::state::is_open(const session& of, std::string_view id) -> bool {
    return find_request(of, id) != nullptr ||
           (of.now == session::phase::waiting && of.initialize_id == id) ||
           std::ranges::find(of.lists, id, &waiting_list::id) != of.lists.end() ||
           std::ranges::find(of.held, id, &held_line::id) != of.held.end();
}

void gateway::state::initialize_agent(session_id from, const mcp::message& what) {
    auto& by = sessions[from];
    if (by.now != session::phase::fresh)
        return refuse(from, what.id, code::invalid_request, "initialize comes once");
    const auto* wanted = agent_reader.member(what.params, "protocolVersion");
    if (wanted == nullptr || wanted->type != wire::json::kind::string)
        return refuse(from, what.id, code::invalid_params,
                      "params.protocolVersion must be a string");
    const auto* offers = agent_reader.member(what.params, "capabilities");
    if (offers == nullptr || offers->type != wire::json::kind::object)
        return refuse(from, what.id, code::invalid_params, "params.capabilities must be an object");
    const auto tree = wire::json::read(offers->text, mcp::message_limits());
    by.samples = tree && has_object(*tree, "sampling");
    by.elicits = tree && has_object(*tree, "elicitation");
    by.revision = mcp::negotiated(plain_string(wanted->text, room));
    by.initialize_id = what.id;
    by.now = session::phase::waiting;
    ++unwelcome;
    if (is_ready()) welcome(from);
}

auto gateway::state::instructions_for_agents() const -> std::string {
    std::string out_text;
    for (std::size_t i = 0; options.instructions && i < ups.size(); ++i) {
        // Of a server whose tools are all hidden, no text is shown either.
        if (ups[i].instructions.empty() || !tools.shows_any_of(i)) continue;
        if (!out_text.empty()) out_text += "\n\n";
        if (ups.size() > 1) out_text.append(ups[i].wish.name).append(":\n");
        out_text += ups[i].instructions;
    }
    return out_text;
}

// What the agent is offered is what the servers offer and Glove relays.
void gateway::state::welcome(session_id which) {
    auto& by = sessions[which];
    const auto any = [&](mcp::feature feature, bool upstream::* has) {
        return options.relay.has(feature) &&
               std::ranges::any_of(ups, [&](const upstream& each) { return each.*has; });
    };
    std::string text;
    {
        wire::json::writer to{text};
        to.begin_object();
        to.member("protocolVersion", by.revision);
        to.begin_object("capabilities");
        to.begin_object("tools");
        to.member("listChanged", true);
        to.end_object();
        if (any(mcp::feature::resources, &upstream::has_resources)) {
            to.begin_object("resources");
            to.member("subscribe", any(mcp::feature::resources, &upstream::subscribes));
            to.member("listChanged", true);
            to.end_object();
        }
        if (any(mcp::feature::prompts, &upstream::has_prompts)) {
            to.begin_object("prompts");
            to.member("listChanged", true);
            to.end_object();
        }
        for (const auto& [feature, has, name] :
             {std::tuple{mcp::feature::completion, &upstream::has_completions, "completions"},
              std::tuple{mcp::feature::logging, &upstream::has_logging, "logging"}})
            if (any(feature, has)) {
                to.begin_object(name);
                to.end_object();
            }
        to.end_object();
        to.begin_object("serverInfo");
        to.member("name", "glove");
        to.member("version", options.version);
        to.end_object();
        const auto words = instructions_for_agents();
        if (!words.empty()) to.member("instructions", words);
        to.end_object();
    }
    const std::string arguments = "{\"protocolVersion\":\"" + std::string{by.revision} + "\"}";
    if (!log.stage({.action = audit::action::initialize,
                    .subject = {},
                    .arguments = &arguments,
                    .status = audit::status::ok,
                    .number = log.next_number()}))
        return;
    by.now = session::phase::ready;
    --unwelcome;
    out.to_agent(which, mcp::answer_text(by.initialize_id, safe(text)));
    by.initialize_id.clear();
}

void gateway::state::list_for_agent(session_id from, const mcp::message& what, listing_kind kind) {
    auto& by = sessions[from];
    // Whole lists are answered, so none of Glove's cursors exists.
    if (const auto* cursor = agent_reader.member(what.params, "cursor");
        cursor != nullptr && cursor->type != wire::json::kind::null)
        return refuse(from, what.id, code::invalid_params, "there is no such cursor");
    bool waits = false;
    for (std::size_t i = 0; kind != listing_kind::tools && i < ups.size(); ++i) {
        if (ups[i].now != upstream::phase::up || !lists(ups[i], kind)) continue;
        // A server that does not tell of changes is asked anew.
        if (!ups[i].tells_changes[static_cast<std::size_t>(kind)]) relist(i, kind);
        waits = waits || ups[i].at(kind).running;
    }
    if (!waits) return answer_list(from, std::string{what.id}, kind);
    if (by.lists.size() >= most_calls_of_a_session)
        return refuse(from, what.id, code::too_many_calls, "too many requests are open");
    by.lists.push_back({std::string{what.id}, kind, now + list_patience});
    ++lists_wait;
}

void gateway::state::answer_list(session_id to, const std::string& id, listing_kind kind) {
    const auto& row = list_rows[static_cast<std::size_t>(kind)];
    std::string text = "{\"" + std::string{row.member} + "\":";
    if (kind == listing_kind::tools) {
        auto& by = sessions[to];
        const std::string arguments = "{\"tools\":" + std::to_string(tools.shown()) + "}";
        if (!by.listed && !log.stage({.action = audit::action::list_tools,
                                      .subject = {},
                                      .arguments = &arguments,
                                      .status = audit::status::ok,
                                      .number = log.next_number()}))
            return;
        by.listed = true;
        // One text for all agents, however many of them wait for it.
        auto head = mcp::answer_text(id, text);
        head.pop_back();
        return out.to_agent(to, std::move(head), {tools.text(), *tools.text()}, "}}");
    }
    text += '[';
    for (const auto& each : ups) {
        for (const auto& item : each.lists[static_cast<std::size_t>(kind)].items) {
            if (!text.ends_with('[')) text += ',';
            text += item.text;
        }
    }
    text += "]}";
    if (text.size() > options.result_bytes)
        return refuse(to, id, code::too_large,
                      "the list has " + std::to_string(text.size()) + " bytes and may have " +
                          std::to_string(options.result_bytes) + " (--result-bytes)");
    out.to_agent(to, mcp::answer_text(id, text));
}

auto gateway::state::may_answer(session_id to, listing_kind kind) -> bool {
    return out.waiting_for_agent(to) < most_waiting_bytes &&
           std::ranges::none_of(ups, [&](upstream& each) { return each.at(kind).running; });
}

// Whole lists can be long: to an agent that has too much to read already, they are given later.
void gateway::state::answer_waiting_lists() {
    lists_held = false;
    for (session_id i = 0; i < sessions.size(); ++i) {
        if (sessions[i].lists.empty()) continue;
        auto waiting = std::move(sessions[i].lists);
        sessions[i].lists.clear();
        for (auto& each : waiting) {
            if (may_answer(i, each.kind)) {
                --lists_wait;
                answer_list(i, each.id, each.kind);
                continue;
            }
            lists_held = true;
            sessions[i].lists.push_back(std::move(each));
        }
    }
}

// The order of those of an agent is the order of their deadlines.
void gateway::state::end_waiting_lists() {
    for (session_id i = 0; lists_wait > 0 && i < sessions.size(); ++i) {
        auto& all = sessions[i].lists;
        while (!all.empty() && all.front().deadline <= now) {
            refuse(i, all.front().id, code::timed_out,
                   "the list did not come within " + std::to_string(list_patience.count()) + " s");
            all.erase(all.begin());
            --lists_wait;
        }
    }
}

void gateway::state::cancel_by_agent(session_id from, const mcp::message& what) {
    auto& by = sessions[from];
    const auto* id = agent_reader.member(what.params, "requestId");
    if (id == nullptr) return;
    lists_wait -=
        std::erase_if(by.lists, [&](const waiting_list& each) { return each.id == id->text; });
    auto* found = find_request(by, id->text);
    if (found == nullptr) return; // it is late, or another's
    std::string params = "{\"requestId\":";
    append_number(params, found->id);
    if (const auto* reason = agent_reader.member(what.params, "reason");
        reason != nullptr && reason->type == wire::json::kind::string) {
        params += ",\"reason\":";
        append_safe(params, reason->text);
    }
    params += '}';
    const auto to = found->upstream;
    const auto number = found->id;
    close_call(*found, audit::status::transport_error, "cancelled by the agent", {});
    cancel(to, number, params);
}

void gateway::state::session_gone(session_id which) {
    auto& by = sessions[which];
    if (by.now == session::phase::waiting) --unwelcome;
    by.now = session::phase::closing;
    while (!by.requests.empty()) {
        auto* open = calls.find(by.requests.back().call);
        const auto id = open->id;
        const auto to = open->upstream;
        close_call(*open, audit::status::transport_error, "the agent has gone", {});
        cancel(to, id, "{\"requestId\":" + std::to_string(id) + "}");
    }
    for (std::size_t i = 0; i < ups.size(); ++i) drop_asks(which, i, true);
    lists_wait -= by.lists.size();
    auto subscriptions = std::move(by.subscriptions);
    const bool had_level = by.level >= 0;
    by = session{};
    if (is_over()) return;
    for (const auto& each : subscriptions) forget_subscription(each);
    for (std::size_t i = 0; had_level && i < ups.size(); ++i) send_level(i);
}

auto gateway::state::hears(session_id which) const -> bool {
    return sessions[which].now == session::phase::ready &&
           out.waiting_for_agent(which) < most_waiting_bytes;
}

void gateway::state::to_agent_unless_slow(session_id to, std::string message) {
    if (hears(to)) out.to_agent(to, std::move(message));
    else ++counts.dropped_notifications;
}

void gateway::state::tell_ready_agents(std::string_view method) {
    for (session_id i = 0; i < sessions.size(); ++i)
        if (sessions[i].now == session::phase::ready)
            to_agent_unless_slow(i, mcp::notification_text(method, {}));
}

} // namespace glove::kernel
