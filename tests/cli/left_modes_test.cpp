#include "cli/control_process/left_modes.hpp"
#include <gmock/gmock.h>
#include <string>

namespace glove::cli {
namespace {

using std::string;
using std::string_view;

auto undo_of(string_view shown) -> string {
    left_modes whole;
    whole.see(shown);
    left_modes cut; // the same in pieces
    for (const char c : shown) cut.see({&c, 1});
    EXPECT_EQ(cut.undo(), whole.undo());
    return whole.undo();
}

TEST(LeftModes, OfPlainOutputAreNone) {
    string all;
    for (int c = 0; c < 256; ++c)
        if (c != 0x1b) all += static_cast<char>(c);
    EXPECT_EQ(undo_of(all), "");
    EXPECT_EQ(undo_of("\x1b[31mred\x1b[0m \x1b[1;1H\x1b[2J\x1b]0;title\x07\x1b[?u\x1b[6n"), "");
}

TEST(LeftModes, AreSwitchedOffEach) {
    EXPECT_EQ(undo_of("\x1b[?1049h\x1b[?25l"), "\x1b[?25h\x1b[?1049l");
    EXPECT_EQ(undo_of("\x1b[?1000;1006;2004h"), "\x1b[?1000l\x1b[?1006l\x1b[?2004l");
    EXPECT_EQ(undo_of("\x1b[?7l"), "\x1b[?7h");
    EXPECT_EQ(undo_of("\x1b="), "\x1b>");
    EXPECT_EQ(undo_of("\x1b(0"), "\x1b(B");
    EXPECT_EQ(undo_of("\x1b[3;20r"), "\x1b"
                                     "7\x1b[r\x1b"
                                     "8");
    EXPECT_EQ(undo_of("\x1b[1;31m"), "\x1b[0m");
    EXPECT_EQ(undo_of("\x1b[>4;2m"), "\x1b[>4m");
    EXPECT_EQ(undo_of("\x1b[>1u\x1b[>5u"), "\x1b[<2u");
}

TEST(LeftModes, AreGoneWhenTheSessionSwitchedThemOff) {
    for (const auto* shown :
         {"\x1b[?1049h\x1b[?1049l", "\x1b[?25l\x1b[?25h", "\x1b[?1000;1006h\x1b[?1006;1000l",
          "\x1b=\x1b>", "\x1b(0\x1b(B", "\x1b[3;20r\x1b[r", "\x1b[1m\x1b[m", "\x1b[>4;2m\x1b[>4m",
          "\x1b[>1u\x1b[<u", "\x1b[>1u\x1b[>1u\x1b[<2u", "\x1b[<5u",
          "\x1b[?1049h\x1b[?25l\x1b"
          "c",
          "\x1b[1m\x1b[2;3r\x1b[!p"})
        EXPECT_EQ(undo_of(shown), "") << shown;
}

TEST(LeftModes, KnowNothingOfOtherModesAndOfWhatIsNone) {
    for (const auto* shown : {"\x1b[?9999h", "\x1b[25l", "\x1b[?h", "\x1b[?25", "\x1b[?x25l",
                              "?25l", "\x1b[?99999999999999999999h", "\x1b[?25\x07l"})
        EXPECT_THAT(undo_of(shown), testing::AnyOf("", "\x18")) << shown;
    EXPECT_EQ(undo_of("\x1b[?" + string(100, '1') + "25l"), "");
    EXPECT_EQ(undo_of("\x1b[?25"), "\x18"); // so that it does not swallow what comes next
}

TEST(LeftModes, StayBounded) {
    string many;
    for (int i = 0; i < 1000; ++i) many += "\x1b[>1u";
    EXPECT_EQ(undo_of(many), "\x1b[<99u");
}

} // namespace
} // namespace glove::cli
