// `glove daemon`, `glove session`, `glove exposure`, `glove journal`: checks the command line, and
// becomes glove-control. So `glove` itself links neither cryptography nor the protocol, and starts
// fast.
#include "cli/control_words.hpp"
#include "cli/options.hpp"
#include "cli/report_error.hpp"
#include <CLI/CLI.hpp>
#include <glove/run/exec.hpp>
#include <glove/sys/spawn.hpp>
#include <unistd.h>

namespace glove::cli {

namespace {

constexpr const char* program_name = "glove-control";

template<class Words> void declare_only(CLI::App& app) {
    static Words unused; // options keep references to where they store
    declare(app, unused);
}

[[nodiscard]] auto become(const invocation& call) -> result<> {
    GLOVE_TRY(auto program, sys::find_own_program(program_name, "control.program"));
    std::vector<std::string> words{program_name, std::string{call.verb}};
    words.insert(words.end(), call.options.begin(), call.options.end());
    if (call.has_command) words.emplace_back("--");
    words.insert(words.end(), call.command.begin(), call.command.end());
    std::vector<std::string> environment;
    for (char** variable = ::environ; *variable != nullptr; ++variable)
        environment.emplace_back(*variable);
    return sys::become({.program = std::move(program),
                        .arguments = std::move(words),
                        .environment = std::move(environment),
                        .descriptors = {{0, sys::fd_ref::standard_input()},
                                        {1, sys::fd_ref::standard_output()},
                                        {2, sys::fd_ref::standard_error()}}});
}

template<class Words> [[nodiscard]] auto hand_over(const invocation& call, const char* usage)
    -> int {
    Words words;
    CLI::App app;
    declare(app, words);
    if (const auto ended = parse_options(app, usage, call)) return *ended;
    report_error(become(call).error());
    return static_cast<int>(run::exit_status::refused);
}

} // namespace

void declare_daemon(CLI::App& app) { declare_only<daemon_words>(app); }
void declare_session(CLI::App& app) { declare_only<session_words>(app); }
void declare_exposure(CLI::App& app) { declare_only<exposure_words>(app); }
void declare_journal(CLI::App& app) { declare_only<journal_words>(app); }

auto daemon_verb(const invocation& call) -> int {
    return hand_over<daemon_words>(call, daemon_usage);
}
auto session_verb(const invocation& call) -> int {
    return hand_over<session_words>(call, session_usage);
}
auto exposure_verb(const invocation& call) -> int {
    return hand_over<exposure_words>(call, exposure_usage);
}
auto journal_verb(const invocation& call) -> int {
    return hand_over<journal_words>(call, journal_usage);
}

} // namespace glove::cli
