// The processes that start sessions: the launcher, and the keeper of each session.
#pragma once
#include <cstdint>
#include <sys/types.h>

namespace glove::container {

// What the service sends a keeper first, with the launch as a file; the launch's other descriptors
// follow in as many messages of `launch_piece` as it takes.
struct launch_opening {
    std::uint32_t descriptors = 0;
    bool has_entry = false; // the last of them is the control group's
};
struct launch_piece {
    std::uint32_t first = 0; // number of its first descriptor
};
// What a keeper answers, with init's pidfd and control channel, or a refusal behind the byte.
enum class keeper_answer : char { launched = 'L', refused = 'R' };

// The launcher's end of the channel, in the launcher; of its session's, in a keeper.
inline constexpr int launcher_channel = 3;

// Becomes the launcher of the process `service`. Never returns.
[[noreturn]] void run_launcher(int channel, ::pid_t service) noexcept;

} // namespace glove::container
