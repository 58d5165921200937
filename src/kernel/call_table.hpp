// What was sent to a server and waits for its answer.
//
// Guarantees: at most `capacity` at once. Ids are ascending and never used twice, and one finds its
// call without a search; the id of a call that is over finds nothing. Deadlines of equal length are
// in the order of their start, so that starting and ending a call costs the same however many
// wait.
#pragma once
#include "kernel/catalog.hpp"
#include <chrono>
#include <cstdint>
#include <glove/kernel/gateway.hpp>
#include <memory>
#include <string>
#include <vector>

namespace glove::kernel {

enum class call_kind : std::uint8_t {
    initialize,
    listing, // tools/list and the like, for the catalog
    tool,
    relayed, // another request of an agent
    own,     // of Glove; nobody waits for the answer
};

// What Glove asks by itself.
enum class own_kind : std::uint8_t { level, subscription };
inline constexpr std::size_t own_kinds = 2;

struct call {
    std::uint64_t id = 0; // 0: free
    call_kind kind{};
    listing_kind list{}; // of `listing`
    own_kind own{};      // of `own`
    std::uint32_t upstream = 0;
    session_id session = no_session;
    std::uint64_t number = 0;         // of the record
    std::string agent_id;             // the raw token
    std::string token;                // the agent's raw progress token; empty: none
    std::shared_ptr<const tool> what; // of `tool`
    std::string subject;              // of `relayed`, for the record
    std::string uri;                  // of `relayed` that subscribe
    bool subscribes = false;
    std::chrono::nanoseconds began{}, deadline{};

private:
    friend class call_table;
    static constexpr std::uint16_t none = 0xffff;
    std::uint16_t line = none, previous = none, next = none;
};

class call_table {
public:
    static constexpr std::size_t capacity = 2048;
    call_table();
    // Null when no more than `reserved` slots are free.
    [[nodiscard]] auto open(std::chrono::nanoseconds now, std::chrono::nanoseconds patience,
                            std::size_t reserved = 0) -> call*;
    [[nodiscard]] auto has_room(std::size_t reserved) const noexcept -> bool {
        return free_.size() > reserved;
    }
    [[nodiscard]] auto find(std::uint64_t id) noexcept -> call* {
        auto& slot = slots_[id % capacity];
        return id != 0 && slot.id == id ? &slot : nullptr;
    }
    void close(call& over) noexcept;
    [[nodiscard]] auto size() const noexcept -> std::size_t { return capacity - free_.size(); }
    // Of the earliest deadline; null when nothing waits.
    [[nodiscard]] auto first_due() noexcept -> call*;
    [[nodiscard]] auto slots() noexcept -> std::vector<call>& { return slots_; }

private:
    // Calls with the same patience, which end in the order in which they began.
    struct line {
        std::chrono::nanoseconds patience;
        std::uint16_t first = call::none, last = call::none;
    };
    [[nodiscard]] auto line_for(std::chrono::nanoseconds patience) -> std::uint16_t;

    std::vector<call> slots_;
    std::vector<std::uint16_t> free_;
    std::vector<line> lines_;
    std::uint64_t serial_ = 0;
};

} // namespace glove::kernel
