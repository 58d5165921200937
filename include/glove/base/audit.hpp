// What is put on record, and the seam through which every component does it.
//
// An intent is recorded with status `pending` before it is carried out; a component whose append
// fails must not carry it out.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <optional>
#include <string>

namespace glove::audit {

enum class action : std::uint8_t {
    list_tools,
    call_tool,
    initialize,
    agent_launch,
    agent_exit,
    egress,
    ssh_sign,
};
enum class status : std::uint8_t {
    pending, // the intent; the outcome follows under the same call id
    ok,
    tool_not_found,
    invalid_arguments,
    execution_error,
    transport_error,
};

struct event {
    audit::action action{};
    std::optional<std::string> tool;
    std::optional<std::string> arguments; // JSON text
    audit::status status{};
    std::optional<std::string> error;
    std::int64_t timestamp_ns = 0; // wall clock
    std::int64_t latency_ns = 0;
    std::string run;
    std::string call; // joins an intent and its outcome
};

class sink {
public:
    virtual ~sink() = default;
    [[nodiscard]] virtual auto append(const event& what) -> result<> = 0;
};

// A sink that puts many events on record at once. What was staged is on record when `commit` has
// succeeded, and not before: until then nothing of it may be carried out.
class batching_sink : public sink {
public:
    [[nodiscard]] virtual auto stage(const event& what) -> result<> = 0;
    // Nothing staged: does nothing. After a failure every further call fails.
    [[nodiscard]] virtual auto commit() -> result<> = 0;
};

} // namespace glove::audit
