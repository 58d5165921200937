// Reads audit lines back, strictly: what `to_line` cannot have written is refused.
//
// A file's text is not trusted: lines are bounded before they are kept, and what a record holds is
// text of whoever wrote it, which must be made printable before a terminal sees it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <glove/base/audit.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glove::audit {

// A whole command line fits, with every byte escaped twice.
inline constexpr std::size_t longest_line = 16UL << 20;

// An event with what its arguments say, where they are Glove's own words.
struct record {
    event data;
    std::vector<std::string> argv;               // of agent_launch
    std::string cause;                           // of agent_exit
    std::optional<std::int64_t> code, signal;    // of agent_exit
    std::optional<std::uint64_t> sent, received; // of egress
};

// `line` is without its newline. Steps: log.line, and those of the JSON reader and the field table.
[[nodiscard]] auto read_record(std::string_view line) -> result<record>;

// Cuts what is read, piece by piece, into lines. One of nothing but spaces is what is left of one
// that could not be written whole: it is counted, and not taken.
class line_cutter {
public:
    struct line {
        std::string_view text; // empty when it is too long
        std::uint64_t number;  // from 1
        bool too_long;
    };
    void feed(std::string_view bytes, const std::function<void(const line&)>& take);
    // Bytes of a line without an end are held.
    [[nodiscard]] auto is_torn() const noexcept -> bool { return !held_.empty() || skipping_; }
    [[nodiscard]] auto next_number() const noexcept -> std::uint64_t { return number_; }
    [[nodiscard]] auto held_bytes() const noexcept -> std::size_t { return held_.size(); }
    // The file was cut back to its last whole line.
    void drop_torn() noexcept {
        held_.clear();
        skipping_ = false;
    }

private:
    std::string held_;
    std::uint64_t number_ = 1;
    bool skipping_ = false; // the line exceeds the bound
};

} // namespace glove::audit
