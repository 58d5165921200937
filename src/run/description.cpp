// Walks the plan, the layers and the outcome; adds nothing to them and leaves nothing of them out.
#include "run/description.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <glove/base/ascii.hpp>
#include <glove/base/text.hpp>
#include <iterator>
#include <map>
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
                                          "device",    "scratch", "mask"};
    static_assert(std::size(names) == static_cast<std::size_t>(entry_kind::mask) + 1);
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

[[nodiscard]] auto name_of(std::string_view variable) -> std::string_view {
    return variable.substr(0, variable.find('='));
}

[[nodiscard]] auto milliseconds(std::optional<std::chrono::nanoseconds> time)
    -> std::optional<std::int64_t> {
    if (!time) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::milliseconds>(*time).count();
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

// What an option is called whose value is nobody's to read.
[[nodiscard]] auto names_secret(std::string_view option) -> bool {
    constexpr std::string_view parts[] = {"token", "key",  "pass",   "secret",
                                          "cred",  "auth", "header", "cookie"};
    if (!option.starts_with('-')) return false;
    std::string lower;
    for (const char c : option) lower += to_lower(c);
    return std::ranges::any_of(parts, [&](std::string_view part) { return lower.contains(part); });
}

// The words that start a server, without what may be a secret of it: what follows an option such
// as --token, the value of NAME=VALUE, and who asks in a URL.
[[nodiscard]] auto shown_words(const std::vector<std::string>& argv) -> std::vector<std::string> {
    constexpr std::string_view hidden = "...", mark = "://";
    std::vector<std::string> out;
    bool is_value = false;
    for (const auto& word : argv) {
        const bool hide = std::exchange(is_value, names_secret(word) && !word.contains('='));
        std::string shown = word.substr(0, word.find('='));
        if (shown.size() < word.size()) shown += "=" + std::string{hidden};
        const auto user = shown.find(mark), host = shown.rfind('@');
        if (user != std::string::npos && host != std::string::npos && user < host)
            shown.replace(user + mark.size(), host - user - mark.size(), hidden);
        out.push_back(hide ? std::string{hidden} : std::move(shown));
    }
    return out;
}

void write_texts(json& w, std::string_view name, const std::vector<std::string>& texts) {
    w.begin_array(name);
    for (const auto& text : texts) w.element(text);
    w.end_array();
}

void write_perimeter(json& w, const mcp::upstream_wish& upstream) {
    w.begin_object("perimeter");
    w.member("program", upstream.perimeter->program);
    write_texts(w, "needs", upstream.perimeter->needs);
    write_texts(w, "read", upstream.grants.read);
    write_texts(w, "write", upstream.grants.write);
    write_texts(w, "egress", upstream.grants.egress);
    w.end_object();
}

// Never a value of a variable: it may be a secret.
void write_upstream(json& w, const mcp::upstream_wish& upstream) {
    w.begin_object();
    w.member("name", upstream.name);
    w.begin_array("command");
    for (const auto& word : shown_words(upstream.argv)) w.element(word);
    w.end_array();
    w.begin_array("environment");
    for (const auto& [name, value] : upstream.environment) w.element(name);
    for (const auto& name : upstream.passed) w.element(name);
    w.end_array();
    if (upstream.directory) w.member("directory", *upstream.directory);
    w.member("required", upstream.required);
    w.member("contained", upstream.perimeter.has_value());
    if (upstream.perimeter) write_perimeter(w, upstream);
    w.end_object();
}

void write_mediation(json& w, const mediation_request& request,
                     const std::vector<std::string>* rules) {
    const auto& what = request.what;
    w.begin_object("mediation");
    w.member("transport", request.on_streams ? "stdio" : "bridge");
    w.begin_array("upstreams");
    for (const auto& upstream : what.upstreams) write_upstream(w, upstream);
    w.end_array();
    write_texts(w, "allow", what.rules.allow);
    write_texts(w, "deny", what.rules.deny);
    write_texts(w, "allow_arg", what.rules.allow_arg);
    if (what.rules.file) w.member("policy", *what.rules.file);
    if (rules != nullptr) write_texts(w, "rules", *rules);
    write_texts(w, "relay", what.relay);
    w.member("tool_names", what.names == kernel::tool_names::bare ? "bare" : "qualified");
    w.begin_array("renames");
    for (const auto& [name, tool] : what.renames) w.element(name + "=" + tool);
    w.end_array();
    w.member("start_timeout_ms", what.start_timeout_ms);
    w.member("call_timeout_ms", what.call_timeout_ms);
    w.member("result_bytes", what.result_bytes);
    w.member("instructions", what.instructions);
    w.member("pins", what.pinning);
    w.end_object();
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

// "/usr  /opt  /nix/store": the names of entries that a predicate picks.
template<class Pick> auto names(const container::plan& plan, Pick pick) -> std::string {
    std::string out;
    for (const auto& entry : plan.tree)
        if (pick(entry)) fmt::format_to(std::back_inserter(out), "  {}\n", printable(entry.path));
    return out;
}

[[nodiscard]] auto section(std::string_view title, const std::string& body) -> std::string {
    return body.empty() ? std::string{} : fmt::format("{}\n{}\n", title, body);
}

[[nodiscard]] auto paths_text(const std::vector<std::string>& paths) -> std::string {
    std::string out;
    for (const auto& path : paths) out += fmt::format("  {}\n", printable(path));
    return out;
}

[[nodiscard]] auto kept_text(const container::plan& plan) -> std::string {
    std::string out;
    for (const auto& each : plan.protected_paths)
        if (each.is_there()) out += fmt::format("  {}\n", printable(each.path));
    return out;
}

// The absent names of one directory in one line: there are many of them.
[[nodiscard]] auto absent_text(const container::plan& plan) -> std::string {
    std::map<std::string, std::string> by_directory;
    for (const auto& each : plan.protected_paths)
        if (!each.is_there())
            by_directory[sys::parent_of(each.path)] +=
                " " + printable(each.path.substr(each.path.rfind('/') + 1));
    std::string out;
    for (const auto& [directory, names] : by_directory)
        out += fmt::format("  {}:{}\n", printable(directory), names);
    return out;
}

[[nodiscard]] auto network_meaning(container::network_tier tier) -> std::string_view {
    const auto row =
        std::ranges::find(container::network_tiers, tier, &container::network_tier_row::tier);
    return row == container::network_tiers.end() ? std::string_view{} : row->meaning;
}

[[nodiscard]] auto network_text(const container::plan& plan) -> std::string {
    auto out = fmt::format("  {}: {}\n", to_string(plan.network), network_meaning(plan.network));
    if (!plan.bridge) return out;
    for (const auto& rule : plan.bridge->rules.all()) out += fmt::format("  to {}\n", rule.text);
    for (const auto port : plan.bridge->published)
        out += fmt::format("  from 127.0.0.1:{} of this machine\n", port);
    return out;
}

[[nodiscard]] auto limits_text(const container::plan& plan) -> std::string {
    std::string out;
    if (const auto wall = milliseconds(plan.limits.wall_time))
        out += fmt::format("  wall time     {} ms\n", *wall);
    if (plan.limits.output_bytes)
        out += fmt::format("  output        {} bytes\n", *plan.limits.output_bytes);
    if (plan.limits.memory_bytes)
        out += fmt::format("  memory        {} bytes\n", *plan.limits.memory_bytes);
    if (plan.limits.processes) out += fmt::format("  processes     {}\n", *plan.limits.processes);
    if (plan.limits.cpu_hundredths)
        out += fmt::format("  processors    {}.{:02}\n", *plan.limits.cpu_hundredths / 100,
                           *plan.limits.cpu_hundredths % 100);
    if (const auto processor = milliseconds(plan.limits.cpu_time))
        out += fmt::format("  processor     {} ms\n", *processor);
    if (plan.limits.disk_bytes)
        out += fmt::format("  disk          {} bytes\n", *plan.limits.disk_bytes);
    out += fmt::format("  private files {} MiB, {} inodes\n", plan.scratch.bytes >> 20U,
                       plan.scratch.inodes);
    return out;
}

[[nodiscard]] auto perimeter_text(const mcp::upstream_wish& upstream) -> std::string {
    std::string out;
    const auto list = [&](std::string_view what, const std::vector<std::string>& of) {
        for (const auto& each : of) out += fmt::format("    {} {}\n", what, printable(each));
    };
    list("sees, for its program,", upstream.perimeter->needs);
    list("sees", upstream.grants.read);
    list("may change", upstream.grants.write);
    list("may reach", upstream.grants.egress);
    if (upstream.grants.egress.empty()) out += "    has no network\n";
    return out;
}

[[nodiscard]] auto tools_text(const mediation_request& request,
                              const std::vector<std::string>& rules) -> std::string {
    std::string out;
    for (const auto& upstream : request.what.upstreams) {
        out += fmt::format("  {}:", upstream.name);
        for (const auto& word : shown_words(upstream.argv)) out += " " + printable(word);
        out += upstream.perimeter ? ", in a sandbox of its own" : ", outside of the sandbox";
        std::string variables;
        for (const auto& [name, value] : upstream.environment) variables += " " + name;
        for (const auto& name : upstream.passed) variables += " " + name;
        out += variables.empty() ? "\n" : ", with" + variables + "\n";
        if (upstream.perimeter) out += perimeter_text(upstream);
    }
    for (const auto& rule : rules) out += fmt::format("  {}\n", printable(rule));
    return out + fmt::format("  spoken with {}\n", request.on_streams
                                                       ? "on standard input and output"
                                                       : "by a socket inside");
}

} // namespace

auto explain_text(const container::plan& plan, const tools_view& tools) -> std::string {
    const auto bound = [](access mode, origin from) {
        return [=](const tree_entry& e) {
            return e.kind == entry_kind::bind && e.mode == mode && e.origin == from;
        };
    };
    const auto kind = [](entry_kind which) {
        return [=](const tree_entry& e) { return e.kind == which; };
    };
    std::string variables;
    for (const auto& variable : plan.environment)
        fmt::format_to(std::back_inserter(variables), "  {}\n", printable(name_of(variable)));
    std::string layers;
    for (const auto& layer : container::requested_layers(plan))
        fmt::format_to(std::back_inserter(layers), "  {}\n", layer.name);
    std::string out;
    out += section("Can be changed (your files)", names(plan, bound(access::write, origin::asked)));
    out += section("Can be read (your files)", names(plan, bound(access::read, origin::asked)));
    out += section("Can be read (programs of yours)",
                   names(plan, bound(access::read, origin::program)));
    out += section("Hidden or masked", names(plan, kind(entry_kind::mask)));
    out += section("Stays as it is (inside your files)", kept_text(plan));
    out += section("Cannot be kept from being made, so it is looked for after the run",
                   absent_text(plan));
    out += section("Released by --unprotect", paths_text(plan.released));
    out += section("Can be read (system)", names(plan, bound(access::read, origin::system)));
    out += section("Private and writable, gone afterwards", names(plan, kind(entry_kind::scratch)));
    if (plan.home)
        out += section(
            "Private and writable, kept",
            fmt::format("  {}: the home {}\n", container::home_directory, printable(*plan.home)));
    out += section("Devices", names(plan, kind(entry_kind::device)));
    out += section("Environment", variables);
    out += section("Network", network_text(plan));
    if (plan.ssh_agent)
        out += section("SSH agent",
                       fmt::format("  signs with {} ({})\n", plan.ssh_agent->key.fingerprint,
                                   plan.ssh_agent->key.comment));
    if (tools.mediation != nullptr)
        out += section("Tools", tools_text(*tools.mediation, tools.rules));
    out += section("Limits", limits_text(plan));
    out += section("Layers", layers);
    std::string notes;
    for (const auto& note : plan.notes)
        fmt::format_to(std::back_inserter(notes), "  {}\n", printable(note));
    if (!plan.guard_search_complete)
        notes +=
            "  not every entry of the granted directories was searched for sockets and FIFOs\n";
    out += section("Note", notes);
    out += fmt::format("Starts {} in {}. Nothing was run.\n", printable(plan.argv.front()),
                       printable(plan.work_directory));
    return out;
}

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

auto command_json(const container::plan& plan) -> std::string {
    std::string out;
    json w{out};
    w.begin_object();
    w.begin_array("argv");
    for (const auto& word : plan.argv) w.element(word);
    w.end_array();
    w.end_object();
    return out;
}

} // namespace glove::run
