// tools/call: the one way to a tool. The policy decides on the decoded arguments, and what it
// decided on is written anew for the record and for the server.
#include "kernel/core.hpp"
#include "kernel/texts.hpp"
#include <algorithm>
#include <glove/wire/json_writer.hpp>

namespace glove::kernel {

using mcp::code;
using wire::json::kind;

namespace {

[[nodiscard]] auto size_words(std::size_t bytes, std::uint64_t limit) -> std::string {
    return "the result has " + std::to_string(bytes) + " bytes and may have " +
           std::to_string(limit) + " (--result-bytes)";
}

[[nodiscard]] auto error_words(std::string_view number, std::string_view words) -> std::string {
    return "error " + excerpt(number, 20) + ": " + excerpt(words);
}

} // namespace

void gateway::state::record_refusal(std::string_view subject, const std::string* arguments,
                                    audit::status status, std::string_view why) {
    ++counts.denied;
    (void)log.stage({.action = audit::action::call_tool,
                     .subject = subject,
                     .arguments = arguments,
                     .status = status,
                     .why = why,
                     .number = log.next_number()});
}

auto gateway::state::check_meta(const wire::json::slice* meta) -> std::string_view {
    if (meta == nullptr) return {};
    if (meta->text.size() > most_meta) return "params._meta may have at most 16 KiB";
    if (meta->type != kind::object || !meta_outline.read(meta->text, mcp::message_limits()))
        return "params._meta must be an object";
    const auto* token = meta_outline.find("progressToken");
    if (token != nullptr && ((token->type != kind::string && token->type != kind::integer) ||
                             token->text.size() > 1024))
        return "params._meta.progressToken must be a string or an integer of at most 1024 bytes";
    return {};
}

// After `check_meta` of the same text.
auto gateway::state::put_meta(std::string& to, const wire::json::slice& meta, call& of) -> bool {
    if (!meta_outline.read(meta.text, mcp::message_limits())) return false;
    to += '{';
    if (const auto* token = meta_outline.find("progressToken")) {
        of.token = token->text;
        to += "\"progressToken\":";
        append_number(to, of.id);
    }
    // Written anew, as all that reaches a server.
    for (const auto& each : meta_outline.members()) {
        if (each.name == "progressToken") continue;
        if (!to.ends_with('{')) to += ',';
        wire::json::append_quoted(to, each.name);
        to += ':';
        std::string anew;
        wire::json::append_rewritten(anew, each.text);
        append_safe(to, anew);
    }
    to += '}';
    return true;
}

auto gateway::state::has_room(const wanted_call& what) -> bool {
    auto& up = ups[what.upstream];
    const auto refused = [&](code number, std::string_view words) {
        record_refusal(what.subject, what.arguments, audit::status::transport_error, words);
        refuse(what.from, what.id, number, words);
        return false;
    };
    if (up.now != upstream::phase::up)
        return refused(code::upstream_gone, "the server " + up.wish.name + " does not run");
    if (sessions[what.from].requests.size() >= most_calls_of_a_session)
        return refused(code::too_many_calls,
                       "more than " + std::to_string(most_calls_of_a_session) + " open requests");
    if (open_calls >= most_calls)
        return refused(code::too_many_calls,
                       "more than " + std::to_string(most_calls) + " open requests of all agents");
    if (out.waiting_for_upstream(what.upstream) >= most_waiting_bytes)
        return refused(code::too_many_calls,
                       "the server " + up.wish.name + " does not read what waits for it");
    if (!calls.has_room(reserved_slots))
        return refused(code::too_many_calls, "too many requests are open");
    return true;
}

auto gateway::state::open_call(const wanted_call& what) -> call* {
    const auto number = log.next_number();
    if (!log.stage({.action = audit::action::call_tool,
                    .subject = what.subject,
                    .arguments = what.arguments,
                    .status = audit::status::pending,
                    .number = number}))
        return nullptr;
    auto& by = sessions[what.from];
    auto* made = calls.open(now, what.patience, reserved_slots);
    made->upstream = static_cast<std::uint32_t>(what.upstream);
    made->session = what.from;
    made->number = number;
    made->agent_id = what.id;
    by.requests.push_back({hash_of(what.id), made->id});
    ++open_calls;
    ++counts.calls;
    return made;
}

// In `tree` what is decided on, when somebody decides on it, and in `room` what is recorded and
// sent of it: what was decided on, or what was validated, written anew.
auto gateway::state::take_arguments(const wire::json::slice* from, wire::json::value* tree)
    -> std::string_view {
    room.clear();
    if (from == nullptr) return {};
    if (from->type != kind::object) return "params.arguments must be an object";
    if (tree == nullptr) {
        wire::json::append_rewritten(room, from->text);
        return {};
    }
    auto read = wire::json::read(from->text, mcp::message_limits());
    if (!read) return "params.arguments cannot be read";
    *tree = *std::move(read);
    wire::json::writer{room}.element(*tree);
    return {};
}

auto gateway::state::read_call(const wire::json::slice* params, asked_tool& into)
    -> std::string_view {
    const auto* name = agent_reader.member(params, "name");
    if (name == nullptr || name->type != kind::string) return "params.name must be a string";
    if (agent_reader.member(params, "task") != nullptr) return "tasks are not offered";
    into.meta = agent_reader.member(params, "_meta");
    if (const auto complaint = check_meta(into.meta); !complaint.empty()) return complaint;
    into.arguments = agent_reader.member(params, "arguments");
    into.name = plain_string(name->text, more_room);
    return {};
}

// But for what is counted.
auto gateway::state::judge(const tool& called, const wire::json::value* arguments) const
    -> policy::verdict {
    policy::verdict verdict{.allowed = false, .rule = called.refusal};
    if (called.refusal.empty())
        verdict = parts.rules.decides({called.server, called.name}, arguments);
    if (verdict.allowed && !called.shown) return {false, "the tool is not offered"};
    return verdict;
}

void gateway::state::refuse_unknown(session_id from, std::string_view id, std::string_view name,
                                    const std::string* arguments) {
    const auto words = "Unknown tool: " + excerpt(name);
    record_refusal(excerpt(name), arguments, audit::status::tool_not_found, words);
    refuse(from, id, code::invalid_params, words);
}

void gateway::state::send_call(call& made, const asked_tool& asked) {
    const auto& called = *made.what;
    std::string text;
    text.reserve(96 + called.head.size() + room.size() +
                 (asked.meta != nullptr ? asked.meta->text.size() : 0));
    text += R"({"jsonrpc":"2.0","id":)";
    append_number(text, made.id);
    text.append(R"(,"method":"tools/call","params":)").append(called.head);
    if (asked.arguments != nullptr) {
        text += R"(,"arguments":)";
        append_safe(text, room);
    }
    if (asked.meta != nullptr) {
        text += R"(,"_meta":)";
        if (!put_meta(text, *asked.meta, made))
            return fail_call(made, code::invalid_params, "params._meta cannot be read",
                             "params._meta cannot be read");
    }
    text += "}}";
    out.to_upstream(called.upstream, std::move(text), made.id);
}

void gateway::state::call_tool(session_id from, const mcp::message& what) {
    asked_tool asked;
    if (const auto complaint = read_call(what.params, asked); !complaint.empty())
        return refuse(from, what.id, code::invalid_params, complaint);
    const auto* found = tools.find(asked.name);
    std::optional<wire::json::value> tree;
    if (found != nullptr && (*found)->judged) tree.emplace();
    if (const auto complaint = take_arguments(asked.arguments, tree ? &*tree : nullptr);
        !complaint.empty())
        return refuse(from, what.id, code::invalid_params, complaint);
    const auto* const recorded = asked.arguments != nullptr ? &room : nullptr;
    if (found == nullptr) return refuse_unknown(from, what.id, asked.name, recorded);
    const auto called = *found;
    const wanted_call wanted{.from = from,
                             .id = what.id,
                             .upstream = called->upstream,
                             .patience = called->patience,
                             .subject = called->qualified,
                             .arguments = recorded};
    auto verdict = judge(*called, recorded != nullptr && tree ? &*tree : nullptr);
    if (verdict.allowed && !has_room(wanted)) return;
    // Last, so that only what is sent is counted.
    if (verdict.allowed && called->metered)
        verdict = parts.meter.admit(called->qualified, called->limits, now);
    if (!verdict.allowed) {
        record_refusal(called->qualified, recorded, audit::status::invalid_arguments, verdict.rule);
        return out.to_agent(from, mcp::tool_error_text(what.id, "policy denied: " + verdict.rule));
    }
    auto* made = open_call(wanted);
    if (made == nullptr) return;
    made->kind = call_kind::tool;
    made->what = called;
    send_call(*made, asked);
}

void gateway::state::cancel(std::size_t at, std::uint64_t id, const std::string& params) {
    if (is_over() || out.take_back(at, id) || !ups[at].is_alive() ||
        out.waiting_for_upstream(at) >= most_waiting_bytes)
        return;
    out.to_upstream(at, mcp::notification_text("notifications/cancelled", params));
}

void gateway::state::close_call(call& of, audit::status status, std::string_view why,
                                outgoing message) {
    const auto from = of.session;
    if (from == no_session) {
        if (of.kind == call_kind::own)
            ups[of.upstream].own_open[static_cast<std::size_t>(of.own)] = false;
        return calls.close(of);
    }
    auto& by = sessions[from];
    const auto id = of.id;
    const auto to = of.upstream;
    const auto at = std::ranges::find(by.requests, id, &open_request::call);
    if (at != by.requests.end()) {
        *at = by.requests.back();
        by.requests.pop_back();
    }
    --open_calls;
    const bool staged =
        log.stage({.action = audit::action::call_tool,
                   .subject = of.kind == call_kind::tool ? std::string_view{of.what->qualified}
                                                         : std::string_view{of.subject},
                   .status = status,
                   .why = why,
                   .latency = now - of.began,
                   .number = of.number});
    calls.close(of);
    if (staged && message.body.owner)
        out.to_agent(from, std::move(message.head), std::move(message.body),
                     std::move(message.tail));
    else if (staged && !message.head.empty()) out.to_agent(from, std::move(message.head));
    if (!by.asks.empty() && !has_call(by, to)) drop_asks(from, to, true);
}

auto gateway::state::has_call(const session& of, std::size_t at) -> bool {
    return std::ranges::any_of(of.requests, [&](const open_request& each) {
        const auto* const found = calls.find(each.call);
        return found != nullptr && found->upstream == at;
    });
}

void gateway::state::fail_call(call& of, code number, std::string_view words,
                               std::string_view why) {
    outgoing message;
    if (of.session != no_session) message.head = mcp::failure_text(of.agent_id, number, words);
    close_call(of, audit::status::transport_error, why, std::move(message));
}

void gateway::state::finish_tool(call& of, const mcp::message& answer) {
    const auto& result = *answer.result;
    const auto called = of.what;
    if (result.type != kind::object)
        return fail_call(of, code::refused_answer, "the server's result is no object",
                         "the result is no object");
    if (result.text.size() > called->result_bytes) {
        const auto words = size_words(result.text.size(), called->result_bytes);
        return close_call(of, audit::status::transport_error, words,
                          {mcp::tool_error_text(of.agent_id, words)});
    }
    const auto* flag = upstream_reader.member(&result, "isError");
    const bool failed = flag != nullptr && flag->text == "true";
    outgoing message;
    if (called->redacted) {
        std::string changed{result.text};
        (void)parts.rules.redact({called->server, called->name}, changed, called->result_bytes);
        if (changed.empty() || changed.size() > called->result_bytes) {
            const auto words = changed.empty() ? "the redacted result has many more than " +
                                                     std::to_string(called->result_bytes) + " bytes"
                                               : size_words(changed.size(), called->result_bytes);
            return close_call(of, audit::status::transport_error, words,
                              {mcp::tool_error_text(of.agent_id, words)});
        }
        message.head = mcp::answer_text(of.agent_id, safe(changed));
    } else message = answer_with(of, result.text);
    close_call(of, failed ? audit::status::execution_error : audit::status::ok,
               failed ? "tool error" : std::string_view{}, std::move(message));
}

// What holds nothing that could be taken for the end of a line is passed on as it was read and
// validated; a long one is not even copied.
auto gateway::state::answer_with(const call& of, std::string_view result) const -> outgoing {
    outgoing made;
    auto& text = made.head;
    const bool is_safe = !upstream_reader.outline().has_line_breaks();
    if (is_safe) made.body = upstream_text->share(result);
    const bool shared = made.body.owner != nullptr;
    text.reserve((shared ? 0 : result.size()) + of.agent_id.size() + 48);
    text.append(R"({"jsonrpc":"2.0","id":)").append(of.agent_id).append(R"(,"result":)");
    if (shared) made.tail = "}";
    else if (is_safe) text.append(result).append("}");
    else append_safe(text, result), text += '}';
    return made;
}

void gateway::state::finish_tool_failure(call& of, const mcp::message& answer) {
    const auto& failed = *answer.error;
    const auto limit = of.kind == call_kind::tool ? of.what->result_bytes : options.result_bytes;
    if (failed.text.size() > limit) {
        const auto words = size_words(failed.text.size(), limit);
        return fail_call(of, code::too_large, words, words);
    }
    if (of.kind == call_kind::tool && of.what->redacted)
        return finish_redacted_failure(of, failed.text);
    const auto* number = upstream_reader.member(&failed, "code");
    const auto* words = upstream_reader.member(&failed, "message");
    close_call(of, audit::status::execution_error,
               error_words(number->text, plain_string(words->text, more_room)),
               {mcp::failure_text(of.agent_id, safe(failed.text))});
}

// Nothing of the error but what redaction left is in the answer or in the record.
void gateway::state::finish_redacted_failure(call& of, std::string_view failure) {
    std::string text{failure};
    (void)parts.rules.redact({of.what->server, of.what->name}, text, of.what->result_bytes);
    auto tree = wire::json::read(text, mcp::message_limits());
    const auto* number = tree ? tree->find("code") : nullptr;
    const auto* words = tree ? tree->find("message") : nullptr;
    if (number == nullptr || words == nullptr || words->as_string() == nullptr ||
        text.size() > of.what->result_bytes)
        return fail_call(of, code::refused_answer, "an error that is not shown",
                         "an error that is not shown");
    close_call(of, audit::status::execution_error,
               error_words(wire::json::to_text(*number), *words->as_string()),
               {mcp::failure_text(of.agent_id, safe(text))});
}

} // namespace glove::kernel
