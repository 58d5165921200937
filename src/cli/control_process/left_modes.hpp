// What a session's output has switched on in the terminal that shows it, and has not switched off.
//
// Guarantees: looks and changes nothing; keeps a bounded amount whatever it sees; what it gives
// switches off only what was seen to be switched on, and moves no cursor but by leaving the other
// screen. A sequence may come in pieces.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace glove::cli {

class left_modes {
public:
    void see(std::string_view shown);
    // The bytes that put the terminal back; empty: nothing is left.
    [[nodiscard]] auto undo() const -> std::string;

private:
    enum class state : std::uint8_t { ground, escape, charset, sequence };
    void see_byte(char c);
    void see_escape(char c);
    void see_sequence(char last);
    void set_private(bool on);
    void see_keyboard();

    state at_ = state::ground;
    std::string inside_;          // of a sequence, without its first two bytes and its last
    std::uint32_t changed_ = 0;   // a bit for each row of the table
    std::uint32_t keyboards_ = 0; // pushed and not popped
    bool keypad_ = false, drawing_ = false, margins_ = false, coloured_ = false,
         other_keys_ = false;
};

} // namespace glove::cli
