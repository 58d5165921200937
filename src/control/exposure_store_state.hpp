// What is behind a store of exposures: its journal, its ledger, and the room that is owed.
//
// Two locks, so that looking never waits for the disk: `writing` is held for everything that may
// append, `looking` only while the ledger changes. Whoever holds `writing` may read the ledger.
#pragma once
#include <atomic>
#include <chrono>
#include <glove/control/exposure_store.hpp>
#include <glove/journal/typed_log.hpp>
#include <glove/wire/crypto.hpp>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace glove::control {

struct exposure_codec {
    using record = supervisor::exposure_record;
    [[nodiscard]] static auto decode(std::string_view payload)
        -> result<supervisor::exposure_record> {
        return supervisor::decode_exposure_record(payload);
    }
    [[nodiscard]] static auto facts_of(const supervisor::exposure_record& of) -> journal::facts {
        return {of.sequence, of.previous_hash, of.record_hash, 0};
    }
    // The ledger has placed and hashed it; the log looks whether that is right.
    [[nodiscard]] static auto seal(supervisor::exposure_record& what, const journal::mark&)
        -> result<std::string> {
        return supervisor::encode(what);
    }
    [[nodiscard]] static auto authenticate(std::string_view bytes) -> result<std::string> {
        return wire::sha256_hex(bytes);
    }
};
using exposure_chain = journal::typed_log<exposure_codec>;

[[nodiscard]] inline auto subject_of(const supervisor::exposure_revoked& fact)
    -> supervisor::exposure_key {
    return {fact.exposure_id, fact.generation};
}

// How long the catalog is that a ledger leads to.
class catalog_size {
public:
    [[nodiscard]] static auto of(const supervisor::exposure_ledger& ledger) -> result<catalog_size>;
    // Instead of the generation before it.
    [[nodiscard]] auto with(const supervisor::exposure_descriptor& more) const
        -> result<std::size_t>;
    [[nodiscard]] auto show(const supervisor::exposure_descriptor& more) -> result<>;
    [[nodiscard]] auto bytes() const noexcept -> std::size_t { return all_; }

private:
    std::map<std::string, std::size_t> each_;
    std::size_t all_ = 0;
};

// What a file that a rotation made tells: first what was kept, then what came later.
struct exposure_history {
    std::vector<supervisor::exposure_record> kept, later;
};

struct exposure_store::state {
    state(supervisor::exposure_policy allowed, const sys::clock& time)
        : policy{std::move(allowed)}, clock{time} {}

    [[nodiscard]] auto now_ms() const -> std::uint64_t { return sys::wall_ms(clock); }
    [[nodiscard]] auto replay(const exposure_history& past) -> result<>;
    [[nodiscard]] auto apply(const supervisor::exposure_record& record) -> result<>;
    void owe();
    void owe(const supervisor::exposure_key& key);
    [[nodiscard]] auto chosen(const supervisor::exposure_ledger& from,
                              std::map<supervisor::exposure_key, std::uint64_t>& ended) const
        -> std::vector<std::uint64_t>;
    // Beside what is free, so much.
    [[nodiscard]] auto has_room(const journal::share& more = {}) const -> bool;
    // Empty, or what leaves no room for it.
    [[nodiscard]] auto lacks(const supervisor::exposure_decision& what) const
        -> result<std::string>;
    // Whether there is room now that was not there.
    [[nodiscard]] auto rotate() -> result<bool>;
    [[nodiscard]] auto let_go_by(const supervisor::exposure_ledger& next,
                                 const std::vector<std::uint64_t>& live) const -> journal::share;
    [[nodiscard]] auto put(const supervisor::exposure_record& record) -> result<>;
    [[nodiscard]] auto carry_out(supervisor::exposure_decision decided)
        -> answer<supervisor::catalog_entry>;

    const supervisor::exposure_policy policy;
    const sys::clock& clock;

    std::mutex writing; // held for everything that may append
    std::atomic<bool> works = true;
    std::optional<exposure_chain> log;
    std::size_t revocation_bytes = 0;
    // A revocation of what lives always fits.
    std::map<supervisor::exposure_key, journal::reservation> owed;
    std::map<supervisor::exposure_key, std::uint64_t> revocations; // the sequences of their records
    std::optional<error> broken;                                   // ledger and journal disagree
    catalog_size shown;
    // Until then, or until something is revoked, a rotation would make no room.
    std::uint64_t barren_until = 0;

    mutable std::shared_mutex looking; // the writer has it alone while the ledger changes
    supervisor::exposure_ledger ledger;
};

} // namespace glove::control
