// The story of `glove exec` and `glove run`: plan, run under the perimeter (contain.hpp), put the
// outcome on record, and say how it ended.
//
// There is no path in this file on which the command runs outside of the perimeter.
#include "run/contain.hpp"
#include "run/description.hpp"
#include "run/records.hpp"
#include "run/streams.hpp"
#include "run/supervise.hpp"
#include "run/tools.hpp"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <glove/audit/jsonl.hpp>
#include <glove/base/text.hpp>
#include <glove/run/exec.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/standard_error.hpp>
#include <glove/sys/standard_output.hpp>
#include <glove/sys/user_directories.hpp>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace glove::run {

namespace {

[[nodiscard]] auto find_places(const exec_request& request) -> result<file_places> {
    file_places out;
    GLOVE_TRY(out.state, sys::state_directory());
    GLOVE_TRY(out.configuration, sys::configuration_directory());
    if (request.audit_log) {
        GLOVE_TRY(out.audit_log, sys::absolute(*request.audit_log));
    }
    if (request.report) {
        GLOVE_TRY(out.report, sys::absolute(*request.report));
    }
    return out;
}

// The agent's own, except that a run which a limit cut short never looks like a success.
[[nodiscard]] auto exit_status_of(const outcome& ended) -> int {
    if (WIFSIGNALED(ended.wait_status)) return 128 + WTERMSIG(ended.wait_status);
    const int own = WEXITSTATUS(ended.wait_status);
    return own == 0 && is_limit(ended.cause) ? 128 + SIGTERM : own;
}

// A last word must not wait for a reader that takes nothing.
void tell_after(const char* words) {
    constexpr int patience_ms = 1000;
    ::pollfd errors{2, POLLOUT, 0};
    if (::poll(&errors, 1, patience_ms) == 1) sys::say_line(words);
}

constexpr std::pair<exit_cause, const char*> limit_words[] = {
    {exit_cause::wall_time, "the wall-time limit was reached, so the agent was ended"},
    {exit_cause::output_bytes, "the output limit was reached, so the agent was ended"},
    {exit_cause::memory, "the memory limit was reached, so the agent was ended"},
    {exit_cause::cpu_time, "the cpu-time limit was reached, so the agent was ended"},
};

[[nodiscard]] auto exit_status_after(const outcome& ended) -> int {
    if (ended.cause == exit_cause::mediation) return static_cast<int>(exit_status::refused);
    for (const auto& [cause, words] : limit_words)
        if (ended.cause == cause) tell_after(words);
    return exit_status_of(ended);
}

[[nodiscard]] auto run_on_record(const exec_request& request, const container::plan& plan,
                                 const file_places& places, const ::rlimit& open_files)
    -> result<int> {
    const sys::system_clock time;
    const auto how = request.audit_sync ? audit::durability::power : audit::durability::process;
    GLOVE_TRY(auto records, run_records::open(places, how, plan, request.mediation, time));
    GLOVE_TRY(auto kept, protection::begin(places.state, records.run(), plan));
    run_facts facts{.layers = container::requested_layers(plan)};
    const auto ended = contain(
        plan, request, {.plan = &plan, .arguments = request.arguments, .open_files = open_files},
        records, time, facts);
    facts.changes = kept.end();
    const auto written = records.conclude(ended, std::move(facts));
    if (!ended) return std::unexpected(ended.error());
    if (!written) return std::unexpected(written.error());
    return exit_status_after(*ended);
}

[[nodiscard]] auto explain(const exec_request& request, const container::plan& plan)
    -> result<int> {
    tools_view tools;
    if (request.mediation) {
        tools.mediation = &*request.mediation;
        GLOVE_TRY(tools.rules, rules_of(request.mediation->what));
    }
    const auto printed =
        request.json ? sys::print_json(explain_json(plan, tools))
                     : sys::write_all(sys::fd_ref::standard_output(), explain_text(plan, tools));
    if (!printed) return std::unexpected(printed.error());
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
    if (plan.has_workspace || plan.home || ::isatty(2) != 1) return;
    (void)std::fputs("glove: no --workspace was given, so the agent starts in an empty private "
                     "directory that is gone afterwards\n",
                     stderr);
}

// Who would hold the limits, or why nobody can. Nothing is made for it.
void note_keeper(container::plan& plan) {
    if (!container::needs_control_group(plan.limits)) return;
    const auto group = container::control_group::prepare(plan.limits, "explained", 1);
    if (!group)
        plan.notes.push_back("a run would be refused here: " + group.error().detail + "; " +
                             group.error().remedy);
    else if (group->enforced().keeper == container::group_keeper::user_manager)
        plan.notes.emplace_back(
            "the limits would be held in a scope of your service manager, and read "
            "back before anything starts");
    else
        plan.notes.emplace_back(
            "the limits would be held in a control group that was delegated to you, "
            "and read back before anything starts");
}

// Whoever can replace the program decides what the next run is.
[[nodiscard]] auto note_own_program(container::plan& plan) -> result<> {
    GLOVE_TRY(const auto own, sys::read_link("/proc/self/exe"));
    for (const auto& entry : plan.tree)
        if (entry.mode == container::access::write && entry.origin == container::origin::asked &&
            sys::holds(entry.path, own))
            plan.notes.push_back(entry.path + " may be changed and holds " + own +
                                 ", so the command can put another program in its place");
    return {};
}

[[nodiscard]] auto plan_and_run(exec_request request) -> result<int> {
    GLOVE_CHECK(container::check_identity());
    GLOVE_CHECK(check_streams());
    GLOVE_TRY(const auto open_files, container::raise_open_files());
    GLOVE_TRY(const auto places, find_places(request));
    request.profile.control_paths = {places.state,
                                     places.state + "/audit",
                                     places.state + "/homes",
                                     places.state + "/servers",
                                     places.state + "/credentials",
                                     places.configuration,
                                     places.configuration + "/config.toml"};
    if (!places.audit_log.empty()) request.profile.control_paths.push_back(places.audit_log);
    if (places.report) request.profile.control_paths.push_back(*places.report);
    if (request.mediation)
        for (const auto& file : request.mediation->files)
            request.profile.control_paths.push_back(file);
    if (request.mediation) GLOVE_CHECK(plan_tools(*request.mediation, request.profile));
    GLOVE_TRY(auto plan, container::make_plan(request.profile));
    GLOVE_CHECK(note_own_program(plan));
    if (request.mediation) GLOVE_CHECK(check_servers(*request.mediation, plan));
    if (request.explain) {
        note_keeper(plan);
        return explain(request, plan);
    }
    tell_of_killed_runs(places.state);
    tell_before(plan);
    return run_on_record(request, plan, places, open_files);
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
                       problem.step.starts_with("plan.") || problem.step == "egress.rule";
    return usage ? exit_status::usage : exit_status::refused;
}

} // namespace glove::run
