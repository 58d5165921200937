// Lines of servers. One that is no message ends what waits for the server: nobody can know which
// answer it was meant to be.
#include "kernel/core.hpp"
#include "kernel/texts.hpp"

namespace glove::kernel {

using mcp::code;

void gateway::state::upstream_line(std::size_t from, const mcp::line_reader::line& line) {
    auto& up = ups[from];
    if (!up.is_alive() && up.now != upstream::phase::initializing) return;
    if (line.too_long) {
        ++counts.malformed_upstream_lines;
        const auto words = "a message of the server has " + std::to_string(line.bytes) +
                           " bytes and may have " + std::to_string(mcp::longest_message);
        if (up.now != upstream::phase::up)
            return fail_upstream(from, code::too_large, words, words);
        // The next line is a message again, so the server lives on. Only when nobody can know whose
        // answer this was is it the end of all that wait.
        auto* meant = calls.find(read_id(mcp::made_out_id(line.text, line.tail)).number);
        if (meant != nullptr && meant->upstream == from && meant->session != no_session)
            return fail_call(*meant, code::too_large, words, words);
        fail_calls_of(from, code::too_large, words, words);
        return answer_waiting_lists();
    }
    upstream_text = &line;
    const auto read = upstream_reader.read(line.text);
    if (!read) return malformed_answer(from, read.error());
    if (read->params != nullptr && read->params->type != wire::json::kind::object)
        return malformed_answer(
            from, {code::invalid_request, "params must be an object", std::string{read->id}});
    switch (read->kind) {
    case mcp::message_kind::request: return upstream_request(from, *read);
    case mcp::message_kind::notification: return upstream_notification(from, *read);
    case mcp::message_kind::answer:
    case mcp::message_kind::failure: return upstream_answer(from, *read);
    }
}

void gateway::state::malformed_answer(std::size_t from, const mcp::refusal& why) {
    auto& up = ups[from];
    ++counts.malformed_upstream_lines;
    if (up.now == upstream::phase::initializing) {
        // What servers print before they speak.
        if (++up.malformed == 1)
            note(up,
                 "the server " + up.wish.name +
                     " writes to its stdout what is no message, which is skipped before its first "
                     "answer and ends it afterwards");
        if (up.malformed <= most_banner_lines) return;
        return fail_upstream(from, code::refused_answer, "the server does not speak the protocol",
                             "wrote more than " + std::to_string(most_banner_lines) +
                                 " lines that are no message");
    }
    // When it is clear whose answer it is, it is the only one that is lost.
    auto* meant = calls.find(read_id(why.id).number);
    if (meant != nullptr && meant->upstream == from && meant->session != no_session)
        return fail_call(*meant, code::refused_answer,
                         "the server's answer was refused: " + why.words, why.words);
    fail_upstream(from, code::refused_answer, "a line of the server was refused: " + why.words,
                  "wrote a line that was refused: " + why.words);
}

void gateway::state::upstream_answer(std::size_t from, const mcp::message& what) {
    const auto id = read_id(what.id);
    auto* meant = calls.find(id.number);
    if (meant == nullptr || meant->upstream != from) {
        ++counts.stray_answers; // late, repeated, or to nothing
        return;
    }
    if (id.quoted)
        return malformed_answer(from, {code::invalid_request, "its id is a string and not a number",
                                       std::string{what.id}});
    switch (meant->kind) {
    case call_kind::initialize: return initialized(*meant, what);
    case call_kind::listing: return finish_page(*meant, what);
    case call_kind::own: return finish_own(*meant);
    case call_kind::relayed: return finish_relayed(*meant, what);
    case call_kind::tool: break;
    }
    if (what.kind == mcp::message_kind::answer) finish_tool(*meant, what);
    else finish_tool_failure(*meant, what);
}

// A call whose time is over.
void gateway::state::due(call& of) {
    const std::size_t to = of.upstream;
    auto& up = ups[to];
    const bool is_start = of.kind == call_kind::initialize || of.kind == call_kind::listing;
    const auto patience = is_start ? up.start_timeout : of.deadline - of.began;
    const auto took =
        "did not answer within " +
        std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(patience).count()) +
        " ms";
    if (of.kind == call_kind::initialize) {
        calls.close(of);
        return fail_upstream(to, code::timed_out, "the server " + up.wish.name + " " + took,
                             took + " (--start-timeout)");
    }
    const auto id = of.id;
    const auto cancelled = "{\"requestId\":" + std::to_string(of.id) + ",\"reason\":\"timed out\"}";
    if (of.kind == call_kind::listing) {
        const auto kind = of.list;
        calls.close(of);
        if (up.now == upstream::phase::listing)
            return fail_upstream(to, code::timed_out, "the server " + up.wish.name + " " + took,
                                 took + " (--start-timeout)");
        list_failed(to, kind, took);
    } else if (of.kind == call_kind::own) finish_own(of);
    else fail_call(of, code::timed_out, "the server " + up.wish.name + " " + took, took);
    cancel(to, id, cancelled);
}

} // namespace glove::kernel
