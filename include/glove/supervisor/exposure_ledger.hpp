// What is on record of exposures, and what may be put there next. Pure: it opens nothing, writes
// nothing and asks no clock. Its owner appends a record durably and then applies it.
//
// Guarantees: a request id means one request for good, and its replay gives the same exposure, even
// when that has expired or the policy allows it no longer; a generation is never used twice; what
// was applied stays a fact whatever the policy says now, and the policy is asked again at each use.
// Applying a record checks its hash, its place in the chain and that it follows from what is there.
//
// Not safe for use by several threads at once.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/supervisor/exposure.hpp>
#include <glove/supervisor/exposure_policy.hpp>
#include <glove/supervisor/plan.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glove::supervisor {

inline constexpr std::size_t most_exposures = 1024; // that are kept, dead ones included

struct exposure_key {
    std::string exposure_id;
    std::uint64_t generation = 0;
    auto operator<=>(const exposure_key&) const = default;
};

// What is kept of one generation.
struct kept_exposure {
    std::uint64_t sequence = 0; // of its creation
    exposure_created created;
    std::optional<exposure_revoked> revoked;
    auto operator==(const kept_exposure&) const -> bool = default;
};

// All of a ledger, for a journal that begins anew.
struct exposure_snapshot {
    std::uint64_t sequence = 0; // of the last record
    std::string head_hash;      // of the last record
    // No generation at or below it is given to an exposure that is not kept.
    std::uint64_t generation_floor = 0;
    std::vector<kept_exposure> kept; // by sequence
    auto operator==(const exposure_snapshot&) const -> bool = default;
};

// What a request leads to. Without a record it was carried out before.
struct exposure_decision {
    exposure_key subject;
    std::optional<exposure_record> record; // to be appended, and then applied
};

class exposure_ledger {
public:
    exposure_ledger();
    [[nodiscard]] static auto restore(const exposure_snapshot& from) -> result<exposure_ledger>;
    [[nodiscard]] auto snapshot() const -> exposure_snapshot;

    // errc::corrupt, exposure.replay: the sequence number is in the detail.
    [[nodiscard]] auto apply(const exposure_record& record) -> result<>;

    // errc::conflict when the id was used for something else; nothing when it is new.
    [[nodiscard]] auto replayed(std::string_view request_id, std::string_view digest) const
        -> result<std::optional<exposure_key>>;
    // The caller has asked `replayed` and the policy. errc::conflict while a generation lives.
    [[nodiscard]] auto next_create(std::string_view request_id, const create_exposure& what,
                                   const exposed_source& source, std::uint64_t now_ms) const
        -> result<exposure_record>;
    [[nodiscard]] auto next_revoke(std::string_view request_id, const revoke_exposure& what,
                                   std::uint64_t now_ms) const -> result<exposure_record>;

    [[nodiscard]] auto find(const exposure_key& key) const -> const kept_exposure*;
    // The newest generation of each exposure, by name.
    [[nodiscard]] auto newest() const -> std::vector<const kept_exposure*>;
    [[nodiscard]] auto is_newest(const kept_exposure& kept) const -> bool;
    [[nodiscard]] auto full() const noexcept -> bool { return kept_.size() >= most_exposures; }
    // Forgets dead generations, the oldest first, until no more are kept than that. Their request
    // ids are free afterwards, their generations are not. Only for a journal that begins anew with
    // the snapshot after it.
    void forget_dead(std::uint64_t now_ms, std::size_t most_kept = most_exposures / 2);

private:
    struct request {
        std::string digest;
        exposure_key subject;
    };
    [[nodiscard]] auto newest_of(std::string_view exposure_id) const -> const kept_exposure*;
    [[nodiscard]] auto next_generation(std::string_view exposure_id) const -> std::uint64_t;
    [[nodiscard]] auto check_fact(const exposure_created& fact) const -> result<>;
    [[nodiscard]] auto check_fact(const exposure_revoked& fact) const -> result<>;
    void keep(std::uint64_t sequence, const exposure_created& fact);
    void keep(std::uint64_t sequence, const exposure_revoked& fact);

    std::uint64_t sequence_ = 0;
    std::string head_;
    std::uint64_t floor_ = 0;
    std::map<exposure_key, kept_exposure> kept_;
    std::map<std::string, request, std::less<>> requests_;
};

// By record and clock alone.
[[nodiscard]] auto state_of(const kept_exposure& kept, std::uint64_t now_ms) -> exposure_state;

// The whole of a request: replay, policy, file system, ledger.
[[nodiscard]] auto decide_create(const exposure_ledger& ledger, const exposure_policy& policy,
                                 std::string_view request_id, create_exposure what,
                                 std::uint64_t now_ms) -> result<exposure_decision>;
[[nodiscard]] auto decide_revoke(const exposure_ledger& ledger, std::string_view request_id,
                                 const revoke_exposure& what, std::uint64_t now_ms)
    -> result<exposure_decision>;

// As it may be shown. A generation that the policy allows no longer, or whose source is not what it
// was, is shown as revoked.
[[nodiscard]] auto show(const kept_exposure& kept, const exposure_policy& policy,
                        std::uint64_t now_ms) -> catalog_entry;
[[nodiscard]] auto catalog(const exposure_ledger& ledger, const exposure_policy& policy,
                           std::uint64_t now_ms) -> std::vector<catalog_entry>;

struct used_exposure {
    const kept_exposure* kept = nullptr; // lives as long as the ledger is not changed
    exposed_source source;
    std::uint64_t remaining_ms = 0;
};
// A grant of a plan: the generation is active, its scope is the one that was meant, the template is
// in it, the mode is no more than what was allowed, the policy allows it still, and the source is
// what it was. Errors: exposure.* and source.*.
[[nodiscard]] auto use_exposure(const exposure_ledger& ledger, const exposure_policy& policy,
                                const exposure_grant& grant, std::string_view runtime_template_id,
                                std::uint64_t now_ms) -> result<used_exposure>;

} // namespace glove::supervisor
