// Members as a tree, of slices that an outline has accepted: nothing is judged here a second time,
// and a literal member is not even looked at.
#include "control/literal_members.hpp"
#include <glove/wire/json.hpp>
#include <string>
#include <utility>

namespace glove::control {

namespace json = wire::json;

auto stand_in(json::kind of) -> json::value {
    switch (of) {
    case json::kind::boolean: return false;
    case json::kind::integer:
    case json::kind::number: return 0;
    case json::kind::string: return "";
    case json::kind::array: return json::array{};
    case json::kind::object: return json::object{};
    case json::kind::null: break;
    }
    return {};
}

namespace {

// The outline has found the value to be well-formed and within the limits; what has no parts is
// made of its text at once.
[[nodiscard]] auto value_of(const json::slice& member) -> result<json::value> {
    switch (member.type) {
    case json::kind::null: return json::value{};
    case json::kind::boolean: return json::value{member.text == "true"};
    case json::kind::string: return json::value{json::decoded_string(member.text)};
    case json::kind::integer:
        if (auto number = json::make_number(member.text)) return *std::move(number);
        break;
    case json::kind::number:
    case json::kind::array:
    case json::kind::object: break;
    }
    return json::read(member.text);
}

} // namespace

auto small_members(std::span<const json::slice> members, std::span<const std::string_view> literal)
    -> result<json::value> {
    json::object out;
    for (const auto& m : members) {
        const bool is_literal = std::ranges::find(literal, m.name) != literal.end();
        GLOVE_TRY(auto data, is_literal ? stand_in(m.type) : value_of(m));
        out.push_back({std::string{m.name}, std::move(data)});
    }
    return json::value{std::move(out)};
}

} // namespace glove::control
