// `glove`: finds the verb and hands over.
#include "cli/report_error.hpp"
#include "cli/verbs.hpp"
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <glove/run/exec.hpp>
#include <unistd.h>

namespace glove::cli {

namespace {

constexpr std::array verb_table{
    verb{"exec", "Run a command that can reach only what you name", exec_verb, declare_exec},
    verb{"run", "Run an agent in a sandbox, with tools that you allow", run_verb, declare_run},
    verb{"mcp", "Put rules between an MCP client and its tool servers", mcp_verb, declare_mcp},
    verb{"profile", "Show the profiles of glove exec -p, and check them", profile_verb,
         declare_profile},
    verb{"doctor", "Try what Glove needs of this machine, and name the mends", doctor_verb,
         declare_doctor},
    verb{"log", "Show what runs did: commands, connections, calls of tools", log_verb, declare_log},
    verb{"home", "The homes that agents keep: list, show, remove, import", home_verb, declare_home},
    verb{"quarantine", "Move away what a run left at protected places", quarantine_verb,
         declare_quarantine},
    verb{"daemon", "Install gloved as a service of yours, start it and stop it", daemon_verb,
         declare_daemon},
    verb{"session", "Ask gloved for sessions, and fetch their receipts", session_verb,
         declare_session},
    verb{"exposure", "Let sessions use a path of this machine for a while", exposure_verb,
         declare_exposure},
    verb{"journal", "Verify, show and repair the journals of gloved", journal_verb,
         declare_journal},
    verb{"completion", "Print a completion script for bash, zsh or fish", completion_verb,
         declare_completion},
};

void print_help() {
    std::string text =
        "Glove contains AI agents: a program sees the files, variables and network that\n"
        "you name and the system's programs, and nothing else of this machine.\n\nusage: glove "
        "VERB ...\n\nVerbs:\n";
    for (const auto& row : verb_table) {
        text.append("  ").append(row.name).append(14 - row.name.size(), ' ').append(row.summary);
        text += '\n';
    }
    text +=
        "\n  glove VERB --help   what a verb takes\n  glove --version     the version\n\n"
        "Examples:\n"
        "  glove exec -p claude                         Claude Code on this directory\n"
        "  glove run -p claude --mcp-config servers.json --allow 'files.*'\n"
        "                                               the same, with tools of a server\n"
        "  glove exec --workspace . -- bash             a shell with this directory, without your "
        "home\n"
        "  glove exec --workspace . --explain -- bash   what it would see; runs nothing\n";
    (void)std::fputs(text.c_str(), stdout);
}

// The kernel lays arguments and environment out in one piece, in this order.
[[nodiscard]] auto argument_area(int argc, char** argv) -> container::argument_area {
    char* end = argv[0] + std::strlen(argv[0]) + 1;
    for (int i = 1; i < argc && argv[i] == end; ++i) end += std::strlen(argv[i]) + 1;
    for (char** variable = ::environ; *variable != nullptr && *variable == end; ++variable)
        end += std::strlen(*variable) + 1;
    return {.begin = argv[0], .size = static_cast<std::size_t>(end - argv[0])};
}

[[nodiscard]] auto split(int argc, char** argv) -> invocation {
    invocation out;
    out.verb = argv[1];
    out.arguments = argument_area(argc, argv);
    for (int i = 2; i < argc; ++i) {
        if (out.has_command) out.command.emplace_back(argv[i]);
        else if (std::strcmp(argv[i], "--") == 0) out.has_command = true;
        else out.options.emplace_back(argv[i]);
    }
    return out;
}

[[nodiscard]] auto run(int argc, char** argv) -> int {
    constexpr int usage = static_cast<int>(run::exit_status::usage);
    if (argc < 2) {
        print_help();
        return usage;
    }
    const std::string_view word{argv[1]};
    if (word == "--help" || word == "-h" || word == "help") {
        print_help();
        return 0;
    }
    if (word == "--version" || word == "-V") {
        (void)std::puts("glove " GLOVE_VERSION);
        return 0;
    }
    const auto row = std::ranges::find(verb_table, word, &verb::name);
    if (row != verb_table.end()) return row->run(split(argc, argv));
    report_error({.code = errc::invalid_input,
                  .step = "usage",
                  .os = 0,
                  .detail = "'" + std::string{word} + "' is not a verb of glove",
                  .remedy = "glove --help"});
    return usage;
}

} // namespace

auto verbs() -> std::span<const verb> { return verb_table; }

} // namespace glove::cli

auto main(int argc, char** argv) -> int {
    if (const auto claimed = glove::run::claim_standard_streams(); !claimed) {
        glove::cli::report_error(claimed.error());
        return static_cast<int>(glove::run::exit_status::refused);
    }
    return glove::cli::run(argc, argv);
}
