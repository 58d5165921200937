// `glove completion SHELL`: scripts made from the same option tables that parse the command line,
// so they cannot fall behind it.
#include "cli/options.hpp"
#include "cli/verbs.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>

namespace glove::cli {

namespace {

struct completed_option {
    std::string name; // "--read"
    std::string help;
    bool takes_value;
    bool takes_path;
};

[[nodiscard]] auto options_of(const verb& row) -> std::vector<completed_option> {
    CLI::App app;
    row.declare(app);
    std::vector<completed_option> out;
    for (const auto* const option : app.get_options()) {
        if (option->get_lnames().empty()) continue;
        const auto type = option->get_type_name();
        out.push_back({"--" + option->get_lnames().front(), option->get_description(),
                       option->get_items_expected_max() > 0,
                       type == "DIR" || type == "PATH" || type == "FILE"});
    }
    return out;
}

// Whether its words are files.
[[nodiscard]] auto takes_files(const verb& row) -> bool {
    CLI::App app;
    row.declare(app);
    return std::ranges::any_of(app.get_options(), [](const CLI::Option* option) {
        return option->get_name(true) == "FILE";
    });
}

[[nodiscard]] auto join(const std::vector<completed_option>& options,
                        bool (*wanted)(const completed_option&), std::string_view between)
    -> std::string {
    std::string out;
    for (const auto& option : options) {
        if (!wanted(option)) continue;
        if (!out.empty()) out += between;
        out += option.name;
    }
    return out;
}

[[nodiscard]] auto any(const completed_option&) -> bool { return true; }
[[nodiscard]] auto path_option(const completed_option& o) -> bool { return o.takes_path; }

[[nodiscard]] auto verb_names() -> std::string {
    std::string out;
    for (const auto& row : verbs()) out.append(out.empty() ? "" : " ").append(row.name);
    return out;
}

[[nodiscard]] auto for_bash() -> std::string {
    std::string cases;
    for (const auto& row : verbs()) {
        const auto options = options_of(row);
        cases += "    " + std::string{row.name} + ")\n";
        if (const auto paths = join(options, path_option, "|"); !paths.empty())
            cases += "      case \"$before\" in " + paths +
                     ") mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;; esac\n";
        if (takes_files(row))
            cases += "      if [[ $word != -* ]]; then mapfile -t COMPREPLY < <(compgen -f -- "
                     "\"$word\"); return; fi\n";
        cases += "      mapfile -t COMPREPLY < <(compgen -W \"" + join(options, any, " ") +
                 "\" -- \"$word\") ;;\n";
    }
    return "_glove() {\n"
           "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i\n"
           "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
           "    if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
           "      if ((i + 1 == COMP_CWORD)); then mapfile -t COMPREPLY < <(compgen -c -- "
           "\"$word\")\n"
           "      else mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); fi\n"
           "      return\n"
           "    fi\n"
           "  done\n"
           "  if ((COMP_CWORD == 1)); then mapfile -t COMPREPLY < <(compgen -W \"" +
           verb_names() +
           " --help --version\" -- \"$word\"); return; fi\n"
           "  case ${COMP_WORDS[1]} in\n" +
           cases +
           "  esac\n"
           "}\n"
           "complete -o filenames -F _glove glove\n";
}

[[nodiscard]] auto quoted(std::string text) -> std::string {
    for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
        text.replace(at, 1, "'\\''");
    return "'" + text + "'";
}

[[nodiscard]] auto for_zsh() -> std::string {
    std::string cases;
    for (const auto& row : verbs()) {
        cases += "    " + std::string{row.name} + ")\n      _arguments";
        for (const auto& option : options_of(row)) {
            std::string help = option.help;
            std::erase_if(help, [](char c) { return c == '[' || c == ']'; });
            std::ranges::replace(help, ':', ',');
            cases += " \\\n        " + quoted("*" + option.name + "[" + help + "]" +
                                              (option.takes_path    ? ":path:_files"
                                               : option.takes_value ? ":value:"
                                                                    : ""));
        }
        cases += takes_files(row) ? " \\\n        '*:file:_files' ;;\n"
                                  : " \\\n        '*::command:_normal' ;;\n";
    }
    std::string names;
    for (const auto& row : verbs())
        names += " " + quoted(std::string{row.name} + ":" + std::string{row.summary});
    return "#compdef glove\n"
           "_glove() {\n"
           "  local -a verbs\n"
           "  verbs=(" +
           names +
           ")\n"
           "  if ((CURRENT == 2)); then _describe verb verbs; return; fi\n"
           "  shift words; ((CURRENT--))\n"
           "  case $words[1] in\n" +
           cases +
           "  esac\n"
           "}\n"
           "if [ \"$funcstack[1]\" = _glove ]; then _glove \"$@\"; else compdef _glove glove; fi\n";
}

[[nodiscard]] auto for_fish() -> std::string {
    std::string out = "complete -c glove -f\n";
    for (const auto& row : verbs()) {
        const auto name = std::string{row.name};
        out += "complete -c glove -n __fish_use_subcommand -a " + name + " -d " +
               quoted(std::string{row.summary}) + "\n";
        if (takes_files(row))
            out += "complete -c glove -n '__fish_seen_subcommand_from " + name + "' -F\n";
        for (const auto& option : options_of(row))
            out += "complete -c glove -n '__fish_seen_subcommand_from " + name + "' -l " +
                   option.name.substr(2) +
                   (option.takes_path    ? " -rF"
                    : option.takes_value ? " -x"
                                         : "") +
                   " -d " + quoted(option.help) + "\n";
    }
    return out + "complete -c glove -n 'contains -- -- (commandline -opc)' "
                 "-a '(__fish_complete_subcommand --commandline)'\n";
}

struct shell_row {
    std::string_view name;
    std::string (*script)();
};
constexpr std::array shells{shell_row{"bash", for_bash}, shell_row{"zsh", for_zsh},
                            shell_row{"fish", for_fish}};

} // namespace

void declare_completion(CLI::App& app) {
    app.description("Print a completion script.");
    app.footer("Examples:\n"
               "  glove completion bash > ~/.local/share/bash-completion/completions/glove\n"
               "  glove completion zsh  > \"${fpath[1]}/_glove\"\n"
               "  glove completion fish > ~/.config/fish/completions/glove.fish");
}

auto completion_verb(const invocation& call) -> int {
    constexpr const char* usage = "glove completion bash|zsh|fish";
    CLI::App app;
    declare_completion(app);
    std::string shell;
    app.add_option("SHELL", shell, "Shell to complete in");
    if (const auto ended = parse_options(app, usage, call)) return *ended;
    const auto row = std::ranges::find(shells, shell, &shell_row::name);
    if (row == shells.end())
        return usage_failure({.code = errc::invalid_input,
                              .step = "usage",
                              .os = 0,
                              .detail = "completion takes one of bash, zsh, fish",
                              .remedy = usage});
    (void)std::fputs(row->script().c_str(), stdout);
    return 0;
}

} // namespace glove::cli
