// Asks the user's systemd, by its own program and without a shell.
//
// Guarantees: an answer takes `patience` at most, then the program and all that it started are
// killed; it gets the variables that it needs to find the manager and no others; what it says is
// bounded, is text that somebody else chose, and is shown only with its control characters
// replaced.
//
// Error steps: service.manager, service.unit.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::host {

inline constexpr std::size_t most_manager_bytes = 64UL << 10; // of one stream

struct manager_settings {
    std::string program = "/usr/bin/systemctl";
    std::string runtime_directory; // XDG_RUNTIME_DIR
    std::string bus;               // DBUS_SESSION_BUS_ADDRESS; empty: none
    std::chrono::milliseconds patience{15'000};
};

struct manager_answer {
    int status = 0; // of the program, or 128 and the signal that ended it
    std::string out, complaint;
};

// What the manager knows of a unit. Words that systemd does not have are "unknown".
struct unit_facts {
    std::string load, active; // "loaded", "active"
    std::string fragment;     // the file that it was read from
    std::uint64_t main_pid = 0;
    auto operator==(const unit_facts&) const -> bool = default;
};

class service_manager {
public:
    explicit service_manager(manager_settings how) : how_{std::move(how)} {}
    // The one of the calling user, found by its environment. Refused by name where there is none.
    [[nodiscard]] static auto of_caller() -> result<service_manager>;

    // `systemctl --user WORDS...`
    [[nodiscard]] auto ask(const std::vector<std::string>& words) const -> result<manager_answer>;
    // The same, and all but success is an error.
    [[nodiscard]] auto tell(const std::vector<std::string>& words) const -> result<std::string>;
    // Also says whether there is a manager.
    [[nodiscard]] auto version() const -> result<std::uint64_t>;
    [[nodiscard]] auto look_at(std::string_view unit) const -> result<unit_facts>;

private:
    manager_settings how_;
};

} // namespace glove::host
