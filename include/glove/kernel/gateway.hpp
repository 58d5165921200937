// The mediation between agents and tool servers, apart from every descriptor and process: lines
// come in, lines go out.
//
// Guarantees: nothing an agent sends reaches a server but what the policy allowed, as Glove wrote
// it anew; every request is answered, whatever happens to the server; an id, a progress token or a
// cancellation of one agent never reaches another. What is handed to the outlet may leave only
// after `commit` has put the records of the turn where they belong: when it fails, nothing of the
// turn may leave and the run ends.
//
// A turn is `begin_turn`, any number of events, `advance`, `commit`.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/audit.hpp>
#include <glove/base/error.hpp>
#include <glove/kernel/mediation.hpp>
#include <glove/mcp/framing.hpp>
#include <glove/mcp/protocol.hpp>
#include <glove/policy/engine.hpp>
#include <glove/policy/pins.hpp>
#include <glove/sys/clock.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::kernel {

using session_id = std::uint32_t;
inline constexpr session_id no_session = ~session_id{0};
inline constexpr std::size_t most_sessions = 64;
inline constexpr std::size_t most_calls_of_a_session = 256;
inline constexpr std::size_t most_calls = 1024;
// Bytes that may wait for one peer. Answers are queued beyond it, all else is not.
inline constexpr std::size_t most_waiting_bytes = 32UL << 20;

// Where everything goes. All of it is held back until the turn is committed.
class outlet {
public:
    virtual ~outlet() = default;
    virtual void to_agent(session_id to, std::string message) = 0;
    // The same in three parts, of which the middle need not be copied.
    virtual void to_agent(session_id to, std::string head, mcp::shared_text body, std::string tail);
    virtual void to_upstream(std::size_t to, std::string message) = 0;
    // A call that may be taken back while nothing of it has left; `call` ascends. True when it was.
    virtual void to_upstream(std::size_t to, std::string message, std::uint64_t call);
    [[nodiscard]] virtual auto take_back(std::size_t from, std::uint64_t call) -> bool;
    virtual void close_agent(session_id which) = 0;     // when what is queued has left
    virtual void start_upstream(std::size_t which) = 0; // tells `upstream_started` or `_ended`
    virtual void stop_upstream(std::size_t which) = 0;  // tells `upstream_ended`
    [[nodiscard]] virtual auto waiting_for_agent(session_id which) const -> std::size_t = 0;
    [[nodiscard]] virtual auto waiting_for_upstream(std::size_t which) const -> std::size_t = 0;
    virtual void note(std::string words) = 0; // for the operator
};

struct gateway_options {
    std::vector<mcp::upstream_wish> upstreams;
    mcp::feature_set relay; // base and tools are always in it
    tool_names names = tool_names::qualified;
    std::vector<std::pair<std::string, std::string>> renames;
    std::chrono::milliseconds start_timeout{60'000}, call_timeout{300'000};
    std::uint64_t result_bytes = 10ULL << 20;
    bool instructions = true;
    // How long agents wait for servers that are not required.
    std::chrono::nanoseconds optional_patience = std::chrono::seconds{10};
    bool pins_first_use = true; // false: looks at pins and adds none
    std::string run, version;
    std::uint64_t call_prefix = 0; // random
};

struct gateway_parts {
    outlet& out;
    audit::batching_sink& log;
    const policy::engine& rules;
    policy::meter& meter;
    policy::pin_store* pins; // null: no pinning
    const sys::clock& time;
};

// What the operator is shown of a server.
struct seen_tool {
    std::string upstream, tool; // the tool's own name; empty for the server's instructions
    std::string visible;        // the agent's name for it
    std::string definition;     // canonical JSON, as the server sent it
    bool shown = false;
    std::string why; // it is hidden
    policy::pin_state pin = policy::pin_state::first_use;
    std::string server, digest; // of its pin
};
struct seen_upstream {
    std::string name;
    bool up = false;
    std::string problem; // when it is not
    std::string revision;
};

struct gateway_counts {
    std::uint64_t malformed_agent_lines = 0, malformed_upstream_lines = 0, stray_answers = 0,
                  dropped_notifications = 0, calls = 0, denied = 0;
};

// Whether names and renames can be as they are wanted.
[[nodiscard]] auto check_names(const gateway_options& options) -> result<>;

class gateway {
public:
    // After `check_names`.
    [[nodiscard]] static auto make(gateway_options options, const gateway_parts& parts)
        -> result<gateway>;
    gateway(gateway&&) noexcept;
    ~gateway();

    auto begin_turn() -> std::chrono::nanoseconds; // what the clock says
    void start();                                  // all servers
    // Whether each server that is required has been initialized and listed, and the others have
    // too or have had their time.
    [[nodiscard]] auto is_ready() const -> bool;
    // Why the run cannot go on: a record that could not be kept, or a required server that never
    // came up.
    [[nodiscard]] auto problem() const -> const std::optional<error>&;

    // Empty when there are too many.
    [[nodiscard]] auto open_session() -> std::optional<session_id>;
    void agent_line(session_id from, const mcp::line_reader::line& line);
    // What an agent sends after its initialize and before the answer waits here, and is taken by
    // `take_held_line` afterwards: false when there is nothing to take now. No line should come
    // while `takes_lines` is false; it would be refused.
    [[nodiscard]] auto takes_lines(session_id of) const -> bool;
    [[nodiscard]] auto has_held_lines(session_id of) const -> bool; // to be taken now
    [[nodiscard]] auto take_held_line(session_id of) -> bool;
    [[nodiscard]] auto held_bytes(session_id of) const -> std::size_t;
    void agent_gone(session_id which);
    // Requests of an agent without an answer yet.
    [[nodiscard]] auto open_requests(session_id of) const -> std::size_t;
    [[nodiscard]] auto has_calls(std::size_t upstream, session_id of) const -> bool;

    void upstream_started(std::size_t which);
    void upstream_line(std::size_t from, const mcp::line_reader::line& line);
    // `how` in words ("ended with status 3"), `tail` is the end of what it wrote to stderr.
    void upstream_ended(std::size_t which, std::string_view how, std::string_view tail);

    void advance(); // whatever is due
    [[nodiscard]] auto deadline() const -> std::optional<std::chrono::nanoseconds>;
    [[nodiscard]] auto has_records() const -> bool; // that are not committed
    [[nodiscard]] auto commit() -> result<>;
    // Answers what is open, and stops the servers. Nothing is taken afterwards.
    void end(std::string_view why);

    [[nodiscard]] auto tools() const -> std::vector<seen_tool>;
    [[nodiscard]] auto upstreams() const -> std::vector<seen_upstream>;
    // Tools that rules or renames name exactly, and that their servers do not have.
    [[nodiscard]] auto missing_tools() const -> std::vector<std::string>;
    [[nodiscard]] auto counts() const -> const gateway_counts&;

    struct state;

private:
    explicit gateway(std::unique_ptr<state> made);
    std::unique_ptr<state> state_;
};

} // namespace glove::kernel
