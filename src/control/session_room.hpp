// How long records may become: what is reserved for what a session still owes.
#pragma once
#include "control/session_book.hpp"

namespace glove::control {

// A record of this session with every member that is still to come as long as it may be.
[[nodiscard]] auto longest_life(const session_record& of, const plan_facts& plan) -> session_record;
// How long the longest record of its life may be that a session of this plan writes, whatever
// happens to it: of a session that was just created, the size of `longest_life`; later no less.
[[nodiscard]] auto longest_record(const session_record& of, const plan_facts& plan) -> std::size_t;
// The same of the decision about one of its intents.
[[nodiscard]] auto longest_decision(const session_record& of, const plan_facts& plan)
    -> std::size_t;

} // namespace glove::control
