// What the service tells its operator: one line of JSON for each event, on standard error.
//
// Guarantees: no line holds a secret, a payload or a key, because nobody hands one over; a line is
// written whole or not at all; a reader that does not read never holds a request up: lines that
// found no room are counted, and the count is told as soon as there is room.
//
// Safe for use by several threads.
#pragma once
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

// To standard error, never waiting.
class standard_error_log final : public service_log {
public:
    standard_error_log();
    ~standard_error_log() override;
    void write(const log_event& event) override;

private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace glove::control
