// Frames: u32 length, payload, u32 the same length, big endian. Reading them from a storage piece
// by piece, whatever the size of the file.
#pragma once
#include <glove/journal/format.hpp>
#include <glove/journal/storage.hpp>
#include <string>
#include <string_view>

namespace glove::journal {

void append_u32(std::string& out, std::uint32_t value);
[[nodiscard]] auto load_u32(std::string_view bytes) noexcept -> std::uint32_t;
void append_frame(std::string& out, std::string_view payload);
// "record 17 at byte 4711"
[[nodiscard]] auto place_text(std::size_t number, std::uint64_t offset) -> std::string;

class frame_scanner {
public:
    enum class found : std::uint8_t {
        frame,
        end,   // right after the last whole frame
        torn,  // inside of a frame: what is left is the beginning of one
        zeros, // what is left is nothing but zeros
    };
    struct step {
        found what{};
        std::string_view payload{}; // until the next call
        std::string_view frame{};   // around it
        std::uint64_t offset = 0;   // of the frame, or of what is left
        std::size_t number = 0;     // of the frame, from 1
    };

    frame_scanner(storage& store, std::uint64_t from, std::uint64_t file_bytes,
                  std::size_t record_bytes)
        : store_{store}, at_{from}, file_bytes_{file_bytes}, most_{record_bytes} {}
    // journal.frame: lengths that are out of bounds or do not agree.
    [[nodiscard]] auto next() -> result<step>;

private:
    [[nodiscard]] auto left() const noexcept -> std::uint64_t { return file_bytes_ - at_; }
    // The next `count` bytes, of which the file has enough.
    [[nodiscard]] auto look(std::size_t count) -> result<std::string_view>;
    [[nodiscard]] auto bad_length(const step& at, std::size_t length) const
        -> std::unexpected<error>;
    [[nodiscard]] auto unfinished(step out) -> result<step>;

    storage& store_;
    std::uint64_t at_;
    std::uint64_t file_bytes_;
    std::size_t most_;
    std::size_t number_ = 0;
    std::string buffer_;
    std::size_t begin_ = 0; // of what is not consumed
};

} // namespace glove::journal
