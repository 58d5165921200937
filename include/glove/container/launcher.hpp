// Starts the perimeters of managed sessions from a process that never held a key, a secret or a
// token of the service's.
//
// Guarantees: the launcher is a process that was made before any of these was there; it has no
// descriptor but its own end of one channel, and ends with the service. For each session it makes
// a process of its own (the session's keeper), which alone is given what this session is started
// with, makes init, puts it into the session's control group before it builds anything, writes its
// id maps, hands the service init's pidfd and control channel, and then only waits to reap it. Both
// close everything that they were not given.
//
// The service may be in a user namespace of its own, as mapped root: the maps are nested.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/container/launch.hpp>
#include <glove/container/plan.hpp>
#include <glove/sys/fd.hpp>
#include <memory>
#include <optional>

namespace glove::container {

struct session_launch {
    const container::plan* plan = nullptr; // outlives what is launched
    // Of the session's control group (session_group::entry). Without one it stays in the
    // launcher's.
    std::optional<sys::fd_ref> entry = {};
    std::uint16_t rows = 24, columns = 80; // of its terminal, which is all three streams
    sys::unique_fd* bridge = nullptr;      // the bridge's end of its channel, of a plan with one
};

// Which process init is, for records. It is valid while init has not been told to end.
struct init_identity {
    std::uint32_t pid = 0; // as this process's /proc knows it
    std::uint64_t start_time_ticks = 0;
};

struct launched_session {
    running process;
    init_identity init;
};

class launcher {
public:
    // While the calling process has one thread and holds no key yet. It ends when the thread that
    // called does. Steps: launcher.*.
    [[nodiscard]] static auto start() -> result<launcher>;
    launcher(launcher&&) noexcept;
    ~launcher();

    // The agent waits for `running::release`. By one thread at a time per launcher or many: any
    // thread. An error leaves nothing behind. Steps: launcher.*, and those of `launch`.
    [[nodiscard]] auto launch(const session_launch& what) -> result<launched_session>;
    // Whether it is still there: without it nothing can be started.
    [[nodiscard]] auto is_alive() const -> bool;

private:
    struct state;
    explicit launcher(std::unique_ptr<state> own);
    std::unique_ptr<state> state_;
};

} // namespace glove::container
