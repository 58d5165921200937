// The parts of a launch, for whoever carries them out in two processes: the one that makes init and
// reaps it, and the one that speaks with it.
#pragma once
#include <glove/container/launch.hpp>
#include <memory>

namespace glove::container {

struct started_init {
    sys::child_process init;
    sys::unique_fd control;
    std::unique_ptr<prepared_launch> keep;

    started_init(sys::child_process made, sys::unique_fd channel,
                 std::unique_ptr<prepared_launch> memory);
    started_init(started_init&&) noexcept;
    ~started_init();
};

// Init as a child of this process, with its maps written; it builds.
[[nodiscard]] auto start_init(const launch_request& request) -> result<started_init>;

// An init with a private terminal that another process has made and reaps, of a plan without
// listeners, which outlives it.
[[nodiscard]] auto running_elsewhere(const plan& of, sys::child_process init,
                                     sys::unique_fd control) -> running;

// The name of a step of `start_init`, or of init's, as what lasts; empty for another word.
[[nodiscard]] auto known_step(std::string_view word) -> std::string_view;

} // namespace glove::container
