// `glove quarantine`: options to a request.
#include "cli/options.hpp"
#include "cli/report_error.hpp"
#include "cli/verbs.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <glove/base/text.hpp>
#include <glove/host/quarantine.hpp>
#include <glove/sys/user_directories.hpp>

namespace glove::cli {

namespace {

constexpr const char* usage = "glove quarantine [--run RUN]";
constexpr int not_all_done = 1;

void declare(CLI::App& app, std::string& run) {
    app.description("List what runs left at protected places, or move it away.");
    app.add_option("--run", run, "Move away what this run left")->type_name("RUN");
    app.footer("Examples:\n"
               "  glove quarantine\n"
               "  glove quarantine --run 0123456789abcdef0123456789abcdef\n\n"
               "Exit status: 0 done, 1 something could not be read or moved, 2 usage.");
}

[[nodiscard]] auto is_run(std::string_view text) -> bool {
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

} // namespace

void declare_quarantine(CLI::App& app) {
    static std::string unused; // options keep references to where they store
    declare(app, unused);
}

auto quarantine_verb(const invocation& call) -> int {
    std::string run;
    CLI::App app;
    declare(app, run);
    if (const auto ended = parse_options(app, usage, call)) return *ended;
    if (app.count("--run") > 0 && !is_run(run))
        return usage_failure({.code = errc::invalid_input,
                              .step = "usage",
                              .os = 0,
                              .detail = "--run " + run + ": not the name of a run",
                              .remedy = "glove quarantine lists the runs that left something"});
    auto state = sys::state_directory();
    if (!state) return usage_failure(state.error());
    const auto print = [](const std::string& line) {
        (void)std::fputs((printable(line) + "\n").c_str(), stdout);
    };
    const auto done = host::quarantine(
        {.state = *std::move(state), .run = run, .print = print, .tell = report_error});
    if (done) return *done ? 0 : not_all_done;
    report_error(done.error());
    return not_all_done;
}

} // namespace glove::cli
