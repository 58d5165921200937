// What a session's terminal has shown: the last bytes of it, under cursors that count every byte
// since the start.
//
// Guarantees: a byte is counted, and given to every sink, before it can be seen and long before it
// can be forgotten; memory is bounded by the capacity, and what a reader copies by a page. A cursor
// names the same byte for ever. It never waits for a reader, and judges nothing of what it holds.
//
// One thread writes; any number of threads read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace glove::container {

// Is given the stream in the order of its bytes, each once, in pieces of any size.
class transcript_sink {
public:
    virtual ~transcript_sink() = default;
    [[nodiscard]] virtual auto take(std::string_view bytes) -> result<> = 0;
};

// A part of the stream. `truncated`: the byte that was asked for is forgotten, and the part begins
// at the oldest one. `eof`: it reaches the end of a stream that has ended.
struct transcript_part {
    std::uint64_t oldest_cursor = 0;
    std::uint64_t next_cursor = 0; // of the byte after the last one here
    bool truncated = false;
    bool eof = false;
    std::string bytes;
};

class transcript {
public:
    static constexpr std::size_t usual_capacity = 4UL << 20; // bytes
    static constexpr std::size_t most_capacity = 16UL << 20;
    static constexpr std::size_t most_page_bytes = 64UL << 10;

    // Takes no memory that is not written. The sinks are borrowed, and outlive the last `append`.
    // Step: transcript.capacity.
    [[nodiscard]] static auto create(std::size_t capacity = usual_capacity,
                                     std::vector<transcript_sink*> sinks = {})
        -> result<std::unique_ptr<transcript>>;

    // The next bytes of the stream. When a sink fails, the others and the readers still get them,
    // and the first such error is returned; that sink is given what follows all the same, and knows
    // for itself what it lacks. Steps: of the sink; transcript.ended.
    [[nodiscard]] auto append(std::string_view bytes) -> result<>;
    // No more will come. `whole`: every byte that the terminal gave is in it.
    void finish(bool whole);

    // At most `most_bytes` (1 to most_page_bytes) from `cursor` on; none at the end, which is no
    // error. Steps: transcript.page; transcript.cursor for one beyond the end.
    [[nodiscard]] auto page(std::uint64_t cursor, std::size_t most_bytes) const
        -> result<transcript_part>;
    // That `page` would take the cursor. Step: transcript.cursor.
    [[nodiscard]] auto check(std::uint64_t cursor) const -> result<>;

    // How many bytes there were, forgotten ones too.
    [[nodiscard]] auto count() const -> std::uint64_t;
    // It has ended, nothing of the terminal's is missing, and every sink has all of it.
    [[nodiscard]] auto complete() const -> bool;

private:
    transcript(std::size_t capacity, std::vector<transcript_sink*> sinks);
    [[nodiscard]] auto feed(std::string_view bytes) -> result<>;
    void keep(std::string_view bytes);
    [[nodiscard]] auto oldest() const -> std::uint64_t;
    [[nodiscard]] auto check_locked(std::uint64_t cursor) const -> result<>;

    const std::size_t capacity_;
    const std::vector<transcript_sink*> sinks_;
    mutable std::mutex lock_;      // of all below
    std::unique_ptr<char[]> ring_; // byte n of the stream is at n % capacity_
    std::uint64_t count_ = 0;
    bool ended_ = false;
    bool whole_ = false;
    bool sinks_have_all_ = true;
};

} // namespace glove::container
