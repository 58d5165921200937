// The terminal of the agent's own, between the caller's terminal or streams and the agent.
//
// Guarantees:
// - The agent never holds a descriptor of a terminal of the caller: it has a terminal of the
//   namespace's own devpts, or a pipe.
// - It begins in the foreground of its terminal only when both standard input and output are the
//   caller's terminal and Glove is in the foreground there. Else it begins in the background, and
//   nothing is read of the caller's terminal, where other programs of a pipeline may be reading,
//   until the agent asks for it: reading or setting its terminal stops it (SIGTTIN, SIGTTOU), which
//   init reports; then the caller's terminal is taken, or, from the background, the job stops.
// - When the agent itself stops, the caller's modes are put back and the job stops with it; the
//   shell's `fg` and `bg` go on with both.
#pragma once
#include "run/caller_terminal.hpp"
#include "run/input_relay.hpp"
#include "run/output_relay.hpp"
#include <array>
#include <glove/container/launch.hpp>
#include <glove/run/exec.hpp>
#include <optional>

namespace glove::run {

// What becomes of each standard stream.
enum class stream_way : std::uint8_t {
    handed,   // the caller's own
    terminal, // the private terminal
    relayed,  // a pipe
};

class private_terminal {
public:
    // Looks at the standard streams, and opens what is needed of them.
    [[nodiscard]] static auto open(terminal_wish wish) -> result<private_terminal>;

    [[nodiscard]] auto ways() const noexcept -> const std::array<stream_way, 3>& { return ways_; }
    // Empty when the agent gets no terminal.
    [[nodiscard]] auto request() const -> std::optional<container::terminal_request>;
    // The agent's end of a relayed standard input, or -1; `agent_has_streams` closes it here.
    [[nodiscard]] auto agent_input() const -> int { return agent_input_.get(); }
    // What stands in for a stream until the private terminal is there: /dev/null.
    [[nodiscard]] auto placeholder() const -> int { return nothing_.get(); }
    void agent_has_streams() {
        agent_input_ = {};
        nothing_ = {};
    }
    [[nodiscard]] auto has_caller() const noexcept -> bool { return caller_.has_value(); }
    [[nodiscard]] auto is_made() const noexcept -> bool { return made_; }

    // The master has come out of the sandbox.
    [[nodiscard]] auto connect(sys::unique_fd master, output_relay& output) -> result<>;
    void interest(std::vector<::pollfd>& into) const;
    void advance(std::span<const ::pollfd> ready);
    // Whether the end of the input is to be told to every program that reads, now and then.
    [[nodiscard]] auto repeats_end() const noexcept -> bool {
        return input_ && input_->repeats_end();
    }
    void repeat_end() { input_->repeat_end(); }
    [[nodiscard]] auto hung_up() const noexcept -> bool { return input_ && input_->hung_up(); }

    // The caller's window may have another size. One that it keeps is not told again: the agent may
    // have set its own.
    void resize();
    // The agent has started, or gone on after a stop: what is typed finds it.
    void agent_takes_input();
    // A signal stopped the agent.
    void agent_stopped(container::running& agent, int number);
    // Somebody asked Glove to stop, as Ctrl-Z does where the terminal is not taken: `typed`.
    void hold(container::running& agent, bool typed);
    // Somebody continued Glove, perhaps in the foreground.
    void continued(container::running& agent);
    void give_back();

private:
    [[nodiscard]] auto take() -> bool;
    void note_returns() const;
    [[nodiscard]] auto plan_ways() -> result<>;
    void go_on(container::running& agent);

    terminal_wish wish_ = terminal_wish::automatic;
    std::array<stream_way, 3> ways_{};
    std::optional<caller_terminal> caller_; // the one that the private terminal stands for
    std::optional<input_relay> input_;
    sys::unique_fd nothing_, agent_input_, own_input_, own_output_, master_;
    output_relay* output_ = nullptr;
    std::optional<::winsize> size_; // of the caller's window, as the agent's terminal has it
    bool made_ = false;             // the agent gets a terminal
    bool has_modes_ = false;        // the caller's
    bool wanted_ = false;           // the agent uses it: it is, or shall be, in the foreground
    bool front_ = true;             // the agent's group is in the foreground inside
    unsigned awaited_ = 1;          // starts of the agent that were asked for and not told of yet
};

} // namespace glove::run
