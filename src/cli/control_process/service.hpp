// The service that a command line means, and what it says to one request.
#pragma once
#include "cli/control_process/output.hpp"
#include "cli/control_words.hpp"
#include <glove/control/client.hpp>
#include <glove/sys/clock.hpp>
#include <glove/sys/entropy.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace glove::cli {

// How the requests of one action are made.
struct asking {
    std::chrono::milliseconds patience{10'000}; // when the words do not say
    std::optional<sys::fd_ref> interrupt = {};  // as of client_settings
};

class service {
public:
    [[nodiscard]] static auto of(const service_words& words, const asking& how = {})
        -> result<std::unique_ptr<service>>;

    [[nodiscard]] auto ask(std::string_view method, std::string payload = "null") const
        -> result<control::remote_answer> {
        return client_.call(method, std::move(payload));
    }
    // A change. Without a key it gets one of its own; an error after it was sent names the key.
    [[nodiscard]] auto change(std::string_view method, std::string payload, std::string key) const
        -> result<control::remote_answer>;

    // For a request of its own.
    [[nodiscard]] auto fresh_key() const -> result<std::string> { return sys::random_id(random_); }
    [[nodiscard]] auto clock() const noexcept -> const sys::clock& { return clock_; }
    // The file of the audit key, when the configuration names this service and its key.
    [[nodiscard]] auto audit_key_file() const noexcept -> const std::string& { return key_file_; }

private:
    struct where {
        control::client_settings client;
        std::string key_file;
    };
    [[nodiscard]] static auto find(const service_words& words, const asking& how) -> result<where>;
    explicit service(where found)
        : key_file_{std::move(found.key_file)}, client_{std::move(found.client), clock_, random_} {}
    std::string key_file_;
    sys::system_clock clock_;
    mutable sys::system_entropy random_;
    control::client client_;
};

// Tells what the service said instead of a result, and what may mend it; the status. Some codes
// mean something else with some methods.
[[nodiscard]] auto told(const control::remote_error& said, std::string_view method = {}) -> int;
// What every action that asks the service takes.
[[nodiscard]] auto service_options() -> std::vector<std::string_view>;
// What shows the log of the service that the service manager keeps.
[[nodiscard]] auto command_for_log() -> std::string;
// An answer that is not in the form of its method.
[[nodiscard]] auto strange_answer(std::string_view why) -> std::unexpected<error>;

} // namespace glove::cli
