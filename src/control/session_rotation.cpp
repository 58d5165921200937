// Making room: what a new file of the journal keeps, and what is forgotten then.
//
// Kept for sure: all records of sessions that are not over, with all their intents. As far as they
// take no more than half of what is left beside that and what is owed, these come next: sessions
// with an intent that still waits for the controller; those whose plan has not expired, because
// their keys may be sent again; the newest of the others, `most_kept` at most.
#include "control/session_room.hpp"
#include "control/session_state.hpp"
#include <algorithm>

namespace glove::control {

namespace {

using journal::frame_overhead;
using journal::share;

struct candidate {
    const kept_session* session = nullptr;
    std::vector<std::uint64_t> waiting; // intents, by sequence
    bool unexpired = false;

    [[nodiscard]] auto newest() const -> std::uint64_t { return session->records.back(); }
    [[nodiscard]] auto rank() const -> int { return !waiting.empty() ? 0 : unexpired ? 1 : 2; }
};

class chooser {
public:
    chooser(const session_book& book, std::span<const journal::entry> records)
        : book_{book}, records_{records} {}

    // With the room that is reserved, or will be, for what it still owes.
    void keep_living(const kept_session& one, const owed_room* room) {
        take(one, used_);
        owe(records_left(one.now.state),
            room != nullptr ? room->bytes_each : longest_record(one.now, one.plan));
    }
    void keep_intent(std::uint64_t sequence, const kept_intent& what, const owed_room* room) {
        add(sequence, used_);
        out_.intents.insert(sequence);
        if (what.decision != 0) return add(what.decision, used_);
        const auto* session = book_.session(what.item.context.session_id);
        owe(1, room != nullptr ? room->bytes_each : longest_decision(session->now, session->plan));
    }
    // False: it takes more than `most`.
    [[nodiscard]] auto keep_over(const candidate& one, const share& most) -> bool {
        share more;
        for (const auto sequence : one.session->records) add_size(sequence, more);
        for (const auto sequence : one.waiting) {
            add_size(sequence, more);
            more.records += 1;
            more.bytes += longest_decision(one.session->now, one.session->plan) + frame_overhead;
        }
        if (extra_.records + more.records > most.records || extra_.bytes + more.bytes > most.bytes)
            return false;
        extra_.records += more.records;
        extra_.bytes += more.bytes;
        share ignored;
        take(*one.session, ignored);
        for (const auto sequence : one.waiting) {
            add(sequence, ignored);
            out_.intents.insert(sequence);
        }
        return true;
    }
    // Half of what is left of a file.
    [[nodiscard]] auto half_of_rest(const journal::bounds& file) const -> share {
        return {(file.records - std::min(file.records, used_.records)) / 2,
                (file.file_bytes - std::min(file.file_bytes, used_.bytes)) / 2};
    }
    [[nodiscard]] auto done() && -> keeping {
        std::ranges::sort(out_.sequences);
        return std::move(out_);
    }

private:
    void take(const kept_session& one, share& of) {
        out_.sessions.insert(one.now.session_id);
        for (const auto sequence : one.records) add(sequence, of);
    }
    void add(std::uint64_t sequence, share& of) {
        add_size(sequence, of);
        out_.sequences.push_back(sequence);
    }
    void add_size(std::uint64_t sequence, share& of) const {
        const auto at = std::ranges::lower_bound(records_, sequence, {}, &journal::entry::sequence);
        of.records += 1;
        of.bytes += at->bytes + frame_overhead;
    }
    void owe(std::size_t records, std::size_t bytes_each) {
        used_.records += records;
        used_.bytes += records * (bytes_each + frame_overhead);
    }

    const session_book& book_;
    std::span<const journal::entry> records_;
    keeping out_;
    share used_;  // for sure, with what is owed
    share extra_; // beside that
};

} // namespace

template<class Map, class Key> [[nodiscard]] static auto room_in(const Map& rooms, const Key& of)
    -> const owed_room* {
    const auto found = rooms.find(of);
    return found == rooms.end() ? nullptr : &found->second;
}

auto session_registry::state::what_to_keep() const -> keeping {
    chooser choose{book, log->core().records()};
    std::map<std::string, candidate, std::less<>> over;
    const auto now = now_ms();
    for (const auto& [id, one] : book.sessions()) {
        if (is_over(one)) over.emplace(id, candidate{&one, {}, now < one.now.expires_at_ms});
        else choose.keep_living(one, room_in(owed, id));
    }
    for (const auto& [sequence, one] : book.intents()) {
        const auto ended = over.find(one.item.context.session_id);
        if (ended == over.end())
            choose.keep_intent(sequence, one, room_in(owed_decisions, sequence));
        else if (one.decision == 0 && now < one.item.context.expires_at_ms)
            ended->second.waiting.push_back(sequence);
    }
    std::vector<const candidate*> order;
    for (const auto& [id, one] : over) order.push_back(&one);
    std::ranges::sort(order, [](const candidate* a, const candidate* b) {
        return std::pair{a->rank(), ~a->newest()} < std::pair{b->rank(), ~b->newest()};
    });
    const auto most = choose.half_of_rest(form.limit());
    std::size_t kept = 0;
    for (const auto* one : order) {
        if (one->rank() == 2 && kept >= how.most_kept) break;
        if (!choose.keep_over(*one, most)) break;
        ++kept;
    }
    return std::move(choose).done();
}

auto session_registry::state::make_room(wanted what) -> result<bool> {
    const auto kept = what_to_keep();
    const auto records = log->core().records();
    if (kept.sequences.size() == records.size()) return false;
    if (what == wanted::room_for_intents) {
        const auto frees_intent = [&](const journal::entry& one) {
            return one.kind == intent_records &&
                   !std::ranges::binary_search(kept.sequences, one.sequence);
        };
        if (std::ranges::none_of(records, frees_intent)) return false;
    }
    GLOVE_CHECK(log->core().rotate(kept.sequences));
    const std::unique_lock lock{looking};
    std::erase_if(owed, [&](const auto& one) { return !kept.sessions.contains(one.first); });
    std::erase_if(owed_decisions,
                  [&](const auto& one) { return !kept.intents.contains(one.first); });
    std::erase_if(unsettled, [&](const auto& id) { return !kept.sessions.contains(id); });
    book.forget_but(kept);
    return true;
}

auto session_registry::state::reserve(std::size_t records, std::size_t bytes_each)
    -> result<owed_room> {
    auto out = log->core().reserve(records, bytes_each);
    if (!out && journal::lacks_room(out.error())) {
        GLOVE_TRY(const bool more, make_room(wanted::room));
        if (more) out = log->core().reserve(records, bytes_each);
    }
    if (!out) return std::unexpected(std::move(out).error());
    return owed_room{*std::move(out), bytes_each};
}

auto session_registry::state::owe(const kept_session& what) -> result<> {
    const auto id = what.now.session_id;
    GLOVE_TRY(auto room,
              reserve(records_left(what.now.state), longest_record(what.now, what.plan)));
    owed.insert_or_assign(id, std::move(room));
    return {};
}

auto session_registry::state::owe_decision(const kept_intent& what) -> result<> {
    const auto sequence = what.item.sequence;
    const auto& session = *book.session(what.item.context.session_id);
    GLOVE_TRY(auto room, reserve(1, longest_decision(session.now, session.plan)));
    if (book.intents().contains(sequence))
        owed_decisions.insert_or_assign(sequence, std::move(room));
    return {};
}

} // namespace glove::control
