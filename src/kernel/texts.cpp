// Pieces are looked at by searches that the library does in wide steps; most have nothing to
// change.
#include "kernel/texts.hpp"
#include <algorithm>
#include <array>
#include <charconv>

namespace glove::kernel {

namespace {

// Finds the next byte that cannot stay. Each kind is looked for by itself and only once, so that
// many of one kind do not make the search for the other begin anew.
class break_search {
public:
    explicit break_search(std::string_view json) : json_{json} {
        find_return(0), find_separator(0);
    }
    [[nodiscard]] auto next(std::size_t from) -> std::size_t {
        if (return_ < from) find_return(from);
        if (separator_ < from) find_separator(from);
        return std::min(return_, separator_);
    }

private:
    void find_return(std::size_t from) { return_ = json_.find('\r', from); }
    // E2 80 A8 or E2 80 A9.
    void find_separator(std::size_t from) {
        for (separator_ = json_.find('\xe2', from); separator_ != json_.npos;
             separator_ = json_.find('\xe2', separator_ + 1)) {
            const auto rest = json_.substr(separator_ + 1, 2);
            if (rest == "\x80\xa8" || rest == "\x80\xa9") return;
        }
    }
    std::string_view json_;
    std::size_t return_ = 0, separator_ = 0;
};

} // namespace

void append_safe(std::string& out, std::string_view json) {
    break_search breaks{json};
    std::size_t from = 0;
    for (auto at = breaks.next(0); at != json.npos; at = breaks.next(from)) {
        out.append(json.substr(from, at - from));
        if (json[at] == '\r') {
            from = at + 1; // white space between tokens; inside of a string it would be refused
            continue;
        }
        out += json[at + 2] == '\xa8' ? "\\u2028" : "\\u2029";
        from = at + 3;
    }
    out.append(json.substr(from));
}

auto safe(std::string_view json) -> std::string {
    std::string out;
    out.reserve(json.size());
    append_safe(out, json);
    return out;
}

void append_number(std::string& out, std::uint64_t number) {
    std::array<char, 20> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    out.append(digits.data(), end);
}

auto plain_string(std::string_view literal, std::string& room) -> std::string_view {
    if (literal.find('\\') == literal.npos) return literal.substr(1, literal.size() - 2);
    room = wire::json::decoded_string(literal);
    return room;
}

auto read_id(std::string_view token) -> given_id {
    given_id out;
    if (token.size() > 2 && token.front() == '"') {
        out.quoted = true;
        token = token.substr(1, token.size() - 2);
    }
    if (token.empty() || token.front() < '1' || token.front() > '9') return out;
    std::uint64_t number = 0;
    const auto [end, problem] = std::from_chars(token.data(), token.data() + token.size(), number);
    if (problem == std::errc{} && end == token.data() + token.size()) out.number = number;
    return out;
}

void put_hexadecimal(char* to, std::uint64_t number) noexcept {
    constexpr std::string_view digits = "0123456789abcdef";
    for (int shift = 60; shift >= 0; shift -= 4) *to++ = digits[number >> shift & 15U];
}

} // namespace glove::kernel
