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

auto small_members(std::span<const json::slice> members, std::span<const std::string_view> literal)
    -> result<json::value> {
    json::object out;
    for (const auto& m : members) {
        const bool is_literal = std::ranges::find(literal, m.name) != literal.end();
        GLOVE_TRY(auto data, is_literal ? stand_in(m.type) : json::read(m.text));
        out.push_back({std::string{m.name}, std::move(data)});
    }
    return json::value{std::move(out)};
}

} // namespace glove::control
