// `glove mcp`: the same mediation without a sandbox. This process becomes glove-mediator.
#include "cli/mediation_options.hpp"
#include "cli/options.hpp"
#include "cli/report_error.hpp"
#include "cli/values.hpp"
#include "cli/verbs.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <glove/base/text.hpp>
#include <glove/run/exec.hpp>
#include <glove/run/mediation.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/user_directories.hpp>
#include <unistd.h>

namespace glove::cli {

namespace {

constexpr const char* usage =
    "glove mcp serve|tools|check|pin [OPTIONS] --upstream NAME=CMD[,ARG...] [TOOL [JSON]]";

struct mcp_words {
    std::string action, tool, arguments;
    mediation_words mediation;
    std::optional<std::string> audit_log;
    bool audit_sync = false;
    std::vector<std::string> accept, forget;
    bool json = false;
};

void declare(CLI::App& app, mcp_words& words) {
    app.description("Put your rules between an MCP client and its tool servers.");
    declare_mediation(app, words.mediation);
    app.add_option("--audit-log", words.audit_log, "Append the audit record of serve to FILE")
        ->type_name("FILE");
    app.add_flag("--audit-sync", words.audit_sync, "Make each audit line survive a power cut");
    repeatable(app, "--accept", words.accept, "UP[.TOOL]",
               "With pin: believe it from now on; '*' is everything (repeatable)");
    repeatable(app, "--forget", words.forget, "UP[.TOOL]",
               "With pin: forget what it was, also of a server not named (repeatable)");
    app.add_flag("--json", words.json, "With tools, check and pin: print JSON");
    app.footer("serve: what an MCP client starts; speaks on standard input and output\n"
               "tools: print what an agent would see, and why the rest is hidden\n"
               "check: print the rules, or decide a call of TOOL with JSON; sends nothing\n"
               "pin:   print which definitions of tools have changed, or accept them\n\n"
               "Examples:\n"
               "  glove mcp tools --upstream files=mcp-server-filesystem,.\n"
               "  glove mcp serve --mcp-config servers.json --policy tools.toml\n\n"
               "Exit status: 0 done, 1 denied or changed, 2 usage, 125 refused.");
}

struct action {
    std::string_view name;
    kernel::task task;
    bool takes_tool, takes_json, takes_accept;
};
constexpr std::array actions{
    action{"serve", kernel::task::serve, false, false, false},
    action{"tools", kernel::task::tools, false, true, false},
    action{"check", kernel::task::check, true, true, false},
    action{"pin", kernel::task::pin, false, true, true},
};

[[nodiscard]] auto wrong(std::string what, std::string remedy = usage) {
    return fail(errc::invalid_input, "usage", std::move(what), std::move(remedy));
}

[[nodiscard]] auto check_words(const mcp_words& words, const action& chosen) -> result<> {
    const std::string name{chosen.name};
    if (!words.tool.empty() && !chosen.takes_tool) return wrong(name + " takes no tool");
    if (words.json && !chosen.takes_json) return wrong("--json goes with tools, check and pin");
    if (!words.accept.empty() && !chosen.takes_accept) return wrong("--accept goes with pin");
    if (!words.forget.empty() && !chosen.takes_accept) return wrong("--forget goes with pin");
    if (!words.forget.empty() && !words.accept.empty())
        return wrong("--forget and --accept say two things", "give one of them");
    const bool records = chosen.task == kernel::task::serve;
    if (!records && (words.audit_log || words.audit_sync))
        return wrong(name + " puts nothing on record",
                     "--audit-log and --audit-sync go with serve");
    if (chosen.task == kernel::task::serve && ::isatty(0) == 1)
        return wrong("standard input is a terminal, and serve speaks MCP",
                     "let an MCP client start it; to see the tools, use: glove mcp tools");
    return {};
}

// No server takes part.
[[nodiscard]] auto forgetting(const mcp_words& words) -> result<kernel::mediation> {
    const auto& with = words.mediation;
    if (!with.upstreams.empty() || !with.files.empty())
        return wrong("--forget starts no server",
                     "leave out --upstream and --mcp-config: it is about the names that were used");
    kernel::mediation out;
    out.task = kernel::task::pin;
    out.json = words.json;
    out.forget = words.forget;
    GLOVE_TRY(out.directory, sys::read_link("/proc/self/cwd"));
    GLOVE_TRY(out.state, sys::state_directory());
    GLOVE_CHECK(kernel::encode(out));
    return out;
}

[[nodiscard]] auto mediation_for(const mcp_words& words, const action& chosen)
    -> result<kernel::mediation> {
    GLOVE_CHECK(check_words(words, chosen));
    if (!words.forget.empty()) return forgetting(words);
    GLOVE_TRY(auto wish, mediation_of(words.mediation, {}));
    for (const auto& note : wish.notes)
        (void)std::fputs(("glove: " + printable(note) + "\n").c_str(), stderr);
    auto& out = wish.what;
    out.task = chosen.task;
    out.json = words.json;
    out.accept = words.accept;
    if (!words.tool.empty()) out.check_tool = words.tool;
    if (!words.arguments.empty()) out.check_arguments = words.arguments;
    out.audit_sync = words.audit_sync;
    if (chosen.task == kernel::task::serve) GLOVE_CHECK(run::put_on_record(out, words.audit_log));
    return std::move(out);
}

} // namespace

void declare_mcp(CLI::App& app) {
    static mcp_words unused; // options keep references to where they store
    declare(app, unused);
}

auto mcp_verb(const invocation& call) -> int {
    mcp_words words;
    CLI::App app;
    declare(app, words);
    app.add_option("ACTION", words.action, "serve, tools, check or pin")->type_name("");
    app.add_option("TOOL", words.tool, "With check: UP.TOOL")->type_name("");
    app.add_option("JSON", words.arguments, "With check: the arguments of the call")->type_name("");
    if (const auto ended = parse_options(app, usage, call)) return *ended;
    if (call.has_command) return unexpected_command(call, usage);
    const auto* const chosen = std::ranges::find(actions, words.action, &action::name);
    if (chosen == actions.end())
        return usage_failure(wrong("mcp takes one of serve, tools, check, pin").error());
    const auto what = mediation_for(words, *chosen);
    if (!what) return usage_failure(what.error());
    report_error(run::become_mediator(*what).error());
    return static_cast<int>(run::exit_status::refused);
}

} // namespace glove::cli
