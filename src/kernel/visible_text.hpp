// Text of a server that an agent, and its user, will see: what cannot be seen is taken out.
//
// Guarantees: no control character but line feed and tab, no sequence that a terminal obeys, no
// character without a shape of its own (zero width, direction, tags, variation), at any depth of a
// value, in names of members too. What is left stands as it was.
#pragma once
#include <glove/wire/json.hpp>
#include <string>
#include <string_view>

namespace glove::kernel {

// `text` is UTF-8.
[[nodiscard]] auto visible_text(std::string_view text) -> std::string;
[[nodiscard]] auto visible_tree(const wire::json::value& tree) -> wire::json::value;

// Whether an object in it, at any depth, has more than `most` members.
[[nodiscard]] auto has_wide_object(const wire::json::value& tree, std::size_t most) -> bool;

} // namespace glove::kernel
