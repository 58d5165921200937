// `--explain` for people: sections with a title, and no section that is empty.
#include "run/description.hpp"
#include "run/description_tools.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <glove/base/text.hpp>
#include <glove/sys/files.hpp>
#include <iterator>
#include <map>

namespace glove::run {

namespace {

using container::access;
using container::entry_kind;
using container::origin;
using container::tree_entry;

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

} // namespace glove::run
