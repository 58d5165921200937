// Options to a request. Only the environment is looked at, and for --path the caller's programs.
#include "cli/run_options.hpp"
#include "cli/profile_options.hpp"
#include "cli/server_parts.hpp"
#include "cli/values.hpp"
#include <algorithm>
#include <cstdlib>
#include <glove/base/numbers.hpp>

namespace glove::cli {

namespace {

void declare_limits(CLI::App& app, run_words& words) {
    auto& profile = words.request.profile;
    app.add_option("--wall-time", words.wall_time_ms, "End the command after TIME: 90s, 10m, 2h")
        ->type_name("TIME")
        ->transform(duration());
    app.add_option("--output-bytes", profile.limits.output_bytes,
                   "End it after SIZE of output: 500, 64K, 1M")
        ->type_name("SIZE")
        ->transform(size());
    app.add_option("--memory", profile.limits.memory_bytes,
                   "End it when all its processes together take more than SIZE")
        ->type_name("SIZE")
        ->transform(size());
    app.add_option("--pids", profile.limits.processes, "Processes and threads it may have at once")
        ->type_name("COUNT")
        ->check(CLI::Range(1, 4'194'303).description(""));
    app.add_option("--cpus", profile.limits.cpu_hundredths, "Processors it may use at once: 2, 0.5")
        ->type_name("COUNT")
        ->transform(processors());
    app.add_option("--cpu-time", words.cpu_time_ms,
                   "End it after TIME of all processors together: 90s, 10m")
        ->type_name("TIME")
        ->transform(duration());
    app.add_option("--disk", profile.limits.disk_bytes,
                   "All that it may write; refused where it may change files of yours")
        ->type_name("SIZE")
        ->transform(size());
    app.add_option("--scratch-bytes", profile.limits.scratch_bytes,
                   "Room for its private files (default: below a quarter of memory)")
        ->type_name("SIZE")
        ->transform(size());
}

void declare_grants(CLI::App& app, run_words& words) {
    auto& profile = words.request.profile;
    app.add_option("-p,--profile", words.profile,
                   "Take the options of a profile: glove profile list")
        ->type_name("NAME");
    app.add_option("--workspace", profile.workspace,
                   "Directory to start in; what is in it may be changed")
        ->type_name("DIR");
    repeatable(app, "--read", words.read, "PATH",
               "File or directory that may be read (repeatable)");
    repeatable(app, "--write", words.write, "PATH",
               "File or directory that may be changed (repeatable)");
    repeatable(app, "--hide", profile.hidden, "PATH",
               "Path inside one of those that stays unreadable (repeatable)");
    app.add_flag("--path", words.path, "Offer the programs of your home that are on your PATH");
    repeatable(app, "--unprotect", profile.unprotected, "PATH",
               "Protected path that may be changed after all (repeatable)");
    repeatable(app, "--env", words.environment, "NAME[=VALUE]",
               "Pass a variable on, or set it (repeatable)");
    app.add_option("--home", words.home,
                   "Home that is kept; none (default): private, gone afterwards")
        ->type_name("NAME");
    app.add_option("--net", words.network,
                   "offline (default), local (own loopback only) or sealed (no sockets)")
        ->type_name("TIER")
        ->check(one_of({"offline", "local", "sealed"}));
    repeatable(app, "--egress-allow", profile.egress.allow, "RULE",
               "What may be reached: a.example, .example.org, b.example:22");
    repeatable(app, "--publish", words.publish, "PORT",
               "Offer a port served inside on 127.0.0.1 of this machine (repeatable)");
    app.add_option("--egress-connections", profile.egress.connections,
                   "Connections at once; further ones wait (default 256)")
        ->type_name("COUNT");
    app.add_option_function<std::string>(
           "--ssh-agent", [&profile](const std::string& key) { profile.ssh_agent = key; },
           "Let one key of your ssh agent sign (default: the only one)")
        ->type_name("[KEY]")
        ->expected(0, 1);
}

void declare_terminal(CLI::App& app, run_words& words) {
    auto* const pty = app.add_flag_callback(
        "--pty", [&words] { words.request.terminal = run::terminal_wish::always; },
        "Give it a terminal on all three streams");
    app.add_flag_callback(
           "--no-pty", [&words] { words.request.terminal = run::terminal_wish::never; },
           "Give it pipes where yours are a terminal")
        ->excludes(pty);
}

void declare_records(CLI::App& app, run_words& words) {
    app.add_option("--audit-log", words.request.audit_log, "Append the audit record to FILE")
        ->type_name("FILE");
    app.add_flag("--audit-sync", words.request.audit_sync,
                 "Make each audit line survive a power cut");
    app.add_option("--report", words.request.report, "Write what was enforced, as JSON, to FILE")
        ->type_name("FILE");
    app.add_flag("--explain", words.request.explain, "Print what would be exposed; run nothing");
    app.add_flag("--json", words.request.json, "With --explain: print JSON");
}

[[nodiscard]] auto usage_error(std::string what, std::string remedy = {}) {
    return fail(errc::invalid_input, "usage", std::move(what), std::move(remedy));
}

[[nodiscard]] auto variable(const std::string& word)
    -> result<std::pair<std::string, std::string>> {
    const auto equals = word.find('=');
    if (equals != std::string::npos)
        return std::pair{word.substr(0, equals), word.substr(equals + 1)};
    const char* const value = std::getenv(word.c_str());
    if (value == nullptr)
        return usage_error("--env " + word + ": not set in your environment",
                           "set it first, or give a value: --env " + word + "=VALUE");
    return std::pair{word, std::string{value}};
}

[[nodiscard]] auto published_port(const std::string& word) -> result<std::uint16_t> {
    const auto port = net::parse_port(word);
    if (!port)
        return usage_error("--publish " + word + ": not a port from 1 to 65535",
                           "give the port alone, as in: --publish 3000");
    return *port;
}

[[nodiscard]] auto network_of(const run_words& words) -> result<container::network_tier> {
    using container::network_tier;
    const auto& egress = words.request.profile.egress;
    if (words.network.empty()) {
        if (!egress.allow.empty()) return network_tier::egress;
        return egress.publish.empty() ? network_tier::offline : network_tier::local;
    }
    const auto tier = container::parse_network_tier(words.network);
    if (!tier) return usage_error("--net " + words.network + ": there is no such tier");
    return *tier;
}

[[nodiscard]] auto choose_command(const contained_verb& verb, const invocation& call,
                                  const host::run_profile* wish)
    -> result<std::vector<std::string>> {
    if (wish != nullptr) return command_of(*wish, call);
    if (!call.has_command || call.command.empty())
        return usage_error("no command was given",
                           std::string{"put it after --, as in: "} + verb.example);
    return call.command;
}

// By a socket, unless nothing can be connected to by name.
[[nodiscard]] auto is_on_streams(const run_words& words) -> result<bool> {
    auto& request = words.request;
    const bool sealed = request.profile.network == container::network_tier::sealed;
    if (words.transport == "bridge" && sealed)
        return usage_error("--agent-transport bridge and --net sealed: no socket can be connected "
                           "to by name there",
                           "use --agent-transport stdio, for a command that speaks MCP itself");
    const bool out = sealed || words.transport == "stdio";
    if (out && request.terminal == run::terminal_wish::always)
        return usage_error(
            "--pty: the command speaks with its tools on standard input and output",
            "leave out --pty, or take --agent-transport bridge without --net sealed");
    return out;
}

// What makes the agent of a profile load its tools.
void offer_tools(const host::run_profile& from, run_words& words) {
    auto& profile = words.request.profile;
    const auto& tools = *from.tools;
    for (const auto& file : tools.files)
        profile.companions.push_back(
            {.name = std::string{file.path}, .text = std::string{file.content}});
    for (const auto variable : tools.environment) {
        const auto equals = variable.find('=');
        const std::string name{variable.substr(0, equals)};
        const bool own = std::ranges::find(profile.environment, name,
                                           &std::pair<std::string, std::string>::first) !=
                         profile.environment.end();
        if (!own) profile.environment.emplace_back(name, variable.substr(equals + 1));
        else
            profile.notes.push_back(name + " is yours, so " + from.name +
                                    " does not learn of its tools by it");
    }
    if (!tools.home_files.empty() && words.home == "none")
        profile.notes.push_back("without a home that is kept, " + from.name +
                                " does not learn of its tools");
    if (!tools.note.empty()) profile.notes.emplace_back(tools.note);
}

// In the order of the servers.
[[nodiscard]] auto server_files_of(const mediation_words& words,
                                   std::span<const std::string> writable, mediation_wish& wish)
    -> result<std::vector<run::server_files>> {
    std::vector<run::server_files> out;
    for (const auto& name : words.changeable)
        if (find_upstream(wish, name) == nullptr)
            return no_such_upstream("--upstream-changeable " + name, name, wish);
    for (const auto& server : wish.what.upstreams)
        out.push_back({.parts = parts_of(server, writable),
                       .changeable = std::ranges::count(words.changeable, server.name) != 0});
    return out;
}

[[nodiscard]] auto complete_mediation(run_words& words, const host::run_profile* wish) -> result<> {
    auto& profile = words.request.profile;
    std::vector<std::string> writable;
    if (profile.workspace) writable.push_back(*profile.workspace);
    for (const auto& grant : profile.grants)
        if (grant.mode == container::access::write) writable.push_back(grant.path);
    GLOVE_TRY(auto mediation, mediation_of(words.mediation, writable));
    GLOVE_TRY(const auto on_streams, is_on_streams(words));
    for (auto& note : mediation.notes) profile.notes.push_back(std::move(note));
    if (on_streams && words.transport.empty())
        profile.notes.emplace_back("with --net sealed the command speaks with its tools on "
                                   "standard input and output, as by --agent-transport stdio");
    if (!on_streams && wish != nullptr && wish->tools != nullptr) offer_tools(*wish, words);
    GLOVE_TRY(auto servers, server_files_of(words.mediation, writable, mediation));
    words.request.mediation = run::mediation_request{.what = std::move(mediation.what),
                                                     .on_streams = on_streams,
                                                     .files = std::move(mediation.files),
                                                     .servers = std::move(servers)};
    return {};
}

} // namespace

void declare_contained(CLI::App& app, const contained_verb& verb, run_words& words) {
    app.description(verb.description);
    app.footer(verb.footer);
    declare_grants(app, words);
    declare_limits(app, words);
    declare_terminal(app, words);
    if (verb.mediated) {
        declare_mediation(app, words.mediation);
        repeatable(app, "--upstream-changeable", words.mediation.changeable, "UP",
                   "A server that the command may change, as is meant (repeatable)");
        app.add_option("--agent-transport", words.transport,
                       "bridge (default): by a socket inside; stdio: on its own streams")
            ->type_name("WAY")
            ->check(one_of({"bridge", "stdio"}));
    }
    declare_records(app, words);
}

auto complete(run_words& words, const contained_verb& verb, const invocation& call,
              const host::run_profile* wish) -> result<> {
    auto& profile = words.request.profile;
    GLOVE_TRY(profile.argv, choose_command(verb, call, wish));
    if (words.request.json && !words.request.explain)
        return usage_error("--json goes with --explain", "for a run, use --report FILE");
    for (auto& path : words.read)
        profile.grants.push_back({"--read", std::move(path), container::access::read});
    for (auto& path : words.write)
        profile.grants.push_back({"--write", std::move(path), container::access::write});
    for (const auto& word : words.environment) {
        GLOVE_TRY(auto pair, variable(word));
        profile.environment.push_back(std::move(pair));
    }
    for (const auto& word : words.publish) {
        GLOVE_TRY(const auto port, published_port(word));
        profile.egress.publish.push_back(port);
    }
    GLOVE_TRY(profile.network, network_of(words));
    if (words.wall_time_ms != 0)
        profile.limits.wall_time = std::chrono::milliseconds{words.wall_time_ms};
    if (words.cpu_time_ms != 0)
        profile.limits.cpu_time = std::chrono::milliseconds{words.cpu_time_ms};
    words.request.arguments = call.arguments;
    if (wish != nullptr) add_profile(*wish, profile);
    if (words.path) GLOVE_CHECK(add_path_programs(profile));
    if (verb.mediated) GLOVE_CHECK(complete_mediation(words, wish));
    return {};
}

} // namespace glove::cli
