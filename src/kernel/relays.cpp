// Requests of agents beyond tools: which server they are for, whether the policy allows them, and
// what is sent in their place.
#include "kernel/core.hpp"
#include "kernel/texts.hpp"
#include "kernel/uri_template.hpp"
#include <algorithm>
#include <glove/wire/json_writer.hpp>

namespace glove::kernel {

using mcp::code;
using wire::json::kind;

namespace {

constexpr std::string_view levels[] = {"debug", "info",     "notice", "warning",
                                       "error", "critical", "alert",  "emergency"};

[[nodiscard]] auto text_of(const wire::json::value& object, std::string_view name)
    -> const std::string* {
    const auto* found = object.find(name);
    return found != nullptr ? found->as_string() : nullptr;
}

} // namespace

auto level_of(std::string_view word) noexcept -> int {
    const auto* const found = std::ranges::find(levels, word);
    return found == std::end(levels) ? -1 : static_cast<int>(found - std::begin(levels));
}

// The one server that a resource is of.
auto gateway::state::route_of_uri(std::string_view uri) -> route {
    std::vector<std::size_t> offering, listing_it, matching;
    for (std::size_t i = 0; i < ups.size(); ++i) {
        if (!ups[i].has_resources) continue;
        offering.push_back(i);
        const auto& known = ups[i].at(listing_kind::resources).items;
        if (std::ranges::find(known, uri, &listed_item::key) != known.end())
            listing_it.push_back(i);
        if (std::ranges::any_of(ups[i].at(listing_kind::templates).items,
                                [&](const auto& each) { return fits_template(uri, each.key); }))
            matching.push_back(i);
    }
    if (offering.size() == 1) return {offering.front(), {}, {}};
    for (const auto& candidates : {listing_it, matching}) {
        if (candidates.size() == 1) return {candidates.front(), {}, {}};
        if (candidates.size() > 1) return {{}, {}, "more than one server has this resource"};
    }
    return {{}, {}, "no server lists this resource"};
}

auto gateway::state::route_of_prompt(std::string_view name) -> route {
    route to{{}, {}, "there is no such prompt"};
    for (std::size_t i = 0; i < ups.size(); ++i)
        for (const auto& each : ups[i].at(listing_kind::prompts).items) {
            if (each.visible != name) continue;
            if (to.upstream) return {{}, {}, "more than one server has this prompt"};
            to = {i, each.key, {}};
        }
    return to;
}

void gateway::state::relay_request(session_id from, const mcp::message& what) {
    const auto invalid = [&](std::string_view words) {
        refuse(from, what.id, code::invalid_params, words);
    };
    if (what.method == "logging/setLevel") return set_level(from, what);
    if (what.params == nullptr) return invalid("params must be an object");
    auto read = wire::json::read(what.params->text, mcp::message_limits());
    if (!read) return invalid("params cannot be read");
    const auto& params = *read;
    const auto* meta = agent_reader.member(what.params, "_meta");
    if (const auto complaint = check_meta(meta); !complaint.empty()) return invalid(complaint);

    // What is routed by: a URI or the name of a prompt, of the request itself or of its reference.
    const bool completes = what.method == "completion/complete";
    const auto* subject = completes ? params.find("ref") : &params;
    if (subject == nullptr) return invalid("params.ref must be an object");
    if (completes) {
        const auto* type = text_of(*subject, "type");
        if (type == nullptr || (*type != "ref/prompt" && *type != "ref/resource"))
            return invalid("params.ref.type must be ref/prompt or ref/resource");
    }
    const bool by_prompt =
        what.method == "prompts/get" || (completes && *text_of(*subject, "type") == "ref/prompt");
    const auto* key = text_of(*subject, by_prompt ? "name" : "uri");
    if (key == nullptr)
        return invalid(by_prompt ? "the prompt's name must be a string" : "uri must be a string");
    const auto to = by_prompt ? route_of_prompt(*key) : route_of_uri(*key);
    if (!to.upstream) return invalid(to.problem);

    auto& up = ups[*to.upstream];
    const auto verdict = by_prompt ? parts.rules.prompts(up.wish.name, to.name)
                                   : parts.rules.reads(up.wish.name, *key);
    const auto record_name = up.wish.name + "." + what.method;
    room = wire::json::to_text(params);
    if (!verdict.allowed) {
        record_refusal(record_name, &room, audit::status::invalid_arguments, verdict.rule);
        return invalid("policy denied: " + verdict.rule);
    }
    if (!offers(up, what.method))
        return refuse(from, what.id, code::method_not_found, "Method not found");
    if (what.method == "resources/unsubscribe" && !unsubscribes(from, *to.upstream, *key))
        return out.to_agent(from, mcp::answer_text(what.id, "{}"));
    const bool subscribes = what.method == "resources/subscribe";
    if (subscribes && sessions[from].subscriptions.size() >= most_subscriptions)
        return refuse(from, what.id, code::too_many_calls, "too many subscriptions");
    auto* made = open_call({.from = from,
                            .id = what.id,
                            .upstream = *to.upstream,
                            .patience = up.call_timeout,
                            .subject = record_name,
                            .arguments = &room});
    if (made == nullptr) return;
    made->kind = call_kind::relayed;
    made->subject = record_name;
    if (subscribes) {
        made->subscribes = true;
        made->uri = *key;
    }
    std::string text;
    {
        wire::json::writer w{text};
        w.begin_object();
        for (const auto& [name, data] : *params.as_object()) {
            if (name == "_meta") continue;
            w.key(name);
            if (by_prompt && !completes && name == "name") w.element(to.name);
            else if (by_prompt && completes && name == "ref") {
                w.begin_object();
                for (const auto& [inner, value] : *data.as_object()) {
                    w.key(inner);
                    if (inner == "name") w.element(to.name);
                    else w.element(value);
                }
                w.end_object();
            } else w.element(data);
        }
        w.end_object();
    }
    text = safe(text);
    if (meta != nullptr) {
        text.pop_back();
        text += text.size() > 1 ? ",\"_meta\":" : "\"_meta\":";
        if (!put_meta(text, *meta, *made))
            return fail_call(*made, code::invalid_params, "params._meta cannot be read",
                             "params._meta cannot be read");
        text += '}';
    }
    out.to_upstream(*to.upstream, mcp::request_text(std::to_string(made->id), what.method, text));
}

auto gateway::state::offers(const upstream& of, std::string_view method) -> bool {
    if (method == "completion/complete") return of.has_completions;
    if (method == "resources/subscribe" || method == "resources/unsubscribe") return of.subscribes;
    return true;
}

void gateway::state::finish_relayed(call& of, const mcp::message& answer) {
    if (answer.kind == mcp::message_kind::failure) return finish_tool_failure(of, answer);
    const auto& result = *answer.result;
    if (result.type != kind::object)
        return fail_call(of, code::refused_answer, "the server's result is no object",
                         "the result is no object");
    if (result.text.size() > options.result_bytes) {
        const auto words = "the result has " + std::to_string(result.text.size()) +
                           " bytes and may have " + std::to_string(options.result_bytes) +
                           " (--result-bytes)";
        return fail_call(of, code::too_large, words, words);
    }
    if (of.subscribes) {
        auto& all = sessions[of.session].subscriptions;
        const auto same = [&](const subscription& each) {
            return each.upstream == of.upstream && each.uri == of.uri;
        };
        if (std::ranges::none_of(all, same)) all.push_back({of.upstream, of.uri});
    }
    close_call(of, audit::status::ok, {}, mcp::answer_text(of.agent_id, safe(result.text)));
}

// Takes it back for this agent; true when it was the last one, so that the server must know.
auto gateway::state::unsubscribes(session_id from, std::size_t at, std::string_view uri) -> bool {
    const auto same = [&](const subscription& each) {
        return each.upstream == at && each.uri == uri;
    };
    std::erase_if(sessions[from].subscriptions, same);
    return std::ranges::none_of(sessions, [&](const session& each) {
        return std::ranges::any_of(each.subscriptions, same);
    });
}

void gateway::state::forget_subscription(const subscription& which) {
    const auto same = [&](const subscription& each) {
        return each.upstream == which.upstream && each.uri == which.uri;
    };
    for (const auto& each : sessions)
        if (std::ranges::any_of(each.subscriptions, same)) return;
    std::string params = "{\"uri\":";
    wire::json::append_quoted(params, which.uri);
    own_request(which.upstream, "resources/unsubscribe", safe(params) + "}");
}

// What is true of a server is made true again after a new start.
void gateway::state::subscribe_again(std::size_t to) {
    std::vector<std::string_view> wanted;
    for (const auto& each : sessions)
        for (const auto& subscribed : each.subscriptions)
            if (subscribed.upstream == to) wanted.push_back(subscribed.uri);
    std::ranges::sort(wanted);
    const auto repeated = std::ranges::unique(wanted);
    wanted.erase(repeated.begin(), repeated.end());
    for (const auto uri : wanted) {
        std::string params = "{\"uri\":";
        wire::json::append_quoted(params, uri);
        own_request(to, "resources/subscribe", safe(params) + "}");
    }
}

void gateway::state::set_level(session_id from, const mcp::message& what) {
    const auto* word = agent_reader.member(what.params, "level");
    const bool is_text = word != nullptr && word->type == kind::string;
    const int level = is_text ? level_of(plain_string(word->text, more_room)) : -1;
    if (level < 0)
        return refuse(from, what.id, code::invalid_params,
                      "params.level must be debug, info, notice, warning, error, critical, alert "
                      "or emergency");
    sessions[from].level = level;
    for (std::size_t i = 0; i < ups.size(); ++i) send_level(i);
    out.to_agent(from, mcp::answer_text(what.id, "{}"));
}

// The server has one level for all agents: the one that says most. Each agent gets its own part.
void gateway::state::send_level(std::size_t to) {
    if (!ups[to].has_logging || !options.relay.has(mcp::feature::logging)) return;
    int most = -1;
    for (const auto& each : sessions)
        if (each.level >= 0 && (most < 0 || each.level < most)) most = each.level;
    if (most < 0 || most == ups[to].level) return;
    ups[to].level = most;
    own_request(to, "logging/setLevel", "{\"level\":\"" + std::string{levels[most]} + "\"}");
}

void gateway::state::own_request(std::size_t to, std::string_view method, std::string_view params) {
    auto& up = ups[to];
    if (up.now != upstream::phase::up || up.own_requests >= most_own_requests ||
        out.waiting_for_upstream(to) >= most_waiting_bytes)
        return;
    auto* made = calls.open(now, up.call_timeout);
    if (made == nullptr) return;
    ++up.own_requests;
    made->kind = call_kind::own;
    made->upstream = static_cast<std::uint32_t>(to);
    out.to_upstream(to, mcp::request_text(std::to_string(made->id), method, params));
}

} // namespace glove::kernel
