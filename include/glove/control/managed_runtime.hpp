// What runs the sessions of plans, as the methods ask for it. Without one they are not found, and
// nothing is advertised.
//
// Guarantees of whoever implements it: safe for use by several threads; `lifecycle_operational` is
// true only while sessions can really be started, and everything advertised is asked of it, never
// taken from a setting.
#pragma once
#include <cstdint>
#include <glove/control/answer.hpp>
#include <glove/control/receipt.hpp>
#include <glove/control/session_registry.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::control {

enum class session_signal : std::uint8_t { interrupt, terminate, hangup };
[[nodiscard]] auto to_string(session_signal of) noexcept -> std::string_view;

// A part of what a session's terminal showed; cursors count bytes since it was started.
struct transcript_page {
    std::uint64_t oldest_cursor = 0;
    std::uint64_t next_cursor = 0;
    bool truncated = false; // what was asked for is gone, and the page begins at the oldest byte
    bool eof = false;       // it ends a finished terminal
    std::string bytes;
};

class managed_runtime {
public:
    virtual ~managed_runtime() = default;
    [[nodiscard]] virtual auto lifecycle_operational() const noexcept -> bool = 0;
    // Whether there is a session to look at or to stop, also when no other one can be started.
    [[nodiscard]] virtual auto has_sessions() const noexcept -> bool { return false; }
    [[nodiscard]] virtual auto backend() const noexcept -> supervisor::backend_kind = 0;
    [[nodiscard]] virtual auto mechanisms() const -> enforcement_mechanisms = 0;
    // Which runtimes of templates it can start.
    [[nodiscard]] virtual auto runtime_ids() const -> std::vector<std::string> = 0;
    // With a store of libraries.
    [[nodiscard]] virtual auto evaluates_refinements() const noexcept -> bool = 0;
    // The sealed capability: a channel for guests over inherited descriptors, checked just now.
    [[nodiscard]] virtual auto admits_observations() const -> bool = 0;

    // The same key and authorization again give the state as it is now, and start nothing twice.
    [[nodiscard]] virtual auto start(std::string_view key, const start_authorization& what)
        -> answer<session_view> = 0;
    [[nodiscard]] virtual auto attach(std::string_view session_id, std::uint64_t cursor,
                                      std::size_t most_bytes) -> answer<transcript_page> = 0;
    [[nodiscard]] virtual auto write_input(std::string_view session_id, std::string_view bytes)
        -> answer<> = 0;
    [[nodiscard]] virtual auto resize(std::string_view session_id, std::uint16_t rows,
                                      std::uint16_t columns) -> answer<> = 0;
    [[nodiscard]] virtual auto signal(std::string_view session_id, session_signal which)
        -> answer<> = 0;
    // That the cursor can be read from.
    [[nodiscard]] virtual auto detach(std::string_view session_id, std::uint64_t cursor)
        -> answer<> = 0;
    // The intent is put on record first, under this very key; so a replay is answered from there,
    // also when this process never had the session.
    [[nodiscard]] virtual auto stop(std::string_view key, std::string_view session_id)
        -> answer<session_view> = 0;
    [[nodiscard]] virtual auto cleanup(std::string_view session_id) -> answer<> = 0;
};

// What sessions left in retained copies. This build keeps none.
class retained_store {
public:
    virtual ~retained_store() = default;
    // A page as JSON, in the form of the wire.
    [[nodiscard]] virtual auto changes(std::string_view session_id, std::string_view exposure_id,
                                       std::uint64_t offset, std::size_t limit)
        -> answer<std::string> = 0;
};

} // namespace glove::control
