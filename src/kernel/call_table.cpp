// Slots of a fixed number; an id names its slot and the serial number of its use.
#include "kernel/call_table.hpp"

namespace glove::kernel {

namespace {

// Short texts keep their room for the next one.
void clear(std::string& text) noexcept {
    constexpr std::size_t most_kept = 256;
    if (text.capacity() > most_kept)
        std::string{}.swap(text); // which an assignment would not give back
    else text.clear();
}

} // namespace

call_table::call_table() : slots_(capacity) {
    free_.reserve(capacity);
    for (std::size_t i = capacity; i-- > 0;) free_.push_back(static_cast<std::uint16_t>(i));
}

auto call_table::line_for(std::chrono::nanoseconds patience) -> std::uint16_t {
    for (std::size_t i = 0; i < lines_.size(); ++i)
        if (lines_[i].patience == patience) return static_cast<std::uint16_t>(i);
    // Patience comes from the operator's rules, so there are few; an empty line is used again.
    for (std::size_t i = 0; i < lines_.size(); ++i)
        if (lines_[i].first == call::none) {
            lines_[i].patience = patience;
            return static_cast<std::uint16_t>(i);
        }
    lines_.push_back({.patience = patience});
    return static_cast<std::uint16_t>(lines_.size() - 1);
}

auto call_table::open(std::chrono::nanoseconds now, std::chrono::nanoseconds patience,
                      std::size_t reserved) -> call* {
    if (!has_room(reserved)) return nullptr;
    const auto index = free_.back();
    free_.pop_back();
    auto& slot = slots_[index];
    slot.id = ++serial_ * capacity + index;
    slot.began = now;
    slot.deadline = now + patience;
    slot.line = line_for(patience);
    auto& queue = lines_[slot.line];
    slot.previous = queue.last;
    slot.next = call::none;
    (queue.last == call::none ? queue.first : slots_[queue.last].next) = index;
    queue.last = index;
    return &slot;
}

void call_table::close(call& over) noexcept {
    const auto index = static_cast<std::uint16_t>(over.id % capacity);
    auto& queue = lines_[over.line];
    (over.previous == call::none ? queue.first : slots_[over.previous].next) = over.next;
    (over.next == call::none ? queue.last : slots_[over.next].previous) = over.previous;
    over.id = 0;
    over.session = no_session;
    for (auto* text : {&over.agent_id, &over.token, &over.subject, &over.uri}) clear(*text);
    over.subscribes = false;
    over.what.reset();
    free_.push_back(index);
}

auto call_table::first_due() noexcept -> call* {
    call* out = nullptr;
    for (const auto& queue : lines_) {
        if (queue.first == call::none) continue;
        auto& first = slots_[queue.first];
        if (out == nullptr || first.deadline < out->deadline) out = &first;
    }
    return out;
}

} // namespace glove::kernel
