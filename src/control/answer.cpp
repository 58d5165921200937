// A refusal travels as its code and its fixed message; `why` goes to the service's own log only.
#include <array>
#include <glove/control/answer.hpp>

namespace glove::control {
namespace {

struct row {
    error_code code;
    std::string_view name;
    std::string_view message;
};

using enum error_code;
constexpr std::array table{
    row{invalid_request, "invalid_request", "request is not valid"},
    row{unauthorized, "unauthorized", "bootstrap secret is not the one of this start"},
    row{unsupported_schema, "unsupported_schema", "schema version is not supported"},
    row{deadline_exceeded, "deadline_exceeded", "deadline has passed"},
    row{method_not_found, "method_not_found", "method was not found"},
    row{response_too_large, "response_too_large", "response does not fit into a frame"},
    row{invalid_plan, "invalid_plan", "plan is not allowed by the session policy"},
    row{invalid_authorization, "invalid_authorization", "authorization does not fit the session"},
    row{invalid_session_state, "invalid_session_state", "session is not in a state for this"},
    row{session_conflict, "session_conflict", "session exists already"},
    row{session_not_found, "session_not_found", "session was not found"},
    row{session_capacity, "session_capacity", "no room for another session"},
    row{session_storage_failed, "session_storage_failed", "session could not be put on record"},
    row{session_control_failed, "session_control_failed", "session could not be controlled"},
    row{idempotency_conflict, "idempotency_conflict", "key was used for another request"},
    row{idempotency_capacity, "idempotency_capacity", "no room for another key"},
    row{session_start_failed, "session_start_failed", "session could not be started"},
    row{session_stop_failed, "session_stop_failed", "session could not be stopped"},
    row{session_attach_failed, "session_attach_failed", "output could not be read"},
    row{session_input_failed, "session_input_failed", "input could not be written"},
    row{session_resize_failed, "session_resize_failed", "terminal could not be resized"},
    row{session_signal_failed, "session_signal_failed", "signal could not be sent"},
    row{session_detach_failed, "session_detach_failed", "client could not be detached"},
    row{session_cleanup_failed, "session_cleanup_failed", "session could not be cleaned up"},
    row{audit_reconciliation_required, "audit_reconciliation_required",
        "receipts have to be reconciled first"},
    row{audit_reconciliation_failed, "audit_reconciliation_failed",
        "anchor is no place of this chain of receipts"},
    row{session_reconciliation_failed, "session_reconciliation_failed",
        "sessions could not be recovered"},
    row{path_exposure_rejected, "path_exposure_rejected", "exposure is not allowed"},
    row{path_exposure_unavailable, "path_exposure_unavailable", "exposures cannot be used"},
    row{retained_changes_unavailable, "retained_changes_unavailable",
        "retained changes cannot be read"},
    row{invalid_observation_intent_state, "invalid_observation_intent_state",
        "intent is not in a state for this"},
    row{observation_intent_not_found, "observation_intent_not_found", "intent was not found"},
    row{observation_intent_capacity, "observation_intent_capacity", "no room for another intent"},
    row{observation_intent_storage_failed, "observation_intent_storage_failed",
        "intent could not be put on record"},
    row{observation_intent_control_failed, "observation_intent_control_failed",
        "intent could not be handled"},
};

// The table is in the order of the enumeration, so a code is its own index.
consteval auto in_order() -> bool {
    for (std::size_t i = 0; i < table.size(); ++i)
        if (static_cast<std::size_t>(table[i].code) != i) return false;
    return true;
}
static_assert(in_order() && table.back().code == observation_intent_control_failed);

[[nodiscard]] auto row_of(error_code code) noexcept -> const row& {
    return table[static_cast<std::size_t>(code)];
}

} // namespace

auto to_string(error_code code) noexcept -> std::string_view { return row_of(code).name; }
auto message_of(error_code code) noexcept -> std::string_view { return row_of(code).message; }

auto error_code_named(std::string_view name) noexcept -> std::optional<error_code> {
    for (const auto& r : table)
        if (r.name == name) return r.code;
    return std::nullopt;
}

} // namespace glove::control
