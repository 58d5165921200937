// Notifications of servers: each kind is relayed, translated, or dropped and counted.
#include "kernel/core.hpp"
#include "kernel/texts.hpp"
#include <algorithm>
#include <glove/wire/json_writer.hpp>

namespace glove::kernel {

using wire::json::kind;

namespace {

struct changed_row {
    std::string_view method;
    std::array<listing_kind, 2> lists;
};
constexpr changed_row changed_rows[] = {
    {"notifications/tools/list_changed", {listing_kind::tools, listing_kind::tools}},
    {"notifications/resources/list_changed", {listing_kind::resources, listing_kind::templates}},
    {"notifications/prompts/list_changed", {listing_kind::prompts, listing_kind::prompts}}};

} // namespace

void gateway::state::upstream_notification(std::size_t from, const mcp::message& what) {
    const auto* row =
        mcp::find_method(what.method, mcp::sender::upstream, mcp::shape::notification);
    auto& up = ups[from];
    if (row == nullptr || row->treatment == mcp::treatment::refuse || !up.is_alive() ||
        !options.relay.has(row->feature)) {
        ++counts.dropped_notifications;
        return;
    }
    for (const auto& changed : changed_rows)
        if (what.method == changed.method) {
            for (const auto list : changed.lists)
                if (lists(up, list)) relist(from, list);
            return;
        }
    if (what.method == "notifications/progress") return progress_of_upstream(from, what);
    if (what.method == "notifications/cancelled") return cancel_by_upstream(from, what);
    if (what.method == "notifications/message") return log_message(from, what);
    if (what.method == "notifications/resources/updated") return resource_updated(from, what);
    if (what.method == "notifications/elicitation/complete") {
        // To agents that this server has a reason to speak to.
        for (session_id i = 0; i < sessions.size(); ++i)
            if (sessions[i].elicits && has_call(sessions[i], from))
                to_agent_unless_slow(i, mcp::notification_text(what.method, safe_params(what)));
        return;
    }
    ++counts.dropped_notifications;
}

auto gateway::state::safe_params(const mcp::message& what) -> std::string {
    return what.params != nullptr ? safe(what.params->text) : std::string{};
}

void gateway::state::progress_of_upstream(std::size_t from, const mcp::message& what) {
    const auto* token = upstream_reader.member(what.params, "progressToken");
    const auto id = token != nullptr ? read_id(token->text) : given_id{};
    const auto* meant = calls.find(id.number);
    if (id.quoted || meant == nullptr || meant->upstream != from || meant->token.empty() ||
        meant->session == no_session) {
        ++counts.dropped_notifications;
        return;
    }
    std::string params = "{\"progressToken\":" + meant->token;
    if (meant->kind == call_kind::tool && meant->what->redacted) {
        // Numbers only: words are for those who may see all of the result.
        for (const std::string_view name : {"progress", "total"})
            if (const auto* value = upstream_reader.member(what.params, name);
                value != nullptr && (value->type == kind::integer || value->type == kind::number))
                params.append(",\"").append(name).append("\":").append(value->text);
    } else put_members(params, upstream_reader.outline().inside(*what.params), "progressToken");
    params += '}';
    to_agent_unless_slow(meant->session, mcp::notification_text(what.method, params));
}

// The logger says which server speaks.
void gateway::state::log_message(std::size_t from, const mcp::message& what) {
    const auto* word = upstream_reader.member(what.params, "level");
    const int level = word != nullptr && word->type == kind::string
                          ? level_of(plain_string(word->text, room))
                          : -1;
    if (level < 0 || !ups[from].has_logging) {
        ++counts.dropped_notifications;
        return;
    }
    std::string logger = ups[from].wish.name;
    if (const auto* name = upstream_reader.member(what.params, "logger");
        name != nullptr && name->type == kind::string)
        logger.append("/").append(plain_string(name->text, room));
    std::string params = "{\"logger\":";
    wire::json::append_quoted(params, logger);
    params = safe(params);
    put_members(params, upstream_reader.outline().inside(*what.params), "logger");
    params += '}';
    for (session_id i = 0; i < sessions.size(); ++i)
        if (sessions[i].now == session::phase::ready && level >= sessions[i].level)
            to_agent_unless_slow(i, mcp::notification_text(what.method, params));
}

void gateway::state::resource_updated(std::size_t from, const mcp::message& what) {
    const auto* uri = upstream_reader.member(what.params, "uri");
    if (uri == nullptr || uri->type != kind::string) {
        ++counts.dropped_notifications;
        return;
    }
    const auto plain = plain_string(uri->text, room);
    // A server may tell of a part of what was subscribed to.
    const auto covers = [&](const subscription& each) {
        return each.upstream == from && (plain == each.uri || plain.starts_with(each.uri));
    };
    bool told = false;
    for (session_id i = 0; i < sessions.size(); ++i) {
        if (std::ranges::none_of(sessions[i].subscriptions, covers)) continue;
        told = true;
        to_agent_unless_slow(i, mcp::notification_text(what.method, safe_params(what)));
    }
    if (!told) ++counts.dropped_notifications;
}

} // namespace glove::kernel
