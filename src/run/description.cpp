// As JSON. Walks the plan, the layers and the outcome; adds nothing to them and leaves nothing of
// them out.
#include "run/description.hpp"
#include "run/description_tools.hpp"
#include <algorithm>
#include <iterator>
#include <sys/wait.h>
#include <utility>

namespace glove::run {

namespace {

using container::access;
using container::entry_kind;
using container::origin;
using container::tree_entry;
using json = wire::json::writer;

[[nodiscard]] auto kind_name(entry_kind kind) -> std::string_view {
    constexpr std::string_view names[] = {"directory", "link",    "file", "bind",
                                          "device",    "scratch", "mask", "mounted"};
    static_assert(std::size(names) == static_cast<std::size_t>(entry_kind::mounted) + 1);
    return names[static_cast<std::size_t>(kind)];
}

[[nodiscard]] auto origin_name(origin from) -> std::string_view {
    constexpr std::string_view names[] = {"system", "managed", "asked", "program",
                                          "hidden", "guarded", "kept"};
    static_assert(std::size(names) == static_cast<std::size_t>(origin::kept) + 1);
    return names[static_cast<std::size_t>(from)];
}

[[nodiscard]] auto is_pinned(entry_kind kind) -> bool {
    return kind == entry_kind::bind || kind == entry_kind::device;
}
// What a mask covers is compared with what was looked at only where the operator asked for it.
[[nodiscard]] auto is_compared(const tree_entry& entry) -> bool {
    return is_pinned(entry.kind) || entry.origin == origin::hidden;
}

void write_entry(json& w, const tree_entry& entry) {
    w.begin_object();
    w.member("path", entry.path);
    w.member("kind", kind_name(entry.kind));
    w.member("origin", origin_name(entry.origin));
    w.member("access", entry.mode == access::write ? "write" : "read");
    if (entry.kind == entry_kind::link) w.member("target", entry.text);
    if (is_pinned(entry.kind)) w.member("source", entry.text);
    if (is_compared(entry)) {
        w.member("device", entry.identity.device);
        w.member("inode", entry.identity.inode);
    }
    w.end_object();
}

void write_bridge(json& w, const container::bridge_plan& bridge) {
    w.begin_array("egress_allow");
    for (const auto& rule : bridge.rules.all()) w.element(rule.text);
    w.end_array();
    w.begin_array("publish");
    for (const auto port : bridge.published) w.element(port);
    w.end_array();
    w.member("egress_connections", bridge.connections);
}

void write_ssh_agent(json& w, const ssh::public_key& key) {
    w.begin_object("ssh_agent");
    w.member("key", key.fingerprint);
    w.member("type", key.type);
    w.member("comment", key.comment);
    w.end_object();
}

void write_signatures(json& w, const ssh::agent_counts& counts) {
    w.begin_object("signatures");
    w.member("made", counts.made);
    w.member("failed", counts.failed);
    w.end_object();
}

void write_destinations(json& w, const run_facts& facts) {
    w.begin_array("destinations");
    for (const auto& row : facts.destinations) {
        w.begin_object();
        w.member("destination", net::to_string(row.where));
        w.member("allowed", row.allowed);
        w.member("refused", row.refused);
        w.member("failed", row.failed);
        w.member("bytes_sent", row.bytes_sent);
        w.member("bytes_received", row.bytes_received);
        if (!row.last_error.empty()) w.member("last_error", row.last_error);
        w.end_object();
    }
    w.end_array();
    w.member("more_destinations", facts.more_destinations);
}

void write_protected(json& w, const container::plan& plan) {
    w.begin_array("protected");
    for (const auto& each : plan.protected_paths) {
        w.begin_object();
        w.member("path", each.path);
        w.member("reason", each.reason);
        w.member("present", each.is_there());
        w.end_object();
    }
    w.end_array();
    w.begin_array("unprotected");
    for (const auto& path : plan.released) w.element(path);
    w.end_array();
    w.member("protected_search_complete", plan.protected_search_complete);
}

void write_plan(json& w, const container::plan& plan) {
    w.begin_array("command");
    for (const auto& word : plan.argv) w.element(word);
    w.end_array();
    w.member("work_directory", plan.work_directory);
    w.member("home", plan.home);
    w.member("uid", plan.user.uid);
    w.member("gid", plan.user.gid);
    w.member("network", to_string(plan.network));
    w.begin_array("environment");
    for (const auto& variable : plan.environment) w.element(name_of(variable));
    w.end_array();
    w.begin_object("limits");
    w.member("wall_time_ms", milliseconds(plan.limits.wall_time));
    w.member("output_bytes", plan.limits.output_bytes);
    w.member("scratch_bytes", plan.scratch.bytes);
    w.member("scratch_inodes", plan.scratch.inodes);
    w.member("memory_bytes", plan.limits.memory_bytes);
    w.member("processes", plan.limits.processes);
    w.member("cpu_hundredths", plan.limits.cpu_hundredths);
    w.member("cpu_time_ms", milliseconds(plan.limits.cpu_time));
    w.member("disk_bytes", plan.limits.disk_bytes);
    w.end_object();
    if (plan.bridge) write_bridge(w, *plan.bridge);
    if (plan.ssh_agent) write_ssh_agent(w, plan.ssh_agent->key);
    w.begin_array("tree");
    for (const auto& entry : plan.tree) write_entry(w, entry);
    w.end_array();
    w.member("guard_search_complete", plan.guard_search_complete);
    write_protected(w, plan);
    w.begin_array("notes");
    for (const auto& note : plan.notes) w.element(note);
    w.end_array();
}

void write_layers(json& w, const std::vector<container::layer>& layers, bool with_outcome) {
    w.begin_array("layers");
    for (const auto& layer : layers) {
        w.begin_object();
        w.member("name", layer.name);
        w.member("requested", true);
        if (with_outcome) w.member("armed", layer.armed);
        w.end_object();
    }
    w.end_array();
}

void write_outcome(json& w, const outcome& ended) {
    w.begin_object("exit");
    w.member("cause", to_string(ended.cause));
    if (WIFSIGNALED(ended.wait_status)) w.member("signal", WTERMSIG(ended.wait_status));
    else w.member("code", WEXITSTATUS(ended.wait_status));
    w.member("output_bytes", ended.output_bytes);
    w.end_object();
    w.begin_array("limits_hit");
    if (is_limit(ended.cause)) w.element(to_string(ended.cause));
    w.end_array();
    if (ended.cause == exit_cause::mediation) w.member("mediation_end", ended.mediation_end);
}

// What the kernel said that it holds, and what was used of it.
void write_group(json& w, const run_record& record) {
    const auto& said = *record.facts.enforced;
    w.begin_object("control_group");
    w.member("keeper", to_string(said.keeper));
    for (const auto& [name, value] : {std::pair{"memory_max", &said.memory_max},
                                      {"memory_swap_max", &said.memory_swap_max},
                                      {"memory_oom_group", &said.memory_oom_group},
                                      {"pids_max", &said.pids_max},
                                      {"cpu_max", &said.cpu_max}})
        if (!value->empty()) w.member(name, *value);
    if (record.ended && record.ended->usage) {
        const auto& used = *record.ended->usage;
        w.member("cpu_us", used.cpu_us);
        if (const auto asked = milliseconds(record.plan->limits.cpu_time)) {
            const auto given = static_cast<std::uint64_t>(*asked) * 1000;
            w.member("cpu_overrun_us", used.cpu_us - std::min(used.cpu_us, given));
        }
        w.member("memory_peak_bytes", used.memory_peak);
        if (record.plan->limits.memory_bytes) w.member("out_of_memory", used.out_of_memory);
        if (record.plan->limits.processes) w.member("processes_refused", used.processes_refused);
    }
    w.end_object();
}

void write_changes(json& w, const run_facts& facts) {
    w.begin_array("protected_changes");
    for (const auto& change : facts.changes) {
        w.begin_object();
        w.member("kind", container::to_string(change.kind));
        w.member("path", change.path);
        w.end_object();
    }
    w.end_array();
}

void write_problem(json& w, const error& problem) {
    w.begin_object("error");
    w.member("code", to_string(problem.code));
    w.member("step", problem.step);
    w.member("errno", problem.os);
    w.member("detail", problem.detail);
    if (!problem.remedy.empty()) w.member("remedy", problem.remedy);
    w.end_object();
}

} // namespace

auto explain_json(const container::plan& plan, const tools_view& tools) -> std::string {
    std::string out;
    {
        json w{out};
        w.begin_object();
        w.member("schema_version", 1);
        write_plan(w, plan);
        if (tools.mediation != nullptr) write_mediation(w, *tools.mediation, &tools.rules);
        write_layers(w, container::requested_layers(plan), false);
        w.end_object();
    }
    return out += '\n';
}

auto report_json(const run_record& record) -> std::string {
    std::string out;
    {
        json w{out};
        w.begin_object();
        w.member("schema_version", 1);
        w.member("run", record.run);
        w.member("audit_log", record.audit_log);
        w.member("started_ns", record.started_ns);
        w.member("ended_ns", record.ended_ns);
        if (record.ended) write_outcome(w, *record.ended);
        if (record.problem) write_problem(w, *record.problem);
        write_layers(w, record.facts.layers, true);
        if (record.plan->bridge) write_destinations(w, record.facts);
        if (record.plan->ssh_agent) write_signatures(w, record.facts.signatures);
        if (record.facts.enforced) write_group(w, record);
        write_changes(w, record.facts);
        write_plan(w, *record.plan);
        if (record.mediation != nullptr) write_mediation(w, *record.mediation, nullptr);
        w.end_object();
    }
    return out += '\n';
}

auto command_json(const container::plan& plan, bool of_server) -> std::string {
    std::string out;
    json w{out};
    w.begin_object();
    w.begin_array("argv");
    for (const auto& word : of_server ? shown_words(plan.argv) : plan.argv) w.element(word);
    w.end_array();
    w.end_object();
    return out;
}

} // namespace glove::run
