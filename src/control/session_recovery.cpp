// Sessions of the process before this one: each is ended by its receipt, or by a look at its
// process; one that cannot be told is left alone, and the others go on.
#include "control/session_rules.hpp"
#include "control/session_state.hpp"
#include <glove/wire/crypto.hpp>

namespace glove::control {

namespace {

[[nodiscard]] auto failure_key(const session_record& of) -> result<std::string> {
    GLOVE_TRY(const auto digest,
              wire::sha256(of.session_id + ':' + of.authorization_id + ':' +
                           of.launch_profile_digest + ':' + std::to_string(of.starting_at_ms)));
    return "recovery-fail-" + wire::to_hex(digest);
}

// Nothing: the process cannot be identified.
[[nodiscard]] auto what_became_of(const session_record& of, process_observer& processes)
    -> std::optional<std::string_view> {
    constexpr std::string_view nobody = "recovered_without_process";
    if (of.state == session_state::starting) return nobody;
    switch (processes.observe(of)) {
    case observed_process::gone: return nobody;
    case observed_process::ended: return "recovered_terminated";
    case observed_process::unknown: break;
    }
    return std::nullopt;
}

// Somebody else has the key under which a session would be ended.
[[nodiscard]] auto taken(const refusal& why) -> bool {
    return why.code == error_code::idempotency_conflict;
}

// Only a disk that fails ends a recovery.
[[nodiscard]] auto fatal(const refusal& why) -> bool {
    return why.code == error_code::session_storage_failed ||
           why.code == error_code::session_capacity;
}

} // namespace

// Ended on record, or not; then it is nobody's fault but the record's, and it stays as it is.
auto session_registry::state::settle(step_request what) -> result<settled> {
    what.recovers = true;
    const std::scoped_lock lock{writing};
    auto done = step(what);
    if (!done && fatal(done.error())) return std::unexpected(std::move(done).error().why);
    if (!done) return taken(done.error()) ? settled::key_is_taken : settled::no;
    if (is_terminal(done->state)) unsettled.erase(std::string{what.session_id});
    return settled::yes;
}

auto session_registry::state::recover_one(const session_record& of, const receipt_finder& receipts,
                                          process_observer& processes) -> result<bool> {
    if (of.state != session_state::starting && receipts) {
        GLOVE_TRY(const auto receipt, receipts(of));
        if (receipt) {
            const auto key = "recovery-exit-" + std::to_string(receipt->sequence);
            GLOVE_TRY(const auto ended, settle(exit_request(key, of.session_id, *receipt)));
            if (ended == settled::yes) return true;
            // Its receipt says how it ended: it is never called failed because of a key.
            if (ended == settled::key_is_taken) return false;
        }
    }
    const auto code = what_became_of(of, processes); // without a lock: it may take its time
    if (!code) return false;
    GLOVE_TRY(const auto key, failure_key(of));
    GLOVE_TRY(const auto ended, settle(failure_request(key, of.session_id, *code, now_ms())));
    return ended == settled::yes;
}

auto session_registry::recover(const receipt_finder& receipts, process_observer& processes)
    -> result<std::vector<std::string>> {
    const std::scoped_lock once{state_->recovering};
    std::vector<session_record> left;
    {
        const std::scoped_lock lock{state_->writing};
        for (const auto& id : state_->unsettled) left.push_back(state_->book.session(id)->now);
    }
    std::vector<std::string> out;
    for (const auto& one : left) {
        GLOVE_TRY(const bool settled, state_->recover_one(one, receipts, processes));
        if (!settled) out.push_back(one.session_id);
    }
    return out;
}

} // namespace glove::control
