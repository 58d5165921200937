// Enumerators and words of session records as they stand there.
#pragma once
#include <glove/control/lifecycle.hpp>
#include <glove/control/session_record.hpp>
#include <glove/wire/fields.hpp>

namespace glove::control {

inline constexpr wire::word<session_state> state_words[] = {
    {"created", session_state::created},   {"preparing", session_state::preparing},
    {"starting", session_state::starting}, {"running", session_state::running},
    {"stopping", session_state::stopping}, {"exited", session_state::exited},
    {"failed", session_state::failed},
};
inline constexpr wire::word<intent_disposition> disposition_words[] = {
    {"pending", intent_disposition::pending},
    {"accepted", intent_disposition::accepted},
    {"rejected", intent_disposition::rejected},
    {"expired", intent_disposition::expired},
};
// Empty while the session has not ended that way.
inline constexpr wire::word<std::string_view> recorded_cause_words[] = {
    {"", ""},
    {"exited", "exited"},
    {"signaled", "signaled"},
    {"cpu_time_limit", "cpu_time_limit"},
    {"memory_limit", "memory_limit"},
    {"pid_limit", "pid_limit"},
    {"wall_time_limit", "wall_time_limit"},
    {"disk_limit", "disk_limit"},
    {"terminal_output_limit", "terminal_output_limit"},
    {"supervisor_error", "supervisor_error"},
};
inline constexpr auto recorded_failure_words = [] {
    std::array<wire::word<std::string_view>, 1 + failures.size()> out{};
    for (std::size_t i = 0; i < failures.size(); ++i)
        out[i + 1] = {failures[i].code, failures[i].code};
    return out;
}();
inline constexpr auto operation_words = [] {
    std::array<wire::word<std::string_view>, 2 + operations.size()> out{};
    for (std::size_t i = 0; i < operations.size(); ++i)
        out[i] = {operations[i].name, operations[i].name};
    out[operations.size()] = {enqueue_operation, enqueue_operation};
    out[operations.size() + 1] = {disposition_operation, disposition_operation};
    return out;
}();

} // namespace glove::control
