// The state machine of exposures: what follows from what is on record.
#include <glove/supervisor/exposure_ledger.hpp>

#include <algorithm>
#include <limits>

namespace glove::supervisor {

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

[[nodiscard]] auto no_hash() -> std::string { return std::string(64, '0'); }

[[nodiscard]] auto subject_of(const exposure_created& fact) -> exposure_key {
    return {fact.descriptor.exposure_id, fact.descriptor.generation};
}
[[nodiscard]] auto subject_of(const exposure_revoked& fact) -> exposure_key {
    return {fact.exposure_id, fact.generation};
}

// The operator's own digest does not tell what was asked for, so a replayed record's cannot be
// computed again; what it binds is covered by the record's hash.
[[nodiscard]] auto sealed(exposure_record record) -> result<exposure_record> {
    GLOVE_TRY(record.record_hash, record_hash(record));
    return record;
}

} // namespace

auto state_of(const kept_exposure& kept, std::uint64_t now_ms) -> exposure_state {
    if (kept.revoked) return exposure_state::revoked;
    return now_ms < kept.created.descriptor.expires_at_ms ? exposure_state::active
                                                          : exposure_state::expired;
}

exposure_ledger::exposure_ledger() : head_{no_hash()} {}

auto exposure_ledger::newest_of(std::string_view exposure_id) const -> const kept_exposure* {
    auto after = kept_.upper_bound(exposure_key{std::string{exposure_id}, most});
    if (after == kept_.begin()) return nullptr;
    --after;
    return after->first.exposure_id == exposure_id ? &after->second : nullptr;
}

auto exposure_ledger::next_generation(std::string_view exposure_id) const -> std::uint64_t {
    const auto* last = newest_of(exposure_id);
    return (last == nullptr ? floor_ : last->created.descriptor.generation) + 1;
}

auto exposure_ledger::find(const exposure_key& key) const -> const kept_exposure* {
    const auto found = kept_.find(key);
    return found == kept_.end() ? nullptr : &found->second;
}

auto exposure_ledger::is_newest(const kept_exposure& kept) const -> bool {
    return newest_of(kept.created.descriptor.exposure_id) == &kept;
}

auto exposure_ledger::newest() const -> std::vector<const kept_exposure*> {
    std::vector<const kept_exposure*> out;
    for (const auto& [key, kept] : kept_) {
        if (!out.empty() && out.back()->created.descriptor.exposure_id == key.exposure_id)
            out.back() = &kept;
        else out.push_back(&kept);
    }
    return out;
}

// --- history ---

auto exposure_ledger::check_fact(const exposure_created& fact) const -> result<> {
    const auto bad = [](std::string why) {
        return fail(errc::corrupt, "exposure.replay", std::move(why));
    };
    if (full()) return bad("there are more exposures than are kept");
    const auto& made = fact.descriptor;
    if (made.generation != next_generation(made.exposure_id))
        return bad("its generation does not follow");
    // Nobody could make a new generation before the last one ended, so this one ends later.
    const auto* last = newest_of(made.exposure_id);
    if (last != nullptr && !last->revoked &&
        made.expires_at_ms <= last->created.descriptor.expires_at_ms)
        return bad("the generation before it was active");
    GLOVE_TRY(const auto scope, scope_digest(made));
    if (scope != made.scope_digest) return bad("its scope digest is not that of its members");
    return {};
}

auto exposure_ledger::check_fact(const exposure_revoked& fact) const -> result<> {
    const auto bad = [](std::string why) {
        return fail(errc::corrupt, "exposure.replay", std::move(why));
    };
    const auto* kept = find(subject_of(fact));
    if (kept == nullptr) return bad("it revokes what is not there");
    if (kept->revoked) return bad("it revokes what is revoked");
    if (!is_newest(*kept)) return bad("it revokes an older generation");
    GLOVE_TRY(const auto digest,
              request_digest(fact.request_id, revoke_exposure{fact.exposure_id, fact.generation}));
    if (digest != fact.request_digest) return bad("its request digest is not that of its request");
    return {};
}

void exposure_ledger::keep(std::uint64_t sequence, const exposure_created& fact) {
    const auto subject = subject_of(fact);
    kept_.emplace(subject, kept_exposure{sequence, fact, {}});
    requests_.emplace(fact.request_id, request{fact.request_digest, subject});
}
void exposure_ledger::keep(std::uint64_t, const exposure_revoked& fact) {
    const auto subject = subject_of(fact);
    kept_.find(subject)->second.revoked = fact;
    requests_.emplace(fact.request_id, request{fact.request_digest, subject});
}

auto exposure_ledger::apply(const exposure_record& record) -> result<> {
    const auto number = "record " + std::to_string(record.sequence) + ": ";
    const auto bad = [&](std::string_view why) {
        return fail(errc::corrupt, "exposure.replay", number + std::string{why});
    };
    if (sequence_ == most || record.sequence != sequence_ + 1)
        return bad("record " + std::to_string(sequence_ + 1) + " was to come");
    if (record.previous_hash != head_) return bad("it does not follow the one before it");
    GLOVE_TRY(const auto hash, record_hash(record));
    if (hash != record.record_hash) return bad("it is not what its hash says");
    const auto& id =
        std::visit([](const auto& f) -> const std::string& { return f.request_id; }, record.fact);
    if (requests_.contains(id)) return bad("its request id was used before");
    auto checked_fact =
        std::visit([&](const auto& fact) -> result<> { return check_fact(fact); }, record.fact);
    if (!checked_fact) {
        checked_fact.error().detail = number + checked_fact.error().detail;
        return checked_fact;
    }
    std::visit([&](const auto& fact) { keep(record.sequence, fact); }, record.fact);
    sequence_ = record.sequence;
    head_ = record.record_hash;
    return {};
}

auto exposure_ledger::snapshot() const -> exposure_snapshot {
    exposure_snapshot out{sequence_, head_, floor_, {}};
    for (const auto& [key, kept] : kept_) out.kept.push_back(kept);
    std::sort(out.kept.begin(), out.kept.end(),
              [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    return out;
}

auto exposure_ledger::restore(const exposure_snapshot& from) -> result<exposure_ledger> {
    const auto bad = [](std::string_view why) {
        return fail(errc::corrupt, "exposure.snapshot", std::string{why});
    };
    exposure_ledger out;
    if (from.kept.size() > most_exposures) return bad("it keeps too many exposures");
    std::uint64_t last = 0;
    for (const auto& kept : from.kept) {
        if (kept.sequence <= last || kept.sequence > from.sequence)
            return bad("its exposures are not in order");
        last = kept.sequence;
        const auto& made = kept.created.descriptor;
        GLOVE_TRY(const auto scope, scope_digest(made));
        if (scope != made.scope_digest) return bad("a scope digest is not that of its members");
        const auto* before = out.newest_of(made.exposure_id);
        if (made.generation == 0 ||
            (before != nullptr && made.generation <= before->created.descriptor.generation))
            return bad("a generation does not follow");
        if (out.requests_.contains(kept.created.request_id))
            return bad("a request id stands twice");
        out.keep(kept.sequence, kept.created);
        if (!kept.revoked) continue;
        if (subject_of(*kept.revoked) != subject_of(kept.created) ||
            out.requests_.contains(kept.revoked->request_id))
            return bad("a revocation is not of its exposure");
        out.keep(kept.sequence, *kept.revoked);
    }
    out.sequence_ = from.sequence;
    out.head_ = from.head_hash;
    out.floor_ = from.generation_floor;
    return out;
}

void exposure_ledger::forget_dead(std::uint64_t now_ms, std::size_t most_kept) {
    auto order = snapshot().kept;
    for (const auto& old : order) {
        if (kept_.size() <= most_kept) return;
        const auto at = kept_.find(subject_of(old.created));
        if (is_newest(at->second) && state_of(at->second, now_ms) == exposure_state::active)
            continue;
        floor_ = std::max(floor_, at->first.generation);
        requests_.erase(old.created.request_id);
        if (old.revoked) requests_.erase(old.revoked->request_id);
        kept_.erase(at);
    }
}

// --- decisions ---

auto exposure_ledger::replayed(std::string_view request_id, std::string_view digest) const
    -> result<std::optional<exposure_key>> {
    const auto found = requests_.find(request_id);
    if (found == requests_.end()) return std::nullopt;
    if (found->second.digest != digest)
        return fail(errc::conflict, "exposure.request",
                    "the request id was used for another request", "use a new one");
    return found->second.subject;
}

auto exposure_ledger::next_create(std::string_view request_id, const create_exposure& what,
                                  const exposed_source& source, std::uint64_t now_ms) const
    -> result<exposure_record> {
    const auto* last = newest_of(what.exposure_id);
    if (last != nullptr && state_of(*last, now_ms) == exposure_state::active)
        return fail(errc::conflict, "exposure.active",
                    "generation " + std::to_string(last->created.descriptor.generation) +
                        " of the exposure is active",
                    "revoke it first");
    if (full())
        return fail(errc::limit_exceeded, "exposure.capacity",
                    std::to_string(most_exposures) + " exposures are kept");
    if (what.ttl_secs > (most - now_ms) / 1000)
        return fail(errc::invalid_input, "exposure.ttl", "$.ttl_secs is beyond the end of time");
    exposure_created fact;
    auto& made = fact.descriptor;
    GLOVE_TRY(made.source_identity_digest,
              source_identity_digest(lasting_identity_of(source.facts)));
    GLOVE_TRY(fact.parent_identity_digest,
              source_identity_digest(lasting_identity_of(source.parent)));
    made.exposure_id = what.exposure_id;
    made.generation = next_generation(what.exposure_id);
    made.root_id = what.root_id;
    made.display_label = what.display_label;
    made.allowed_modes = what.allowed_modes;
    made.expires_at_ms = now_ms + what.ttl_secs * 1000;
    made.allowed_runtime_template_ids = what.allowed_runtime_template_ids;
    GLOVE_TRY(made.scope_digest, scope_digest(made));
    fact.request_id = request_id;
    fact.host_path = what.host_path;
    GLOVE_TRY(fact.request_digest, request_digest(request_id, what));
    return sealed({sequence_ + 1, std::move(fact), head_, {}});
}

auto exposure_ledger::next_revoke(std::string_view request_id, const revoke_exposure& what,
                                  std::uint64_t now_ms) const -> result<exposure_record> {
    const auto* kept = find({what.exposure_id, what.generation});
    if (kept == nullptr)
        return fail(errc::not_found, "exposure.unknown", "there is no such generation");
    if (kept->revoked) return fail(errc::wrong_state, "exposure.revoked", "it is revoked already");
    if (!is_newest(*kept))
        return fail(errc::wrong_state, "exposure.older", "it is not the newest generation");
    exposure_revoked fact{std::string{request_id}, {}, what.exposure_id, what.generation, now_ms};
    GLOVE_TRY(fact.request_digest, request_digest(request_id, what));
    return sealed({sequence_ + 1, std::move(fact), head_, {}});
}

} // namespace glove::supervisor
