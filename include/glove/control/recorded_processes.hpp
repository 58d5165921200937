// What has become of the processes of sessions that were alive when the last service ended.
//
// Guarantees: looks and never signals. A process is gone only when the machine was started since,
// when its number is free, or when that number belongs to a process that started at another time;
// what may still be it is unknown, and its session is left alone.
#pragma once
#include <glove/control/session_registry.hpp>
#include <string>

namespace glove::control {

class recorded_processes final : public process_observer {
public:
    // `proc` is where the kernel shows processes; another one is for tests.
    explicit recorded_processes(std::string proc = "/proc") : proc_{std::move(proc)} {}
    [[nodiscard]] auto observe(const session_record& of) -> observed_process override;

private:
    std::string proc_;
};

} // namespace glove::control
