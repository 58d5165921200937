// Looking at a journal that cannot be opened, and cutting off what was never acknowledged.
//
// `inspect` never writes. `repair` cuts the beginning of a record at the end, or room that was
// never written, and nothing else: a journal with any other defect stays as it is. What the witness
// says was acknowledged and is gone, it accepts only when it is told to.
#pragma once
#include <glove/journal/log.hpp>

namespace glove::journal {

enum class witnessed : std::uint8_t {
    unknown,    // there is no witness
    whole,      // what was acknowledged is there
    lost,       // records that were acknowledged are gone
    other,      // another record has the sequence
    unreadable, // the witness itself
};

struct inspection {
    contents found; // up to the defect
    std::uint64_t file_bytes = 0;
    std::uint64_t cut_bytes = 0; // what a repair would cut off the end
    bool zeros = false;          // and that it is nothing but zeros
    witnessed witness = witnessed::unknown;
    mark acknowledged;           // what the witness says
    std::optional<error> defect; // that no repair mends

    [[nodiscard]] auto sound() const noexcept -> bool {
        return !defect && cut_bytes == 0 && witness <= witnessed::whole;
    }
};

enum class loss : std::uint8_t { refused, accepted };

[[nodiscard]] auto inspect(storage& store, const settings& how, record_reader& reader)
    -> result<inspection>;
// What was found, and is mended now.
[[nodiscard]] auto repair(storage& store, const settings& how, record_reader& reader,
                          loss of_acknowledged = loss::refused) -> result<inspection>;

} // namespace glove::journal
