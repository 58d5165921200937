// Each byte is looked at once, and memory is taken for strings with escapes only, once for a text.
#include "json_numbers.hpp"
#include "json_strings.hpp"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <glove/wire/json_cursor.hpp>

namespace glove::wire::json {

cursor::cursor(std::string_view text, const limits& bounds) noexcept
    : at_{text.data()}, end_{text.data() + text.size()}, bounds_{bounds} {
    bounds_.depth = std::min(bounds.depth, max_depth);
    if (text.size() > bounds.bytes) (void)fail();
    skip_space();
}

auto cursor::fail() noexcept -> bool {
    broken_ = true;
    at_ = end_;
    return false;
}

void cursor::skip_some_space() noexcept {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
        ++at_;
        as_written_ = false;
    }
}

// Every value passes here, and where elements are counted it is one.
auto cursor::admit() noexcept -> bool {
    if (values_ == bounds_.values) return fail();
    ++values_;
    if (depth_ == 0 || top().is_object) return true;
    if (top().count == bounds_.elements) return fail();
    ++top().count;
    return true;
}

auto cursor::enter(char bracket) -> bool {
    if (peek() != bracket || depth_ == bounds_.depth || !admit()) return fail();
    levels_[depth_++] = {.is_object = bracket == '{', .count = 0};
    ++at_;
    return true;
}
auto cursor::enter_object() -> bool { return enter('{'); }
auto cursor::enter_array() -> bool { return enter('['); }

auto cursor::next_part(char bracket) -> bool {
    if (broken_) return false;
    skip_space();
    if (peek() == bracket) {
        ++at_;
        --depth_;
        return false;
    }
    if (top().count == 0) return true;
    if (peek() != ',') return fail();
    ++at_;
    skip_space();
    return true;
}

auto cursor::next_member(std::string_view& name) -> bool {
    if (!next_part('}')) return false;
    if (peek() != '"') return fail();
    const char* const from = ++at_;
    at_ = strings::plain_end(at_, end_);
    if (peek() != '"') return fail();
    name = {from, static_cast<std::size_t>(at_ - from)};
    ++at_;
    if (name.size() > bounds_.string_bytes || top().count == bounds_.members) return fail();
    ++top().count;
    skip_space();
    if (peek() != ':') return fail();
    ++at_;
    skip_space();
    return true;
}

auto cursor::try_member(std::string_view name) -> bool {
    const char* at = at_;
    if (top().count != 0 && (at == end_ || *at++ != ',')) return false;
    constexpr std::size_t marks = 3;
    if (static_cast<std::size_t>(end_ - at) < name.size() + marks || *at != '"') return false;
    if (std::memcmp(at + 1, name.data(), name.size()) != 0) return false;
    at += 1 + name.size();
    if (at[0] != '"' || at[1] != ':') return false;
    if (name.size() > bounds_.string_bytes || top().count == bounds_.members) return false;
    ++top().count;
    at_ = at + 2;
    skip_space();
    return true;
}

auto cursor::next_element() -> bool {
    // What ends an array right behind a comma begins no element.
    return next_part(']');
}

auto cursor::take_string(std::string_view& out) -> bool {
    if (peek() != '"' || !admit()) return fail();
    const char* const from = ++at_;
    at_ = strings::plain_end(at_, end_);
    if (peek() != '"') return take_escaped(out, from);
    out = {from, static_cast<std::size_t>(at_ - from)};
    ++at_;
    return out.size() <= bounds_.string_bytes || fail();
}

// With escapes, or beyond ASCII: from the first character that is not plain.
auto cursor::take_escaped(std::string_view& out, const char* from) -> bool {
    const auto most = static_cast<std::size_t>(end_ - from) + strings::unescape_room;
    if (decoded_.size() < most)
        decoded_.resize_and_overwrite(most, [](char*, std::size_t size) { return size; });
    char* const begin = decoded_.data();
    char* to = std::copy(from, at_, begin);
    strings::escapes found;
    if (!strings::unescape(at_, end_, to, found)) return fail();
    ++at_;
    out = {begin, static_cast<std::size_t>(to - begin)};
    as_written_ = as_written_ && !found.unusual;
    if (found.nul && bounds_.zero == nul::refused) return fail();
    return out.size() <= bounds_.string_bytes || fail();
}

auto cursor::take_word(std::string_view word) -> bool {
    if (!std::string_view{at_, end_}.starts_with(word)) return false;
    at_ += word.size();
    return admit();
}

auto cursor::take_bool(bool& out) -> bool {
    out = peek() == 't';
    return take_word(out ? "true" : "false") || fail();
}

auto cursor::try_null() -> bool { return peek() == 'n' && take_word("null"); }

auto cursor::try_empty_string() -> bool { return peek() == '"' && take_word("\"\""); }

// No more digits than surely fit, as nearly all have: nothing when it is another number.
auto cursor::short_natural() const noexcept -> std::size_t {
    constexpr std::ptrdiff_t most = 18;
    const char* at = at_;
    const char* const stop = end_ - at_ > most ? at_ + most : end_;
    while (at != stop && is_digit(*at)) ++at;
    if (at == at_ || at == end_ || (*at_ == '0' && at - at_ > 1)) return 0;
    const bool goes_on = is_digit(*at) || *at == '.' || *at == 'e' || *at == 'E';
    return goes_on ? 0 : static_cast<std::size_t>(at - at_);
}

auto cursor::take_integer(std::uint64_t& bits, bool& negative) -> bool {
    if (const auto size = short_natural(); size != 0 && size <= bounds_.number_bytes) {
        if (!admit()) return false;
        negative = false;
        bits = 0;
        for (const char* const stop = at_ + size; at_ != stop; ++at_)
            bits = 10 * bits + static_cast<std::uint64_t>(*at_ - '0');
        return true;
    }
    const auto found = scan_number({at_, static_cast<std::size_t>(end_ - at_)});
    if (!found.is_integer || found.size == 0 || found.size > bounds_.number_bytes || !admit())
        return fail();
    negative = *at_ == '-';
    const char* const stop = at_ + found.size;
    if (negative) {
        std::int64_t number = 0;
        (void)std::from_chars(at_, stop, number);
        bits = static_cast<std::uint64_t>(number);
    } else (void)std::from_chars(at_, stop, bits);
    at_ = stop;
    return true;
}

auto cursor::finish() -> bool {
    if (broken_ || depth_ != 0 || values_ == 0) return false;
    skip_space();
    return at_ == end_;
}

} // namespace glove::wire::json
