// Room for exposures: what is owed, what a creation lacks, and the file that begins anew when too
// much of it is dead.
#include "control/exposure_store_state.hpp"
#include <algorithm>
#include <glove/control/protocol.hpp>
#include <limits>
#include <utility>

namespace glove::control {

using namespace supervisor;

namespace {

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

} // namespace

auto catalog_size::of(const exposure_ledger& ledger) -> result<catalog_size> {
    catalog_size out;
    for (const auto* kept : ledger.newest()) GLOVE_CHECK(out.show(kept->created.descriptor));
    return out;
}

auto catalog_size::with(const exposure_descriptor& more) const -> result<std::size_t> {
    GLOVE_TRY(const auto bytes, shown_bytes(more));
    const auto before = each_.find(more.exposure_id);
    return all_ + bytes - (before == each_.end() ? 0 : before->second);
}

auto catalog_size::show(const exposure_descriptor& more) -> result<> {
    GLOVE_TRY(const auto bytes, shown_bytes(more));
    auto& its = each_[more.exposure_id];
    all_ = all_ - its + bytes;
    its = bytes;
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

} // namespace glove::control
