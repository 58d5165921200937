// JSON values and the strict reader.
//
// `read` accepts exactly one RFC 8259 value in UTF-8 and nothing around it but white space. It
// refuses a member name that appears twice in one object, at any depth; comments, trailing commas,
// a byte order mark, lone surrogates, malformed UTF-8, leading zeros, NaN and Infinity; and
// everything beyond the limits, before memory is spent on it. What it accepts is bounded in depth,
// so code that walks a value may recurse.
//
// A number is never changed: 64-bit integers are integers, and every other number is refused or,
// when the limits allow it, kept as the text that stood in the input.
//
// Error steps: json.size, json.depth, json.members, json.elements, json.values and json.string are
// limits (errc::limit_exceeded); json.syntax covers UTF-8 and surrogates too; json.number,
// json.nul, json.repeated. The detail holds the byte offset and the member path, never the content
// of a value.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace glove::wire::json {

enum class kind : std::uint8_t { null, boolean, integer, number, string, array, object };
[[nodiscard]] auto to_string(kind of) noexcept -> std::string_view;

class value;
struct member;
using array = std::vector<value>;
using object = std::vector<member>; // in the order of the text

// A number that is not a 64-bit integer, as text. Only `make_number` makes one, so it is valid
// JSON.
class number {
public:
    [[nodiscard]] auto text() const noexcept -> const std::string& { return text_; }
    auto operator==(const number&) const -> bool = default;

private:
    explicit number(std::string text) : text_{std::move(text)} {}
    friend auto make_number(std::string_view text) -> std::optional<value>;
    std::string text_;
};

// Immutable apart from assignment as a whole. Equal integers are equal whatever type made them.
class value {
public:
    value() = default; // null
    template<std::same_as<bool> B> value(B truth) : data_{std::in_place_type<B>, truth} {}
    template<std::integral I>
        requires(!std::same_as<I, bool> && !std::same_as<I, char>)
    value(I integer) {
        if (std::in_range<std::uint64_t>(integer)) set(static_cast<std::uint64_t>(integer));
        else set(static_cast<std::int64_t>(integer));
    }
    value(std::string text);
    value(std::string_view text);
    value(const char* text);
    value(number exact);
    value(array elements);
    value(object members);

    [[nodiscard]] auto type() const noexcept -> kind;
    [[nodiscard]] auto is_null() const noexcept -> bool { return data_.index() == 0; }
    // Each is empty when the value has another type, or when the integer does not fit.
    [[nodiscard]] auto as_bool() const noexcept -> std::optional<bool>;
    [[nodiscard]] auto as_unsigned() const noexcept -> std::optional<std::uint64_t>;
    [[nodiscard]] auto as_signed() const noexcept -> std::optional<std::int64_t>;
    [[nodiscard]] auto as_number() const noexcept -> const number* { return get<number>(); }
    [[nodiscard]] auto as_string() const noexcept -> const std::string* {
        return get<std::string>();
    }
    [[nodiscard]] auto as_array() const noexcept -> const array* { return get<array>(); }
    [[nodiscard]] auto as_object() const noexcept -> const object* { return get<object>(); }
    // The member of an object, or null; linear in the number of members.
    [[nodiscard]] auto find(std::string_view name) const noexcept -> const value*;

    friend auto operator==(const value& a, const value& b) -> bool;

private:
    void set(std::uint64_t integer);
    void set(std::int64_t integer);
    template<class T> [[nodiscard]] auto get() const noexcept -> const T* {
        return std::get_if<T>(&data_);
    }
    // A non-negative integer is always the unsigned one.
    std::variant<std::monostate, bool, std::uint64_t, std::int64_t, number, std::string, array,
                 object>
        data_;
};

struct member {
    std::string name;
    value data;
    auto operator==(const member&) const -> bool = default;
};

// Defined here because clang wants `member` complete before it looks at the variant.
inline void value::set(std::uint64_t integer) { data_ = integer; }
inline void value::set(std::int64_t integer) { data_ = integer; }
inline value::value(std::string text) : data_{std::move(text)} {}
inline value::value(std::string_view text) : data_{std::string{text}} {}
inline value::value(const char* text) : data_{std::string{text}} {}
inline value::value(number exact) : data_{std::move(exact)} {}
inline value::value(array elements) : data_{std::move(elements)} {}
inline value::value(object members) : data_{std::move(members)} {}

// The value that a JSON number stands for; empty when `text` is not one. "-0" and integers beyond
// 64 bits are not integers here: they would not come out as they went in.
[[nodiscard]] auto make_number(std::string_view text) -> std::optional<value>;

enum class numbers : bool { integers, any };
enum class nul : bool { refused, allowed }; // \u0000 in strings and names; a raw NUL never is JSON

inline constexpr std::size_t max_depth = 64;

struct limits {
    std::size_t bytes = 1UL << 20;        // of the text
    std::size_t depth = 32;               // open arrays and objects; max_depth bounds it
    std::size_t members = 1024;           // of one object
    std::size_t elements = 1UL << 16;     // of one array
    std::size_t values = 1UL << 18;       // of all kinds, in the whole text
    std::size_t string_bytes = 1UL << 20; // of one string or name, without escapes
    std::size_t number_bytes = 32;        // of one number, as written
    numbers form = numbers::integers;
    nul zero = nul::allowed;
};

[[nodiscard]] auto read(std::string_view text, const limits& bounds = {}) -> result<value>;

// The literal text of each member's value of the outermost object, in order, for members that are
// kept or hashed as they came. `text` must be what `read` accepted; otherwise the answer is empty
// or meaningless, but still lies within `text`.
[[nodiscard]] auto member_slices(std::string_view text) -> std::vector<std::string_view>;

// The same of the elements of an array.
[[nodiscard]] auto element_slices(std::string_view text) -> std::vector<std::string_view>;

// A name from outside, made fit for a message: printable ASCII, and cut when it is long.
[[nodiscard]] auto readable_name(std::string_view name) -> std::string;

} // namespace glove::wire::json
