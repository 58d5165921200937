// Reading a whole journal: every rule that a file must meet, in one pass. Opening, verifying and
// repairing are the same pass, so they cannot disagree. It never writes.
#pragma once
#include "journal/frames.hpp"
#include <glove/journal/log.hpp>

namespace glove::journal {

// Where a record that somebody vouches for was found.
enum class standing : std::uint8_t {
    met,     // in the chain, as named
    ahead,   // beyond the last record: what was on record is gone
    behind,  // dropped by a rotation
    differs, // another record has its sequence
};

struct replayed {
    contents found;
    std::uint64_t file_bytes = 0;
    frame_scanner::found tail = frame_scanner::found::end;
    standing witness = standing::met;
    standing vouched = standing::met;
};

struct expected {
    mark witness; // the default is met by every journal
    mark vouched;
};

// Fills `out` as far as it gets, so that an error leaves what precedes the bad record.
[[nodiscard]] auto replay(storage& store, const settings& how, record_reader& reader,
                          const expected& marks, std::uint64_t file_bytes, replayed& out)
    -> result<>;

// The witness: one line of a fixed length, whole or not at all.
[[nodiscard]] auto witness_text(const mark& head) -> result<std::string>;
[[nodiscard]] auto read_witness(std::string_view text) -> result<mark>; // empty: the default mark

} // namespace glove::journal
