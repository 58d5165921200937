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

// For one URI, with all templates of a server: milliseconds.
constexpr std::size_t most_template_steps = 1UL << 20;

[[nodiscard]] auto text_of(const wire::json::value& object, std::string_view name)
    -> const std::string* {
    const auto* found = object.find(name);
    return found != nullptr ? found->as_string() : nullptr;
}

[[nodiscard]] auto without_meta(const wire::json::value& params) -> wire::json::value {
    auto members = *params.as_object();
    std::erase_if(members, [](const wire::json::member& each) { return each.name == "_meta"; });
    return members;
}

} // namespace

auto level_of(std::string_view word) noexcept -> int {
    const auto* const found = std::ranges::find(levels, word);
    return found == std::end(levels) ? -1 : static_cast<int>(found - std::begin(levels));
}

// The one server that a resource is of.
auto gateway::state::route_of_uri(std::string_view uri) -> route {
    const auto is_offering = [](const upstream& each) { return each.has_resources; };
    if (std::ranges::count_if(ups, is_offering) == 1)
        return {
            static_cast<std::size_t>(std::ranges::find_if(ups, is_offering) - ups.begin()), {}, {}};
    std::vector<std::size_t> listing_it, matching;
    for (std::size_t i = 0; i < ups.size(); ++i) {
        if (!ups[i].has_resources) continue;
        const auto& known = ups[i].at(listing_kind::resources).items;
        if (std::ranges::find(known, uri, &listed_item::key) != known.end())
            listing_it.push_back(i);
        std::size_t steps = most_template_steps;
        if (std::ranges::any_of(ups[i].at(listing_kind::templates).items, [&](const auto& each) {
                return fits_template(uri, each.key, steps);
            }))
            matching.push_back(i);
    }
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

// What a request is routed by: a URI or the name of a prompt, of itself or of its reference.
auto gateway::state::target_of(std::string_view method, const wire::json::value& params)
    -> std::expected<target, std::string_view> {
    target found;
    found.completes = method == "completion/complete";
    const auto* subject = found.completes ? params.find("ref") : &params;
    if (subject == nullptr) return std::unexpected("params.ref must be an object");
    const auto* type = text_of(*subject, "type");
    if (found.completes && (type == nullptr || (*type != "ref/prompt" && *type != "ref/resource")))
        return std::unexpected("params.ref.type must be ref/prompt or ref/resource");
    found.by_prompt = method == "prompts/get" || (found.completes && *type == "ref/prompt");
    const auto* key = text_of(*subject, found.by_prompt ? "name" : "uri");
    if (key == nullptr)
        return std::unexpected(found.by_prompt ? "the prompt's name must be a string"
                                               : "uri must be a string");
    if (key->size() > longest_key)
        return std::unexpected(found.by_prompt ? "the prompt's name must have at most 8192 bytes"
                                               : "uri must have at most 8192 bytes");
    found.key = *key;
    found.where = found.by_prompt ? route_of_prompt(*key) : route_of_uri(*key);
    return found;
}

// With the server's name of a prompt in place of the agent's, and without `_meta`.
auto gateway::state::params_for(const target& to, const wire::json::value& params) -> std::string {
    std::string text;
    {
        wire::json::writer w{text};
        const auto put = [&](const wire::json::value& of, std::string_view name) {
            w.begin_object();
            for (const auto& [inner, data] : *of.as_object()) {
                w.key(inner);
                if (to.by_prompt && inner == name) w.element(to.where.name);
                else w.element(data);
            }
            w.end_object();
        };
        const auto kept = without_meta(params);
        if (!to.completes) put(kept, "name");
        else {
            w.begin_object();
            for (const auto& [name, data] : *kept.as_object()) {
                w.key(name);
                if (name == "ref") put(data, "name");
                else w.element(data);
            }
            w.end_object();
        }
    }
    return safe(text);
}

void gateway::state::relay_request(session_id from, const mcp::message& what) {
    const auto invalid = [&](std::string_view words) {
        refuse(from, what.id, code::invalid_params, words);
    };
    if (what.method == "logging/setLevel") return set_level(from, what);
    if (what.params == nullptr) return invalid("params must be an object");
    const auto params = wire::json::read(what.params->text, mcp::message_limits());
    if (!params) return invalid("params cannot be read");
    const auto* meta = agent_reader.member(what.params, "_meta");
    if (const auto complaint = check_meta(meta); !complaint.empty()) return invalid(complaint);
    const auto to = target_of(what.method, *params);
    if (!to) return invalid(to.error());
    if (!to->where.upstream) return invalid(to->where.problem);

    const auto which = *to->where.upstream;
    auto& up = ups[which];
    const auto verdict = to->by_prompt ? parts.rules.prompts(up.wish.name, to->where.name)
                                       : parts.rules.reads(up.wish.name, to->key);
    const auto record_name = up.wish.name + "." + what.method;
    room = wire::json::to_text(*params);
    if (!verdict.allowed) {
        record_refusal(record_name, &room, audit::status::invalid_arguments, verdict.rule);
        return invalid("policy denied: " + verdict.rule);
    }
    if (!offers(up, what.method))
        return refuse(from, what.id, code::method_not_found, "Method not found");
    if (what.method == "resources/unsubscribe" && !unsubscribes(from, which, to->key))
        return out.to_agent(from, mcp::answer_text(what.id, "{}"));
    const bool subscribes = what.method == "resources/subscribe";
    if (subscribes && sessions[from].subscriptions.size() + open_subscriptions(sessions[from]) >=
                          most_subscriptions)
        return refuse(from, what.id, code::too_many_calls, "too many subscriptions");
    const wanted_call wanted{.from = from,
                             .id = what.id,
                             .upstream = which,
                             .patience = up.call_timeout,
                             .subject = record_name,
                             .arguments = &room};
    if (!has_room(wanted)) return;
    auto* made = open_call(wanted);
    if (made == nullptr) return;
    made->kind = call_kind::relayed;
    made->subject = record_name;
    made->subscribes = subscribes;
    if (subscribes) made->uri = to->key;
    auto text = params_for(*to, *params);
    if (meta != nullptr) {
        text.pop_back();
        text += text.size() > 1 ? ",\"_meta\":" : "\"_meta\":";
        if (!put_meta(text, *meta, *made))
            return fail_call(*made, code::invalid_params, "params._meta cannot be read",
                             "params._meta cannot be read");
        text += '}';
    }
    out.to_upstream(which, mcp::request_text(std::to_string(made->id), what.method, text),
                    made->id);
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
    close_call(of, audit::status::ok, {}, answer_with(of, result.text));
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

auto gateway::state::open_subscriptions(const session& of) -> std::size_t {
    return static_cast<std::size_t>(
        std::ranges::count_if(of.requests, [&](const open_request& each) {
            const auto* const found = calls.find(each.call);
            return found != nullptr && found->subscribes;
        }));
}

auto gateway::state::is_subscribed(std::size_t at, std::string_view uri) -> bool {
    return std::ranges::any_of(sessions, [&](const session& each) {
        return std::ranges::any_of(
                   each.subscriptions,
                   [&](const subscription& one) { return one.upstream == at && one.uri == uri; }) ||
               std::ranges::any_of(each.requests, [&](const open_request& one) {
                   const auto* const found = calls.find(one.call);
                   return found != nullptr && found->subscribes && found->upstream == at &&
                          found->uri == uri;
               });
    });
}

void gateway::state::forget_subscription(const subscription& which) {
    auto& up = ups[which.upstream];
    // Of a server that does not run, nothing is left to be taken back.
    if (up.now != upstream::phase::up || is_subscribed(which.upstream, which.uri)) return;
    // Beyond it, the server tells of what nobody hears.
    if (up.unsettled.size() < most_unsettled) up.unsettled.insert(which.uri);
    send_subscription(which.upstream);
}

// What is true of a server is made true again after a new start.
void gateway::state::subscribe_again(std::size_t to) {
    auto& wanted = ups[to].unsettled;
    wanted.clear();
    for (const auto& each : sessions)
        for (const auto& subscribed : each.subscriptions)
            if (subscribed.upstream == to) wanted.insert(subscribed.uri);
    send_subscription(to);
}

void gateway::state::send_subscription(std::size_t to) {
    auto& wanted = ups[to].unsettled;
    if (wanted.empty()) return;
    std::string params = "{\"uri\":";
    wire::json::append_quoted(params, *wanted.begin());
    params = safe(params) + "}";
    if (own_request(to, own_kind::subscription,
                    is_subscribed(to, *wanted.begin()) ? "resources/subscribe"
                                                       : "resources/unsubscribe",
                    params))
        wanted.erase(wanted.begin());
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
    if (own_request(to, own_kind::level, "logging/setLevel",
                    "{\"level\":\"" + std::string{levels[most]} + "\"}"))
        ups[to].level = most;
}

auto gateway::state::own_request(std::size_t to, own_kind kind, std::string_view method,
                                 std::string_view params) -> bool {
    auto& up = ups[to];
    auto& open = up.own_open[static_cast<std::size_t>(kind)];
    if (open || up.now != upstream::phase::up || out.waiting_for_upstream(to) >= most_waiting_bytes)
        return false;
    auto* made = calls.open(now, up.call_timeout, reserved_slots);
    if (made == nullptr) return false;
    open = true;
    made->kind = call_kind::own;
    made->own = kind;
    made->upstream = static_cast<std::uint32_t>(to);
    out.to_upstream(to, mcp::request_text(std::to_string(made->id), method, params));
    return true;
}

// Whatever came of it; what has changed meanwhile follows.
void gateway::state::finish_own(call& of) {
    const std::size_t to = of.upstream;
    const auto kind = of.own;
    close_call(of, audit::status::ok, {}, {});
    if (kind == own_kind::level) send_level(to);
    else send_subscription(to);
}

} // namespace glove::kernel
