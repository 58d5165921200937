// One writer at a time decides, appends and then applies; whoever looks waits for the last of these
// only, which is a change in memory.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <glove/control/exposure_store.hpp>
#include <glove/control/protocol.hpp>
#include <glove/journal/typed_log.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/grammar.hpp>
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

// The whole catalog is one answer, so it is one of the things that can be full.
constexpr std::size_t most_of_an_envelope = 1024;
constexpr std::size_t most_catalog_bytes = most_frame_bytes - most_of_an_envelope;
// The first record of a file that begins anew.
constexpr std::uint64_t most_of_a_snapshot = 1024;

// Of one exposure in the catalog, whatever becomes of it.
[[nodiscard]] auto shown_bytes(const exposure_descriptor& of) -> result<std::size_t> {
    GLOVE_TRY(const auto text,
              encode(catalog_entry{1, of.exposure_id, of.generation, of.scope_digest,
                                   of.display_label, of.allowed_modes, of.expires_at_ms,
                                   of.allowed_runtime_template_ids, exposure_state::revoked}));
    return text.size() + 1; // with the comma
}

// One that can be typed as an argument. Older records may hold other ids, which can be revoked.
[[nodiscard]] auto check_name(const std::string& id) -> result<> {
    if (conforms(wire::grammar::cli_ident, id) && !id.starts_with('_')) return {};
    return fail(errc::invalid_input, "exposure.name",
                "the id " + id + " has a ':', or begins neither with a letter nor with a digit");
}

// How long the catalog is that a ledger leads to.
class catalog_size {
public:
    [[nodiscard]] static auto of(const exposure_ledger& ledger) -> result<catalog_size> {
        catalog_size out;
        for (const auto* kept : ledger.newest()) GLOVE_CHECK(out.show(kept->created.descriptor));
        return out;
    }
    // Instead of the generation before it.
    [[nodiscard]] auto with(const exposure_descriptor& more) const -> result<std::size_t> {
        GLOVE_TRY(const auto bytes, shown_bytes(more));
        const auto before = each_.find(more.exposure_id);
        return all_ + bytes - (before == each_.end() ? 0 : before->second);
    }
    [[nodiscard]] auto show(const exposure_descriptor& more) -> result<> {
        GLOVE_TRY(const auto bytes, shown_bytes(more));
        auto& its = each_[more.exposure_id];
        all_ = all_ - its + bytes;
        its = bytes;
        return {};
    }
    [[nodiscard]] auto bytes() const noexcept -> std::size_t { return all_; }

private:
    std::map<std::string, std::size_t> each_;
    std::size_t all_ = 0;
};

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
    // Beside what is free, so much.
    [[nodiscard]] auto has_room(const journal::share& more = {}) const -> bool;
    // Empty, or what leaves no room for it.
    [[nodiscard]] auto lacks(const exposure_decision& what) const -> result<std::string>;
    // Whether there is room now that was not there.
    [[nodiscard]] auto rotate() -> result<bool>;
    [[nodiscard]] auto let_go_by(const exposure_ledger& next,
                                 const std::vector<std::uint64_t>& live) const -> journal::share;
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
    catalog_size shown;
    // Until then, or until something is revoked, a rotation would make no room.
    std::uint64_t barren_until = 0;

    mutable std::shared_mutex looking; // the writer has it alone while the ledger changes
    exposure_ledger ledger;
};

auto exposure_store::state::apply(const exposure_record& record) -> result<> {
    GLOVE_CHECK(ledger.apply(record));
    if (const auto* made = std::get_if<exposure_created>(&record.fact))
        return shown.show(made->descriptor);
    revocations[subject_of(std::get<exposure_revoked>(record.fact))] = record.sequence;
    return {};
}

auto exposure_store::state::replay(const history& past) -> result<> {
    const auto& base = log->core().base();
    if (base != journal::mark{}) {
        GLOVE_TRY(ledger, kept_ledger(past.kept, base, revocations));
        GLOVE_TRY(shown, catalog_size::of(ledger));
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
auto exposure_store::state::has_room(const journal::share& more) const -> bool {
    const auto free = log->core().room();
    return free.records + more.records >= 2 &&
           free.bytes + more.bytes >=
               most_exposure_record_bytes + revocation_bytes + 2 * journal::frame_overhead;
}

auto exposure_store::state::lacks(const exposure_decision& what) const -> result<std::string> {
    if (!what.record) return std::string{}; // it was carried out before
    if (!has_room()) return "what lives leaves no room in the journal";
    const auto& made = std::get<exposure_created>(what.record->fact).descriptor;
    GLOVE_TRY(const auto bytes, shown.with(made));
    if (bytes <= most_catalog_bytes) return std::string{};
    return "the catalog would have " + std::to_string(bytes) + " bytes, and one answer holds " +
           std::to_string(most_catalog_bytes);
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

// What a file would have more room for that keeps no others than these.
auto exposure_store::state::let_go_by(const exposure_ledger& next,
                                      const std::vector<std::uint64_t>& live) const
    -> journal::share {
    journal::share out;
    for (const auto& one : log->core().records()) {
        if (std::ranges::binary_search(live, one.sequence)) continue;
        out.records += 1;
        out.bytes += one.bytes + journal::frame_overhead;
    }
    for (const auto& [key, room] : owed) {
        if (next.find(key) != nullptr) continue;
        out.records += 1;
        out.bytes += revocation_bytes + journal::frame_overhead;
    }
    out.bytes -= std::min(out.bytes, most_of_a_snapshot);
    return out;
}

// Forgets what is dead until the ledger, the catalog and the file are half empty, and goes on as a
// restart would. When that would free too little, it writes nothing.
auto exposure_store::state::rotate() -> result<bool> {
    const auto now = now_ms();
    auto next = ledger;
    std::map<exposure_key, std::uint64_t> ended;
    std::vector<std::uint64_t> live;
    catalog_size listed;
    {
        auto least = ledger;
        least.forget_dead(now, 0);
        live = chosen(least, ended);
        if (live.size() == log->core().records().size() || !has_room(let_go_by(least, live))) {
            barren_until = std::numeric_limits<std::uint64_t>::max();
            for (const auto* one : least.newest())
                barren_until = std::min(barren_until, one->created.descriptor.expires_at_ms);
            return false;
        }
    }
    for (auto most = most_exposures / 2;; most /= 2) {
        next.forget_dead(now, most);
        live = chosen(next, ended);
        GLOVE_TRY(listed, catalog_size::of(next));
        std::uint64_t bytes = 0;
        for (const auto& one : log->core().records())
            if (std::ranges::binary_search(live, one.sequence)) bytes += one.bytes;
        if (most == 0 || (bytes <= journal::exposures.most.file_bytes / 2 &&
                          listed.bytes() <= most_catalog_bytes / 2))
            break;
    }
    auto kept = next.snapshot();
    if (live.size() == log->core().records().size()) return false;
    kept.generation_floor = kept.sequence;
    GLOVE_TRY(next, exposure_ledger::restore(kept));
    GLOVE_CHECK(log->core().rotate(live));
    revocations = std::move(ended);
    shown = std::move(listed);
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
        barren_until = 0;
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
    const auto decide = [&] {
        return decide_create(my.ledger, my.policy, request_id, what, my.now_ms());
    };
    const auto lacks = [&](const result<exposure_decision>& of) -> result<std::string> {
        if (of) return my.lacks(*of);
        return std::string{of.error().step == "exposure.capacity" ? of.error().detail : ""};
    };
    const auto unavailable = [](error why) {
        return refuse(error_code::path_exposure_unavailable, std::move(why));
    };
    auto decided = decide();
    if (decided && decided->record) // no replay
        if (auto fine = check_name(what.exposure_id); !fine)
            return refused(std::move(fine).error());
    auto missing = lacks(decided);
    if (!missing) return unavailable(std::move(missing).error());
    if (!missing->empty() && my.now_ms() >= my.barren_until) {
        const auto rotated = my.rotate();
        if (!rotated) return unavailable(rotated.error());
        if (*rotated) {
            decided = decide();
            missing = lacks(decided);
            if (!missing) return unavailable(std::move(missing).error());
        }
    }
    if (!decided) return refused(std::move(decided).error());
    if (!missing->empty())
        return refuse(error_code::path_exposure_unavailable, errc::limit_exceeded,
                      "exposure.capacity", *std::move(missing));
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
