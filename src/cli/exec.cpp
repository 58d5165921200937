// `glove exec`: options to a request.
#include "cli/options.hpp"
#include "cli/profile_options.hpp"
#include "cli/report_error.hpp"
#include "cli/verbs.hpp"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/base/times.hpp>
#include <glove/container/launch.hpp>
#include <glove/container/plan.hpp>
#include <glove/host/homes.hpp>
#include <glove/run/exec.hpp>
#include <glove/sys/user_directories.hpp>

namespace glove::cli {

namespace {

constexpr const char* examples = R"(Examples:
  glove exec --workspace . -- bash
  glove exec -p claude
  glove exec --workspace . --read ~/notes --egress-allow api.example.com -- ./agent
  glove exec --workspace . --explain -- bash

Exit status: the command's own, 128+n when signal n ended it; 2 usage,
125 the sandbox was refused, 126 not executable, 127 not found.)";

struct exec_words {
    run::exec_request request;
    std::vector<std::string> read, write, environment;
    std::string home;    // a name; empty and "none": one that ends with the run
    std::string network; // empty: what the other flags need
    std::string profile;
    bool path = false;
    std::vector<std::string> publish;
    std::uint64_t wall_time_ms = 0;
};

// Plain numbers are seconds.
[[nodiscard]] auto duration() -> CLI::Validator {
    return CLI::Validator(
        [](std::string& text) -> std::string {
            const auto time = parse_duration(text);
            if (!time.complaint.empty()) return "'" + text + "' " + std::string{time.complaint};
            text = std::to_string(time.ms);
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
        ->check(tier());
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
    auto* const pty = app.add_flag_callback(
        "--pty", [&words] { words.request.terminal = run::terminal_wish::always; },
        "Give it a terminal on all three streams");
    app.add_flag_callback(
           "--no-pty", [&words] { words.request.terminal = run::terminal_wish::never; },
           "Give it pipes where yours are a terminal")
        ->excludes(pty);
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

[[nodiscard]] auto choose_command(const invocation& call, const host::run_profile* wish)
    -> result<std::vector<std::string>> {
    if (wish != nullptr) return command_of(*wish, call);
    if (!call.has_command || call.command.empty())
        return usage_error("no command was given",
                           "put it after --, as in: glove exec --workspace . -- bash");
    return call.command;
}

// `wish` is what a profile adds to its options, or null.
[[nodiscard]] auto complete(exec_words& words, const invocation& call,
                            const host::run_profile* wish) -> result<> {
    auto& profile = words.request.profile;
    GLOVE_TRY(profile.argv, choose_command(call, wish));
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
    words.request.arguments = call.arguments;
    if (wish != nullptr) add_profile(*wish, profile);
    if (words.path) GLOVE_CHECK(add_path_programs(profile));
    return {};
}

[[nodiscard]] auto parse(exec_words& words, CLI::App& app, const invocation& call)
    -> std::optional<int> {
    declare(app, words);
    return parse_options(app, "glove exec [OPTIONS] -- COMMAND [ARGUMENT...]", call);
}

[[nodiscard]] auto refused_words(const error& problem) -> int {
    report_error(problem);
    return static_cast<int>(run::status_of(problem));
}

[[nodiscard]] auto run_request(run::exec_request request) -> int {
    const auto status = run::exec(std::move(request));
    return status ? *status : refused_words(status.error());
}

void tell(const std::vector<std::string>& sentences) {
    for (const auto& each : sentences)
        (void)std::fputs(("glove: " + printable(each) + "\n").c_str(), stderr);
}

[[nodiscard]] auto refused(const error& problem) -> int {
    report_error(problem);
    return static_cast<int>(run::exit_status::refused);
}

// What was not understood, or names what is not there.
[[nodiscard]] auto not_started(const error& problem) -> int {
    if (problem.step != "profile.program" || problem.code != errc::not_found)
        return usage_failure(problem);
    report_error(problem);
    return static_cast<int>(run::exit_status::not_found);
}

// The home of a run: the one that is named, or that of the profile for this workspace.
[[nodiscard]] auto home_of(const exec_words& words, const host::run_profile* profile)
    -> result<host::home_wish> {
    host::home_wish out;
    out.name = words.home;
    const auto& asked = words.request.profile;
    if (profile != nullptr) {
        out.profile = profile->name;
        out.credentials = profile->credentials;
        out.seeds = profile->seeds;
    }
    if (asked.workspace) {
        GLOVE_TRY(auto project, container::resolve(*asked.workspace));
        out.project = std::move(project.real);
    }
    GLOVE_TRY(out.grants, host::grants_of(asked));
    return out;
}

[[nodiscard]] auto check_plan(container::profile wish) -> result<> {
    GLOVE_CHECK(container::check_identity()); // before anything is looked up for the caller
    for (const auto& own : {sys::state_directory(), sys::configuration_directory()}) {
        if (!own) return std::unexpected(own.error());
        wish.control_paths.push_back(*own);
    }
    wish.control_paths.push_back(wish.control_paths.back() + "/config.toml");
    const auto plan = container::make_plan(wish);
    if (!plan) return std::unexpected(plan.error());
    return {};
}

// The home is open for as long as the command runs. What cannot be planned makes none.
[[nodiscard]] auto run_in_home(exec_words& words, const host::run_profile* with) -> int {
    if (!words.home.empty())
        if (const auto good = host::check_home_name(words.home); !good)
            return usage_failure(good.error());
    const auto wish = home_of(words, with);
    if (!wish) return refused_words(wish.error());
    auto& profile = words.request.profile;
    auto seen = host::look_at_home(*wish);
    if (!seen) return refused(seen.error());
    const bool is_new = seen->identity.type == 0;
    profile.home = *std::move(seen);
    if (words.request.explain) return run_request(std::move(words.request));
    if (is_new)
        if (const auto good = check_plan(profile); !good) return refused_words(good.error());
    auto home = host::open_home::open(*wish);
    if (!home) return refused(home.error());
    tell(home->warnings());
    profile.home = home->directory();
    const int status = run_request(std::move(words.request));
    const auto returned = home->finish();
    if (!returned) return refused(returned.error());
    tell(*returned);
    return status;
}

// A profile has a home that is kept; without one, only a home that is named is.
[[nodiscard]] auto start(exec_words words, const invocation& call, const host::run_profile* wish)
    -> int {
    if (const auto good = complete(words, call, wish); !good) return not_started(good.error());
    const bool kept = words.home.empty() ? wish != nullptr : words.home != "none";
    if (!kept) return run_request(std::move(words.request));
    return run_in_home(words, wish);
}

[[nodiscard]] auto find_profile(const std::string& name) -> result<host::effective_profile> {
    GLOVE_TRY(const auto catalogue, host::profile_catalogue::load());
    return catalogue.find(name);
}

// The same words once more, with those of the profile in front.
[[nodiscard]] auto start_with_profile(const exec_words& given, const CLI::App& parsed,
                                      const invocation& call) -> int {
    const auto profile = find_profile(given.profile);
    if (!profile) return usage_failure(profile.error());
    const auto whole = with_profile(parsed, call, *profile);
    exec_words words;
    CLI::App app;
    if (const auto ended = parse(words, app, whole)) return *ended;
    auto writable = words.write;
    if (words.request.profile.workspace) writable.push_back(*words.request.profile.workspace);
    const auto wish = host::prepare_profile(*profile, writable);
    if (!wish) return not_started(wish.error());
    return start(std::move(words), whole, &*wish);
}

} // namespace

void declare_exec(CLI::App& app) {
    static exec_words unused; // options keep references to where they store
    declare(app, unused);
}

auto exec_verb(const invocation& call) -> int {
    exec_words words;
    CLI::App app;
    if (const auto ended = parse(words, app, call)) return *ended;
    if (!words.profile.empty()) return start_with_profile(words, app, call);
    return start(std::move(words), call, nullptr);
}

auto try_profile(const host::effective_profile& profile) -> result<profile_trial> {
    invocation call{
        .verb = "exec", .options = {}, .command = {}, .has_command = false, .arguments = {}};
    exec_words words;
    CLI::App app;
    if (parse(words, app, with_profile(app, call, profile)))
        return fail(errc::invalid_input, "profile.options", profile.name);
    auto& asked = words.request.profile;
    // Whether the working directory can be granted says nothing about the profile.
    if (asked.workspace == ".") asked.workspace.reset();
    GLOVE_TRY(const auto wish, host::prepare_profile(profile, words.write));
    if (wish.program_problem || wish.command.empty()) call.command = {"true"};
    GLOVE_CHECK(complete(words, call, &wish));
    GLOVE_CHECK(check_plan(asked));
    return profile_trial{wish.command.empty() ? std::string{} : wish.command.front(),
                         wish.program_problem};
}

} // namespace glove::cli
