// The canonical JSON writer: no white space, members in the order of the calls, appended to a
// string.
//
// The output is valid UTF-8 whatever the strings hold: each longest malformed run becomes U+FFFD.
// Escapes are \" \\ \b \f \n \r \t and \u00xx for the other control characters; all else stands as
// it is. Nothing here depends on a JSON library or opens a stream, so a short-lived program can
// link it alone (glove_wire_writer).
//
// The caller balances begin and end and gives every member of an object a name; debug builds assert
// it. The writer does not look for repeated names.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <glove/wire/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace glove::wire::json {

class writer {
public:
    explicit writer(std::string& out) noexcept : out_{out} {}
    writer(const writer&) = delete;
    auto operator=(const writer&) -> writer& = delete;
    ~writer();

    void begin_object() { open('{'); }
    void begin_object(std::string_view name) {
        key(name);
        open('{');
    }
    void end_object() { close('}'); }
    void begin_array() { open('['); }
    void begin_array(std::string_view name) {
        key(name);
        open('[');
    }
    void end_array() { close(']'); }

    // The next value, or the next begin, belongs to this name.
    void key(std::string_view name);

    void element(std::nullptr_t) { raw("null"); }
    template<std::same_as<bool> B> void element(B truth) { raw(truth ? "true" : "false"); }
    template<std::integral I>
        requires(!std::same_as<I, bool> && !std::same_as<I, char>)
    void element(I integer) {
        if constexpr (std::signed_integral<I>) put_signed(integer);
        else put_unsigned(integer);
    }
    void element(std::string_view text);
    void element(const std::string& text) { element(std::string_view{text}); }
    void element(const char* text) { element(std::string_view{text}); }
    void element(const value& tree); // recurses: a value that `read` made is shallow enough

    template<class T> void member(std::string_view name, const T& data) {
        key(name);
        element(data);
    }
    // An empty optional leaves its member out.
    template<class T> void member(std::string_view name, const std::optional<T>& data) {
        if (data) member(name, *data);
    }

    // Text that already is one JSON value, as it stands.
    void raw(std::string_view json_text);

private:
    void open(char bracket);
    void close(char bracket);
    void before_value();
    void put_unsigned(std::uint64_t integer);
    void put_signed(std::int64_t integer);

    std::string& out_;
    bool comma_ = false; // something stands before the next value or name
    bool named_ = false; // a name waits for its value
    bool root_ = false;  // the one outermost value is there
    unsigned depth_ = 0;
    // Bit i says that level i is an object; only assertions read it.
    std::uint64_t objects_ = 0;
};

// The value on its own, and a string literal with its quotes.
[[nodiscard]] auto to_text(const value& tree) -> std::string;
void append_quoted(std::string& out, std::string_view text);
// A literal into room for as many bytes; returns where it ends.
[[nodiscard]] constexpr auto most_quoted(std::size_t bytes) noexcept -> std::size_t {
    return 6 * bytes + 2;
}
[[nodiscard]] auto put_quoted(char* to, std::string_view text) noexcept -> char*;
// What the literal takes.
[[nodiscard]] auto quoted_bytes(std::string_view text) noexcept -> std::size_t;

} // namespace glove::wire::json
