// The story of `glove exec`: plan, put the intent on record, launch, release, watch, put the
// outcome on record.
//
// There is no path in this file on which the command runs outside of the perimeter.
#include "run/description.hpp"
#include "run/output_relay.hpp"
#include "run/streams.hpp"
#include "run/supervise.hpp"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <glove/audit/jsonl.hpp>
#include <glove/base/text.hpp>
#include <glove/run/exec.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/entropy.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace glove::run {

namespace {

// Absolute, with the caller's working directory in front when needed.
[[nodiscard]] auto absolute(const std::string& path) -> result<std::string> {
    if (path.starts_with('/')) return path;
    GLOVE_TRY(auto here, container::resolve("."));
    return here.real + "/" + path;
}

// $NAME/glove, or ~/FALLBACK/glove (XDG base directories).
[[nodiscard]] auto xdg_directory(const char* name, std::string_view fallback)
    -> result<std::string> {
    if (const char* const set = std::getenv(name); set != nullptr && *set != '\0') {
        if (*set != '/')
            return fail(errc::invalid_input, "exec.directories",
                        std::string{name} + "=" + set + " is not an absolute path");
        return std::string{set} + "/glove";
    }
    const char* const home = std::getenv("HOME");
    if (home == nullptr || *home != '/')
        return fail(errc::invalid_input, "exec.directories", "HOME is not set to an absolute path",
                    std::string{"set HOME, or "} + name);
    return std::string{home} + "/" + std::string{fallback} + "/glove";
}

[[nodiscard]] auto leaf_of(const std::string& path) -> std::string {
    return path.substr(path.rfind('/') + 1);
}

struct file_places {
    std::string state, configuration;
    std::string audit_log; // empty until the run has a name
    std::optional<std::string> report;
};

[[nodiscard]] auto find_places(const exec_request& request) -> result<file_places> {
    file_places out;
    GLOVE_TRY(out.state, xdg_directory("XDG_STATE_HOME", ".local/state"));
    GLOVE_TRY(out.configuration, xdg_directory("XDG_CONFIG_HOME", ".config"));
    if (request.audit_log) {
        GLOVE_TRY(out.audit_log, absolute(*request.audit_log));
    }
    if (request.report) {
        GLOVE_TRY(out.report, absolute(*request.report));
    }
    return out;
}

[[nodiscard]] auto in_one_line(const error& problem) -> std::string {
    auto out = std::string{problem.step} + ": " + problem.detail;
    if (problem.os != 0) out.append(": ").append(std::strerror(problem.os));
    return out;
}

[[nodiscard]] auto describe(const outcome& ended) -> std::string {
    std::string out = "{\"cause\":\"" + std::string{to_string(ended.cause)} + "\",";
    return out +
           (WIFSIGNALED(ended.wait_status)
                ? "\"signal\":" + std::to_string(WTERMSIG(ended.wait_status))
                : "\"code\":" + std::to_string(WEXITSTATUS(ended.wait_status))) +
           "}";
}

// The agent's own, except that a run which a limit cut short never looks like a success.
[[nodiscard]] auto exit_status_of(const outcome& ended) -> int {
    if (WIFSIGNALED(ended.wait_status)) return 128 + WTERMSIG(ended.wait_status);
    const int own = WEXITSTATUS(ended.wait_status);
    const bool cut_short =
        ended.cause == exit_cause::wall_time || ended.cause == exit_cause::output_bytes;
    return own == 0 && cut_short ? 128 + SIGTERM : own;
}

class exec_run {
public:
    exec_run(exec_request request, container::plan plan, file_places places, ::rlimit open_files)
        : request_{std::move(request)}, plan_{std::move(plan)}, places_{std::move(places)},
          open_files_{open_files} {}

    [[nodiscard]] auto go() -> result<int> {
        GLOVE_CHECK(open_records());
        record_.plan = &plan_;
        record_.layers = container::requested_layers();
        record_.started_ns = time_.wall().count();
        auto ended = contain();
        record_.ended_ns = time_.wall().count();
        if (ended) record_.ended = *ended;
        else record_.problem = ended.error();
        auto written = close_records();
        if (!ended) return std::unexpected(std::move(ended).error());
        GLOVE_CHECK(std::move(written));
        tell(*ended);
        return exit_status_of(*ended);
    }

private:
    // Everything that can be refused about Glove's own files is refused before anything runs.
    [[nodiscard]] auto open_records() -> result<> {
        sys::system_entropy random;
        GLOVE_TRY(record_.run, sys::random_id(random));
        GLOVE_TRY(call_, sys::random_id(random));
        if (places_.audit_log.empty()) {
            const auto directory = places_.state + "/audit";
            GLOVE_CHECK(sys::make_private_directory(directory));
            places_.audit_log = directory + "/" + record_.run + ".jsonl";
        }
        record_.audit_log = places_.audit_log;
        GLOVE_TRY(auto opened,
                  audit::jsonl_sink::open(places_.audit_log, request_.audit_sync
                                                                 ? audit::durability::power
                                                                 : audit::durability::process));
        audit_.emplace(std::move(opened));
        if (places_.report) {
            GLOVE_TRY(report_directory_, sys::make_directory(sys::parent_of(*places_.report)));
            GLOVE_CHECK(sys::check_replaceable(report_directory_, leaf_of(*places_.report)));
        }
        return {};
    }

    [[nodiscard]] auto contain() -> result<outcome> {
        const auto group = on_terminal() ? process_group::shared : process_group::own;
        GLOVE_TRY(auto inbox, signal_inbox::open(group));
        std::optional<output_relay> relay;
        container::launch_request launch{.plan = &plan_,
                                         .arguments = request_.arguments,
                                         .shared_process_group = group == process_group::shared,
                                         .open_files = open_files_};
        if (plan_.limits.output_bytes) {
            GLOVE_TRY(auto made, output_relay::create(*plan_.limits.output_bytes));
            relay.emplace(std::move(made));
            const auto [out, err] = relay->agent_streams();
            launch.streams = {0, out, err};
        }
        GLOVE_TRY(auto agent, container::launch(launch));
        if (relay) relay->agent_has_streams();
        GLOVE_CHECK(let_go_of_streams(relay.has_value()));
        // The child builds its perimeter meanwhile; it does not start the agent before `release`.
        GLOVE_CHECK(put_on_record(audit::action::agent_launch, audit::status::pending, {}));
        GLOVE_CHECK(agent.release());
        auto ended = supervise(agent, plan_.limits, relay ? &*relay : nullptr, inbox, time_);
        record_.layers = agent.layers();
        return ended;
    }

    [[nodiscard]] auto put_on_record(audit::action what, audit::status status,
                                     std::optional<std::string> problem) -> result<> {
        const auto now = time_.wall().count();
        audit::event event{.action = what,
                           .tool = {},
                           .arguments = {},
                           .status = status,
                           .error = std::move(problem),
                           .timestamp_ns = now,
                           .latency_ns = 0,
                           .run = record_.run,
                           .call = call_};
        if (what == audit::action::agent_launch) event.arguments = command_json(plan_);
        else event.latency_ns = now - record_.started_ns;
        if (record_.ended) event.arguments = describe(*record_.ended);
        return audit_->append(event);
    }

    [[nodiscard]] auto close_records() -> result<> {
        auto audited = put_on_record(
            audit::action::agent_exit,
            record_.ended ? audit::status::ok : audit::status::execution_error,
            record_.problem ? std::optional{in_one_line(*record_.problem)} : std::nullopt);
        if (!places_.report) return audited;
        GLOVE_CHECK(sys::replace_private_file(report_directory_, leaf_of(*places_.report),
                                              report_json(record_)));
        return audited;
    }

    void tell(const outcome& ended) const {
        if (ended.cause == exit_cause::wall_time)
            (void)std::fputs("glove: the wall-time limit was reached, so the agent was ended\n",
                             stderr);
        if (ended.cause == exit_cause::output_bytes)
            (void)std::fputs("glove: the output limit was reached, so the agent was ended\n",
                             stderr);
    }

    exec_request request_;
    container::plan plan_;
    file_places places_;
    ::rlimit open_files_;
    sys::system_clock time_;
    std::optional<audit::jsonl_sink> audit_;
    sys::unique_fd report_directory_;
    run_record record_;
    std::string call_;
};

[[nodiscard]] auto explain(const exec_request& request, const container::plan& plan)
    -> result<int> {
    GLOVE_CHECK(sys::write_all(sys::fd_ref::standard_output(),
                               request.json ? explain_json(plan) : explain_text(plan)));
    return 0;
}

// A program that the caller has, but in a place that the agent does not see.
[[nodiscard]] auto found_outside(const std::string& program) -> std::string {
    if (program.find('/') != std::string::npos)
        return sys::exists(program) ? program : std::string{};
    const char* const path = std::getenv("PATH");
    for (std::string_view rest{path == nullptr ? "" : path}; !rest.empty();) {
        const auto directory = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(directory.size() + 1, rest.size()));
        auto candidate = std::string{directory} + "/" + program;
        if (!directory.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

// What the operator can do, where it shows only from here.
[[nodiscard]] auto with_advice(error problem, const std::string& program) -> error {
    if (problem.os == ENOSYS && std::getenv("GLOVE_SANDBOXED") != nullptr)
        problem.remedy = "this is inside a Glove sandbox already; start the command without glove";
    if (problem.step != container::exec_step || problem.code != errc::not_found) return problem;
    if (const auto outside = found_outside(program); !outside.empty())
        problem.remedy =
            "outside it is " + outside +
            ", which the command cannot see: grant its directory with --read, and name "
            "the program by its full path";
    return problem;
}

// What the operator should know before the command writes its first line.
void tell_before(const container::plan& plan) {
    for (const auto& note : plan.notes)
        (void)std::fputs(("glove: " + printable(note) + "\n").c_str(), stderr);
    if (plan.has_workspace || ::isatty(2) != 1) return;
    (void)std::fputs("glove: no --workspace was given, so the agent starts in an empty private "
                     "directory that is gone afterwards\n",
                     stderr);
}

} // namespace

namespace {

[[nodiscard]] auto check_identity() -> result<> {
    if (::getuid() == ::geteuid() && ::getgid() == ::getegid()) return {};
    return fail(errc::not_permitted, "exec.identity",
                "the real and the effective user or group differ",
                "start glove as one user; it needs no set-uid program around it");
}

[[nodiscard]] auto plan_and_run(exec_request request) -> result<int> {
    GLOVE_CHECK(check_identity());
    GLOVE_CHECK(check_streams());
    GLOVE_TRY(const auto open_files, container::raise_open_files());
    GLOVE_TRY(auto places, find_places(request));
    request.profile.control_paths = {places.state, places.state + "/audit", places.configuration};
    if (!places.audit_log.empty()) request.profile.control_paths.push_back(places.audit_log);
    if (places.report) request.profile.control_paths.push_back(*places.report);
    GLOVE_TRY(auto plan, container::make_plan(request.profile));
    if (request.explain) return explain(request, plan);
    tell_before(plan);
    return exec_run{std::move(request), std::move(plan), std::move(places), open_files}.go();
}

} // namespace

auto exec(exec_request request) -> result<int> {
    const auto program =
        request.profile.argv.empty() ? std::string{} : request.profile.argv.front();
    auto status = plan_and_run(std::move(request));
    if (!status) return std::unexpected(with_advice(std::move(status).error(), program));
    return status;
}

auto status_of(const error& problem) -> exit_status {
    if (problem.step == container::exec_step)
        return problem.code == errc::not_found ? exit_status::not_found
                                               : exit_status::not_executable;
    const bool usage = problem.step.starts_with("grant.") ||
                       problem.step.starts_with("environment.") ||
                       problem.step.starts_with("plan.");
    return usage ? exit_status::usage : exit_status::refused;
}

} // namespace glove::run
