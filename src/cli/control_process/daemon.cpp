// `glove daemon`: words to what `host/user_service` does, and its outcomes to words.
#include "cli/control_process/daemon.hpp"
#include "cli/control_process/output.hpp"
#include "cli/control_words.hpp"
#include "cli/options.hpp"
#include <glove/base/text.hpp>
#include <glove/host/user_service.hpp>
#include <glove/run/exec.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/spawn.hpp>
#include <glove/sys/standard_output.hpp>
#include <glove/sys/user_directories.hpp>
#include <glove/wire/json_writer.hpp>
#include <unistd.h>

namespace glove::cli {

namespace {

namespace json = wire::json;

constexpr int is_stopped = 3;

[[nodiscard]] auto service_of_caller() -> result<host::user_service> {
    GLOVE_TRY(auto places, host::places_of_caller());
    GLOVE_TRY(auto manager, host::service_manager::of_caller());
    return host::user_service{std::move(places), std::move(manager)};
}

// Empty when none was named.
[[nodiscard]] auto named_config(const daemon_words& words) -> result<std::string> {
    if (words.config.empty()) return std::string{};
    return sys::absolute(words.config);
}

[[nodiscard]] auto programs_of(const daemon_words& words) -> result<host::service_programs> {
    host::service_programs out;
    GLOVE_TRY(out.config, named_config(words));
    if (out.config.empty()) {
        GLOVE_TRY(out.config, sys::configuration_directory());
        out.config += "/config.json";
    }
    if (words.gloved.empty()) {
        GLOVE_TRY(out.gloved, host::find_gloved());
    } else {
        GLOVE_TRY(out.gloved, sys::absolute(words.gloved));
    }
    GLOVE_TRY(out.into_subgroup, sys::read_link("/proc/self/exe"));
    return out;
}

auto install(const daemon_words& words) -> result<int> {
    GLOVE_TRY(const auto programs, programs_of(words));
    GLOVE_TRY(const auto service, service_of_caller());
    auto made = service.install(programs);
    if (!made && made.error().code == errc::not_found && made.error().remedy.empty() &&
        made.error().detail.find(programs.config) != std::string::npos)
        made.error().remedy = "gloved --init-state makes one";
    if (!made) return std::unexpected(std::move(made).error());
    GLOVE_CHECK(
        print(printable(made->unit_path) +
              (made->written ? " was written\n" : " stands already; nothing was written\n")));
    if (made->running) note("the service still runs as before: glove daemon restart");
    if (made->persistent)
        note("it starts at each login; to run without one: loginctl enable-linger");
    return done;
}

[[nodiscard]] auto tell_running(const result<host::service_status>& seen) -> result<int> {
    if (!seen) return std::unexpected(seen.error());
    GLOVE_CHECK(print(std::string{host::service_unit_name} + " runs as process " +
                      std::to_string(seen->main_pid) + ", and answers\n"));
    return done;
}

auto start(const daemon_words& words) -> result<int> {
    GLOVE_TRY(const auto config, named_config(words));
    GLOVE_TRY(const auto service, service_of_caller());
    return tell_running(service.start(config));
}
auto restart(const daemon_words& words) -> result<int> {
    GLOVE_TRY(const auto config, named_config(words));
    GLOVE_TRY(const auto service, service_of_caller());
    return tell_running(service.restart(config));
}

auto stop(const daemon_words& words) -> result<int> {
    GLOVE_TRY(const auto config, named_config(words));
    GLOVE_TRY(const auto service, service_of_caller());
    GLOVE_CHECK(service.stop(config));
    GLOVE_CHECK(print(std::string{host::service_unit_name} + " is stopped\n"));
    return done;
}

[[nodiscard]] auto text_of(const host::service_status& seen) -> std::string {
    std::string out = "unit     " + printable(seen.unit_path) +
                      (seen.installed ? "" : " (not installed)") + "\nstate    " + seen.active;
    if (seen.main_pid != 0) out += "\nprocess  " + std::to_string(seen.main_pid);
    if (!seen.config.empty()) out += "\nconfig   " + printable(seen.config);
    if (seen.healthy()) out += "\nanswers  yes";
    else if (!seen.stopped())
        out += "\nanswers  no" + (seen.trouble ? ": " + printable(seen.trouble->detail) : "");
    return out + "\n";
}

[[nodiscard]] auto json_of(const host::service_status& seen) -> std::string {
    std::string out;
    {
        json::writer w{out};
        w.begin_object();
        w.member("schema_version", 1);
        w.member("unit", host::service_unit_name);
        w.member("unit_path", seen.unit_path);
        w.member("installed", seen.installed);
        w.member("active_state", seen.active);
        w.member("healthy", seen.healthy());
        if (seen.main_pid != 0) w.member("main_pid", seen.main_pid);
        if (!seen.config.empty()) w.member("config_path", seen.config);
        if (seen.trouble && !seen.stopped()) w.member("trouble", seen.trouble->detail);
        w.end_object();
    }
    return out + "\n";
}

auto status(const daemon_words& words) -> result<int> {
    GLOVE_TRY(const auto config, named_config(words));
    GLOVE_TRY(const auto service, service_of_caller());
    GLOVE_TRY(const auto seen, service.status(config));
    if (words.json) {
        if (const auto put = sys::print_json(json_of(seen)); !put)
            return fail_os("output", put.error().os, "standard output");
    } else {
        GLOVE_CHECK(print(text_of(seen)));
    }
    if (seen.healthy()) return done;
    return seen.stopped() ? is_stopped : answer_is_no;
}

} // namespace

auto run_daemon(const invocation& call) -> int {
    daemon_words words;
    CLI::App app;
    declare(app, words);
    if (const auto ended = parse_options(app, daemon_usage, call)) return *ended;
    words.words = call.command;
    const std::vector<action_row<daemon_words>> rows{
        {"install", install, 0, 0, "no more words", {"--gloved"}},
        {"start", start, 0, 0, "no more words", {}},
        {"stop", stop, 0, 0, "no more words", {}},
        {"restart", restart, 0, 0, "no more words", {}},
        {"status", status, 0, 0, "no more words", {"--json"}},
    };
    return status_of(act(app, "daemon", daemon_usage, rows, words, {"--config"}));
}

auto enter_subgroup_and_become(const invocation& call) -> int {
    if (!call.options.empty() || call.command.empty())
        return status_of(wrong_usage("enter-subgroup takes a command", "glove --help"));
    const auto enter = [&]() -> result<int> {
        GLOVE_CHECK(host::enter_subgroup());
        std::vector<std::string> environment;
        for (char** variable = ::environ; *variable != nullptr; ++variable)
            environment.emplace_back(*variable);
        GLOVE_CHECK(sys::become({.program = call.command.front(),
                                 .arguments = call.command,
                                 .environment = std::move(environment),
                                 .descriptors = {{0, sys::fd_ref::standard_input()},
                                                 {1, sys::fd_ref::standard_output()},
                                                 {2, sys::fd_ref::standard_error()}}}));
        return done;
    };
    return status_of(enter());
}

} // namespace glove::cli
