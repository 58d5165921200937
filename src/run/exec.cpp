// The story of `glove exec`: plan, put the intent on record, launch, release, watch, put the
// outcome on record.
//
// There is no path in this file on which the command runs outside of the perimeter.
#include "run/description.hpp"
#include "run/output_relay.hpp"
#include "run/supervise.hpp"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <glove/audit/jsonl.hpp>
#include <glove/run/exec.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/entropy.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
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

// Why the agent cannot be given a stream of this kind; empty when it can.
[[nodiscard]] auto stream_fault(int stream, const struct ::stat& found) -> std::string_view {
    if (S_ISDIR(found.st_mode)) return "is a directory: it would lead the agent out of its root";
    if (S_ISBLK(found.st_mode)) return "is a block device: it would show the agent a whole disk";
    if (!S_ISSOCK(found.st_mode)) return {};
    // A socket keeps the network it was made in. A connected Unix stream can reach nobody but its
    // peer.
    int domain = 0;
    int type = 0;
    ::socklen_t size = sizeof domain;
    ::sockaddr_storage peer{};
    ::socklen_t peer_size = sizeof peer;
    const bool known = ::getsockopt(stream, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
                       ::getsockopt(stream, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
    const bool confined =
        known && domain == AF_UNIX && type == SOCK_STREAM &&
        ::getpeername(stream, reinterpret_cast<::sockaddr*>(&peer), &peer_size) == 0;
    return confined ? std::string_view{} : "is a socket that can reach this machine's network";
}

// What a stream leads to is not bounded by the new root or the network namespace.
[[nodiscard]] auto check_streams() -> result<> {
    constexpr const char* names[] = {"standard input", "standard output", "standard error"};
    for (int stream = 0; stream < 3; ++stream) {
        struct ::stat found{};
        if (::fstat(stream, &found) != 0) return fail_os("exec.streams", errno, names[stream]);
        if (const auto fault = stream_fault(stream, found); !fault.empty())
            return fail(errc::not_permitted, "exec.streams",
                        std::string{names[stream]}.append(" ").append(fault),
                        "put a pipe between, as in: ... | glove exec ... | cat");
    }
    return {};
}

// A job that talks to the terminal must be in the foreground's process group.
[[nodiscard]] auto on_terminal() -> bool {
    return ::isatty(0) == 1 || ::isatty(1) == 1 || ::isatty(2) == 1;
}

// Glove must not keep a pipe alive that the agent has closed.
[[nodiscard]] auto let_go_of_streams(bool relayed) -> result<> {
    const sys::unique_fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    if (!nothing) return fail_os("exec.streams", errno, "/dev/null");
    if (::dup2(nothing.get(), 0) < 0) return fail_os("exec.streams");
    if (!relayed && ::dup2(nothing.get(), 1) < 0) return fail_os("exec.streams");
    return {};
}

[[nodiscard]] auto describe(const outcome& ended) -> std::string {
    std::string out = "{\"cause\":\"" + std::string{to_string(ended.cause)} + "\",";
    return out +
           (WIFSIGNALED(ended.wait_status)
                ? "\"signal\":" + std::to_string(WTERMSIG(ended.wait_status))
                : "\"code\":" + std::to_string(WEXITSTATUS(ended.wait_status))) +
           "}";
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
        return WIFSIGNALED(ended->wait_status) ? 128 + WTERMSIG(ended->wait_status)
                                               : WEXITSTATUS(ended->wait_status);
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
        auto audited =
            put_on_record(audit::action::agent_exit,
                          record_.ended ? audit::status::ok : audit::status::execution_error,
                          record_.problem ? std::optional{record_.problem->detail} : std::nullopt);
        if (!places_.report) return audited;
        GLOVE_CHECK(sys::replace_private_file(
            report_directory_, places_.report->substr(places_.report->rfind('/') + 1),
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

[[nodiscard]] auto with_exec_advice(error problem, const std::string& program) -> error {
    if (problem.step != container::exec_step || problem.code != errc::not_found) return problem;
    if (const auto outside = found_outside(program); !outside.empty())
        problem.remedy = "outside it is " + outside +
                         ", which the command cannot see: grant its "
                         "directory with --read, and name the program by its full path";
    return problem;
}

void hint(const container::plan& plan) {
    if (plan.has_workspace || ::isatty(2) != 1) return;
    (void)std::fputs("glove: no --workspace was given, so the agent starts in an empty private "
                     "directory that is gone afterwards\n",
                     stderr);
}

} // namespace

auto claim_standard_streams() -> result<> {
    for (int stream = 0; stream < 3; ++stream) {
        if (::fcntl(stream, F_GETFD) >= 0) continue;
        // The lowest free number is this one.
        sys::unique_fd opened{::open("/dev/null", O_RDWR)};
        if (opened.get() != stream) return fail_os("exec.streams", EBADF, "/dev/null");
        (void)opened.release();
    }
    return {};
}

auto exec(exec_request request) -> result<int> {
    GLOVE_CHECK(check_streams());
    GLOVE_TRY(const auto open_files, container::raise_open_files());
    GLOVE_TRY(auto places, find_places(request));
    request.profile.control_paths = {places.state, places.configuration};
    if (!places.audit_log.empty()) request.profile.control_paths.push_back(places.audit_log);
    if (places.report) request.profile.control_paths.push_back(*places.report);
    GLOVE_TRY(auto plan, container::make_plan(request.profile));
    if (request.explain) return explain(request, plan);
    hint(plan);
    const auto program = plan.argv.front();
    auto status = exec_run{std::move(request), std::move(plan), std::move(places), open_files}.go();
    if (!status) return std::unexpected(with_exec_advice(std::move(status).error(), program));
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
