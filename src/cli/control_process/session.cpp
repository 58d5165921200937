// `glove session`: which action the words mean, and what each takes.
#include "cli/control_process/receipts.hpp"
#include "cli/control_process/session_actions.hpp"
#include "cli/options.hpp"

namespace glove::cli {

auto run_session(const invocation& call) -> int {
    session_words words;
    CLI::App app;
    declare(app, words);
    if (const auto ended = parse_options(app, session_usage, call)) return *ended;
    words.words.insert(words.words.end(), call.command.begin(), call.command.end());
    const std::vector<action_row<session_words>> rows{
        {"validate", validate_plan, 1, 1, "one plan", {}},
        {"create", create_session, 2, 2, "a name and a plan", {"--digest", "--request-key"}},
        {"list", list_sessions, 0, 0, "no name", {"--after", "--limit"}},
        {"status", session_status, 1, 1, "the name of one session", {}},
        {"start",
         start_session,
         1,
         1,
         "the name of one session",
         {"--authorization-id", "--expires", "--key", "--anchor", "--request-key"}},
        {"attach",
         attach_session,
         1,
         1,
         "the name of one session",
         {"--read-only", "--stdin", "--detach-key", "--from", "--from-end"}},
        {"send",
         send_input,
         2,
         2,
         "the name of a session, and a text or -",
         {"--enter", "--request-key"}},
        {"resize",
         resize_terminal,
         2,
         2,
         "the name of a session, and a size such as 24x80",
         {"--request-key"}},
        {"signal",
         signal_session,
         2,
         2,
         "the name of a session, and interrupt, terminate or hangup",
         {"--request-key"}},
        {"stop", stop_session, 1, 1, "the name of one session", {"--request-key"}},
        {"cleanup", cleanup_session, 1, 1, "the name of one session", {"--request-key"}},
        {"changes", show_changes, 2, 2, "the name of a session and of an exposure", {"--limit"}},
        {"receipts", fetch_receipts, 0, 0, "no name", {"--key", "--anchor"}},
        {"ack", acknowledge, 0, 0, "no name", {"--anchor", "--request-key"}},
    };
    return status_of(act(app, "session", session_usage, rows, words, service_options()));
}

} // namespace glove::cli
