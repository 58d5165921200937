// What a controller may ask for: one row for each method, and the service that carries them out.
//
// Guarantees: a method whose part is not there or does not work is not found, before its payload is
// looked at; a key is demanded or refused as the row says; no payload is larger than its row
// allows; what cannot be undone is not begun once the request's deadline has passed; an answer
// names a code and a fixed message, and the reasons go to the log alone.
//
// The reference page and the tests are made from the table. Safe for use by several threads.
#pragma once
#include <chrono>
#include <cstdint>
#include <glove/control/answer.hpp>
#include <glove/control/channel_host.hpp>
#include <glove/control/exposure_store.hpp>
#include <glove/control/managed_runtime.hpp>
#include <glove/control/protocol.hpp>
#include <glove/control/receipt_journal.hpp>
#include <glove/control/service_log.hpp>
#include <glove/control/session_registry.hpp>
#include <glove/supervisor/session_policy.hpp>
#include <glove/sys/clock.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace glove::control {

// Null is what this service does not have. What it points to outlives the service.
struct parts {
    receipt_journal* receipts = nullptr; // always there
    const supervisor::session_policy* policy = nullptr;
    session_registry* sessions = nullptr;   // only with a policy
    const channel_host* channels = nullptr; // the frozen one that `sessions` was opened with
    exposure_store* exposures = nullptr;
    managed_runtime* runtime = nullptr; // only with sessions
    retained_store* retained = nullptr;
    process_observer* processes = nullptr; // only with sessions
    const sys::clock* clock = nullptr;     // always there
    service_log* log = nullptr;            // always there
};

enum class part : std::uint8_t {
    nothing,
    session_policy,
    session_store,
    operational_runtime,
    exposure_policy,
    materialization_root,
    channel_catalog,
};
[[nodiscard]] auto to_string(part of) noexcept -> std::string_view;
[[nodiscard]] auto is_there(part of, const parts& among) -> bool;

enum class key_rule : std::uint8_t { none, ident, ident112 };
[[nodiscard]] auto to_string(key_rule of) noexcept -> std::string_view;

// When a method may be used.
enum class phase : std::uint8_t {
    always,
    reconciled, // a controller has all receipts, and sessions were recovered
};
[[nodiscard]] auto to_string(phase of) noexcept -> std::string_view;

struct call;
class service_state;

struct method {
    std::string_view name;
    part needs{};
    key_rule key{};
    std::size_t payload_bytes = 0; // at most, as it came
    phase when{};
    std::string_view payload; // in words
    std::string_view result;  // in words
    auto (*carry_out)(service_state&, const call&) -> answer<std::string> = nullptr;
    bool writes = false; // it may wait for a disk: never may all workers do such work
    // And takes long by itself: never may all of those do such work.
    bool slow = false;
};
[[nodiscard]] auto methods() -> std::span<const method>;
[[nodiscard]] auto find_method(std::string_view name) -> const method*;
// What it needs is there, and, when it writes, can be written to. That is what is advertised; a
// request is refused for want of a part alone: after a journal has failed, what is on record is
// still answered, and what is not is refused by whoever would write it.
[[nodiscard]] auto is_operational(const method& what, const parts& among) -> bool;

// The document that says what can be done, from what is there and works now.
[[nodiscard]] auto capability_document(const parts& of) -> std::string;

// 64 lower-case hexadecimal digits that a client shows; wiped when it is not needed any more.
class bootstrap_secret {
public:
    explicit bootstrap_secret(std::string hexadecimal) : text_{std::move(hexadecimal)} {}
    bootstrap_secret(bootstrap_secret&&) noexcept;
    auto operator=(bootstrap_secret&&) -> bootstrap_secret& = delete;
    ~bootstrap_secret();
    [[nodiscard]] auto is(std::string_view shown) const noexcept -> bool;

private:
    std::string text_;
};

// When a request had arrived as a whole.
struct arrival {
    std::chrono::nanoseconds monotonic{};
    std::chrono::nanoseconds wall{};
};

// What can be told of a request before it is carried out.
struct glance {
    bool writes = false;
    bool slow = false;                                                // of what writes
    std::chrono::nanoseconds until = std::chrono::nanoseconds::max(); // monotonic: then it is late
};

// Whoever answers requests, of several threads at once.
class answerer {
public:
    virtual ~answerer() = default;
    // Quickly, and without waiting for anything. What is no request writes nothing.
    [[nodiscard]] virtual auto look_at(std::string_view, const arrival&) -> glance { return {}; }
    // The frame's body in, and the answer's out; `text` is wiped, because the secret is in it.
    [[nodiscard]] virtual auto answer_to(std::string& text, const arrival& when) -> std::string = 0;
    // For a frame that is none.
    [[nodiscard]] virtual auto answer_to_no_frame(const error& why) -> std::string = 0;
};

class service final : public answerer {
public:
    service(const parts& of, bootstrap_secret secret);
    ~service() override;

    [[nodiscard]] auto look_at(std::string_view text, const arrival& when) -> glance override;
    [[nodiscard]] auto answer_to(std::string& text, const arrival& when) -> std::string override;
    [[nodiscard]] auto answer_to_no_frame(const error& why) -> std::string override;

private:
    std::unique_ptr<service_state> state_;
};

} // namespace glove::control
