// The cost of a line does not depend on how it was cut into pieces: no byte is looked at twice for
// an end of line, and what has not been taken is moved only when at least as much was taken.
#include <algorithm>
#include <array>
#include <cstring>
#include <glove/mcp/framing.hpp>
#include <sys/uio.h>
#include <unistd.h>

namespace glove::mcp {

namespace {

constexpr std::size_t read_at_once = 256UL << 10;
constexpr std::size_t kept = 512UL << 10; // a buffer beyond this is given back
// Of a line that is too long: the message's id is in one of them, or hardly anywhere.
constexpr std::size_t shown = 256, shown_at_end = 2048;
constexpr std::size_t lines_at_once = 32, most_pieces = 4; // of a line
// What is shared has so many bytes, and keeps at most so many times its own size.
constexpr std::size_t least_shared = 16UL << 10, most_kept = 4;

} // namespace

line_reader::buffer::~buffer() {
    if (!spare || text.capacity() <= std::max(kept, spare->text_.capacity())) return;
    text.clear();
    spare->text_ = std::move(text);
    spare->touched_ = touched;
}

auto spare_buffer::is_held() const noexcept -> bool { return text_.capacity() > kept; }

auto line_reader::line::share(std::string_view part) const -> shared_text {
    if (from == nullptr || part.size() < least_shared ||
        from->buffer_->touched / most_kept > part.size())
        return {nullptr, part};
    return {from->buffer_, part, from->buffer_->touched};
}

// What has not been taken goes on in `room`.
void line_reader::begin_anew(std::string room, std::size_t touched) {
    room.clear();
    if (held_bytes() > 0) room.append(buffer_->text, begin_);
    const auto held = room.size();
    if (held <= kept && small_ && small_.use_count() == 1 && room.capacity() <= kept) {
        buffer_ = std::move(small_);
        buffer_->text.assign(room);
    } else {
        buffer_ = std::make_shared<buffer>(std::move(room), spare_);
        buffer_->touched = touched;
    }
    buffer_->touched = std::max(buffer_->touched, held);
    scanned_ -= begin_;
    begin_ = 0;
}

void line_reader::make_room(std::size_t bytes) {
    if (!buffer_ || is_shared()) begin_anew({});
    auto& text = buffer_->text;
    const auto held = held_bytes();
    if (begin_ > 0 && begin_ >= held) {
        text.erase(0, begin_);
        scanned_ -= begin_;
        begin_ = 0;
    }
    const auto wanted = text.size() + bytes;
    if (wanted <= text.capacity()) return;
    // A message of this size is probably still longer. The whole bound is reserved at once: memory
    // that nothing was written to costs nothing, and growing step by step would copy.
    const bool large = held >= read_at_once && held < longest_;
    if (!large) return text.reserve(wanted);
    const auto whole = std::max(held, longest_) + 2 + bytes;
    std::string room;
    std::size_t touched = 0;
    if (spare_) room.swap(spare_->text_), std::swap(touched, spare_->touched_);
    if (room.capacity() < whole) touched = 0; // it becomes another one
    room.reserve(whole);
    auto small = buffer_;
    begin_anew(std::move(room), touched);
    if (small->text.capacity() <= kept) small_ = std::move(small);
}

auto line_reader::fill(sys::fd_ref from) -> state {
    if (held_bytes() > longest_ + 1) return state::open;
    make_room(read_at_once);
    auto& text = buffer_->text;
    const auto before = text.size();
    ::ssize_t got = 0;
    int os = 0;
    text.resize_and_overwrite(before + read_at_once, [&](char* data, std::size_t) {
        do got = ::read(from.get(), data + before, read_at_once);
        while (got < 0 && errno == EINTR);
        os = errno;
        return before + static_cast<std::size_t>(std::max<::ssize_t>(got, 0));
    });
    buffer_->touched = std::max(buffer_->touched, text.size());
    if (got > 0) return state::open;
    if (got == 0) return state::ended;
    return os == EAGAIN ? state::open : state::broken;
}

void line_reader::feed(std::string_view bytes) {
    make_room(bytes.size());
    buffer_->text.append(bytes);
    buffer_->touched = std::max(buffer_->touched, buffer_->text.size());
}

auto line_reader::next() -> std::optional<line> {
    if (!buffer_) return std::nullopt;
    for (;;) {
        const auto& text = buffer_->text;
        const auto* const data = text.data();
        const auto* const found =
            static_cast<const char*>(std::memchr(data + scanned_, '\n', text.size() - scanned_));
        if (found == nullptr) {
            scanned_ = text.size();
            bound_partial_line();
            rest();
            return std::nullopt;
        }
        const auto out = take(static_cast<std::size_t>(found - data));
        if (out.bytes > 0) return out;
    }
}

auto line_reader::head_bytes() const noexcept -> std::size_t { return std::min(shown, longest_); }

// Both together are less than a line may have.
auto line_reader::tail_bytes() const noexcept -> std::size_t {
    return std::min(shown_at_end, (longest_ - head_bytes()) / 2);
}

// `end` is where the LF stands.
auto line_reader::take(std::size_t end) -> line {
    auto text = std::string_view{buffer_->text}.substr(begin_, end - begin_);
    if (text.ends_with('\r')) text.remove_suffix(1);
    line out{.text = text, .too_long = false, .bytes = text.size() + skipped_, .from = this};
    if (out.bytes > longest_) {
        out.too_long = true;
        out.text = text.substr(0, head_bytes());
        text.remove_prefix(out.text.size());
        out.tail = text.substr(text.size() - std::min(text.size(), tail_bytes()));
    }
    begin_ = scanned_ = end + 1;
    skipped_ = 0;
    skipping_ = false;
    return out;
}

// Of a line that is already too long, its beginning is kept, and what may be its end: with one byte
// more, which may be the CR before it.
void line_reader::bound_partial_line() {
    const auto held = held_bytes();
    if (held > longest_ + 1) skipping_ = true;
    const auto head = head_bytes();
    const auto all = head + tail_bytes() + 1;
    if (!skipping_ || held <= all) return;
    if (is_shared()) begin_anew({});
    const auto dropped = held - all;
    buffer_->text.erase(begin_ + head, dropped);
    skipped_ += dropped;
    scanned_ = buffer_->text.size();
}

// Nothing more can be taken.
void line_reader::rest() {
    if (held_bytes() == 0 && !is_shared()) {
        buffer_->text.clear();
        begin_ = scanned_ = 0;
    }
    // Assigning a short text would keep the memory.
    if (buffer_->text.capacity() > kept && held_bytes() <= kept / 2) begin_anew({});
}

// Adding the end to a long message could copy it.
auto line_queue::with_end(std::string message) -> entry {
    const bool is_short = message.size() < 4096;
    if (is_short) message += '\n';
    return {.head = std::move(message), .more = nullptr, .has_end = is_short};
}

void line_queue::add(entry made) {
    if (!made.has_key && !lines_.empty()) made.key = lines_.back().key;
    bytes_ += made.bytes();
    beyond_ += made.beyond();
    lines_.push_back(std::move(made));
}

void line_queue::push(std::string message) { add(with_end(std::move(message))); }

void line_queue::push(std::string message, std::uint64_t key) {
    auto made = with_end(std::move(message));
    made.key = key;
    made.has_key = true;
    add(std::move(made));
}

// Its entry stays, empty, since those behind it are not moved; but not more of them than of others.
auto line_queue::take_back(std::uint64_t key) -> bool {
    auto found = std::ranges::lower_bound(lines_, key, {}, &entry::key);
    if (found == lines_.end() || found->key != key || !found->has_key) return false;
    if (found == lines_.begin() && written_ > 0) return false;
    bytes_ -= found->bytes();
    *found = {.head = {}, .more = nullptr, .has_end = true, .key = key};
    if (++taken_back_ > lines_.size() / 2)
        taken_back_ -= std::erase_if(lines_, [](const entry& each) { return each.bytes() == 0; });
    return true;
}

void line_queue::push(std::string head, shared_text body, std::string tail) {
    entry made{.head = std::move(head), .more = std::make_unique<rest>()};
    *made.more = {std::move(body), std::move(tail)};
    add(std::move(made));
}

void line_queue::written(std::size_t bytes) {
    bytes_ -= bytes;
    written_ += bytes;
    while (!lines_.empty() && written_ >= lines_.front().bytes()) {
        written_ -= lines_.front().bytes();
        taken_back_ -= lines_.front().bytes() == 0 ? 1 : 0;
        beyond_ -= lines_.front().beyond();
        lines_.pop_front();
    }
}

auto line_queue::flush(sys::fd_ref to) -> state {
    while (!lines_.empty()) {
        std::array<::iovec, most_pieces * lines_at_once> pieces;
        std::size_t count = 0;
        auto skip = written_;
        const auto add = [&](std::string_view text) {
            const auto gone = std::min(skip, text.size());
            skip -= gone;
            text.remove_prefix(gone);
            // The kernel only reads them.
            if (!text.empty()) pieces[count++] = {const_cast<char*>(text.data()), text.size()};
        };
        for (const auto& each : lines_) {
            if (count > pieces.size() - most_pieces) break;
            add(each.head);
            if (each.more) add(each.more->body.text), add(each.more->tail);
            if (!each.has_end) add("\n");
        }
        const auto put = count == 1 ? ::write(to.get(), pieces[0].iov_base, pieces[0].iov_len)
                                    : ::writev(to.get(), pieces.data(), static_cast<int>(count));
        if (put >= 0) written(static_cast<std::size_t>(put));
        else if (errno == EAGAIN) return state::waiting;
        else if (errno != EINTR) return state::broken;
    }
    return state::empty;
}

} // namespace glove::mcp
