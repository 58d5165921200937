// What an operation of the control plane answers: a value, or a refusal with the code that travels.
//
// The code and its fixed message are all that a client sees. `why` is for the service's own log: it
// may name paths, and never holds a secret.
#pragma once
#include <cstdint>
#include <expected>
#include <glove/base/error.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace glove::control {

enum class error_code : std::uint8_t {
    // envelope
    invalid_request,
    unauthorized,
    unsupported_schema,
    deadline_exceeded,
    method_not_found,
    response_too_large,
    // plan and session
    invalid_plan,
    invalid_authorization,
    invalid_session_state,
    session_conflict,
    session_not_found,
    session_capacity,
    session_storage_failed,
    session_control_failed,
    // idempotency
    idempotency_conflict,
    idempotency_capacity,
    // lifecycle
    session_start_failed,
    session_stop_failed,
    session_attach_failed,
    session_input_failed,
    session_resize_failed,
    session_signal_failed,
    session_detach_failed,
    session_cleanup_failed,
    // audit
    audit_reconciliation_required,
    audit_reconciliation_failed,
    session_reconciliation_failed,
    // exposures
    path_exposure_rejected,
    path_exposure_unavailable,
    retained_changes_unavailable,
    // intents
    invalid_observation_intent_state,
    observation_intent_not_found,
    observation_intent_capacity,
    observation_intent_storage_failed,
    observation_intent_control_failed,
};

// As it stands on the wire.
[[nodiscard]] auto to_string(error_code code) noexcept -> std::string_view;
// The message that travels with it: fixed, free of paths, identifiers and secrets.
[[nodiscard]] auto message_of(error_code code) noexcept -> std::string_view;
[[nodiscard]] auto error_code_named(std::string_view name) noexcept -> std::optional<error_code>;

struct refusal {
    error_code code{};
    error why;
};

template<class T = void> using answer = std::expected<T, refusal>;

[[nodiscard]] inline auto refuse(error_code code, error why) {
    return std::unexpected(refusal{code, std::move(why)});
}
[[nodiscard]] inline auto refuse(error_code code, errc kind, step_name step,
                                 std::string detail = {}) {
    return refuse(code, error{kind, step.text, 0, std::move(detail), {}});
}
// An answer of a layer below, with the code that its failure means here.
template<class T> [[nodiscard]] auto or_refuse(result<T> from, error_code code) -> answer<T> {
    if (!from) return refuse(code, std::move(from).error());
    if constexpr (std::is_void_v<T>) return {};
    else return *std::move(from);
}

} // namespace glove::control
