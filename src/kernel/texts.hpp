// Messages put together from pieces of others.
//
// Guarantees: no piece that came from one side goes to the other with a carriage return, or with a
// Unicode line or paragraph separator, as it stands: programs that take those for the end of a line
// would see another message than the one that was judged. The JSON stays the same value.
#pragma once
#include <cstdint>
#include <glove/wire/json_outline.hpp>
#include <string>
#include <string_view>

namespace glove::kernel {

// `json` is valid JSON text without line feeds.
void append_safe(std::string& out, std::string_view json);
[[nodiscard]] auto safe(std::string_view json) -> std::string;
void append_number(std::string& out, std::uint64_t number);

// What a literal of type string stands for: a view into it, or into `room` when it has escapes.
[[nodiscard]] auto plain_string(std::string_view literal, std::string& room) -> std::string_view;
// An id that Glove may have given: its digits, and nothing else.
struct given_id {
    std::uint64_t number = 0;
    bool quoted = false; // sent back as a string
};
[[nodiscard]] auto read_id(std::string_view token) -> given_id; // number 0: not one of Glove's

// 16 digits.
void put_hexadecimal(char* to, std::uint64_t number) noexcept;

} // namespace glove::kernel
