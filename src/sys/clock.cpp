#include <ctime>
#include <glove/sys/clock.hpp>

namespace glove::sys {

namespace {
auto read(::clockid_t id) noexcept -> std::chrono::nanoseconds {
    ::timespec now{};
    (void)::clock_gettime(id, &now); // cannot fail for these two clocks
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}
} // namespace

auto system_clock::monotonic() const noexcept -> std::chrono::nanoseconds {
    return read(CLOCK_MONOTONIC);
}
auto system_clock::wall() const noexcept -> std::chrono::nanoseconds {
    return read(CLOCK_REALTIME);
}

} // namespace glove::sys
