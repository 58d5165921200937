// What tests of the readers build their texts from.
#pragma once
#include <string>
#include <string_view>

namespace glove::test {

[[nodiscard]] inline auto repeat(std::string_view part, std::size_t times) -> std::string {
    std::string out;
    for (std::size_t i = 0; i < times; ++i) out += part;
    return out;
}

} // namespace glove::test
