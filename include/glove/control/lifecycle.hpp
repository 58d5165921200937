// The steps of a session's life as data: the live registry, the replay of its journal and the
// reference page all read these tables.
//
// Guarantees, at compile time: an event leads from a state to one other; every state can be
// reached; from every state the end can be reached; nothing leads out of an end.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <glove/control/session_record.hpp>
#include <optional>
#include <string_view>

namespace glove::control {

enum class life_event : std::uint8_t {
    create,
    reserve_start,
    mark_starting,
    mark_running,
    mark_stopping,
    mark_exited,
    mark_failed,
};

struct transition {
    std::optional<session_state> from; // nothing: there is no session yet
    life_event on{};
    session_state to{};
};

inline constexpr std::array transitions{
    transition{std::nullopt, life_event::create, session_state::created},
    transition{session_state::created, life_event::reserve_start, session_state::preparing},
    transition{session_state::preparing, life_event::mark_starting, session_state::starting},
    transition{session_state::preparing, life_event::mark_failed, session_state::failed},
    transition{session_state::starting, life_event::mark_running, session_state::running},
    transition{session_state::starting, life_event::mark_failed, session_state::failed},
    transition{session_state::running, life_event::mark_stopping, session_state::stopping},
    transition{session_state::running, life_event::mark_exited, session_state::exited},
    transition{session_state::running, life_event::mark_failed, session_state::failed},
    transition{session_state::stopping, life_event::mark_exited, session_state::exited},
    transition{session_state::stopping, life_event::mark_failed, session_state::failed},
};

[[nodiscard]] constexpr auto next_state(std::optional<session_state> from, life_event on) noexcept
    -> std::optional<session_state> {
    for (const auto& row : transitions)
        if (row.from == from && row.on == on) return row.to;
    return std::nullopt;
}

// How many records are still owed at most until the session is over.
[[nodiscard]] constexpr auto records_left(session_state from) noexcept -> std::size_t {
    std::size_t most = 0;
    for (const auto& row : transitions)
        if (row.from == from) most = std::max(most, 1 + records_left(row.to));
    return most;
}

// What kind of a session writes the record: its operation has another name then.
enum class session_kind : std::uint8_t { plain, managed, refinement };

struct operation {
    std::string_view name; // on record
    life_event event{};
    session_kind kind{};
};
inline constexpr std::array operations{
    operation{"create", life_event::create, session_kind::plain},
    operation{"reserve_start", life_event::reserve_start, session_kind::plain},
    operation{"mark_starting", life_event::mark_starting, session_kind::plain},
    operation{"mark_managed_starting", life_event::mark_starting, session_kind::managed},
    operation{"mark_running", life_event::mark_running, session_kind::plain},
    operation{"mark_managed_running", life_event::mark_running, session_kind::managed},
    operation{"mark_stopping", life_event::mark_stopping, session_kind::plain},
    operation{"mark_managed_stopping", life_event::mark_stopping, session_kind::managed},
    operation{"mark_exited", life_event::mark_exited, session_kind::plain},
    operation{"mark_managed_exited", life_event::mark_exited, session_kind::managed},
    operation{"mark_refinement_exited", life_event::mark_exited, session_kind::refinement},
    operation{"mark_failed", life_event::mark_failed, session_kind::plain},
    operation{"mark_managed_failed", life_event::mark_failed, session_kind::managed},
};
inline constexpr std::string_view enqueue_operation = "enqueue_observation_intent_v1";
inline constexpr std::string_view disposition_operation = "set_observation_intent_disposition_v1";

[[nodiscard]] constexpr auto operation_named(std::string_view name) noexcept
    -> std::optional<operation> {
    for (const auto& row : operations)
        if (row.name == name) return row;
    return std::nullopt;
}
// A kind that has no name of its own for an event uses the plain one.
[[nodiscard]] constexpr auto operation_name(life_event on, session_kind kind) noexcept
    -> std::string_view {
    std::string_view out;
    for (const auto& row : operations)
        if (row.event == on && (row.kind == kind || row.kind == session_kind::plain))
            if (out.empty() || row.kind == kind) out = row.name;
    return out;
}

// Why a session failed, and at which point of its life that may be.
struct failure {
    std::string_view code;
    bool preparing = false;
    bool starting = false;
    bool running = false; // or stopping
};
inline constexpr std::array failures{
    failure{"authorization_expired", true, true, false},
    failure{"launch_failed", true, true, false},
    failure{"supervisor_error", false, true, true},
    failure{"recovered_without_process", false, true, true},
    failure{"recovered_terminated", false, true, true},
};
[[nodiscard]] constexpr auto may_fail(session_state from, std::string_view code) noexcept -> bool {
    using enum session_state;
    for (const auto& row : failures)
        if (row.code == code)
            return (from == preparing && row.preparing) || (from == starting && row.starting) ||
                   ((from == running || from == stopping) && row.running);
    return false;
}

namespace detail {

consteval auto deterministic() -> bool {
    for (std::size_t i = 0; i < transitions.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (transitions[i].from == transitions[j].from &&
                transitions[i].on == transitions[j].on)
                return false;
    return true;
}
consteval auto ends_are_ends() -> bool {
    for (const auto& row : transitions)
        if (row.from && is_terminal(*row.from)) return false;
    return true;
}
consteval auto all_reached() -> bool {
    for (auto s = session_state::created; s <= session_state::failed;
         s = static_cast<session_state>(static_cast<int>(s) + 1)) {
        bool reached = false;
        bool left = is_terminal(s);
        for (const auto& row : transitions) {
            reached = reached || row.to == s;
            left = left || row.from == s;
        }
        if (!reached || !left) return false;
    }
    return true;
}
static_assert(deterministic() && ends_are_ends() && all_reached());
static_assert(records_left(session_state::created) == 5 &&
              records_left(session_state::exited) == 0);

} // namespace detail
} // namespace glove::control
