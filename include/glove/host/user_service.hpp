// gloved as a service of its user: `glove daemon`.
//
// Guarantees: there is one label, one place and one template for the definition; nothing is written
// before the program, the configuration and the manager were found good; a reader of the definition
// sees the old one or the whole new one, through a power cut too; a service that was started has
// answered, and it was the one that the manager started.
//
// Error steps: service.gloved, service.config, service.unit, service.manager, service.other,
// service.health, service.subgroup, and those of service_unit.hpp.
#pragma once
#include <chrono>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/host/service_manager.hpp>
#include <glove/host/service_unit.hpp>
#include <optional>
#include <string>

namespace glove::host {

// Whether the service of a configuration answers, within the time.
using health_question =
    std::function<result<>(const std::string& config, std::chrono::milliseconds patience)>;
[[nodiscard]] auto ask_health(const std::string& config, std::chrono::milliseconds patience)
    -> result<>;

struct service_places {
    std::string unit_directory; // of the user's units
    health_question health = ask_health;
    // After a start: how often it is asked, how long it may take to listen, and then to answer.
    std::chrono::milliseconds between{25}, patience{5'000}, answer{15'000};
};
// $XDG_CONFIG_HOME/systemd/user, or ~/.config/systemd/user.
[[nodiscard]] auto places_of_caller() -> result<service_places>;

// The gloved that belongs to this program: beside it, or in the `bin` of its installation.
[[nodiscard]] auto find_gloved() -> result<std::string>;

struct installed_service {
    std::string unit_path, config;
    bool written = false;    // else it stood there already
    bool persistent = false; // as its configuration wants it
    bool by_systemd = false; // into the subgroup; else by `into_subgroup`
    std::uint64_t systemd = 0;
    bool running = false; // still as it was defined before
};

struct service_status {
    std::string unit_path;
    bool installed = false;
    std::string active; // a word of systemd's
    std::uint64_t main_pid = 0;
    std::string config;
    std::optional<error> trouble = {}; // why it does not answer
    [[nodiscard]] auto healthy() const -> bool { return active == "active" && !trouble; }
    [[nodiscard]] auto stopped() const -> bool {
        return active == "inactive" || active == "failed";
    }
};

class user_service {
public:
    user_service(service_places where, service_manager manager)
        : where_{std::move(where)}, manager_{std::move(manager)} {}

    [[nodiscard]] auto install(const service_programs& of) const -> result<installed_service>;
    // Each returns when the service answers, or is gone. A `config` must be that of the definition.
    [[nodiscard]] auto start(const std::string& config) const -> result<service_status>;
    [[nodiscard]] auto restart(const std::string& config) const -> result<service_status>;
    [[nodiscard]] auto stop(const std::string& config) const -> result<service_status>;
    [[nodiscard]] auto status(const std::string& config) const -> result<service_status>;

private:
    [[nodiscard]] auto unit_path() const -> std::string;
    [[nodiscard]] auto write(const std::string& text) const -> result<bool>;
    [[nodiscard]] auto check_loaded() const -> result<unit_facts>;
    [[nodiscard]] auto defined(const std::string& config) const -> result<service_status>;
    [[nodiscard]] auto launch(const std::string& config, const char* verb) const
        -> result<service_status>;
    [[nodiscard]] auto await_health(const std::string& config) const -> result<>;
    [[nodiscard]] auto see(service_status known) const -> result<service_status>;

    service_places where_;
    service_manager manager_;
};

// Of a systemd without DelegateSubgroup: this process goes into `glove-host` below its own control
// group, which stays empty then. Only in the group of the service, and only when it is this user's.
[[nodiscard]] auto enter_subgroup(const std::string& hierarchy = "/sys/fs/cgroup",
                                  const std::string& membership = "/proc/self/cgroup") -> result<>;

} // namespace glove::host
