// `glove home`: the homes that agents keep. Everything that it prints of them is the operator's own
// or Glove's; no name of a file inside of a home is printed, but in the words of an error.
#include "cli/columns.hpp"
#include "cli/options.hpp"
#include "cli/report_error.hpp"
#include "cli/verbs.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>
#include <glove/host/homes.hpp>
#include <glove/host/profiles.hpp>
#include <glove/run/exec.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::cli {

namespace {

constexpr const char* usage = "glove home list|show|remove|import [OPTIONS] [NAME|FILE...]";

struct home_words {
    std::string action;
    std::vector<std::string> words;
    host::import_request import;
    bool json = false;
};

void declare(CLI::App& app, home_words& words) {
    app.description("Look at the homes that agents keep, remove them, and put files into them.");
    app.add_option("ACTION", words.action, "list, show, remove or import");
    app.add_option("FILE", words.words, "The home to show or remove; the files to import");
    app.add_option("--home", words.import.home, "With import: into this home")->type_name("NAME");
    app.add_option("--profile", words.import.profile,
                   "With import: into the store of logins of this profile")
        ->type_name("NAME");
    app.add_flag("--json", words.json, "With list and show: print JSON");
    app.footer("A file of your home is imported to the same place; FILE:TARGET names another.\n\n"
               "Examples:\n"
               "  glove home list\n"
               "  glove home show work\n"
               "  glove home import --home work ~/.gitconfig\n"
               "  glove home remove work\n\n"
               "Exit status: 0, 2 usage, 125 it could not be done.");
}

void print(const std::string& text) { (void)std::fputs(text.c_str(), stdout); }
void note(const std::string& text) {
    (void)std::fputs(("glove: " + printable(text) + "\n").c_str(), stderr);
}

[[nodiscard]] auto or_dash(const std::string& text) -> std::string {
    return text.empty() ? "-" : printable(text);
}

// 512 B, 1.5 KiB, 12.0 MiB; "+" where not everything was counted.
[[nodiscard]] auto size_of(const host::home_facts& home) -> std::string {
    constexpr std::array units{"KiB", "MiB", "GiB", "TiB"};
    std::array<char, 32> out{};
    if (home.bytes < 1024) {
        (void)std::snprintf(out.data(), out.size(), "%u B", static_cast<unsigned>(home.bytes));
    } else {
        auto size = static_cast<double>(home.bytes) / 1024;
        std::size_t unit = 0;
        for (; size >= 1024 && unit + 1 < units.size(); ++unit) size /= 1024;
        (void)std::snprintf(out.data(), out.size(), "%.1f %s", size, units[unit]);
    }
    return std::string{out.data()} + (home.counted_all ? "" : "+");
}

using row = std::array<std::string, 6>;

[[nodiscard]] auto row_of(const host::home_facts& home) -> row {
    return {home.name,     or_dash(home.profile),     or_dash(home.project), utc_text(home.used_ns),
            size_of(home), home.in_use ? "yes" : "no"};
}

[[nodiscard]] auto table_of(const std::vector<host::home_facts>& homes) -> std::string {
    std::vector<row> rows{{"NAME", "PROFILE", "PROJECT", "LAST USED", "SIZE", "IN USE"}};
    for (const auto& home : homes) rows.push_back(row_of(home));
    return in_columns(rows);
}

void write_home(wire::json::writer& w, const host::home_facts& home) {
    w.begin_object();
    w.member("name", home.name);
    w.member("profile", home.profile);
    w.member("project", home.project);
    w.member("path", home.path);
    w.begin_array("credentials");
    for (const auto& each : home.credentials) w.element(each);
    w.end_array();
    w.member("created_ns", home.created_ns);
    w.member("used_ns", home.used_ns);
    w.member("bytes", home.bytes);
    w.member("entries", home.entries);
    w.member("counted_all", home.counted_all);
    w.member("in_use", home.in_use);
    w.member("grants", home.grants);
    w.end_object();
}

[[nodiscard]] auto list_json(const host::home_list& all) -> std::string {
    std::string out;
    {
        wire::json::writer w{out};
        w.begin_object();
        w.member("schema_version", 1);
        w.begin_array("homes");
        for (const auto& home : all.homes) write_home(w, home);
        w.end_array();
        w.begin_array("leftovers");
        for (const auto& path : all.leftovers) w.element(path);
        w.end_array();
        w.end_object();
    }
    return out += '\n';
}

[[nodiscard]] auto home_text(const host::home_facts& home) -> std::string {
    std::string credentials;
    for (const auto& each : home.credentials)
        credentials += (credentials.empty() ? "" : " ") + printable(each);
    return "name         " + home.name + "\nprofile      " + or_dash(home.profile) +
           "\nproject      " + or_dash(home.project) + "\npath         " + printable(home.path) +
           "\nlogins       " + or_dash(credentials) + "\nmade         " +
           utc_text(home.created_ns) + "\nlast used    " + utc_text(home.used_ns) +
           "\nsize         " + size_of(home) + ", " + std::to_string(home.entries) + " entries" +
           "\nin use       " + (home.in_use ? "yes" : "no") + "\ngrants       " +
           or_dash(home.grants) + "\n";
}

[[nodiscard]] auto wrong(const std::string& what) {
    return fail(errc::invalid_input, "usage", what, usage);
}

// Only what an action takes: an option that would do nothing is a mistake.
[[nodiscard]] auto one_name(const home_words& words) -> result<std::string> {
    if (words.words.size() == 1) return words.words.front();
    return wrong("glove home " + words.action + " takes the name of one home");
}

auto list(const home_words& words) -> result<> {
    if (!words.words.empty()) return wrong("glove home list takes no name");
    GLOVE_TRY(const auto all, host::list_homes());
    print(words.json ? list_json(all) : table_of(all.homes));
    for (const auto& path : all.leftovers)
        note("a removal did not come to its end; the next one goes on with " + path);
    if (all.problems.empty()) return {};
    for (std::size_t i = 1; i < all.problems.size(); ++i) report_error(all.problems[i]);
    return std::unexpected(all.problems.front());
}

auto show(const home_words& words) -> result<> {
    GLOVE_TRY(const auto name, one_name(words));
    GLOVE_TRY(const auto home, host::show_home(name));
    if (!words.json) {
        print(home_text(home));
        return {};
    }
    std::string out;
    {
        wire::json::writer w{out};
        write_home(w, home);
    }
    print(out + "\n");
    return {};
}

auto remove(const home_words& words) -> result<> {
    GLOVE_TRY(const auto name, one_name(words));
    GLOVE_TRY(const auto told, host::remove_home(name));
    for (const auto& each : told) note(each);
    return {};
}

[[nodiscard]] auto credentials_of_profile(const std::string& name)
    -> result<std::vector<std::string>> {
    GLOVE_TRY(const auto catalogue, host::profile_catalogue::load());
    GLOVE_TRY(const auto profile, catalogue.find(name));
    return host::credentials_of(profile);
}

auto import(const home_words& words) -> result<> {
    auto request = words.import;
    request.files = words.words;
    if (!request.profile.empty() && request.home.empty()) {
        GLOVE_TRY(request.credentials, credentials_of_profile(request.profile));
    }
    GLOVE_TRY(const auto told, host::import_files(request));
    for (const auto& each : told) note(each);
    return {};
}

struct action_row {
    std::string_view name;
    result<> (*run)(const home_words&);
    bool takes_json, takes_target;
};
constexpr std::array actions{
    action_row{"list", list, true, false},
    action_row{"show", show, true, false},
    action_row{"remove", remove, false, false},
    action_row{"import", import, false, true},
};

[[nodiscard]] auto act(const home_words& words) -> result<> {
    if (words.action.empty()) return wrong("no action was given");
    const auto found = std::ranges::find(actions, words.action, &action_row::name);
    if (found == actions.end())
        return wrong("'" + words.action + "' is not an action of glove home");
    if (words.json && !found->takes_json) return wrong("--json goes with list and show");
    if (!found->takes_target && !(words.import.home.empty() && words.import.profile.empty()))
        return wrong("--home and --profile go with import");
    return found->run(words);
}

} // namespace

void declare_home(CLI::App& app) {
    static home_words unused; // options keep references to where they store
    declare(app, unused);
}

auto home_verb(const invocation& call) -> int {
    home_words words;
    CLI::App app;
    declare(app, words);
    if (const auto ended = parse_options(app, usage, call)) return *ended;
    words.words.insert(words.words.end(), call.command.begin(), call.command.end());
    const auto done = act(words);
    if (done) return 0;
    if (done.error().step == "usage") return usage_failure(done.error());
    report_error(done.error());
    return static_cast<int>(run::exit_status::refused);
}

} // namespace glove::cli
