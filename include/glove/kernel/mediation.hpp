// What the operator wants of a mediation: the servers, the rules, and how the agent is served.
//
// It goes from `glove` to `glove-mediator` as one JSON text over a descriptor. Guarantees: both
// read it with the same field table, and refuse what they do not know.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/mcp/upstream_process.hpp>
#include <glove/policy/engine.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glove::kernel {

// What glove-mediator is to do.
enum class task : std::uint8_t {
    serve,  // one agent on its stdin and stdout: `glove mcp serve`, --agent-transport stdio
    bridge, // agents connect to a listening socket that comes over the control channel
    tools,  // prints what an agent would see, and why the rest is hidden: `glove mcp tools`
    check,  // prints the rules, and decides one call without sending it: `glove mcp check`
    pin,    // shows or accepts changed pins: `glove mcp pin`
};

enum class tool_names : std::uint8_t { qualified, bare }; // up__tool, or tool of one upstream

struct mediation {
    kernel::task task = task::serve;
    std::vector<mcp::upstream_wish> upstreams;
    policy::wish rules;
    std::vector<std::string> relay; // words of --relay
    kernel::tool_names names = tool_names::qualified;
    std::vector<std::pair<std::string, std::string>> renames; // agent's name, "up.tool"
    std::string directory;                                    // where relative paths begin
    std::string state;                                        // Glove's state directory
    std::string audit_log;                                    // absolute
    bool audit_sync = false;
    std::string run;                          // id of the run, in the audit log
    std::uint64_t start_timeout_ms = 60'000;  // of a server
    std::uint64_t call_timeout_ms = 300'000;  // of a call
    std::uint64_t result_bytes = 10ULL << 20; // towards the agent
    bool instructions = true;                 // pass the servers' instructions on
    bool pinning = true;
    bool contain_upstreams = false;
    bool json = false;                                      // of tools, check and pin
    std::optional<std::string> check_tool, check_arguments; // of check
    std::vector<std::string> accept;                        // of pin: "up", "up.tool"; "*" is all
    std::vector<std::string> forget = {};                   // the same, and no server is started
    auto operator==(const mediation&) const -> bool = default;
};

[[nodiscard]] auto encode(const mediation& what) -> result<std::string>;
[[nodiscard]] auto decode_mediation(std::string_view text) -> result<mediation>;

// Descriptors of glove-mediator beside its streams.
inline constexpr int mediation_descriptor = 3; // the text, to the end of the stream
inline constexpr int control_descriptor = 4;   // of `bridge`: SOCK_SEQPACKET

// On the control channel. The mediator says `ready` when the servers that are required have been
// initialized, or `failed` with words, and later `ended` with words when it gives the run up, or
// `left` when the agent has closed the streams that it was served on. It is sent one byte with the
// listening socket; the end of the channel ends it.
enum class control_word : char {
    ready = 'r',
    failed = 'f',
    ended = 'e',
    left = 'a',
    listener = 'l',
};

} // namespace glove::kernel
