// Why a session ended: many may say so, and the first one is believed.
//
// Guarantees: once a cause stands it never changes, whoever else comes, from whichever thread; an
// exit status goes with the cause `exited` and with no other. It ends nothing itself.
#pragma once
#include <atomic>
#include <cstdint>
#include <glove/control/receipt.hpp>
#include <optional>

namespace glove::control {

struct termination_verdict {
    termination_cause cause{};
    std::optional<std::uint32_t> exit_code; // 0 to 255, with `exited` only
    auto operator==(const termination_verdict&) const -> bool = default;
};

// How the first process of a session ended, as far as that is known.
struct process_end {
    enum class how : std::uint8_t { exited, signaled, unknown } what = how::unknown;
    std::uint32_t code = 0; // of an exit
    auto operator==(const process_end&) const -> bool = default;
};
// From the status that waitpid gives. A stop is no end: `unknown`.
[[nodiscard]] auto end_of(int wait_status) noexcept -> process_end;

class termination {
public:
    // A limit, or an error of the supervisor's. True when it is the first: who says so then ends
    // the session. `exited` and `signaled` are told by `note_end`, and are refused here: false.
    auto note(termination_cause why) noexcept -> bool;
    // The end itself, told last: after the limits were looked at once more and the terminal was
    // drained, because what they find came before it. Memory that ran out is the cause of the end
    // that it brought, however that looks. An end that nobody knows, or a status that no process
    // has, is an error of the supervisor's.
    auto note_end(const process_end& end, bool is_over_memory) noexcept -> bool;
    // Empty while none stands.
    [[nodiscard]] auto verdict() const noexcept -> std::optional<termination_verdict>;

private:
    auto stand(termination_cause why, std::uint32_t code) noexcept -> bool;
    std::atomic<std::uint32_t> first_{0}; // 0: none; else the cause, the exit code, and one bit
};

} // namespace glove::control
