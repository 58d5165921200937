// `glove doctor`: prints what the machine offers.
#include "cli/options.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include <CLI/CLI.hpp>
#include <glove/host/doctor.hpp>
#include <glove/sys/files.hpp>

namespace glove::cli {

namespace {

constexpr int unusable = 3;

void declare(CLI::App& app, bool& json) {
    app.description("Try what Glove needs of this machine, and say how to mend what is missing.");
    app.add_flag("--json", json, "Print JSON");
    app.footer(
        "Each check is tried for real, in children that are gone afterwards; nothing is\n"
        "changed. ok: works. degraded: glove exec works, something else does not.\n"
        "missing: glove exec does not work.\n\n"
        "Examples:\n"
        "  glove doctor\n"
        "  glove doctor --json | jq -r '.checks[] | select(.status != \"passed\") | .code'\n\n"
        "Exit status: 0 glove exec works here, 3 it does not, 2 usage.");
}

} // namespace

void declare_doctor(CLI::App& app) {
    static bool unused;
    declare(app, unused);
}

auto doctor_verb(const invocation& call) -> int {
    constexpr const char* usage = "glove doctor [--json]";
    CLI::App app;
    bool json = false;
    declare(app, json);
    if (const auto ended = parse_options(app, usage, call)) return *ended;
    if (call.has_command) return unexpected_command(call, usage);
    const auto found = host::judge(host::look_at_machine(call.arguments));
    const auto text = json ? to_json(found) : to_text(found, has_colours(1));
    if (!sys::write_all(sys::fd_ref::standard_output(), text)) return unusable;
    return found.healthy() ? 0 : unusable;
}

} // namespace glove::cli
