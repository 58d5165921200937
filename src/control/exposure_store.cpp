// One writer at a time decides, appends and then applies; whoever looks waits for the last of these
// only, which is a change in memory.
#include "control/exposure_store_state.hpp"
#include <glove/wire/grammar.hpp>
#include <limits>
#include <utility>

namespace glove::control {

using namespace supervisor;

namespace {

// Of one exposure, whatever its names are.
[[nodiscard]] auto longest_revocation() -> result<std::size_t> {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    const std::string ident(128, 'x'), digest(64, 'f');
    GLOVE_TRY(const auto text,
              encode(exposure_record{most, exposure_revoked{ident, digest, ident, most, most},
                                     digest, digest}));
    return text.size();
}

// One that can be typed as an argument. Older records may hold other ids, which can be revoked.
[[nodiscard]] auto check_name(const std::string& id) -> result<> {
    if (conforms(wire::grammar::cli_ident, id) && !id.starts_with('_')) return {};
    return fail(errc::invalid_input, "exposure.name",
                "the id " + id + " has a ':', or begins neither with a letter nor with a digit");
}

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

auto exposure_store::state::apply(const exposure_record& record) -> result<> {
    GLOVE_CHECK(ledger.apply(record));
    if (const auto* made = std::get_if<exposure_created>(&record.fact))
        return shown.show(made->descriptor);
    revocations[subject_of(std::get<exposure_revoked>(record.fact))] = record.sequence;
    return {};
}

auto exposure_store::state::replay(const exposure_history& past) -> result<> {
    const auto& base = log->core().base();
    if (base != journal::mark{}) {
        GLOVE_TRY(ledger, kept_ledger(past.kept, base, revocations));
        GLOVE_TRY(shown, catalog_size::of(ledger));
    }
    for (const auto& record : past.later) GLOVE_CHECK(apply(record));
    return {};
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
    exposure_history past;
    GLOVE_TRY(auto opened,
              exposure_chain::open(
                  store, {.form = journal::exposures, .missing = journal::absence::creates},
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
