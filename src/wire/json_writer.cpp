// Appends to the caller's string and holds nothing else, so it costs no start-up.
#include "json_strings.hpp"
#include <array>
#include <cassert>
#include <charconv>
#include <glove/wire/json_writer.hpp>
#include <glove/wire/utf8.hpp>

namespace glove::wire::json {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

void append_escape(std::string& out, char c) {
    constexpr std::string_view digits = "0123456789abcdef";
    switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
    }
    const auto code = static_cast<unsigned char>(c);
    out += "\\u00";
    out += digits[code >> 4U];
    out += digits[code & 0xfU];
}

template<class I> void append_integer(std::string& out, I integer) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.begin(), digits.end(), integer).ptr;
    out.append(digits.data(), end);
}

} // namespace

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    const char* at = text.data();
    const char* const end = at + text.size();
    bool separators = false; // stay as they are
    while (at != end) {
        const char* const from = at;
        at = strings::plain_end(at, end);
        if (at != end && !strings::is_ascii(*at))
            at = strings::beyond_ascii_end(at, end, separators);
        out.append(from, at);
        if (at == end) break;
        if (strings::is_ascii(*at)) {
            if (strings::is_plain(*at)) continue;
            append_escape(out, *at++);
            continue;
        }
        at += next_utf8({at, end}).size;
        out += replacement;
    }
    out += '"';
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
