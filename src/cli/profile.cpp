// `glove profile list|show|check`: what the profiles are, and whether they can be used here.
//
// Runs nothing, and changes nothing.
#include "cli/options.hpp"
#include "cli/profile_options.hpp"
#include "cli/report_error.hpp"
#include "cli/verbs.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <glove/base/text.hpp>
#include <glove/run/exec.hpp>
#include <glove/sys/files.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::cli {

namespace {

constexpr const char* usage = "glove profile list|show|check [NAME] [--json]";
constexpr int failed = static_cast<int>(run::exit_status::usage);

struct profile_words {
    std::string action, name;
    bool json = false;
};

void declare(CLI::App& app, profile_words& words) {
    app.description("Show the profiles of glove exec -p, and check that they can be used.");
    app.add_flag("--json", words.json, "With list and check: print JSON");
    app.footer("list: every profile, where it comes from, and where its program is.\n"
               "show NAME: what it amounts to, as a table for your configuration file.\n"
               "check [NAME]: look up all that it names, as a run would.\n\n"
               "Your own stand in $XDG_CONFIG_HOME/glove/config.toml (~/.config):\n"
               "  [profile.work]\n"
               "  extends = \"claude\"\n"
               "  read = [\"~/notes\"]\n"
               "  egress-allow = [\"docs.example.com\"]\n\n"
               "Examples:\n"
               "  glove profile list\n"
               "  glove profile show claude\n"
               "  glove profile check\n\n"
               "Exit status: 0, 2 a profile is wrong, or usage.");
}

// One profile, looked up.
struct row {
    host::effective_profile profile;
    profile_trial found;
    std::optional<error> problem;
};

[[nodiscard]] auto looked_up(host::effective_profile profile) -> row {
    auto found = try_profile(profile);
    if (!found) return {std::move(profile), {}, std::move(found).error()};
    return {std::move(profile), *std::move(found), std::nullopt};
}

[[nodiscard]] auto rows_of(const host::profile_catalogue& catalogue, const std::string& name)
    -> result<std::vector<row>> {
    std::vector<row> out;
    for (const auto& each : name.empty() ? catalogue.names() : std::vector{name}) {
        GLOVE_TRY(auto profile, catalogue.find(each));
        out.push_back(looked_up(std::move(profile)));
    }
    return out;
}

[[nodiscard]] auto is_built_in(const row& of) -> bool { return of.profile.source == "built-in"; }

// An agent that is not installed is no mistake of anybody, unless it was asked about.
void judge(row& of, bool asked_about) {
    if (of.problem || !of.found.not_found) return;
    if (asked_about || !is_built_in(of)) of.problem = of.found.not_found;
}

[[nodiscard]] auto program_of(const row& of) -> std::string {
    if (of.problem) return "(" + std::string{to_string(of.problem->code)} + ")";
    if (of.found.not_found) return "(not installed)";
    return of.found.program.empty() ? "-" : printable(of.found.program);
}

[[nodiscard]] auto table(const std::vector<row>& rows) -> std::string {
    std::vector<std::array<std::string, 3>> lines{{"NAME", "SOURCE", "PROGRAM"}};
    for (const auto& each : rows)
        lines.push_back({each.profile.name, printable(each.profile.source), program_of(each)});
    std::array<std::size_t, 2> widths{};
    for (const auto& line : lines)
        for (std::size_t i = 0; i < widths.size(); ++i)
            widths[i] = std::max(widths[i], line[i].size());
    std::string out;
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < widths.size(); ++i)
            out.append(line[i]).append(widths[i] + 2 - line[i].size(), ' ');
        out.append(line[2]).append("\n");
    }
    return out;
}

void write_problem(wire::json::writer& w, const error& problem) {
    w.begin_object("problem");
    w.member("code", to_string(problem.code));
    w.member("step", problem.step);
    w.member("detail", problem.detail);
    if (!problem.remedy.empty()) w.member("remedy", problem.remedy);
    w.end_object();
}

[[nodiscard]] auto json(const std::vector<row>& rows, const std::string& file,
                        const std::optional<error>& whole) -> std::string {
    std::string out;
    {
        wire::json::writer w{out};
        w.begin_object();
        w.member("schema_version", 1);
        w.member("file", file);
        if (whole) write_problem(w, *whole);
        w.begin_array("profiles");
        for (const auto& each : rows) {
            w.begin_object();
            w.member("name", each.profile.name);
            w.member("source", each.profile.source);
            w.member("installed", !each.found.not_found && !each.problem);
            if (!each.found.program.empty() && !each.found.not_found)
                w.member("program", each.found.program);
            if (each.problem) write_problem(w, *each.problem);
            w.end_object();
        }
        w.end_array();
        w.end_object();
    }
    return out += '\n';
}

[[nodiscard]] auto print(const std::string& text) -> bool {
    return sys::write_all(sys::fd_ref::standard_output(), text).has_value();
}

[[nodiscard]] auto list(const host::profile_catalogue& catalogue, const profile_words& words)
    -> int {
    const auto rows = rows_of(catalogue, {});
    if (!rows) return usage_failure(rows.error());
    return print(words.json ? json(*rows, catalogue.file(), {}) : table(*rows)) ? 0 : failed;
}

[[nodiscard]] auto show(const host::profile_catalogue& catalogue, const profile_words& words)
    -> int {
    const auto profile = catalogue.find(words.name);
    if (!profile) return usage_failure(profile.error());
    return print(to_toml(*profile)) ? 0 : failed;
}

[[nodiscard]] auto check(const host::profile_catalogue& catalogue, const profile_words& words)
    -> int {
    auto rows = rows_of(catalogue, words.name);
    if (!rows) return usage_failure(rows.error());
    bool good = true;
    for (auto& each : *rows) {
        judge(each, !words.name.empty());
        good = good && !each.problem;
    }
    if (!words.json)
        for (const auto& each : *rows)
            if (each.problem) {
                auto problem = *each.problem;
                problem.detail = "[profile." + each.profile.name + "] " + problem.detail;
                report_error(problem);
            }
    return print(words.json ? json(*rows, catalogue.file(), {}) : table(*rows)) && good ? 0
                                                                                        : failed;
}

struct action {
    std::string_view name;
    bool takes_name, needs_name, takes_json;
    int (*run)(const host::profile_catalogue&, const profile_words&);
};
constexpr std::array actions{
    action{"list", false, false, true, list},
    action{"show", true, true, false, show},
    action{"check", true, false, true, check},
};

[[nodiscard]] auto refuse(std::string what) -> int {
    return usage_failure({.code = errc::invalid_input,
                          .step = "usage",
                          .os = 0,
                          .detail = std::move(what),
                          .remedy = usage});
}

} // namespace

void declare_profile(CLI::App& app) {
    static profile_words unused; // options keep references to where they store
    declare(app, unused);
}

auto profile_verb(const invocation& call) -> int {
    profile_words words;
    CLI::App app;
    declare(app, words);
    app.add_option("ACTION", words.action, "list, show or check");
    app.add_option("NAME", words.name, "A profile");
    if (const auto ended = parse_options(app, usage, call)) return *ended;
    if (call.has_command) return unexpected_command(call, usage);
    const auto* const chosen = std::ranges::find(actions, words.action, &action::name);
    if (chosen == actions.end()) return refuse("profile takes one of list, show, check");
    if (!words.name.empty() && !chosen->takes_name) return refuse("list takes no name");
    if (words.name.empty() && chosen->needs_name) return refuse("show takes the name of a profile");
    if (words.json && !chosen->takes_json) return refuse("--json goes with list and check");
    const auto catalogue = host::profile_catalogue::load();
    if (catalogue) return chosen->run(*catalogue, words);
    if (words.json) (void)print(json({}, {}, catalogue.error()));
    return usage_failure(catalogue.error());
}

} // namespace glove::cli
