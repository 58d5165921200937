// Waits for a running agent: passes signals on, keeps the clock, counts output, and ends the
// namespace when a limit or a request says so.
#pragma once
#include "run/mediator.hpp"
#include "run/output_relay.hpp"
#include "run/private_terminal.hpp"
#include <chrono>
#include <functional>
#include <glove/container/launch.hpp>
#include <glove/net/egress_service.hpp>
#include <glove/ssh/agent_service.hpp>
#include <glove/sys/clock.hpp>
#include <optional>
#include <string_view>

namespace glove::run {

enum class exit_cause : std::uint8_t {
    exited,       // by itself
    signaled,     // by a signal from inside or from the host
    terminated,   // Glove was asked to stop
    wall_time,    // limit
    output_bytes, // limit
    memory,       // limit
    cpu_time,     // limit
    mediation,    // nothing stands between the agent and its tools any more
};
[[nodiscard]] auto to_string(exit_cause cause) -> std::string_view;

struct outcome {
    exit_cause cause{};
    int wait_status = 0;
    std::optional<std::uint64_t> output_bytes = {};   // counted only when limited
    std::string mediation_end = {};                   // why, when that is the cause
    std::optional<container::group_usage> usage = {}; // of a run in a control group
};

// Whether a limit cut the run short.
[[nodiscard]] auto is_limit(exit_cause cause) noexcept -> bool;

// How long an agent that was asked to end may take.
inline constexpr std::chrono::seconds termination_grace{5};

// Signals that Glove takes note of. Blocks them from here on, so that none is lost before the
// descriptor is waited for.
class signal_inbox {
public:
    // `on_terminal`: with those that tell of its size and of a job that goes on.
    [[nodiscard]] static auto open(bool on_terminal) -> result<signal_inbox>;
    signal_inbox(signal_inbox&&) noexcept = default;
    [[nodiscard]] auto descriptor() const noexcept -> sys::fd_ref { return fd_; }
    struct received {
        int number = 0;
        bool typed = false; // at the terminal, which told every process of our group
    };
    [[nodiscard]] auto take() -> std::optional<received>;

private:
    explicit signal_inbox(sys::unique_fd fd) : fd_{std::move(fd)} {}
    sys::unique_fd fd_;
};

// What a run consists of while it goes on.
struct supervised {
    container::running& agent;
    const container::limits& limits;
    output_relay* relay; // null: the agent writes to the caller's own streams
    private_terminal& terminal;
    net::egress_service* egress; // null: nothing can be reached
    signal_inbox& inbox;
    const sys::clock& time;
    ssh::agent_service* ssh_agent = nullptr; // null: nothing is signed
    // Gets each listening socket of the plan, once.
    std::function<void(container::inner_listener)> take_listener = {};
    // Null: there are no tools. Otherwise `release` is called when they are ready, and not before.
    mediator* tools = nullptr;
    std::function<result<>()> release = {};
    const container::control_group* group = nullptr; // null: nothing is asked that takes one
};
[[nodiscard]] auto supervise(const supervised& run) -> result<outcome>;

// Ends the mediator of a run that is over; whoever asks Glove to end meanwhile is heard. When it
// had ended before, an agent that ended by itself was only quicker than the news: `ended` says so.
void finish_tools(mediator& tools, signal_inbox& inbox, result<outcome>& ended);

} // namespace glove::run
