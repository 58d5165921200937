// Whoever the mediation speaks with: its descriptors, what was read, and what waits to be written.
#pragma once
#include <cstdint>
#include <glove/kernel/gateway.hpp>
#include <glove/mcp/framing.hpp>
#include <glove/mcp/upstream_process.hpp>
#include <glove/sys/fd.hpp>
#include <memory>
#include <optional>

namespace glove::kernel {

// One of the standard streams as a descriptor that does not wait, without changing the flags of
// an open file that others share, where that can be done.
[[nodiscard]] auto own_stream(int number) -> result<sys::unique_fd>;

struct agent_peer {
    bool open = false;
    sys::unique_fd input, output; // a socket has only `input`
    mcp::line_reader reader;
    mcp::line_queue queue;
    bool always_ready = false; // a file, which cannot be waited for
    bool ended = false;        // nothing more comes
    bool closing = false;      // it is closed when its queue is empty
    bool queued = false;       // in the list of those to flush
    bool blocked = false;      // its queue waits for room
    bool behind = false;       // too much waits for it
    bool backlog = false;      // lines of it wait until there is room for answers
    bool wide_input = false, wide_output = false; // a pipe that was made larger
    bool reading = true, watched = true;          // its input
    std::uint32_t generation = 0;
    std::chrono::nanoseconds moved{}; // when something of the queue went out
    [[nodiscard]] auto out() const noexcept -> sys::fd_ref { return output ? output : input; }
    [[nodiscard]] auto is_socket() const noexcept -> bool { return !output; }
};

struct server_peer {
    std::optional<mcp::upstream_process> process;
    mcp::line_reader reader;
    mcp::line_queue queue;
    bool queued = false, blocked = false, reading = true;
    bool silent = false; // its stdout has ended
    bool wide_input = false, wide_output = false;
    std::chrono::nanoseconds moved{}; // when something of the queue went out
    std::uint32_t generation = 0;
};

// Anew, so that no event of before is taken for one of now.
template<class Peer> void renew(Peer& which) {
    const auto generation = which.generation + 1;
    std::destroy_at(&which);
    std::construct_at(&which);
    which.generation = generation;
}

} // namespace glove::kernel
