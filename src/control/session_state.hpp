// What is behind a registry: its journal, its book, and the room that is owed.
//
// Two locks, so that looking never waits for the disk. `writing` is held from the judgement of a
// request until its record is in the book, the disk included; `looking` only while the book
// changes. Whoever holds `writing` may read the book, since nobody else changes it.
#pragma once
#include "control/session_book.hpp"
#include <atomic>
#include <glove/journal/typed_log.hpp>
#include <mutex>
#include <shared_mutex>

namespace glove::control {

class session_codec {
public:
    using record = session_record;
    [[nodiscard]] auto decode(std::string_view text) const -> result<session_record>;
    [[nodiscard]] auto facts_of(const session_record& of) const -> journal::facts;
    [[nodiscard]] auto seal(session_record& what, const journal::mark& last) const
        -> result<std::string>;
    [[nodiscard]] auto authenticate(std::string_view bytes) const -> result<std::string>;
};

// The kinds of records in the journal.
inline constexpr std::uint8_t life_records = 0;
inline constexpr std::uint8_t intent_records = 1;
// Of what a file may hold, intents may have one part in so many; what is owed for their decisions
// comes on top, and takes hardly more.
inline constexpr std::uint64_t intents_part = 8;

// One step of a life, as a caller asks for it.
struct step_request {
    std::string_view key;
    std::string_view session_id;
    life_event on{};
    std::function<void(session_record&)> fill;                             // what the step brings
    std::function<answer<>(const kept_session&, session_record&)> check{}; // after the replay
    std::optional<std::string> digest{};                                   // unless `next` tells it
    bool recovers = false; // a session of the process before this one
};

[[nodiscard]] auto exit_request(std::string_view key, std::string_view session_id,
                                const terminal_envelope& what) -> step_request;
[[nodiscard]] auto failure_request(std::string_view key, std::string_view session_id,
                                   std::string_view code, std::uint64_t now) -> step_request;

// What is kept for records that are owed.
struct owed_room {
    journal::reservation room;
    std::size_t bytes_each = 0;
};

struct session_registry::state {
    state(journal::storage& where, const registry_settings& settings, const channel_host* admitted,
          const sys::clock& time);

    [[nodiscard]] auto now_ms() const -> std::uint64_t;
    [[nodiscard]] auto is_over(const kept_session& what) const -> bool;
    [[nodiscard]] auto load() -> result<>;

    // All below: `writing` is held.
    [[nodiscard]] auto create(std::string_view key, const create_session& what,
                              std::string request_digest, const supervisor::sealed_plan& plan)
        -> answer<session_view>;
    [[nodiscard]] auto step(const step_request& what) -> answer<session_view>;
    [[nodiscard]] auto put(session_record next, const result<session_book::verdict>& judged,
                           journal::reservation& from) -> answer<session_view>;
    [[nodiscard]] auto enqueue(const guest_context& from, const adapters::guest_body& what)
        -> answer<intent_item>;
    [[nodiscard]] auto decide(const intent_decision& what) -> answer<intent_item>;
    [[nodiscard]] auto admit(session_record next, std::size_t decision_bytes)
        -> answer<intent_item>;
    // Tries, makes room once, tries again.
    [[nodiscard]] auto reserve(std::size_t records, std::size_t bytes_each) -> result<owed_room>;
    enum class wanted : std::uint8_t { room, room_for_intents };
    // False: there is nothing that could be forgotten.
    [[nodiscard]] auto make_room(wanted what) -> result<bool>;
    [[nodiscard]] auto what_to_keep() const -> keeping;
    void remember(session_record sealed, const session_book::verdict& how);
    [[nodiscard]] auto owe(const kept_session& what) -> result<>;
    [[nodiscard]] auto owe_decision(const kept_intent& what) -> result<>;

    // These take `writing` themselves.
    enum class settled : std::uint8_t { no, yes, key_is_taken };
    [[nodiscard]] auto settle(step_request what) -> result<settled>;
    [[nodiscard]] auto recover_one(const session_record& of, const receipt_finder& receipts,
                                   process_observer& processes) -> result<bool>;

    // Either lock is held.
    [[nodiscard]] auto creation_replayed(std::string_view key, const create_session& what,
                                         std::string_view request_digest) const
        -> std::optional<answer<session_view>>;

    const registry_settings how;
    const journal::settings form;
    journal::storage& store;
    const channel_host* const channels;
    const sys::clock& clock;

    std::mutex recovering; // before `writing`
    std::mutex writing;    // before `looking`
    std::atomic<bool> works = true;
    mutable std::shared_mutex looking;
    session_book book;
    std::optional<journal::typed_log<session_codec>> log;
    std::map<std::string, owed_room, std::less<>> owed;
    std::map<std::uint64_t, owed_room> owed_decisions; // by the intent's sequence
    // Sessions whose process belongs to the process before this one, until somebody has looked.
    std::set<std::string, std::less<>> unsettled;
};

// What a write that failed means: no room, the disk, or a record that is none.
struct write_codes {
    error_code full{};
    error_code disk{};
    error_code form{};
};
inline constexpr write_codes session_codes{error_code::session_capacity,
                                           error_code::session_storage_failed,
                                           error_code::session_control_failed};
inline constexpr write_codes intent_codes{error_code::observation_intent_capacity,
                                          error_code::observation_intent_storage_failed,
                                          error_code::observation_intent_control_failed};
[[nodiscard]] auto refuse_write(error why, const write_codes& codes) -> std::unexpected<refusal>;

} // namespace glove::control
