// The one durable log: records that are acknowledged are on the disk, in order, and stay.
//
// Guarantees: a record is acknowledged after it was written and synced, and only whole; a journal
// that is corrupt, reordered, duplicated, truncated or changed by others is refused, and the error
// names the record; after a failed write or sync nothing more is written until the journal was
// opened again; what is owed fits, whatever else is appended; a rotation leaves the old file or the
// whole new one under the name. Nothing here is safe to share between threads.
//
// Error steps: journal.settings, journal.absent, journal.header, journal.size, journal.count,
// journal.frame, journal.record, journal.order, journal.chain, journal.snapshot, journal.torn,
// journal.truncated, journal.anchor, journal.witness, journal.place, journal.full, journal.quota,
// journal.owed, journal.rotate, journal.sequence, journal.poisoned, and those of the storage.
#pragma once
#include <glove/journal/format.hpp>
#include <glove/journal/record_reader.hpp>
#include <glove/journal/storage.hpp>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace glove::journal {

class log;

// Whether it is for want of room in the journal itself: nothing was written, and a rotation may
// help. A disk that is full is another matter: the system says so.
[[nodiscard]] inline auto lacks_room(const error& why) noexcept -> bool {
    return why.code == errc::limit_exceeded && why.os == 0;
}
// Of these: the record's kind has used up its quota, so that only what frees records of it helps.
[[nodiscard]] inline auto is_over_quota(const error& why) noexcept -> bool {
    return lacks_room(why) && why.step == "journal.quota";
}

// Room for records that are owed: `left` more of them fit. What is not used is given back at the
// end. It outlives a rotation; after a restart its owner reserves again, which always fits.
class reservation {
public:
    reservation() = default;
    reservation(reservation&& other) noexcept { swap(other); }
    auto operator=(reservation&& other) noexcept -> reservation& {
        reservation{std::move(other)}.swap(*this);
        return *this;
    }
    ~reservation();
    [[nodiscard]] auto left() const noexcept -> std::size_t { return left_; }

private:
    friend class log;
    struct ledger {
        std::size_t records = 0;
        std::uint64_t bytes = 0;
    };
    reservation(std::shared_ptr<ledger> book, std::size_t records, std::size_t bytes_each);
    void settle(std::size_t records) noexcept;
    void swap(reservation& other) noexcept;

    std::shared_ptr<ledger> book_;
    std::size_t left_ = 0;
    std::size_t bytes_each_ = 0; // of the payload
};

// Where a record is.
struct entry {
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0; // of its frame
    std::uint32_t bytes = 0;  // of its payload
    std::uint8_t kind = 0;
};

// What a file holds.
struct contents {
    std::vector<entry> records{}; // without the snapshot's own
    std::size_t frames = 0;       // with it
    std::uint64_t bytes = 0;      // header and whole frames
    std::uint64_t generation = 1;
    mark base{}; // where the chain of this file goes on from
    mark head{};
    std::array<share, kinds> used{};
};

class log {
public:
    // Replays all records to `reader`, which must outlive the log, as must `store`. With `vouched`
    // that record must be in the chain.
    [[nodiscard]] static auto open(storage& store, settings how, record_reader& reader,
                                   const std::optional<mark>& vouched = {}) -> result<log>;

    // What the next record must follow: its sequence is one more.
    [[nodiscard]] auto head() const noexcept -> const mark& { return now_.head; }
    // Where the chain of this file goes on from: records up to here are gone, but for those that
    // the last rotation kept. The default mark in a file that no rotation made.
    [[nodiscard]] auto base() const noexcept -> const mark& { return now_.base; }
    [[nodiscard]] auto generation() const noexcept -> std::uint64_t { return now_.generation; }
    [[nodiscard]] auto records() const noexcept -> std::span<const entry> { return now_.records; }
    [[nodiscard]] auto used(std::uint8_t kind) const -> share { return now_.used.at(kind); }
    // What is left for records that nobody reserved room for.
    [[nodiscard]] auto room() const noexcept -> share;
    [[nodiscard]] auto poisoned() const noexcept -> bool { return poison_.has_value(); }

    [[nodiscard]] auto reserve(std::size_t records, std::size_t bytes_each) -> result<reservation>;
    // `what` are the facts of `payload`.
    [[nodiscard]] auto append(std::string_view payload, const facts& what) -> result<>;
    [[nodiscard]] auto append(std::string_view payload, const facts& what, reservation& from)
        -> result<>;
    // The record's payload, read and checked again.
    [[nodiscard]] auto payload(std::uint64_t sequence) -> result<std::string>;
    // A new file with a snapshot, the records of these sequences (ascending), and nothing else; the
    // chain goes on. The old file is kept under a second name until the next rotation.
    [[nodiscard]] auto rotate(std::span<const std::uint64_t> live) -> result<>;

private:
    log(storage& store, settings how, record_reader& reader)
        : store_{&store}, reader_{&reader}, settings_{std::move(how)}, limit_{settings_.limit()} {}
    [[nodiscard]] auto create() -> result<>;
    [[nodiscard]] auto load(const std::optional<mark>& vouched) -> result<>;
    [[nodiscard]] auto write(std::string_view payload, const facts& what) -> result<>;
    [[nodiscard]] auto check_record(std::string_view payload, const facts& what) const -> result<>;
    [[nodiscard]] auto check_room(const facts& what, std::size_t bytes) const -> result<>;
    [[nodiscard]] auto cut_back() -> result<>;
    [[nodiscard]] auto usable() const -> result<>;
    [[nodiscard]] auto chosen(std::span<const std::uint64_t> live) const
        -> result<std::vector<entry>>;
    [[nodiscard]] auto stored(const entry& which) -> result<std::string>;
    [[nodiscard]] auto fill_next(std::string_view opening, std::span<const entry> live) -> result<>;
    [[nodiscard]] auto replace(std::string_view opening, std::span<const entry> live) -> result<>;
    auto spoil(error why) -> std::unexpected<error>;

    storage* store_;
    record_reader* reader_;
    settings settings_;
    bounds limit_;
    contents now_;
    std::shared_ptr<reservation::ledger> owed_ = std::make_shared<reservation::ledger>();
    std::optional<error> poison_; // what happened
    std::string frame_;           // reused
};

} // namespace glove::journal
