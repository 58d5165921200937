// `glove exec`: options to a request.
#include "cli/options.hpp"
#include "cli/report_error.hpp"
#include "cli/verbs.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/host/homes.hpp>
#include <glove/run/exec.hpp>

namespace glove::cli {

namespace {

constexpr const char* examples = R"(Examples:
  glove exec --workspace . -- bash
  glove exec --workspace . --read ~/notes --env ANTHROPIC_API_KEY -- ./agent
  glove exec --workspace . --hide .env --net local -- npm test
  glove exec --workspace . --egress-allow api.example.com -- ./agent
  glove exec --workspace . --explain -- bash

Inside, HOME is a private /home/agent and PATH holds the system's directories
only: give a program of your home by its full path, and grant its directory.

Exit status: the command's own, 128+n when signal n ended it; 2 usage,
125 the sandbox was refused, 126 not executable, 127 not found.)";

struct exec_words {
    run::exec_request request;
    std::vector<std::string> read, write, environment;
    std::string home;    // a name; empty and "none": one that ends with the run
    std::string network; // empty: what the other flags need
    std::vector<std::string> publish;
    std::uint64_t wall_time_ms = 0;
};

const std::map<std::string, std::uint64_t>& time_units() {
    static const std::map<std::string, std::uint64_t> units{
        {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
    return units;
}

// What a 64-bit count of nanoseconds holds, with room for the clock it is added to.
constexpr std::uint64_t longest_run_ms = 100ULL * 366 * 24 * 3'600'000;

// Plain numbers are seconds.
[[nodiscard]] auto duration() -> CLI::Validator {
    return CLI::Validator(
        [](std::string& text) -> std::string {
            const auto digits = text.find_first_not_of("0123456789");
            const auto unit = digits == std::string::npos ? std::string{"s"} : text.substr(digits);
            const auto row = time_units().find(unit);
            const auto number = text.substr(0, digits);
            if (row == time_units().end() || number.empty() || number.size() > 9)
                return "'" + text + "' is not a time such as 90s, 10m or 2h";
            const auto value = std::stoull(number) * row->second;
            if (value > longest_run_ms) return "'" + text + "' is more than 100 years";
            if (value == 0) return "'" + text + "' is no time at all";
            text = std::to_string(value);
            return {};
        },
        "");
}

[[nodiscard]] auto tier() -> CLI::Validator {
    CLI::IsMember out({"offline", "local", "sealed"});
    out.description("");
    return out;
}

// One value each time the option is given, never the words that follow it.
void repeatable(CLI::App& app, const char* name, std::vector<std::string>& into, const char* type,
                const char* help) {
    app.add_option(name, into, help)->type_name(type)->allow_extra_args(false);
}

[[nodiscard]] auto size() -> CLI::Validator {
    return CLI::Validator(
        [](std::string& text) -> std::string {
            const auto bytes = parse_size(text);
            if (!bytes) return "'" + text + "' is not a size such as 64KB, 10MB or 2GB";
            text = std::to_string(*bytes);
            return {};
        },
        "");
}

void declare(CLI::App& app, exec_words& words) {
    auto& profile = words.request.profile;
    app.description("Run a command that can reach only what you name.");
    app.footer(examples);
    app.add_option("--workspace", profile.workspace,
                   "Directory to start in; what is in it may be changed")
        ->type_name("DIR");
    repeatable(app, "--read", words.read, "PATH",
               "File or directory that may be read (repeatable)");
    repeatable(app, "--write", words.write, "PATH",
               "File or directory that may be changed (repeatable)");
    repeatable(app, "--hide", profile.hidden, "PATH",
               "Path inside one of those that stays unreadable (repeatable)");
    repeatable(app, "--unprotect", profile.unprotected, "PATH",
               "Protected path that may be changed after all (repeatable)");
    repeatable(app, "--env", words.environment, "NAME[=VALUE]",
               "Pass a variable on, or set it (repeatable)");
    app.add_option("--home", words.home,
                   "Home that is kept for further runs; none (default): private, gone afterwards")
        ->type_name("NAME");
    app.add_option("--net", words.network,
                   "offline (default), local (own loopback only) or sealed (no sockets)")
        ->type_name("TIER")
        ->check(tier());
    repeatable(app, "--egress-allow", profile.egress.allow, "RULE",
               "What may be reached: a.example, .example.org, b.example:22 (repeatable)");
    repeatable(app, "--publish", words.publish, "PORT",
               "Offer a port served inside on 127.0.0.1 of this machine (repeatable)");
    app.add_option("--egress-connections", profile.egress.connections,
                   "Connections at once; further ones wait (default 256)")
        ->type_name("COUNT");
    app.add_option("--wall-time", words.wall_time_ms, "End the command after TIME: 90s, 10m, 2h")
        ->type_name("TIME")
        ->transform(duration());
    app.add_option("--output-bytes", profile.limits.output_bytes,
                   "End it after SIZE of output: 500, 64K, 1M")
        ->type_name("SIZE")
        ->transform(size());
    app.add_option("--scratch-bytes", profile.limits.scratch_bytes,
                   "Room for its private files (default: below a quarter of memory)")
        ->type_name("SIZE")
        ->transform(size());
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

[[nodiscard]] auto network_of(const exec_words& words) -> result<container::network_tier> {
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

[[nodiscard]] auto complete(exec_words& words, const invocation& call) -> result<> {
    auto& profile = words.request.profile;
    if (!call.has_command || call.command.empty())
        return usage_error("no command was given",
                           "put it after --, as in: glove exec --workspace . -- bash");
    if (words.request.json && !words.request.explain)
        return usage_error("--json goes with --explain", "for a run, use --report FILE");
    profile.argv = call.command;
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
    words.request.arguments = call.arguments;
    return {};
}

[[nodiscard]] auto run_request(run::exec_request request) -> int {
    const auto status = run::exec(std::move(request));
    if (status) return *status;
    report_error(status.error());
    return static_cast<int>(run::status_of(status.error()));
}

void tell(const std::vector<std::string>& sentences) {
    for (const auto& each : sentences)
        (void)std::fputs(("glove: " + printable(each) + "\n").c_str(), stderr);
}

[[nodiscard]] auto refused(const error& problem) -> int {
    report_error(problem);
    return static_cast<int>(run::exit_status::refused);
}

// The home is open for as long as the command runs.
[[nodiscard]] auto run_in_home(exec_words& words) -> int {
    if (const auto good = host::check_home_name(words.home); !good)
        return usage_failure(good.error());
    auto& profile = words.request.profile;
    host::home_wish wish;
    wish.name = words.home;
    auto grants = host::grants_of(profile);
    if (!grants) return refused(grants.error());
    wish.grants = *std::move(grants);
    if (words.request.explain) {
        auto seen = host::look_at_home(wish);
        if (!seen) return refused(seen.error());
        profile.home = *std::move(seen);
        return run_request(std::move(words.request));
    }
    auto home = host::open_home::open(wish);
    if (!home) return refused(home.error());
    tell(home->warnings());
    profile.home = home->directory();
    const int status = run_request(std::move(words.request));
    const auto returned = home->finish();
    if (!returned) return refused(returned.error());
    tell(*returned);
    return status;
}

} // namespace

void declare_exec(CLI::App& app) {
    static exec_words unused; // options keep references to where they store
    declare(app, unused);
}

auto exec_verb(const invocation& call) -> int {
    exec_words words;
    CLI::App app;
    declare(app, words);
    if (const auto ended =
            parse_options(app, "glove exec [OPTIONS] -- COMMAND [ARGUMENT...]", call))
        return *ended;
    if (const auto good = complete(words, call); !good) return usage_failure(good.error());
    if (words.home.empty() || words.home == "none") return run_request(std::move(words.request));
    return run_in_home(words);
}

} // namespace glove::cli
