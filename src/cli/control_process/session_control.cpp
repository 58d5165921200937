// What is done to a session that runs, from outside of its terminal: one request each.
//
// Guarantees: a text goes in as it is, in pieces that a request can hold, in order; after a piece
// that was refused none follows, and how much went in is told.
#include "cli/control_process/session_actions.hpp"
#include "cli/control_process/session_shown.hpp"
#include "cli/control_process/terminal_requests.hpp"
#include <array>
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::cli {

namespace {

constexpr std::size_t most_text_bytes = 1UL << 20;

// An acknowledgement, or what the service says instead; the status.
[[nodiscard]] auto show_done(const result<control::remote_answer>& answer, std::string_view method,
                             const session_words& words, const std::string& what) -> result<int> {
    if (!answer) return std::unexpected(answer.error());
    if (!*answer) return told(answer->error(), method);
    GLOVE_CHECK(print(words.service.json ? printable_json(**answer) + "\n" : what + "\n"));
    return done;
}

[[nodiscard]] auto text_of(const session_words& words) -> result<std::string> {
    if (words.words[1] != "-") return words.words[1];
    auto text = sys::read_all(sys::fd_ref::standard_input(), most_text_bytes);
    if (!text) text.error().detail = "standard input: " + text.error().detail;
    return text;
}

// Of several pieces each is a request, with a key that comes from the one that was given.
[[nodiscard]] auto piece_key(const std::string& key, std::size_t piece) -> std::string {
    return key.empty() || piece == 0 ? key : key + "." + std::to_string(piece);
}

} // namespace

auto send_input(const session_words& words) -> result<int> {
    GLOVE_TRY(auto text, text_of(words));
    if (words.enter) text += '\r';
    if (text.empty()) return wrong_usage("there is nothing to send", session_usage);
    GLOVE_TRY(const auto asks, service::of(words.service));
    const auto& name = words.words[0];
    result<control::remote_answer> answer;
    for (std::size_t at = 0, piece = 0; at < text.size(); at += most_input_piece, ++piece) {
        answer = asks->change(
            "write_stdin", input_request(name, std::string_view{text}.substr(at, most_input_piece)),
            piece_key(words.request_key, piece));
        if (answer && *answer) continue;
        if (at != 0) note(std::to_string(at) + " bytes went in before");
        break;
    }
    return show_done(answer, "write_stdin", words,
                     std::to_string(text.size()) + (text.size() == 1 ? " byte" : " bytes") +
                         " sent to " + printable(name));
}

auto resize_terminal(const session_words& words) -> result<int> {
    const auto size = size_named(words.words[1]);
    if (!size)
        return wrong_usage("'" + words.words[1] + "' is no size: ROWSxCOLUMNS, each 1 to 4096",
                           "glove session resize " + words.words[0] + " 24x80");
    GLOVE_TRY(const auto asks, service::of(words.service));
    return show_done(
        asks->change("resize", resize_request(words.words[0], *size), words.request_key), "resize",
        words,
        "the terminal of " + printable(words.words[0]) + " has " + std::to_string(size->rows) +
            " rows and " + std::to_string(size->columns) + " columns");
}

auto signal_session(const session_words& words) -> result<int> {
    constexpr std::array<std::string_view, 3> known{"interrupt", "terminate", "hangup"};
    const auto& name = words.words[1];
    if (std::ranges::find(known, name) == known.end())
        return wrong_usage("'" + name + "' is no signal: interrupt, terminate or hangup",
                           "glove session signal " + words.words[0] + " interrupt");
    GLOVE_TRY(const auto asks, service::of(words.service));
    return show_done(
        asks->change("signal", signal_request(words.words[0], name), words.request_key), "signal",
        words, name + " sent to " + printable(words.words[0]));
}

auto stop_session(const session_words& words) -> result<int> {
    GLOVE_TRY(const auto asks, service::of(words.service));
    return show_session(asks->change("stop_session", named(words.words[0]), words.request_key),
                        "stop_session", words.service.json);
}

auto cleanup_session(const session_words& words) -> result<int> {
    GLOVE_TRY(const auto asks, service::of(words.service));
    return show_done(asks->change("cleanup_session", named(words.words[0]), words.request_key),
                     "cleanup_session", words, printable(words.words[0]) + " is cleaned up");
}

} // namespace glove::cli
