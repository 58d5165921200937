// Time as a seam: production reads the kernel's clocks, tests hand out the time they want.
#pragma once
#include <chrono>
#include <cstdint>

namespace glove::sys {

class clock {
public:
    virtual ~clock() = default;
    // For deadlines: never steps back.
    [[nodiscard]] virtual auto monotonic() const noexcept -> std::chrono::nanoseconds = 0;
    // Nanoseconds since 1970, for records; may step.
    [[nodiscard]] virtual auto wall() const noexcept -> std::chrono::nanoseconds = 0;
};

class system_clock final : public clock {
public:
    [[nodiscard]] auto monotonic() const noexcept -> std::chrono::nanoseconds override;
    [[nodiscard]] auto wall() const noexcept -> std::chrono::nanoseconds override;
};

// As records and controllers have it: whole milliseconds since 1970; 0 for whatever is before that.
[[nodiscard]] inline auto wall_ms(const clock& of) noexcept -> std::uint64_t {
    const auto ms = of.wall() / std::chrono::milliseconds{1};
    return ms > 0 ? static_cast<std::uint64_t>(ms) : 0;
}

} // namespace glove::sys
