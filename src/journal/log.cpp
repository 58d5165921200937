// Opening and appending. Whatever a caller may get wrong is found before the first byte is written;
// from then on everything succeeds, or the log is of no more use.
#include "journal/frames.hpp"
#include "journal/replay.hpp"
#include "journal/snapshot.hpp"
#include <algorithm>
#include <glove/wire/grammar.hpp>
#include <limits>

namespace glove::journal {

namespace {

[[nodiscard]] auto check_settings(const settings& how) -> result<> {
    const auto limit = how.limit();
    const auto& form = how.form;
    const char* defect = nullptr;
    if (how.text.size() != form.text_bytes) defect = "the text of its header has the wrong length";
    else if (limit.file_bytes < form.least_file_bytes) defect = "its file may be too small";
    else if (limit.file_bytes > form.most.file_bytes) defect = "its file may be too large";
    else if (limit.records > form.most.records) defect = "it may hold too many records";
    if (defect != nullptr)
        return fail(errc::invalid_input, "journal.settings",
                    std::string{form.name} + ": " + defect);
    return {};
}

[[nodiscard]] auto torn_error(const replayed& found) -> std::unexpected<error> {
    return fail(errc::corrupt, "journal.torn",
                place_text(found.found.frames + 1, found.found.bytes) + " is not whole, of " +
                    std::to_string(found.file_bytes - found.found.bytes) + " bytes",
                "glove journal repair shows what it would cut off, and does it");
}

[[nodiscard]] auto check_witness(const replayed& found, const mark& witness) -> result<> {
    if (found.witness == standing::met || found.witness == standing::behind) return {};
    const bool gone = found.witness == standing::ahead;
    return fail(errc::corrupt, "journal.truncated",
                "record with the sequence " + std::to_string(witness.sequence) +
                    (gone ? " was acknowledged and is gone; the last is "
                          : " is not the one that was acknowledged; the last is ") +
                    std::to_string(found.found.head.sequence));
}

[[nodiscard]] auto check_vouched(const replayed& found, const std::optional<mark>& vouched)
    -> result<> {
    if (!vouched || found.vouched == standing::met) return {};
    return fail(errc::conflict, "journal.anchor",
                "the record with the sequence " + std::to_string(vouched->sequence) +
                    " is not in the chain as it was vouched for; the last is " +
                    std::to_string(found.found.head.sequence));
}

} // namespace

auto log::spoil(error why) -> std::unexpected<error> {
    if (!poison_) poison_ = why;
    return std::unexpected(std::move(why));
}

auto log::usable() const -> result<> {
    if (!poison_) return {};
    return fail(errc::wrong_state, "journal.poisoned",
                "nothing more is written after " + std::string{poison_->step} +
                    (poison_->detail.empty() ? "" : ": ") + poison_->detail,
                "open the journal again");
}

auto log::open(storage& store, settings how, record_reader& reader,
               const std::optional<mark>& vouched) -> result<log> {
    GLOVE_CHECK(check_settings(how));
    log opened{store, std::move(how), reader};
    GLOVE_CHECK(opened.load(vouched));
    return opened;
}

auto log::load(const std::optional<mark>& vouched) -> result<> {
    GLOVE_TRY(const auto note, store_->witness()); // before the size: it may only be older
    GLOVE_TRY(const auto witness, read_witness(note));
    GLOVE_TRY(auto size, store_->size());
    if (!size) {
        replayed nothing;
        if (witness.sequence > 0) nothing.witness = standing::ahead;
        if (vouched && *vouched != mark{}) nothing.vouched = standing::ahead;
        GLOVE_CHECK(check_witness(nothing, witness));
        GLOVE_CHECK(check_vouched(nothing, vouched));
        GLOVE_CHECK(create());
        GLOVE_TRY(size, store_->size());
    }
    replayed found;
    const expected marks{.witness = witness, .vouched = vouched.value_or(mark{})};
    GLOVE_CHECK(replay(*store_, settings_, *reader_, marks, size.value_or(0), found));
    GLOVE_CHECK(check_witness(found, witness));
    GLOVE_CHECK(check_vouched(found, vouched));
    if (found.tail != frame_scanner::found::end) {
        // After a power cut, what was being appended may read as zeros as well.
        const bool allowed = vouched && settings_.form.tail == torn_tail::cut_when_vouched;
        if (!allowed) return torn_error(found);
        GLOVE_CHECK(store_->truncate(found.found.bytes));
    }
    GLOVE_CHECK(store_->check());
    // Somebody may have died between writing and syncing, and what was read is acted on now.
    GLOVE_CHECK(store_->sync());
    GLOVE_CHECK(store_->sync_names());
    now_ = std::move(found.found);
    GLOVE_TRY(const auto text, witness_text(now_.head));
    if (text != note) GLOVE_CHECK(store_->set_witness(text));
    return {};
}

auto log::create() -> result<> {
    if (settings_.missing == absence::refused)
        return fail(errc::not_found, "journal.absent",
                    "there is no " + std::string{settings_.form.name});
    // With a whole header from the moment it has its name: anything shorter was cut.
    GLOVE_CHECK(store_->start_next());
    GLOVE_CHECK(store_->append_next(settings_.header()));
    GLOVE_CHECK(store_->sync_next());
    GLOVE_CHECK(store_->adopt_next());
    return store_->sync_names();
}

auto log::room() const noexcept -> share {
    const auto taken = now_.frames + owed_->records;
    const auto bytes = now_.bytes + owed_->bytes;
    return {.records = limit_.records - std::min(limit_.records, taken),
            .bytes = limit_.file_bytes - std::min(limit_.file_bytes, bytes)};
}

auto log::reserve(std::size_t records, std::size_t bytes_each) -> result<reservation> {
    const auto free = room();
    const auto each = bytes_each + frame_overhead;
    if (bytes_each == 0 || bytes_each > limit_.record_bytes)
        return fail(errc::invalid_input, "journal.owed",
                    "a record of " + std::to_string(bytes_each) + " bytes can never be written");
    if (records > free.records || records > free.bytes / each)
        return fail(errc::limit_exceeded, "journal.full",
                    std::to_string(records) + " records of " + std::to_string(bytes_each) +
                        " bytes are asked for, and there is room for " +
                        std::to_string(free.records) + " in " + std::to_string(free.bytes));
    return reservation{owed_, records, bytes_each};
}

auto log::check_record(std::string_view payload, const facts& what) const -> result<> {
    if (payload.empty() || payload.size() > limit_.record_bytes)
        return fail(errc::invalid_input, "journal.record",
                    std::to_string(payload.size()) + " bytes, and 1 to " +
                        std::to_string(limit_.record_bytes) + " are allowed");
    if (is_snapshot(payload) || what.kind >= kinds ||
        !wire::conforms(wire::grammar::hex64, what.digest))
        return fail(errc::invalid_input, "journal.record", "it is not a record of this journal");
    if (what.sequence != now_.head.sequence + 1 || what.previous != now_.head.digest)
        return fail(errc::wrong_state, "journal.place",
                    "the record follows " + std::to_string(what.sequence - 1) +
                        ", and the last one is " + std::to_string(now_.head.sequence));
    return {};
}

auto log::check_room(const facts& what, std::size_t bytes) const -> result<> {
    const auto free = room();
    if (free.records == 0 || free.bytes < bytes)
        return fail(errc::limit_exceeded, "journal.full",
                    std::string{settings_.form.name} + ": " + std::to_string(bytes) +
                        " bytes for one more record, and there is room for " +
                        std::to_string(free.records) + " in " + std::to_string(free.bytes));
    const auto& quota = settings_.quota.at(what.kind);
    const auto& used = now_.used.at(what.kind);
    if (what.kind == 0 || quota.records == 0) return {};
    if (used.records >= quota.records || used.bytes + bytes > quota.bytes)
        return fail(errc::limit_exceeded, "journal.quota",
                    std::to_string(used.records) + " records of this kind take " +
                        std::to_string(used.bytes) + " bytes, and " +
                        std::to_string(quota.records) + " in " + std::to_string(quota.bytes) +
                        " are allowed");
    return {};
}

auto log::append(std::string_view payload, const facts& what) -> result<> {
    GLOVE_CHECK(usable());
    GLOVE_CHECK(check_record(payload, what));
    GLOVE_CHECK(check_room(what, payload.size() + frame_overhead));
    return write(payload, what);
}

auto log::append(std::string_view payload, const facts& what, reservation& from) -> result<> {
    GLOVE_CHECK(usable());
    GLOVE_CHECK(check_record(payload, what));
    if (from.book_ != owed_ || from.left_ == 0 || payload.size() > from.bytes_each_)
        return fail(errc::invalid_input, "journal.owed",
                    "no room was reserved for " + std::to_string(payload.size()) + " bytes");
    GLOVE_CHECK(write(payload, what));
    from.settle(1);
    return {};
}

auto log::write(std::string_view payload, const facts& what) -> result<> {
    frame_.clear();
    append_frame(frame_, payload);
    mark head{what.sequence, what.digest};
    GLOVE_TRY(const auto note, witness_text(head));
    if (auto same = store_->check(); !same) return spoil(std::move(same).error());
    if (auto written = store_->append(frame_); !written) {
        const bool cut = cut_back().has_value();
        if (cut && settings_.form.write == failed_write::cut_back) return written;
        return spoil(std::move(written).error());
    }
    if (auto synced = store_->sync(); !synced) {
        (void)cut_back(); // so that nothing is in doubt, if that can be
        return spoil(std::move(synced).error());
    }
    if (auto noted = store_->set_witness(note); !noted) return spoil(std::move(noted).error());
    now_.records.push_back({.sequence = what.sequence,
                            .offset = now_.bytes,
                            .bytes = static_cast<std::uint32_t>(payload.size()),
                            .kind = what.kind});
    now_.used[what.kind].records += 1;
    now_.used[what.kind].bytes += frame_.size();
    ++now_.frames;
    now_.bytes += frame_.size();
    now_.head = std::move(head);
    return {};
}

auto log::cut_back() -> result<> {
    GLOVE_CHECK(store_->truncate(now_.bytes));
    return store_->sync();
}

reservation::reservation(std::shared_ptr<ledger> book, std::size_t records, std::size_t bytes_each)
    : book_{std::move(book)}, left_{records}, bytes_each_{bytes_each} {
    book_->records += records;
    book_->bytes += records * (bytes_each_ + frame_overhead);
}

reservation::~reservation() { settle(left_); }

void reservation::settle(std::size_t records) noexcept {
    if (book_ == nullptr) return;
    left_ -= records;
    book_->records -= records;
    book_->bytes -= records * (bytes_each_ + frame_overhead);
}

void reservation::swap(reservation& other) noexcept {
    std::swap(book_, other.book_);
    std::swap(left_, other.left_);
    std::swap(bytes_each_, other.bytes_each_);
}

} // namespace glove::journal
