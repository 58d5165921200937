// Opens, appends and replaces; what the lines and the report say is made by `description`.
#include "run/records.hpp"
#include <cstdlib>
#include <cstring>
#include <glove/mcp/upstream_process.hpp>
#include <glove/sys/entropy.hpp>
#include <glove/sys/files.hpp>
#include <sys/wait.h>

namespace glove::run {

namespace {

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

[[nodiscard]] auto leaf_of(const std::string& path) -> std::string {
    return path.substr(path.rfind('/') + 1);
}

} // namespace

auto run_records::open(const file_places& places, audit::durability how,
                       const container::plan& plan,
                       const std::optional<mediation_request>& mediation, const sys::clock& time)
    -> result<run_records> {
    sys::system_entropy random;
    GLOVE_TRY(auto run, sys::random_id(random));
    auto log = places.audit_log;
    if (log.empty()) {
        const auto directory = places.state + "/audit";
        GLOVE_CHECK(sys::make_private_directory(directory));
        log = directory + "/" + run + ".jsonl";
    }
    GLOVE_TRY(auto audit, audit::jsonl_sink::open(log, how));
    run_records out{std::move(audit), time};
    GLOVE_TRY(out.call_, sys::random_id(random));
    if (places.report) {
        out.report_name_ = leaf_of(*places.report);
        GLOVE_TRY(out.report_directory_, sys::make_directory(sys::parent_of(*places.report)));
        GLOVE_CHECK(sys::check_replaceable(out.report_directory_, out.report_name_));
    }
    out.record_.run = std::move(run);
    out.record_.audit_log = std::move(log);
    out.record_.plan = &plan;
    if (mediation) out.record_.mediation = &*mediation;
    out.record_.started_ns = time.wall().count();
    return out;
}

auto run_records::event(audit::action what, audit::status status) const -> audit::event {
    return {.action = what,
            .tool = {},
            .arguments = {},
            .status = status,
            .error = {},
            .timestamp_ns = time_->wall().count(),
            .latency_ns = 0,
            .run = record_.run,
            .call = call_};
}

auto run_records::intend() -> result<> {
    auto intent = event(audit::action::agent_launch, audit::status::pending);
    const bool of_server = std::getenv(mcp::contained_server_variable) != nullptr;
    intent.arguments = command_json(*record_.plan, of_server);
    return audit_.append(intent);
}

auto run_records::conclude(const result<outcome>& ended, run_facts facts) -> result<> {
    record_.facts = std::move(facts);
    record_.ended_ns = time_->wall().count();
    auto exit = event(audit::action::agent_exit,
                      ended ? audit::status::ok : audit::status::execution_error);
    exit.latency_ns = record_.ended_ns - record_.started_ns;
    if (ended) {
        record_.ended = *ended;
        exit.arguments = describe(*ended);
    } else {
        record_.problem = ended.error();
        exit.error = in_one_line(ended.error());
    }
    auto audited = audit_.append(exit);
    if (report_name_.empty()) return audited;
    GLOVE_CHECK(sys::replace_private_file(report_directory_, report_name_, report_json(record_)));
    return audited;
}

} // namespace glove::run
