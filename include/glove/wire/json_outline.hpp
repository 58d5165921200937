// One strict pass over a JSON text that keeps the text: it validates everything `read` validates,
// with the same limits and error steps, and builds no values. What it finds are slices of the
// input: the members of the outermost object, and those of the objects directly inside of it.
//
// Names are compared decoded: "na\u006de" is `name`, and a name that appears twice is refused at
// any depth. The slices live as long as the text; an outline is reused so that a message costs no
// allocation. Steps are those of `read`; when a text has several faults, they may name another one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/wire/json.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glove::wire::json {

// An outline may be deeper than what `read` makes, since nothing that looks at it recurses.
inline constexpr std::size_t max_outline_depth = 256;

struct slice {
    std::string_view name; // decoded
    std::string_view text; // of the value, as it stands, without white space around it
    kind type = kind::null;
    // Members of an object at the first level: they are in `outline::inner` from `first` on.
    std::uint32_t first = 0, count = 0;
};

class outline {
public:
    outline();
    outline(outline&&) noexcept;
    auto operator=(outline&&) noexcept -> outline&;
    ~outline();
    // Reads `text`, whose outermost value must be an object (json.syntax when it is not). What was
    // found before is forgotten.
    [[nodiscard]] auto read(std::string_view text, const limits& bounds) -> result<>;
    [[nodiscard]] auto members() const noexcept -> std::span<const slice> { return outer_; }
    // Null when there is none.
    [[nodiscard]] auto find(std::string_view name) const noexcept -> const slice*;
    [[nodiscard]] auto inside(const slice& of) const noexcept -> std::span<const slice> {
        return std::span{inner_}.subspan(of.first, of.count);
    }
    [[nodiscard]] auto find_inside(const slice& of, std::string_view name) const noexcept
        -> const slice*;
    // Whether the text holds what somebody could take for the end of a line: CR or LF between its
    // tokens, or U+2028 or U+2029 as they are.
    [[nodiscard]] auto has_line_breaks() const noexcept -> bool { return breaks_; }

private:
    friend class outline_reader;
    struct scratch;
    std::vector<slice> outer_, inner_;
    bool breaks_ = false;
    std::unique_ptr<scratch> scratch_; // also holds the names that have escapes
};

// The string that a slice of type string stands for.
[[nodiscard]] auto decoded_string(std::string_view literal) -> std::string;

// The text of a slice as the writer writes its value: without white space between tokens, and with
// the writer's escapes only. `text` is a value that an outline or `read` has accepted.
void append_rewritten(std::string& out, std::string_view text);

} // namespace glove::wire::json
