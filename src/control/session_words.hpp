// Enumerators and words of session records as they stand there.
#pragma once
#include "control/cause_words.hpp"
#include <array>
#include <glove/control/lifecycle.hpp>
#include <glove/control/session_record.hpp>
#include <glove/wire/fields.hpp>
#include <iterator>

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
inline constexpr auto recorded_cause_words = [] {
    std::array<wire::word<std::string_view>, 1 + std::size(cause_words)> out{};
    for (std::size_t i = 0; i < std::size(cause_words); ++i)
        out[i + 1] = {cause_words[i].name, cause_words[i].name};
    return out;
}();
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
