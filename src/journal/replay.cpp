// Each record is read by its codec, then held against its place in the chain, and only then
// applied.
#include "journal/replay.hpp"
#include "journal/snapshot.hpp"
#include <glove/base/numbers.hpp>
#include <glove/base/text.hpp>
#include <glove/wire/crypto.hpp>
#include <glove/wire/grammar.hpp>
#include <limits>

namespace glove::journal {

namespace {

using scanned = frame_scanner::step;

class replayer {
public:
    replayer(storage& store, const settings& how, record_reader& reader, const expected& marks,
             replayed& out)
        : store_{store}, how_{how}, limit_{how.limit()}, reader_{reader}, marks_{marks}, out_{out},
          now_{out.found} {}

    [[nodiscard]] auto run() -> result<> {
        GLOVE_CHECK(check_header());
        frame_scanner frames{store_, now_.bytes, out_.file_bytes, limit_.record_bytes};
        for (;;) {
            GLOVE_TRY(const auto step, frames.next());
            out_.tail = step.what;
            if (step.what != frame_scanner::found::frame) break;
            GLOVE_CHECK(take(step));
        }
        if (live_left_ > 0)
            return fail(errc::corrupt, "journal.snapshot",
                        "the file ends before the records that its snapshot lists");
        out_.witness = judge(marks_.witness, witness_met_);
        out_.vouched = judge(marks_.vouched, vouched_met_);
        return {};
    }

private:
    [[nodiscard]] auto check_header() -> result<> {
        const auto wanted = how_.header();
        std::string header(wanted.size(), '\0');
        if (out_.file_bytes > limit_.file_bytes)
            return fail(errc::limit_exceeded, "journal.size",
                        std::to_string(out_.file_bytes) + " bytes, and " +
                            std::to_string(limit_.file_bytes) + " are allowed");
        GLOVE_TRY(const auto got, store_.read(0, header));
        if (got < header.size() || !header.starts_with(how_.form.magic))
            return fail(errc::corrupt, "journal.header",
                        "the file does not begin as a " + std::string{how_.form.name} + " does");
        if (header != wanted)
            return fail(errc::corrupt, "journal.header",
                        "the file belongs to " + in_quotes(header.substr(how_.form.magic.size())) +
                            ", not to " + in_quotes(how_.text));
        now_.bytes = header.size();
        return {};
    }

    [[nodiscard]] auto take(const scanned& step) -> result<> {
        if (now_.frames == limit_.records)
            return fail(errc::limit_exceeded, "journal.count",
                        place_text(step.number, step.offset) + ": no more than " +
                            std::to_string(limit_.records) + " are allowed");
        if (step.number == 1 && is_snapshot(step.payload)) {
            GLOVE_CHECK(begin_with(step));
        } else {
            GLOVE_CHECK(record(step));
        }
        ++now_.frames;
        now_.bytes = step.offset + step.frame.size();
        if (live_left_ == 0 && live_hash_) return end_live();
        return {};
    }

    [[nodiscard]] auto begin_with(const scanned& step) -> result<> {
        auto read = decode_snapshot(step.payload, how_.header(), reader_);
        if (!read) return wrapped("journal.snapshot", step, read.error());
        snapshot_ = *std::move(read);
        now_.generation = snapshot_.generation;
        now_.base = snapshot_.base;
        now_.head = snapshot_.base;
        live_left_ = snapshot_.live_records;
        GLOVE_TRY(live_hash_, wire::sha256_stream::start());
        live_begin_ = step.offset + step.frame.size();
        note(now_.head);
        return {};
    }

    [[nodiscard]] auto record(const scanned& step) -> result<> {
        auto read = reader_.read(step.payload);
        if (!read) return wrapped("journal.record", step, read.error());
        const bool live = live_left_ > 0;
        GLOVE_CHECK(live ? check_live(*read, step) : check_chain(*read, step));
        if (read->kind >= kinds)
            return fail(errc::corrupt, "journal.record",
                        place_text(step.number, step.offset) + " is of an unknown kind");
        if (auto applied = reader_.apply(live ? origin::snapshot : origin::chain); !applied)
            return wrapped("journal.record", step, applied.error());
        now_.records.push_back({.sequence = read->sequence,
                                .offset = step.offset,
                                .bytes = static_cast<std::uint32_t>(step.payload.size()),
                                .kind = read->kind});
        now_.used[read->kind].records += 1;
        now_.used[read->kind].bytes += step.frame.size();
        mark here{read->sequence, std::move(read->digest)};
        note(here);
        if (live) {
            --live_left_;
            return live_hash_->update(step.frame);
        }
        now_.head = std::move(here);
        return {};
    }

    [[nodiscard]] auto check_chain(const facts& what, const scanned& step) const -> result<> {
        const auto wanted = now_.head.sequence + 1;
        if (what.sequence != wanted)
            return fail(errc::corrupt, "journal.order",
                        place_text(step.number, step.offset) + " has the sequence " +
                            std::to_string(what.sequence) + " where " + std::to_string(wanted) +
                            " belongs");
        if (!wire::equal_in_constant_time(what.previous, now_.head.digest))
            return fail(errc::corrupt, "journal.chain",
                        place_text(step.number, step.offset) +
                            " does not follow the record before it");
        return {};
    }

    // What was kept has gaps, but the order stays, and the last record of all is the chain's end.
    [[nodiscard]] auto check_live(const facts& what, const scanned& step) const -> result<> {
        const auto before = now_.records.empty() ? 0 : now_.records.back().sequence;
        if (what.sequence <= before || what.sequence > now_.base.sequence)
            return fail(errc::corrupt, "journal.order",
                        place_text(step.number, step.offset) + " has the sequence " +
                            std::to_string(what.sequence) + ", which is not between " +
                            std::to_string(before) + " and the snapshot's");
        if (what.sequence == now_.base.sequence && what.digest != now_.base.digest)
            return fail(errc::corrupt, "journal.chain",
                        place_text(step.number, step.offset) +
                            " is not the one that the snapshot goes on from");
        return {};
    }

    [[nodiscard]] auto end_live() -> result<> {
        auto stream = *std::move(live_hash_);
        live_hash_.reset();
        GLOVE_TRY(const auto digest, std::move(stream).finish());
        if (wire::to_hex(digest) != snapshot_.live_digest ||
            now_.bytes - live_begin_ != snapshot_.live_bytes)
            return fail(errc::corrupt, "journal.snapshot",
                        "the records that were kept are not those that the snapshot lists");
        return {};
    }

    void note(const mark& here) {
        if (here.sequence == marks_.witness.sequence) witness_met_ = here == marks_.witness;
        if (here.sequence == marks_.vouched.sequence) vouched_met_ = here == marks_.vouched;
    }

    [[nodiscard]] auto judge(const mark& wanted, const std::optional<bool>& met) const -> standing {
        if (wanted == mark{}) return standing::met;
        if (met) return *met ? standing::met : standing::differs;
        if (wanted.sequence == 0) return standing::differs;
        return wanted.sequence > now_.head.sequence ? standing::ahead : standing::behind;
    }

    [[nodiscard]] static auto wrapped(step_name name, const scanned& step, const error& why)
        -> std::unexpected<error> {
        return fail(errc::corrupt, name,
                    place_text(step.number, step.offset) + ": " + std::string{why.step} +
                        (why.detail.empty() ? "" : ": ") + why.detail);
    }

    storage& store_;
    const settings& how_;
    bounds limit_;
    record_reader& reader_;
    const expected& marks_;
    replayed& out_;
    contents& now_;
    snapshot snapshot_;
    std::uint64_t live_left_ = 0;
    std::uint64_t live_begin_ = 0;
    std::optional<wire::sha256_stream> live_hash_;
    std::optional<bool> witness_met_, vouched_met_;
};

} // namespace

auto replay(storage& store, const settings& how, record_reader& reader, const expected& marks,
            std::uint64_t file_bytes, replayed& out) -> result<> {
    out.file_bytes = file_bytes;
    return replayer{store, how, reader, marks, out}.run();
}

namespace {

constexpr std::string_view witness_magic = "GLVHEAD1";
constexpr std::size_t witness_digits = 20;
constexpr std::size_t witness_body = witness_magic.size() + 1 + witness_digits + 1 + 64;
constexpr std::size_t witness_size = witness_body + 1 + 64 + 1;

} // namespace

auto witness_text(const mark& head) -> result<std::string> {
    const auto digits = std::to_string(head.sequence);
    std::string out{witness_magic};
    out += ' ';
    out.append(witness_digits - digits.size(), '0');
    out += digits;
    out += ' ';
    out += head.digest;
    GLOVE_TRY(const auto check, wire::sha256(out));
    out += ' ';
    out += wire::to_hex(check);
    out += '\n';
    return out;
}

auto read_witness(std::string_view text) -> result<mark> {
    if (text.empty()) return mark{};
    const auto bad = [] {
        return fail(errc::corrupt, "journal.witness",
                    "the note of the last record that was acknowledged cannot be read",
                    "look at the journal, and have it repaired if it is as it should be");
    };
    if (text.size() != witness_size) return bad();
    auto digits = text.substr(witness_magic.size() + 1, witness_digits);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
    const auto sequence = parse_decimal(digits, std::numeric_limits<std::uint64_t>::max());
    if (!sequence) return bad();
    mark out{*sequence, std::string{text.substr(witness_body - 64, 64)}};
    GLOVE_TRY(const auto again, witness_text(out));
    if (again != text) return bad();
    return out;
}

} // namespace glove::journal
