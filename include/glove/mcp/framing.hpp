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
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace glove::mcp {

inline constexpr std::size_t longest_message = 16UL << 20; // bytes of a line, without its end

// A text that is kept as long as its owner is.
struct shared_text {
    std::shared_ptr<const void> owner;
    std::string_view text;
    std::size_t keeps = 0; // bytes of memory that are the owner's for this text alone
};

// One large buffer that readers use one after the other: its memory is not asked for anew with each
// long message, and there is never more than one that waits.
class spare_buffer {
public:
    [[nodiscard]] auto is_held() const noexcept -> bool;
    void give_back() { std::string{}.swap(text_), touched_ = 0; }

private:
    friend class line_reader;
    std::string text_;
    std::size_t touched_ = 0; // of it
};

class line_reader {
public:
    explicit line_reader(std::size_t longest = longest_message) : longest_{longest} {}
    // What long messages need is taken from there and goes back there.
    void use(std::shared_ptr<spare_buffer> spare) { spare_ = std::move(spare); }
    struct line {
        std::string_view text;      // valid until the next call of `fill` or `next`
        bool too_long = false;      // `text` is how it begins: at most 256 bytes
        std::size_t bytes = 0;      // of the whole line, without its end
        std::string_view tail = {}; // of one that is too long: how it ends, at most 2 KiB
        const line_reader* from = nullptr;
        // A part of `text` beyond that time, without a copy; no owner when a copy is better: of a
        // short one, and of one that would keep much more memory than it has bytes.
        [[nodiscard]] auto share(std::string_view part) const -> shared_text;
    };
    enum class state : std::uint8_t { open, ended, broken };
    // Reads once, at most 256 KiB; of a socket without a buffer for control messages. `ended` at
    // the end of the stream; what stands there without an end of line is no message. Reads nothing
    // while more waits to be taken than a line may have.
    [[nodiscard]] auto fill(sys::fd_ref from) -> state;
    // The next whole line; empty when more must be read first.
    [[nodiscard]] auto next() -> std::optional<line>;
    [[nodiscard]] auto held_bytes() const noexcept -> std::size_t {
        return buffer_ ? buffer_->text.size() - begin_ : 0;
    }
    // What a long message had needed is given back once it was taken.
    [[nodiscard]] auto reserved_bytes() const noexcept -> std::size_t {
        return buffer_ ? buffer_->text.capacity() : 0;
    }
    // For tests and the fuzzer.
    void feed(std::string_view bytes);

private:
    struct buffer {
        buffer(std::string room, std::shared_ptr<spare_buffer> to)
            : text{std::move(room)}, spare{std::move(to)} {}
        buffer(const buffer&) = delete;
        auto operator=(const buffer&) -> buffer& = delete;
        ~buffer(); // to the spare one, when it is large

        std::string text;
        std::size_t touched = 0; // bytes of it that were ever used
        std::shared_ptr<spare_buffer> spare;
    };
    void make_room(std::size_t bytes);
    void begin_anew(std::string room, std::size_t touched = 0);
    void bound_partial_line();
    void rest();
    [[nodiscard]] auto take(std::size_t end) -> line;
    [[nodiscard]] auto head_bytes() const noexcept -> std::size_t; // that are kept of one too long
    [[nodiscard]] auto tail_bytes() const noexcept -> std::size_t;
    [[nodiscard]] auto is_shared() const noexcept -> bool { return buffer_.use_count() > 1; }

    std::size_t longest_;
    std::shared_ptr<buffer> buffer_; // never changed while it is shared
    std::shared_ptr<buffer> small_;  // the one to go on with after a long message
    std::shared_ptr<spare_buffer> spare_;
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
    // The same in three parts, of which the middle is not copied.
    void push(std::string head, shared_text body, std::string tail);
    // One that may be taken back; keys ascend.
    void push(std::string message, std::uint64_t key);
    // True when nothing of it had left: then nothing of it leaves.
    [[nodiscard]] auto take_back(std::uint64_t key) -> bool;
    enum class state : std::uint8_t { empty, waiting, broken };
    // Writes as much as goes without waiting; whole lines of one message never mix. The process
    // ignores SIGPIPE: a peer that has gone is `broken`.
    [[nodiscard]] auto flush(sys::fd_ref to) -> state;
    [[nodiscard]] auto bytes() const noexcept -> std::size_t { return bytes_; }
    // The memory of all that: more than its bytes where a text keeps more than itself.
    [[nodiscard]] auto kept_bytes() const noexcept -> std::size_t { return bytes_ + beyond_; }

private:
    struct rest {
        shared_text body;
        std::string tail;
    };
    struct entry {
        std::string head;
        std::unique_ptr<rest> more; // mostly there is none
        bool has_end = false;       // `head` is the whole line
        std::uint64_t key = 0;      // its own, or the last one before it
        bool has_key = false;
        [[nodiscard]] auto bytes() const noexcept -> std::size_t {
            return head.size() + (has_end ? 0 : 1) +
                   (more ? more->body.text.size() + more->tail.size() : 0);
        }
        [[nodiscard]] auto beyond() const noexcept -> std::size_t {
            return more && more->body.keeps > more->body.text.size()
                       ? more->body.keeps - more->body.text.size()
                       : 0;
        }
    };
    void written(std::size_t bytes);
    [[nodiscard]] static auto with_end(std::string message) -> entry;
    void add(entry made);

    std::deque<entry> lines_;
    std::size_t taken_back_ = 0; // of the entries, which are empty
    std::size_t written_ = 0;    // of the first, with its end
    std::size_t bytes_ = 0;
    std::size_t beyond_ = 0; // memory that is kept for no byte of them
};

} // namespace glove::mcp
