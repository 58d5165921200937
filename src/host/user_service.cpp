// Decides by what the files and the manager say now, not by what was done before.
#include "host/trusted.hpp"
#include <ctime>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/control/client.hpp>
#include <glove/control/service_config.hpp>
#include <glove/host/user_service.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/entropy.hpp>
#include <glove/sys/files.hpp>
#include <glove/sys/user_directories.hpp>
#include <glove/wire/json.hpp>
#include <sys/stat.h>

namespace glove::host {

namespace {

constexpr const char* install_mend = "glove daemon install";
const std::string journal_mend = "journalctl --user --unit=" + std::string{service_unit_name} +
                                 " says what gloved said; who may not read that: glove "
                                 "daemon stop, and gloved --config FILE by hand";

[[nodiscard]] auto check_program(const std::string& path, step_name step) -> result<std::string> {
    GLOVE_TRY(auto found, find_trusted(path, own_group::refused, step));
    if (found.facts.identity.type != S_IFREG || (found.facts.permissions & 0111U) == 0)
        return fail(errc::invalid_input, step, path + " is not a program",
                    "name gloved itself: glove daemon install --gloved FILE");
    return std::move(found.real);
}

// What is there, when it is what this program would have left.
[[nodiscard]] auto read_unit(sys::fd_ref directory) -> result<std::string> {
    GLOVE_TRY(const auto file, sys::open_beneath(directory, std::string{service_unit_name},
                                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    GLOVE_TRY(const auto facts, sys::inspect(file));
    if (facts.identity.type != S_IFREG || facts.permissions != 0600 || facts.links != 1 ||
        facts.owner != ::geteuid())
        return std::string{};
    return sys::read_all(file, most_unit_bytes);
}

[[nodiscard]] auto same_file(const std::string& a, const std::string& b) -> bool {
    struct ::stat first{};
    struct ::stat second{};
    return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

} // namespace

auto ask_health(const std::string& config, std::chrono::milliseconds patience) -> result<> {
    GLOVE_TRY(const auto settings, control::load_service_config(config));
    const sys::system_clock clock;
    sys::system_entropy random;
    const control::client client{{.runtime_directory = settings.runtime_directory,
                                  .patience = patience,
                                  .start_hint = "glove daemon start"},
                                 clock,
                                 random};
    GLOVE_TRY(const auto answer, client.call("health", "null"));
    if (!answer)
        return fail(errc::wrong_state, "service.health",
                    "gloved answers " + printable(answer.error().code));
    const auto tree = wire::json::read(*answer);
    const auto* const status = tree ? tree->find("status") : nullptr;
    if (status == nullptr || status->as_string() == nullptr || *status->as_string() != "ready")
        return fail(errc::wrong_state, "service.health", "gloved does not say that it is ready");
    return {};
}

auto places_of_caller() -> result<service_places> {
    GLOVE_TRY(const auto own, sys::configuration_directory());
    return service_places{.unit_directory = sys::parent_of(own) + "/systemd/user"};
}

auto find_gloved() -> result<std::string> {
    GLOVE_TRY(const auto own, sys::read_link("/proc/self/exe"));
    const auto directory = sys::parent_of(own);
    const auto beside = directory + "/gloved";
    const auto installed = sys::parent_of(sys::parent_of(directory)) + "/bin/gloved";
    for (const auto& place : {beside, installed}) {
        GLOVE_TRY(const auto there, sys::is_there(place));
        if (there) return place;
    }
    return fail(errc::not_found, "service.gloved", "there is no " + beside + " and no " + installed,
                "name it: glove daemon install --gloved FILE");
}

auto user_service::unit_path() const -> std::string {
    return where_.unit_directory + "/" + std::string{service_unit_name};
}

// Whether it had to.
auto user_service::write(const std::string& text) const -> result<bool> {
    auto directory = sys::make_private_directory(where_.unit_directory);
    if (!directory) {
        auto& why = directory.error();
        if (why.remedy.empty() && why.code == errc::not_permitted)
            why.remedy = "chmod go-w " + where_.unit_directory;
        return std::unexpected(std::move(why));
    }
    const std::string name{service_unit_name};
    if (const auto stands = read_unit(*directory); stands && *stands == text) return false;
    if (const auto can = sys::check_replaceable(*directory, name); !can)
        return fail(can.error().code, "service.unit", unit_path() + ": " + can.error().detail,
                    "look at it, and move it away: a link to /dev/null is a masked unit");
    const auto now = sys::system_clock{}.wall().count();
    GLOVE_CHECK(sys::replace_durably(*directory, name, text, now));
    return true;
}

auto user_service::check_loaded() const -> result<unit_facts> {
    GLOVE_TRY(auto facts, manager_.look_at(service_unit_name));
    if (facts.load != "loaded")
        return fail(errc::wrong_state, "service.unit",
                    std::string{service_unit_name} + " is " + facts.load +
                        " to the service manager of this user, though " + unit_path() + " is there",
                    "the manager may have another XDG_CONFIG_HOME than this shell: systemctl "
                    "--user show-environment");
    if (!same_file(facts.fragment, unit_path()))
        return fail(errc::conflict, "service.unit",
                    "the service manager of this user reads " + in_quotes(facts.fragment) +
                        " and not " + unit_path(),
                    "move the other one away, and run: glove daemon install");
    return facts;
}

auto user_service::install(const service_programs& of) const -> result<installed_service> {
    service_programs real = of;
    GLOVE_TRY(real.gloved, check_program(of.gloved, "service.gloved"));
    GLOVE_TRY(const auto settings, control::load_service_config(of.config));
    GLOVE_CHECK(check_program("/usr/bin/unshare", "service.unit"));
    installed_service out{.unit_path = unit_path(), .config = of.config};
    out.persistent = settings.persistent_service;
    GLOVE_TRY(out.systemd, manager_.version());
    out.by_systemd = out.systemd >= subgroup_systemd;
    if (out.by_systemd) {
        real.into_subgroup.clear();
    } else {
        GLOVE_TRY(real.into_subgroup, check_program(of.into_subgroup, "service.subgroup"));
    }
    GLOVE_TRY(const auto text, systemd_unit_text(real));
    GLOVE_TRY(out.written, write(text));
    GLOVE_CHECK(manager_.tell({"daemon-reload"}));
    GLOVE_TRY(const auto facts, check_loaded());
    out.running = out.written && facts.main_pid != 0;
    if (out.persistent) GLOVE_CHECK(manager_.tell({"enable", std::string{service_unit_name}}));
    return out;
}

// What the definition says, when there is one.
auto user_service::defined(const std::string& config) const -> result<service_status> {
    service_status out{.unit_path = unit_path(), .active = "inactive", .config = config};
    GLOVE_TRY(const auto there, sys::is_there(out.unit_path));
    if (!there) return out;
    out.installed = true;
    GLOVE_TRY(const auto directory, sys::pin(where_.unit_directory, sys::follow::yes));
    GLOVE_TRY(const auto text, read_unit(directory));
    auto named = config_of_unit(text);
    if (!named)
        return fail(errc::wrong_state, "service.unit",
                    out.unit_path + " is not as glove daemon install makes it",
                    "glove daemon install writes it anew; additions belong into " + out.unit_path +
                        ".d");
    if (!config.empty() && config != *named)
        return fail(errc::conflict, "service.config",
                    "the service has the configuration " + *named + " and not " + config,
                    "glove daemon install --config " + config);
    out.config = *std::move(named);
    return out;
}

auto user_service::await_health(const std::string& config) const -> result<> {
    const sys::system_clock clock;
    const auto end = clock.monotonic() + where_.patience;
    const ::timespec pause{.tv_sec = 0,
                           .tv_nsec = std::chrono::nanoseconds{where_.between}.count()};
    for (;;) {
        // Nothing is waited for while nobody listens.
        auto answered = where_.health(config, where_.answer);
        if (answered) return {};
        if (clock.monotonic() >= end) return answered;
        (void)::nanosleep(&pause, nullptr);
    }
}

// What the manager and gloved itself say.
auto user_service::see(service_status known) const -> result<service_status> {
    GLOVE_TRY(const auto facts, manager_.look_at(service_unit_name));
    known.active = facts.active;
    known.main_pid = facts.main_pid;
    if (known.config.empty()) return known;
    if (auto healthy = where_.health(known.config, where_.patience); !healthy)
        known.trouble = std::move(healthy).error();
    return known;
}

auto user_service::launch(const std::string& config, const char* verb) const
    -> result<service_status> {
    GLOVE_TRY(auto out, defined(config));
    if (!out.installed)
        return fail(errc::not_found, "service.unit",
                    "the service is not installed: there is no " + out.unit_path, install_mend);
    GLOVE_CHECK(manager_.version());
    GLOVE_TRY(const auto before, check_loaded());
    // Its answers would be taken for those of the service.
    if (before.main_pid == 0 && where_.health(out.config, where_.patience))
        return fail(errc::conflict, "service.other",
                    "another gloved, which the service manager did not start, serves " + out.config,
                    "stop that one first");
    const std::string name{service_unit_name};
    if (before.active == "failed") GLOVE_CHECK(manager_.tell({"reset-failed", name}));
    GLOVE_CHECK(manager_.tell({verb, name}));
    const auto answered = await_health(out.config);
    GLOVE_TRY(const auto after, manager_.look_at(service_unit_name));
    out.active = after.active;
    out.main_pid = after.main_pid;
    if (answered && out.healthy() && out.main_pid != 0) return out;
    return fail(answered ? errc::wrong_state : errc::timed_out, "service.health",
                "gloved was started and does not answer; the unit is " + out.active +
                    (answered ? "" : ": " + answered.error().detail),
                journal_mend);
}

auto user_service::start(const std::string& config) const -> result<service_status> {
    return launch(config, "start");
}
auto user_service::restart(const std::string& config) const -> result<service_status> {
    return launch(config, "restart");
}

auto user_service::stop(const std::string& config) const -> result<service_status> {
    GLOVE_TRY(auto out, defined(config));
    if (!out.installed)
        return fail(errc::not_found, "service.unit",
                    "the service is not installed: there is no " + out.unit_path, install_mend);
    GLOVE_CHECK(manager_.version());
    GLOVE_CHECK(manager_.tell({"stop", std::string{service_unit_name}}));
    GLOVE_TRY(const auto after, manager_.look_at(service_unit_name));
    out.active = after.active;
    out.main_pid = after.main_pid;
    if (out.stopped() && out.main_pid == 0) return out;
    return fail(errc::wrong_state, "service.unit",
                "the unit is " + out.active + " though it was told to stop", journal_mend);
}

auto user_service::status(const std::string& config) const -> result<service_status> {
    GLOVE_TRY(auto known, defined(config));
    GLOVE_CHECK(manager_.version());
    return see(std::move(known));
}

} // namespace glove::host
