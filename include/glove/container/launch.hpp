// Starts a plan and holds the running perimeter.
//
// Guarantees: the agent's program starts only after every step of the perimeter was carried out and
// `release` was called; any refused step ends the attempt with nothing left behind. Dropping the
// object ends every process of the namespace and waits for that.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/control_group.hpp>
#include <glove/container/plan.hpp>
#include <glove/sys/child_process.hpp>
#include <glove/sys/fd.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termios.h>
#include <vector>

namespace glove::container {

// Memory in which the kernel shows a process's arguments and environment to others.
struct argument_area {
    char* begin = nullptr;
    std::size_t size = 0;
};

// A terminal of the sandbox's own. Its master comes out by `running::take_terminal`.
struct terminal_request {
    std::array<bool, 3> streams{};    // of the agent's 0, 1 and 2, which become this terminal
    bool foreground = true;           // the agent begins in its foreground
    std::optional<::termios> modes{}; // the kernel's own when empty
    bool quiet = false;               // with TOSTOP
    ::winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
};

struct launch_request {
    const container::plan* plan = nullptr; // outlives the launch
    std::array<int, 3> streams{0, 1, 2};   // borrowed; become the agent's 0, 1 and 2
    sys::unique_fd* bridge = nullptr; // the bridge's end of its channel, of a plan with one; taken
    argument_area arguments;
    control_group* group = nullptr; // which init enters before anything else; borrowed
    // The cgroup.procs of another group, open for writing, for the same.
    std::optional<sys::fd_ref> entry{};
    std::optional<terminal_request> terminal{};
    ::rlimit open_files{}; // limits the agent gets back, see `raise_open_files`
    bool deaf = false;     // the agent begins with SIGHUP, SIGINT and SIGTERM blocked
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
    // After `at_most` (whole seconds) the sandbox's init kills the agent, whether or not this
    // process goes on.
    [[nodiscard]] auto release(std::optional<std::chrono::seconds> at_most = {}) -> result<>;
    // Passes a signal on to the agent, or to its process group.
    [[nodiscard]] auto signal(int number) -> result<>;
    [[nodiscard]] auto signal_group(int number) -> result<>;
    // To whoever is in the foreground of its private terminal, by init, to which no number means
    // anybody outside. Any thread, as long as the object stays where it is.
    [[nodiscard]] auto signal_foreground(int number) const -> result<>;
    // Goes on with an agent that has stopped, in the foreground of its terminal or behind it. That
    // this is done, `takes_input` tells.
    [[nodiscard]] auto go_on(bool in_foreground) -> result<>;
    // Answers a stop after which the agent does not go on for now.
    [[nodiscard]] auto hear_stop() -> result<>;
    // Ends every process of the namespace at once.
    [[nodiscard]] auto kill() -> result<>;
    // The same from any thread, as long as the object stays where it is. What the last news is then
    // called an error, because nobody here knows who ended init.
    [[nodiscard]] auto end() const -> result<>;
    // Readable when `read_news` will not block.
    [[nodiscard]] auto news() const noexcept -> sys::fd_ref { return control_; }
    // How the agent ended, or which step refused; empty when it has only started. Before it tells
    // of an end it waits until the namespace is empty.
    [[nodiscard]] auto read_news() -> result<std::optional<ending>>;
    // The same without a wait, for who may not: an end is told once the namespace is empty, and
    // empty it may never become as long as a process waits for a file system that does not answer.
    [[nodiscard]] auto look_for_news() -> result<std::optional<ending>>;
    // Readable when `look_for_news` has something to do. Until the end was told.
    [[nodiscard]] auto awaited() const noexcept -> sys::fd_ref {
        return last_ ? init_.descriptor() : sys::fd_ref{control_};
    }
    // Readable from init's end on, when the namespace is empty. Until the end was told.
    [[nodiscard]] auto init() const noexcept -> sys::fd_ref { return init_.descriptor(); }
    // Init has nothing more to say: it is on its way to its end, or there.
    [[nodiscard]] auto is_ending() const noexcept -> bool { return last_.has_value(); }
    // What the last news brought: a listening socket of the plan; the private terminal's master,
    // whose flags nobody has touched; the signal that stopped the agent, or 0; that the agent has
    // started, or gone on after `go_on`, so that keys typed from now on find it. None waits.
    [[nodiscard]] auto take_listener() -> inner_listener {
        return std::exchange(listener_, inner_listener{});
    }
    [[nodiscard]] auto take_terminal() -> sys::unique_fd { return std::move(terminal_); }
    [[nodiscard]] auto take_stop() -> int { return std::exchange(stop_, 0); }
    [[nodiscard]] auto takes_input() -> bool { return std::exchange(takes_input_, false); }
    [[nodiscard]] auto layers() const -> std::vector<layer>;

private:
    [[nodiscard]] auto accept_listener(sys::unique_fd came, std::size_t index)
        -> result<sys::unique_fd>;
    // What comes next, which is the last in the end.
    [[nodiscard]] auto hear() -> result<>;
    [[nodiscard]] auto reap() -> result<std::optional<ending>>;

    sys::child_process init_;
    sys::unique_fd control_;
    std::unique_ptr<prepared_launch> keep_;
    std::vector<bool> listeners_due_;
    inner_listener listener_;
    sys::unique_fd terminal_;
    bool terminal_due_;
    int stop_ = 0;
    bool takes_input_ = false;
    std::uint64_t armed_ = 0;
    bool killed_ = false;
    std::optional<result<ending>> last_;
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
