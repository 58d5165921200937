// One JSON object of which some members are kept as the text that came: the whole is checked in one
// pass, a field table judges the small members, and the literal ones are slices of the input.
#pragma once
#include <algorithm>
#include <glove/base/error.hpp>
#include <glove/wire/fields.hpp>
#include <glove/wire/json_outline.hpp>
#include <span>
#include <string_view>

namespace glove::control {

// The members as a tree for a field table; of those in `literal`, an empty value of their type.
[[nodiscard]] auto small_members(std::span<const wire::json::slice> members,
                                 std::span<const std::string_view> literal)
    -> result<wire::json::value>;

// The literal text of a member that is there.
[[nodiscard]] inline auto text_of(std::span<const wire::json::slice> members, std::string_view name)
    -> std::string_view {
    return std::ranges::find(members, name, &wire::json::slice::name)->text;
}

[[nodiscard]] auto stand_in(wire::json::kind of) -> wire::json::value;

} // namespace glove::control
