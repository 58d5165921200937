// What has become of the processes of sessions that were alive when the last service ended.
//
// Guarantees: looks and never signals. A process is gone only when the machine was started since,
// when the kernel says that its number is free, when that number belongs to a process that started
// at another time, or when it has ended and only was not waited for; what may still be it is
// unknown, and its session is left alone. A process that `proc` merely does not show is not gone.
#pragma once
#include <glove/control/session_registry.hpp>
#include <string>

namespace glove::control {

class recorded_processes final : public process_observer {
public:
    using number_is_free = bool (*)(std::uint32_t pid);
    [[nodiscard]] static auto kernel_says_free(std::uint32_t pid) -> bool;
    // `proc` is where the kernel shows processes; another one, or another kernel, is for tests.
    explicit recorded_processes(std::string proc = "/proc",
                                number_is_free is_free = kernel_says_free)
        : proc_{std::move(proc)}, is_free_{is_free} {}
    [[nodiscard]] auto observe(const session_record& of) -> observed_process override;

private:
    std::string proc_;
    number_is_free is_free_;
};

} // namespace glove::control
