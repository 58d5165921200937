// A reader of control sequences that knows a few by name and skips all others.
#include "cli/control_process/left_modes.hpp"
#include <algorithm>
#include <array>
#include <glove/base/numbers.hpp>

namespace glove::cli {

namespace {

constexpr char escape = '\x1b';
constexpr std::size_t longest = 64; // of a sequence that is looked at
constexpr std::uint32_t most_keyboards = 99;

struct mode {
    std::uint64_t number;
    bool usual; // as terminals begin
};
// Keys of the cursor, wrapping, the cursor itself, the mouse, focus, the other screen, pasting,
// drawing at once. The screens come last, because what is before belongs to the one that is shown.
constexpr std::array modes{
    mode{1, false},    mode{7, true},     mode{25, true},    mode{9, false},    mode{1000, false},
    mode{1001, false}, mode{1002, false}, mode{1003, false}, mode{1004, false}, mode{1005, false},
    mode{1006, false}, mode{1015, false}, mode{1016, false}, mode{2004, false}, mode{2026, false},
    mode{47, false},   mode{1047, false}, mode{1049, false}};
static_assert(modes.size() <= 32);

template<class Each> void each_number(std::string_view list, Each each) {
    for (;;) {
        const auto cut = std::min(list.find(';'), list.size());
        if (const auto number = parse_decimal(list.substr(0, cut), 65'535)) each(*number);
        if (cut == list.size()) return;
        list.remove_prefix(cut + 1);
    }
}

} // namespace

void left_modes::set_private(bool on) {
    each_number(std::string_view{inside_}.substr(1), [&](std::uint64_t number) {
        const auto* const row = std::ranges::find(modes, number, &mode::number);
        if (row == modes.end()) return;
        const auto bit = 1U << (row - modes.begin());
        changed_ = on == row->usual ? changed_ & ~bit : changed_ | bit;
    });
}

// The keyboards of a terminal that tells keys as numbers are a stack.
void left_modes::see_keyboard() {
    if (inside_.starts_with('>')) {
        keyboards_ = std::min(keyboards_ + 1, most_keyboards);
    } else if (inside_.starts_with('<')) {
        const auto popped = parse_decimal(std::string_view{inside_}.substr(1), most_keyboards);
        keyboards_ -= std::min(keyboards_, static_cast<std::uint32_t>(popped.value_or(1)));
    }
}

void left_modes::see_sequence(char last) {
    const bool is_private = inside_.starts_with('?');
    if (is_private && (last == 'h' || last == 'l')) set_private(last == 'h');
    else if (last == 'u') see_keyboard();
    else if (last == 'm' && inside_.starts_with(">4")) other_keys_ = inside_.starts_with(">4;");
    else if (last == 'm' && !inside_.starts_with('>'))
        coloured_ = !inside_.empty() && inside_ != "0";
    else if (last == 'r' && !is_private) margins_ = !inside_.empty();
    else if (last == 'p' && inside_ == "!") margins_ = coloured_ = keypad_ = drawing_ = false;
}

void left_modes::see_escape(char c) {
    at_ = state::ground;
    switch (c) {
    case '[':
        inside_.clear();
        at_ = state::sequence;
        break;
    case '(': at_ = state::charset; break;
    case '=': keypad_ = true; break;
    case '>': keypad_ = false; break;
    case 'c': *this = {}; break; // everything as it begins
    default: break;
    }
}

void left_modes::see_byte(char c) {
    if (c == escape) {
        at_ = state::escape;
        return;
    }
    switch (at_) {
    case state::ground: return;
    case state::escape: return see_escape(c);
    case state::charset:
        drawing_ = c == '0';
        at_ = state::ground;
        return;
    case state::sequence:
        if (c >= ' ' && c <= '?' && inside_.size() < longest) {
            inside_ += c;
            return;
        }
        at_ = state::ground;
        if (c >= '@' && c <= '~') see_sequence(c);
        return;
    }
}

void left_modes::see(std::string_view shown) {
    while (!shown.empty()) {
        if (at_ == state::ground) {
            const auto next = shown.find(escape);
            if (next == shown.npos) return;
            shown.remove_prefix(next);
        }
        see_byte(shown.front());
        shown.remove_prefix(1);
    }
}

auto left_modes::undo() const -> std::string {
    std::string out;
    if (at_ != state::ground) out += '\x18'; // a sequence that was cut off
    if (keyboards_ != 0) out += "\x1b[<" + std::to_string(keyboards_) + "u";
    if (other_keys_) out += "\x1b[>4m";
    if (keypad_) out += "\x1b>";
    if (drawing_) out += "\x1b(B";
    if (margins_)
        out += "\x1b"
               "7\x1b[r\x1b"
               "8"; // which moves the cursor, so it is put back
    if (coloured_) out += "\x1b[0m";
    for (std::size_t i = 0; i < modes.size(); ++i)
        if ((changed_ >> i & 1U) != 0)
            out += "\x1b[?" + std::to_string(modes[i].number) + (modes[i].usual ? "h" : "l");
    return out;
}

} // namespace glove::cli
