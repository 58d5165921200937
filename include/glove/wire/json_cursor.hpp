// One strict pass over a JSON text whose shape the caller knows: values are taken in the order of
// the text, and no tree is built.
//
// A text that a caller takes as a whole, up to `finish`, is one that `read` accepts under the same
// limits, and what was taken is what `read` would have made. The reverse does not hold: a name that
// is written with escapes, and every number that is no 64-bit integer, are not taken. So whoever
// is told `false` reads the text with `read`, which has the error, or a value after all.
//
// It does not look for repeated names: a caller knows all names, and which of them it has met.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <glove/wire/json.hpp>
#include <string>
#include <string_view>

namespace glove::wire::json {

class cursor {
public:
    // `text` must outlive the cursor.
    cursor(std::string_view text, const limits& bounds) noexcept;
    cursor(const cursor&) = delete;
    auto operator=(const cursor&) -> cursor& = delete;
    ~cursor() = default;

    // All below: false also when something else stands there, when it is malformed, or when a limit
    // is passed. The cursor is of no more use then, but for those that try.
    [[nodiscard]] auto enter_object() -> bool;
    // False at the end of the object, which is left then, and when `broken`. The value is next.
    [[nodiscard]] auto next_member(std::string_view& name) -> bool;
    // Whether the next member has this plain name, written without white space; takes nothing when
    // it does not.
    [[nodiscard]] auto try_member(std::string_view name) -> bool;
    [[nodiscard]] auto enter_array() -> bool;
    // The same for arrays.
    [[nodiscard]] auto next_element() -> bool;
    // The text is there until the next call.
    [[nodiscard]] auto take_string(std::string_view& out) -> bool;
    [[nodiscard]] auto take_bool(bool& out) -> bool;
    // The bits of a std::int64_t when it is negative.
    [[nodiscard]] auto take_integer(std::uint64_t& bits, bool& negative) -> bool;
    // These take nothing when something else stands there.
    [[nodiscard]] auto try_null() -> bool;
    [[nodiscard]] auto try_empty_string() -> bool;
    // The outermost value was taken, and nothing but white space follows.
    [[nodiscard]] auto finish() -> bool;
    [[nodiscard]] auto broken() const noexcept -> bool { return broken_; }
    // For a reason of the caller's.
    void refuse() noexcept { (void)fail(); }

    // Whether the writer would have written what was taken with these bytes, given that the caller
    // wants the same members in the same order: no white space, no escapes but the writer's own.
    // The caller knows the rest, and tells.
    [[nodiscard]] auto is_as_written() const noexcept -> bool { return as_written_; }
    void is_not_as_written() noexcept { as_written_ = false; }

private:
    struct level {
        bool is_object;
        std::size_t count;
    };
    [[nodiscard]] auto enter(char bracket) -> bool;
    // The way to the next part: its comma, or the end.
    [[nodiscard]] auto next_part(char bracket) -> bool;
    [[nodiscard]] auto take_escaped(std::string_view& out, const char* from) -> bool;
    [[nodiscard]] auto admit() noexcept -> bool;
    [[nodiscard]] auto short_natural() const noexcept -> std::size_t;
    [[nodiscard]] auto take_word(std::string_view word) -> bool;
    [[nodiscard]] auto fail() noexcept -> bool;
    void skip_space() noexcept {
        if (at_ != end_ && *at_ <= ' ') skip_some_space(); // mostly there is none
    }
    void skip_some_space() noexcept;
    [[nodiscard]] auto peek() const noexcept -> char { return at_ == end_ ? '\0' : *at_; }
    [[nodiscard]] auto top() noexcept -> level& { return levels_[depth_ - 1]; }

    const char* at_;
    const char* end_;
    limits bounds_;
    std::size_t depth_ = 0;
    std::size_t values_ = 0;
    bool broken_ = false;
    bool as_written_ = true;
    std::string decoded_; // of the last string with escapes; its size is that of its memory
    std::array<level, max_depth> levels_; // only the first `depth_` are any
};

} // namespace glove::wire::json
