// Appends to the caller's string and holds nothing else, so it costs no start-up.
#include "json_strings.hpp"
#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cstring>
#include <glove/wire/json_writer.hpp>
#include <glove/wire/utf8.hpp>

namespace glove::wire::json {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

constexpr std::size_t longest_escape = 6;

// What a character is written as; returns where that ends.
[[nodiscard]] auto put_escape(char* to, char c) noexcept -> char* {
    constexpr std::string_view digits = "0123456789abcdef";
    constexpr std::string_view meant = "\b\f\n\r\t", letters = "bfnrt";
    *to++ = '\\';
    if (c == '"' || c == '\\') { // mostly
        *to++ = c;
        return to;
    }
    if (const auto at = meant.find(c); at != meant.npos) {
        *to++ = letters[at];
        return to;
    }
    const auto code = static_cast<unsigned char>(c);
    to = std::copy_n("u00", 3, to);
    *to++ = digits[code >> 4U];
    *to++ = digits[code & 0xfU];
    return to;
}

// Goes through a text: `run` takes what stands as it is, and `escape` a character that does not.
template<class Run, class Escape>
void quote(std::string_view text, const Run& run, const Escape& escape) {
    const char* at = text.data();
    const char* const end = at + text.size();
    bool separators = false; // stay as they are
    while (at != end) {
        const char* const from = at;
        at = strings::plain_end(at, end);
        if (at != end && !strings::is_ascii(*at))
            at = strings::beyond_ascii_end(at, end, separators);
        run(std::string_view{from, at});
        if (at == end) break;
        if (strings::is_ascii(*at)) {
            if (!strings::is_plain(*at)) escape(*at++);
            continue;
        }
        at += next_utf8({at, end}).size;
        run(replacement);
    }
}

template<class I> void append_integer(std::string& out, I integer) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.begin(), digits.end(), integer).ptr;
    out.append(digits.data(), end);
}

} // namespace

void append_quoted(std::string& out, std::string_view text) {
    const char* const end = text.data() + text.size();
    if (strings::plain_end(text.data(), end) == end) { // mostly
        const auto before = out.size();
        const auto after = before + text.size() + 2;
        // The room may be larger than what was asked for (libstdc++ 12).
        out.resize_and_overwrite(after, [&](char* room, std::size_t) {
            room[before] = '"';
            std::copy(text.begin(), text.end(), room + before + 1);
            room[after - 1] = '"';
            return after;
        });
        return;
    }
    out += '"';
    quote(
        text, [&](std::string_view part) { out += part; },
        [&](char c) {
            std::array<char, longest_escape> room;
            out.append(room.data(), put_escape(room.data(), c));
        });
    out += '"';
}

// A replacement stands for one byte or more, and has three.
auto put_quoted(char* to, std::string_view text) noexcept -> char* {
    *to++ = '"';
    quote(
        text,
        [&](std::string_view part) {
            std::memcpy(to, part.data(), part.size());
            to += part.size();
        },
        [&](char c) { to = put_escape(to, c); });
    *to++ = '"';
    return to;
}

auto quoted_bytes(std::string_view text) noexcept -> std::size_t {
    std::size_t out = 2;
    quote(
        text, [&](std::string_view part) { out += part.size(); },
        [&](char c) {
            std::array<char, longest_escape> room;
            out += static_cast<std::size_t>(put_escape(room.data(), c) - room.data());
        });
    return out;
}

writer::~writer() { assert(depth_ == 0 && !named_); }

void writer::before_value() {
    assert(depth_ != 0 || !root_);
    assert(depth_ == 0 || depth_ > 64 || named_ == ((objects_ >> (depth_ - 1) & 1U) != 0));
    if (comma_ && !named_) out_ += ',';
    named_ = false;
    comma_ = true;
    root_ = true;
}

void writer::open(char bracket) {
    before_value();
    out_ += bracket;
    if (depth_ < 64) {
        const auto bit = std::uint64_t{1} << depth_;
        objects_ = bracket == '{' ? objects_ | bit : objects_ & ~bit;
    }
    ++depth_;
    comma_ = false;
}

void writer::close(char bracket) {
    assert(depth_ != 0 && !named_);
    assert(depth_ > 64 || (bracket == '}') == ((objects_ >> (depth_ - 1) & 1U) != 0));
    out_ += bracket;
    --depth_;
    comma_ = true;
}

void writer::key(std::string_view name) {
    assert(depth_ != 0 && !named_);
    assert(depth_ > 64 || (objects_ >> (depth_ - 1) & 1U) != 0);
    if (comma_) out_ += ',';
    append_quoted(out_, name);
    out_ += ':';
    named_ = true;
}

void writer::element(std::string_view text) {
    before_value();
    append_quoted(out_, text);
}

void writer::raw(std::string_view json_text) {
    before_value();
    out_ += json_text;
}

void writer::put_unsigned(std::uint64_t integer) {
    before_value();
    append_integer(out_, integer);
}

void writer::put_signed(std::int64_t integer) {
    before_value();
    append_integer(out_, integer);
}

} // namespace glove::wire::json
