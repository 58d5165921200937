// The text of an enumerator, from the same words that a `choice` reads it by.
#pragma once
#include <cstddef>
#include <glove/wire/rules.hpp>
#include <string_view>

namespace glove::wire {

// Empty when no word stands for it.
template<class E, std::size_t N>
[[nodiscard]] constexpr auto name_in(const word<E> (&words)[N], E means) noexcept
    -> std::string_view {
    for (const auto& w : words)
        if (w.means == means) return w.name;
    return {};
}

} // namespace glove::wire
