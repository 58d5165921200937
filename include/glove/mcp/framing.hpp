// Messages as lines: one JSON text each, ended by the byte 0x0A and by nothing else.
//
// Guarantees: a line is bounded before memory is spent on it; what exceeds the bound is skipped to
// its end, and the reader goes on with the next line. CR before LF and blank lines are tolerated.
// Reading and writing never block, when the descriptor is one that does not wait.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <glove/base/error.hpp>
#include <glove/sys/fd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace glove::mcp {

inline constexpr std::size_t longest_message = 16UL << 20; // bytes of a line, without its end

class line_reader {
public:
    explicit line_reader(std::size_t longest = longest_message) : longest_{longest} {}
    struct line {
        std::string_view text; // valid until the next call of `fill` or `next`
        bool too_long = false; // `text` is how it begins: at most 256 bytes
        std::size_t bytes = 0; // of the whole line, without its end
    };
    enum class state : std::uint8_t { open, ended, broken };
    // Reads once, at most 256 KiB; of a socket without a buffer for control messages. `ended` at
    // the end of the stream; what stands there without an end of line is no message. Reads nothing
    // while more waits to be taken than a line may have.
    [[nodiscard]] auto fill(sys::fd_ref from) -> state;
    // The next whole line; empty when more must be read first.
    [[nodiscard]] auto next() -> std::optional<line>;
    [[nodiscard]] auto held_bytes() const noexcept -> std::size_t {
        return buffer_.size() - begin_;
    }
    // What a long message had needed is given back once it was taken.
    [[nodiscard]] auto reserved_bytes() const noexcept -> std::size_t { return buffer_.capacity(); }
    // For tests and the fuzzer.
    void feed(std::string_view bytes);

private:
    void make_room(std::size_t bytes);
    void bound_partial_line();
    void rest();
    [[nodiscard]] auto take(std::size_t end) -> line;

    std::size_t longest_;
    std::string buffer_;
    std::size_t begin_ = 0;   // of what has not been taken
    std::size_t scanned_ = 0; // no end of line before this
    std::size_t skipped_ = 0; // bytes of a line that is too long
    bool skipping_ = false;
};

// What waits to be written. Its owner decides how much may wait.
class line_queue {
public:
    // `message` is one JSON text; the line's end is added.
    void push(std::string message);
    enum class state : std::uint8_t { empty, waiting, broken };
    // Writes as much as goes without waiting; whole lines of one message never mix. The process
    // ignores SIGPIPE: a peer that has gone is `broken`.
    [[nodiscard]] auto flush(sys::fd_ref to) -> state;
    [[nodiscard]] auto bytes() const noexcept -> std::size_t { return bytes_; }

private:
    void written(std::size_t bytes);

    std::deque<std::string> lines_;
    std::size_t written_ = 0; // of the first, with its end
    std::size_t bytes_ = 0;
};

} // namespace glove::mcp
