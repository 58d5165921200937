// The same pass as opening, but what it finds is told instead of refused.
#include "journal/replay.hpp"
#include <glove/journal/inspect.hpp>

namespace glove::journal {

namespace {

[[nodiscard]] auto judged(const replayed& found, bool there) -> witnessed {
    if (!there) return witnessed::unknown;
    switch (found.witness) {
    case standing::met:
    case standing::behind: return witnessed::whole;
    case standing::ahead: return witnessed::lost;
    case standing::differs: return witnessed::other;
    }
    return witnessed::other;
}

} // namespace

auto inspect(storage& store, const settings& how, record_reader& reader) -> result<inspection> {
    GLOVE_TRY(const auto note, store.witness()); // before the size: it may only be older
    const auto witness = read_witness(note);
    GLOVE_TRY(const auto size, store.size());
    if (!size)
        return fail(errc::not_found, "journal.absent", "there is no " + std::string{how.form.name});
    replayed found;
    inspection out;
    if (auto read = replay(store, how, reader, {.witness = witness.value_or(mark{}), .vouched = {}},
                           *size, found);
        !read)
        out.defect = std::move(read).error();
    out.file_bytes = *size;
    if (!out.defect) {
        out.cut_bytes = *size - found.found.bytes;
        out.zeros = found.tail == frame_scanner::found::zeros;
    }
    out.witness = witness ? judged(found, !note.empty()) : witnessed::unreadable;
    if (witness) out.acknowledged = *witness;
    out.found = std::move(found.found);
    return out;
}

auto repair(storage& store, const settings& how, record_reader& reader, loss of_acknowledged)
    -> result<inspection> {
    GLOVE_TRY(auto out, inspect(store, how, reader));
    if (out.defect) return std::unexpected(*std::move(out.defect));
    if (out.witness > witnessed::whole && of_acknowledged == loss::refused)
        return fail(errc::not_permitted, "journal.truncated",
                    "the last record is " + std::to_string(out.found.head.sequence) +
                        ", and it is not certain that nothing acknowledged is gone");
    if (out.cut_bytes > 0) {
        GLOVE_CHECK(store.truncate(out.found.bytes));
        GLOVE_CHECK(store.sync());
    }
    GLOVE_TRY(const auto text, witness_text(out.found.head));
    GLOVE_CHECK(store.set_witness(text));
    return out;
}

} // namespace glove::journal
