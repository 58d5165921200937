// `glove log`: options to a request.
#include "cli/options.hpp"
#include "cli/report_error.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <glove/audit/names.hpp>
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>
#include <glove/host/log.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/user_directories.hpp>

namespace glove::cli {

namespace {

constexpr const char* usage = "glove log [OPTIONS] [FILE...]";
constexpr int not_all_read = 1;

struct log_words {
    host::log_request request;
    std::string since, until;
    std::size_t limit = 0;
};

[[nodiscard]] auto states() -> std::vector<std::string> {
    std::vector<std::string> out{"open", "lost"};
    for (const auto word : audit::status_names)
        if (word != "pending") out.emplace_back(word);
    return out;
}
[[nodiscard]] auto actions() -> std::vector<std::string> {
    return {audit::action_names.begin(), audit::action_names.end()};
}

[[nodiscard]] auto one_of(const std::vector<std::string>& words) -> CLI::Validator {
    CLI::IsMember out(words);
    out.description("");
    return out;
}

void declare(CLI::App& app, log_words& words) {
    auto& filter = words.request.filter;
    app.description("Show what runs did: commands, connections and calls of tools.");
    app.add_option("FILE", words.request.files,
                   "Audit files; without one, those of the newest runs");
    app.add_option("--status", filter.states, "Only these: ok, execution_error, open, lost ...")
        ->type_name("WORD")
        ->allow_extra_args(false)
        ->check(one_of(states()));
    app.add_option("--action", filter.actions, "Only these: agent_launch, egress, call_tool ...")
        ->type_name("WORD")
        ->allow_extra_args(false)
        ->check(one_of(actions()));
    app.add_option("--since", words.since, "What began at TIME or later: 10m, 2h, 1d (ago)")
        ->type_name("TIME");
    app.add_option("--until", words.until, "What began at TIME or before: 2026-01-31T12:00:00Z")
        ->type_name("TIME");
    app.add_option("--run", filter.run, "Only the run whose id is, or begins with, ID")
        ->type_name("ID");
    app.add_option("--limit", words.limit, "Only the last N")
        ->type_name("N")
        ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000'000}).description(""));
    app.add_flag("--follow", words.request.follow, "Go on with what is added, until Ctrl-C");
    app.add_flag("--json", words.request.json, "Print the matching lines as they are");
    app.footer("--status and --action may be given many times. open: the outcome may still come;\n"
               "lost: it will not. Times are UTC.\n\n"
               "Examples:\n"
               "  glove log\n"
               "  glove log --since 2h --action egress --status invalid_arguments\n"
               "  glove log --follow\n"
               "  glove log --json --limit 1 run.jsonl\n\n"
               "Exit status: 0, 1 a line or file could not be read, 2 usage.");
}

[[nodiscard]] auto moment(const char* option, const std::string& text)
    -> result<std::optional<std::int64_t>> {
    if (text.empty()) return std::optional<std::int64_t>{};
    if (const auto exact = parse_rfc3339(text)) return exact;
    if (const auto age = parse_age(text))
        return std::optional{sys::system_clock{}.wall().count() - *age};
    return fail(errc::invalid_input, "usage", std::string{option} + " " + text + ": not a time",
                "give how long ago, as in 10m, 2h or 1d, or a time such as 2026-01-31T12:00:00Z");
}

[[nodiscard]] auto complete(log_words& words, const invocation& call) -> result<> {
    auto& request = words.request;
    request.files.insert(request.files.end(), call.command.begin(), call.command.end());
    GLOVE_TRY(request.filter.since_ns, moment("--since", words.since));
    GLOVE_TRY(request.filter.until_ns, moment("--until", words.until));
    if (words.limit > 0) request.limit = words.limit;
    if (request.files.empty()) {
        GLOVE_TRY(request.directory, sys::state_directory());
        request.directory += "/audit";
    }
    request.style = {.width = width_of(1), .colours = has_colours(1)};
    request.tell = report_error;
    request.note = [](const std::string& text) {
        (void)std::fputs(("glove: " + printable(text) + "\n").c_str(), stderr);
    };
    return {};
}

} // namespace

void declare_log(CLI::App& app) {
    static log_words unused; // options keep references to where they store
    declare(app, unused);
}

auto log_verb(const invocation& call) -> int {
    log_words words;
    CLI::App app;
    declare(app, words);
    if (const auto ended = parse_options(app, usage, call)) return *ended;
    if (const auto good = complete(words, call); !good) return usage_failure(good.error());
    const auto shown = host::show_log(words.request);
    if (!shown) report_error(shown.error());
    return shown && *shown ? 0 : not_all_read;
}

} // namespace glove::cli
