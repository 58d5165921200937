// The first record of a file that a rotation made: which chain goes on here, and which records were
// kept. It stands in a frame like every record, and only there.
#pragma once
#include <glove/journal/record_reader.hpp>
#include <string>
#include <string_view>

namespace glove::journal {

struct snapshot {
    std::uint64_t generation = 0; // of this file; the first one has none
    mark base;                    // the last record of the file before
    std::uint64_t live_records = 0;
    std::uint64_t live_bytes = 0; // with their frames
    std::string live_digest;      // SHA-256 of their frames

    auto operator==(const snapshot&) const -> bool = default;
};

// What no other record may begin with.
[[nodiscard]] auto is_snapshot(std::string_view payload) noexcept -> bool;
// `header` binds it to the file's kind and text.
[[nodiscard]] auto encode(const snapshot& what, std::string_view header, record_reader& reader)
    -> result<std::string>;
[[nodiscard]] auto decode_snapshot(std::string_view payload, std::string_view header,
                                   record_reader& reader) -> result<snapshot>;

} // namespace glove::journal
