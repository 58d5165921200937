// Starts a plan and holds the running perimeter.
//
// Guarantees: the agent's program starts only after every step of the perimeter was carried out and
// `release` was called; any refused step ends the attempt with nothing left behind. Dropping the
// object ends every process of the namespace and waits for that.
#pragma once
#include <array>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/plan.hpp>
#include <glove/sys/child_process.hpp>
#include <glove/sys/fd.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <sys/resource.h>
#include <vector>

namespace glove::container {

// Memory in which the kernel shows a process's arguments and environment to others.
struct argument_area {
    char* begin = nullptr;
    std::size_t size = 0;
};

struct launch_request {
    const container::plan* plan = nullptr; // outlives the launch
    std::array<int, 3> streams{0, 1, 2};   // borrowed; become the agent's 0, 1 and 2
    sys::unique_fd* bridge = nullptr; // the bridge's end of its channel, of a plan with one; taken
    argument_area arguments;
    // Keep the agent in the caller's process group, for a terminal's sake; a filter then stands in
    // for the boundary that a group of its own would be.
    bool shared_process_group = false;
    ::rlimit open_files{}; // limits the agent gets back, see `raise_open_files`
};

// One property of the perimeter and whether it was put in force.
struct layer {
    std::string_view name;
    bool armed = false;
};
// Every layer that a plan asks for, in the order in which they are armed.
[[nodiscard]] auto requested_layers(const plan& wanted) -> std::vector<layer>;

struct ending {
    int wait_status = 0; // of the agent, as waitpid gives it
};

// A listening socket of the plan, which stands inside. Empty when the last news brought none.
struct inner_listener {
    std::size_t index = 0; // of `plan::listeners`
    sys::unique_fd socket = {};
};

struct prepared_launch; // memory the child reads

class running {
public:
    running(sys::child_process init, sys::unique_fd control, std::unique_ptr<prepared_launch> keep);
    running(running&&) noexcept;
    ~running();

    // Lets the agent start. The set-up may still be going on, or have failed: `collect` tells.
    [[nodiscard]] auto release() -> result<>;
    // Passes a signal on to the agent.
    [[nodiscard]] auto signal(int number) -> result<>;
    // Ends every process of the namespace at once.
    [[nodiscard]] auto kill() -> result<>;
    // Readable when `read_news` will not block.
    [[nodiscard]] auto news() const noexcept -> sys::fd_ref { return control_; }
    // How the agent ended, or which step refused; empty when it has only started. Before it tells
    // of an end it waits until the namespace is empty.
    [[nodiscard]] auto read_news() -> result<std::optional<ending>>;
    // What the last news brought. All of them come before the agent starts; none waits.
    [[nodiscard]] auto take_listener() -> inner_listener {
        return std::exchange(listener_, inner_listener{});
    }
    [[nodiscard]] auto layers() const -> std::vector<layer>;

private:
    [[nodiscard]] auto accept_listener(sys::unique_fd came, std::size_t index) -> result<>;

    sys::child_process init_;
    sys::unique_fd control_;
    std::unique_ptr<prepared_launch> keep_;
    std::vector<bool> listeners_due_;
    inner_listener listener_;
    std::uint64_t armed_ = 0;
    bool killed_ = false;
};

[[nodiscard]] auto launch(const launch_request& request) -> result<running>;

// Refuses a set-user-id or set-group-id start: whose files are granted must be beyond doubt.
[[nodiscard]] auto check_identity() -> result<>;

// A pin is a descriptor: raises the soft limit to the hard one and returns what it was.
[[nodiscard]] auto raise_open_files() -> result<::rlimit>;

// The step of an error about the program itself: errc::not_found, or found and not executable.
inline constexpr std::string_view exec_step = "agent.exec";

// What an operator can do about a refused step; empty when the cause is not certain.
[[nodiscard]] auto remedy_for(std::string_view step, int os) -> std::string;

} // namespace glove::container
