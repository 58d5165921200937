// The `glove-mediator` of a run: it starts the tool servers and stands between them and the agent.
//
// Guarantees: it gets what is named here and nothing else; no key typed at the caller's terminal
// reaches it; nothing here waits without a bound. It ends with this object and with this process,
// also after SIGKILL, and with it the servers.
#pragma once
#include <array>
#include <chrono>
#include <functional>
#include <glove/base/error.hpp>
#include <glove/kernel/mediation.hpp>
#include <glove/sys/child_process.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace glove::run {

// The ends of the agent's standard input and output that the mediator has.
struct agent_ends {
    sys::unique_fd input, output;
};

class mediator {
public:
    // With `ends` it serves the agent on its streams; otherwise by the socket of `serve`. The
    // program is found beside this one when it is not named. `path` stands for the caller's PATH.
    [[nodiscard]] static auto start(const kernel::mediation& what, std::optional<agent_ends> ends,
                                    std::string program = {},
                                    const std::optional<std::string>& path = {})
        -> result<mediator>;
    mediator(mediator&&) noexcept = default;
    ~mediator();

    // Readable when `advance` has something to do.
    [[nodiscard]] auto descriptor() const noexcept -> sys::fd_ref { return control_; }
    // Takes what it says, without waiting.
    void advance();
    // Every server that is required has been initialized.
    [[nodiscard]] auto is_ready() const noexcept -> bool { return ready_; }
    // Why it is no more: before it was ready, and afterwards. Nothing when it ended because the
    // agent has closed its streams: that has no tools any more, and may go on.
    [[nodiscard]] auto end() const noexcept -> const std::optional<std::string>& { return end_; }
    // When it must be ready, after its start.
    [[nodiscard]] auto patience() const noexcept -> std::chrono::nanoseconds { return patience_; }
    // Hands it the socket inside. What cannot be handed over is told as its end.
    void serve(sys::unique_fd listener);

    // Ends it, and waits until it and the servers are gone: for `finish_patience`, or until
    // `hurry` is readable and `is_meant`; then it is asked once more, and killed after
    // `last_patience`. `end` tells from then on whether it had ended otherwise.
    void finish(sys::fd_ref hurry, const std::function<bool()>& is_meant);

private:
    mediator(sys::child_process process, sys::unique_fd control, std::chrono::nanoseconds patience)
        : process_{std::move(process)}, control_{std::move(control)}, patience_{patience} {}
    void take(std::string_view message);
    void gone();
    void reap(bool was_to_end);
    void finish(int hurry, const std::function<bool()>& is_meant);

    std::optional<sys::child_process> process_;
    sys::unique_fd control_;
    std::chrono::nanoseconds patience_;
    bool ready_ = false;
    bool left_ = false; // by the agent
    std::optional<std::string> end_;
};

inline constexpr std::chrono::seconds finish_patience{10};
inline constexpr std::chrono::seconds last_patience{2};

// The rules of a mediation as glove-mediator understands them, a line each. Starts no server.
[[nodiscard]] auto rules_of(kernel::mediation what, std::string program = {})
    -> result<std::vector<std::string>>;

} // namespace glove::run
