// How a journal looks into its records: the seam between the log and a codec with its owner.
#pragma once
#include <glove/base/error.hpp>
#include <glove/journal/format.hpp>
#include <string>
#include <string_view>

namespace glove::journal {

// Where a record that is read back stood.
enum class origin : std::uint8_t {
    snapshot, // kept at a rotation: what it followed may be gone
    chain,
};

class record_reader {
public:
    virtual ~record_reader() = default;
    // Strictly; the digest is computed from the content and compared before it is returned.
    [[nodiscard]] virtual auto read(std::string_view payload) -> result<facts> = 0;
    // The record that was read last stands where it belongs. An error refuses the journal.
    [[nodiscard]] virtual auto apply(origin from) -> result<> = 0;
    // The digest of what the journal itself puts on record, by the rule of this journal's chain:
    // SHA-256, or HMAC with its key; 64 lower hexadecimal digits.
    [[nodiscard]] virtual auto authenticate(std::string_view bytes) -> result<std::string> = 0;
};

} // namespace glove::journal
