// The journals, as data. They differ in this table, and in the codec of their records; framing,
// chain, bounds, recovery, reservations and rotation are the same for all (docs/journal-format.md).
//
// A file is the magic, a text of the journal's own (the receipts' key id), and frames: u32 length,
// payload, u32 the same length, big endian. The payload is the codec's. Each record carries its
// sequence, the digest of the record before it, and its own.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace glove::journal {

// What opening does with a file that ends inside of a frame.
enum class torn_tail : std::uint8_t {
    refused,          // until somebody repairs it
    cut_when_vouched, // when the caller names a record that others vouch for, and it is there
};
// After a write that failed. A sync that failed always poisons: nobody knows what the disk holds.
enum class failed_write : std::uint8_t {
    poisons,
    cut_back, // the log goes on when what was written could be cut off again
};

struct bounds {
    std::size_t record_bytes = 0; // of one payload
    std::size_t records = 0;      // of one file, its snapshot included
    std::uint64_t file_bytes = 0; // with everything
};

struct format {
    std::string_view name;
    std::string_view magic;
    std::size_t text_bytes = 0; // after the magic
    bounds most;
    std::uint64_t least_file_bytes = 0; // that an operator may set
    torn_tail tail = torn_tail::refused;
    failed_write write = failed_write::poisons;
};

inline constexpr format session_registry{
    .name = "session registry",
    .magic = "GLVSES05",
    .most = {.record_bytes = 1UL << 20, .records = 10'000, .file_bytes = 64UL << 20},
    .least_file_bytes = 1024,
};
inline constexpr format receipts{
    .name = "receipt journal",
    .magic = "GLVRJNL1",
    .text_bytes = 64,
    .most = {.record_bytes = 65'536, .records = 1UL << 20, .file_bytes = 64UL << 20},
    .least_file_bytes = 1024,
    .tail = torn_tail::cut_when_vouched,
    .write = failed_write::cut_back,
};
inline constexpr format exposures{
    .name = "exposure journal",
    .magic = std::string_view{"GLOVE-EXPOSURE1\0", 16},
    .most = {.record_bytes = 64UL << 10, .records = 4'096, .file_bytes = 8UL << 20},
    .least_file_bytes = 1024,
};

inline constexpr std::uint64_t frame_overhead = 8; // the two lengths

// A place in the chain: what the next record must follow. The default is before the first record.
struct mark {
    std::uint64_t sequence = 0;
    std::string digest = std::string(64, '0');
    auto operator==(const mark&) const -> bool = default;
};

// Kinds share a file but not their quota. Kind 0 has none: it may use what the file offers.
inline constexpr std::size_t kinds = 4;

// What a codec says of one record.
struct facts {
    std::uint64_t sequence = 0;
    std::string previous; // 64 lower hexadecimal digits, like `digest`
    std::string digest;
    std::uint8_t kind = 0;
    auto operator==(const facts&) const -> bool = default;
};

// How much of one file records of a kind may take, or take; bytes with their frames.
struct share {
    std::size_t records = 0;
    std::uint64_t bytes = 0;
    auto operator==(const share&) const -> bool = default;
};

enum class absence : std::uint8_t { refused, creates };

// One journal of an installation.
struct settings {
    format form;
    std::string text = {};            // `form.text_bytes` long
    std::uint64_t file_bytes = 0;     // 0: as many as the format allows
    std::size_t records = 0;          // 0: likewise
    std::array<share, kinds> quota{}; // [0] is not looked at; no records means no quota
    absence missing = absence::refused;

    [[nodiscard]] auto limit() const -> bounds {
        auto out = form.most;
        if (file_bytes != 0) out.file_bytes = file_bytes;
        if (records != 0) out.records = records;
        return out;
    }
    [[nodiscard]] auto header() const -> std::string { return std::string{form.magic} + text; }
};

} // namespace glove::journal
