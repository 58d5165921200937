// What a session record must hold, and must not, in each state; and what follows from its members
// alone. Nothing here knows another record.
#pragma once
#include <chrono>
#include <glove/control/lifecycle.hpp>
#include <glove/control/session_record.hpp>

namespace glove::control {

[[nodiscard]] auto session_kind_of(const session_record& of) noexcept -> session_kind;

// Steps: record.part, record.operation, record.time, record.plan, record.process,
// record.filesystem, record.failure, record.receipt, record.intent.
[[nodiscard]] auto check_session_record(const session_record& what) -> result<>;

// How long what authorized its start is good for still; an hour when it is longer.
[[nodiscard]] auto authorization_left(const session_record& of, std::uint64_t now_ms) noexcept
    -> std::chrono::milliseconds;

} // namespace glove::control
