// One word that is exchanged once.
#include <glove/control/termination.hpp>
#include <sys/wait.h>

namespace glove::control {

namespace {

constexpr std::uint32_t stands = 1U << 31U;
constexpr unsigned cause_shift = 8;
constexpr std::uint32_t code_mask = 0xff;

} // namespace

auto end_of(int wait_status) noexcept -> process_end {
    if (WIFEXITED(wait_status))
        return {process_end::how::exited, static_cast<std::uint32_t>(WEXITSTATUS(wait_status))};
    if (WIFSIGNALED(wait_status)) return {process_end::how::signaled, 0};
    return {};
}

auto termination::stand(termination_cause why, std::uint32_t code) noexcept -> bool {
    std::uint32_t none = 0;
    return first_.compare_exchange_strong(
        none, stands | (static_cast<std::uint32_t>(why) << cause_shift) | code);
}

auto termination::note(termination_cause why) noexcept -> bool {
    if (why == termination_cause::exited || why == termination_cause::signaled) return false;
    return stand(why, 0);
}

auto termination::note_end(const process_end& end, bool is_over_memory) noexcept -> bool {
    using enum termination_cause;
    if (is_over_memory) return stand(memory_limit, 0);
    if (end.what == process_end::how::signaled) return stand(signaled, 0);
    if (end.what == process_end::how::exited && end.code <= code_mask)
        return stand(exited, end.code);
    return stand(supervisor_error, 0);
}

auto termination::verdict() const noexcept -> std::optional<termination_verdict> {
    const auto word = first_.load();
    if (word == 0) return std::nullopt;
    termination_verdict out{static_cast<termination_cause>((word & ~stands) >> cause_shift),
                            std::nullopt};
    if (out.cause == termination_cause::exited) out.exit_code = word & code_mask;
    return out;
}

} // namespace glove::control
