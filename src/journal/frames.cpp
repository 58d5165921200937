// A tail counts as torn only when it can be nothing but the beginning of one frame. When a whole
// frame ends where the file ends, a length in between was changed, and nothing may be cut off.
#include "journal/frames.hpp"
#include <algorithm>

namespace glove::journal {

using namespace std::string_view_literals;

void append_u32(std::string& out, std::uint32_t value) {
    for (const unsigned shift : {24U, 16U, 8U, 0U})
        out += static_cast<char>(value >> shift & 0xffU);
}

auto load_u32(std::string_view bytes) noexcept -> std::uint32_t {
    std::uint32_t out = 0;
    for (const char c : bytes.substr(0, 4)) out = out << 8U | static_cast<unsigned char>(c);
    return out;
}

void append_frame(std::string& out, std::string_view payload) {
    const auto length = static_cast<std::uint32_t>(payload.size());
    append_u32(out, length);
    out += payload;
    append_u32(out, length);
}

auto place_text(std::size_t number, std::uint64_t offset) -> std::string {
    return "record " + std::to_string(number) + " at byte " + std::to_string(offset);
}

namespace {

constexpr std::size_t half = 4; // of the overhead of a frame

// Whether the tail ends with a whole frame, or is one whose first length alone was changed.
[[nodiscard]] auto ends_whole(std::string_view tail) noexcept -> bool {
    if (tail.size() <= frame_overhead) return false;
    const std::size_t length = load_u32(tail.substr(tail.size() - half));
    if (length == 0 || length > tail.size() - frame_overhead) return false;
    const auto begin = tail.size() - frame_overhead - length;
    return begin == 0 || load_u32(tail.substr(begin)) == length;
}

} // namespace

auto frame_scanner::look(std::size_t count) -> result<std::string_view> {
    constexpr std::size_t piece = 256UL << 10;
    if (buffer_.size() - begin_ < count) {
        buffer_.erase(0, begin_);
        begin_ = 0;
        const auto have = buffer_.size();
        const auto want = std::min<std::uint64_t>(std::max(count, piece), left());
        buffer_.resize(static_cast<std::size_t>(want));
        GLOVE_TRY(const auto got, store_.read(at_ + have, std::span{buffer_}.subspan(have)));
        if (have + got < want)
            return fail(errc::corrupt, "journal.size", "the file became shorter while it was read");
    }
    return std::string_view{buffer_}.substr(begin_, count);
}

auto frame_scanner::bad_length(const step& at, std::size_t length) const -> std::unexpected<error> {
    return fail(errc::corrupt, "journal.frame",
                place_text(at.number, at.offset) + ": its length is " + std::to_string(length) +
                    ", and 1 to " + std::to_string(most_) + " are allowed");
}

auto frame_scanner::unfinished(step out) -> result<step> {
    GLOVE_TRY(const auto tail, look(static_cast<std::size_t>(left())));
    // Of a length that is cut itself: the least that it can have been.
    const auto least =
        load_u32((std::string{tail.substr(0, half)} += "\0\0\0\0"sv).substr(0, half));
    if (least > most_) return bad_length(out, least);
    const bool zeros = tail.size() >= half && tail.find_first_not_of('\0') == tail.npos;
    out.what = zeros ? found::zeros : found::torn;
    if (out.what == found::torn && ends_whole(tail))
        return fail(errc::corrupt, "journal.frame",
                    place_text(out.number, out.offset) +
                        ": its length leads beyond the end of the file, which ends with a whole "
                        "record");
    return out;
}

auto frame_scanner::next() -> result<step> {
    step out{.what = found::frame, .offset = at_, .number = number_ + 1};
    if (left() == 0) {
        out.what = found::end;
        return out;
    }
    if (left() < half) return unfinished(out);
    GLOVE_TRY(const auto first, look(half));
    const std::size_t length = load_u32(first);
    if (length == 0 || length > most_) {
        // Room that was never written reads as zeros, and what follows it cannot be read.
        if (length == 0 && left() <= most_ + frame_overhead) {
            GLOVE_TRY(const auto tail, unfinished(out));
            if (tail.what == found::zeros) return tail;
        }
        return bad_length(out, length);
    }
    if (left() < length + frame_overhead) return unfinished(out);
    GLOVE_TRY(out.frame, look(length + frame_overhead));
    if (load_u32(out.frame.substr(half + length)) != length)
        return fail(errc::corrupt, "journal.frame",
                    place_text(out.number, out.offset) + ": its two lengths differ");
    out.payload = out.frame.substr(half, length);
    begin_ += length + frame_overhead;
    at_ += length + frame_overhead;
    ++number_;
    return out;
}

} // namespace glove::journal
