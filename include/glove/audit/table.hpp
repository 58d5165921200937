// Rows as a table for people.
//
// Whatever text the records hold, a cell draws nothing on the terminal but itself: no control
// character, no change of direction, no line's end. On a terminal no line is longer than it is
// wide.
#pragma once
#include <glove/audit/rows.hpp>

namespace glove::audit {

struct table_style {
    std::size_t width = 0; // columns of the terminal; 0: lines are as long as they need to be
    bool colours = false;
};

[[nodiscard]] auto table_head(const table_style& style) -> std::string; // ends in a newline
// A line, and one more below it for an error.
[[nodiscard]] auto table_line(const row& of, const table_style& style) -> std::string;

// Parts of it, apart for tests.
[[nodiscard]] auto safe_text(std::string_view text) -> std::string;
// At most so many columns, with "..." where something was cut off. `text` is safe.
[[nodiscard]] auto fitted(std::string_view text, std::size_t columns) -> std::string;
[[nodiscard]] auto duration_text(std::int64_t ns) -> std::string;  // 0.4ms, 12.3s, 5m07s, 3h05m
[[nodiscard]] auto bytes_text(std::uint64_t bytes) -> std::string; // 512, 1.5K, 20M

} // namespace glove::audit
