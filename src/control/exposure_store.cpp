// One writer at a time decides, appends and then applies; whoever looks waits for the last of these
// only, which is a change in memory.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <glove/control/exposure_store.hpp>
#include <glove/journal/typed_log.hpp>
#include <glove/wire/crypto.hpp>
#include <limits>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace glove::control {

using namespace supervisor;

namespace {

struct exposure_codec {
    using record = exposure_record;
    [[nodiscard]] static auto decode(std::string_view payload) -> result<exposure_record> {
        return decode_exposure_record(payload);
    }
    [[nodiscard]] static auto facts_of(const exposure_record& of) -> journal::facts {
        return {of.sequence, of.previous_hash, of.record_hash, 0};
    }
    // The ledger has placed and hashed it; the log looks whether that is right.
    [[nodiscard]] static auto seal(exposure_record& what, const journal::mark&)
        -> result<std::string> {
        return encode(what);
    }
    [[nodiscard]] static auto authenticate(std::string_view bytes) -> result<std::string> {
        GLOVE_TRY(const auto digest, wire::sha256(bytes));
        return wire::to_hex(digest);
    }
};
using chain = journal::typed_log<exposure_codec>;

[[nodiscard]] auto subject_of(const exposure_revoked& fact) -> exposure_key {
    return {fact.exposure_id, fact.generation};
}

// Of one exposure, whatever its names are.
[[nodiscard]] auto longest_revocation() -> result<std::size_t> {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    const std::string ident(128, 'x'), digest(64, 'f');
    GLOVE_TRY(const auto text,
              encode(exposure_record{most, exposure_revoked{ident, digest, ident, most, most},
                                     digest, digest}));
    return text.size();
}

// What a file that a rotation made tells: first what was kept, then what came later.
struct history {
    std::vector<exposure_record> kept, later;
};

[[nodiscard]] auto bad(const exposure_record& record, const char* why) {
    return fail(errc::corrupt, "exposure.replay",
                "record " + std::to_string(record.sequence) + ": " + why);
}

// Records of what was kept, put together again. `base` is where the chain goes on from; each
// generation took a record of its own, so that none is beyond its sequence.
[[nodiscard]] auto kept_ledger(const std::vector<exposure_record>& kept, const journal::mark& base,
                               std::map<exposure_key, std::uint64_t>& revocations)
    -> result<exposure_ledger> {
    exposure_snapshot from{base.sequence, base.digest, base.sequence, {}};
    std::map<exposure_key, std::size_t> at;
    for (const auto& record : kept) {
        if (const auto* made = std::get_if<exposure_created>(&record.fact)) {
            const auto& d = made->descriptor;
            if (d.generation > record.sequence) return bad(record, "its generation is too high");
            at.emplace(exposure_key{d.exposure_id, d.generation}, from.kept.size());
            from.kept.push_back({record.sequence, *made, {}});
            continue;
        }
        const auto& ended = std::get<exposure_revoked>(record.fact);
        const auto whose = at.find(subject_of(ended));
        if (whose == at.end()) return bad(record, "it revokes what is not there");
        auto& revoked = from.kept[whose->second].revoked;
        if (revoked) return bad(record, "it revokes what is revoked");
        revoked = ended;
        revocations[subject_of(ended)] = record.sequence;
    }
    return exposure_ledger::restore(from);
}

[[nodiscard]] auto refused(error why) {
    const bool reused = why.step == "exposure.request" && why.code == errc::conflict;
    return refuse(reused ? error_code::idempotency_conflict : error_code::path_exposure_rejected,
                  std::move(why));
}

} // namespace

struct exposure_store::state {
    state(exposure_policy allowed, const sys::clock& time)
        : policy{std::move(allowed)}, clock{time} {}

    [[nodiscard]] auto now_ms() const -> std::uint64_t {
        const auto since =
            std::chrono::duration_cast<std::chrono::milliseconds>(clock.wall()).count();
        return since > 0 ? static_cast<std::uint64_t>(since) : 0;
    }
    [[nodiscard]] auto replay(const history& past) -> result<>;
    [[nodiscard]] auto apply(const exposure_record& record) -> result<>;
    void owe();
    void owe(const exposure_key& key);
    [[nodiscard]] auto chosen(const exposure_ledger& from,
                              std::map<exposure_key, std::uint64_t>& ended) const
        -> std::vector<std::uint64_t>;
    [[nodiscard]] auto has_room() const -> bool;
    // Whether anything was let go.
    [[nodiscard]] auto rotate() -> result<bool>;
    [[nodiscard]] auto put(const exposure_record& record) -> result<>;
    [[nodiscard]] auto carry_out(exposure_decision decided) -> answer<catalog_entry>;

    const exposure_policy policy;
    const sys::clock& clock;

    std::mutex writing; // held for everything that may append
    std::atomic<bool> works = true;
    std::optional<chain> log;
    std::size_t revocation_bytes = 0;
    // A revocation of what lives always fits.
    std::map<exposure_key, journal::reservation> owed;
    std::map<exposure_key, std::uint64_t> revocations; // the sequences of their records
    std::optional<error> broken;                       // ledger and journal disagree

    mutable std::shared_mutex looking; // the writer has it alone while the ledger changes
    exposure_ledger ledger;
};

auto exposure_store::state::apply(const exposure_record& record) -> result<> {
    GLOVE_CHECK(ledger.apply(record));
    if (const auto* ended = std::get_if<exposure_revoked>(&record.fact))
        revocations[subject_of(*ended)] = record.sequence;
    return {};
}

auto exposure_store::state::replay(const history& past) -> result<> {
    const auto& base = log->core().base();
    if (base != journal::mark{}) {
        GLOVE_TRY(ledger, kept_ledger(past.kept, base, revocations));
    }
    for (const auto& record : past.later) GLOVE_CHECK(apply(record));
    return {};
}

// As far as there is room: a journal that others filled is not refused for it.
void exposure_store::state::owe(const exposure_key& key) {
    const auto* kept = ledger.find(key);
    if (kept == nullptr || kept->revoked || !ledger.is_newest(*kept)) {
        owed.erase(key);
    } else if (!owed.contains(key)) {
        auto room = log->core().reserve(1, revocation_bytes);
        if (room) owed.emplace(key, *std::move(room));
    }
}
void exposure_store::state::owe() {
    std::erase_if(owed, [&](const auto& one) { return ledger.find(one.first) == nullptr; });
    for (const auto* kept : ledger.newest())
        owe({kept->created.descriptor.exposure_id, kept->created.descriptor.generation});
}

// For the longest record and for the revocation that it may lead to.
auto exposure_store::state::has_room() const -> bool {
    const auto free = log->core().room();
    return free.records >= 2 && free.bytes >= most_exposure_record_bytes + revocation_bytes +
                                                  2 * journal::frame_overhead;
}

// The records of what a ledger keeps, and which of them are revocations.
auto exposure_store::state::chosen(const exposure_ledger& from,
                                   std::map<exposure_key, std::uint64_t>& ended) const
    -> std::vector<std::uint64_t> {
    std::vector<std::uint64_t> out;
    ended.clear();
    for (const auto& one : from.snapshot().kept) {
        out.push_back(one.sequence);
        if (!one.revoked) continue;
        const auto at = revocations.find(subject_of(*one.revoked));
        ended.insert(*at);
        out.push_back(at->second);
    }
    std::ranges::sort(out);
    return out;
}

// Forgets what is dead until the ledger and the file are half empty, and goes on as a restart
// would.
auto exposure_store::state::rotate() -> result<bool> {
    auto next = ledger;
    std::map<exposure_key, std::uint64_t> ended;
    std::vector<std::uint64_t> live;
    for (auto most = most_exposures / 2;; most /= 2) {
        next.forget_dead(now_ms(), most);
        live = chosen(next, ended);
        std::uint64_t bytes = 0;
        for (const auto& one : log->core().records())
            if (std::ranges::binary_search(live, one.sequence)) bytes += one.bytes;
        if (most == 0 || bytes <= journal::exposures.most.file_bytes / 2) break;
    }
    if (live.size() == log->core().records().size()) return false;
    auto kept = next.snapshot();
    kept.generation_floor = kept.sequence;
    GLOVE_TRY(next, exposure_ledger::restore(kept));
    GLOVE_CHECK(log->core().rotate(live));
    revocations = std::move(ended);
    {
        const std::unique_lock alone{looking};
        ledger = std::move(next);
    }
    owe();
    return true;
}

auto exposure_store::state::put(const exposure_record& record) -> result<> {
    if (broken) return std::unexpected(*broken);
    const auto* ended = std::get_if<exposure_revoked>(&record.fact);
    const auto room = ended == nullptr ? owed.end() : owed.find(subject_of(*ended));
    if (room != owed.end()) {
        GLOVE_CHECK(log->append(record, room->second));
    } else {
        GLOVE_CHECK(log->append(record));
    }
    auto applied = [&] {
        const std::unique_lock alone{looking};
        return apply(record);
    }();
    if (!applied) {
        broken = applied.error();
        return applied;
    }
    if (ended != nullptr) {
        owe(subject_of(*ended));
        return {};
    }
    const auto& made = std::get<exposure_created>(record.fact).descriptor;
    owe({made.exposure_id, made.generation});
    owed.erase({made.exposure_id, made.generation - 1});
    return {};
}

auto exposure_store::state::carry_out(exposure_decision decided) -> answer<catalog_entry> {
    if (decided.record)
        if (auto done = put(*decided.record); !done)
            return refuse(error_code::path_exposure_unavailable, std::move(done).error());
    return show(*ledger.find(decided.subject), policy, now_ms());
}

exposure_store::exposure_store(std::unique_ptr<state> owned) : state_{std::move(owned)} {}
exposure_store::~exposure_store() = default;

auto exposure_store::open(journal::storage& store, exposure_policy policy, const sys::clock& clock)
    -> result<std::unique_ptr<exposure_store>> {
    auto out = std::make_unique<state>(std::move(policy), clock);
    GLOVE_TRY(out->revocation_bytes, longest_revocation());
    history past;
    GLOVE_TRY(auto opened,
              chain::open(store, {.form = journal::exposures, .missing = journal::absence::creates},
                          exposure_codec{}, [&](exposure_record&& record, journal::origin from) {
                              auto& to = from == journal::origin::snapshot ? past.kept : past.later;
                              to.push_back(std::move(record));
                              return result<>{};
                          }));
    out->log.emplace(std::move(opened));
    GLOVE_CHECK(out->replay(past));
    out->owe();
    return std::unique_ptr<exposure_store>{new exposure_store{std::move(out)}};
}

auto exposure_store::create(std::string_view request_id, create_exposure what)
    -> answer<catalog_entry> {
    auto& my = *state_;
    const std::lock_guard lock{my.writing};
    auto decided = decide_create(my.ledger, my.policy, request_id, what, my.now_ms());
    const bool full = !decided && decided.error().step == "exposure.capacity";
    if (full || (decided && decided->record && !my.has_room())) {
        const auto rotated = my.rotate();
        if (!rotated) return refuse(error_code::path_exposure_unavailable, rotated.error());
        if (full && !*rotated) return refused(std::move(decided).error());
        if (!my.has_room())
            return refuse(error_code::path_exposure_unavailable, errc::limit_exceeded,
                          "exposure.capacity", "what lives leaves no room in the journal");
        decided = decide_create(my.ledger, my.policy, request_id, std::move(what), my.now_ms());
    }
    if (!decided) return refused(std::move(decided).error());
    return my.carry_out(*std::move(decided));
}

auto exposure_store::revoke(std::string_view request_id, const revoke_exposure& what)
    -> answer<catalog_entry> {
    auto& my = *state_;
    const std::lock_guard lock{my.writing};
    auto decided = decide_revoke(my.ledger, request_id, what, my.now_ms());
    if (!decided) return refused(std::move(decided).error());
    return my.carry_out(*std::move(decided));
}

auto exposure_store::operational() const -> bool {
    auto& my = *state_;
    if (const std::unique_lock lock{my.writing, std::try_to_lock})
        my.works = !my.broken && !my.log->core().poisoned();
    return my.works;
}

auto exposure_store::list() const -> std::vector<catalog_entry> {
    const std::shared_lock lock{state_->looking};
    return catalog(state_->ledger, state_->policy, state_->now_ms());
}

void exposure_store::with(const std::function<void(const exposures_now&)>& look) const {
    const std::shared_lock lock{state_->looking};
    look({state_->ledger, state_->policy});
}

} // namespace glove::control
