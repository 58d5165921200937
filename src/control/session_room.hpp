// How long records may become: what is reserved for what a session still owes.
#pragma once
#include "control/session_book.hpp"

namespace glove::control {

// The longest record of its life that a session of this plan may write, whatever happens to it.
[[nodiscard]] auto longest_record(const session_record& of, const plan_facts& plan) -> std::size_t;
// The same of the decision about one of its intents.
[[nodiscard]] auto longest_decision(const session_record& of, const plan_facts& plan)
    -> std::size_t;

} // namespace glove::control
