// Opening by a controller's anchor, pages, acknowledgements, and appends into room that was
// reserved. One mutex covers all but the flag of reconciliation.
#include "control/receipt_journal_state.hpp"
#include "control/refinement_fields.hpp"

namespace glove::control {

namespace {

[[nodiscard]] auto not_of_the_chain(std::string why) {
    return refuse(error_code::audit_reconciliation_failed, errc::conflict, "receipt.anchor",
                  std::move(why));
}

[[nodiscard]] auto terminal_of(const chained_receipt& of) -> terminal_envelope {
    const auto fill = [](const auto& e, const resource_receipt& receipt, bool refinement) {
        return terminal_envelope{.sequence = e.sequence,
                                 .key_id = e.key_id,
                                 .receipt_digest = e.receipt_digest,
                                 .previous_hmac = e.previous_hmac,
                                 .this_hmac = e.this_hmac,
                                 .termination_cause = std::string{to_string(receipt.cause)},
                                 .started_at_ms = receipt.started_at_ms,
                                 .finished_at_ms = receipt.finished_at_ms,
                                 .exit_code = receipt.exit_code,
                                 .refinement = refinement};
    };
    if (const auto* e = std::get_if<resource_envelope>(&of.envelope))
        return fill(*e, e->receipt, false);
    const auto& e = std::get<refinement_envelope>(of.envelope);
    return fill(e, e.receipt.resource, true);
}

[[nodiscard]] auto profile_of(const resource_receipt& of) -> const std::string& {
    return of.profile_digest;
}
[[nodiscard]] auto profile_of(const refinement_receipt& of) -> const std::string& {
    return of.resource.profile_digest;
}

} // namespace

auto receipt_journal::state::subject_of(std::string_view session_id, std::string_view plan_digest,
                                        std::string_view profile_digest) -> result<subject> {
    wire::digest_encoder out;
    out.str(session_id).str(plan_digest).str(profile_digest);
    GLOVE_TRY(const auto bytes, out.bytes());
    return wire::sha256(bytes);
}

auto receipt_journal::state::remember(const chained_receipt& what) -> result<> {
    GLOVE_TRY(const auto whose, std::visit(
                                    [](const auto& e) {
                                        return subject_of(e.session_id, e.controller_plan_digest,
                                                          profile_of(e.receipt));
                                    },
                                    what.envelope));
    by_subject.insert_or_assign(
        whose, std::visit([](const auto& e) { return e.sequence; }, what.envelope));
    return {};
}

auto receipt_journal::state::known(const subject& whose)
    -> result<std::optional<terminal_envelope>> {
    const auto at = by_subject.find(whose);
    if (at == by_subject.end()) return std::nullopt;
    const auto record = log->read(at->second);
    note_trouble();
    if (!record) return std::unexpected(record.error());
    return terminal_of(*record);
}

void receipt_journal::state::close() {
    reconciled = false;
    acknowledged = 0;
    by_subject.clear();
    log.reset();
    store.reset();
}

auto receipt_journal::state::open(const receipt_anchor& by) -> result<> {
    close();
    GLOVE_TRY(store, make());
    GLOVE_TRY(const auto there, store->size());
    journal::settings how{.form = journal::receipts,
                          .text = key.id(),
                          .file_bytes = file_bytes,
                          .missing = journal::absence::creates};
    GLOVE_TRY(auto opened,
              chain::open(
                  *store, std::move(how), receipt_codec{key},
                  [this](chained_receipt&& what, journal::origin) { return remember(what); },
                  journal::mark{by.sequence, by.head_hmac}));
    log.emplace(std::move(opened));
    GLOVE_CHECK(require_place(by));
    for (auto* const held : rooms) {
        GLOVE_TRY(held->room, log->core().reserve(1, held->bytes));
    }
    // A chain that was there and that the controller has to its end needs no acknowledgement.
    if (there && by.sequence == log->core().head().sequence) {
        acknowledged = by.sequence;
        reconciled = true;
    }
    return {};
}

auto receipt_journal::state::require_place(const receipt_anchor& of) -> result<> {
    const auto no = [&](const char* why, std::string remedy = {}) {
        return fail(errc::conflict, "receipt.anchor",
                    "sequence " + std::to_string(of.sequence) + ": " + why, std::move(remedy));
    };
    const auto& core = log->core();
    std::string own;
    if (of.sequence == core.head().sequence) {
        own = core.head().digest;
    } else if (of.sequence > core.head().sequence) {
        return no("the chain ends before it");
    } else if (of.sequence == core.base().sequence) {
        own = core.base().digest;
    } else {
        const auto record = log->read(of.sequence);
        if (!record && record.error().step == "journal.sequence")
            return no("the journal began anew after it", "look into the file before the rotation");
        GLOVE_CHECK(record);
        own = receipt_codec::facts_of(*record).digest;
    }
    if (!wire::equal_in_constant_time(own, of.head_hmac)) return no("the chain is another one");
    return {};
}

auto receipt_journal::state::anchor() const -> receipt_anchor {
    const auto& head = log->core().head();
    return {key.id(), head.sequence, head.digest};
}

void receipt_journal::state::note_trouble() {
    if (log && log->core().poisoned()) reconciled = false;
}

receipt_journal::receipt_journal(make_storage store, audit_key key, std::uint64_t file_bytes)
    : state_{std::make_shared<state>(std::move(store), std::move(key), file_bytes)} {}
receipt_journal::~receipt_journal() = default;

auto receipt_journal::key_id() const -> std::string { return state_->key.id(); }
auto receipt_journal::reconciled() const -> bool { return state_->reconciled; }

auto receipt_journal::page(const receipt_anchor& after, std::size_t limit) -> answer<receipt_page> {
    auto& my = *state_;
    const std::lock_guard lock{my.mutex};
    if (limit == 0)
        return refuse(error_code::invalid_request, errc::invalid_input, "receipt.page",
                      "a page of no receipts");
    if (after.key_id != my.key.id()) return not_of_the_chain("it is another key's");
    if (!my.log || my.log->core().poisoned()) {
        if (auto opened = my.open(after); !opened) {
            my.close();
            return refuse(error_code::audit_reconciliation_failed, std::move(opened).error());
        }
    } else if (auto place = my.require_place(after); !place) {
        my.note_trouble();
        return refuse(error_code::audit_reconciliation_failed, std::move(place).error());
    }
    auto out = my.read_page(after.sequence, std::min(limit, most_receipts_of_a_page));
    my.note_trouble();
    return or_refuse(std::move(out), error_code::audit_reconciliation_failed);
}

auto receipt_journal::state::read_page(std::uint64_t after, std::size_t limit)
    -> result<receipt_page> {
    receipt_page out;
    out.local_anchor = anchor();
    const auto records = log->core().records();
    auto at = std::ranges::upper_bound(records, after, {}, &journal::entry::sequence);
    for (; at != records.end() && limit > 0; ++at, --limit) {
        GLOVE_TRY(auto record, log->read(at->sequence));
        if (auto* e = std::get_if<resource_envelope>(&record.envelope))
            out.envelopes.push_back(std::move(*e));
        else
            out.refinement_envelopes.push_back(
                std::get<refinement_envelope>(std::move(record.envelope)));
    }
    out.has_more = at != records.end();
    return out;
}

auto receipt_journal::acknowledge(const receipt_anchor& head) -> answer<receipt_anchor> {
    auto& my = *state_;
    const std::lock_guard lock{my.mutex};
    if (!my.log || my.log->core().poisoned())
        return refuse(error_code::audit_reconciliation_required, errc::wrong_state,
                      "receipt.closed", "a page opens the journal");
    if (head.key_id != my.key.id() || head.sequence != my.log->core().head().sequence ||
        !wire::equal_in_constant_time(head.head_hmac, my.log->core().head().digest))
        return not_of_the_chain("it is not the head, which is at the sequence " +
                                std::to_string(my.log->core().head().sequence));
    my.acknowledged = head.sequence;
    my.reconciled = true;
    return my.anchor();
}

// Everything that was not acknowledged stays, and the record that was acknowledged last, by which
// its controller proves that it has the chain; and of those before it, what a quarter holds.
auto receipt_journal::state::rotate() -> result<> {
    const auto records = log->core().records();
    const auto limit = (file_bytes == 0 ? journal::receipts.most.file_bytes : file_bytes) / 4;
    std::uint64_t bytes = 0;
    auto first = records.size();
    for (; first > 0; --first) {
        const auto& one = records[first - 1];
        bytes += one.bytes + journal::frame_overhead;
        if (one.sequence < acknowledged && bytes > limit) break;
    }
    if (first == 0)
        return fail(errc::limit_exceeded, "journal.full",
                    "no receipt can be let go before a controller has acknowledged it");
    std::vector<std::uint64_t> live;
    for (const auto& one : records.subspan(first)) live.push_back(one.sequence);
    GLOVE_CHECK(log->core().rotate(live));
    const auto oldest = live.empty() ? log->core().head().sequence + 1 : live.front();
    std::erase_if(by_subject, [&](const auto& one) { return one.second < oldest; });
    return {};
}

auto receipt_journal::reserve(const supervisor::session_plan& plan,
                              const supervisor::session_rules& rules) -> answer<receipt_room> {
    auto bytes = longest_receipt(plan, rules);
    if (!bytes) return refuse(error_code::invalid_plan, std::move(bytes).error());
    auto& my = *state_;
    const std::lock_guard lock{my.mutex};
    if (!my.reconciled)
        return refuse(error_code::audit_reconciliation_required, errc::wrong_state,
                      "receipt.reconcile", "no controller has shown that it has this chain");
    auto room = my.log->core().reserve(1, *bytes);
    if (!room && journal::lacks_room(room.error())) {
        if (auto rotated = my.rotate(); !rotated) {
            my.note_trouble();
            return refuse(error_code::session_capacity, std::move(rotated).error());
        }
        room = my.log->core().reserve(1, *bytes);
    }
    if (!room) return refuse(error_code::session_capacity, std::move(room).error());
    auto held = std::make_unique<receipt_room::held>(state_, *std::move(room), *bytes);
    my.rooms.insert(held.get());
    return receipt_room{std::move(held)};
}

template<class Receipt>
auto receipt_journal::state::put(envelope_of<Receipt> what, receipt_room::held& from)
    -> result<terminal_envelope> {
    if (!log) return fail(errc::wrong_state, "receipt.closed", "no page has opened the journal");
    GLOVE_TRY(const auto whose,
              subject_of(what.session_id, what.controller_plan_digest, profile_of(what.receipt)));
    GLOVE_TRY(const auto digest, receipt_digest(what.receipt));
    GLOVE_TRY(auto before, known(whose));
    if (before && before->receipt_digest == digest) return *std::move(before);
    auto appended = log->append(chained_receipt{std::move(what)}, from.room);
    note_trouble();
    GLOVE_CHECK(appended);
    GLOVE_CHECK(remember(*appended));
    return terminal_of(*appended);
}

template<class Receipt>
auto receipt_journal::append_any(envelope_of<Receipt> what, receipt_room& room)
    -> answer<terminal_envelope> {
    if (room.held_ == nullptr || room.held_->journal != state_)
        return refuse(error_code::session_storage_failed, errc::wrong_state, "receipt.room",
                      "no room of this journal was reserved");
    auto done = [&] {
        const std::lock_guard lock{state_->mutex};
        return state_->put(std::move(what), *room.held_);
    }();
    if (done) room.held_.reset();
    return or_refuse(std::move(done), error_code::session_storage_failed);
}

auto receipt_journal::append(std::string_view session_id, std::string_view controller_plan_digest,
                             resource_receipt what, receipt_room&& room)
    -> answer<terminal_envelope> {
    resource_envelope out;
    out.session_id = session_id;
    out.controller_plan_digest = controller_plan_digest;
    out.receipt = std::move(what);
    return append_any(std::move(out), room);
}
auto receipt_journal::append(std::string_view session_id, std::string_view controller_plan_digest,
                             refinement_receipt what, receipt_room&& room)
    -> answer<terminal_envelope> {
    refinement_envelope out;
    out.session_id = session_id;
    out.controller_plan_digest = controller_plan_digest;
    out.receipt = std::move(what);
    return append_any(std::move(out), room);
}

auto receipt_journal::find(std::string_view session_id, std::string_view controller_plan_digest,
                           std::string_view profile_digest) const
    -> result<std::optional<terminal_envelope>> {
    const std::lock_guard lock{state_->mutex};
    GLOVE_TRY(const auto whose,
              state::subject_of(session_id, controller_plan_digest, profile_digest));
    return state_->known(whose);
}

receipt_room::held::held(std::shared_ptr<receipt_journal::state> of, journal::reservation taken,
                         std::size_t size)
    : journal{std::move(of)}, room{std::move(taken)}, bytes{size} {}
receipt_room::held::~held() {
    const std::lock_guard lock{journal->mutex};
    journal->rooms.erase(this);
    room = {};
}

receipt_room::receipt_room(std::unique_ptr<held> owned) : held_{std::move(owned)} {}
receipt_room::receipt_room(receipt_room&&) noexcept = default;
auto receipt_room::operator=(receipt_room&&) noexcept -> receipt_room& = default;
receipt_room::~receipt_room() = default;

} // namespace glove::control
