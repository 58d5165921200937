// The sinks are fed outside of the lock: a reader never waits for one.
#include <algorithm>
#include <cstring>
#include <glove/container/transcript.hpp>
#include <limits>
#include <optional>

namespace glove::container {

transcript::transcript(std::size_t capacity, std::vector<transcript_sink*> sinks)
    : capacity_{capacity}, sinks_{std::move(sinks)},
      ring_{std::make_unique_for_overwrite<char[]>(capacity)} {}

auto transcript::create(std::size_t capacity, std::vector<transcript_sink*> sinks)
    -> result<std::unique_ptr<transcript>> {
    if (capacity == 0 || capacity > most_capacity)
        return fail(errc::invalid_input, "transcript.capacity",
                    std::to_string(capacity) + " bytes; 1 to " + std::to_string(most_capacity) +
                        " are kept");
    if (std::ranges::find(sinks, nullptr) != sinks.end())
        return fail(errc::invalid_input, "transcript.capacity", "a sink that is none");
    return std::unique_ptr<transcript>{new transcript{capacity, std::move(sinks)}};
}

auto transcript::feed(std::string_view bytes) -> result<> {
    std::optional<error> first;
    for (auto* const sink : sinks_)
        if (auto taken = sink->take(bytes); !taken && !first) first = std::move(taken).error();
    if (first) return std::unexpected(*std::move(first));
    return {};
}

auto transcript::append(std::string_view bytes) -> result<> {
    if (bytes.empty()) return {};
    {
        const std::scoped_lock hold{lock_};
        if (ended_ || bytes.size() > std::numeric_limits<std::uint64_t>::max() - count_)
            return fail(errc::wrong_state, "transcript.ended", "nothing can follow its end");
    }
    auto fed = feed(bytes);
    const std::scoped_lock hold{lock_};
    if (!fed) sinks_have_all_ = false;
    keep(bytes);
    return fed;
}

// Of more than there is room for, only the last bytes are written.
void transcript::keep(std::string_view bytes) {
    const auto skipped = bytes.size() - std::min(bytes.size(), capacity_);
    count_ += skipped;
    bytes.remove_prefix(skipped);
    while (!bytes.empty()) {
        const auto at = static_cast<std::size_t>(count_ % capacity_);
        const auto size = std::min(bytes.size(), capacity_ - at);
        std::memcpy(ring_.get() + at, bytes.data(), size);
        count_ += size;
        bytes.remove_prefix(size);
    }
}

void transcript::finish(bool whole) {
    const std::scoped_lock hold{lock_};
    if (ended_) return;
    ended_ = true;
    whole_ = whole;
}

auto transcript::oldest() const -> std::uint64_t {
    return count_ - std::min<std::uint64_t>(count_, capacity_);
}

auto transcript::check_locked(std::uint64_t cursor) const -> result<> {
    if (cursor > count_)
        return fail(errc::invalid_input, "transcript.cursor",
                    std::to_string(cursor) + " is beyond the end, which is " +
                        std::to_string(count_));
    return {};
}

auto transcript::check(std::uint64_t cursor) const -> result<> {
    const std::scoped_lock hold{lock_};
    return check_locked(cursor);
}

auto transcript::page(std::uint64_t cursor, std::size_t most_bytes) const
    -> result<transcript_part> {
    if (most_bytes == 0 || most_bytes > most_page_bytes)
        return fail(errc::invalid_input, "transcript.page",
                    std::to_string(most_bytes) + " bytes; a page has 1 to " +
                        std::to_string(most_page_bytes));
    const std::scoped_lock hold{lock_};
    GLOVE_CHECK(check_locked(cursor));
    transcript_part out;
    out.oldest_cursor = oldest();
    out.truncated = cursor < out.oldest_cursor;
    out.next_cursor = std::max(cursor, out.oldest_cursor);
    auto left =
        static_cast<std::size_t>(std::min<std::uint64_t>(most_bytes, count_ - out.next_cursor));
    out.bytes.reserve(left);
    while (left != 0) {
        const auto at = static_cast<std::size_t>(out.next_cursor % capacity_);
        const auto size = std::min(left, capacity_ - at);
        out.bytes.append(ring_.get() + at, size);
        out.next_cursor += size;
        left -= size;
    }
    out.eof = ended_ && out.next_cursor == count_;
    return out;
}

auto transcript::count() const -> std::uint64_t {
    const std::scoped_lock hold{lock_};
    return count_;
}
auto transcript::complete() const -> bool {
    const std::scoped_lock hold{lock_};
    return ended_ && whole_ && sinks_have_all_;
}

} // namespace glove::container
