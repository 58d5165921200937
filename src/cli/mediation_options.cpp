// Words to a mediation. Files of servers and the environment are looked at; nothing is started.
#include "cli/mediation_options.hpp"
#include "cli/contained_servers.hpp"
#include "cli/values.hpp"
#include <algorithm>
#include <cstdlib>
#include <glove/base/ascii.hpp>
#include <glove/base/text.hpp>
#include <glove/mcp/protocol.hpp>
#include <glove/mcp/upstream_process.hpp>
#include <glove/run/mediation.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/user_directories.hpp>
#include <span>

namespace glove::cli {

namespace {

constexpr std::size_t longest_server_file = 1UL << 20;
constexpr std::size_t longest_tool_name = 128;

[[nodiscard]] auto wrong(std::string what, std::string remedy = {}) {
    return fail(errc::invalid_input, "usage", std::move(what), std::move(remedy));
}

// The option in front of an error of the part that reads its value.
[[nodiscard]] auto of_option(const char* option, error problem) -> error {
    if (problem.detail.find(option) == std::string::npos)
        problem.detail = std::string{option} + " " + problem.detail;
    return problem;
}

[[nodiscard]] auto is_name_byte(char c) -> bool {
    return is_lower(c) || is_upper(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
}
[[nodiscard]] auto is_tool_name(std::string_view name) -> bool {
    return !name.empty() && name.size() <= longest_tool_name &&
           std::ranges::all_of(name, is_name_byte);
}
[[nodiscard]] auto is_variable(std::string_view name) -> bool {
    return !name.empty() && !is_digit(name.front()) && std::ranges::all_of(name, [](char c) {
        return is_lower(c) || is_upper(c) || is_digit(c) || c == '_';
    });
}

[[nodiscard]] auto add_file(const std::string& file, mediation_wish& into) -> result<> {
    const auto text = sys::read_file(file, longest_server_file);
    if (!text) {
        auto problem = text.error();
        problem.detail = "--mcp-config " + file;
        return std::unexpected(std::move(problem));
    }
    auto read = mcp::parse_upstream_file(*text, file);
    if (!read) return std::unexpected(of_option("--mcp-config", std::move(read).error()));
    GLOVE_TRY(auto whole, sys::absolute(file));
    into.files.push_back(std::move(whole));
    for (auto& each : read->upstreams) into.what.upstreams.push_back(std::move(each));
    for (const auto& word : read->ignored)
        into.notes.push_back("--mcp-config " + file + ": " + word + " is not used");
    return {};
}

// UP:NAME passes a variable on to one server, UP:NAME=VALUE sets it.
[[nodiscard]] auto add_variable(const std::string& word, mediation_wish& into) -> result<> {
    const auto colon = word.find(':');
    const auto upstream = word.substr(0, colon);
    const auto rest = colon == std::string::npos ? std::string{} : word.substr(colon + 1);
    const auto name = rest.substr(0, rest.find('='));
    // The value may be a secret.
    const auto option = "--upstream-env " + word.substr(0, word.find('='));
    if (!is_variable(name))
        return wrong(option + ": not UP:NAME or UP:NAME=VALUE",
                     "name an upstream and a variable, as in: --upstream-env github:TOKEN");
    auto* const to = find_upstream(into, upstream);
    if (to == nullptr) return no_such_upstream(option, upstream, into);
    const bool again =
        std::ranges::count(to->passed, name) != 0 ||
        std::ranges::find(to->environment, name, &std::pair<std::string, std::string>::first) !=
            to->environment.end();
    if (again) return wrong(option + ": the variable is given more than once");
    if (name.size() < rest.size()) {
        to->environment.emplace_back(name, rest.substr(name.size() + 1));
        return {};
    }
    if (std::getenv(name.c_str()) == nullptr)
        return wrong(option + ": not set in your environment",
                     "set it first, or give a value: " + option + "=VALUE");
    to->passed.push_back(name);
    return {};
}

// NAME=UP.TOOL
[[nodiscard]] auto add_rename(const std::string& word, mediation_wish& into) -> result<> {
    const auto option = "--rename " + word;
    const auto equals = word.find('=');
    const auto dot = equals == std::string::npos ? equals : word.find('.', equals);
    if (dot == std::string::npos || dot + 1 == word.size())
        return wrong(option + ": not NAME=UP.TOOL", "as in: --rename search=web.search");
    const auto name = word.substr(0, equals);
    if (!is_tool_name(name))
        return wrong(option + ": an agent cannot name a tool " + in_quotes(name),
                     "take 1 to " + std::to_string(longest_tool_name) +
                         " letters, digits, '_', '-' and '.'");
    const auto upstream = word.substr(equals + 1, dot - equals - 1);
    if (find_upstream(into, upstream) == nullptr) return no_such_upstream(option, upstream, into);
    auto tool = word.substr(equals + 1);
    for (const auto& [other, what] : into.what.renames)
        if (other == name || what == tool)
            return wrong(option + ": " + (other == name ? name : tool) + " is renamed already");
    into.what.renames.emplace_back(name, std::move(tool));
    return {};
}

[[nodiscard]] auto add_relayed(std::string_view list, mediation_wish& into) -> result<> {
    auto& out = into.what.relay;
    while (!list.empty()) {
        const auto word = list.substr(0, list.find(','));
        if (!mcp::relayable(word))
            return wrong("--relay: " + in_quotes(word) + " cannot be relayed",
                         "take some of resources, prompts, completion, logging, sampling "
                         "and elicitation");
        if (std::ranges::count(out, word) == 0) out.emplace_back(word);
        list.remove_prefix(std::min(word.size() + 1, list.size()));
    }
    return {};
}

[[nodiscard]] auto add_names(const mediation_words& words, mediation_wish& into) -> result<> {
    if (words.names == "bare") {
        if (into.what.upstreams.size() != 1)
            return wrong("--tool-names bare: there are " +
                             std::to_string(into.what.upstreams.size()) + " upstreams",
                         "leave it out: with more than one, the name of a tool begins with its "
                         "upstream's");
        into.what.names = kernel::tool_names::bare;
    }
    for (const auto& word : words.renames) GLOVE_CHECK(add_rename(word, into));
    return {};
}

[[nodiscard]] auto add_upstreams(const mediation_words& words, mediation_wish& into) -> result<> {
    for (const auto& word : words.upstreams) {
        auto one = mcp::parse_upstream(word);
        if (!one) return std::unexpected(of_option("--upstream", std::move(one).error()));
        into.what.upstreams.push_back(*std::move(one));
    }
    for (const auto& file : words.files) GLOVE_CHECK(add_file(file, into));
    if (into.what.upstreams.empty())
        return wrong("no tool server was named",
                     "name one, as in: --upstream files=mcp-server-filesystem,. ; for a command "
                     "that needs none, use glove exec");
    if (auto good = mcp::check_upstreams(into.what.upstreams); !good)
        return std::unexpected(of_option("--upstream", std::move(good).error()));
    for (const auto& word : words.upstream_environment) GLOVE_CHECK(add_variable(word, into));
    return {};
}

// "." and what begins by "./" or "../": as a shell's user writes a path of a program's own
// directory.
[[nodiscard]] auto is_path_from_here(std::string_view word) -> bool {
    return word == "." || word == ".." || word.starts_with("./") || word.starts_with("../");
}

// `directory` has no link in it when it is the working directory, so its parent is what ".." is.
[[nodiscard]] auto whole_path(std::string directory, std::string_view word) -> std::string {
    while (is_path_from_here(word)) {
        if (word.starts_with("..")) directory = sys::parent_of(directory);
        word.remove_prefix(std::min(word.find('/'), word.size()));
        word.remove_prefix(std::min(word.find_first_not_of('/'), word.size()));
    }
    if (word.empty()) return directory;
    return (directory == "/" ? "" : directory) + "/" + std::string{word};
}

// A server for which no directory is named starts in one of Glove's own. Where it started in the
// caller's, an agent that writes there would decide what npx, uvx or python -m execute.
void place(mcp::upstream_wish& one, mediation_wish& into) {
    const auto& here = into.what.directory;
    auto& program = one.argv.front();
    if (one.directory) {
        if (program.contains('/') && !program.starts_with('/'))
            program = *one.directory + "/" + program;
        return;
    }
    one.directory = run::server_directory(into.what, one.name);
    if (program.contains('/') && !program.starts_with('/')) program = whole_path(here, program);
    for (auto& word : std::span{one.argv}.subspan(1)) {
        if (is_path_from_here(word)) word = whole_path(here, word);
        else if (!word.empty() && !word.starts_with('/') && !word.starts_with('-') &&
                 sys::exists(here + "/" + word))
            into.notes.push_back("the server " + one.name +
                                 " does not start in this directory, so " + in_quotes(word) +
                                 " is no path here: write ./ in front of it");
    }
}

} // namespace

auto find_upstream(mediation_wish& among, std::string_view name) -> mcp::upstream_wish* {
    const auto found = std::ranges::find(among.what.upstreams, name, &mcp::upstream_wish::name);
    return found == among.what.upstreams.end() ? nullptr : &*found;
}

auto no_such_upstream(const std::string& option, std::string_view name, const mediation_wish& among)
    -> std::unexpected<error> {
    std::string known;
    for (const auto& each : among.what.upstreams) known += (known.empty() ? "" : ", ") + each.name;
    return wrong(option + ": there is no upstream " + in_quotes(name),
                 "the upstreams are: " + known);
}

void declare_mediation(CLI::App& app, mediation_words& words) {
    repeatable(app, "--upstream", words.upstreams, "NAME=CMD",
               "Tool server, CMD,ARG,... starts it, outside the sandbox (repeatable)");
    repeatable(app, "--mcp-config", words.files, "FILE",
               "Take tool servers from FILE, in the form of agents (repeatable)");
    repeatable(app, "--upstream-env", words.upstream_environment, "UP:NAME",
               "Pass a variable to a server, or set it: UP:NAME=VALUE (repeatable)");
    declare_containment(app, words);
    repeatable(app, "--allow", words.rules.allow, "UP.TOOL",
               "Tool that may be called; UP.* is all of a server (repeatable)");
    repeatable(app, "--deny", words.rules.deny, "UP.TOOL",
               "Tool that may not, whatever allows it (repeatable)");
    repeatable(app, "--allow-arg", words.rules.allow_arg, "RULE",
               "How an argument must begin: UP.TOOL:FIELD=PREFIX (repeatable)");
    app.add_option("--policy", words.rules.file, "Take rules about tools and arguments from FILE")
        ->type_name("FILE");
    app.add_option("--tool-names", words.names,
                   "qualified (default): UP__TOOL; bare: TOOL, of the only server")
        ->type_name("KIND")
        ->check(one_of({"qualified", "bare"}));
    repeatable(app, "--rename", words.renames, "NAME=UP.TOOL",
               "Show a tool under another name (repeatable)");
    app.add_option("--relay", words.relay,
                   "Relay more than tools: resources,prompts,sampling and so on")
        ->type_name("LIST");
    app.add_option("--start-timeout", words.start_timeout_ms,
                   "How long a server may take to start (default 60s)")
        ->type_name("TIME")
        ->transform(duration());
    app.add_option("--call-timeout", words.call_timeout_ms, "How long a call may take (default 5m)")
        ->type_name("TIME")
        ->transform(duration());
    app.add_option("--result-bytes", words.result_bytes, "How large a result may be (default 10M)")
        ->type_name("SIZE")
        ->transform(size());
    app.add_flag("--no-instructions", words.no_instructions,
                 "Keep the servers' instructions from the agent");
    app.add_flag("--no-pins", words.no_pins,
                 "Believe definitions of tools although they have changed");
}

auto mediation_of(const mediation_words& words, std::span<const std::string> writable)
    -> result<mediation_wish> {
    mediation_wish out;
    GLOVE_CHECK(add_upstreams(words, out));
    GLOVE_CHECK(add_names(words, out));
    GLOVE_CHECK(add_relayed(words.relay, out));
    out.what.rules = words.rules;
    if (words.rules.file) {
        GLOVE_TRY(out.what.rules.file, sys::absolute(*words.rules.file));
        out.files.push_back(*out.what.rules.file);
    }
    if (words.result_bytes == 0) // which would be a result that nobody can send
        return wrong("--result-bytes 0: no room for any result",
                     "leave it out, or give a size such as 10MB");
    out.what.start_timeout_ms = words.start_timeout_ms.value_or(out.what.start_timeout_ms);
    out.what.call_timeout_ms = words.call_timeout_ms.value_or(out.what.call_timeout_ms);
    out.what.result_bytes = words.result_bytes.value_or(out.what.result_bytes);
    out.what.instructions = !words.no_instructions;
    out.what.pinning = !words.no_pins;
    GLOVE_TRY(out.what.directory, sys::read_link("/proc/self/cwd"));
    GLOVE_TRY(out.what.state, sys::state_directory());
    for (auto& each : out.what.upstreams) place(each, out);
    GLOVE_CHECK(contain_servers(words, writable, out));
    const auto& rules = words.rules;
    if (rules.allow.empty() && !rules.file)
        out.notes.emplace_back(
            "no tool is allowed: name some with --allow UP.TOOL or --policy FILE");
    // What cannot be encoded is told now, not when everything has been started.
    GLOVE_CHECK(kernel::encode(out.what));
    return out;
}

} // namespace glove::cli
