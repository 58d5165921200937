// What the handlers of methods share. Internal to the service.
#pragma once
#include <atomic>
#include <glove/control/idempotency.hpp>
#include <glove/control/methods.hpp>
#include <mutex>

namespace glove::control {

// One request, whose envelope was found good and whose method is known.
struct call {
    const request& asked;
    const method& row;
    std::chrono::nanoseconds deadline; // monotonic

    [[nodiscard]] auto key() const -> std::string_view { return *asked.idempotency_key; }
};

class service_state {
public:
    service_state(const parts& of, bootstrap_secret shown) : has{of}, secret{std::move(shown)} {}

    [[nodiscard]] auto now_ms() const -> std::uint64_t { return sys::wall_ms(*has.clock); }
    // Before a step that cannot be undone.
    [[nodiscard]] auto still_in_time(const call& of) const -> answer<>;
    // Sessions that were alive when the last process ended: once, when a controller has all
    // receipts. Nothing to do before that.
    [[nodiscard]] auto recover_once() -> result<>;
    // The same where a failure is told by the next start.
    void try_to_recover();

    const parts has;
    const bootstrap_secret secret;
    idempotency_table keys;

private:
    std::mutex recovery_;
    bool recovered_ = false;
};

// The literal payload of a method that takes nothing.
[[nodiscard]] auto require_nothing(const call& of) -> answer<>;
[[nodiscard]] inline auto invalid(result<> why) -> answer<> {
    return or_refuse(std::move(why), error_code::invalid_request);
}

[[nodiscard]] auto health(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto capabilities(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto validate_plan(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto create_session_of(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto session_status(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto list_sessions(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto start_session(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto attach(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto write_stdin(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto resize(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto signal_session(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto detach(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto stop_session(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto cleanup_session(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto verify_audit_chain(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto acknowledge_audit_chain(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto create_path_exposure(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto list_path_exposures(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto revoke_path_exposure(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto inspect_retained_changes(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto page_intents(service_state&, const call&) -> answer<std::string>;
[[nodiscard]] auto decide_intent(service_state&, const call&) -> answer<std::string>;

} // namespace glove::control
