// The table of checks, the judgement, and the two forms of the report.
//
// A part of the perimeter that fails while the whole works is a warning: the whole is what counts.
#include "host/doctor_checks.hpp"
#include <algorithm>
#include <glove/base/text.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/user_directories.hpp>
#include <glove/wire/json_writer.hpp>
#include <unistd.h>

namespace glove::host {

namespace {

struct check_row {
    std::string_view code;
    std::string_view effect; // what does not work when the check does not pass
    bool of_perimeter;       // `linux_perimeter` proves or disproves it
    verdict (*judge)(const facts&);
};

constexpr std::string_view no_exec = "glove exec cannot start a command";

// The first six codes are older than this table, and keep their order.
constexpr check_row rows[] = {
    {"linux_cgroup_v2", "memory, processor time and processes of a command cannot be limited",
     false, judge_cgroup},
    {"linux_namespaces", no_exec, true, judge_namespaces},
    {"linux_seccomp", no_exec, true, judge_seccomp},
    {"linux_systemd_user", "Glove cannot be run as a service of this user", false,
     judge_user_manager},
    {"linux_user_lingering", "a service of this user ends at the end of the login", false,
     judge_lingering},
    {"linux_retained_storage", "what a session changes cannot be kept on a disk of a fixed size",
     false, judge_retained_storage},
    {"linux_kernel", no_exec, true, judge_kernel},
    {"linux_apparmor", no_exec, true, judge_apparmor},
    {"linux_mount_api", no_exec, true, judge_mount_api},
    {"linux_proc", no_exec, true, judge_proc},
    {"linux_landlock", "the egress proxy is confined by its system-call filter alone", false,
     judge_landlock},
    {"linux_key_quota", "glove exec may soon fail with init.keyring", false, judge_keys},
    {"linux_perimeter", no_exec, true, judge_perimeter},
    {"egress_proxy", "--egress-allow and --publish do not work", false, judge_egress},
    {"terminal", "programs that draw on the terminal look wrong", false, judge_terminal},
    {"state_directory", "records of runs are refused, or open to others", false, judge_state},
    {"configuration_directory", "the settings are not yours alone, or cannot be found", false,
     judge_configuration},
};

[[nodiscard]] auto perimeter_of(container::argument_area arguments, const place_facts& places)
    -> perimeter_facts {
    container::profile wish;
    wish.argv = {"true"};
    for (const auto* const place : {&places.state, &places.configuration})
        if (!place->path.empty()) wish.control_paths.push_back(place->path);
    const auto tried = container::try_perimeter(wish, arguments, probe_patience);
    perimeter_facts out;
    if (tried) out.has_true = tried->has_true;
    else out.refusal = tried.error();
    return out;
}

struct form {
    check_status status;
    std::string_view json, text, colour;
};
constexpr form forms[] = {
    {check_status::passed, "passed", "ok", "\033[32m"},
    {check_status::warning, "warning", "degraded", "\033[33m"},
    {check_status::failed, "failed", "missing", "\033[31m"},
};
[[nodiscard]] auto form_of(check_status status) noexcept -> const form& {
    return forms[static_cast<std::size_t>(status)];
}

[[nodiscard]] auto padded(std::string_view text, std::size_t width) -> std::string {
    std::string out{text};
    out.resize(std::max(width, out.size()), ' ');
    return out;
}

[[nodiscard]] auto count(const report& from, check_status status) -> std::size_t {
    return static_cast<std::size_t>(std::ranges::count(from.checks, status, &check::status));
}

[[nodiscard]] auto summary(const report& from) -> std::string {
    const auto missing = count(from, check_status::failed);
    const auto degraded = count(from, check_status::warning);
    const auto all = std::to_string(from.checks.size()) + " checks: ";
    if (missing > 0)
        return all + std::to_string(missing) + " missing, " + std::to_string(degraded) +
               " degraded. glove exec does not work here.\n";
    return all + (degraded > 0 ? std::to_string(degraded) + " degraded" : "all ok") +
           ". glove exec works here.\n";
}

} // namespace

auto to_string(check_status status) noexcept -> std::string_view { return form_of(status).json; }

auto report::healthy() const noexcept -> bool {
    return std::ranges::find(checks, check_status::failed, &check::status) == checks.end();
}

auto look_at_machine(container::argument_area arguments) -> facts {
    facts out;
    out.uid = ::geteuid();
    out.program = sys::read_link("/proc/self/exe").value_or("glove");
    out.kernel = look_at_kernel();
    out.services = look_at_services(out.uid);
    out.places = look_at_places();
    out.perimeter = perimeter_of(arguments, out.places);
    return out;
}

auto judge(const facts& seen) -> report {
    report out;
    if (const auto& path = seen.places.configuration.path; !path.empty())
        out.config_path = path + "/config.toml";
    for (const auto& row : rows) {
        auto found = row.judge(seen);
        if (row.of_perimeter && found.status == check_status::failed && !seen.perimeter.refusal)
            found.status = check_status::warning;
        const bool good = found.status == check_status::passed;
        out.checks.push_back({row.code, found.status, std::move(found.message),
                              good ? std::string_view{} : row.effect, std::move(found.recovery)});
    }
    return out;
}

auto to_json(const report& from) -> std::string {
    std::string out;
    {
        wire::json::writer w{out};
        w.begin_object();
        w.member("schema_version", 1);
        w.member("config_path", from.config_path);
        w.member("healthy", from.healthy());
        w.begin_array("checks");
        for (const auto& each : from.checks) {
            auto message = each.message;
            if (!each.effect.empty()) message.append("; ").append(each.effect);
            w.begin_object();
            w.member("code", each.code);
            w.member("status", to_string(each.status));
            w.member("message", message);
            w.member("recovery", each.recovery);
            w.end_object();
        }
        w.end_array();
        w.end_object();
    }
    return out += '\n';
}

auto to_text(const report& from, bool colours) -> std::string {
    std::size_t width = 0;
    for (const auto& each : from.checks) width = std::max(width, each.code.size());
    std::string out;
    for (const auto& each : from.checks) {
        const auto& shape = form_of(each.status);
        const auto word = padded(shape.text, 8);
        out += colours ? std::string{shape.colour} + word + "\033[0m" : word;
        out.append("  ").append(padded(each.code, width)).append("  ");
        out += printable(each.message) + "\n";
        if (each.effect.empty()) continue;
        const std::string indent(12, ' ');
        out.append(indent).append(each.effect).append("\n");
        if (!each.recovery.empty()) out += indent + "Try: " + printable(each.recovery) + "\n";
    }
    return out + "\n" + summary(from);
}

} // namespace glove::host
