// What the service tells its operator: one line of JSON for each event, on standard error.
//
// Guarantees: no line holds a secret, a payload or a key, because nobody hands one over; a line is
// written whole or not at all; neither a reader that does not read nor a disk that hangs holds a
// request up: a thread of its own writes what waits in a bounded queue, lines that found no room
// are counted, and the count is told as soon as there is room.
//
// Safe for use by several threads.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/control/answer.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace glove::control {

struct log_event {
    std::string_view name;         // "request.refused"
    std::string_view method = {};  // of a request, when it is known
    std::string_view request = {}; // its id
    std::string_view code = {};    // what the client was told
    const error* why = nullptr;
    std::string_view text = {}; // for people
};
// At most 4096 bytes; what is too long for that leaves its details out.
[[nodiscard]] auto line_of(const log_event& event, std::uint64_t wall_ms) -> std::string;

class service_log {
public:
    virtual ~service_log() = default;
    virtual void write(const log_event& event) = 0;
};

// Where lines end up.
class log_sink {
public:
    virtual ~log_sink() = default;
    // Whether the whole line went out. It may take as long as it likes; one thread calls it, but
    // for processes that were forked off.
    [[nodiscard]] virtual auto put(std::string_view line) -> bool = 0;
};

struct log_bounds {
    std::size_t lines = 1024;                    // that wait
    std::chrono::milliseconds at_the_end{1'000}; // for them, and no longer
};

// A process that was forked off writes its lines itself: it has the queue, but not its thread.
class queued_log : public service_log {
public:
    explicit queued_log(std::unique_ptr<log_sink> to, log_bounds most = {});
    queued_log(const queued_log&) = delete;
    auto operator=(const queued_log&) -> queued_log& = delete;
    // Flushes. A sink that does not come back is left behind with its thread, until the process
    // ends.
    ~queued_log() override;
    void write(const log_event& event) override;
    // False: some lines still wait.
    auto flush() -> bool;

private:
    struct state;
    std::shared_ptr<state> state_;
};

class standard_error_log final : public queued_log {
public:
    standard_error_log();
};

} // namespace glove::control
