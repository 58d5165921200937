// A rotation: the next file is complete and on the disk before it takes the name, and until then
// the present one is not touched. From the first change of a name on, an error poisons.
#include "journal/frames.hpp"
#include "journal/snapshot.hpp"
#include <algorithm>
#include <glove/journal/log.hpp>
#include <glove/wire/crypto.hpp>

namespace glove::journal {

namespace {

constexpr std::size_t piece = 256UL << 10; // written at once

[[nodiscard]] auto frames_bytes(std::span<const entry> live) -> std::uint64_t {
    std::uint64_t out = 0;
    for (const auto& one : live) out += one.bytes + frame_overhead;
    return out;
}

} // namespace

auto log::stored(const entry& which) -> result<std::string> {
    std::string frame(which.bytes + frame_overhead, '\0');
    GLOVE_TRY(const auto got, store_->read(which.offset, frame));
    std::string payload = frame.substr(frame_overhead / 2, which.bytes);
    std::string again;
    append_frame(again, payload);
    const auto where = "the record with the sequence " + std::to_string(which.sequence);
    if (got != frame.size() || again != frame)
        return fail(errc::corrupt, "journal.frame", where + " is not as it was written");
    GLOVE_TRY(const auto what, reader_->read(payload));
    if (what.sequence != which.sequence || what.kind != which.kind)
        return fail(errc::corrupt, "journal.record", where + " is another one now");
    return payload;
}

auto log::payload(std::uint64_t sequence) -> result<std::string> {
    const auto at = std::ranges::lower_bound(now_.records, sequence, {}, &entry::sequence);
    if (at == now_.records.end() || at->sequence != sequence)
        return fail(errc::not_found, "journal.sequence",
                    "there is no record with the sequence " + std::to_string(sequence));
    if (auto same = store_->check(); !same) return spoil(std::move(same).error());
    return stored(*at);
}

auto log::chosen(std::span<const std::uint64_t> live) const -> result<std::vector<entry>> {
    std::vector<entry> out;
    out.reserve(live.size());
    for (auto at = now_.records.begin(); const auto sequence : live) {
        at = std::ranges::find(at, now_.records.end(), sequence, &entry::sequence);
        if (at == now_.records.end())
            return fail(errc::invalid_input, "journal.rotate",
                        "sequence " + std::to_string(sequence) + " is not there, or not in order");
        out.push_back(*at++);
    }
    return out;
}

// Header and snapshot, then the records that are kept.
auto log::fill_next(std::string_view opening, std::span<const entry> live) -> result<> {
    GLOVE_CHECK(store_->start_next());
    std::string pending{opening};
    for (const auto& one : live) {
        GLOVE_TRY(const auto record, stored(one));
        append_frame(pending, record);
        if (pending.size() < piece) continue;
        GLOVE_CHECK(store_->append_next(pending));
        pending.clear();
    }
    if (!pending.empty()) GLOVE_CHECK(store_->append_next(pending));
    return store_->sync_next();
}

auto log::replace(std::string_view opening, std::span<const entry> live) -> result<> {
    contents next{.frames = 1 + live.size(),
                  .bytes = opening.size(),
                  .generation = now_.generation + 1,
                  .base = now_.head,
                  .head = now_.head};
    next.records.assign(live.begin(), live.end());
    for (auto& one : next.records) {
        const auto size = one.bytes + frame_overhead;
        one.offset = next.bytes;
        next.bytes += size;
        next.used[one.kind].records += 1;
        next.used[one.kind].bytes += size;
    }
    const auto names = [&]() -> result<> {
        GLOVE_CHECK(store_->keep_present());
        GLOVE_CHECK(store_->adopt_next());
        return store_->sync_names();
    };
    if (auto changed = names(); !changed) return spoil(std::move(changed).error());
    now_ = std::move(next);
    return {};
}

auto log::rotate(std::span<const std::uint64_t> live) -> result<> {
    GLOVE_CHECK(usable());
    GLOVE_TRY(const auto kept, chosen(live));
    if (auto same = store_->check(); !same) return spoil(std::move(same).error());
    snapshot first{.generation = now_.generation + 1,
                   .base = now_.head,
                   .live_records = kept.size(),
                   .live_bytes = frames_bytes(kept),
                   .live_digest = {}};
    GLOVE_TRY(auto hash, wire::sha256_stream::start());
    for (const auto& one : kept) {
        GLOVE_TRY(const auto record, stored(one));
        frame_.clear();
        append_frame(frame_, record);
        GLOVE_CHECK(hash.update(frame_));
    }
    GLOVE_TRY(const auto digest, std::move(hash).finish());
    first.live_digest = wire::to_hex(digest);
    auto opening = settings_.header();
    GLOVE_TRY(const auto text, encode(first, opening, *reader_));
    append_frame(opening, text);
    if (1 + kept.size() + owed_->records > limit_.records ||
        opening.size() + first.live_bytes + owed_->bytes > limit_.file_bytes)
        return fail(errc::limit_exceeded, "journal.rotate",
                    std::to_string(kept.size()) + " records to keep in " +
                        std::to_string(first.live_bytes) + " bytes, and what is owed, do not fit");
    GLOVE_CHECK(fill_next(opening, kept));
    return replace(opening, kept);
}

} // namespace glove::journal
