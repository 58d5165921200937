// The cost of a line does not depend on how it was cut into pieces: no byte is looked at twice for
// an end of line, and what has not been taken is moved only when at least as much was taken.
#include <algorithm>
#include <array>
#include <cstring>
#include <glove/mcp/framing.hpp>
#include <sys/uio.h>

namespace glove::mcp {

namespace {

constexpr std::size_t read_at_once = 256UL << 10;
constexpr std::size_t kept = 512UL << 10; // a buffer beyond this is given back
constexpr std::size_t shown = 256;        // of a line that is too long
constexpr std::size_t lines_at_once = 64;

} // namespace

void line_reader::make_room(std::size_t bytes) {
    const auto held = held_bytes();
    if (begin_ > 0 && begin_ >= held) {
        buffer_.erase(0, begin_);
        scanned_ -= begin_;
        begin_ = 0;
    }
    const auto wanted = buffer_.size() + bytes;
    if (wanted <= buffer_.capacity()) return;
    // A message of this size is probably still longer. The whole bound is reserved at once: memory
    // that nothing was written to costs nothing, and growing step by step would copy.
    const bool large = held > kept && held < longest_;
    buffer_.reserve(large ? std::max(wanted, begin_ + longest_ + 2 + bytes) : wanted);
}

auto line_reader::fill(sys::fd_ref from) -> state {
    if (held_bytes() > longest_ + 1) return state::open;
    make_room(read_at_once);
    const auto before = buffer_.size();
    ::ssize_t got = 0;
    int os = 0;
    buffer_.resize_and_overwrite(before + read_at_once, [&](char* data, std::size_t) {
        do got = ::read(from.get(), data + before, read_at_once);
        while (got < 0 && errno == EINTR);
        os = errno;
        return before + static_cast<std::size_t>(std::max<::ssize_t>(got, 0));
    });
    if (got > 0) return state::open;
    if (got == 0) return state::ended;
    return os == EAGAIN ? state::open : state::broken;
}

void line_reader::feed(std::string_view bytes) {
    make_room(bytes.size());
    buffer_.append(bytes);
}

auto line_reader::next() -> std::optional<line> {
    for (;;) {
        const auto* const data = buffer_.data();
        const auto* const found =
            static_cast<const char*>(std::memchr(data + scanned_, '\n', buffer_.size() - scanned_));
        if (found == nullptr) {
            scanned_ = buffer_.size();
            bound_partial_line();
            rest();
            return std::nullopt;
        }
        const auto out = take(static_cast<std::size_t>(found - data));
        if (out.bytes > 0) return out;
    }
}

// `end` is where the LF stands.
auto line_reader::take(std::size_t end) -> line {
    auto text = std::string_view{buffer_}.substr(begin_, end - begin_);
    if (text.ends_with('\r')) text.remove_suffix(1);
    line out{.text = text, .too_long = false, .bytes = text.size() + skipped_};
    if (out.bytes > longest_) {
        out.too_long = true;
        out.text = text.substr(0, std::min(shown, longest_));
    }
    begin_ = scanned_ = end + 1;
    skipped_ = 0;
    skipping_ = false;
    return out;
}

// Of a line that is already too long, its beginning is kept, and the last byte, which may be the CR
// before its end.
void line_reader::bound_partial_line() {
    const auto held = held_bytes();
    if (held > longest_ + 1) skipping_ = true;
    const auto head = std::min(shown, longest_);
    if (!skipping_ || held <= head + 1) return;
    const auto dropped = held - head - 1;
    buffer_.erase(begin_ + head, dropped);
    skipped_ += dropped;
    scanned_ = buffer_.size();
}

// Nothing more can be taken.
void line_reader::rest() {
    if (held_bytes() == 0) {
        buffer_.clear();
        begin_ = scanned_ = 0;
    }
    if (buffer_.capacity() <= kept || held_bytes() > kept / 2) return;
    buffer_.substr(begin_).swap(buffer_); // assigning a short text would keep the memory
    scanned_ -= begin_;
    begin_ = 0;
}

void line_queue::push(std::string message) {
    bytes_ += message.size() + 1;
    lines_.push_back(std::move(message));
}

void line_queue::written(std::size_t bytes) {
    bytes_ -= bytes;
    written_ += bytes;
    while (!lines_.empty() && written_ >= lines_.front().size() + 1) {
        written_ -= lines_.front().size() + 1;
        lines_.pop_front();
    }
}

auto line_queue::flush(sys::fd_ref to) -> state {
    static constexpr char end = '\n';
    while (!lines_.empty()) {
        // The ends have pieces of their own: adding them to the messages could copy those.
        std::array<::iovec, 2 * lines_at_once> pieces;
        std::size_t count = 0;
        auto skip = written_;
        for (auto& each : lines_) {
            if (count == pieces.size()) break;
            const auto text = std::string_view{each}.substr(skip);
            skip = 0;
            // The kernel only reads them.
            pieces[count++] = {const_cast<char*>(text.data()), text.size()};
            pieces[count++] = {const_cast<char*>(&end), 1};
        }
        const auto put = ::writev(to.get(), pieces.data(), static_cast<int>(count));
        if (put >= 0) written(static_cast<std::size_t>(put));
        else if (errno == EAGAIN) return state::waiting;
        else if (errno != EINTR) return state::broken;
    }
    return state::empty;
}

} // namespace glove::mcp
