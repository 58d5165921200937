// What `glove-image` is started with: two words, and descriptors at fixed numbers.
//
// The words are what it is to do, and the absolute path of the program that does it.
#pragma once
#include <string_view>

namespace glove::container {

// e2fsck; ends as soon as nobody has the other end of `image_life` any more.
inline constexpr std::string_view image_check = "check";
// fuse2fs; goes on then for as long as `image_farewell_seconds` to write down what it has.
inline constexpr std::string_view image_serve = "serve";
inline constexpr std::string_view image_show = "show"; // for reading only

inline constexpr int image_words = 2; // what is said, by anybody
inline constexpr int image_file = 3;  // its lock is held by whoever has this open
inline constexpr int image_life = 4;
inline constexpr int image_fuse = 5;  // of `serve` and `show`
inline constexpr int image_entry = 6; // of a control group, to be entered before anything is done

inline constexpr int image_farewell_seconds = 10;

// How it ends: as its program, or with one of these, which none of the programs ends with.
inline constexpr int image_failed = 120; // nothing was started, or it was ended by others
inline constexpr int image_killed = 121; // the program, by a signal of its own doing

} // namespace glove::container
