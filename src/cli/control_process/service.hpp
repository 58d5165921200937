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

class service {
public:
    [[nodiscard]] static auto of(const service_words& words) -> result<std::unique_ptr<service>>;

    [[nodiscard]] auto ask(std::string_view method, std::string payload = "null") const
        -> result<control::remote_answer> {
        return client_.call(method, std::move(payload));
    }
    // A change. Without a key it gets one of its own; an error after it was sent names the key.
    [[nodiscard]] auto change(std::string_view method, std::string payload, std::string key) const
        -> result<control::remote_answer>;

private:
    explicit service(control::client_settings how) : client_{std::move(how), clock_, random_} {}
    sys::system_clock clock_;
    mutable sys::system_entropy random_;
    control::client client_;
};

// Tells what the service said instead of a result; the status.
[[nodiscard]] auto told(const control::remote_error& said) -> int;
// What every action that asks the service takes.
[[nodiscard]] auto service_options() -> std::vector<std::string_view>;
// An answer that is not in the form of its method.
[[nodiscard]] auto strange_answer(std::string_view why) -> std::unexpected<error>;

} // namespace glove::cli
